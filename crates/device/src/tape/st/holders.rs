//! Finds the process that has a tape drive open, in `/proc`, which shows other users' processes to
//! root only.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::tape::drive::{Holder, TAPE_MAJOR};

/// What the nodes of one drive have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A drive of the tape driver, by its number.
    Tape(u32),
    /// Another character device, such as the generic device of a drive.
    Device(u64),
    File(u64, u64),
}

impl Identity {
    /// The identity of the device that a path leads to.
    pub fn of(path: &Path) -> Option<Identity> {
        let status = rustix::fs::stat(path).ok()?;
        let device = status.st_rdev;
        Some(match FileType::from_raw_mode(status.st_mode) {
            FileType::CharacterDevice if rustix::fs::major(device) == TAPE_MAJOR => {
                Identity::Tape(drive_number(rustix::fs::minor(device)))
            }
            FileType::CharacterDevice => Identity::Device(device),
            _ => Identity::File(status.st_dev, status.st_ino),
        })
    }
}

/// Number of the drive that a minor number belongs to: bits 0 to 4 and those from 8 on. Bits 5 and
/// 6 are the mode, bit 7 is set when closing does not rewind (`drivers/scsi/st.h`).
pub fn drive_number(minor: u32) -> u32 {
    (minor & !0xff) >> 3 | minor & 0x1f
}

/// The first process, other than this one, that has one of these open.
pub fn find(paths: &[PathBuf]) -> Option<Holder> {
    let wanted: Vec<Wanted> = paths.iter().filter_map(|path| Wanted::of(path)).collect();
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?;
    let mut numbers = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| *process != own);
    let process = numbers.find(|process| has_open(*process, &wanted))?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(Holder { process, name: name.trim().to_owned() })
}

/// What is looked for.
struct Wanted {
    identity: Identity,
    path: PathBuf,
}

impl Wanted {
    fn of(path: &Path) -> Option<Wanted> {
        let path = fs::canonicalize(path).ok()?;
        Some(Wanted { identity: Identity::of(&path)?, path })
    }
}

fn has_open(process: u32, wanted: &[Wanted]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.filter_map(Result::ok).any(|entry| {
        // Reads the link first: stat of a file on a dead network mount would wait.
        let link = fs::read_link(entry.path()).unwrap_or_default();
        let may_be = link.starts_with("/dev") || wanted.iter().any(|wanted| wanted.path == link);
        may_be
            && Identity::of(&entry.path())
                .is_some_and(|found| wanted.iter().any(|wanted| wanted.identity == found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_of_a_drive_have_its_number() {
        for minor in [0, 32, 64, 96, 128, 160, 224] {
            assert_eq!(drive_number(minor), 0);
            assert_eq!(drive_number(minor + 31), 31);
            assert_eq!(drive_number(minor + 256), 32);
        }
    }

    #[test]
    fn another_process_is_found_by_what_it_has_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paths = [file.path().to_owned()];
        assert_eq!(find(&paths), None, "only this process has it");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(fs::File::open(file.path()).unwrap())
            .spawn()
            .unwrap();
        // Between fork and exec the child still has this program's name.
        let found = find(&paths).map(|holder| holder.process);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some(child.id()));
        assert_eq!(find(&paths), None);
    }
}
