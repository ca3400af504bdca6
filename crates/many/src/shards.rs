//! Shards written, verified and restored by one host: a run of the engine for each.

use std::fmt::Write as _;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use archive::chunk::Compression;
use base::escape::escape;
use base::failures::{lock, with_causes};
use catalogue::IndexFile;
use device::source::Source;
use device::target::Existing;
use flow::bottleneck::{Cause, analyse};
use flow::cancel::Cancel;
use flow::monitor::{Counter, Level, Monitor, Notice};
use flow::run::RunReport;
use runs::backup::{BackupOptions, Shrinking, backup};
use runs::read::IndexNeed;
use runs::restore::{RestoreOptions, Synchronise, restore};
use runs::verify::{VerifyOptions, verify};
use serde::{Deserialize, Serialize};
use tree::{FileSystems, Overwrite};

use crate::journal::{PlannedShard, SealedShard};
use crate::units::Mounts;

/// Most warnings whose text travels.
const WARNINGS_TOLD: usize = 20;

/// What all shards of a set have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardOptions {
    /// Folder of the shards.
    pub folder: PathBuf,
    pub compression: Compression,
    pub mounts: Mounts,
    /// Threads that compress or check; as many as cores if `None`.
    pub threads: Option<NonZero<usize>>,
}

/// What a host is to write.
pub type ShardOrder = PlannedShard;

/// What a host is to do with a sealed shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Read all of it and compare it with its checksums.
    Verify,
    /// Restore it into this folder; files that are there are an error, or are replaced.
    Restore { into: PathBuf, replaces: bool },
}

/// A shard that was verified or restored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardRead {
    pub shard: u64,
    pub host: String,
    pub members: u64,
    pub source_bytes: u64,
    pub stored_bytes: u64,
    pub seconds: f64,
    /// What is damaged, missing or could not be restored.
    pub warnings: u64,
    pub first_warnings: Vec<String>,
    /// The stage that held it back.
    pub limit: Option<String>,
}

/// Name of the file of a shard.
pub fn file_name(shard: u64, compression: Compression) -> String {
    let end = match compression {
        Compression::None => "",
        Compression::Zstd { .. } => ".zst",
        Compression::Gzip { .. } => ".gz",
    };
    format!("shard-{shard:06}.tar{end}")
}

/// Keeps the first warnings of a run, and passes the counts on.
struct Warned<'a> {
    progress: &'a dyn Monitor,
    first: Mutex<Vec<String>>,
    count: Mutex<u64>,
}

impl<'a> Warned<'a> {
    fn new(progress: &'a dyn Monitor) -> Warned<'a> {
        Warned { progress, first: Mutex::default(), count: Mutex::default() }
    }

    fn end(self) -> (u64, Vec<String>) {
        let count = *lock(&self.count);
        let first = std::mem::take(&mut *lock(&self.first));
        (count, first)
    }
}

impl Monitor for Warned<'_> {
    fn count(&self, counter: Counter, amount: u64) {
        self.progress.count(counter, amount);
    }

    fn notice(&self, notice: Notice) {
        if !matches!(notice.level, Level::Warning(_)) {
            return;
        }
        *lock(&self.count) += 1;
        let mut first = lock(&self.first);
        if first.len() < WARNINGS_TOLD {
            first.push(format!("{}: {}", escape(&notice.object), notice.text));
        }
    }
}

