//! What the options of programs say of their files and blocks.

use std::path::{Path, PathBuf};

use super::{PIPE_BYTES, RING_BYTES, Role, Said, TypedProgram, program, target, words};

/// tar's own block: 20 units.
const TAR_UNITS: u64 = 20;
/// What cat and cp of coreutils read and write at once.
const COPIED_BYTES: u64 = 128 << 10;

/// `tar` that makes an archive; `None` for one that does anything else.
pub(super) fn tar(words: &[String], stage: usize) -> Option<Said> {
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
    tar.makes_an_archive.then(|| tar.said(stage))
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
            "file" => self.file = Some(value()?),
            "blocking-factor" => self.units = Some(value()?.parse().ok()?),
            "record-size" => self.units = Some(size(&value()?)? / 512),
            "directory" => self.folder = self.folder.join(value()?),
            "use-compress-program" => self.compressor = Some(value()?),
            "gzip" | "bzip2" | "xz" | "zstd" | "lz4" => self.compressor = Some(name.to_owned()),
            // The files are in a list that is not read here.
            "files-from" | "extract" | "get" | "list" | "diff" | "append" | "update" => {
                return None;
            }
            "exclude" | "exclude-from" | "listed-incremental" | "newer" | "format" | "label" => {
                value()?;
            }
            _ => {}
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
                'f' => self.file = Some(value()?),
                'b' => self.units = Some(value()?.parse().ok()?),
                'C' => self.folder = self.folder.join(value()?),
                'I' => self.compressor = Some(value()?),
                'z' => self.compressor = Some("gzip".to_owned()),
                'j' => self.compressor = Some("bzip2".to_owned()),
                'J' => self.compressor = Some("xz".to_owned()),
                'T' | 'x' | 't' | 'd' | 'r' | 'u' => return None,
                'X' | 'g' | 'N' | 'H' | 'V' | 'L' | 'K' | 'F' => drop(value()?),
                _ => {}
            }
        }
        Some(())
    }

    fn said(self, stage: usize) -> Said {
        let block_bytes = self.units.unwrap_or(TAR_UNITS).clamp(1, 1 << 20) * 512;
        let own = |write_bytes| TypedProgram {
            // tar fills one block after the other from its files.
            read_bytes: block_bytes,
            write_bytes,
            ..program("tar", stage, Role::Reads)
        };
        let mut programs = Vec::new();
        match self.compressor.as_deref().map(words) {
            None => programs.push(own(block_bytes)),
            Some(inner) => {
                programs.push(own(PIPE_BYTES));
                programs.push(match inner.map(|inner| inner.words) {
                    Some(inner) => self::inner(&inner, stage),
                    None => program("?", stage, Role::Unknown),
                });
            }
        }
        let target = self.file.map(|file| target(&file));
        Said { programs, sources: self.paths, target }
    }
}

fn inner(words: &[String], stage: usize) -> TypedProgram {
    let name = words.first().and_then(|first| first.rsplit('/').next()).unwrap_or("?");
    let is_known = super::COMPRESSORS.contains(&name);
    let role = if is_known { Role::Compresses } else { Role::Unknown };
    TypedProgram { words: words.to_vec(), ..program(name, stage, role) }
}

/// `dd`; `None` where it has anything that is not understood.
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
            "of" => said.target = Some(target(value)),
            "status" | "iflag" | "oflag" | "conv" | "count" | "skip" | "seek" => {}
            _ => return None,
        }
    }
    let role = if said.sources.is_empty() { Role::Passes } else { Role::Reads };
    said.programs = vec![TypedProgram { read_bytes, write_bytes, ..program("dd", stage, role) }];
    Some(said)
}

/// Programs that take files as words: cat, cp, rsync, find, cpio.
pub(super) fn files(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut rest = words.get(1..)?.iter();
    let mut said = Said::default();
    let mut block_bytes = if name == "cpio" { 512 } else { COPIED_BYTES };
    while let Some(word) = rest.next() {
        match (name, word.as_str()) {
            ("cpio", "-B") => block_bytes = 5120,
            ("cpio", "-C") => block_bytes = rest.next()?.parse().ok()?,
            ("cpio", "-O") => said.target = Some(target(rest.next()?)),
            ("cpio", "-H" | "-R" | "-E") => drop(rest.next()?),
            ("cpio", "-i" | "-p" | "-t") => return None,
            // Behind the folders of find stands what it looks for.
            ("find", word) if word.starts_with(['-', '(', '!']) => break,
            (_, word) if word.starts_with('-') => {}
            (_, word) => paths.push(word.into()),
        }
    }
    match name {
        "cp" | "rsync" => {
            let to = paths.pop()?;
            said.target = Some(target(&to.to_string_lossy()));
            if paths.iter().any(|path| path.to_string_lossy().contains(':')) {
                return None;
            }
        }
        _ => {}
    }
    let role = if name == "find" { Role::Passes } else { Role::Reads };
    said.sources = if name == "find" && paths.is_empty() { vec![".".into()] } else { paths };
    // A cat of its standard input passes on.
    let role = if name == "cat" && said.sources.is_empty() { Role::Passes } else { role };
    let (read_bytes, write_bytes) = match name {
        "find" => (PIPE_BYTES, PIPE_BYTES),
        _ => (block_bytes, block_bytes),
    };
    said.programs = vec![TypedProgram { read_bytes, write_bytes, ..program(name, stage, role) }];
    Some(said)
}

/// Programs with a buffer or a rate: pv, mbuffer, buffer, takeup.
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
            ("takeup", "--to") | ("mbuffer" | "buffer", "-o") => {
                said.target = Some(target(&value()?));
            }
            ("takeup", "--from") | ("mbuffer" | "buffer", "-i") => {
                said.sources.push(value()?.into());
            }
            ("takeup", "--block-size") | ("mbuffer" | "buffer", "-s") => {
                let bytes = size(&value()?)?;
                (own.read_bytes, own.write_bytes) = (bytes, bytes);
            }
            ("takeup", "--ring") | ("mbuffer" | "buffer", "-m") => {
                own.buffer_bytes = size(&value()?)?;
            }
            ("takeup", "--rate-limit" | "--start-fill" | "--job" | "--state")
            | ("mbuffer", "-P" | "-p" | "-r" | "-R" | "-T" | "-n" | "-l")
            | ("pv", "-L" | "-s" | "-i" | "-N" | "-B" | "--rate-limit") => drop(value()?),
            (_, option) if option.starts_with('-') => {}
            _ => said.sources.push(word.into()),
        }
    }
    if is_backup || (name == "pv" && !said.sources.is_empty()) {
        own.role = Role::Reads;
    }
    said.programs = vec![own];
    Some(said)
}

/// A compressor of its standard input, or of a file.
pub(super) fn compressor(name: &str, words: &[String], stage: usize) -> Option<Said> {
    let mut said = Said::default();
    let mut kept = vec![words.first()?.clone()];
    let mut rest = words.get(1..)?.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-d" | "--decompress" | "-t" | "-l" => return None,
            "-o" => said.target = Some(target(rest.next()?)),
            "-" => {}
            // Values of their own words, and files: a dictionary is no data.
            "-p" | "-b" | "-S" | "-D" => {
                kept.push(word.clone());
                kept.push(rest.next()?.clone());
            }
            option if option.starts_with('-') => kept.push(word.clone()),
            path => said.sources.push(Path::new(path).to_owned()),
        }
    }
    if said.sources.len() > 1 {
        return None;
    }
    said.programs = vec![TypedProgram { words: kept, ..program(name, stage, Role::Compresses) }];
    Some(said)
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
