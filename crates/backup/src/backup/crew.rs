//! The threads of a run, and what becomes of the others when one of them fails.

use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};

use flow::account::{Account, Stage};
use flow::cancel::{Cancel, Stopped};

use super::BackupError;
use super::reader::lock;

/// Starts and joins threads. The first failure of any stops all others and is kept.
pub(super) struct Crew<'a> {
    cancel: &'a Cancel,
    failure: Mutex<Option<BackupError>>,
}

impl<'a> Crew<'a> {
    /// A crew without threads.
    pub(super) fn new(cancel: &'a Cancel) -> Crew<'a> {
        Crew { cancel, failure: Mutex::new(None) }
    }

    /// Starts a thread of a stage. If the thread fails, the run stops and the error is kept.
    pub(super) fn spawn<'scope, 'env, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        stage: &Arc<Stage>,
        work: impl FnOnce(&mut Account) -> Result<T, BackupError> + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, Option<T>>, BackupError> {
        let stage = Arc::clone(stage);
        std::thread::Builder::new()
            .name(format!("takeup-{}", stage.name()))
            .spawn_scoped(scope, move || {
                let mut account = stage.open();
                // A panic is a defect of ours: stop the others, so that it is seen at the join.
                let guard = StopOnPanic(self.cancel);
                let result = work(&mut account);
                drop(guard);
                self.keep_failure(result)
            })
            .map_err(|error| {
                self.cancel.fail();
                BackupError::Thread(error)
            })
    }

    fn keep_failure<T>(&self, result: Result<T, BackupError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let mut failure = lock(&self.failure);
                let is_echo = matches!(error, BackupError::Stopped(_));
                if failure.is_none()
                    || matches!(*failure, Some(BackupError::Stopped(_))) && !is_echo
                {
                    *failure = Some(error);
                }
                self.cancel.fail();
                None
            }
        }
    }

    /// Waits for a thread. After a failure anywhere the caller leaves with `Stopped`.
    pub(super) fn join<T>(
        &self,
        thread: ScopedJoinHandle<'_, Option<T>>,
    ) -> Result<T, BackupError> {
        match thread.join() {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(BackupError::Stopped(Stopped::Failed)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The error that stopped the run, if one did.
    pub(super) fn outcome<T>(&self, result: Result<T, BackupError>) -> Result<T, BackupError> {
        let result = result.map_err(|error| {
            let kept = lock(&self.failure).take();
            match error {
                BackupError::Stopped(_) => kept.unwrap_or(error),
                error => error,
            }
        });
        match (result, self.cancel.check()) {
            // A cancel makes other stages fail; it is the cause.
            (Err(_), Err(Stopped::Cancelled)) => Err(BackupError::Stopped(Stopped::Cancelled)),
            (result, _) => result,
        }
    }
}

struct StopOnPanic<'a>(&'a Cancel);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}
