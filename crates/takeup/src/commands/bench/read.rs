//! `takeup bench read`: the rate of a single stream.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use experiment::plan::Plan;
use experiment::record::{Factor, Level};
use loads::read::{ReadError, ReadExecutor, path_factor};
use storage::layers::Storage;

use super::options::{ExperimentArgs, bytes_or_zero, factor, numbers};
use crate::outcome::end;
use arguments::quantity::Size;
use service::failure::Failure;
use service::outcome::Outcome;

/// Measure what a backup's single stream gets from files or block devices
///
/// Takeup writes nothing to PATH. It drops the pages of PATH from the page cache before every run.
/// With --read-ahead it changes the setting of the device behind PATH for the runs and restores it
/// at the end, also after a crash (`takeup bench put-back`). Separate the items of a list by
/// commas; Takeup runs every combination that makes sense.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench read /srv/images/big.img
  takeup bench read /dev/sdx --read-ahead current,128k,512k,2M,8M --cache buffered
  takeup bench read big.img --engines psync,io_uring --cache direct --depth 1,2,4,8,16
  takeup bench read big.img --read-ahead 128k,4M --print-plan >plan.toml
  takeup report takeup-bench-read.ndjson --html report.html

PATH should be larger than --length, and --length so large that a run takes a second.")]
pub struct ReadArgs {
    /// Files or block devices
    #[arg(value_name = "PATH", required_unless_present = "plan")]
    paths: Vec<PathBuf>,
    /// Calls to read with
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "psync")]
    engines: Vec<ReadEngine>,
    /// Through the page cache, or past it
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "buffered,direct")]
    cache: Vec<ReadCache>,
    /// Bytes of one request
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "64k,256k,1M,4M"
    )]
    block_size: Vec<Size>,
    /// Read-ahead to set; 'current' is what is in force, 0 is none
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    read_ahead: Vec<String>,
    /// Requests in flight at once, for psync and io_uring
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1")]
    depth: Vec<u64>,
    /// Readers that take turns with the blocks of the one stream
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1")]
    readers: Vec<u64>,
    /// Pages of the memory that is read into
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "huge")]
    pages: Vec<Pages>,
    /// Bytes of one run, from the start of PATH
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    length: Size,
    /// Reads at random places after each buffered run, to measure what the read-ahead costs other
    /// reads
    #[arg(long, value_name = "N", default_value_t = 32)]
    random_reads: u64,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Calls that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReadEngine {
    /// read(2)
    Sync,
    /// pread(2), by as many threads as requests are in flight
    Psync,
    /// A mapped file
    Mmap,
    /// io_uring
    #[value(name = "io_uring")]
    IoUring,
}

/// Ways to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReadCache {
    /// Through the page cache, with read-ahead
    Buffered,
    /// Past the page cache (O_DIRECT)
    Direct,
}

/// Pages of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pages {
    /// Huge ones where the kernel gives them, 2 MiB each
    Huge,
    /// Small ones only, 4 KiB each
    Small,
}

/// Runs the command.
pub fn run(arguments: &ReadArgs) -> ExitCode {
    end(measure(arguments), "bench read", arguments.experiment.form())
}

fn measure(arguments: &ReadArgs) -> Result<Outcome, Failure> {
    let plan = match arguments.experiment.plan_from_file("read")? {
        Some(plan) => plan,
        None => plan(arguments)?,
    };
    super::experiment(plan, &arguments.experiment, |plan, _| {
        ReadExecutor::new(plan, service::state::journal().as_deref()).map_err(failure)
    })
}

fn failure(error: ReadError) -> Failure {
    let hint = match &error {
        ReadError::Settings(error) => service::state::guard_hint(error).or_else(|| {
            Some("run it as root to set the read-ahead, or leave --read-ahead out".to_owned())
        }),
        _ => None,
    };
    Failure::new(&error, hint)
}

fn plan(arguments: &ReadArgs) -> Result<Plan, Failure> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let paths: Vec<String> =
        arguments.paths.iter().map(absolute).map(|path| path.display().to_string()).collect();
    let names = |list: Vec<String>| list.into_iter().map(Level::Text).collect::<Vec<Level>>();
    let engines = names(arguments.engines.iter().map(value_name).collect());
    let cache = names(arguments.cache.iter().map(value_name).collect());
    let factors: Vec<Factor> = [
        path_factor(&paths),
        factor("engine", engines, None),
        factor("cache", cache, None),
        factor("readers", numbers(arguments.readers.iter().copied()), None),
        factor("depth", numbers(arguments.depth.iter().copied()), None),
        read_ahead_factor(arguments)?,
        factor("pages", names(arguments.pages.iter().map(value_name).collect()), None),
        factor("block_bytes", numbers(arguments.block_size.iter().map(|size| size.0)), None),
    ]
    .into_iter()
    .flatten()
    .collect();
    Ok(Plan {
        kind: "read".to_owned(),
        title: arguments.experiment.title.clone(),
        paths,
        length_bytes: arguments.length.0,
        seed: arguments.experiment.seed(),
        stop: arguments.experiment.stop(),
        random_reads: arguments.random_reads,
        run_seconds: 0.0,
        commands: None,
        factors,
    })
}

/// Replaces `current` by the number in force on the first path.
fn read_ahead_factor(arguments: &ReadArgs) -> Result<Option<Factor>, Failure> {
    let Some(first) = arguments.paths.first().filter(|_| !arguments.read_ahead.is_empty()) else {
        return Ok(None);
    };
    let current = current_read_ahead(first)?;
    let one = |text: &String| match (text.as_str(), current) {
        ("current", Some(bytes)) => Ok(bytes),
        ("current", None) => Err(Failure::of(
            format!("{}: the read-ahead of its device is unknown", first.display()),
            None,
        )),
        (text, _) => bytes_or_zero(text)
            .map_err(|error| Failure::of(format!("--read-ahead {text}: {error}"), None)),
    };
    let values: Result<Vec<u64>, Failure> = arguments.read_ahead.iter().map(one).collect();
    Ok(factor("read_ahead_bytes", numbers(values?), current.map(Level::Number)))
}

fn current_read_ahead(path: &Path) -> Result<Option<u64>, Failure> {
    // Restore first: settings that a killed experiment left are not the ones in force.
    service::state::recovered().map_err(|error| failure(ReadError::Settings(error)))?;
    let storage = Storage::of(path).map_err(|error| failure(ReadError::Storage(error)))?;
    storage.read_ahead_bytes().map_err(|error| failure(ReadError::Settings(error.into())))
}

fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
