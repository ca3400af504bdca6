//! `takeup capture`: what a process really does to its files.
//!
//! [`observe::capture::live`] makes operations of what the kernel records; [`subject`] is the
//! process, started here or found; [`job`] the load that fio is to make of it.

mod job;
mod subject;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use flow::cancel::Cancel;
use observe::capture::live::{Ended, Session};
use observe::capture::profile::{Limits, Profile, Profiler};
use observe::capture::{self, presentation};
use serde_json::json;
use trace::{TraceError, Tracefs};

use self::job::{JobArgs, Made, Wanted};
use self::subject::Subject;
use crate::failure::{FAILED, Failure};
use crate::outcome::to_standard_output;
use crate::quantity::{Size, Span};
use crate::terminal::{colour, to_standard_error};

/// Record what a process really does to its files
///
/// Records each read, write, sync and the like of a process, its threads and all that it starts, by
/// the kernel's own tracepoints: nothing is stopped, nothing is loaded into the kernel. At the end
/// it says of each file how it was used: by which calls, in which sizes, in which order, how deep,
/// and how often it was made sure of. What cannot be seen is told as such. Takes root's rights.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup capture --pid $(head -1 /var/lib/postgresql/17/main/postmaster.pid) --for 30s
  takeup capture -- tar cf - /srv > /dev/null
  takeup capture --import trace.strace
  takeup capture --pid 4711 --for 10s --json | jq '.files[] | {path, engine, calls}'
  takeup capture --pid 4711 --for 30s --fio load.fio --validate

Whatever a database writes through another process is recorded with the process that started
both: name the postmaster, not one of its backends.")]
pub struct CaptureArgs {
    /// A process that runs
    #[arg(
        long,
        value_name = "PID",
        required_unless_present_any = ["command", "import"],
        conflicts_with_all = ["command", "import"]
    )]
    pid: Option<u32>,
    /// A recording of others: what strace -f -ttt -T -yy, blkparse or fio --write_iolog wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "span", "buffer"])]
    import: Option<PathBuf>,
    /// Record for so long, such as 30s, 10m; a command is ended then
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Room for what was recorded and not yet read, on all processors together
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    buffer: Size,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    job: JobArgs,
    /// A command to start and record
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How a recording went.
#[derive(Default)]
struct Recorded {
    ended: Ended,
    /// How the command ended, if it did badly.
    failed: Option<String>,
    /// Somebody stopped it.
    is_stopped: bool,
    /// Of one that was imported, its lines.
    lines: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &CaptureArgs) -> ExitCode {
    let failure = match capture(arguments) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    if arguments.json {
        // The message on standard error tells the same, should this not be read.
        let _ = to_standard_output(failure.to_json("capture").as_bytes());
    }
    to_standard_error(&failure.to_text());
    ExitCode::from(FAILED)
}

fn capture(arguments: &CaptureArgs) -> Result<ExitCode, Failure> {
    let wanted = Wanted::of(&arguments.job)?;
    let mut profiler = Profiler::new(Limits::default());
    let cancel = Cancel::new();
    let recorded = match &arguments.import {
        Some(path) => {
            let imported = import(path, &mut profiler)?;
            crate::interrupt::watch(&cancel);
            imported
        }
        None => {
            crate::interrupt::watch(&cancel);
            let subject = match arguments.pid {
                Some(pid) => Subject::of(pid)?,
                None => Subject::start(&arguments.command)?,
            };
            let span = arguments.span.map(|span| Duration::from_secs_f64(span.0));
            record(arguments.buffer, span, subject, &cancel, &mut profiler)?
        }
    };
    let profile = profiler.profile();
    // A recording is not lost because nothing more can be made of it.
    let made = wanted.make(&profile, arguments.buffer, &cancel);
    let (made, failure) = match made {
        Ok(made) => (made, None),
        Err(failure) => (Made::default(), Some(failure)),
    };
    let code = print(arguments, &recorded, &profile, &made)?;
    if let Some(failure) = failure {
        to_standard_error(&failure.to_text());
        return Ok(ExitCode::from(FAILED));
    }
    Ok(code)
}

