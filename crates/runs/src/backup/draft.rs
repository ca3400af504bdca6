//! An object on its way into the archive: its metadata, and its content until it is in place.

use std::ops::Range;
use std::os::fd::OwnedFd;

use archive::index::{
    AgainReason, AgainRecord, ContentHasher, ContentTree, FileLayout, FileRecord, RecordKind,
    WarningRecord,
};
use archive::member::{Extent, MemberKind};
use archive::stream::ArchiveOffset;
use flow::ring::Filler;
use tree::{Captured, FileChange};

use super::groups::Finding;

/// An object with its place in the batch's headers.
pub(super) struct Draft {
    pub(super) captured: Captured,
    pub(super) header: Range<usize>,
    /// Bytes of content that the archive holds, without padding.
    pub(super) content_bytes: u64,
    /// The names in a folder, for GNU tar.
    pub(super) listing: Option<Vec<u8>>,
    /// It is not of the walk, but added at the end of the archive.
    pub(super) is_relinked: bool,
    /// Its content was read into the page cache for this run, which drops it again.
    pub(super) is_fetched: bool,
    pub(super) warnings: Vec<String>,
}

const UNIT_BYTES: u64 = 512;

/// Bytes of content, padded to whole units.
pub(super) fn padded(content_bytes: u64) -> u64 {
    content_bytes.next_multiple_of(UNIT_BYTES)
}

impl Draft {
    /// An object whose header is not encoded yet.
    pub(super) fn of(captured: Captured) -> Draft {
        Draft {
            captured,
            header: 0..0,
            content_bytes: 0,
            listing: None,
            is_relinked: false,
            is_fetched: false,
            warnings: Vec::new(),
        }
    }

    /// Hashes the content in the way that fits how it is stored.
    pub(super) fn content_hasher(&self) -> ContentHasher {
        let member = &self.captured.member;
        match &member.sparse {
            Some(runs) => ContentHasher::sparse(member.size_bytes, runs),
            None => ContentHasher::whole(),
        }
    }

    /// How other threads hash the content, in stretches: with the result of
    /// [`Draft::content_hasher`].
    pub(super) fn content_tree(&self) -> ContentTree {
        let member = &self.captured.member;
        match &member.sparse {
            Some(runs) => ContentTree::sparse(member.size_bytes, runs),
            None => ContentTree::whole(self.content_bytes),
        }
    }

    /// Adds the index entries of this member.
    pub(super) fn find(
        &mut self,
        header_offset_bytes: ArchiveOffset,
        content_offset_bytes: ArchiveOffset,
        content_hash: Option<[u8; 32]>,
        findings: &mut Vec<Finding>,
    ) {
        let member = &self.captured.member;
        let kind = match &member.kind {
            MemberKind::File => RecordKind::File {
                size_bytes: member.size_bytes,
                stored_bytes: self.content_bytes,
                layout: match member.sparse {
                    Some(_) => FileLayout::Sparse,
                    None => FileLayout::Whole,
                },
                content_hash,
            },
            MemberKind::Directory => RecordKind::Directory,
            MemberKind::SymbolicLink { .. } => RecordKind::SymbolicLink,
            MemberKind::HardLink { target } => RecordKind::HardLink { target: target.clone() },
            MemberKind::Fifo => RecordKind::Fifo,
            MemberKind::CharacterDevice { .. } => RecordKind::CharacterDevice,
            MemberKind::BlockDevice { .. } => RecordKind::BlockDevice,
        };
        findings.push(Finding::File(FileRecord {
            path: member.path.clone(),
            kind,
            header_offset_bytes,
            content_offset_bytes,
            mode: member.mode,
            uid: member.uid,
            gid: member.gid,
            modified: member.modified,
            changed: self.captured.version.changed,
        }));
        if self.is_relinked && matches!(member.kind, MemberKind::HardLink { .. }) {
            findings.push(Finding::Again(AgainRecord {
                path: AgainRecord::path_hash(&member.path),
                inode: 0,
                reason: AgainReason::Relinked,
            }));
        }
        if !self.warnings.is_empty() {
            let has_other_names = self.captured.links > 1 && self.captured.generation.is_some();
            findings.push(Finding::Again(AgainRecord {
                path: AgainRecord::path_hash(&member.path),
                inode: if has_other_names { self.captured.identity.inode } else { 0 },
                reason: AgainReason::Flawed,
            }));
        }
        for text in &self.warnings {
            let warning = WarningRecord { path: member.path.clone(), text: text.clone() };
            findings.push(Finding::Warning(warning));
        }
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.header.len() as u64 + padded(self.content_bytes)
    }

