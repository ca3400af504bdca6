//! Owner, mode, attributes, ACLs and times of a restored object, in the order that keeps them.
//!
//! The order matters. chown(2) clears set-user-ID bits and `security.capability`, so the owner
//! comes first. Attributes come before the mode, because `user.*` needs a writable object. The
//! access ACL comes after the mode, because the group bits are the ACL's mask. Times come last,
//! because every other step is a change.
//!
//! All calls use a descriptor of the object, and decisions that depend on its owner use a stat of
//! that descriptor. This module uses no names.
//!
//! Set-user-ID, set-group-ID, `security.*` (including capabilities) and `trusted.*` are *privilege*
//! and follow one rule, see [`Privileges`].

use std::io;

use archive::member::{Member, MemberKind, Timestamp};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::attributes::{ACL_ACCESS, ACL_DEFAULT, Handle};
use crate::capture::Attributes;
use crate::folder::{Inheritance, kind_of};
use crate::object::Object;

/// The owner of restored objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Whoever runs the restore.
    Ignore,
    /// The users and groups of this machine with the archived names. Without a name, or if this
    /// machine does not know it, the archived numbers.
    Names,
    /// The archived numbers.
    Numbers,
}

/// When privilege is restored: set-user-ID and set-group-ID bits, and attributes `security.*`
/// (including capabilities) and `trusted.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// It is restored if owners and permissions are restored as archived and the object really has
    /// the archived owner (for set-group-ID the archived group, for attributes both).
    #[default]
    WithOwner,
    /// It is restored, whoever the owner is. Set-ID bits still need [`Modes::Exact`].
    Keep,
    /// It never comes back.
    Drop,
}

/// Which permissions the restored objects get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// The archived ones. For set-user-ID and set-group-ID see [`Privileges`].
    Exact,
    /// The archived ones minus the umask, without set-user-ID, set-group-ID and sticky.
    Umask,
}

/// A part of a restored object's metadata that differs from the archive.
#[derive(Debug, thiserror::Error)]
#[error("cannot restore {what}: {}", String::from_utf8_lossy(path))]
pub struct MetadataProblem {
    /// Path in the archive.
    pub path: Vec<u8>,
    /// The part that could not be restored.
    pub what: MetadataPart,
    pub source: io::Error,
}

/// A part of an object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataPart {
    /// Owner and group.
    Owner,
    /// Permissions.
    Mode,
    /// The extended attribute of this name.
    Attribute(Vec<u8>),
    AccessAcl,
    DefaultAcl,
    /// Time of modification.
    Times,
    /// The directory could not be opened again at the end, or was replaced; it lacks all of its
    /// metadata.
    Directory,
    /// The directory existed before, in a folder that others can change: it keeps its owner, and
    /// its permissions were not widened.
    FoundDirectory,
}

impl std::fmt::Display for MetadataPart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MetadataPart::Owner => formatter.write_str("owner"),
            MetadataPart::Mode => formatter.write_str("permissions"),
            MetadataPart::Attribute(name) => {
                write!(formatter, "attribute {}", String::from_utf8_lossy(name))
            }
            MetadataPart::AccessAcl => formatter.write_str("access ACL"),
            MetadataPart::DefaultAcl => formatter.write_str("default ACL"),
            MetadataPart::Times => formatter.write_str("times"),
            MetadataPart::Directory => formatter.write_str("metadata of directory"),
            MetadataPart::FoundDirectory => formatter.write_str("metadata of existing directory"),
        }
    }
}

/// Owner and group as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The archived owner and group; `None` if the number is not valid for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedOwner {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

/// How one restore treats metadata.
#[derive(Debug)]
pub(crate) struct MetadataPolicy {
    pub(crate) owners: Owners,
    pub(crate) modes: Modes,
    pub(crate) privileges: Privileges,
    pub(crate) attributes: Attributes,
    pub(crate) umask: u32,
}