/// Writes a shard, under its name only when all of it is on the disk.
///
/// # Errors
/// In words, why there is no shard.
pub fn write(
    order: &ShardOrder,
    options: &ShardOptions,
    host: &str,
    progress: &dyn Monitor,
    cancel: &Cancel,
) -> Result<SealedShard, String> {
    let begun = Instant::now();
    let file = file_name(order.shard, options.compression);
    let path = options.folder.join(&file);
    let file_systems = match options.mounts {
        Mounts::Enter => FileSystems::All,
        Mounts::Leave => FileSystems::One,
    };
    let request = BackupOptions {
        sources: order.units.iter().map(|unit| unit.path.to_path()).collect(),
        parts: order.units.iter().map(|unit| unit.source_part()).collect(),
        target: path.as_os_str().into(),
        existing: Existing::Replace,
        // What was there is not sealed.
        shrinking: Shrinking::Allow,
        compression: options.compression,
        compress_threads: options.threads.map(NonZero::get),
        file_systems,
        ..BackupOptions::default()
    };
    let warned = Warned::new(progress);
    let report = backup(&request, &warned, cancel).map_err(|error| with_causes(&error))?;
    let (warnings, first_warnings) = warned.end();
    let (digest, stored_bytes) =
        digest_of(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let run = &report.run;
    Ok(SealedShard {
        shard: order.shard,
        file,
        stored_bytes,
        digest,
        members: run.members,
        files: run.files,
        source_bytes: run.source_bytes,
        warnings,
        first_warnings,
        host: host.to_owned(),
        seconds: begun.elapsed().as_secs_f64(),
        limit: limit_of(run),
    })
}

/// The hash of the index of a shard, and the length of its file.
///
/// # Errors
/// When it cannot be read, or has no index.
pub fn digest_of(path: &Path) -> io::Result<(String, u64)> {
    let source = Source::open(path.as_os_str()).map_err(io::Error::other)?;
    let length = source.length_bytes.unwrap_or_default();
    let index = IndexFile::find(&source).ok_or_else(|| io::Error::other("it has no index"))?;
    let mut digits = String::new();
    for byte in index.trailer.index_hash.unwrap_or_default() {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok((digits, length))
}

/// Whether the file of a shard is the one that was sealed; else why not.
///
/// # Errors
/// In words, what differs.
pub fn check(sealed: &SealedShard, folder: &Path) -> Result<(), String> {
    let path = folder.join(&sealed.file);
    let told = |why: String| format!("{}: {why}", path.display());
    let (digest, bytes) = digest_of(&path).map_err(|error| told(error.to_string()))?;
    if bytes != sealed.stored_bytes {
        return Err(told(format!("{bytes} bytes, and {} were sealed", sealed.stored_bytes)));
    }
    if digest != sealed.digest {
        return Err(told("its index is another one than was sealed".to_owned()));
    }
    Ok(())
}

/// Verifies or restores a shard.
///
/// # Errors
/// In words, why it could not be read, or is not the one that was sealed.
pub fn read(
    sealed: &SealedShard,
    reading: &Reading,
    options: &ShardOptions,
    host: &str,
    progress: &dyn Monitor,
    cancel: &Cancel,
) -> Result<ShardRead, String> {
    check(sealed, &options.folder)?;
    let begun = Instant::now();
    let from = options.folder.join(&sealed.file);
    let warned = Warned::new(progress);
    let run = match reading {
        Reading::Verify => {
            let request = VerifyOptions {
                from: from.as_os_str().into(),
                index: IndexNeed::Required,
                threads: options.threads,
                ..VerifyOptions::default()
            };
            verify(request, &warned, cancel).map_err(|error| with_causes(&error))?.run
        }
        Reading::Restore { into, replaces } => {
            let request = RestoreOptions {
                from: from.as_os_str().into(),
                into: into.clone(),
                overwrite: if *replaces { Overwrite::Replace } else { Overwrite::Refuse },
                index: IndexNeed::Required,
                threads: options.threads,
                synchronise: Synchronise::Yes,
                ..RestoreOptions::default()
            };
            restore(request, &warned, cancel).map_err(|error| with_causes(&error))?.run
        }
    };
    let (warnings, first_warnings) = warned.end();
    Ok(ShardRead {
        shard: sealed.shard,
        host: host.to_owned(),
        members: run.members,
        source_bytes: run.source_bytes,
        stored_bytes: sealed.stored_bytes,
        seconds: begun.elapsed().as_secs_f64(),
        warnings,
        first_warnings,
        limit: limit_of(&run),
    })
}

/// The stage that held a run back, where one is known to.
fn limit_of(run: &RunReport) -> Option<String> {
    let analysis = analyse(run);
    let stage = analysis.stages.get(analysis.bottleneck?)?;
    (analysis.cause != Cause::Unknown).then(|| stage.kind.name().to_owned())
}