    /// Checks the file after its content was read, and warns of changes.
    pub(super) fn check_again(&mut self, file: &OwnedFd) {
        let text = match tree::recheck(file, &self.captured.version) {
            Ok(FileChange::None | FileChange::Metadata) => return,
            Ok(FileChange::Content) => "changed while it was read".to_owned(),
            Ok(FileChange::Size { now_bytes }) => {
                let before = self.captured.version.size_bytes;
                if now_bytes > before {
                    format!("grew from {before} to {now_bytes} bytes, archived up to {before}")
                } else {
                    format!("shrank from {before} to {now_bytes} bytes, the rest is zeros")
                }
            }
            Err(error) => format!("cannot be checked for changes: {error}"),
        };
        self.warnings.push(text);
    }
}

/// The state of a member's content.
pub(super) enum Content<'a> {
    /// It has no content.
    None,
    /// It is in one piece in the block, to be hashed together with others.
    Small(&'a [u8]),
    Hashed([u8; 32]),
}

/// Longest content that is hashed together with others; a longer one keeps the processor busy.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Reads the content of one file into its place.
pub(super) fn fill_content<'a>(draft: &mut Draft, filler: &mut Filler<'a>) -> Content<'a> {
    let Some(file) = draft.captured.file.take() else { return Content::None };
    let content_bytes = draft.content_bytes;
    let mut problem = None;
    let mut start: &'a mut [u8] = &mut [];
    // A file with holes has its own way of hashing, even if it is all holes.
    let is_whole = draft.captured.member.sparse.is_none();
    if is_whole && content_bytes <= SMALL_BYTES_MAX {
        start = filler.slice(content_bytes as usize);
        fill_slice(&file, 0, start, &mut problem);
    }
    let content = if is_whole && start.len() as u64 == content_bytes {
        Content::Small(start)
    } else {
        Content::Hashed(fill_rest(&file, draft, start, filler, &mut problem))
    };
    draft.warnings.extend(problem);
    draft.check_again(&file);
    if draft.is_fetched {
        device::file::drop_cached(&file, 0, 0);
    }
    filler.zeros((padded(content_bytes) - content_bytes) as usize);
    content
}

/// Reads the content after its `start`, which may end in the next block or have holes, and hashes
/// it while it is in the processor's cache.
fn fill_rest(
    file: &OwnedFd,
    draft: &Draft,
    start: &[u8],
    filler: &mut Filler<'_>,
    problem: &mut Option<String>,
) -> [u8; 32] {
    let mut hasher = draft.content_hasher();
    hasher.update(start);
    let whole = [Extent { offset_bytes: 0, length_bytes: draft.content_bytes }];
    let mut done_bytes = start.len() as u64;
    for run in draft.captured.member.sparse.as_deref().unwrap_or(&whole) {
        while done_bytes < run.length_bytes {
            let wanted_bytes = (run.length_bytes - done_bytes).min(HASH_STEP_BYTES);
            let slice = filler.slice(wanted_bytes as usize);
            fill_slice(file, run.offset_bytes + done_bytes, slice, problem);
            hasher.update(slice);
            done_bytes += slice.len() as u64;
        }
        done_bytes = 0;
    }
    hasher.finish()
}

/// Reads a whole file past the page cache. Asks for the padding, too, since direct I/O moves whole
/// units; the kernel stops at the end of the file.
#[expect(clippy::disallowed_methods, reason = "behind a short read the place may be no unit's")]
pub(super) fn fill_direct(file: &OwnedFd, draft: &mut Draft, filler: &mut Filler<'_>) -> [u8; 32] {
    let mut hasher = draft.content_hasher();
    let mut problem = None;
    let mut done_bytes = 0;
    while done_bytes < padded(draft.content_bytes) {
        let slice = filler.slice((padded(draft.content_bytes) - done_bytes) as usize);
        let wanted = slice.len().min((draft.content_bytes - done_bytes) as usize);
        let mut filled = 0;
        while filled < wanted && problem.is_none() {
            let offset = done_bytes + filled as u64;
            match rustix::io::pread(file, &mut slice[filled..], offset) {
                Ok(bytes) if bytes > 0 && bytes.is_multiple_of(512) => filled += bytes,
                Ok(bytes) if filled + bytes >= wanted => filled += bytes,
                // The file ended inside a unit, or a read failed: the rest is read through the
                // cache, which also reports what is wrong.
                Err(rustix::io::Errno::INTR) => {}
                _ => {
                    let _ = device::file::set_direct(file, device::file::Direct::Off);
                    fill_slice(file, offset, &mut slice[filled..wanted], &mut problem);
                    filled = wanted;
                }
            }
        }
        slice[filled.min(wanted)..].fill(0);
        hasher.update(&slice[..wanted]);
        done_bytes += slice.len() as u64;
    }
    draft.warnings.extend(problem);
    hasher.finish()
}

