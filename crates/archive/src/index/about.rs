//! Which set an index belongs to: lines of text, so that people can read them too.
//!
//! ```text
//! set=4567...  job=homes  number=2  level=1  begun=1764000000
//! chain=0123... 1763900000 homes-2026-11-23T121320Z-full.tar.zst
//! chain=4567... 1764000000 homes-2026-11-24T160000Z-level1.tar.zst
//! source=/home ext2/ext3/ext4 0123456789abcdef 15 home
//! ```
//!
//! One `KEY=VALUE` a line. Bytes of a value that are no printable ASCII, spaces inside a field, and
//! `%` itself are written as `%` and two hexadecimal digits. A key that begins with a capital must
//! be understood by a reader; others it passes over.

use std::fmt::Write as _;

use super::error::IndexError;
use super::named::NamedSection;
use super::tree_entry::StoreReason;
use crate::escaped::{escaped, unescaped};
use crate::label::{HostName, hex};

/// Most bytes of the section: sources and globs are what a command line holds.
pub const ABOUT_BYTES_MAX: usize = 16 << 20;
/// Most sets of a chain: two a day for some years.
pub const CHAIN_SETS_MAX: usize = 4096;

/// A set of a chain, as the later ones name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSet {
    pub set: [u8; 16],
    /// When its run began, in seconds since 1970.
    pub begun_seconds: u64,
    /// The name that its archive was given.
    pub name: String,
}

/// Which set of which chain, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Random: the identity of the set.
    pub set: [u8; 16],
    /// The sets of its chain from the full one to itself, by their places.
    pub chain: Vec<ChainSet>,
    /// The name of the job.
    pub job: String,
    /// Its number among the sets of its job, from 1: their order, which clocks do not give, since
    /// they are set.
    pub number: u64,
    /// 0: full; each other set holds what changed since the last one of a lower level.
    pub level: u8,
    /// The machine whose files they are, if its name is known.
    pub host: Option<HostName>,
    /// When the run began and ended, in seconds since 1970.
    pub begun_seconds: u64,
    pub ended_seconds: u64,
    pub sources: Vec<AboutSource>,
    /// The globs of what to leave out, as typed.
    pub excludes: Vec<String>,
    /// Whether other file systems were not entered.
    pub one_file_system: bool,
    /// Whether extended attributes and ACLs were left out.
    pub without_attributes: bool,
    /// What of the set before it is gone.
    pub deleted: u64,
    /// Objects that were stored, by reason.
    pub stored: Vec<(StoreReason, u64)>,
    /// Objects that were not stored, as an earlier set has them.
    pub unchanged: u64,
    /// Objects that were left out, as the set ended early; 0 if it did not.
    pub left: u64,
    /// Sets of its job in a row, up to this one, that looked only at what a list named; 0 if it
    /// looked at everything.
    pub by_list: u64,
    /// The btrfs subvolumes of the sources, as they were when the run began.
    pub subvolumes: Vec<AboutSubvolume>,
    /// What was mounted at, below or above a source then; noted where one is on btrfs or ZFS.
    pub mounts: Vec<Vec<u8>>,
}

/// A btrfs subvolume, or a snapshot, at the begin of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AboutSubvolume {
    pub line: SubvolumeLine,
    /// UUID of the file system.
    pub file_system: [u8; 16],
    /// UUID of the subvolume; of a snapshot, that of the subvolume it is of.
    pub subvolume: [u8; 16],
    /// Number of a transaction: no later change is in one before it.
    pub generation: u64,
}

/// What the generation of a subvolume is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubvolumeLine {
    /// The subvolume itself.
    Live,
    /// A snapshot that was never written to.
    Snapshots,
}

/// A source of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AboutSource {
    /// Its absolute path.
    pub path: Vec<u8>,
    /// What the archive calls it.
    pub archive_path: Vec<u8>,
    /// Type of its file system, as `statfs` has it.
    pub file_system: u64,
    /// Identity of its file system, where that lasts, else 0.
    pub file_system_id: u64,
    /// Names in it, of a folder.
    pub names: u64,
}

impl About {
    /// The set before it in the chain.
    pub fn parent(&self) -> Option<&ChainSet> {
        self.chain.len().checked_sub(2).map(|place| &self.chain[place])
    }

    /// Its own place in the chain.
    pub fn place(&self) -> u32 {
        self.chain.len().saturating_sub(1) as u32
    }

