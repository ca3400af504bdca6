//! Other names of stored files, in folders that a run with a list of changes does not look at.
//!
//! All names of a file are in one archive, or none ([`super::relink`]). A list of changes names one
//! of them, and the walk passes the others. So the names that it passes are noted. At the end
//! those whose inode number is one of a stored file are looked at, and stored as links if they
//! still are the same file: an inode number alone proves nothing, since the index has no devices.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use archive::index::AboutSource;
use archive::member::MemberKind;
use base::failures::with_causes;
use flow::monitor::{Harm, Level, Monitor, Notice};
use tree::{EntryKind, Identity, Status};

use super::changed::below_source;
use super::error::BackupError;
use super::relink::{Named, put_bytes, put_object, take_object};
use super::work::{Relinked, Work};
use crate::spool::Spool;

/// Most stored files whose names are looked for, as in [`tree::HardLinks`].
const FILES_MAX: usize = 1 << 20;
/// Members that are passed on at once.
const WORKS_MAX: usize = 32;

/// The names that were passed, and the stored files that they may be names of.
#[derive(Default)]
pub(super) struct PassedNames {
    /// Source, name and folder of each.
    names: Spool,
    /// The first stored name of each file.
    targets: Spool,
    stored: HashMap<Identity, u64>,
    inodes: HashSet<u64>,
}

impl PassedNames {
    /// Notes a name that is not looked at, as the index has it.
    pub(super) fn pass(&mut self, source: u32, name: &Named<'_>) -> io::Result<()> {
        let mut record = Vec::new();
        record.extend_from_slice(&u64::from(source).to_le_bytes());
        record.extend_from_slice(&name.status.identity.inode.to_le_bytes());
        put_object(&mut record, name.path, name.status);
        put_object(&mut record, name.folder.0, name.folder.1);
        put_bytes(self.names.buffer(), &record);
        self.names.settle()
    }

    /// Notes a name that is stored.
    pub(super) fn store(&mut self, name: &Named<'_>) -> io::Result<()> {
        let identity = name.status.identity;
        if self.stored.len() >= FILES_MAX || self.stored.contains_key(&identity) {
            return Ok(());
        }
        self.stored.insert(identity, self.targets.length_bytes());
        self.inodes.insert(identity.inode);
        put_bytes(self.targets.buffer(), name.path);
        self.targets.settle()
    }

    /// Passes on the names of stored files, and the folder of each for its times.
    pub(super) fn late(
        &self,
        sources: &[AboutSource],
        monitor: &dyn Monitor,
        mut each: impl FnMut(Vec<Work>) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let mut works = Vec::new();
        let mut at = 0;
        while at < self.names.length_bytes() && !self.stored.is_empty() {
            let record = take(&self.names, at).map_err(BackupError::Spool)?;
            at += 8 + record.len() as u64;
            let (source, rest) = number(&record);
            let (inode, mut rest) = number(rest);
            if !self.inodes.contains(&inode) {
                continue;
            }
            let (name, mut folder) = (take_object(&mut rest), take_object(&mut rest));
            let Some(source) = sources.get(source as usize) else { continue };
            let Some(link) = self.link(source, &name.member.path, monitor)? else { continue };
            folder.member.kind = MemberKind::Directory;
            works.extend([link, folder].map(|relinked| Work::Relink(Box::new(relinked))));
            if works.len() >= WORKS_MAX {
                each(std::mem::take(&mut works))?;
            }
        }
        if works.is_empty() { Ok(()) } else { each(works) }
    }

    /// The name as a link to a stored one, if it is a name of that file now.
    fn link(
        &self,
        source: &AboutSource,
        path: &[u8],
        monitor: &dyn Monitor,
    ) -> Result<Option<Relinked>, BackupError> {
        let place = std::path::Path::new(OsStr::from_bytes(&source.path));
        let below = below_source(&source.archive_path, path);
        let status = match tree::status_below(place, below)? {
            Ok(status) => status,
            // The list did not have it: an audit finds that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let why = with_causes(&error);
                let text = format!("cannot be looked at, and may have changed: {why}");
                let level = Level::Warning(Harm::Unread);
                monitor.notice(Notice { level, object: path.to_vec(), text });
                return Ok(None);
            }
        };
        let target = self.stored.get(&status.identity).filter(|_| status.kind == EntryKind::File);
        let Some(&target) = target else { return Ok(None) };
        let target = take(&self.targets, target).map_err(BackupError::Spool)?;
        let mut link = relinked(path, &status);
        link.member.kind = MemberKind::HardLink { target };
        Ok(Some(link))
    }
}

fn relinked(path: &[u8], status: &Status) -> Relinked {
    let mut record = Vec::new();
    put_object(&mut record, path, status);
    take_object(&mut &record[..])
}

/// Bytes with their length in front of them.
fn take(spool: &Spool, at: u64) -> io::Result<Vec<u8>> {
    let (length, _) = number(&spool.read_at(at, 8)?);
    spool.read_at(at + 8, length as usize)
}

fn number(bytes: &[u8]) -> (u64, &[u8]) {
    let (number, rest) = bytes.split_first_chunk().expect("a record has its numbers");
    (u64::from_le_bytes(*number), rest)
}
