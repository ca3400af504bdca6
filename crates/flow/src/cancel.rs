//! How a run is stopped before its end: by the user, or by a stage that failed.
//!
//! Every wait in the engine has a limit of [`POLL`] after which it looks here, so no thread has to
//! be found and woken. A stage leaves at a block boundary; the first failure is kept as the cause.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::Duration;

/// The longest that a waiting thread takes to notice a stop.
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
    /// A token of a run that goes on.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks the run to end at the next block boundary.
    pub fn cancel(&self) {
        let _ =
            self.state.compare_exchange(RUNNING, CANCELLED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Tells the other stages that one has failed. A cancel that came first stays the cause.
    pub fn fail(&self) {
        let _ = self.state.compare_exchange(RUNNING, FAILED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether the run goes on.
    ///
    /// # Errors
    /// Once it is to stop.
    pub fn check(&self) -> Result<(), Stopped> {
        match self.state.load(Ordering::Acquire) {
            RUNNING => Ok(()),
            CANCELLED => Err(Stopped::Cancelled),
            _ => Err(Stopped::Failed),
        }
    }

    /// Waits on `condition` for [`POLL`] at most, then looks whether the run is to stop.
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
