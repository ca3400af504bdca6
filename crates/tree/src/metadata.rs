//! Owner, mode, attributes, ACLs and times of a restored object, in the order that keeps them.
//!
//! The order is what matters. chown(2) takes set-user-ID bits and `security.capability` away, so
//! owner comes first; attributes come before the mode, because `user.*` needs a writable object;
//! the access ACL comes after the mode, whose group bits are the ACL's mask; times come last,
//! because everything else is a change.
//!
//! Everything goes to a descriptor of the very object, and what follows from its owner is decided
//! by a look at that descriptor: nothing here knows a name.
//!
//! Set-user-ID, set-group-ID, `security.*` (capabilities among them) and `trusted.*` are
//! *privilege* and follow one rule, see [`Privileges`].

use std::io;

use archive::member::{Member, MemberKind, Timestamp};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::attributes::{ACL_ACCESS, ACL_DEFAULT, Handle};
use crate::capture::Attributes;
use crate::folder::{Inheritance, kind_of};
use crate::object::Object;

/// Whose the restored objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Whoever runs the restore.
    Ignore,
    /// The users and groups of this machine with the archived names; without a name, or where this
    /// machine does not know it, the archived numbers.
    Names,
    /// The archived numbers.
    Numbers,
}

/// What is done with privilege: set-user-ID and set-group-ID bits, and attributes `security.*`
/// (capabilities among them) and `trusted.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// It comes back where owners and permissions are restored as archived and the object has, by
    /// a look at it, the archived owner (for set-group-ID the archived group, for attributes both).
    #[default]
    WithOwner,
    /// It comes back, whoever the owner is. Set-ID bits need [`Modes::Exact`] all the same.
    Keep,
    /// It never comes back.
    Drop,
}

/// Which permissions the restored objects get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// The archived ones. Set-user-ID and set-group-ID are [`Privileges`].
    Exact,
    /// What the umask leaves of the archived ones, without set-user-ID, set-group-ID and sticky.
    Umask,
}

/// One thing about a restored object that is not as archived.
#[derive(Debug, thiserror::Error)]
#[error("cannot restore {what}: {}", String::from_utf8_lossy(path))]
pub struct MetadataProblem {
    /// Path in the archive.
    pub path: Vec<u8>,
    /// What it is.
    pub what: MetadataPart,
    /// What the kernel said.
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
    /// The access ACL.
    AccessAcl,
    /// The default ACL.
    DefaultAcl,
    /// Time of modification.
    Times,
    /// The directory could not be opened again at the end, or is another one than was made; it
    /// lacks all of its metadata.
    Directory,
    /// The directory was there before, in a folder that others can change: it keeps its owner, and
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

/// The archived owner and group, each absent where its number is none that a file can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedOwner {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

/// What is done with metadata in one restore.
#[derive(Debug)]
pub(crate) struct MetadataPolicy {
    pub(crate) owners: Owners,
    pub(crate) modes: Modes,
    pub(crate) privileges: Privileges,
    pub(crate) attributes: Attributes,
    pub(crate) umask: u32,
}

/// What an object is to get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    /// As archived, whether or not it is restored.
    pub(crate) archived_owner: ArchivedOwner,
    pub(crate) mode: u32,
    /// Set-ID bits that the mode lacks already.
    pub(crate) lost_bits: bool,
    pub(crate) modified: Timestamp,
    /// Present when there is any.
    pub(crate) extra: Option<Box<Extra>>,
}

/// What few objects have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    /// Without those that are privilege.
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

    /// Permissions to create a file with, so that most files need no chmod afterwards.
    pub(crate) fn creation_mode(&self, metadata: &Metadata) -> u32 {
        let mode = metadata.mode & 0o777;
        // `user.*` attributes can be set on a writable file only, whatever the descriptor.
        if metadata.extra.is_some() { mode | 0o200 } else { mode }
    }

    /// Gives an object its metadata. `stat` is what its descriptor says.
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
        // chown(2) takes the special bits away.
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

    /// Sets what is no privilege and may be there early: all attributes but ACLs, which what is
    /// made in a directory would inherit.
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

    /// The owner after it was set, or after that failed.
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

    /// Sets the attributes that are privilege, if they may be, and gives the mode with those of its
    /// bits that may be.
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
            // A set-ID bit of a directory says whose new files in it are; it lends no rights.
            let (uid, gid) = (Some(owner.uid), Some(owner.gid));
            return without(metadata.mode, [uid == archived.uid, gid == archived.gid]);
        }
        let mode = without(metadata.mode, [by_user, by_group]);
        problems.left_off |= mode != metadata.mode;
        mode
    }

    /// Whether the privilege of the archived user, and that of the archived group, may come back.
    fn may_have_privilege(&self, object: &Object<'_>, archived: ArchivedOwner) -> [bool; 2] {
        match self.privileges {
            Privileges::Keep => [true, true],
            Privileges::WithOwner if self.owners != Owners::Ignore => {
                // Not every file system that takes chown(2) does it.
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

/// A mode without the set-ID bits of the user and the group that may not have theirs.
fn without(mode: u32, [user, group]: [bool; 2]) -> u32 {
    mode & !(if user { 0 } else { 0o4000 }) & !(if group { 0 } else { 0o2000 })
}

/// Whether an attribute lends rights or steers the kernel.
fn is_privilege(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}

/// A number that a file can have: on Linux they have 32 bits, and the last one means "leave it" to
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

/// Beyond these (1980 and 2038, in seconds) there are file systems that cannot hold a time, and
/// the kernel takes the nearest one that they can without a word.
const HELD_BY_ALL: std::ops::Range<i64> = 315_619_200..(1 << 31) - 1;
/// What FAT keeps of a time.
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

/// Collects what did not work on one object. Nothing is allocated as long as all works.
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

    /// While its content is written nobody else can do more with a file than in the end.
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
