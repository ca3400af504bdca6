//! Directories that wait for their metadata until everything in them is there.
//!
//! Kept compactly, because there may be a million: the paths in one buffer, one record each.

use std::os::fd::{AsFd, OwnedFd};

use archive::member::Timestamp;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, fstat, openat};
use rustix::io::Errno;

use crate::attributes::{Handle, proc_path};
use crate::metadata::{
    Extra, Given, Metadata, MetadataPart, MetadataPolicy, MetadataProblem, Owner, Problems,
};
use crate::resolve::{Beneath, Missing, Refusal, ResolveError};

#[derive(Debug, Default)]
pub(crate) struct Deferred {
    paths: Vec<u8>,
    records: Vec<Record>,
    extras: Vec<Extra>,
}

/// Whether a directory came into being with an ACL of the one above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inheritance {
    /// No ACL came with it.
    Nothing,
    /// The default ACL of the one above may have become its own.
    Acl,
}

#[derive(Debug)]
struct Record {
    path_from: u64,
    path_bytes: u32,
    mode: u16,
    inheritance: Inheritance,
    owner: Owner,
    modified_nanoseconds: u32,
    modified_seconds: i64,
    /// Position in `extras`, or `u32::MAX`.
    extra: u32,
}

const NO_EXTRA: u32 = u32::MAX;

impl Deferred {
    /// Adds the directory at a checked path; the last one added for a path counts.
    pub(crate) fn add(&mut self, path: &[u8], metadata: Metadata, inheritance: Inheritance) {
        let extra = match metadata.extra {
            Some(extra) => {
                self.extras.push(*extra);
                self.extras.len() as u32 - 1
            }
            None => NO_EXTRA,
        };
        self.records.push(Record {
            path_from: self.paths.len() as u64,
            path_bytes: path.len() as u32,
            mode: metadata.mode as u16,
            inheritance,
            owner: metadata.archived_owner,
            modified_nanoseconds: metadata.modified.nanoseconds,
            modified_seconds: metadata.modified.seconds,
            extra,
        });
        self.paths.extend_from_slice(path);
    }

    /// Gives all directories their metadata, deepest first, and returns their number.
    pub(crate) fn apply(
        mut self,
        beneath: &Beneath,
        policy: &MetadataPolicy,
        report: &mut impl FnMut(MetadataProblem),
    ) -> u64 {
        let mut records = std::mem::take(&mut self.records);
        // A path is greater than each of its beginnings, so descending order is deepest first. The
        // sort is stable: the last record of a path comes last among its equals.
        records.sort_by(|left, right| self.path(right).cmp(self.path(left)));
        let mut count = 0;
        for (at, record) in records.iter().enumerate() {
            let path = self.path(record);
            if records.get(at + 1).is_some_and(|next| self.path(next) == path) {
                continue;
            }
            count += 1;
            let mut problems = Problems::of(if path.is_empty() { b"." } else { path });
            match open(beneath, path) {
                Ok((descriptor, given)) => {
                    let given =
                        Given { inherits_acl: record.inheritance == Inheritance::Acl, ..given };
                    let metadata = self.metadata(record);
                    let handle = Handle::Open(descriptor.as_fd());
                    policy.apply(handle, &metadata, given, &mut problems);
                }
                Err(error) => problems.note(Err(error), || MetadataPart::Directory),
            }
            problems.found.into_iter().for_each(&mut *report);
        }
        count
    }

    fn path(&self, record: &Record) -> &[u8] {
        let from = record.path_from as usize;
        &self.paths[from..from + record.path_bytes as usize]
    }

    fn metadata(&self, record: &Record) -> Metadata {
        Metadata {
            archived_owner: record.owner,
            mode: record.mode.into(),
            modified: Timestamp {
                seconds: record.modified_seconds,
                nanoseconds: record.modified_nanoseconds,
            },
            extra: self.extras.get(record.extra as usize).cloned().map(Box::new),
        }
    }
}

/// Opens a directory so that everything can be set on it, and says whose it is now.
fn open(beneath: &Beneath, path: &[u8]) -> Result<(OwnedFd, Given), Errno> {
    let found = beneath.directory(path, Missing::Fail).map_err(|error| match error {
        ResolveError::Io(error) => error,
        ResolveError::Refused(Refusal::SymbolicLink) => Errno::LOOP,
        ResolveError::Refused(_) => Errno::NOTDIR,
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = match openat(&found, c".", flags, Mode::empty()) {
        // One of ours that nobody may read: it was there before, or an earlier run made it so.
        Err(Errno::ACCESS) => {
            chmodat(CWD, &*proc_path(&found), Mode::from_raw_mode(0o700), AtFlags::empty())?;
            openat(&found, c".", flags, Mode::empty())
        }
        result => result,
    }?;
    let stat = fstat(&descriptor)?;
    let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
    let mode = Some(stat.st_mode & 0o7777);
    Ok((descriptor, Given { owner, mode, inherits_acl: false }))
}
