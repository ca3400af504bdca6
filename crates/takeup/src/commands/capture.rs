//! `takeup capture`: records how a process uses its files.
//!
//! [`capture::live`] turns the kernel's events into operations. [`subject`] is the recorded
//! process, [`below`] finds the devices below its files, [`document`] makes the JSON and reads
//! records, [`job`] writes the load as a job for fio, [`sampling`] samples `/proc` where the kernel
//! cannot record.

mod below;
pub mod document;
mod guard;
mod job;
mod sampling;
mod subject;

use crate::exit_code::FailureExitCode as _;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use capture::live::{RecordingEnd, Session};
use capture::profile::{Cost, ProfileLimits, Profiler};
use capture::record::{Captured, Heading};
use capture::trace::{TraceError, Tracefs};
use clap::Args;
use flow::cancel::Cancel;
use machine::counters::CounterError;
use machine::processes::ProcessTimes;
use report::captures as presentation;
use screen::captured::{Together, devices_text};
use watch::Reading;
use watch::beside::Beside;
use watch::live::WatchedDevices;

use self::guard::Guard;
use self::job::{JobArgs, Made, WantedJob};
use self::subject::Subject;
use crate::exit_code::FAILED;
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use arguments::quantity::{Size, Span};
use service::failure::Failure;
use service::output_file::OutputFile;
use service::watch::watched;

/// Record how a process uses its files
///
/// Records each read, write, sync and the like of a process, its threads and its children with the
/// kernel's own tracepoints: the process is not stopped, and nothing is loaded into the kernel. At
/// the end Takeup reports for each file the calls, their sizes and order, the requests in flight,
/// and how often it was synced. What cannot be known is reported as such. Needs root; without it,
/// or on a kernel that cannot record calls, Takeup samples /proc instead.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup capture --pid $(head -1 /var/lib/postgresql/17/main/postmaster.pid) --for 30s
  takeup capture -- tar cf - /srv > /dev/null
  takeup capture --import trace.strace
  takeup capture --pid 4711 --for 10s --json | jq '.files[] | {path, engine, calls}'
  takeup capture --pid 4711 --for 30s --fio load.fio --validate
  takeup capture --watch --record load.ndjson -- fio load.fio
  takeup report load.ndjson -o load.html

Name the parent process of a database, such as the postmaster: that records all of its processes,
including those that write on behalf of others.")]
pub struct CaptureArgs {
    /// Record this running process
    #[arg(
        long,
        value_name = "PID",
        required_unless_present_any = ["command", "import", "from", "guard"],
        conflicts_with_all = ["command", "import", "from"]
    )]
    pid: Option<u32>,
    /// Import a recording of strace -f -ttt -T -yy, blkparse or fio --write_iolog
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "span", "buffer"])]
    import: Option<PathBuf>,
    /// Print a capture from a file that --record wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "span", "buffer", "import"])]
    from: Option<PathBuf>,
    /// Write the capture to this new file, for `takeup report` and --from
    #[arg(long, value_name = "FILE", conflicts_with_all = ["import", "from"])]
    record: Option<PathBuf>,
    /// Watch the block devices below the captured files, or the named ones, during the capture, as
    /// `takeup watch` does
    #[arg(long, value_name = "DEVICE", num_args = 0.., conflicts_with_all = ["import", "from"])]
    watch: Option<Vec<PathBuf>>,
    /// Stop recording after this time, such as 30s, 10m, and end the command
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Size of the kernel's buffers for recorded events, on all processors together
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    buffer: Size,
    /// The mount point of tracefs, if it is not a usual one
    #[arg(long, value_name = "FOLDER", conflicts_with = "import")]
    tracefs: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    job: JobArgs,
    /// Wait for the end of a capture and remove what it left (started by `takeup capture`)
    #[arg(long, hide = true)]
    guard: bool,
    /// Start this command and record it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Events per second from which on their cost is reported.
const MANY_EVENTS: f64 = 100_000.0;

/// The outcome of a recording.
#[derive(Default)]
struct Recorded {
    ended: RecordingEnd,
    /// The time of day at its beginning, in seconds since 1970.
    began_unix_seconds: f64,
    /// How the command failed, if it did.
    failed: Option<String>,
    /// A signal stopped it.
    is_stopped: bool,
    /// Readings of watched devices.
    beside: Option<Vec<Reading>>,
}

/// A capture to report: recorded now, read from a record, or imported.
struct Told {
    captured: Captured,
    /// Number of lines, if it was imported.
    lines: Option<u64>,
    /// Why the record could not be written.
    not_kept: Option<Failure>,
}

