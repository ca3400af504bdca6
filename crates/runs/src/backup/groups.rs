//! What the readers pass to the hash stage: which bytes of the archive belong to which member.
//!
//! Every reservation of archive bytes is announced here first, in archive order, by the worker that
//! has the turn. The results for it are complete before its last byte is committed, so when the
//! hash stage sees a whole block, everything about it is here. Capacity: an announcement covers at
//! least 512 bytes of the ring, which bounds their number.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use archive::index::{AgainRecord, ContentTree, FileRecord, JoinedContent, Stretch, WarningRecord};
use archive::stream::ArchiveOffset;
use base::failures::lock;
use flow::ring::{Marks, RingOffset};

/// Results about the members of a stretch, in archive order.
pub(super) type Findings = Arc<Mutex<Vec<Finding>>>;

/// One line of the index.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// A member. One whose content is streamed comes without its hash.
    File(FileRecord),
    /// A warning about the run.
    Warning(WarningRecord),
    /// What the next set of the chain has to store again.
    Again(AgainRecord),
}

/// A stretch of the archive, marked at its end.
#[derive(Clone, Debug)]
pub(super) struct HashGroup {
    /// The content of one large file, which the hash stage hashes as it passes. Otherwise the
    /// reader hashes it.
    pub(super) content: Option<Arc<Content>>,
    /// The results.
    pub(super) findings: Findings,
}

/// Where content is, and how it is hashed.
#[derive(Debug)]
pub(super) struct Content {
    /// Place of its first byte.
    pub(super) start_bytes: ArchiveOffset,
    /// Without padding.
    pub(super) length_bytes: u64,
    /// How stretches of it are hashed.
    pub(super) tree: ContentTree,
    /// The stretches joined so far, in order.
    joined: Mutex<Option<JoinedContent>>,
}

impl Content {
    /// Content of this many bytes from this place of the archive on.
    pub(super) fn new(start_bytes: ArchiveOffset, length_bytes: u64, tree: ContentTree) -> Content {
        let joined = Mutex::new(Some(tree.begin()));
        Content { start_bytes, length_bytes, tree, joined }
    }

    /// The part of it that a block of the ring holds, as a range of the block.
    pub(super) fn part(&self, block_start: ArchiveOffset, block_bytes: usize) -> Range<usize> {
        let within = |place: ArchiveOffset| {
            place.saturating_since(block_start).min(block_bytes as u64) as usize
        };
        within(self.start_bytes)..within(self.start_bytes + self.length_bytes)
    }

    /// The hash, once all stretches are joined.
    pub(super) fn finish(&self) -> Option<[u8; 32]> {
        lock(&self.joined).take().map(JoinedContent::finish)
    }

    /// Joins the next stretch.
    pub(super) fn join(&self, stretch: Stretch) {
        if let Some(joined) = &mut *lock(&self.joined) {
            joined.add(stretch);
        }
    }
}

impl HashGroup {
    /// Members or headers whose content is not hashed by the hash stage.
    pub(super) fn of(findings: Findings) -> HashGroup {
        HashGroup { content: None, findings }
    }
}

/// Announcements that the hash stage has not finished, each at the place of the first byte behind
/// its stretch. They are added in archive order, before the bytes are committed.
pub(super) type Groups = Marks<ArchiveOffset, HashGroup>;

/// The place in the archive of a place in the readers' ring, which holds the archive from its
/// beginning.
pub(super) fn in_archive(place: RingOffset) -> ArchiveOffset {
    place.same_in()
}
