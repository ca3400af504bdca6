//! What the reading workers tell the hash stage: which bytes of the archive belong to which member.
//!
//! Every reservation of archive bytes is announced here first, in archive order, by the worker
//! whose turn it is. The findings behind it are complete before the last byte of the reservation is
//! committed, so when the hash stage sees a whole block, everything it must know about it is here.
//! Capacity: an announcement covers at least 512 bytes of the ring, which bounds their number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use archive::index::{ContentHasher, FileRecord, WarningRecord};

use failures::lock;

/// What is found out about the members of a stretch, in archive order.
pub(super) type Findings = Arc<Mutex<Vec<Finding>>>;

/// One line of the index.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// A member. That of a stream comes without its hash.
    File(FileRecord),
    /// Something to remember about the run.
    Warning(WarningRecord),
}

/// A stretch of the archive.
#[derive(Clone, Debug)]
pub(super) enum Group {
    /// Members whose content hashes are computed by the worker that reads them; or headers only.
    Members {
        /// Place of the first byte behind the last member.
        end_bytes: u64,
        /// What was found out.
        findings: Findings,
    },
    /// One large file, whose content the hash stage hashes as it passes.
    Stream {
        /// Place of the first byte of content.
        content_bytes: u64,
        /// Bytes of content, padding not counted.
        length_bytes: u64,
        /// Place of the first byte behind the padding.
        end_bytes: u64,
        /// Takes the content.
        hasher: Arc<Mutex<ContentHasher>>,
        /// What was found out.
        findings: Findings,
    },
}

impl Group {
    /// Place of the first byte behind the stretch.
    pub(super) fn end_bytes(&self) -> u64 {
        match self {
            Group::Members { end_bytes, .. } | Group::Stream { end_bytes, .. } => *end_bytes,
        }
    }

    /// What was found out.
    pub(super) fn findings(&self) -> &Findings {
        match self {
            Group::Members { findings, .. } | Group::Stream { findings, .. } => findings,
        }
    }
}

/// The announcements that the hash stage has not done with.
#[derive(Debug, Default)]
pub(super) struct Groups {
    inner: Mutex<VecDeque<Group>>,
}

impl Groups {
    /// Announces a stretch; to be called in archive order, before its bytes are committed.
    pub(super) fn announce(&self, group: Group) {
        lock(&self.inner).push_back(group);
    }

    /// The first announcement, if there is one.
    pub(super) fn front(&self) -> Option<Group> {
        lock(&self.inner).front().cloned()
    }

    /// Forgets the first announcement.
    pub(super) fn pop(&self) {
        lock(&self.inner).pop_front();
    }
}