    /// The section.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = String::new();
        let mut line = |key: &str, value: &str| {
            writeln!(out, "{key}={value}").expect("a string takes any text");
        };
        line("set", &hex(&self.set));
        for ChainSet { set, begun_seconds, name } in &self.chain {
            let name = escaped(name.as_bytes());
            line("chain", &format!("{} {begun_seconds} {name}", hex(set)));
        }
        line("job", &escaped(self.job.as_bytes()));
        line("number", &self.number.to_string());
        line("level", &self.level.to_string());
        if let Some(host) = &self.host {
            line("host", &escaped(host.as_str().as_bytes()));
        }
        line("begun", &self.begun_seconds.to_string());
        line("ended", &self.ended_seconds.to_string());
        for source in &self.sources {
            let AboutSource { file_system, file_system_id, names, .. } = source;
            let path = escaped(&source.path);
            let archive_path = escaped(&source.archive_path);
            line(
                "source",
                &format!("{path} {file_system:x} {file_system_id:x} {names} {archive_path}"),
            );
        }
        self.excludes.iter().for_each(|glob| line("exclude", &escaped(glob.as_bytes())));
        line("one-file-system", if self.one_file_system { "yes" } else { "no" });
        line("without-attributes", if self.without_attributes { "yes" } else { "no" });
        line("unchanged", &self.unchanged.to_string());
        line("deleted", &self.deleted.to_string());
        for (reason, count) in &self.stored {
            line("stored", &format!("{} {count}", reason.name()));
        }
        if self.left > 0 {
            line("left", &self.left.to_string());
        }
        if self.by_list > 0 {
            line("by-list", &self.by_list.to_string());
        }
        for AboutSubvolume { line: kind, file_system, subvolume, generation } in &self.subvolumes {
            let kind = match kind {
                SubvolumeLine::Live => "live",
                SubvolumeLine::Snapshots => "snapshots",
            };
            let (file_system, subvolume) = (hex(file_system), hex(subvolume));
            line("btrfs", &format!("{kind} {file_system} {subvolume} {generation}"));
        }
        self.mounts.iter().for_each(|point| line("mount", &escaped(point)));
        out.into_bytes()
    }

    /// Reads the section.
    ///
    /// # Errors
    /// `Named` where it says too little, `Later` for a key that must be understood.
    pub fn decode(section: &[u8]) -> Result<About, IndexError> {
        let damaged = |reason| IndexError::Named { section: NamedSection::About.name(), reason };
        let text = std::str::from_utf8(section).map_err(|_| damaged("it is no text"))?;
        let mut about = About {
            set: [0; 16],
            chain: Vec::new(),
            job: String::new(),
            number: 0,
            level: 0,
            host: None,
            begun_seconds: 0,
            ended_seconds: 0,
            sources: Vec::new(),
            excludes: Vec::new(),
            one_file_system: false,
            without_attributes: false,
            deleted: 0,
            stored: Vec::new(),
            unchanged: 0,
            left: 0,
            by_list: 0,
            subvolumes: Vec::new(),
            mounts: Vec::new(),
        };
        for line in text.lines() {
            let (key, value) = line.split_once('=').ok_or(damaged("a line has no key"))?;
            if key.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                return Err(IndexError::Later { what: "the description of the set" });
            }
            about.take(key, value).ok_or(damaged("a value has another form"))?;
        }
        let is_last = about.chain.last().is_some_and(|last| last.set == about.set);
        if !is_last || about.number == 0 || about.job.is_empty() || about.sources.is_empty() {
            return Err(damaged("it lacks what every set has"));
        }
        Ok(about)
    }

    /// Takes what a line says.
    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "set" => self.set = id(value)?,
            "chain" if self.chain.len() < CHAIN_SETS_MAX => self.chain.push(chain_set(value)?),
            "chain" => return None,
            "job" => self.job = text(value)?,
            "number" => self.number = value.parse().ok()?,
            "level" => self.level = value.parse().ok()?,
            "host" => self.host = HostName::new(&unescaped(value)?),
            "begun" => self.begun_seconds = value.parse().ok()?,
            "ended" => self.ended_seconds = value.parse().ok()?,
            "source" => self.sources.push(source(value)?),
            "exclude" => self.excludes.push(text(value)?),
            "one-file-system" => self.one_file_system = yes(value)?,
            "without-attributes" => self.without_attributes = yes(value)?,
            "unchanged" => self.unchanged = value.parse().ok()?,
            "left" => self.left = value.parse().ok()?,
            "by-list" => self.by_list = value.parse().ok()?,
            // What a later version notes otherwise is as good as not noted.
            "btrfs" => self.subvolumes.extend(subvolume(value)),
            "mount" => self.mounts.push(unescaped(value)?),
            "deleted" => self.deleted = value.parse().ok()?,
            "stored" => {
                let (name, count) = value.split_once(' ')?;
                // A reason that a later version has is none of a set's identity.
                if let Some(reason) = StoreReason::named(name) {
                    self.stored.push((reason, count.parse().ok()?));
                }
            }
            _ => {}
        }
        Some(())
    }
}

