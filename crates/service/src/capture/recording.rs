//! Records the calls of a process.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use capture::live::{RecordingEnd, Session};
use capture::profile::{Cost, Profiler};
use capture::trace::{TraceError, Tracefs};
use flow::cancel::Cancel;
use machine::counters::CounterError;
use machine::processes::ProcessTimes;
use watch::Reading;
use watch::beside::Beside;
use watch::live::WatchedDevices;

use super::leftovers::{GuardCommand, LeftoverGuard};
use super::process::CapturedProcess;
use crate::failure::Failure;

/// Events per second from which on their cost is reported.
const MANY_EVENTS: f64 = 100_000.0;

/// The outcome of a recording.
#[derive(Default)]
pub(super) struct Recorded {
    pub ended: RecordingEnd,
    /// The time of day at its beginning, in seconds since 1970.
    pub began_unix_seconds: f64,
    /// How the command failed, if it did.
    pub failed: Option<String>,
    /// A signal stopped it.
    pub is_stopped: bool,
    /// Readings of watched devices.
    pub beside: Option<Vec<Reading>>,
}

/// The means of recording.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub buffer_bytes: u64,
    pub tracefs: Option<&'a Path>,
    pub guard: GuardCommand,
}

impl Means<'_> {
    /// Begins a recording, if the kernel can record and this process may.
    pub fn begin(self, process: &CapturedProcess, to: &mut Profiler) -> Result<Begun, TraceError> {
        let tracefs = match self.tracefs {
            Some(folder) => Tracefs::at(folder)?,
            None => Tracefs::open()?,
        };
        let session = Session::begin(&tracefs, &[process.pid()], self.buffer_bytes, to)?;
        Ok(Begun { tracefs, session })
    }

    /// Starts the guard, which has to be there before anything that it removes.
    pub fn guard(self) -> LeftoverGuard {
        LeftoverGuard::start((self.guard)(self.tracefs))
    }
}

/// A recording that has begun.
pub(super) struct Begun {
    tracefs: Tracefs,
    session: Session,
}

/// Records until the process ends, the time is over, or a signal comes.
pub(super) fn record(
    begun: Begun,
    span: Option<Duration>,
    watched: Option<WatchedDevices>,
    mut process: CapturedProcess,
    cancel: &Cancel,
    to: &mut Profiler,
) -> Result<Recorded, Failure> {
    let Begun { tracefs, mut session } = begun;
    let failure = |error: TraceError| Failure::new(&error, None);
    let counters = |error: CounterError| Failure::new(&error, None);
    let beside = watched.map(Beside::begin).transpose().map_err(counters)?;
    // The same moment on three clocks: of events, of readings and of the day.
    let (begun, began) = (Instant::now(), SystemTime::now());
    to.begin(capture::trace::now_ns());
    let used_before = used_seconds();
    process.release()?;
    let mut is_stopped = false;
    while process.runs() {
        is_stopped = cancel.check().is_err();
        if is_stopped || span.is_some_and(|span| begun.elapsed() >= span) {
            break;
        }
        if !session.step(to).map_err(failure)? {
            std::thread::sleep(session.pause());
        }
    }
    let failed = process.end()?;
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
pub(super) fn hint(error: &TraceError) -> Option<&'static str> {
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

/// Why calls cannot be recorded, with what to do.
pub(super) fn refusal(error: &TraceError) -> Failure {
    Failure::new(error, hint(error).map(str::to_owned))
}
