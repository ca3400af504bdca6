//! The threads of a run: started in one way, stopped together, and joined before the run ends.
//!
//! When one of them fails, all stop: the first failure is kept, the run's [`Cancel`] is set, and
//! every wait of the engine checks it. A panic is a failure like any other. It is a bug, but a run
//! that hangs because of it, or leaves a temporary file behind, would be worse.
//!
//! Stages on the caller's own thread run inside [`Crew::scope`], which guards them in the same way:
//! a scope waits for its threads, and would wait for ever for a thread that is never stopped.
//!
//! ```
//! use flow::account::Stage;
//! use flow::cancel::{Cancel, Stopped};
//! use flow::crew::{Crew, Failure, StageFailure};
//! use flow::run::StageKind;
//!
//! #[derive(Debug, thiserror::Error)]
//! enum Error {
//!     #[error(transparent)]
//!     Stopped(#[from] Stopped),
//!     #[error(transparent)]
//!     Stage(#[from] StageFailure),
//! }
//! impl Failure for Error {
//!     fn is_echo(&self) -> bool {
//!         matches!(self, Error::Stopped(_))
//!     }
//! }
//!
//! let cancel = Cancel::new();
//! let crew = Crew::<Error>::new(&cancel);
//! let sum = crew.scope(StageKind::Parse, |scope| {
//!     let adding = crew.spawn(scope, &Stage::new(StageKind::Scan), |_| Ok(1 + 1))?;
//!     crew.join(adding)
//! });
//! assert_eq!(crew.outcome(sum).unwrap(), 2);
//! ```

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};

use base::failures::lock;

use crate::account::{Account, Stage};
use crate::cancel::{Cancel, Stopped};
use crate::run::StageKind;

/// What a run fails with.
pub trait Failure: From<Stopped> + From<StageFailure> + Send {
    /// Whether this is just the echo of another thread's failure: the run was being stopped.
    fn is_echo(&self) -> bool;
}

/// Why a thread of a stage failed, whatever its job.
#[derive(Debug, thiserror::Error)]
pub enum StageFailure {
    #[error("the {stage} stage broke down, which is a defect of takeup: {message}")]
    Panicked {
        stage: StageKind,
        /// Its panic message.
        message: String,
    },
    /// It cannot be started.
    #[error("cannot start a thread of the {stage} stage")]
    NotStarted { stage: StageKind, source: io::Error },
}

/// Starts and joins the threads of a run. The first failure of any stops all others and is kept.
#[derive(Debug)]
pub struct Crew<'a, E> {
    cancel: &'a Cancel,
    failure: Mutex<Option<E>>,
}

impl<'a, E: Failure> Crew<'a, E> {
    /// A crew without threads.
    pub fn new(cancel: &'a Cancel) -> Crew<'a, E> {
        Crew { cancel, failure: Mutex::new(None) }
    }

    /// The token that stops the run.
    pub fn cancel(&self) -> &'a Cancel {
        self.cancel
    }

