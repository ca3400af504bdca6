//! Where the prepared runs of several hosts wait for each other.
//!
//! An [`Executor`](super::Executor) of a load that many hosts run at once passes its gate between
//! the preparation of a run and its measured part. On one host there is none.

use std::rc::Rc;

use flow::cancel::{Cancel, Stopped};

/// A common start.
pub trait Gate {
    /// Returns when the measured part is to begin.
    ///
    /// # Errors
    /// When it is not to begin at all: another host failed, or the run is being stopped.
    fn pass(&self, cancel: &Cancel) -> Result<(), GateError>;

    /// What was measured began so many seconds after the gate: a program had to start first.
    fn late(&self, seconds: f64) {
        let _ = seconds;
    }
}

/// Why a run that was prepared does not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// In words: which host, and why.
    #[error("not started: {0}")]
    Closed(String),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The gate of an executor, where it has one.
#[derive(Clone, Default)]
pub struct CommonStart(Option<Rc<dyn Gate>>);

impl CommonStart {
    /// Through this gate.
    pub fn through(gate: Rc<dyn Gate>) -> CommonStart {
        CommonStart(Some(gate))
    }

    /// Passes the gate, if there is one.
    ///
    /// # Errors
    /// See [`Gate::pass`].
    pub fn wait(&self, cancel: &Cancel) -> Result<(), GateError> {
        self.0.as_ref().map_or(Ok(()), |gate| gate.pass(cancel))
    }

    /// See [`Gate::late`].
    pub fn late(&self, seconds: f64) {
        if let Some(gate) = &self.0 {
            gate.late(seconds.max(0.0));
        }
    }
}

impl std::fmt::Debug for CommonStart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.0.is_some() { "a common start" } else { "a start of its own" })
    }
}

/// An executor that can begin together with those of other hosts.
pub trait StartsTogether: super::Executor {
    /// From now on every run begins when this gate lets it.
    fn start_together(&mut self, start: CommonStart);
}
