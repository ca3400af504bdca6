//! Measures the cost of a recorded call: times own calls with and without recording.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use crate::trace::WantedEvent;
use crate::trace::error::TraceError;
use crate::trace::recorder::{Recorder, RecorderOptions};
use crate::trace::tracefs::Tracefs;

/// Calls that are timed at once, and how often: the fastest time is the least disturbed.
const CALLS: u32 = 2000;
const ROUNDS: usize = 9;
/// Room for them, beyond which the oldest are written over.
const BUFFER_BYTES: u64 = 1 << 20;
const EVENTS: &[WantedEvent] = &[
    WantedEvent::new("syscalls", "sys_enter_pread64", &["fd", "count", "pos"]),
    WantedEvent::new("syscalls", "sys_exit_pread64", &["ret"]),
    // Never called here: a capture has two sets of buffers, and each call passes both.
    WantedEvent::new("syscalls", "sys_enter_close", &["fd"]).urgent(),
    WantedEvent::new("syscalls", "sys_exit_close", &["ret"]).urgent(),
];

/// What a call takes, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// While no process is recorded.
    pub alone_ns: f64,
    /// While its two events are.
    pub recorded_ns: f64,
}

impl Cost {
    /// Times some ten thousand calls of this thread, within some hundredths of a second. Another
    /// recording at the same time would make them slower.
    ///
    /// # Errors
    /// When the kernel does not record.
    pub fn measure(tracefs: &Tracefs) -> Result<Cost, TraceError> {
        let path = Path::new("/dev/zero");
        let file = File::open(path).map_err(|source| TraceError::File {
            what: "open",
            path: path.into(),
            source,
        })?;
        let alone_ns = fastest_ns(&file);
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let threads = [own];
        let options = RecorderOptions {
            events: EVENTS,
            everywhere: &[],
            threads: &threads,
            buffer_bytes: BUFFER_BYTES,
        };
        let mut recorder = Recorder::new(tracefs, &options)?;
        recorder.start()?;
        let recorded_ns = fastest_ns(&file);
        drop(recorder);
        // Before and after: a processor that others use for a while is not a cheap recording.
        let alone_ns = alone_ns.min(fastest_ns(&file));
        Ok(Cost { alone_ns, recorded_ns })
    }

    /// What one event adds, in s; a call has two.
    pub fn event_seconds(&self) -> f64 {
        (self.recorded_ns - self.alone_ns).max(0.0) / 2.0 / 1e9
    }
}

fn fastest_ns(file: &File) -> f64 {
    let mut byte = [0];
    let mut round = || {
        let begun = Instant::now();
        for _ in 0..CALLS {
            // Whatever it answers took its time.
            let _ = file.read_at(&mut byte, 0);
        }
        begun.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}