    /// Runs `body` on this thread, as the stage `stage`, with threads that it starts; returns when
    /// all of them have ended. If `body` fails or panics, they are stopped.
    ///
    /// # Errors
    /// `Stopped`; the failure itself is what [`Crew::outcome`] returns.
    pub fn scope<'env, T>(
        &self,
        stage: StageKind,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<T, E>,
    ) -> Result<T, E> {
        std::thread::scope(|scope| self.guard(stage, || body(scope)))
    }

    /// Starts a thread of a stage. If the thread fails, the run stops and the error is kept.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn spawn<'scope, 'env, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        stage: &Arc<Stage>,
        work: impl FnOnce(&mut Account) -> Result<T, E> + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, Option<T>>, E> {
        let (stage, kind) = (Arc::clone(stage), stage.kind());
        std::thread::Builder::new()
            .name(format!("takeup-{kind}"))
            .spawn_scoped(scope, move || {
                self.guard(kind, || {
                    let mut account = stage.open();
                    work(&mut account)
                })
                .ok()
            })
            .map_err(|source| {
                self.cancel.fail();
                StageFailure::NotStarted { stage: kind, source }.into()
            })
    }

    /// Starts a thread of a stage that can start the next one itself, up to `threads` of them, when
    /// it has work to do. A slow disk may need many threads, and a run with little work does not
    /// pay for them. The scope waits for all; if one fails, the run stops, and the failure is kept.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn spawn_as_needed<'scope, 'env, W>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        stage: &Arc<Stage>,
        threads: usize,
        work: W,
    ) -> Result<(), E>
    where
        W: FnOnce(&mut Account, &dyn Fn() -> Result<(), E>) -> Result<(), E>
            + Clone
            + Send
            + 'scope,
    {
        if threads == 0 {
            return Ok(());
        }
        let (next_stage, next_work) = (Arc::clone(stage), work.clone());
        let thread = self.spawn(scope, stage, move |account| {
            let next = || self.spawn_as_needed(scope, &next_stage, threads - 1, next_work.clone());
            work(account, &next)
        })?;
        drop(thread);
        Ok(())
    }

    /// Does a part of a stage's work on the calling thread: a panic in it counts as the stage's.
    ///
    /// # Errors
    /// `Stopped` when it failed; the failure itself is what [`Crew::outcome`] returns.
    pub fn work_here<T>(
        &self,
        stage: &Arc<Stage>,
        work: impl FnOnce(&mut Account) -> Result<T, E>,
    ) -> Result<T, E> {
        self.guard(stage.kind(), || work(&mut stage.open()))
    }

    /// Waits for a thread.
    ///
    /// # Errors
    /// `Stopped` when it failed; the failure itself is what [`Crew::outcome`] returns.
    pub fn join<T>(&self, thread: ScopedJoinHandle<'_, Option<T>>) -> Result<T, E> {
        thread.join().ok().flatten().ok_or_else(|| Stopped::Failed.into())
    }

    /// Keeps a failure, if it is the first, and stops the run.
    pub fn fail(&self, error: E) {
        let mut kept = lock(&self.failure);
        let replaces = |kept: &E| kept.is_echo() && !error.is_echo();
        if kept.as_ref().is_none_or(replaces) {
            *kept = Some(error);
        }
        drop(kept);
        self.cancel.fail();
    }

    /// The result of a run, once all its threads are joined: the failure that stopped it, if any.
    ///
    /// # Errors
    /// The first failure of any thread, or `Stopped` if the user cancelled.
    pub fn outcome<T>(&self, result: Result<T, E>) -> Result<T, E> {
        let kept = lock(&self.failure).take();
        let result = match (result, kept) {
            // A failure counts even if no thread was joined for it.
            (Ok(_), Some(kept)) if !kept.is_echo() => Err(kept),
            (Err(error), kept) if error.is_echo() => Err(kept.unwrap_or(error)),
            (result, _) => result,
        };
        match (result, self.cancel.check()) {
            // A cancel makes other stages fail; it is the cause.
            (Err(_), Err(Stopped::Cancelled)) => Err(Stopped::Cancelled.into()),
            (result, _) => result,
        }
    }

    /// Does the work of a stage; a failure or a panic in it is kept and stops the run.
    fn guard<T>(&self, stage: StageKind, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let error = match guarded(stage, work) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(failure) => failure.into(),
        };
        self.fail(error);
        Err(Stopped::Failed.into())
    }
}

