//! The options of a backup.

use crate::backup::{ChangedList, Shrinking};
use crate::destination::Destination;
use crate::sweep::ReadOrder;
use archive::chunk::Compression;
use archive::index::About;
use base::failures::lock;
use catalogue::IndexFile;
use device::target::{Existing, FileMode};
use flow::backend::Engine;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tree::{Attributes, FileSystems, SourcePart};

/// What to back up, where to, and how.
#[derive(Clone, Debug)]
pub struct BackupOptions {
    /// Files and directories.
    pub sources: Vec<PathBuf>,
    /// Which part of each source, by its place, of a run without a set. With any, a source that is
    /// gone or cannot be read is a warning.
    pub parts: Vec<SourcePart>,
    /// Where the archive goes.
    pub target: Destination,
    /// What to do with an existing target, or with the data on the first medium.
    pub existing: Existing,
    /// What to do if the target is an archive in a file, and the new one has far less.
    pub shrinking: Shrinking,
    /// Permissions of a target that is a file.
    pub mode: FileMode,
    /// Compression of the archive.
    pub compression: Compression,
    /// Threads that compress; by default one for each core.
    pub compress_threads: Option<usize>,
    /// Threads that read small files; by default as many as keep a disk busy.
    pub read_threads: Option<usize>,
    /// In which order files are read.
    pub read_order: ReadOrder,
    /// Content that may be fetched ahead of its turn in another order than that of names; `None`:
    /// an eighth of the memory that is available, at most 4 GiB.
    pub read_window_bytes: Option<usize>,
    /// Bytes of one write to the target; a multiple of 512.
    pub block_bytes: usize,
    /// Memory of the rings together.
    pub ring_bytes: usize,
    /// Share of the ring that must be full before the writer starts, in percent.
    pub start_fill_percent: u8,
    /// When the writer starts again after the ring ran empty.
    pub refill: Refill,
    /// Globs of paths to leave out.
    pub excludes: Vec<String>,
    /// Whether to enter other file systems.
    pub file_systems: FileSystems,
    /// Whether to archive extended attributes and ACLs.
    pub attributes: Attributes,
    /// Back end of bulk input and output.
    pub engine: Engine,
    /// Limit on the rate to the target.
    pub rate_limit_bytes_per_second: Option<u64>,
    /// The set of a chain that it is to be; `None` for an archive outside of a chain.
    pub set: Option<SetOptions>,
    /// Takes a copy of the index, which on tape is far from where it is needed next.
    pub index_copy: Option<IndexCopy>,
}

/// A copy of an index in a file. That it cannot be written is no failure of the run.
#[derive(Clone, Debug)]
pub struct IndexCopy {
    file: Arc<File>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl IndexCopy {
    /// Into an empty file.
    pub fn into_file(file: File) -> IndexCopy {
        IndexCopy { file: Arc::new(file), failed: Arc::default() }
    }

    /// Adds the next bytes. After a failure the copy is worth nothing, and takes no more.
    pub(super) fn append(&self, bytes: &[u8]) {
        let mut failed = lock(&self.failed);
        if failed.is_none() {
            *failed = (&*self.file).write_all(bytes).err();
        }
    }

    /// Whether all of it is in the file.
    ///
    /// # Errors
    /// Why it is not.
    pub fn outcome(&self) -> io::Result<()> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }
}

/// The set of a chain that a run writes.
#[derive(Clone, Debug)]
pub struct SetOptions {
    /// Which set. The run fills in its counts and its end.
    pub about: About,
    /// The index of the set before it in the chain; `None` for a full set.
    pub parent: Option<IndexFile>,
    /// What has changed since the set before, if that is known.
    pub changed: Option<ChangedList>,
    /// What became of the sets before it, as lines of text; empty where nothing is known.
    pub journal: Vec<u8>,
}

/// When a writer whose ring ran empty starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// At the start fill.
    AsAtTheStart,
    /// As suits the target: a tape drive with a source too slow for it gets a full ring, all others
    /// whatever is ready.
    AsTheTargetNeeds,
}

impl Default for BackupOptions {
    fn default() -> BackupOptions {
        BackupOptions {
            sources: Vec::new(),
            parts: Vec::new(),
            target: "-".into(),
            existing: Existing::Keep,
            shrinking: Shrinking::Refuse,
            mode: FileMode::Usual,
            compression: Compression::None,
            compress_threads: None,
            read_threads: None,
            read_order: ReadOrder::Auto,
            read_window_bytes: None,
            block_bytes: 1 << 20,
            ring_bytes: 64 << 20,
            start_fill_percent: 0,
            refill: Refill::AsAtTheStart,
            excludes: Vec::new(),
            file_systems: FileSystems::All,
            attributes: Attributes::Read,
            engine: Engine::Auto,
            rate_limit_bytes_per_second: None,
            set: None,
            index_copy: None,
        }
    }
}
