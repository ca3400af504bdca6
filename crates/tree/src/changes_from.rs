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
}

impl ChangesFrom {
    /// What a text means. A subvolume whose name ends with an at sign and digits needs a slash
    /// behind it; a file whose name begins with `btrfs:` needs `./` in front of it.
    pub fn of(text: &Path) -> ChangesFrom {
        let bytes = text.as_os_str().as_bytes();
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
}
