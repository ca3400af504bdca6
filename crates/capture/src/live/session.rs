//! A live recording from its beginning to its end: what is asked of the kernel and when.

use std::time::{Duration, Instant};

use crate::trace::{Event, Recorder, RecorderOptions, TraceError, Tracefs};

use super::calls::{events, events_everywhere};
use super::follower::Follower;
use super::threads::family;
use crate::operation::Recording;

/// Events that are taken at once; more wait in the kernel's buffers. Files that were opened are
/// looked up between two batches.
const EVENTS_AT_ONCE: usize = 10_000;
/// Between two looks for new threads, at least, and how much of the time they may take.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_SHARE: u32 = 20;
/// Between two looks at what was lost where no page speaks of it.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Between two steps, at least, and for each buffer that has to be looked at.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_OF_BUFFER: Duration = Duration::from_micros(50);
/// All buffers of the kernel together, unless told otherwise.
pub const BUFFER_BYTES: u64 = 64 << 20;

/// A recording of some processes and all that they start.
#[derive(Debug)]
pub struct Session {
    recorder: Recorder,
    follower: Follower,
    roots: Vec<u32>,
    next_look: Instant,
    next_count: Instant,
    events: u64,
    lost: u64,
}

/// How a recording went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Events that were taken.
    pub events: u64,
    /// Events that were lost.
    pub lost_events: u64,
    /// What could not be seen, in sentences.
    pub unseen: Vec<String>,
}

impl Session {
    /// Begins to record these processes, their threads and all that they start.
    ///
    /// # Errors
    /// When the kernel cannot record, or may not for us.
    pub fn begin(
        tracefs: &Tracefs,
        roots: &[u32],
        buffer_bytes: u64,
        to: &mut dyn Recording,
    ) -> Result<Session, TraceError> {
        // A kernel may have all other events and none of system calls.
        if tracefs.format("syscalls", "sys_enter_read")?.is_none() {
            return Err(TraceError::NoEvents);
        }
        let (threads, processes) = family(roots);
        let threads: Vec<u32> = threads.into_iter().collect();
        let events = events();
        let options = RecorderOptions {
            events: &events,
            everywhere: events_everywhere(),
            // With none at all everybody would be recorded.
            threads: if threads.is_empty() { roots } else { &threads },
            buffer_bytes,
        };
        let mut recorder = Recorder::new(tracefs, &options)?;
        recorder.start()?;
        let mut follower = Follower::new();
        follower.meet(&processes, to);
        let now = Instant::now();
        let mut session = Session {
            recorder,
            follower,
            roots: roots.to_vec(),
            next_look: now,
            next_count: now + COUNT_EVERY,
            events: 0,
            lost: 0,
        };
        session.look(to)?;
        Ok(session)
    }

    /// Looks for threads and processes that the kernel does not follow by itself.
    fn look(&mut self, to: &mut dyn Recording) -> Result<(), TraceError> {
        let begun = Instant::now();
        if begun < self.next_look {
            return Ok(());
        }
        let (threads, processes) = family(&self.roots);
        let threads: Vec<u32> = threads.into_iter().collect();
        self.recorder.follow(&threads)?;
        self.follower.meet(&processes, to);
        let took = begun.elapsed();
        self.next_look = begun + LOOK_EVERY.max(took * LOOK_SHARE);
        Ok(())
    }

    fn count(&mut self, to: &mut dyn Recording) -> Result<(), TraceError> {
        let now = Instant::now();
        if !self.recorder.has_missed() && now < self.next_count {
            return Ok(());
        }
        self.next_count = now + COUNT_EVERY;
        let lost = self.recorder.lost()?;
        if lost > 0 {
            self.lost += lost;
            self.follower.lose(lost, to);
            self.follower.lost_before(self.recorder.told_until_ns());
        }
        Ok(())
    }

    /// Takes what was recorded since the last time; to be called every some milliseconds. Whether
    /// there is more already.
    ///
    /// # Errors
    /// When the kernel's buffers cannot be read.
    pub fn step(&mut self, to: &mut dyn Recording) -> Result<bool, TraceError> {
        self.look(to)?;
        let follower = &mut self.follower;
        self.recorder.look_ahead(&mut |event| follower.look_ahead(event))?;
        let mut batch: Vec<Event> = Vec::new();
        let count = self.recorder.read(EVENTS_AT_ONCE, &mut |event| batch.push(event))?;
        self.take(batch, to);
        self.count(to)?;
        Ok(count >= EVENTS_AT_ONCE)
    }

    /// How long to wait before the next step: whoever opens a file for a shorter time leaves it
    /// without a name, and looking at all buffers is not to take more than some hundredths of it.
    pub fn pause(&self) -> Duration {
        let buffers = u32::try_from(self.recorder.buffers()).unwrap_or(u32::MAX);
        PAUSE.max(PAUSE_OF_BUFFER.saturating_mul(buffers))
    }

    fn take(&mut self, batch: Vec<Event>, to: &mut dyn Recording) {
        self.events += batch.len() as u64;
        self.follower.take(batch, to);
        for thread in self.follower.take_ended() {
            self.recorder.forget(thread);
        }
    }

    /// Ends it, and hands out what is left.
    ///
    /// # Errors
    /// When the kernel's buffers cannot be read.
    pub fn finish(mut self, to: &mut dyn Recording) -> Result<RecordingEnd, TraceError> {
        self.recorder.stop()?;
        let mut batch = Vec::new();
        loop {
            let follower = &mut self.follower;
            self.recorder.look_ahead_at_rest(&mut |event| follower.look_ahead(event))?;
            let count = self.recorder.read_rest(EVENTS_AT_ONCE, &mut |event| batch.push(event))?;
            self.take(std::mem::take(&mut batch), to);
            if count == 0 {
                break;
            }
        }
        let lost = self.recorder.lost()?;
        if lost > 0 {
            self.lost += lost;
            to.lost(lost);
        }
        self.follower.finish(to);
        let mut unseen = self.follower.unseen();
        let missing = self.recorder.missing();
        unseen.extend(missing_words(missing));
        if self.recorder.broken_pages() > 0 {
            let count = self.recorder.broken_pages();
            unseen.push(format!("{count} pages of the kernel's buffers could not be parsed"));
        }
        Ok(RecordingEnd { events: self.events, lost_events: self.lost, unseen })
    }
}

/// Events that this kernel lacks and no other event replaces.
fn missing_words(missing: &[String]) -> Option<String> {
    let stands_for = |name: &str| {
        let other = match name {
            "io_uring:io_uring_submit_req" => "io_uring:io_uring_submit_sqe",
            "io_uring:io_uring_submit_sqe" => "io_uring:io_uring_submit_req",
            // Old calls that some architectures lack.
            "syscalls:sys_enter_open" | "syscalls:sys_exit_open" => return true,
            "syscalls:sys_enter_creat" | "syscalls:sys_exit_creat" => return true,
            "syscalls:sys_enter_dup2" | "syscalls:sys_exit_dup2" => return true,
            _ => return false,
        };
        !missing.iter().any(|it| it == other)
    };
    let left: Vec<&str> =
        missing.iter().map(String::as_str).filter(|name| !stands_for(name)).collect();
    (!left.is_empty()).then(|| format!("this kernel does not record {}", left.join(", ")))
}
