//! What the options of programs say of their files and blocks.
//!
//! An option that is not in a list here makes the stage one that is not understood: it could name
//! other files, change what is read, or set a rate.

use std::path::PathBuf;

use super::compressors::{compresses, safe};
use super::{PIPE_BYTES, RING_BYTES, Role, Said, TypedProgram, program, target, words};

/// tar's own block: 20 units.
const TAR_UNITS: u64 = 20;
/// What cat and cp of coreutils read and write at once.
const COPIED_BYTES: u64 = 128 << 10;

/// `tar` that makes an archive; `None` for one that does anything else.
pub(super) fn tar(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let mut tar = Tar::default();
    let mut rest = words.get(1..)?.iter();
    let mut is_first = true;
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
            tar.long(name, value, &mut rest)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty()) {
            tar.letters(letters, &mut rest, Letters::Dashed)?;
        } else if is_first {
            tar.letters(word, &mut rest, Letters::Bare)?;
        } else {
            tar.paths.push(tar.folder.join(word));
        }
        is_first = false;
    }
    tar.makes_an_archive.then(|| tar.said(name, stage))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    Dashed,
    /// The first word without a dash: values follow in the order of their letters.
    Bare,
}

#[derive(Default)]
struct Tar {
    makes_an_archive: bool,
    file: Option<String>,
    units: Option<u64>,
    compressor: Option<String>,
    folder: PathBuf,
    paths: Vec<PathBuf>,
    /// Options that another program would have to be given, too.
    is_special: bool,
}

impl Tar {
    fn long<'a>(
        &mut self,
        name: &str,
        value: Option<&str>,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Option<()> {
        let mut value = || value.map(str::to_owned).or_else(|| rest.next().cloned());
        match name {
            "create" => self.makes_an_archive = true,
            "file" if self.file.is_none() => self.file = Some(value()?),
            "blocking-factor" => self.units = Some(value()?.parse().ok()?),
            "record-size" => self.units = Some(size(&value()?)? / 512),
            "directory" => {
                self.folder = self.folder.join(value()?);
                self.is_special = true;
            }
            "use-compress-program" => self.compressor = Some(value()?),
            "gzip" | "bzip2" | "xz" | "zstd" => self.compressor = Some(name.to_owned()),
            "verbose"
            | "totals"
            | "sparse"
            | "numeric-owner"
            | "xattrs"
            | "acls"
            | "selinux"
            | "preserve-permissions" => {}
            "exclude" | "exclude-from" | "listed-incremental" | "newer" | "format" | "label"
            | "owner" | "group" | "mode" | "mtime" | "sort" | "transform" | "exclude-tag" => {
                value()?;
                self.is_special = true;
            }
            "one-file-system" | "ignore-failed-read" | "dereference" | "absolute-names"
            | "exclude-caches" | "exclude-vcs" | "no-xattrs" | "hard-dereference" => {
                self.is_special = true;
            }
            // Files in a list, deleted or extracted ones, or something new.
            _ => return None,
        }
        Some(())
    }

    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
        kind: Letters,
    ) -> Option<()> {
        let mut left = letters.char_indices();
        while let Some((at, letter)) = left.next() {
            let mut value = || {
                let glued = &letters[at + letter.len_utf8()..];
                if kind == Letters::Dashed && !glued.is_empty() {
                    left = "".char_indices();
                    return Some(glued.to_owned());
                }
                rest.next().cloned()
            };
            match letter {
                'c' => self.makes_an_archive = true,
                'f' if self.file.is_none() => self.file = Some(value()?),
                'b' => self.units = Some(value()?.parse().ok()?),
                'C' => {
                    self.folder = self.folder.join(value()?);
                    self.is_special = true;
                }
                'I' => self.compressor = Some(value()?),
                'z' => self.compressor = Some("gzip".to_owned()),
                'j' => self.compressor = Some("bzip2".to_owned()),
                'J' => self.compressor = Some("xz".to_owned()),
                'X' | 'g' | 'N' | 'H' | 'V' => {
                    value()?;
                    self.is_special = true;
                }
                'h' | 'P' | 'l' => self.is_special = true,
                'v' | 'p' | 'S' => {}
                _ => return None,
            }
        }
        Some(())
    }

    fn said(self, name: &str, stage: usize) -> Said {
        let block_bytes = self.units.unwrap_or(TAR_UNITS).clamp(1, 1 << 20) * 512;
        let own = |write_bytes| TypedProgram {
            // tar fills one block after the other from its files.
            read_bytes: block_bytes,
            write_bytes,
            ..program(name, stage, Role::Reads)
        };
        let mut programs = Vec::new();
        match self.compressor.as_deref().map(words) {
            None => programs.push(own(block_bytes)),
            Some(inner) => {
                programs.push(own(PIPE_BYTES));
                let inner = inner.filter(|it| it.from.is_none() && it.to.is_none());
                programs.push(match inner.and_then(|inner| safe(&inner.words)) {
                    Some(inner) => TypedProgram {
                        words: inner.clone(),
                        ..program(base_name(&inner), stage, Role::Compresses)
                    },
                    None => program("the compressor of tar", stage, Role::Unknown),
                });
            }
        }
        let is_special = self.is_special;
        let skips_data =
            self.file.as_deref() == Some(super::NOTHING) && super::GNU_TARS.contains(&name);
        // Without -f, tar writes to a place that the environment or the build names.
        let target = match self.file.as_deref() {
            Some("-") => None,
            Some(file) => Some(target(file)),
            None => Some(super::TypedTarget::Elsewhere("tar's own default".to_owned())),
        };
        Said { programs, sources: self.paths, target, is_special, skips_data }
    }
}

