//! VxFS does its own read-ahead and ignores the setting of the devices below. It keeps
//! `read_nstream` requests of `read_pref_io` bytes in flight for a reader (vxtunefs(1M)).

use std::path::{Path, PathBuf};

use machine::Machine;
use machine::mounts;

/// Upper bound of both values: `vxtunefs` accepts no larger size or number of requests.
const BYTES_MAX: u64 = 1 << 40;

/// How a VxFS reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VxfsReadAhead {
    /// Bytes of a request.
    pub read_pref_io: u64,
    /// Requests in flight.
    pub read_nstream: u64,
}

impl VxfsReadAhead {
    /// Bytes in flight for one reader.
    pub fn window_bytes(self) -> u64 {
        self.read_pref_io.saturating_mul(self.read_nstream)
    }

    /// The command that keeps at least this many bytes in flight, with the present request size.
    pub fn command(self, window_bytes: u64, mount_point: &str) -> String {
        let streams = window_bytes.div_ceil(self.read_pref_io).max(1);
        let place = mount_point.replace('\'', "'\\''");
        format!("vxtunefs -o read_nstream={streams} '{place}'")
    }

    /// The values that `vxtunefs` reports for a file system, if it is installed and permitted.
    pub(super) fn look(machine: &Machine, mount_point: &str) -> Option<VxfsReadAhead> {
        parse(&machine.answer("vxtunefs", &[mount_point])?)
    }

    /// The VxFS of this machine below a path without links, and its read-ahead, if known.
    pub fn below(path: &Path) -> Option<(PathBuf, Option<VxfsReadAhead>)> {
        let mounts = mounts::now().ok()?;
        let mount = mounts::above(&mounts, path).filter(|mount| mount.kind == super::VXFS)?;
        let told = VxfsReadAhead::look(&Machine::this(), &mount.point.to_string_lossy());
        Some((mount.point.clone(), told))
    }
}

/// Both numbers, from lines such as `read_pref_io = 65536`.
fn parse(text: &str) -> Option<VxfsReadAhead> {
    let value = |name: &str| {
        let of = |line: &str| {
            let (own, value) = line.split_once('=')?;
            let digits = value.trim().split(|it: char| !it.is_ascii_digit()).next()?;
            (own.trim() == name).then(|| digits.parse().ok())?
        };
        text.lines().find_map(of).filter(|value| (1..=BYTES_MAX).contains(value))
    };
    let (read_pref_io, read_nstream) = (value("read_pref_io")?, value("read_nstream")?);
    Some(VxfsReadAhead { read_pref_io, read_nstream })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_manual_shows() {
        let text = "Filesystem i/o parameters for /mnt1\nread_pref_io = 65536\nread_nstream = 4\n\
                    read_unit_io = 65536\nwrite_pref_io = 131072\nwrite_nstream = 2\n";
        let told = parse(text).unwrap();
        assert_eq!(told, VxfsReadAhead { read_pref_io: 65536, read_nstream: 4 });
        assert_eq!(told.window_bytes(), 256 << 10);
        assert_eq!(told.command(1 << 20, "/a b"), "vxtunefs -o read_nstream=16 '/a b'");
        assert_eq!(told.command(1, "/it's"), "vxtunefs -o read_nstream=1 '/it'\\''s'");
    }

    #[test]
    fn half_of_it_is_nothing() {
        for text in [
            "",
            "read_pref_io = 65536\n",
            "read_pref_io = 0\nread_nstream = 1\n",
            "read_pref_io = -4\nread_nstream = 1\n",
            "read_pref_io = 99999999999999999999\nread_nstream = 1\n",
            "UX:vxfs vxtunefs: ERROR: V-3-22605: /mnt1: not a VxFS mount point\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in "(read_(pref_io|nstream) ?=? ?[0-9]{0,22}\n?){0,4}") {
            if let Some(told) = parse(&text) {
                prop_assert!(told.window_bytes() > 0);
                told.command(u64::MAX, "/");
            }
        }
    }
}
