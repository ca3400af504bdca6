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
    /// The token of the run that this is a part of.
    whole: Option<Arc<Cancel>>,
}

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const FAILED: u8 = 2;

impl Cancel {
    /// A token of a running run.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// A token for a part of the run: what stops the run stops the part, too, and a failure of the
    /// part is its own.
    pub fn part(&self) -> Cancel {
        Cancel { state: Arc::default(), whole: Some(Arc::new(self.clone())) }
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
        if let Some(whole) = &self.whole {
            whole.check()?;
        }
        match self.state.load(Ordering::Acquire) {
            RUNNING => Ok(()),
            CANCELLED => Err(Stopped::Cancelled),
            _ => Err(Stopped::Failed),
        }
    }

    /// Waits on `condition` for at most [`POLL`], then checks whether the run is being stopped.
    pub fn wait<'a, T>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stops_with_the_whole_and_fails_alone() {
        let whole = Cancel::new();
        let (first, second) = (whole.part(), whole.part());
        first.fail();
        assert_eq!(first.check(), Err(Stopped::Failed));
        assert_eq!((whole.check(), second.check()), (Ok(()), Ok(())));
        whole.cancel();
        assert_eq!(second.check(), Err(Stopped::Cancelled));
        assert_eq!(second.part().check(), Err(Stopped::Cancelled));
        assert_eq!(first.check(), Err(Stopped::Cancelled), "the user's wish comes first");
    }
}