fn base_name(words: &[String]) -> &str {
    words.first().and_then(|first| first.rsplit('/').next()).unwrap_or("?")
}

/// `dd`; `None` where it has anything that is not understood, or reads only a part.
pub(super) fn dd(words: &[String], stage: usize) -> Option<Said> {
    let (mut read_bytes, mut write_bytes) = (512, 512);
    let mut said = Said::default();
    for word in words.get(1..)? {
        let (name, value) = word.split_once('=')?;
        match name {
            "bs" => (read_bytes, write_bytes) = (size(value)?, size(value)?),
            "ibs" => read_bytes = size(value)?,
            "obs" => write_bytes = size(value)?,
            "if" => said.sources.push(value.into()),
            "of" if said.target.is_none() => said.target = Some(target(value)),
            "status" => {}
            "iflag" if value == "fullblock" => {}
            _ => return None,
        }
    }
    let role = if said.sources.is_empty() { Role::Passes } else { Role::Reads };
    said.programs = vec![TypedProgram { read_bytes, write_bytes, ..program("dd", stage, role) }];
    Some(said)
}

/// `cat`, `cp` and `rsync`, with options that neither name files nor hold a rate.
pub(super) fn copies(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let letters = match name {
        "cp" => "arRpdLPHvx",
        "rsync" => "avrlptgoDHAXSx",
        _ => "",
    };
    let mut said = Said::default();
    for word in words.get(1..)? {
        match word.strip_prefix('-') {
            Some(own) if !own.is_empty() && own.chars().all(|letter| letters.contains(letter)) => {}
            Some(_) => return None,
            None => said.sources.push(word.into()),
        }
    }
    match name {
        "cp" => {
            let to = said.sources.pop()?;
            said.target = Some(super::TypedTarget::Path(to));
        }
        "rsync" => {
            let to = said.sources.pop()?;
            said.target = Some(target(&to.to_string_lossy()));
            if said.sources.iter().any(|path| path.to_string_lossy().contains(':')) {
                return None;
            }
        }
        _ => {}
    }
    if name != "cat" && said.sources.is_empty() {
        return None;
    }
    // A cat of its standard input passes on.
    let role = if said.sources.is_empty() { Role::Passes } else { Role::Reads };
    let own = program(name, stage, role);
    said.programs =
        vec![TypedProgram { read_bytes: COPIED_BYTES, write_bytes: COPIED_BYTES, ..own }];
    Some(said)
}

/// `find` that lists all of its folders, for `cpio`.
pub(super) fn find(words: &[String], stage: usize) -> Option<Said> {
    let mut sources = Vec::new();
    for word in words.get(1..)? {
        match word.as_str() {
            "-print" | "-print0" | "-depth" => {}
            other if other.starts_with(['-', '(', '!']) => return None,
            path => sources.push(path.into()),
        }
    }
    if sources.is_empty() {
        sources.push(".".into());
    }
    Some(Said { programs: vec![program("find", stage, Role::Passes)], sources, ..Said::default() })
}