/// The metadata for an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    /// As archived, even if the owner is not restored.
    pub(crate) archived_owner: ArchivedOwner,
    pub(crate) mode: u32,
    /// Whether the mode has already lost set-ID bits.
    pub(crate) lost_bits: bool,
    pub(crate) modified: Timestamp,
    /// Present when there is any.
    pub(crate) extra: Option<Box<Extra>>,
}

/// Metadata that few objects have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    /// Without the attributes that are privilege.
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// `security.*` and `trusted.*`.
    pub(crate) privileged: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) acl_access: Option<Vec<u8>>,
    pub(crate) acl_default: Option<Vec<u8>>,
}

/// Set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

impl MetadataPolicy {
    pub(crate) fn metadata_of(&self, member: &Member, accounts: &Accounts) -> Metadata {
        let by_name = self.owners == Owners::Names;
        let uid = by_name.then(|| accounts.user_id(&member.user)).flatten();
        let gid = by_name.then(|| accounts.group_id(&member.group)).flatten();
        let mode = match self.modes {
            Modes::Exact => member.mode & 0o7777,
            Modes::Umask => member.mode & 0o777 & !self.umask,
        };
        let is_directory = member.kind == MemberKind::Directory;
        Metadata {
            archived_owner: ArchivedOwner {
                uid: uid.or_else(|| number(member.uid)),
                gid: gid.or_else(|| number(member.gid)),
            },
            mode,
            lost_bits: !is_directory && member.mode & !mode & SET_ID != 0,
            modified: member.modified,
            extra: self.extra_of(member),
        }
    }

    fn extra_of(&self, member: &Member) -> Option<Box<Extra>> {
        let has_extra = !member.xattrs.is_empty()
            || member.acl_access.is_some()
            || member.acl_default.is_some();
        let is_link = matches!(member.kind, MemberKind::HardLink { .. });
        if !has_extra || is_link || self.attributes == Attributes::Ignore {
            return None;
        }
        let (privileged, xattrs) =
            member.xattrs.iter().cloned().partition(|(name, _)| is_privilege(name));
        Some(Box::new(Extra {
            xattrs,
            privileged,
            acl_access: member.acl_access.clone(),
            acl_default: member.acl_default.clone(),
        }))
    }

    /// Permissions to create a file with, chosen so that most files need no chmod afterwards.
    pub(crate) fn creation_mode(&self, metadata: &Metadata) -> u32 {
        let mode = metadata.mode & 0o777;
        // `user.*` attributes can be set only on a writable file, whatever the descriptor.
        if metadata.extra.is_some() { mode | 0o200 } else { mode }
    }

    /// Sets an object's metadata. `stat` is the stat of its descriptor.
    pub(crate) fn apply(
        &self,
        handle: Handle<'_>,
        metadata: &Metadata,
        stat: &Stat,
        inheritance: Inheritance,
        problems: &mut Problems<'_>,
    ) {
        let object = Object::new(handle);
        let given = Owner { uid: stat.st_uid, gid: stat.st_gid };
        let is_link = kind_of(stat) == FileType::Symlink;
        let owner = self.apply_owner(&object, metadata, given, problems);
        if let Some(extra) = &metadata.extra {
            set_attributes(&object, &extra.xattrs, problems);
        }
        let inherits_acl = inheritance == Inheritance::Acl;
        if inherits_acl && !is_link && self.attributes == Attributes::Read {
            object.remove_attribute(ACL_ACCESS);
            object.remove_attribute(ACL_DEFAULT);
        }
        let kind = kind_of(stat);
        let mode = self.apply_privileges(&object, metadata, owner, kind, problems);
        // chown(2) clears the special bits.
        let lost_bits = owner != given && mode & SET_ID != 0;
        if !is_link && (inherits_acl || stat.st_mode & 0o7777 != mode || lost_bits) {
            problems.note(object.set_mode(mode), || MetadataPart::Mode);
        }
        if let Some(extra) = metadata.extra.as_ref().filter(|_| !is_link) {
            if let Some(acl) = &extra.acl_access {
                let result = object.set_attribute(ACL_ACCESS, acl);
                problems.note(result, || MetadataPart::AccessAcl);
            }
            if let Some(acl) = &extra.acl_default {
                let result = object.set_attribute(ACL_DEFAULT, acl);
                problems.note(result, || MetadataPart::DefaultAcl);
            }
        }
        apply_times(&object, metadata.modified, problems);
    }

