//! What fio may be let loose on: never on a mounted device, never on data without being told.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Whether data may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Nothing that exists may be changed.
    KeepData,
    /// The user has given the path away.
    Destructive,
}

/// What a run does to its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Reads,
    /// Writes, or discards.
    Writes,
}

/// Why a path is left alone.
#[derive(Debug, thiserror::Error)]
pub enum SafetyError {
    /// The path cannot be looked at.
    #[error("open {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something uses the device: a file system, an array, a volume group, swap.
    #[error("{} is mounted or in use", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// There are data in it.
    #[error("{} holds data, which the run would destroy", path.display())]
    HoldsData {
        /// The path.
        path: PathBuf,
    },
    /// Neither a file nor a block device.
    #[error("{} is neither a file nor a block device", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// There is nothing to read.
    #[error("{} is empty or does not exist: there is nothing to read", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
}

/// What a path was before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It did not exist: fio makes it, and it is removed again.
    Nothing,
    /// It existed.
    Something,
}

/// Looks whether a run may go on.
pub fn check(path: &Path, access: Access, permission: Permission) -> Result<Found, SafetyError> {
    let own = || path.to_owned();
    let status = match fs::metadata(path) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match access {
                Access::Writes => Ok(Found::Nothing),
                Access::Reads => Err(SafetyError::Empty { path: own() }),
            };
        }
        Err(source) => return Err(SafetyError::Open { path: own(), source }),
    };
    let kind = status.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(SafetyError::Kind { path: own() });
    }
    match access {
        Access::Reads if kind.is_file() && status.len() == 0 => {
            return Err(SafetyError::Empty { path: own() });
        }
        Access::Reads => return Ok(Found::Something),
        Access::Writes => {}
    }
    if kind.is_block_device() {
        // The kernel refuses an exclusive open of a device that a file system, an array or a volume
        // group has claimed, itself or one of its partitions (open(2), O_EXCL).
        let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(_) => {}
            Err(rustix::io::Errno::BUSY) => return Err(SafetyError::InUse { path: own() }),
            Err(error) => return Err(SafetyError::Open { path: own(), source: error.into() }),
        }
    }
    let holds_data = kind.is_block_device() || status.len() > 0;
    match holds_data && permission == Permission::KeepData {
        true => Err(SafetyError::HoldsData { path: own() }),
        false => Ok(Found::Something),
    }
}

/// A user's own job, as far as it has to be known before it is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFile {
    /// Files that it names.
    pub files: Vec<String>,
    /// Whether a part of it writes or discards.
    pub writes: bool,
    /// Lines that would reach further than can be seen.
    pub opaque: Vec<String>,
}

/// Options that bring other files or programs in.
const OPAQUE: &[&str] =
    &["include", "directory", "exec_prerun", "exec_postrun", "filename_format", "read_iolog"];

/// Reads a job file of fio (fio(1), "job file format").
pub fn read_job(text: &str) -> JobFile {
    let mut job = JobFile::default();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let (name, value) = (name.trim(), value.trim());
        match name {
            "filename" => job.files.extend(value.split(':').map(str::to_owned)),
            "rw" | "readwrite" => {
                let kind = value.split([':', ',']).next().unwrap_or(value);
                job.writes |= !matches!(kind, "read" | "randread");
            }
            _ if OPAQUE.contains(&name) || name.starts_with("include ") => {
                job.opaque.push(line.to_owned());
            }
            _ => {}
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_safe_unless_given_away() {
        let directory = tempfile::tempdir().unwrap();
        let full = directory.path().join("full");
        let empty = directory.path().join("empty");
        let missing = directory.path().join("missing");
        fs::write(&full, "x").unwrap();
        fs::write(&empty, "").unwrap();
        let check = |path: &Path, access, permission| check(path, access, permission);
        use Access::{Reads, Writes};
        use Permission::{Destructive, KeepData};
        assert_eq!(check(&full, Reads, KeepData).unwrap(), Found::Something);
        assert!(matches!(check(&full, Writes, KeepData), Err(SafetyError::HoldsData { .. })));
        assert_eq!(check(&full, Writes, Destructive).unwrap(), Found::Something);
        assert_eq!(check(&missing, Writes, KeepData).unwrap(), Found::Nothing);
        assert_eq!(check(&empty, Writes, KeepData).unwrap(), Found::Something);
        for path in [&empty, &missing] {
            assert!(matches!(check(path, Reads, Destructive), Err(SafetyError::Empty { .. })));
        }
        let kind = check(directory.path(), Reads, KeepData);
        assert!(matches!(kind, Err(SafetyError::Kind { .. })));
    }

    #[test]
    fn a_mounted_device_is_refused_even_when_given_away() {
        // The device below this tree, where there is one and this test may open it.
        let root = fs::read_to_string("/proc/self/mounts").unwrap();
        let device = root.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (device, place) = (words.next()?, words.next()?);
            (place == "/" && device.starts_with("/dev/")).then(|| PathBuf::from(device))
        });
        let Some(device) = device.filter(|device| device.exists()) else { return };
        let found = check(&device, Access::Writes, Permission::Destructive);
        assert!(
            matches!(found, Err(SafetyError::InUse { .. } | SafetyError::Open { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn a_job_says_what_it_would_do() {
        let text = "# x\n[global]\nioengine=libaio\nfilename = /dev/sdx\n[a]\nrw=randread\n\
                    [b]\nrw=randrw:8\n";
        let job = read_job(text);
        assert_eq!((job.files, job.writes), (vec!["/dev/sdx".to_owned()], true));
        assert!(!read_job("[a]\nrw=read\n").writes);
        assert!(!read_job("[a]\n").writes, "fio reads unless it is told otherwise");
        assert!(read_job("[a]\nreadwrite=trim\n").writes);
        assert_eq!(read_job("include x.fio\n[a]\ndirectory=/tmp").opaque.len(), 2);
    }
}
