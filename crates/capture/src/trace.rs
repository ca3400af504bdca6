//! System calls and requests of other programs, from the kernel's tracepoints.
//!
//! A [`Recorder`] has instances of tracefs of its own (Documentation/trace/ftrace.rst): sets of
//! buffers that no other program reads, on the kernel's monotonic clock. One has the chosen events
//! of the chosen threads, one those of them that must be known before their turn
//! ([`Recorder::look_ahead`]), one events of everybody. What it reads there are [`page`]s of binary
//! events, each laid out as its [`mod@format`] file says, and it hands them out as [`Event`]s in
//! the order of their times. Nothing is stopped, as ptrace would, and nothing is loaded into the
//! kernel.
//!
//! Pages are read by `read(2)` of `trace_pipe_raw`, so there is no mapped memory and no `unsafe`
//! here. `perf_event_open(2)` would need both, and a descriptor for each event on each processor
//! for each thread; here there are at most three descriptors for each processor. It is
//! also the cheaper of the two (`cargo run --release -p capture --example cost`).
//!
//! What tracepoints cannot show:
//! - Arguments that are pointers: the name behind an `openat`, the requests behind an `io_submit`,
//!   the lengths behind a `readv`. Only the pointer is recorded.
//! - Threads that the kernel starts for a ring of io_uring do not come from a system call, so the
//!   filter by thread does not follow them: [`Recorder::follow`] adds them, and events of rings are
//!   recorded for all processes, and distinguished by their ring.
//! - What happened while a buffer was full: [`Recorder::lost`] counts it.
//! - The thread, from within a container: thread numbers are those of the host.
//!
//! [`crate::live`] interprets the events.

mod cost;
mod error;
pub mod format;
mod instance;
mod merge;
pub mod page;
mod recorder;
mod tracefs;

pub use cost::Cost;
pub use error::{LayoutError, TraceError};
pub use recorder::{Recorder, RecorderOptions, now_ns};
pub use tracefs::Tracefs;

/// More fields of one event are not read.
pub const FIELDS_MAX: usize = 6;

/// An event that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WantedEvent {
    /// Its group, such as `syscalls`.
    pub system: &'static str,
    /// Its name in the group.
    pub name: &'static str,
    /// The fields that are read, at most [`FIELDS_MAX`].
    pub fields: &'static [&'static str],
    /// Whether it is told before its turn comes as well: [`Recorder::look_ahead`].
    pub is_urgent: bool,
}

impl WantedEvent {
    /// An event that has its turn.
    pub const fn new(
        system: &'static str,
        name: &'static str,
        fields: &'static [&'static str],
    ) -> WantedEvent {
        WantedEvent { system, name, fields, is_urgent: false }
    }

    /// The same, told ahead.
    pub const fn urgent(self) -> WantedEvent {
        WantedEvent { is_urgent: true, ..self }
    }
}

/// An event as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ns of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The thread that was on the processor (`common_pid`).
    pub thread: u32,
    /// Which of the wanted events it is, from 0.
    pub kind: u16,
    /// Which of the values are there, a bit each.
    known: u8,
    values: [u64; FIELDS_MAX],
}

impl Event {
    /// A made-up event, for tests.
    pub fn made(time_ns: u64, thread: u32, kind: u16, fields: &[u64]) -> Event {
        let mut values = [0; FIELDS_MAX];
        let mut known = 0;
        for (at, (to, from)) in values.iter_mut().zip(fields).enumerate() {
            *to = *from;
            known |= 1 << at;
        }
        Event { time_ns, thread, kind, known, values }
    }

    /// The value of the wanted field of this number, its sign extended; of one that is longer than
    /// 8 bytes the first 8. `None` where this kernel's event has no such field.
    pub fn value(&self, field: usize) -> Option<u64> {
        let value = *self.values.get(field)?;
        (self.known >> field & 1 == 1).then_some(value)
    }
}