    /// Sets what is not privilege and may be set early: all attributes except ACLs, which new
    /// objects in a directory would inherit.
    pub(crate) fn apply_early(
        &self,
        handle: Handle<'_>,
        metadata: &mut Metadata,
        problems: &mut Problems<'_>,
    ) {
        if let Some(extra) = &mut metadata.extra {
            set_attributes(&Object::new(handle), &std::mem::take(&mut extra.xattrs), problems);
            metadata.extra.take_if(|extra| **extra == Extra::default());
        }
    }

    /// The owner after setting it, or after that failed.
    fn apply_owner(
        &self,
        object: &Object<'_>,
        metadata: &Metadata,
        given: Owner,
        problems: &mut Problems<'_>,
    ) -> Owner {
        if self.owners == Owners::Ignore {
            return given;
        }
        let archived = metadata.archived_owner;
        if archived.uid.is_none() || archived.gid.is_none() {
            let text = "user and group IDs end at 4294967294; the archived one is larger";
            problems.tell(MetadataPart::Owner, io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let uid = archived.uid.unwrap_or(given.uid);
        let wanted = Owner { uid, gid: archived.gid.unwrap_or(given.gid) };
        if wanted == given {
            return given;
        }
        let result = object.set_owner(wanted.uid, wanted.gid);
        let owner = if result.is_ok() { wanted } else { given };
        problems.note(result, || MetadataPart::Owner);
        owner
    }

    /// Sets the privileged attributes, if allowed, and returns the mode with its allowed privileged
    /// bits.
    fn apply_privileges(
        &self,
        object: &Object<'_>,
        metadata: &Metadata,
        owner: Owner,
        kind: FileType,
        problems: &mut Problems<'_>,
    ) -> u32 {
        let attributes = metadata.extra.as_ref().map_or(&[][..], |extra| &extra.privileged);
        problems.left_off |= metadata.lost_bits;
        if metadata.mode & SET_ID == 0 && attributes.is_empty() {
            return metadata.mode;
        }
        let archived = metadata.archived_owner;
        let [by_user, by_group] = self.may_have_privilege(object, archived);
        let exact = self.modes == Modes::Exact || self.privileges == Privileges::Keep;
        if by_user && by_group && exact {
            set_attributes(object, attributes, problems);
        } else {
            problems.left_off |= !attributes.is_empty();
        }
        if kind == FileType::Directory {
            // A set-ID bit of a directory decides the owner of new files in it; it gives no rights.
            let (uid, gid) = (Some(owner.uid), Some(owner.gid));
            return without(metadata.mode, [uid == archived.uid, gid == archived.gid]);
        }
        let mode = without(metadata.mode, [by_user, by_group]);
        problems.left_off |= mode != metadata.mode;
        mode
    }

    /// Whether the privilege of the archived user, and that of the archived group, may be restored.
    fn may_have_privilege(&self, object: &Object<'_>, archived: ArchivedOwner) -> [bool; 2] {
        match self.privileges {
            Privileges::Keep => [true, true],
            Privileges::WithOwner if self.owners != Owners::Ignore => {
                // Some file systems accept chown(2) without effect.
                let stat = object.stat();
                let has = |of: fn(&Stat) -> u32, archived: Option<u32>| {
                    archived.is_some() && stat.ok().map(|stat| of(&stat)) == archived
                };
                [has(|stat| stat.st_uid, archived.uid), has(|stat| stat.st_gid, archived.gid)]
            }
            Privileges::WithOwner | Privileges::Drop => [false, false],
        }
    }
}

/// A mode without the set-ID bit of the user or the group that is not allowed.
fn without(mode: u32, [user, group]: [bool; 2]) -> u32 {
    mode & !(if user { 0 } else { 0o4000 }) & !(if group { 0 } else { 0o2000 })
}

/// Whether an attribute gives rights or controls the kernel.
fn is_privilege(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}

/// A valid user or group number: Linux uses 32 bits, and the last value means "leave it" to
/// chown(2).
fn number(archived: u64) -> Option<u32> {
    u32::try_from(archived).ok().filter(|number| *number != u32::MAX)
}

fn set_attributes(
    object: &Object<'_>,
    attributes: &[(Vec<u8>, Vec<u8>)],
    problems: &mut Problems<'_>,
) {
    for (name, value) in attributes {
        let result = object.set_attribute(name, value);
        problems.note(result, || MetadataPart::Attribute(name.clone()));
    }
}

/// Beyond these (1980 and 2038, in seconds) some file systems cannot store a time, and the kernel
/// silently uses the nearest one that they can.
const HELD_BY_ALL: std::ops::Range<i64> = 315_619_200..(1 << 31) - 1;
/// Resolution of times on FAT.
const COARSEST_SECONDS: u64 = 2;

fn apply_times(object: &Object<'_>, modified: Timestamp, problems: &mut Problems<'_>) {
    if let Err(error) = object.set_times(modified) {
        return problems.note(Err(error), || MetadataPart::Times);
    }
    if HELD_BY_ALL.contains(&modified.seconds) {
        return;
    }
    let Ok(stat) = object.stat() else { return };
    #[expect(clippy::useless_conversion, reason = "its width depends on the machine")]
    let held = i64::try_from(stat.st_mtime).unwrap_or(i64::MAX);
    if held.abs_diff(modified.seconds) > COARSEST_SECONDS {
        let text = format!(
            "the file system cannot store {} s since 1970, it stored {held} s",
            modified.seconds
        );
        problems.tell(MetadataPart::Times, io::Error::other(text));
    }
}

/// Collects the problems of one object. Allocates nothing as long as there are none.
pub(crate) struct Problems<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) found: Vec<MetadataProblem>,
    /// Privilege was left off.
    pub(crate) left_off: bool,
}

