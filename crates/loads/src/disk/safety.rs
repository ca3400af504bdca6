//! Decides what fio may write to: never a mounted device, and data only with permission.

use super::DiskError;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fd::OwnedFd;
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

/// What a path was before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It did not exist: fio makes it, and it is removed again.
    Nothing,
    /// It existed.
    Something,
}

/// What may be done, as long as this is kept.
#[derive(Debug)]
pub struct Permit {
    /// What the path was.
    pub found: Found,
    /// A block device that is written to is claimed, so that it cannot be mounted meanwhile.
    _claim: Option<OwnedFd>,
}

impl Permit {
    fn of(found: Found) -> Permit {
        Permit { found, _claim: None }
    }
}

/// Looks whether a run may go on.
///
/// # Errors
/// When it may not, or the path cannot be looked at.
pub fn check(path: &Path, access: Access, permission: Permission) -> Result<Permit, DiskError> {
    let own = || path.to_owned();
    let status = match fs::metadata(path) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match access {
                Access::Writes => Ok(Permit::of(Found::Nothing)),
                Access::Reads => Err(DiskError::Empty { path: own() }),
            };
        }
        Err(source) => return Err(DiskError::Open { path: own(), source }),
    };
    let kind = status.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(DiskError::Kind { path: own() });
    }
    match access {
        Access::Reads if kind.is_file() && status.len() == 0 => {
            return Err(DiskError::Empty { path: own() });
        }
        Access::Reads => return Ok(Permit::of(Found::Something)),
        Access::Writes => {}
    }
    let mut permit = Permit::of(Found::Something);
    if kind.is_block_device() {
        // The kernel refuses an exclusive open of a device that a file system, an array or a volume
        // group has claimed, itself or one of its partitions (open(2), O_EXCL).
        let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
        match base::interruptible::open(path, flags, Mode::empty()) {
            Ok(claim) => permit._claim = Some(claim),
            Err(rustix::io::Errno::BUSY) => return Err(DiskError::InUse { path: own() }),
            Err(error) => return Err(DiskError::Open { path: own(), source: error.into() }),
        }
    }
    let holds_data = kind.is_block_device() || status.len() > 0;
    if holds_data && permission == Permission::KeepData {
        Err(DiskError::HoldsData { path: own() })
    } else {
        Ok(permit)
    }
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
        let check = |path: &Path, access, permission| {
            check(path, access, permission).map(|permit| permit.found)
        };
        use Access::{Reads, Writes};
        use Permission::{Destructive, KeepData};
        assert_eq!(check(&full, Reads, KeepData).unwrap(), Found::Something);
        assert!(matches!(check(&full, Writes, KeepData), Err(DiskError::HoldsData { .. })));
        assert_eq!(check(&full, Writes, Destructive).unwrap(), Found::Something);
        assert_eq!(check(&missing, Writes, KeepData).unwrap(), Found::Nothing);
        assert_eq!(check(&empty, Writes, KeepData).unwrap(), Found::Something);
        for path in [&empty, &missing] {
            assert!(matches!(check(path, Reads, Destructive), Err(DiskError::Empty { .. })));
        }
        let kind = check(directory.path(), Reads, KeepData);
        assert!(matches!(kind, Err(DiskError::Kind { .. })));
    }

    #[test]
    fn a_mounted_device_is_refused_even_when_given_away() {
        testkit::require!(Ext4, LoopDevices);
        let folder = tempfile::tempdir().unwrap();
        let script = "truncate -s 8M disk && mkfs.ext4 -q disk && mkdir at && \
                      losetup --find --show disk >device && mount $(cat device) at";
        let shell = |script: &str| {
            let mut shell = std::process::Command::new("sh");
            let status = shell.args(["-ec", script]).current_dir(folder.path()).status();
            assert!(status.unwrap().success(), "{script}");
        };
        shell(script);
        let device = fs::read_to_string(folder.path().join("device")).unwrap();
        let device = Path::new(device.trim());
        let mounted = check(device, Access::Writes, Permission::Destructive);
        let read = check(device, Access::Reads, Permission::KeepData);
        shell("umount at");
        let claimed = check(device, Access::Writes, Permission::Destructive);
        let mut mount = std::process::Command::new("mount");
        let meanwhile = mount.arg(device).arg(folder.path().join("at")).output().unwrap();
        let ended = claimed.map(|permit| permit.found);
        shell("losetup --detach $(cat device)");
        assert!(matches!(mounted, Err(DiskError::InUse { .. })), "{mounted:?}");
        assert!(read.is_ok(), "{read:?}");
        assert_eq!(ended.unwrap(), Found::Something);
        assert!(!meanwhile.status.success(), "a device that is written to cannot be mounted");
    }
}
