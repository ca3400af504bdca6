//! What is mounted where (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number of the file system, `8:1`.
    pub device: String,
    /// The folder of the file system that is mounted, `/` for all of it.
    pub root: PathBuf,
    /// Its mount point.
    pub point: PathBuf,
    /// Kind of the file system.
    pub kind: String,
    /// What is mounted: a device, a share, or a name that the file system chose.
    pub source: PathBuf,
    /// Options of this mount, `rw,relatime`.
    pub options: String,
    /// Options of the file system itself, the same at all its mounts.
    pub file_system_options: String,
}

impl Mount {
    /// The value of an option of the file system, for example `rsize` in `vers=4.2,rsize=1048576`.
    pub fn file_system_option(&self, name: &str) -> Option<&str> {
        let mut options = self.file_system_options.split(',');
        options.find_map(|option| option.split_once('=').filter(|it| it.0 == name)).map(|it| it.1)
    }
}

/// The mounts that this process sees, in the order in which they were made.
///
/// # Errors
/// When the kernel does not show them.
pub fn now() -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// The mounts in the text of a mountinfo. Lines in another format are skipped.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// The mount that holds a path. The path must have no symbolic link and no `..`.
pub fn above<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let over = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // Of two mounts at one place the later covers the earlier, so the later is kept.
    over.max_by_key(|mount| mount.point.components().count())
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let root = unescaped(fields.next()?);
    let point = unescaped(fields.next()?);
    let text = |field: &[u8]| unescaped(field).to_string_lossy().into_owned();
    let options = text(fields.next()?);
    // Any number of optional fields, then a hyphen.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8(fields.next()?.to_vec()).ok()?;
    let source = unescaped(fields.next()?);
    let file_system_options = fields.next().map(text).unwrap_or_default();
    Some(Mount { device, root, point, kind, source, options, file_system_options })
}

/// The kernel writes blanks, tabs, line ends and backslashes as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| *byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(meant) => {
                bytes.push(meant);
                rest = &behind[3..];
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,stripe=32\n\
        30 22 0:5 / /proc rw - proc proc rw\n\
        41 22 0:42 / /mnt/with\\040blank rw shared:9 master:2 - btrfs /dev/mapper/a\\134b rw\n\
        42 22 0:43 / /mnt/with\\040blank rw - tmpfs none rw\n\
        nonsense\n";

    #[test]
    fn the_longest_and_last_mount_point_counts() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[2].source, Path::new("/dev/mapper/a\\b"));
        assert_eq!(mounts[0].options, "rw,relatime");
        assert_eq!(mounts[0].file_system_option("stripe"), Some("32"));
        assert_eq!(mounts[0].file_system_option("rw"), None);
        let kind = |path: &str| above(&mounts, Path::new(path)).map(|mount| mount.kind.as_str());
        assert_eq!(kind("/mnt/with blank/x"), Some("tmpfs"));
        assert_eq!(kind("/mnt/without"), Some("ext4"));
        assert_eq!(kind("/proc/1"), Some("proc"));
        assert_eq!(above(&[], Path::new("/")), None);
    }

    #[test]
    fn this_machine_has_a_root() {
        let mounts = now().unwrap();
        assert!(above(&mounts, Path::new("/")).is_some());
    }

    proptest! {
        #[test]
        fn no_input_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&text);
            prop_assert!(unescaped(&text).as_os_str().len() <= text.len());
        }
    }
}
