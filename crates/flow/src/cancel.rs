//! How a run is stopped before its end: by the user, or by a stage that failed.
//!
//! Every wait in the engine is limited to [`POLL`], after which it checks here, so no thread has to
//! be found and woken. A stage ends at a block boundary; the first failure is kept as the cause.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::Duration;

/// Longest time until a waiting thread notices a stop.
pub const POLL: Duration = Duration::from_millis(50);

/// A wait ended because the run is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The user asked for it (SIGINT, SIGTERM).
    #[error("cancelled")]
    Cancelled,
    /// Another stage failed; its error is the one to report.
    #[error("another stage failed")]
    Failed,
}

/// Shared by all threads of a run.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    state: Arc<AtomicU8>,
}

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const FAILED: u8 = 2;

impl Cancel {
    /// A token of a running run.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks the run to end at the next block boundary.
    pub fn cancel(&self) {
        let _ =
            self.state.compare_exchange(RUNNING, CANCELLED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Stops the other stages after a failure. An earlier cancel stays the cause.
    pub fn fail(&self) {
        let _ = self.state.compare_exchange(RUNNING, FAILED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Checks whether the run continues.
    ///
    /// # Errors
    /// If the run is being stopped.
    pub fn check(&self) -> Result<(), Stopped> {
        match self.state.load(Ordering::Acquire) {
            RUNNING => Ok(()),
            CANCELLED => Err(Stopped::Cancelled),
            _ => Err(Stopped::Failed),
        }
    }

    /// Waits on `condition` for at most [`POLL`], then checks whether the run is being stopped.
    pub(crate) fn wait<'a, T>(
        &self,
        condition: &Condvar,
        guard: MutexGuard<'a, T>,
    ) -> Result<MutexGuard<'a, T>, Stopped> {
        let (guard, _) =
            condition.wait_timeout(guard, POLL).unwrap_or_else(|poisoned| poisoned.into_inner());
        self.check()?;
        Ok(guard)
    }
}
