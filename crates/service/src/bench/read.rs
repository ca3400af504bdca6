//! The rate of a single stream from files or block devices.

use std::path::{Path, PathBuf};

use base::escape::escape_path;
use base::format::size;
use experiment::plan::{Plan, Stop};
use experiment::record::{Factor, Level};
use loads::read::{ReadBenchError, ReadExecutor, path_factor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::layers::Storage;

use super::{
    BegunExperiment, ExperimentDone, ExperimentRequest, ExperimentSurroundings, absolute, factor,
    numbers, words,
};
use crate::failure::{Failure, with_causes};
use crate::largest_file::{LargestFile, largest_below};
use crate::notify::Notify;
use crate::state;
use storage::StorageError;

/// What to measure of a single stream. Every combination that makes sense is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BenchReadRequest {
    /// Files or block devices; for a folder, the largest file in it.
    pub paths: Vec<PathBuf>,
    /// Calls to read with.
    pub engines: Vec<StreamEngine>,
    /// Through the page cache, or past it.
    pub cache: Vec<CacheUse>,
    /// Bytes of one request.
    pub block_bytes: Vec<u64>,
    pub read_ahead: Vec<ReadAheadLevel>,
    /// Requests in flight at once, for psync and `io_uring`.
    pub depth: Vec<u64>,
    /// Readers that take turns with the blocks of the one stream.
    pub readers: Vec<u64>,
    /// Pages of the memory that is read into.
    pub pages: Vec<MemoryPages>,
    /// Bytes of one run, from the start of the path.
    pub length_bytes: u64,
    /// Reads at random places after each buffered run.
    pub random_reads: u64,
    /// Repeats, time limits, files.
    pub experiment: ExperimentRequest,
}

impl Default for BenchReadRequest {
    fn default() -> BenchReadRequest {
        BenchReadRequest {
            paths: Vec::new(),
            engines: vec![StreamEngine::Psync],
            cache: vec![CacheUse::Buffered, CacheUse::Direct],
            block_bytes: vec![64 << 10, 256 << 10, 1 << 20, 4 << 20],
            read_ahead: Vec::new(),
            depth: vec![1],
            readers: vec![1],
            pages: vec![MemoryPages::Huge],
            length_bytes: 1 << 30,
            random_reads: 32,
            experiment: ExperimentRequest::default(),
        }
    }
}

/// Calls that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamEngine {
    /// read(2)
    Sync,
    /// pread(2), by as many threads as requests are in flight
    Psync,
    /// A mapped file
    Mmap,
    /// `io_uring`
    IoUring,
}

/// Ways to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheUse {
    /// Through the page cache, with read-ahead
    Buffered,
    /// Past the page cache (`O_DIRECT`)
    Direct,
}

/// Pages of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryPages {
    /// Huge ones where the kernel gives them, 2 MiB each
    Huge,
    /// Small ones only, 4 KiB each
    Small,
}

/// A read-ahead to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadAheadLevel {
    /// What is in force on the first path.
    Current,
    /// Bytes; 0 is none.
    Bytes(u64),
}

/// The plan: from its file, or of the request. The file that is read for a folder is reported.
///
/// # Errors
/// When the plan cannot be read or run, a folder has no file, or the read-ahead in force is not
/// known.
pub fn plan(request: &BenchReadRequest, notify: &dyn Notify) -> Result<Plan, Failure> {
    request.experiment.plan_or("read", || {
        let files = request.paths.iter().map(|path| file_of(path, notify));
        let paths = files.collect::<Result<Vec<PathBuf>, Failure>>()?;
        made(&BenchReadRequest { paths, ..request.clone() })
    })
}

/// The path itself, or the largest file in a folder: a stream is read from one file.
fn file_of(path: &Path, notify: &dyn Notify) -> Result<PathBuf, Failure> {
    let shown = path.display();
    let status = std::fs::metadata(path);
    let status = status
        .map_err(|error| Failure::of(format!("read {shown}: {}", with_causes(&error)), None))?;
    if !status.is_dir() {
        return Ok(path.to_owned());
    }
    let found = largest_below(path).map_err(|error| {
        let why = with_causes(&std::io::Error::from(error));
        Failure::of(format!("{shown}: {why}"), None)
    })?;
    let no_file = || {
        let hint = "name a large file on the same file system, or a block device";
        Failure::of(format!("{shown}: no file below this folder to read"), Some(hint))
    };
    let LargestFile { path: file, is_of_all } = found.ok_or_else(no_file)?;
    let most = if is_of_all { "the largest file in it" } else { "the largest file found in it" };
    let bytes = file.metadata().map_or(0, |status| status.len());
    notify.notify(&format!(
        "{} is a folder: reading {most}, {} ({})",
        escape_path(path),
        escape_path(&file),
        size(bytes)
    ));
    Ok(file)
}