/// `cpio -o` of names that a program before it lists.
pub(super) fn cpio(words: &[String], stage: usize) -> Option<Said> {
    let mut block_bytes = 512;
    let mut said = Said::default();
    let mut writes = false;
    let mut rest = words.get(1..)?.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-C" => block_bytes = rest.next()?.parse().ok()?,
            "-O" if said.target.is_none() => said.target = Some(target(rest.next()?)),
            "-H" => drop(rest.next()?),
            letters => {
                let letters = letters.strip_prefix('-').filter(|it| !it.is_empty())?;
                if !letters.chars().all(|letter| "ov0acB".contains(letter)) {
                    return None;
                }
                writes |= letters.contains('o');
                if letters.contains('B') {
                    block_bytes = 5120;
                }
            }
        }
    }
    let own = program("cpio", stage, Role::Reads);
    said.programs = vec![TypedProgram { read_bytes: block_bytes, write_bytes: block_bytes, ..own }];
    writes.then_some(said)
}

/// Programs with a buffer or a rate: pv, mbuffer, takeup.
pub(super) fn buffer(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let mut said = Said::default();
    let mut own = program(name, stage, Role::Passes);
    let mut rest = words.get(1..)?.iter().peekable();
    let is_backup = name == "takeup" && rest.next_if(|word| *word == "backup").is_some();
    if name == "takeup" {
        if !is_backup {
            rest.next_if(|word| *word == "pipe")?;
        }
        (own.read_bytes, own.write_bytes, own.buffer_bytes) = (1 << 20, 1 << 20, RING_BYTES);
    }
    if name == "mbuffer" {
        // mbuffer(1): 10 KiB blocks and 2 MiB or 2 % of memory.
        (own.read_bytes, own.write_bytes, own.buffer_bytes) = (10 << 10, 10 << 10, 2 << 20);
    }
    while let Some(word) = rest.next() {
        let (option, mut glued) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || glued.take().or_else(|| rest.next().cloned());
        match (name, option) {
            // mbuffer writes to all of several.
            ("takeup", "--to") | ("mbuffer", "-o") if said.target.is_none() => {
                said.target = Some(target(&value()?));
            }
            ("takeup", "--from") | ("mbuffer", "-i") => said.sources.push(value()?.into()),
            ("takeup", "--block-size") | ("mbuffer", "-s") => {
                let bytes = size(&value()?)?;
                (own.read_bytes, own.write_bytes) = (bytes, bytes);
            }
            ("takeup", "--ring") | ("mbuffer", "-m") => own.buffer_bytes = size(&value()?)?,
            ("takeup", "--rate-limit" | "--start-fill")
            | ("mbuffer", "-P" | "-p" | "-r" | "-R")
            | ("pv", "-L" | "-s" | "-i" | "-N" | "--rate-limit") => drop(value()?),
            ("takeup", "--overwrite" | "-q" | "-v") | ("mbuffer", "-q" | "-f") => {}
            ("pv", letters) if letters.starts_with('-') => {
                let letters = letters.strip_prefix('-')?;
                let (shown, held) = letters.split_once('L').unwrap_or((letters, "0"));
                if !shown.chars().all(|letter| "qpterba".contains(letter)) {
                    return None;
                }
                if held.is_empty() {
                    value()?;
                }
            }
            (_, option) if option.starts_with('-') && option != "-" => return None,
            (_, "-") => {}
            _ => said.sources.push(word.into()),
        }
    }
    if is_backup || (name == "pv" && !said.sources.is_empty()) {
        own.role = Role::Reads;
    }
    said.programs = vec![own];
    Some(said)
}

/// A compressor of its standard input, or of one file to its standard output.
pub(super) fn compressor(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let read = compresses(words)?;
    let own = program(name, stage, Role::Compresses);
    Some(Said {
        programs: vec![TypedProgram { words: read.words, ..own }],
        sources: read.file.into_iter().collect(),
        ..Said::default()
    })
}

/// A size as dd, mbuffer and takeup write it.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
    let factor: u64 = match &text[digits.len()..] {
        "" | "c" | "B" => 1,
        "w" => 2,
        "b" => 512,
        "kB" | "KB" => 1000,
        "k" | "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "m" | "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "g" | "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor).filter(|bytes| *bytes <= 1 << 40)
}
