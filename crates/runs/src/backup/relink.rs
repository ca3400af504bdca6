//! Files with several names, some of which are stored and some of which are unchanged.
//!
//! A folder that was renamed brings new paths to files whose other names are where they were: their
//! inode is as before. If only the new name were stored, the two would be two files after a
//! restore. So all names of a file are in one archive, or none: behind a stored name, later ones
//! are stored, too; and the unchanged names before it are stored at the end of the archive, as
//! links to it.

use std::collections::{HashMap, VecDeque};
use std::io;

use archive::index::{AgainRecord, EntryState};
use archive::member::{Member, MemberKind, Timestamp};
use base::failures::lock;
use tree::{Identity, Status};

use super::draft::Draft;
use super::error::BackupError;
use super::reader::Reader;
use super::work::{Relinked, Work};
use crate::spool::Spool;

/// Most files that wait for other names, as in [`tree::HardLinks`]. The names of further ones are
/// decided on their own.
const FILES_MAX: usize = 1 << 20;
/// Members that are passed on at once.
const WORKS_MAX: usize = 32;
/// No earlier name.
const NONE: u64 = u64::MAX;

/// The names seen so far.
#[derive(Default)]
pub(super) struct Relinking {
    files: HashMap<Identity, File>,
    /// Unchanged names, each with the place of the one before it.
    names: Spool,
    /// The unchanged names to be stored at the end, with their targets.
    late: Spool,
}

struct File {
    /// Names that may still come.
    remaining: u64,
    state: Seen,
}

/// What became of the names so far.
#[derive(Clone, Copy)]
enum Seen {
    /// At least one is stored, and so are those that come.
    Stored,
    /// They are unchanged; the place of the last of them.
    Unchanged(u64),
}

/// A name with its metadata, and the folder that it is in.
pub(super) struct Named<'a> {
    pub(super) path: &'a [u8],
    pub(super) status: &'a Status,
    pub(super) folder: (&'a [u8], &'a Status),
}

impl Relinking {
    /// Whether a name that is unchanged has to be stored, since an earlier name of it was.
    pub(super) fn must_be_stored(&self, status: &Status) -> bool {
        self.files.get(&status.identity).is_some_and(|file| matches!(file.state, Seen::Stored))
    }

    /// Notes what becomes of a name.
    pub(super) fn note(&mut self, name: &Named<'_>, decided: EntryState) -> io::Result<()> {
        let identity = name.status.identity;
        if !self.files.contains_key(&identity) && self.files.len() >= FILES_MAX {
            return Ok(());
        }
        let links = name.status.links;
        let first = File { remaining: links, state: Seen::Unchanged(NONE) };
        let file = self.files.entry(identity).or_insert(first);
        file.remaining = file.remaining.saturating_sub(1);
        match (decided, file.state) {
            (EntryState::Stored, Seen::Unchanged(last)) => {
                file.state = Seen::Stored;
                self.relink(last, name.path)?;
            }
            (_, Seen::Unchanged(last)) => {
                let place = self.names.length_bytes();
                file.state = Seen::Unchanged(place);
                put_name(self.names.buffer(), last, name);
                self.names.settle()?;
            }
            (_, Seen::Stored) => {}
        }
        if self.files.get(&identity).is_some_and(|file| file.remaining == 0) {
            self.files.remove(&identity);
        }
        Ok(())
    }

    /// Has the unchanged names be stored at the end, as links to `target`.
    fn relink(&mut self, mut place: u64, target: &[u8]) -> io::Result<()> {
        while place != NONE {
            let length = number(&self.names.read_at(place, 8)?);
            let record = self.names.read_at(place + 8, length as usize)?;
            let (before, record) = record.split_at(8);
            put_bytes(self.late.buffer(), target);
            put_bytes(self.late.buffer(), record);
            self.late.settle()?;
            place = number(before);
        }
        Ok(())
    }

    /// Passes on what is to be stored at the end of the archive: each name, and its folder for its
    /// times.
    pub(super) fn late(
        &self,
        mut each: impl FnMut(Vec<Work>) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let mut at = 0;
        let mut works = Vec::new();
        while at < self.late.length_bytes() {
            let mut take = || -> io::Result<Vec<u8>> {
                let length = number(&self.late.read_at(at, 8)?);
                let bytes = self.late.read_at(at + 8, length as usize)?;
                at += 8 + length;
                Ok(bytes)
            };
            let target = take().map_err(BackupError::Spool)?;
            let record = take().map_err(BackupError::Spool)?;
            let mut record = &record[..];
            let mut link = take_object(&mut record);
            let mut folder = take_object(&mut record);
            link.member.kind = MemberKind::HardLink { target };
            folder.member.kind = MemberKind::Directory;
            works.extend([link, folder].map(|relinked| Work::Relink(Box::new(relinked))));
            if works.len() >= WORKS_MAX {
                each(std::mem::take(&mut works))?;
            }
        }
        if works.is_empty() { Ok(()) } else { each(works) }
    }
}

impl Reader<'_> {
    /// A member that is made of what was noted of it.
    pub(super) fn relinked(&mut self, relinked: &Relinked) -> Option<Draft> {
        let mut draft = Draft::of(relinked.captured());
        draft.is_relinked = true;
        self.encode(&mut draft)?;
        Some(draft)
    }

    /// Leaves out links to what could not be read. Called with the turn held: whatever is earlier
    /// in the archive was read, or was not.
    pub(super) fn drop_dangling(&self, drafts: &mut VecDeque<Draft>) {
        if drafts.iter().any(|draft| draft.is_relinked) {
            let unread = lock(&self.shared.unread);
            drafts.retain(|draft| match &draft.captured.member.kind {
                MemberKind::HardLink { target } if draft.is_relinked => {
                    !unread.contains(&AgainRecord::path_hash(target))
                }
                _ => true,
            });
        }
    }
}

/// Length, the place of the name before, the name and its folder.
fn put_name(out: &mut Vec<u8>, before: u64, name: &Named<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&before.to_le_bytes());
    put_object(out, name.path, name.status);
    put_object(out, name.folder.0, name.folder.1);
    let length = (out.len() - start - 8) as u64;
    out[start..start + 8].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn put_object(out: &mut Vec<u8>, path: &[u8], status: &Status) {
    put_bytes(out, path);
    let (modified, changed) = (status.version.modified, status.version.changed);
    for number in [
        u64::from(status.mode),
        status.uid.into(),
        status.gid.into(),
        modified.seconds as u64,
        modified.nanoseconds.into(),
        changed.seconds as u64,
        changed.nanoseconds.into(),
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn take_object(record: &mut &[u8]) -> Relinked {
    let (length, rest) = record.split_at(8);
    let (path, rest) = rest.split_at(number(length) as usize);
    let path = path.to_vec();
    *record = rest;
    let mut next = || {
        let (bytes, rest) = record.split_at(8);
        *record = rest;
        number(bytes)
    };
    let [mode, uid, gid] = [next(), next(), next()];
    let mut time = || Timestamp { seconds: next() as i64, nanoseconds: next() as u32 };
    let (modified, changed) = (time(), time());
    let member = Member {
        path,
        kind: MemberKind::File,
        mode: mode as u32,
        uid,
        gid,
        user: Vec::new(),
        group: Vec::new(),
        modified,
        size_bytes: 0,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    };
    Relinked { member, changed }
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read"))
}
