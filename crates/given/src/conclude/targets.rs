//! Where a command writes: its last program's file, if every program behind the one that counts
//! its bytes passes them on as they are.

use pipeline::line::redirection;

use super::blocks::tar_target;
use crate::piece::Command;

/// Programs that write what they read.
const PASS_ON: [&str; 5] = ["dd", "pv", "cat", "mbuffer", "buffer"];

/// The file that gets the bytes which a program of the command has counted. None where several of
/// that name are in it: one line of theirs may be of any.
pub(super) fn target_of(command: &Command, program: &str) -> Option<String> {
    let is_it = |stage: &String| matches!(name_of(stage), Some(name) if name == program);
    let mut places = command.stages.iter().enumerate().filter(|(_, stage)| is_it(stage));
    let (at, stage) = places.next().filter(|_| places.next().is_none())?;
    if program == "tar" {
        let target = tar_target(stage)?;
        if target != "-" {
            return Some(target);
        }
    }
    let passes_on = |stage: &String| name_of(stage).is_some_and(|name| PASS_ON.contains(&name));
    command.stages[at + 1..].iter().all(passes_on).then_some(())?;
    let last = command.stages.last()?;
    let words: Vec<&str> = last.split_whitespace().collect();
    let named = match name_of(last)? {
        "dd" => words.iter().find_map(|word| word.strip_prefix("of=")),
        "mbuffer" | "buffer" => {
            let at = words.iter().position(|word| *word == "-o");
            at.and_then(|at| words.get(at + 1)).copied()
        }
        _ => None,
    };
    named.or_else(|| redirected(last)).map(str::to_owned)
}

/// Whether `tar` writes to the null device itself, not through another program.
pub(super) fn is_tar_to_null(command: &Command) -> bool {
    let is_null = |stage: &String| {
        let target = tar_target(stage).filter(|_| name_of(stage) == Some("tar"));
        match target.as_deref() {
            Some("-") => redirected(stage) == Some("/dev/null"),
            target => target == Some("/dev/null"),
        }
    };
    command.stages.iter().any(is_null)
}

fn redirected(stage: &str) -> Option<&str> {
    redirection(stage).map(|(_, to)| to.trim_start_matches(['1', '>', '|']).trim())
}

/// Whether a program of it asks for further tapes: its time has that of the person who brings them.
pub(super) fn asks_for_tapes(command: &Command) -> bool {
    let is_asking = |(at, word): (usize, &str)| {
        let is_short = at == 1 || (word.starts_with('-') && !word.starts_with("--"));
        let is_long = ["--multi-volume", "--tape-length", "--info-script", "--new-volume"];
        (is_short && word.contains(['M', 'L'])) || is_long.iter().any(|it| word.starts_with(it))
    };
    let is_tar = |stage: &&String| name_of(stage) == Some("tar");
    let mut tars = command.stages.iter().filter(is_tar);
    tars.any(|stage| stage.split_whitespace().enumerate().any(is_asking))
}

pub(super) fn is_tape(path: &str) -> bool {
    ["/dev/nst", "/dev/st", "/dev/tape"].iter().any(|begin| path.starts_with(begin))
}

/// The program of a stage, without its folder. GNU tar is `gtar` on other systems.
fn name_of(stage: &str) -> Option<&str> {
    let name = stage.split_whitespace().next()?.rsplit('/').next()?;
    Some(if name == "gtar" { "tar" } else { name })
}