/// Bytes that are read before they are hashed: they fit into the processor's second-level cache.
const HASH_STEP_BYTES: u64 = 256 << 10;

/// Fills one slice. After a problem the rest is zeros, since its place is fixed.
fn fill_slice(file: &OwnedFd, offset_bytes: u64, slice: &mut [u8], problem: &mut Option<String>) {
    let mut filled = 0;
    while filled < slice.len() && problem.is_none() {
        let offset = offset_bytes + filled as u64;
        match base::interruptible::read_at(file, &mut slice[filled..], offset) {
            Ok(0) => *problem = Some(format!("ended at byte {offset}, the rest is zeros")),
            Ok(bytes) => filled += bytes,
            Err(error) => {
                let error = std::io::Error::from(error);
                *problem = Some(format!("read error at byte {offset}, the rest is zeros: {error}"));
            }
        }
    }
    slice[filled..].fill(0);
}

#[cfg(test)]
mod tests {
    use archive::member::{Member, Timestamp};
    use flow::cancel::Cancel;
    use flow::ring::{RingOptions, ring};
    use tree::{Identity, Version};

    use super::*;

    /// A file that had this many bytes when it was opened.
    fn draft(content_bytes: u64) -> Draft {
        let member = Member {
            path: b"file".to_vec(),
            kind: MemberKind::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            user: Vec::new(),
            group: Vec::new(),
            modified: Timestamp::default(),
            size_bytes: content_bytes,
            sparse: None,
            xattrs: Vec::new(),
            acl_access: None,
            acl_default: None,
        };
        let time = Timestamp::default();
        let captured = Captured {
            member,
            file: None,
            identity: Identity { device: 1, inode: 1 },
            links: 1,
            generation: None,
            version: Version { size_bytes: content_bytes, modified: time, changed: time },
            allocated_units: content_bytes / UNIT_BYTES,
            turned_from: None,
            attributes_problem: None,
        };
        Draft {
            captured,
            header: 0..0,
            content_bytes,
            listing: None,
            is_relinked: false,
            is_fetched: false,
            warnings: Vec::new(),
        }
    }

    /// The end of a file is where units of direct reads end, or elsewhere; the file still has its
    /// size, or is shorter.
    #[test]
    fn a_file_that_is_read_past_the_page_cache_may_have_become_shorter() {
        let folder = tempfile::tempdir().unwrap();
        for (now, before) in [(3000, 3000), (2048, 2048), (2048, 3000), (2047, 3000), (0, 3000)] {
            let path = folder.path().join("file");
            let mut expected = testkit::samples::noise(1, now);
            std::fs::write(&path, &expected).unwrap();
            expected.resize(before, 0);
            let file = OwnedFd::from(std::fs::File::open(&path).unwrap());
            let options = RingOptions { block_bytes: 4096, blocks: 2, consumers: 1 };
            let (producer, consumers) = ring(options, Cancel::new()).unwrap();
            let mut reservation = producer.try_reserve(4096).unwrap();
            let mut draft = draft(before as u64);
            let hash = fill_direct(&file, &mut draft, &mut reservation.filler());
            assert_eq!(hash, ContentHasher::hash_whole(&expected), "{now} of {before}");
            let warning = format!("ended at byte {now}, the rest is zeros");
            assert_eq!(draft.warnings, if now < before { vec![warning] } else { Vec::new() });
            reservation.commit();
            expected.resize(padded(before as u64) as usize, 0);
            let block = consumers[0].try_next().unwrap().unwrap();
            assert!(block[..expected.len()] == expected[..], "{now} of {before}");
        }
    }
}
