//! Turns an entry of the walk into a member of the archive: open, stat, describe.
//!
//! A regular file costs three system calls: openat, fstat, flistxattr. Everything is read from the
//! descriptor, so name, metadata and content belong to one object even if names move meanwhile. All
//! other kinds are opened with O_PATH, which never blocks, rewinds no tape and needs no permission
//! on the object.
//!
//! A file may have turned into another kind of object since it was listed. Then the new object is
//! archived; only a regular file is ever read. Opening it is safe for everything except devices
//! with side effects on open, and such a device must have taken the file's name within that moment.
//!
//! The content is not read here. The sparse map is read separately ([`crate::sparse_map`]), since
//! few files need it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use archive::member::{Member, MemberKind, Timestamp};
use base::interruptible::openat;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, major, minor, readlinkat};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::attributes::{AttributeReader, Handle};
use crate::entry_kind::EntryKind;
use crate::identity::{Generation, Identity, Version, timestamp};
use crate::item::Entry;
use crate::resolve::{Refusal, open_path};

/// Whether extended attributes and ACLs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// They are read: one more system call a file.
    #[default]
    Read,
    /// They are not.
    Ignore,
}

/// Options of a capturer.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOptions {
    /// Extended attributes and ACLs.
    pub attributes: Attributes,
    /// The file that the archive is written to; it is skipped if it is in a source.
    pub output: Option<Identity>,
    /// Start of the run. A file born before it cannot have got a number that was freed during the
    /// run.
    pub begun: Timestamp,
}

/// Turns entries into members. Every worker thread has its own.
#[derive(Debug)]
pub struct Capturer {
    options: CaptureOptions,
    accounts: Arc<Accounts>,
    reader: AttributeReader,
    /// Devices that answered EOPNOTSUPP to a query for attributes.
    without_attributes: Vec<u64>,
    /// The directory whose files belong to another user, so that O_NOATIME is refused.
    atime_refused_in: Option<u64>,
    is_superuser: bool,
}

/// The result for an entry.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every value is the large one")]
pub enum Capture {
    /// To be archived.
    Object(Captured),
    /// Left out on purpose.
    Skipped(Skip),
}

/// Why an entry is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A socket: its owner makes it again, and tar cannot store it.
    Socket,
    /// The archive itself.
    Output,
}

/// The state of an object at one moment.
#[derive(Debug)]
pub struct Captured {
    /// The member for the archive. `sparse` is `None`, and a file with several links is a file.
    pub member: Member,
    /// The open file, for regular files, at position 0.
    pub file: Option<OwnedFd>,
    /// Device and inode number.
    pub identity: Identity,
    /// Link count. Only for non-directories does a count above 1 mean other names.
    pub links: u64,
    /// Distinguishes it from a later file with its inode number; only set if there are other names.
    pub generation: Option<Generation>,
    /// State to compare with after reading, see [`crate::recheck`].
    pub version: Version,
    /// Space that the file takes, in units of 512 bytes.
    pub allocated_units: u64,
    /// The kind that getdents reported, if the object has another kind now.
    pub turned_from: Option<EntryKind>,
    /// Some attributes or ACLs could not be read; everything else is complete.
    pub attributes_problem: Option<io::Error>,
}

impl Captured {
    /// Fewer blocks are allocated than the size needs, so looking for holes may pay.
    pub fn may_be_sparse(&self) -> bool {
        self.allocated_units.saturating_mul(512) < self.version.size_bytes
    }
}

