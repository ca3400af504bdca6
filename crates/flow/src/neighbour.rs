//! Observes the program at the other end of a pipe while no stage waits for it.
//!
//! While the reading stage has no room, the program that fills the pipe continues: part of its
//! pause or work is done when there is room again, and only the rest shows as a wait for it. The
//! same holds for the program that empties a pipe, while the writing stage has no data for it. A
//! forecast with a faster other end needs that time, so the pipe is observed: if it could take
//! more, its source is busy with something else; if it still holds data, its target is.
//!
//! The measured time is a lower bound: data that the program itself holds, outside the pipe, are
//! not visible.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::account::{Stage, ThreadState};
use crate::run::Endpoint;

/// How often the pipes are observed; two system calls each time.
const TICK: Duration = Duration::from_millis(4);
/// A tick that comes late, on a busy machine, counts for no more than this.
const LONGEST_TICK: Duration = Duration::from_millis(50);
/// A pipe with this share of its highest fill counts as full: a pipe that is written in odd pieces
/// leaves part of its pages empty.
const FULL_SHARE: f64 = 0.8;

/// Observes pipes until it is dropped.
#[derive(Debug)]
pub struct NeighbourWatch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NeighbourWatch {
    /// Observes the other ends of those files that are pipes, each while its stage waits for the
    /// ring; the stage keeps the time with its steps ([`Stage::keep_steps`]). If the system gives
    /// no thread, nothing is measured and nothing else changes.
    pub fn start(ends: Vec<(Arc<Stage>, Arc<OwnedFd>)>) -> NeighbourWatch {
        let ended = Arc::new(AtomicBool::new(false));
        let mut pipes: Vec<PipeEnd> = ends.into_iter().filter_map(PipeEnd::new).collect();
        if pipes.is_empty() {
            return NeighbourWatch { ended, thread: None };
        }
        let until = Arc::clone(&ended);
        let look = move || {
            let mut last = Instant::now();
            while !until.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                let now = Instant::now();
                let passed = now.duration_since(last).min(LONGEST_TICK);
                last = now;
                pipes.iter_mut().for_each(|pipe| pipe.look(passed));
            }
        };
        let thread = std::thread::Builder::new().name("takeup-pipes".to_owned()).spawn(look);
        NeighbourWatch { ended, thread: thread.ok() }
    }
}

impl Drop for NeighbourWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A pipe, and the stage at this end of it.
struct PipeEnd {
    stage: Arc<Stage>,
    file: Arc<OwnedFd>,
    /// The state in which the stage does not use the pipe.
    waiting: ThreadState,
    most_bytes: u64,
}

impl PipeEnd {
    fn new((stage, file): (Arc<Stage>, Arc<OwnedFd>)) -> Option<PipeEnd> {
        let waiting = stage.steps_wait_in()?;
        // Below half of its size it is not full, however low its highest fill was: a pipe written
        // in odd pieces holds at least half of its size.
        let half_bytes = rustix::pipe::fcntl_getpipe_size(&*file).ok()? as f64 / 2.0;
        let most_bytes = (half_bytes / FULL_SHARE) as u64;
        (Endpoint::of_file(&*file) == Endpoint::Pipe).then_some(PipeEnd {
            stage,
            file,
            waiting,
            most_bytes,
        })
    }

    fn look(&mut self, passed: Duration) {
        if self.stage.is_in(self.waiting)
            && let Ok(bytes) = rustix::io::ioctl_fionread(&*self.file)
        {
            self.most_bytes = self.most_bytes.max(bytes);
            if is_at_work(self.waiting, bytes, self.most_bytes) {
                self.stage.other_end_worked(passed);
            }
        }
    }
}

/// Whether the program at the other end is busy while the stage is in this state.
fn is_at_work(waiting: ThreadState, bytes: u64, most_bytes: u64) -> bool {
    match waiting {
        ThreadState::Blocked => (bytes as f64) < FULL_SHARE * most_bytes as f64,
        ThreadState::Starved => bytes > 0,
        ThreadState::Working | ThreadState::Apart => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StageKind;
    use std::io::{Read as _, Write as _};
    use std::thread::sleep;

    /// The observed work at the other end of `file` during 100 ms of waiting in that state.
    fn found(waiting: ThreadState, file: impl Into<OwnedFd>) -> f64 {
        let stage = Stage::new(StageKind::Other);
        stage.keep_steps(waiting);
        let watch = NeighbourWatch::start(vec![(Arc::clone(&stage), Arc::new(file.into()))]);
        let mut account = stage.open();
        account.during(waiting, || sleep(Duration::from_millis(100)));
        stage.add_bytes(1);
        account.during(ThreadState::Working, || sleep(Duration::from_millis(20)));
        drop(account);
        drop(watch);
        let steps = stage.steps();
        assert_eq!(steps.len(), 1);
        assert!(steps[0].hidden_seconds <= steps[0].waited_seconds + 0.01, "{steps:?}");
        steps[0].hidden_seconds
    }

    #[test]
    fn a_source_with_a_full_pipe_waits_and_another_does_not() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        // Pages of 16 KiB make it larger.
        rustix::pipe::fcntl_setpipe_size(&writer, 65_536).unwrap();
        writer.write_all(&[0; 30_000]).unwrap();
        assert!(found(ThreadState::Blocked, reader.try_clone().unwrap()) > 0.05);
        writer.write_all(&[0; 35_536]).unwrap();
        assert!(found(ThreadState::Blocked, reader) < 1e-9);
    }

    #[test]
    fn a_target_with_an_empty_pipe_waits_and_another_does_not() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[0; 100]).unwrap();
        assert!(found(ThreadState::Starved, writer.try_clone().unwrap()) > 0.05);
        reader.read_exact(&mut [0; 100]).unwrap();
        assert!(found(ThreadState::Starved, writer) < 1e-9);
    }

    #[test]
    fn what_is_no_pipe_is_not_looked_at() {
        let stage = Stage::new(StageKind::Other);
        stage.keep_steps(ThreadState::Starved);
        let file = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
        assert!(NeighbourWatch::start(vec![(stage, file)]).thread.is_none());
    }
}
