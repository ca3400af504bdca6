//! Records how a process uses its files.
//!
//! [`capture::live`] turns the kernel's events into operations. `process` is the recorded process,
//! `below` finds the devices below its files, `job` writes the load as a job for fio, `sampling`
//! samples `/proc` where the kernel cannot record, [`leftovers`] removes what a killed capture
//! leaves.

mod answer;
mod below;
mod job;
pub mod leftovers;
mod process;
mod recording;
mod sampled_answer;
mod sampling;
mod together;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::profile::{ProfileLimits, Profiler};
use capture::record::{CaptureRecordError, Captured, Heading};
use capture::sampled::Sampled;
use capture::trace::TraceError;
use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::live::WatchedDevices;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output_file::OutputFile;
use crate::watch::watched;

pub use answer::{
    CallsAnswer, CaptureAnswer, CapturedAnswer, ImportedAnswer, JobAnswer, RanAnswer,
    RanStageAnswer, RecordedAnswer,
};
use job::WantedJob;
pub use job::{JobRequest, MadeJob};
use leftovers::GuardCommand;
use process::CapturedProcess;
use recording::{Means, record, refusal};
pub use sampled_answer::{CallsUnknown, EventsUnknown, SampledAnswer, SampledFileAnswer};
pub use together::{Ran, Together};

/// What to capture, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureRequest {
    /// What is captured or read.
    pub source: CaptureSource,
    /// Write the capture to this new file.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Watch these block devices meanwhile; where none is named, those below the captured files.
    #[serde(default)]
    pub watch: Option<Vec<PathBuf>>,
    /// Stop recording after this time, and end the command.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Size of the kernel's buffers for recorded events, on all processors together.
    #[serde(default = "usual_buffer_bytes")]
    pub buffer_bytes: u64,
    /// The mount point of tracefs, if it is not a usual one.
    #[serde(default)]
    pub tracefs: Option<PathBuf>,
    /// The job for fio.
    #[serde(default)]
    pub job: JobRequest,
}

fn usual_buffer_bytes() -> u64 {
    64 << 20
}

/// What is captured or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSource {
    /// A running process, by its number.
    Process(u32),
    /// A command, which Takeup starts, word by word.
    Command(Vec<String>),
    /// A recording of strace -f -ttt -T -yy, blkparse or fio --write_iolog.
    Import(PathBuf),
    /// A record of a capture.
    Record(PathBuf),
}

/// Follows a capture.
pub trait CaptureObserver {
    /// Calls cannot be recorded for this reason: `/proc` is sampled from now on.
    fn samples_instead(&mut self, why: &Failure);
}

/// A capture to report.
#[derive(Debug)]
pub enum CaptureDone {
    /// Calls were recorded now, read from a record, or imported.
    Calls(Box<CapturedCalls>),
    /// `/proc` was sampled instead.
    Samples(Box<CapturedSamples>),
}

/// A capture of calls.
#[derive(Debug)]
pub struct CapturedCalls {
    /// The capture.
    pub captured: Captured,
    /// Number of lines, if it was imported.
    pub lines: Option<u64>,
    /// The job for fio.
    pub job: MadeJob,
    /// Why the record could not be written, or the job not be made.
    pub failures: Vec<Failure>,
    /// How it ended; a capture that is read has ended well.
    pub end: CaptureEnd,
}

/// Samples of `/proc`, and how they ended.
#[derive(Debug)]
pub struct CapturedSamples {
    /// The samples.
    pub sampled: Sampled,
    /// Why nothing was recorded.
    pub why: String,
    /// How the command failed, if it did.
    pub failed: Option<String>,
    /// A signal stopped it.
    pub is_stopped: bool,
}

/// How a capture ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// The process ended well, or the time was over.
    Done,
    /// The command failed, in words.
    Failed(String),
    /// A signal stopped the capture.
    Stopped,
}

impl CaptureEnd {
    fn of(failed: Option<&str>, is_stopped: bool) -> CaptureEnd {
        match failed {
            Some(how) => CaptureEnd::Failed(how.to_owned()),
            None if is_stopped => CaptureEnd::Stopped,
            None => CaptureEnd::Done,
        }
    }
}