/// A recording of others. Ctrl-C ends it as it ends any program that only reads.
fn import(path: &Path, profiler: &mut Profiler) -> Result<Recorded, Failure> {
    let what = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| Failure::of(what(&error), None))?;
    let imported = capture::import::import(BufReader::new(file), profiler);
    let imported = imported.map_err(|error| Failure::of(what(&error), None))?;
    for sentence in imported.unseen {
        profiler.cannot_see(sentence);
    }
    Ok(Recorded { lines: Some(imported.lines), ..Recorded::default() })
}

/// Records until the process has ended, the time is over, or somebody stops it.
fn record(
    buffer: Size,
    span: Option<Duration>,
    mut subject: Subject,
    cancel: &Cancel,
    to: &mut Profiler,
) -> Result<Recorded, Failure> {
    let running = matches!(subject, Subject::Running(_)).then(|| subject.pid());
    let tracefs = Tracefs::open().map_err(|error| refusal(&error, running))?;
    let roots = [subject.pid()];
    let session = Session::begin(&tracefs, &roots, buffer.0, to);
    let mut session = session.map_err(|error| refusal(&error, running))?;
    let failure = |error: TraceError| Failure::new(&error, None);
    to.begin(trace::now_ns());
    subject.release()?;
    let begun = Instant::now();
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
    to.end(trace::now_ns());
    let ended = session.finish(to).map_err(failure)?;
    for sentence in &ended.unseen {
        to.cannot_see(sentence.clone());
    }
    Ok(Recorded { ended, failed, is_stopped, lines: None })
}

/// Why nothing can be recorded, with what `/proc` tells of a process that runs all the same.
fn refusal(error: &TraceError, pid: Option<u32>) -> Failure {
    let hint = match error {
        TraceError::NotAllowed => "run it as root, for example with sudo",
        TraceError::Container => "run it on the host: a container's processes are seen from there",
        TraceError::NoTracefs { .. } => "`mount -t tracefs none /sys/kernel/tracing`",
        TraceError::NoEvents => "`strace -f -ttt -T -yy -o FILE` records without them, slowly",
        _ => return Failure::new(error, None),
    };
    let counted = pid.and_then(|pid| Some((pid, host::processes::ProcessBytes::of(pid)?)));
    let counted = counted.map(|(pid, bytes)| {
        format!(
            "; /proc tells only that process {pid} has read {} in {} calls and written {} in {} \
             since it began",
            report::format::size(bytes.read_bytes),
            bytes.read_calls,
            report::format::size(bytes.written_bytes),
            bytes.write_calls
        )
    });
    Failure::new(error, Some(format!("{hint}{}", counted.unwrap_or_default())))
}

fn print(
    arguments: &CaptureArgs,
    recorded: &Recorded,
    profile: &Profile,
    made: &Made,
) -> Result<ExitCode, Failure> {
    if arguments.json {
        let mut document = json!(presentation::document(profile));
        document["command"] = json!("capture");
        match recorded.lines {
            Some(lines) => document["lines"] = json!(lines),
            None => document["events"] = json!(recorded.ended.events),
        }
        document["failed"] = json!(recorded.failed);
        document["is_stopped"] = json!(recorded.is_stopped);
        made.add_to(&mut document);
        to_standard_output(format!("{document:#}\n").as_bytes())?;
    } else {
        let text = presentation::text(profile, colour(&std::io::stdout()))
            + &made.text(colour(&std::io::stdout()));
        to_standard_output(text.as_bytes())?;
    }
    if let Some(how) = &recorded.failed {
        to_standard_error(&format!("takeup: the command ended with {how}\n"));
        return Ok(ExitCode::from(FAILED));
    }
    if recorded.is_stopped {
        to_standard_error("takeup: stopped; what was recorded until then is told\n");
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}