/// Runs the command.
pub fn run(arguments: &CaptureArgs) -> ExitCode {
    if arguments.guard {
        return guard::run(arguments.tracefs.as_deref());
    }
    let failure = match capture(arguments) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    if arguments.json {
        // The message on standard error repeats it if this write fails.
        let _ = to_standard_output(failure.to_json("capture").as_bytes());
    }
    to_standard_error(&failure.to_text());
    failure.exit_code()
}

/// The means of recording.
#[derive(Clone, Copy)]
struct Means<'a> {
    buffer: Size,
    tracefs: Option<&'a Path>,
}

impl Means<'_> {
    /// Begins a recording, if the kernel can record and this process may.
    fn begin(self, subject: &Subject, to: &mut Profiler) -> Result<Begun, TraceError> {
        let tracefs = match self.tracefs {
            Some(folder) => Tracefs::at(folder)?,
            None => Tracefs::open()?,
        };
        let guard = Guard::start(self.tracefs);
        let session = Session::begin(&tracefs, &[subject.pid()], self.buffer.0, to)?;
        Ok(Begun { tracefs, session, guard })
    }
}

/// A recording that has begun.
struct Begun {
    tracefs: Tracefs,
    session: Session,
    guard: Guard,
}

fn capture(arguments: &CaptureArgs) -> Result<ExitCode, Failure> {
    let wanted = WantedJob::of(&arguments.job)?;
    let means = Means { buffer: arguments.buffer, tracefs: arguments.tracefs.as_deref() };
    let cancel = Cancel::new();
    let told = match (&arguments.import, &arguments.from) {
        (Some(path), _) => {
            let imported = import(path)?;
            crate::interrupt::watch(&cancel);
            imported
        }
        (None, Some(path)) => {
            let captured = document::read(path)?;
            if captured.is_cut {
                to_standard_error(&report::watch::cut(path));
            }
            crate::interrupt::watch(&cancel);
            Told { captured, lines: None, not_kept: None }
        }
        (None, None) => match now(arguments, means, wanted.is_any(), &cancel)? {
            ControlFlow::Continue(told) => told,
            ControlFlow::Break(code) => return Ok(code),
        },
    };
    // A recording is printed even if it cannot be written, or no job can be made.
    let made = wanted.make(&told.captured.profile, means, &cancel);
    let (made, failure) = match made {
        Ok(made) => (made, None),
        Err(failure) => (Made::default(), Some(failure)),
    };
    let code = print(arguments, &told, &made)?;
    let failures = [told.not_kept, failure];
    for failure in failures.iter().flatten() {
        to_standard_error(&failure.to_text());
    }
    let has_failed = failures.iter().any(Option::is_some);
    Ok(if has_failed { ExitCode::from(FAILED) } else { code })
}

/// Records a process now, and writes the record if asked. Where calls cannot be recorded, prints
/// samples of `/proc` instead and breaks.
fn now(
    arguments: &CaptureArgs,
    means: Means<'_>,
    wants_job: bool,
    cancel: &Cancel,
) -> Result<ControlFlow<ExitCode, Told>, Failure> {
    let watched = arguments.watch.as_deref().map(watched).transpose()?;
    let file = arguments.record.as_deref().map(OutputFile::open_new).transpose()?;
    let mut profiler = Profiler::new(ProfileLimits::default());
    crate::interrupt::watch(cancel);
    let (subject, name) = match arguments.pid {
        Some(pid) => (Subject::of(pid)?, format!("process {pid}")),
        None => (Subject::start(&arguments.command)?, arguments.command.join(" ")),
    };
    let span = arguments.span.map(|span| Duration::from_secs_f64(span.0));
    let begun = match means.begin(&subject, &mut profiler) {
        Ok(begun) => begun,
        Err(error) if wants_job => return Err(no_calls("job", &error)),
        Err(error) if file.is_some() || watched.is_some() => {
            return Err(no_calls("record", &error));
        }
        Err(error) => {
            let told = sampling::sample(&error, span, subject, cancel)?;
            return sampling::print(arguments, &told).map(ControlFlow::Break);
        }
    };
    let recorded = record(begun, span, watched, subject, cancel, &mut profiler)?;
    let profile = profiler.profile();
    let mut beside = recorded.beside;
    if let Some(readings) = &mut beside
        && arguments.watch.as_ref().is_some_and(Vec::is_empty)
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
    let not_kept = kept.and_then(Result::err);
    Ok(ControlFlow::Continue(Told { captured, lines: None, not_kept }))
}

/// Imports a recording of another tool. Ctrl-C ends it as it ends any program that only reads.
fn import(path: &Path) -> Result<Told, Failure> {
    let mut profiler = Profiler::new(ProfileLimits::default());
    let what = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| Failure::of(what(&error), None))?;
    let imported = capture::import::import(BufReader::new(file), &mut profiler);
    let imported = imported.map_err(|error| Failure::of(what(&error), None))?;
    for sentence in imported.unseen {
        profiler.cannot_see(sentence);
    }
    let captured = Captured { profile: profiler.profile(), ..Captured::default() };
    Ok(Told { captured, lines: Some(imported.lines), not_kept: None })
}