fn chain_set(value: &str) -> Option<ChainSet> {
    let mut fields = value.split(' ');
    let set = id(fields.next()?)?;
    let begun_seconds = fields.next()?.parse().ok()?;
    Some(ChainSet { set, begun_seconds, name: text(fields.next()?)? })
}

fn source(value: &str) -> Option<AboutSource> {
    let mut fields = value.split(' ');
    let path = unescaped(fields.next()?)?;
    let file_system = u64::from_str_radix(fields.next()?, 16).ok()?;
    let file_system_id = u64::from_str_radix(fields.next()?, 16).ok()?;
    let names = fields.next()?.parse().ok()?;
    let archive_path = unescaped(fields.next()?)?;
    Some(AboutSource { path, archive_path, file_system, file_system_id, names })
}

fn subvolume(value: &str) -> Option<AboutSubvolume> {
    let mut fields = value.split(' ');
    let line = match fields.next()? {
        "live" => SubvolumeLine::Live,
        "snapshots" => SubvolumeLine::Snapshots,
        _ => return None,
    };
    let (file_system, subvolume) = (id(fields.next()?)?, id(fields.next()?)?);
    let generation = fields.next()?.parse().ok()?;
    Some(AboutSubvolume { line, file_system, subvolume, generation })
}

fn yes(value: &str) -> Option<bool> {
    match value {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn text(value: &str) -> Option<String> {
    String::from_utf8(unescaped(value)?).ok()
}

fn id(digits: &str) -> Option<[u8; 16]> {
    let is_hex =
        digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(digits, 16).ok()).flatten().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_set(number: u8) -> ChainSet {
        ChainSet { set: [number; 16], begun_seconds: 5, name: format!("homes {number}.tar") }
    }

    fn about() -> About {
        About {
            set: [2; 16],
            chain: [1, 2].map(chain_set).to_vec(),
            job: "tägliche homes".to_owned(),
            number: 9,
            level: 1,
            host: HostName::new(b"vault"),
            begun_seconds: 1_764_000_000,
            ended_seconds: 1_764_000_060,
            sources: vec![AboutSource {
                path: b"/srv/a b\xff%".to_vec(),
                archive_path: b"srv/a b\xff%".to_vec(),
                file_system: 0xef53,
                file_system_id: u64::MAX,
                names: 15,
            }],
            excludes: vec!["*.cache".to_owned(), "a=b\n".to_owned()],
            one_file_system: true,
            without_attributes: false,
            deleted: 4,
            stored: vec![(StoreReason::New, 3), (StoreReason::Modified, 5)],
            unchanged: 100,
            left: 7,
            by_list: 3,
            subvolumes: vec![
                AboutSubvolume {
                    line: SubvolumeLine::Live,
                    file_system: [7; 16],
                    subvolume: [8; 16],
                    generation: 9,
                },
                AboutSubvolume {
                    line: SubvolumeLine::Snapshots,
                    file_system: [7; 16],
                    subvolume: [5; 16],
                    generation: u64::MAX,
                },
            ],
            mounts: vec![b"/srv".to_vec(), b"/srv/a b\xff%".to_vec()],
        }
    }

    #[test]
    fn it_is_read_back() {
        let section = about().encode();
        assert_eq!(About::decode(&section).unwrap(), about());
        assert_eq!(about().parent(), Some(&chain_set(1)));
        assert_eq!(about().place(), 1);
        let text = String::from_utf8(section).unwrap();
        assert!(text.contains("job=t%C3%A4gliche%20homes\n"), "{text}");
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over_or_refused() {
        let mut section = about().encode();
        section.extend_from_slice(b"colour=blue\nstored=whim 7\nbtrfs=other x\n");
        assert_eq!(About::decode(&section).unwrap(), about());
        section.extend_from_slice(b"Cipher=rot13\n");
        assert!(matches!(About::decode(&section), Err(IndexError::Later { .. })));
    }

    #[test]
    fn what_lacks_something_is_damaged() {
        let text = String::from_utf8(about().encode()).unwrap();
        for key in ["set", "number", "job", "source"] {
            let lines = text.lines().filter(|line| !line.starts_with(&format!("{key}=")));
            let without = lines.collect::<Vec<_>>().join("\n");
            assert!(About::decode(without.as_bytes()).is_err(), "{key}");
        }
        for bad in ["level=x\n", "set=zz\n", "source=/srv\n", "nothing\n", "job=%zz\n"] {
            assert!(About::decode(format!("{text}{bad}").as_bytes()).is_err(), "{bad}");
        }
    }
}
