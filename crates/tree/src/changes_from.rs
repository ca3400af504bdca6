//! Where a list of changes comes from, as it is typed: a file, or a file system that knows.
//!
//! Not here: reading it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where a list of changes comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    /// A file with paths; `-` is standard input.
    List(PathBuf),
    /// `btrfs:SUBVOLUME`, since the begin of the set before, or `btrfs:SUBVOLUME@GENERATION`.
    Btrfs {
        /// The root of the subvolume.
        subvolume: PathBuf,
        generation: Option<u64>,
    },
    /// `zfs:POOL/FS@FROM..@UNTIL`, or `zfs:POOL/FS@FROM`, until now.
    Zfs(ZfsSnapshots),
    /// It begins with `zfs:`, and names no snapshot.
    NoSnapshot,
}

/// Two moments of a ZFS file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZfsSnapshots {
    /// `POOL/FS`.
    pub data_set: String,
    /// The earlier snapshot, by what is behind the at sign.
    pub from: String,
    /// The later one; `None`: now.
    pub until: Option<String>,
}

impl ChangesFrom {
    /// What a text means. A subvolume whose name ends with an at sign and digits needs a slash
    /// behind it; a file whose name begins with `btrfs:` or `zfs:` needs `./` in front of it.
    pub fn of(text: &Path) -> ChangesFrom {
        let bytes = text.as_os_str().as_bytes();
        if let Some(rest) = bytes.strip_prefix(b"zfs:") {
            let text = std::str::from_utf8(rest).ok();
            let snapshots = text.and_then(ZfsSnapshots::of);
            return snapshots.map_or(ChangesFrom::NoSnapshot, ChangesFrom::Zfs);
        }
        let Some(rest) = bytes.strip_prefix(b"btrfs:") else {
            return ChangesFrom::List(text.to_owned());
        };
        let at = rest.iter().rposition(|byte| *byte == b'@');
        let generation = at.and_then(|at| {
            let digits = std::str::from_utf8(&rest[at + 1..]).ok()?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((at, digits.parse().ok().filter(|_| is_number)?))
        });
        let (end, generation) = match generation {
            Some((at, number)) => (at, Some(number)),
            None => (rest.len(), None),
        };
        let subvolume = PathBuf::from(OsStr::from_bytes(&rest[..end]));
        ChangesFrom::Btrfs { subvolume, generation }
    }
}

impl ZfsSnapshots {
    fn of(text: &str) -> Option<ZfsSnapshots> {
        let (data_set, snapshots) = text.split_once('@')?;
        let (from, until) = match snapshots.split_once("..@") {
            Some((from, until)) => (from, Some(until.to_owned())),
            None => (snapshots, None),
        };
        // Neither is an option of `zfs diff`, nor more than one name (zfs(8), names of components).
        let is_name = |name: &str, more: &[char]| {
            let is_letter = |letter: char| {
                letter.is_ascii_alphanumeric() || more.contains(&letter) || "-_.: ".contains(letter)
            };
            !name.is_empty() && !name.starts_with('-') && name.chars().all(is_letter)
        };
        let are_names = is_name(data_set, &['/'])
            && is_name(from, &[])
            && until.as_ref().is_none_or(|until| is_name(until, &[]));
        let (data_set, from) = (data_set.to_owned(), from.to_owned());
        are_names.then_some(ZfsSnapshots { data_set, from, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_file_or_a_subvolume() {
        let of = |text: &str| ChangesFrom::of(Path::new(text));
        for text in ["changed", "-", "./btrfs:/x", "btrfs", "/run/btrfs:x"] {
            assert_eq!(of(text), ChangesFrom::List(text.into()));
        }
        for (text, path, generation) in [
            ("btrfs:/data", "/data", None),
            ("btrfs:/data@17", "/data", Some(17)),
            ("btrfs:/data@17/", "/data@17/", None),
            ("btrfs:/@home", "/@home", None),
            ("btrfs:/@", "/@", None),
            ("btrfs:/@@5", "/@", Some(5)),
            ("btrfs:/data@+5", "/data@+5", None),
            ("btrfs:/data@99999999999999999999", "/data@99999999999999999999", None),
            ("btrfs:.", ".", None),
            ("btrfs:", "", None),
        ] {
            let subvolume = PathBuf::from(path);
            assert_eq!(of(text), ChangesFrom::Btrfs { subvolume, generation }, "{text}");
        }
    }
    #[test]
    fn a_text_is_a_snapshot_or_two() {
        let of = |text: &str| ChangesFrom::of(Path::new(text));
        for (text, data_set, from, until) in [
            ("zfs:tank/home@monday..@tuesday", "tank/home", "monday", Some("tuesday")),
            ("zfs:tank@2026-11-27_00:00", "tank", "2026-11-27_00:00", None),
            ("zfs:tank/a b@x", "tank/a b", "x", None),
            ("zfs:tank@x..y", "tank", "x..y", None),
        ] {
            let (data_set, from) = (data_set.to_owned(), from.to_owned());
            let snapshots = ZfsSnapshots { data_set, from, until: until.map(str::to_owned) };
            assert_eq!(of(text), ChangesFrom::Zfs(snapshots), "{text}");
        }
        for text in [
            "zfs:",
            "zfs:tank",
            "zfs:tank@",
            "zfs:@x",
            "zfs:tank@x..@",
            "zfs:-F@x",
            "zfs:tank@x..tank@y",
            "zfs:tank@x@y",
            "zfs:tank@x/y",
        ] {
            assert_eq!(of(text), ChangesFrom::NoSnapshot, "{text}");
        }
    }
}