/// Runs the experiment to its end.
///
/// # Errors
/// When it cannot begin or be recorded, no run succeeded, or a setting could not be restored.
pub fn run(
    begun: BegunExperiment,
    surroundings: &ExperimentSurroundings<'_>,
) -> Result<ExperimentDone, Failure> {
    begun.run(surroundings, |plan, _| executor(plan))
}

/// What runs the cells of a plan.
///
/// # Errors
/// When a path cannot be read, or its read-ahead not be set.
pub fn executor(plan: &Plan) -> Result<ReadExecutor, Failure> {
    ReadExecutor::new(plan, state::journal().as_deref()).map_err(failure)
}

fn failure(error: ReadBenchError) -> Failure {
    let hint = match &error {
        ReadBenchError::Storage(StorageError::Inspect { .. }) => None,
        ReadBenchError::Storage(error) => state::guard_hint(error).or_else(|| {
            Some("run it as root to set the read-ahead, or leave --read-ahead out".to_owned())
        }),
        _ => None,
    };
    Failure::new(&error, hint)
}

fn made(request: &BenchReadRequest) -> Result<Plan, Failure> {
    let paths: Vec<String> = request.paths.iter().map(|path| absolute(path)).collect();
    let factors: Vec<Factor> = [
        path_factor(&paths),
        factor("engine", words(&request.engines), None),
        factor("cache", words(&request.cache), None),
        factor("readers", numbers(&request.readers), None),
        factor("depth", numbers(&request.depth), None),
        read_ahead_factor(request)?,
        factor("pages", words(&request.pages), None),
        factor("block_bytes", numbers(&request.block_bytes), None),
    ]
    .into_iter()
    .flatten()
    .collect();
    Ok(Plan {
        paths,
        length_bytes: request.length_bytes,
        random_reads: request.random_reads,
        factors,
        ..request.experiment.empty_plan("read", Stop::default())
    })
}

/// Replaces `current` by the number in force on the first path.
fn read_ahead_factor(request: &BenchReadRequest) -> Result<Option<Factor>, Failure> {
    let Some(first) = request.paths.first().filter(|_| !request.read_ahead.is_empty()) else {
        return Ok(None);
    };
    let current = current_read_ahead(first)?;
    let one = |level: &ReadAheadLevel| match (level, current) {
        (ReadAheadLevel::Current, Some(bytes)) => Ok(bytes),
        (ReadAheadLevel::Current, None) => Err(Failure::of(
            format!("{}: the read-ahead of its device is unknown", first.display()),
            None,
        )),
        (ReadAheadLevel::Bytes(bytes), _) => Ok(*bytes),
    };
    let values = request.read_ahead.iter().map(one).collect::<Result<Vec<u64>, Failure>>()?;
    Ok(factor("read_ahead_bytes", numbers(&values), current.map(Level::Number)))
}

fn current_read_ahead(path: &Path) -> Result<Option<u64>, Failure> {
    // Restore first: settings that a killed experiment left are not the ones in force.
    state::recovered().map_err(|error| failure(ReadBenchError::Storage(error)))?;
    let storage = Storage::of(path).map_err(|error| failure(ReadBenchError::Storage(error)))?;
    storage.read_ahead_bytes().map_err(|error| failure(ReadBenchError::Storage(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::monitor::Silent;

    /// A folder used to be refused as "neither a file nor a block device".
    #[test]
    fn the_largest_file_of_a_folder_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let plan_of = || {
            let paths = vec![folder.path().to_owned()];
            plan(&BenchReadRequest { paths, ..BenchReadRequest::default() }, &Silent)
        };
        let empty = plan_of().unwrap_err().to_text();
        assert!(empty.contains("no file below this folder") && empty.contains("hint: "), "{empty}");
        std::fs::write(folder.path().join("small"), vec![1; 4096]).unwrap();
        let large = folder.path().join("large");
        std::fs::write(&large, vec![1; 1 << 20]).unwrap();
        assert_eq!(plan_of().unwrap().paths, [large.display().to_string()]);
    }
}