/// An entry that cannot be archived or compared. The text names no path, since the caller has the
/// entry.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Gone since it was listed.
    #[error("vanished before it was read")]
    Vanished,
    /// Cannot be opened.
    #[error("cannot open")]
    Open(#[source] io::Error),
    /// Another program holds a lease on it and did not release it in time: [`crate::LeaseWait`].
    #[error("another program holds a lease on it and did not release it")]
    Leased,
    /// Cannot be looked at.
    #[error("cannot read metadata")]
    Stat(#[source] io::Error),
    /// The target of the symbolic link cannot be read.
    #[error("cannot read symbolic link")]
    ReadLink(#[source] io::Error),
    /// It had another kind each time it was opened.
    #[error("its file type keeps changing")]
    Unsteady,
    /// The path of a member that is compared is refused.
    #[error("refused, {0}")]
    Refused(Refusal),
    /// A directory on the way to what is compared cannot be opened.
    #[error("cannot reach")]
    Reach(#[source] io::Error),
}

/// The place of an object.
pub(crate) struct ObjectPlace<'a> {
    pub(crate) directory: BorrowedFd<'a>,
    /// Identifies the directory for what is remembered about it.
    pub(crate) directory_inode: u64,
    pub(crate) name: &'a CStr,
    /// The expected kind.
    pub(crate) listed: EntryKind,
}

/// How often an object is opened again after it turned into another kind.
const TURNS_MAX: usize = 4;
/// Most devices remembered as having no attributes.
const DEVICES_MAX: usize = 64;

impl Capturer {
    /// A capturer for one thread.
    pub fn new(options: CaptureOptions, accounts: Arc<Accounts>) -> Capturer {
        Capturer {
            options,
            accounts,
            reader: AttributeReader::new(),
            without_attributes: Vec::new(),
            atime_refused_in: None,
            is_superuser: rustix::process::geteuid().is_root(),
        }
    }

    /// Opens and describes the object. `reuse` is a member no longer needed; its allocations are
    /// used again.
    ///
    /// # Errors
    /// See [`CaptureError`]; the object is then not archived.
    pub fn capture(
        &mut self,
        entry: &Entry,
        reuse: Option<Member>,
    ) -> Result<Capture, CaptureError> {
        let directory = entry.directory();
        let place = ObjectPlace {
            directory: directory.as_fd(),
            directory_inode: directory.names().identity.inode,
            name: entry.name(),
            listed: entry.kind(),
        };
        let mut member = emptied(reuse);
        entry.append_path(&mut member.path);
        self.capture_at(&place, member)
    }

    /// Describes the object at a place. `member` has only its path set.
    pub(crate) fn capture_at(
        &mut self,
        place: &ObjectPlace<'_>,
        mut member: Member,
    ) -> Result<Capture, CaptureError> {
        let listed = place.listed;
        if listed == EntryKind::Socket {
            return Ok(Capture::Skipped(Skip::Socket));
        }
        let (descriptor, stat, is_open) = self.open(place)?;
        let identity = Identity::of(&stat);
        if self.options.output == Some(identity) {
            return Ok(Capture::Skipped(Skip::Output));
        }
        let kind = EntryKind::from_file_type(FileType::from_raw_mode(stat.st_mode));
        member.kind = match kind {
            EntryKind::Socket => return Ok(Capture::Skipped(Skip::Socket)),
            EntryKind::SymbolicLink => MemberKind::SymbolicLink {
                target: readlinkat(&descriptor, c"", Vec::new())
                    .map_err(|error| CaptureError::ReadLink(error.into()))?
                    .into_bytes(),
            },
            EntryKind::Directory => MemberKind::Directory,
            EntryKind::Fifo => MemberKind::Fifo,
            EntryKind::CharacterDevice => {
                let number = stat.st_rdev;
                MemberKind::CharacterDevice { major: major(number), minor: minor(number) }
            }
            EntryKind::BlockDevice => {
                let number = stat.st_rdev;
                MemberKind::BlockDevice { major: major(number), minor: minor(number) }
            }
            EntryKind::File | EntryKind::Unknown => MemberKind::File,
        };
        let version = Version::of(&stat);
        self.describe(&stat, &version, &mut member);
        let has_other_names = stat.st_nlink > 1 && member.kind != MemberKind::Directory;
        let generation =
            has_other_names.then(|| Generation::of(&descriptor, &version, self.options.begun));
        let handle = if is_open {
            Handle::Open(descriptor.as_fd())
        } else {
            Handle::Path(descriptor.as_fd())
        };
        let attributes_problem = self.read_attributes(handle, identity.device, &mut member);
        Ok(Capture::Object(Captured {
            file: (member.kind == MemberKind::File).then_some(descriptor),
            member,
            identity,
            links: stat.st_nlink as _,
            generation,
            version,
            allocated_units: u64::try_from(stat.st_blocks).unwrap_or(0),
            turned_from: (kind != listed && listed != EntryKind::Unknown).then_some(listed),
            attributes_problem,
        }))
    }

    /// Opens the object in the way that suits its kind. The flag is true if it is open for reading,
    /// false with O_PATH.
    fn open(&mut self, place: &ObjectPlace<'_>) -> Result<(OwnedFd, Stat, bool), CaptureError> {
        let mut looks_like_file = place.listed == EntryKind::File;
        for _ in 0..TURNS_MAX {
            if looks_like_file {
                match self.open_file(place) {
                    Ok(descriptor) => {
                        let stat = stat(&descriptor)?;
                        return Ok((descriptor, stat, true));
                    }
                    // A symbolic link, or a socket or device without a driver: no longer a file.
                    Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => {}
                    Err(error) => return Err(cannot_open(error)),
                }
            }
            let descriptor = open_path(place.directory, place.name).map_err(cannot_open)?;
            let stat = stat(&descriptor)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Ok((descriptor, stat, false));
            }
            looks_like_file = true;
        }
        Err(CaptureError::Unsteady)
    }

    /// Opens for reading, without changing the access time if allowed. Only the owner and the
    /// superuser may do that, see open(2).
    fn open_file(&mut self, place: &ObjectPlace<'_>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // The files of one directory usually have one owner, so a refusal is remembered for the
        // directory.
        let inode = place.directory_inode;
        let open = |flags| openat(place.directory, place.name, flags, Mode::empty());
        if self.is_superuser || self.atime_refused_in != Some(inode) {
            match open(flags | OFlags::NOATIME) {
                Err(Errno::PERM) => self.atime_refused_in = Some(inode),
                result => return result,
            }
        }
        open(flags)
    }

    fn describe(&self, stat: &Stat, version: &Version, member: &mut Member) {
        member.mode = stat.st_mode & 0o7777;
        member.uid = stat.st_uid.into();
        member.gid = stat.st_gid.into();
        self.accounts.append_user_name(stat.st_uid, &mut member.user);
        self.accounts.append_group_name(stat.st_gid, &mut member.group);
        member.modified = timestamp(stat.st_mtime, stat.st_mtime_nsec as _);
        member.size_bytes = if member.kind == MemberKind::File { version.size_bytes } else { 0 };
    }

    fn read_attributes(
        &mut self,
        handle: Handle<'_>,
        device: u64,
        member: &mut Member,
    ) -> Option<io::Error> {
        if self.options.attributes == Attributes::Ignore
            || self.without_attributes.contains(&device)
        {
            return None;
        }
        let error = self.reader.read(handle, member).err()?;
        if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) {
            if self.without_attributes.len() < DEVICES_MAX {
                self.without_attributes.push(device);
            }
            return None;
        }
        Some(error)
    }
}

fn stat(descriptor: &OwnedFd) -> Result<Stat, CaptureError> {
    fstat(descriptor).map_err(|error| CaptureError::Stat(error.into()))
}

fn cannot_open(error: Errno) -> CaptureError {
    match error {
        Errno::NOENT => CaptureError::Vanished,
        Errno::WOULDBLOCK => CaptureError::Leased,
        error => CaptureError::Open(error.into()),
    }
}

/// An empty member with the allocations of one that is no longer needed.
pub(crate) fn emptied(reuse: Option<Member>) -> Member {
    let mut member = reuse.unwrap_or_else(|| Member {
        path: Vec::with_capacity(128),
        kind: MemberKind::File,
        mode: 0,
        uid: 0,
        gid: 0,
        user: Vec::new(),
        group: Vec::new(),
        modified: Timestamp::default(),
        size_bytes: 0,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    });
    member.path.clear();
    member.user.clear();
    member.group.clear();
    member.xattrs.clear();
    member.sparse = None;
    member.acl_access = None;
    member.acl_default = None;
    member
}