impl<'a> Problems<'a> {
    pub(crate) fn of(path: &'a [u8]) -> Problems<'a> {
        Problems { path, found: Vec::new(), left_off: false }
    }

    pub(crate) fn note(&mut self, result: Result<(), Errno>, what: impl FnOnce() -> MetadataPart) {
        if let Err(error) = result {
            self.tell(what(), error.into());
        }
    }

    pub(crate) fn tell(&mut self, what: MetadataPart, source: io::Error) {
        self.found.push(MetadataProblem { path: self.path.to_vec(), what, source });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While its content is written, other users have no more rights to a file than in the end.
    #[test]
    fn a_file_is_made_with_no_more_than_its_permissions() {
        let policy = MetadataPolicy {
            owners: Owners::Ignore,
            modes: Modes::Exact,
            privileges: Privileges::WithOwner,
            attributes: Attributes::Read,
            umask: 0,
        };
        for (mode, has_extra, made) in
            [(0o600, false, 0o600), (0o4755, false, 0o755), (0o444, true, 0o644), (0, false, 0)]
        {
            let metadata = Metadata {
                archived_owner: ArchivedOwner { uid: None, gid: None },
                mode,
                lost_bits: false,
                modified: Timestamp::default(),
                extra: has_extra.then(Box::default),
            };
            assert_eq!(policy.creation_mode(&metadata), made, "{mode:o}");
        }
    }
}