/// Records until the process ends, the time is over, or a signal comes.
fn record(
    begun: Begun,
    span: Option<Duration>,
    watched: Option<WatchedDevices>,
    mut subject: Subject,
    cancel: &Cancel,
    to: &mut Profiler,
) -> Result<Recorded, Failure> {
    let Begun { tracefs, mut session, guard: _guard } = begun;
    let failure = |error: TraceError| Failure::new(&error, None);
    let counters = |error: CounterError| Failure::new(&error, None);
    let beside = watched.map(Beside::begin).transpose().map_err(counters)?;
    // The same moment on three clocks: of events, of readings and of the day.
    let (begun, began) = (Instant::now(), SystemTime::now());
    to.begin(capture::trace::now_ns());
    let used_before = used_seconds();
    subject.release()?;
    let mut is_stopped = false;
    while subject.runs() {
        is_stopped = cancel.check().is_err();
        if is_stopped || span.is_some_and(|span| begun.elapsed() >= span) {
            break;
        }
        if !session.step(to).map_err(failure)? {
            std::thread::sleep(session.pause());
        }
    }
    let failed = subject.end()?;
    to.end(capture::trace::now_ns());
    let seconds = begun.elapsed().as_secs_f64();
    let beside = beside.map(|beside| beside.finish(begun)).transpose().map_err(counters)?;
    let ended = session.finish(to).map_err(failure)?;
    let recorder_seconds = used_seconds() - used_before;
    let events_per_second = (ended.events + ended.lost_events) as f64 / seconds.max(1e-3);
    // If the cost cannot be measured, the recording is reported without it.
    if events_per_second >= MANY_EVENTS
        && let Ok(cost) = capture::trace::Cost::measure(&tracefs)
    {
        let event_seconds = cost.event_seconds();
        to.cost(Cost { events_per_second, event_seconds, recorder_seconds });
    }
    for sentence in &ended.unseen {
        to.cannot_see(sentence.clone());
    }
    let began_unix_seconds = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Ok(Recorded { ended, began_unix_seconds, failed, is_stopped, beside })
}

/// Processor time of this process.
fn used_seconds() -> f64 {
    ProcessTimes::of(std::process::id()).map_or(0.0, |times| times.used_seconds())
}

/// A hint where calls cannot be recorded.
fn hint(error: &TraceError) -> Option<&'static str> {
    match error {
        TraceError::NotAllowed => Some("run it as root, for example with sudo"),
        TraceError::Container => {
            Some("run it on the host, which sees the processes of the container")
        }
        TraceError::NoTracefs { .. } => Some("`mount -t tracefs none /sys/kernel/tracing`"),
        TraceError::NoEvents => Some(
            "record with `strace -f -ttt -T -yy -o FILE`, which is slow, and use --import FILE",
        ),
        _ => None,
    }
}

fn refusal(error: &TraceError) -> Failure {
    Failure::new(error, hint(error).map(str::to_owned))
}

/// The failure for a job or a record, which need recorded calls.
fn no_calls(what: &str, error: &TraceError) -> Failure {
    let why = refusal(error);
    let text = format!("cannot write the {what}: calls cannot be recorded: {}", why.message());
    Failure::of(text, hint(error))
}

fn print(arguments: &CaptureArgs, told: &Told, made: &Made) -> Result<ExitCode, Failure> {
    let captured = &told.captured;
    let together = Together::of(captured);
    if arguments.json {
        let mut document = document::of(&together, "capture");
        if let Some(lines) = told.lines {
            document::imported(&mut document, lines);
        }
        made.add_to(&mut document);
        to_standard_output(format!("{document:#}\n").as_bytes())?;
    } else {
        let colour = colour(&std::io::stdout());
        let text = presentation::text(&captured.profile, colour)
            + &devices_text(&together, colour)
            + &made.text(colour);
        to_standard_output(text.as_bytes())?;
    }
    if arguments.from.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    let heading = &captured.heading;
    let stopped = "the report covers the time until then";
    Ok(how_it_went(heading.failed.as_deref(), heading.is_stopped.then_some(stopped)))
}

/// Prints how the command failed, or that a signal stopped the capture.
fn how_it_went(failed: Option<&str>, stopped: Option<&str>) -> ExitCode {
    if let Some(how) = failed {
        to_standard_error(&format!("takeup: the command ended with {how}\n"));
        return ExitCode::from(FAILED);
    }
    if let Some(stopped) = stopped {
        to_standard_error(&format!("takeup: stopped; {stopped}\n"));
        return ExitCode::from(FAILED);
    }
    ExitCode::SUCCESS
}