impl CaptureDone {
    /// How it ended.
    pub fn end(&self) -> CaptureEnd {
        match self {
            CaptureDone::Calls(calls) => calls.end.clone(),
            CaptureDone::Samples(it) => CaptureEnd::of(it.failed.as_deref(), it.is_stopped),
        }
    }

    /// What could not be written.
    pub fn failures(&self) -> &[Failure] {
        match self {
            CaptureDone::Calls(calls) => &calls.failures,
            CaptureDone::Samples(_) => &[],
        }
    }

    /// The outcome of the command.
    pub fn outcome(&self) -> Outcome {
        let is_good = self.end() == CaptureEnd::Done && self.failures().is_empty();
        if is_good { Outcome::Done } else { Outcome::Bad }
    }
}

/// A capture whose request has been checked.
pub struct Capturing<'a> {
    request: &'a CaptureRequest,
    wanted: WantedJob<'a>,
    source: Source,
}

enum Source {
    /// Read from a record or imported, with its number of lines.
    Read(Box<Captured>, Option<u64>),
    Now {
        watched: Option<WatchedDevices>,
        file: Option<OutputFile>,
    },
}

impl<'a> Capturing<'a> {
    /// Checks the request and opens the outputs; reads a record or a recording of another tool. So
    /// far a signal may end the program.
    ///
    /// # Errors
    /// When the request cannot be met, or the file cannot be read.
    pub fn prepare(request: &'a CaptureRequest) -> Result<Capturing<'a>, Failure> {
        let wanted = WantedJob::of(&request.job)?;
        let source = match &request.source {
            CaptureSource::Import(_) | CaptureSource::Record(_)
                if request.record.is_some() || request.watch.is_some() =>
            {
                let hint = "omit --record and --watch";
                return Err(Failure::of("only a new capture is recorded or watched", Some(hint)));
            }
            CaptureSource::Import(path) => {
                let (captured, lines) = import(path)?;
                Source::Read(Box::new(captured), Some(lines))
            }
            CaptureSource::Record(path) => Source::Read(Box::new(read_record(path)?), None),
            CaptureSource::Process(_) | CaptureSource::Command(_) => Source::Now {
                watched: request.watch.as_deref().map(watched).transpose()?,
                file: request.record.as_deref().map(OutputFile::open_new).transpose()?,
            },
        };
        Ok(Capturing { request, wanted, source })
    }

    /// The record whose end is missing.
    pub fn cut_record(&self) -> Option<&Path> {
        match (&self.source, &self.request.source) {
            (Source::Read(captured, _), CaptureSource::Record(path)) if captured.is_cut => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Captures, writes the record, and makes the job. `guard` starts this program again, to remove
    /// what is left if this one is killed.
    ///
    /// # Errors
    /// When there is nothing to report.
    pub fn run(
        self,
        guard: GuardCommand,
        cancel: &Cancel,
        observer: &mut dyn CaptureObserver,
    ) -> Result<CaptureDone, Failure> {
        let Capturing { request, wanted, source } = self;
        let means = Means {
            buffer_bytes: request.buffer_bytes,
            tracefs: request.tracefs.as_deref(),
            guard,
        };
        let mut calls = match source {
            Source::Read(captured, lines) => CapturedCalls::read(*captured, lines, request),
            Source::Now { watched, file } => {
                let now = Now { request, means, watched, file, wants_job: wanted.is_any() };
                match now.capture(cancel, observer)? {
                    CaptureDone::Calls(calls) => *calls,
                    samples @ CaptureDone::Samples(_) => return Ok(samples),
                }
            }
        };
        // A recording is reported even if it cannot be written, or no job can be made.
        match wanted.make(&calls.captured.profile, means, cancel) {
            Ok(made) => calls.job = made,
            Err(failure) => calls.failures.push(failure),
        }
        Ok(CaptureDone::Calls(Box::new(calls)))
    }
}

impl CapturedCalls {
    fn read(captured: Captured, lines: Option<u64>, request: &CaptureRequest) -> CapturedCalls {
        let is_record = matches!(request.source, CaptureSource::Record(_));
        CapturedCalls {
            end: if is_record { CaptureEnd::Done } else { end_of(&captured.heading) },
            captured,
            lines,
            job: MadeJob::default(),
            failures: Vec::new(),
        }
    }
}

fn end_of(heading: &Heading) -> CaptureEnd {
    CaptureEnd::of(heading.failed.as_deref(), heading.is_stopped)
}

/// A capture of a process that runs now.
struct Now<'a> {
    request: &'a CaptureRequest,
    means: Means<'a>,
    watched: Option<WatchedDevices>,
    file: Option<OutputFile>,
    wants_job: bool,
}

impl Now<'_> {
    /// Records, and writes the record if asked. Where calls cannot be recorded, samples `/proc`.
    fn capture(
        self,
        cancel: &Cancel,
        observer: &mut dyn CaptureObserver,
    ) -> Result<CaptureDone, Failure> {
        let Now { request, means, watched, file, wants_job } = self;
        let mut profiler = Profiler::new(ProfileLimits::default());
        let mut guard = means.guard();
        let (process, name) = match &request.source {
            CaptureSource::Process(pid) => (CapturedProcess::of(*pid)?, format!("process {pid}")),
            CaptureSource::Command(words) => {
                (CapturedProcess::start(words, &mut guard)?, words.join(" "))
            }
            CaptureSource::Import(path) | CaptureSource::Record(path) => {
                return Err(Failure::of(format!("{} is no process", path.display()), None));
            }
        };
        let span =
            request.seconds.map(|it| Duration::try_from_secs_f64(it).unwrap_or(Duration::MAX));
        let begun = match means.begin(&process, &mut profiler) {
            Ok(begun) => begun,
            Err(error) if wants_job => return Err(no_calls("job", &error)),
            Err(error) if file.is_some() || watched.is_some() => {
                return Err(no_calls("record", &error));
            }
            Err(error) => {
                let why = refusal(&error);
                observer.samples_instead(&why);
                let samples = sampling::sample(&why, span, process, cancel)?;
                return Ok(CaptureDone::Samples(Box::new(samples)));
            }
        };
        let recorded = record(begun, span, watched, process, cancel, &mut profiler)?;
        let profile = profiler.profile();
        let mut beside = recorded.beside;
        if let Some(readings) = &mut beside
            && request.watch.as_ref().is_some_and(Vec::is_empty)
        {
            below::keep(readings, &below::devices(&profile));
        }
        let heading = Heading {
            began_unix_seconds: recorded.began_unix_seconds,
            subject: name,
            events: recorded.ended.events,
            failed: recorded.failed,
            is_stopped: recorded.is_stopped,
        };
        let captured = Captured { heading, profile, beside, is_cut: false };
        let kept = file.map(|mut file| {
            file.write(&captured.to_lines())?;
            file.complete()
        });
        let failures = kept.and_then(Result::err).into_iter().collect();
        let (end, job) = (end_of(&captured.heading), MadeJob::default());
        let calls = CapturedCalls { captured, lines: None, job, failures, end };
        Ok(CaptureDone::Calls(Box::new(calls)))
    }
}

/// Imports a recording of another tool, and counts its lines.
fn import(path: &Path) -> Result<(Captured, u64), Failure> {
    let mut profiler = Profiler::new(ProfileLimits::default());
    let what = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| Failure::of(what(&error), None))?;
    let imported = capture::import::import(BufReader::new(file), &mut profiler);
    let imported = imported.map_err(|error| Failure::of(what(&error), None))?;
    for sentence in imported.unseen {
        profiler.cannot_see(sentence);
    }
    let captured = Captured { profile: profiler.profile(), ..Captured::default() };
    Ok((captured, imported.lines))
}

/// Reads the record of a capture.
///
/// # Errors
/// When the file is not a record of a capture.
pub fn read_record(path: &Path) -> Result<Captured, Failure> {
    Captured::read(path).map_err(|error| {
        let hint = match &error {
            CaptureRecordError::NoRecord { .. } => {
                Some("make one with `takeup capture --record FILE`")
            }
            CaptureRecordError::Empty { .. } => {
                Some("capture again: this file has nothing to show")
            }
            _ => None,
        };
        Failure::new(&error, hint.map(str::to_owned))
    })
}

/// The failure for a job or a record, which need recorded calls.
fn no_calls(what: &str, error: &TraceError) -> Failure {
    let why = refusal(error);
    let text = format!("cannot write the {what}: calls cannot be recorded: {}", why.message());
    Failure::of(text, recording::hint(error))
}
