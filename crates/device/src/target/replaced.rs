//! The file that a target replaces, and what the new file keeps of it: owner, mode and ACL.
//!
//! The new file is never more open than the old one: it is made with access for its maker only, and
//! gets its owner, then its ACL and mode, before it gets its name. If an attribute cannot be set,
//! the rights that depend on it are removed. All calls use descriptors: the old file is held open
//! from the start, so that neither a name nor an inode number can refer to another file meanwhile.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FileType, Gid, Mode, OFlags, Stat, Uid, XattrFlags, fchmod, fchown, fstat};
use rustix::io::Errno;

const ACL: &str = "system.posix_acl_access";
/// The largest value that an extended attribute may have (`XATTR_SIZE_MAX` of <linux/limits.h>).
const ACL_BYTES_MAX: usize = 64 << 10;

/// The file that will be replaced, held open.
#[derive(Debug)]
pub(super) struct Replaced {
    file: OwnedFd,
}

/// The access ACL of the old file.
enum Acl {
    None,
    Some(Vec<u8>),
    Unknown,
}

impl Replaced {
    /// The regular file with this name, if there is one. It needs no access rights to the file.
    pub(super) fn find(directory: &OwnedFd, name: &OsStr) -> Option<Replaced> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = base::interruptible::openat(directory, name, flags, Mode::empty()).ok()?;
        let status = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        is_file.then_some(Replaced { file })
    }

    /// Device and inode number.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        fstat(&self.file).ok().map(|status| (status.st_dev, status.st_ino))
    }

    /// Gives the new file owner, mode and ACL of the old one, or the requested mode instead of mode
    /// and ACL. Returns what could not be kept.
    ///
    /// # Errors
    /// Errors of fstat(2).
    pub(super) fn hand_on(
        &self,
        new: &OwnedFd,
        asked: Option<u32>,
    ) -> rustix::io::Result<Option<String>> {
        let old = fstat(&self.file)?;
        let old_mode = old.st_mode & 0o777;
        // Until everything is set, the new owner must have no more rights than in the end.
        let _ = fchmod(new, Mode::from_raw_mode(asked.unwrap_or(old_mode) & 0o600));
        let _ = fchown(new, Some(Uid::from_raw(old.st_uid)), None);
        let _ = fchown(new, None, Some(Gid::from_raw(old.st_gid)));
        let now = fstat(new)?;
        let mut kept = Kept { owner: now.st_uid == old.st_uid, group: now.st_gid == old.st_gid };
        // Removes the ACL that the new file inherited from its folder.
        let _ = rustix::fs::fremovexattr(new, ACL);
        let acl_lost = asked.is_none() && kept.group && !self.hand_on_acl(new);
        kept.group &= !acl_lost;
        let mode = asked.unwrap_or_else(|| kept.narrowed(old_mode));
        if acl_lost {
            let _ = rustix::fs::fremovexattr(new, ACL);
        }
        let set = fchmod(new, Mode::from_raw_mode(mode));
        let now = fstat(new)?;
        Ok(kept.told(&old, &now, acl_lost, set.err()))
    }

    /// False if there is an ACL, or may be one, that the new file does not have.
    fn hand_on_acl(&self, new: &OwnedFd) -> bool {
        match self.acl() {
            Acl::None => true,
            Acl::Some(acl) => rustix::fs::fsetxattr(new, ACL, &acl, XattrFlags::empty()).is_ok(),
            Acl::Unknown => false,
        }
    }

    fn acl(&self) -> Acl {
        // A descriptor without rights on the file gives access to attributes only this way.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let mut acl = vec![0; ACL_BYTES_MAX];
        match rustix::fs::getxattr(path, ACL, &mut acl[..]) {
            Ok(bytes) => {
                acl.truncate(bytes);
                Acl::Some(acl)
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Acl::None,
            Err(_) => Acl::Unknown,
        }
    }
}

/// What the new file has kept of the old one.
#[derive(Clone, Copy)]
struct Kept {
    owner: bool,
    group: bool,
}

impl Kept {
    /// The mode that gives no user more rights than the old file did. A user who was its owner, or
    /// in its group, and no longer is, counts among the others.
    fn narrowed(self, mode: u32) -> u32 {
        let (user, mut group, mut others) = (mode >> 6 & 7, mode >> 3 & 7, mode & 7);
        if !self.group {
            others &= group;
            group = 0;
        }
        if !self.owner {
            group &= user;
            others &= user;
        }
        user << 6 | group << 3 | others
    }

    fn told(self, old: &Stat, now: &Stat, acl_lost: bool, mode: Option<Errno>) -> Option<String> {
        let mut lost = Vec::new();
        if !self.owner {
            lost.push(format!("user {}", old.st_uid));
        }
        if old.st_gid != now.st_gid {
            lost.push(format!("group {}", old.st_gid));
        }
        if acl_lost {
            lost.push("the ACL".to_owned());
        }
        if mode.is_some() {
            lost.push("the mode".to_owned());
        }
        let mode = now.st_mode & 0o7777;
        (!lost.is_empty()).then(|| {
            format!(
                "cannot keep {} of the replaced file: the new file has user {}, group {} and mode \
                 {mode:04o}",
                lost.join(" and "),
                now.st_uid,
                now.st_gid
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mode_gives_anybody_more_than_the_old_one() {
        let rights = |mode: u32, class: u32| mode >> (6 - 3 * class) & 7;
        let class = |owner: bool, group: bool| match (owner, group) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        // All users except the new owner, who made the file.
        for case in 0..32u32 {
            let is = |bit: u32| case >> bit & 1 == 1;
            let (was_owner, in_old_group, in_new_group) = (is(0), is(1), is(2));
            let kept = Kept { owner: is(3), group: is(4) };
            let before = class(was_owner, in_old_group);
            let group_now = if kept.group { in_old_group } else { in_new_group };
            let after = class(kept.owner && was_owner, group_now);
            for mode in 0..0o1000 {
                let more = rights(kept.narrowed(mode), after) & !rights(mode, before);
                assert_eq!(more, 0, "case {case:05b}, mode {mode:04o}");
            }
        }
        assert_eq!(Kept { owner: true, group: true }.narrowed(0o640), 0o640);
        assert_eq!(Kept { owner: false, group: false }.narrowed(0o664), 0o604);
    }
}