/// Does the work of a stage outside any crew, for threads that belong to one other thread.
///
/// # Errors
/// When it panics.
pub fn guarded<T>(stage: StageKind, work: impl FnOnce() -> T) -> Result<T, StageFailure> {
    // Locks shared by threads ignore poisoning, and the run ends: no half-changed state outlives
    // it.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| StageFailure::Panicked {
        stage,
        message: panic_message(&*panic).to_owned(),
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Processor cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::queue::Queue;
    use crate::ring::{RingOptions, ring};

    #[derive(Debug, thiserror::Error)]
    enum Error {
        #[error(transparent)]
        Stopped(#[from] Stopped),
        #[error(transparent)]
        Stage(#[from] StageFailure),
        #[error("{0}")]
        Own(&'static str),
    }

    impl Failure for Error {
        fn is_echo(&self) -> bool {
            matches!(self, Error::Stopped(_))
        }
    }

    #[test]
    fn a_panic_wakes_whoever_waits_and_becomes_the_error() {
        let cancel = Cancel::new();
        let crew = Crew::<Error>::new(&cancel);
        let queue = Queue::<u8>::new(1, cancel.clone());
        let options = RingOptions { block_bytes: 512, blocks: 2, consumers: 1 };
        let (producer, consumers) = ring(options, cancel.clone()).unwrap();
        let result = crew.scope(StageKind::Scan, |scope| {
            crew.spawn(scope, &Stage::new(StageKind::Read), |account| Ok(queue.pop(account)?))?;
            crew.spawn(scope, &Stage::new(StageKind::Write), |account| {
                Ok(consumers[0].next(account)?.is_some())
            })?;
            let broken =
                crew.spawn(scope, &Stage::new(StageKind::Compress), |account| -> Result<(), _> {
                    let _held = producer.reserve(512, account)?;
                    panic!("seven is not {}", 8);
                })?;
            crew.join(broken)
        });
        let text = crew.outcome(result).unwrap_err().to_string();
        assert_eq!(
            text,
            "the compress stage broke down, which is a defect of takeup: seven is not 8"
        );
    }

    #[test]
    fn a_panic_on_the_own_thread_does_not_wait_for_the_others() {
        let cancel = Cancel::new();
        let crew = Crew::<Error>::new(&cancel);
        let queue = Queue::<u8>::new(1, cancel.clone());
        let result: Result<(), Error> = crew.scope(StageKind::Scan, |scope| {
            crew.spawn(scope, &Stage::new(StageKind::Read), |account| Ok(queue.pop(account)?))?;
            panic!("lost");
        });
        let text = crew.outcome(result).unwrap_err().to_string();
        assert!(text.starts_with("the scan stage") && text.ends_with("lost"), "{text}");
    }

    #[test]
    fn the_first_failure_is_told_and_never_its_echo() {
        let cancel = Cancel::new();
        let crew = Crew::<Error>::new(&cancel);
        crew.fail(Error::Stopped(Stopped::Failed));
        crew.fail(Error::Own("first"));
        crew.fail(Error::Own("second"));
        let outcome = crew.outcome::<()>(Err(Error::Stopped(Stopped::Failed)));
        assert_eq!(outcome.unwrap_err().to_string(), "first");
    }

    #[test]
    fn what_the_user_stopped_is_stopped_by_the_user() {
        let cancel = Cancel::new();
        let crew = Crew::<Error>::new(&cancel);
        cancel.cancel();
        crew.fail(Error::Own("target closed"));
        let outcome = crew.outcome::<()>(Err(Error::Stopped(Stopped::Cancelled)));
        assert_eq!(outcome.unwrap_err().to_string(), "cancelled");
    }

    /// Runs up to `threads` of them over the numbers 1, 2, … `works`, one each, and returns how
    /// many were started; the thread that takes the number `broken` fails.
    fn started(threads: usize, works: u32, broken: Option<u32>) -> Result<usize, Error> {
        let cancel = Cancel::new();
        let crew = Crew::<Error>::new(&cancel);
        let queue = Queue::<u32>::new(works.max(1) as usize, cancel.clone());
        let mut account = Stage::new(StageKind::Scan).open();
        for number in 1..=works {
            queue.push(number, &mut account)?;
        }
        queue.close();
        let begun = AtomicUsize::new(0);
        let (begun_here, queue) = (&begun, &queue);
        let result = crew.scope(StageKind::Scan, |scope| {
            let stage = Stage::new(StageKind::Read);
            crew.spawn_as_needed(scope, &stage, threads, move |account, start_next| {
                begun_here.fetch_add(1, Ordering::Relaxed);
                let Some(number) = queue.pop(account)? else { return Ok(()) };
                start_next()?;
                if Some(number) == broken { Err(Error::Own("broken")) } else { Ok(()) }
            })
        });
        crew.outcome(result)?;
        Ok(begun.into_inner())
    }

    #[test]
    fn a_thread_is_started_when_the_one_before_has_work() {
        // One more than there are works: it finds nothing left.
        assert_eq!(started(64, 0, None).unwrap(), 1);
        assert_eq!(started(64, 1, None).unwrap(), 2);
        assert_eq!(started(64, 5, None).unwrap(), 6);
        assert_eq!(started(3, 5, None).unwrap(), 3);
        assert_eq!(started(0, 5, None).unwrap(), 0);
    }

    #[test]
    fn a_failure_of_a_thread_that_another_started_is_the_runs() {
        for broken in 1..=4 {
            let text = started(64, 4, Some(broken)).unwrap_err().to_string();
            assert_eq!(text, "broken");
        }
    }
}
