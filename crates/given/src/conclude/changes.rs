//! What commands change at a tape drive: its medium, or a setting. What was printed before such a
//! command says nothing of the drive after it.

use super::is_one_machine;
use crate::piece::{Piece, What};

/// What is another one after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Medium,
    BlockSize,
    Compression,
    Buffer,
}

/// A change of a text.
struct Change<'a> {
    changed: Changed,
    /// The device, if the command names one.
    device: Option<&'a str>,
    machine: &'a str,
    line: u32,
}

/// Most changes that are told apart: a text with more compares nothing.
const CHANGES_MAX: usize = 200;

/// All changes of a text, in its order.
pub(super) struct Changes<'a>(Vec<Change<'a>>);

impl<'a> Changes<'a> {
    pub(super) fn of(pieces: &'a [Piece]) -> Changes<'a> {
        let (mut all, mut machine) = (Vec::new(), "");
        for piece in pieces {
            if let What::Command(command) = &piece.what {
                machine = &command.machine;
            }
            let line = piece.lines.0;
            let of_it = changes(&piece.what).into_iter();
            all.extend(of_it.map(|(changed, device)| Change { changed, device, machine, line }));
            if all.len() > CHANGES_MAX {
                break;
            }
        }
        Changes(all)
    }

    /// Whether one may be at this device, between two lines of the text.
    pub(super) fn between(
        &self,
        changed: Changed,
        (device, machine): (Option<&str>, &str),
        (from, to): (u32, u32),
    ) -> bool {
        let may_be_one = |it: &Change<'_>| match (it.device, device) {
            (Some(one), Some(other)) => {
                is_generic(one) || is_generic(other) || is_one_drive(one, other)
            }
            _ => true,
        };
        let is_too_many = self.0.len() > CHANGES_MAX;
        let is_changed = self.0.iter().any(|it| {
            let is_between = (from.min(to)..=from.max(to)).contains(&it.line);
            let is_its = it.changed == changed && is_one_machine(it.machine, machine);
            is_between && is_its && may_be_one(it)
        });
        is_too_many || is_changed
    }
}

/// Whether anything of a drive or its medium is another after this.
pub(super) fn is_change(what: &What) -> bool {
    !changes(what).is_empty()
}

/// `/dev/st0`, `/dev/nst0` and `/dev/nst0a` are one drive.
pub(super) fn is_one_drive(one: &str, other: &str) -> bool {
    drive_name(one) == drive_name(other)
}

fn drive_name(path: &str) -> &str {
    let name = path.strip_prefix("/dev/").unwrap_or(path);
    let name = name.strip_suffix("-nst").unwrap_or(name);
    let name = name.strip_prefix('n').filter(|it| it.starts_with("st")).unwrap_or(name);
    let number = name.strip_prefix("st").map(|it| it.trim_end_matches(['l', 'm', 'a']));
    let is_number = |it: &&str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    number.filter(is_number).map_or(name, |number| &name[.."st".len() + number.len()])
}

/// `/dev/sg3` may be any drive, or the changer.
fn is_generic(path: &str) -> bool {
    path.starts_with("/dev/sg")
}

fn changes(what: &What) -> Vec<(Changed, Option<&str>)> {
    match what {
        What::NextVolume => vec![(Changed::Medium, None)],
        What::Command(command) => {
            command.line.split([';', '&', '|', '(']).flat_map(of_command).collect()
        }
        _ => Vec::new(),
    }
}

/// Those of one command of a line.
fn of_command(line: &str) -> Vec<(Changed, Option<&str>)> {
    let is_front = |word: &&str| {
        matches!(*word, "sudo" | "time" | "do" | "then" | "else" | "if" | "while" | "!" | "{")
            || word
                .split_once('=')
                .is_some_and(|(name, _)| name.bytes().all(|it| it.is_ascii_uppercase()))
    };
    let mut words = line.split_whitespace().skip_while(is_front).peekable();
    // Options of sudo, of which some have a value.
    while let Some(option) = words.next_if(|word| word.starts_with('-')) {
        if matches!(option, "-u" | "-g" | "-h" | "-p" | "-C" | "-T" | "-r" | "-t") {
            words.next();
        }
    }
    let program = words.next().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let device = words.iter().find(|word| word.starts_with("/dev/")).copied();
    match program {
        "mt" | "mt-st" | "mt-gnu" => of_mt(&words),
        "mtx" | "mtx-changer" if has(&MOVES) => vec![(Changed::Medium, None)],
        "eject" => vec![(Changed::Medium, device)],
        "sg_start" => vec![(Changed::Medium, None)],
        "stinit" => [Changed::BlockSize, Changed::Compression, Changed::Buffer]
            .map(|changed| (changed, None))
            .to_vec(),
        _ => Vec::new(),
    }
}

/// Operations of `mtx` that move media.
const MOVES: [&str; 9] =
    ["load", "unload", "exchange", "transfer", "eject", "first", "next", "last", "previous"];

/// Operations of `mt`, and the fewest letters that name each: it takes the beginnings of names.
const OPERATIONS: [(&str, usize, Changed); 16] = [
    ("offline", 3, Changed::Medium),
    ("rewoffl", 4, Changed::Medium),
    ("eject", 2, Changed::Medium),
    ("load", 3, Changed::Medium),
    ("unload", 3, Changed::Medium),
    ("setdensity", 4, Changed::Medium),
    ("defdensity", 5, Changed::Medium),
    ("setblk", 4, Changed::BlockSize),
    ("defblksize", 4, Changed::BlockSize),
    ("compression", 3, Changed::Compression),
    ("datcompression", 3, Changed::Compression),
    ("defcompression", 4, Changed::Compression),
    ("drvbuffer", 3, Changed::Buffer),
    ("defdrvbuffer", 4, Changed::Buffer),
    ("stoptions", 3, Changed::Buffer),
    ("stsetoptions", 3, Changed::Buffer),
];

fn of_mt<'a>(words: &[&'a str]) -> Vec<(Changed, Option<&'a str>)> {
    let (mut device, mut words) = (None, words.iter());
    let operation = loop {
        let Some(word) = words.next() else { return Vec::new() };
        match *word {
            "-f" | "-t" => device = words.next().copied(),
            word if word.starts_with("-f") || word.starts_with("-t") => device = Some(&word[2..]),
            word if word.starts_with('-') => {}
            word => break word,
        }
    };
    let is_it = |(name, least, _): &&(&str, usize, Changed)| {
        operation.len() >= *least && name.starts_with(operation)
    };
    OPERATIONS.iter().filter(is_it).map(|(_, _, changed)| (*changed, device)).collect()
}
