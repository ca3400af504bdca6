//! The metadata of one object in a tar archive: the type that the encoder takes and the decoder
//! returns.
//!
//! All other crates use this type for archived objects. Not here: access to the file system, and
//! the layout of the bytes, which is in `header`, `pax` and `sparse`.

/// A point in time as tar keeps it: seconds since 1970 (negative before) and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01 00:00:00 UTC, rounded towards minus infinity.
    pub seconds: i64,
    /// Nanoseconds after `seconds`, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// Kind of a member, with the data of only that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A regular file; `Member::size_bytes` and `Member::sparse` belong to it.
    File,
    Directory,
    /// A symbolic link and the bytes it points to.
    SymbolicLink {
        /// Target, any bytes.
        target: Vec<u8>,
    },
    /// Another name of an earlier member.
    HardLink {
        /// Path of the earlier member, as stored in the archive.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    CharacterDevice {
        major: u32,
        minor: u32,
    },
    BlockDevice {
        major: u32,
        minor: u32,
    },
}

/// One run of data in a sparse file; what lies between runs is a hole and reads as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the run in the file, in bytes.
    pub offset_bytes: u64,
    /// Length of the run in bytes.
    pub length_bytes: u64,
}

/// One archived object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Path as stored: any bytes except NUL, without a trailing slash (the encoder adds a
    /// directory's). The decoder does not check it: it may be absolute or hold `..`.
    pub path: Vec<u8>,
    /// MemberKind of object.
    pub kind: MemberKind,
    /// Permission bits with set-user-ID, set-group-ID and sticky: the low 12 bits.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u64,
    /// Numeric group.
    pub gid: u64,
    /// Name of the owner, empty when unknown.
    pub user: Vec<u8>,
    /// Name of the group, empty when unknown.
    pub group: Vec<u8>,
    /// Time of the last change of the content.
    pub modified: Timestamp,
    /// Size of the file for its readers, including holes. 0 for all other kinds.
    pub size_bytes: u64,
    /// The data runs of a sparse file in ascending order, not overlapping; `None` if it is not
    /// sparse. The encoder requires all runs but the last to be whole units long
    /// (`sparse::align_extents`).
    pub sparse: Option<Vec<Extent>>,
    /// Extended attributes as (name, value), in ascending order of name, without POSIX ACLs.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// POSIX access ACL in the kernel's binary form (`system.posix_acl_access`).
    pub acl_access: Option<Vec<u8>>,
    /// POSIX default ACL in the kernel's binary form (`system.posix_acl_default`).
    pub acl_default: Option<Vec<u8>>,
}

impl Member {
    /// Bytes of content that the archive holds for this member, without sparse map and padding: the
    /// size of the file, or the sum of its data runs if it is sparse.
    pub fn content_bytes(&self) -> u64 {
        match (&self.kind, &self.sparse) {
            (MemberKind::File, None) => self.size_bytes,
            (MemberKind::File, Some(runs)) => runs.iter().map(|run| run.length_bytes).sum(),
            _ => 0,
        }
    }

    /// Approximate memory of the member in bytes: its strings, runs and attributes, each with the
    /// overhead of an allocation. Used to limit the members held back.
    pub fn memory_bytes(&self) -> usize {
        /// Overhead of an allocation, including the rounding of small ones.
        const EACH: usize = 32;
        let target = match &self.kind {
            MemberKind::SymbolicLink { target } | MemberKind::HardLink { target } => {
                target.capacity()
            }
            _ => 0,
        };
        let names = self.path.capacity() + self.user.capacity() + self.group.capacity() + target;
        let acls = [&self.acl_access, &self.acl_default].into_iter().flatten();
        let acls: usize = acls.map(Vec::capacity).sum();
        let runs = self.sparse.as_ref().map_or(0, |runs| runs.capacity() * size_of::<Extent>());
        let attributes: usize = self
            .xattrs
            .iter()
            .map(|(name, value)| name.capacity() + value.capacity() + 2 * EACH)
            .sum::<usize>()
            + self.xattrs.capacity() * size_of::<(Vec<u8>, Vec<u8>)>();
        size_of::<Member>() + 4 * EACH + names + acls + runs + attributes
    }
}
