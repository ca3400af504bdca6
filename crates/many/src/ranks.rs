//! What the ranks of a job share.

use std::rc::Rc;
use std::time::Duration;

use experiment::run::gate::GateError;

use crate::clock::Clock;
use crate::communicator::Communicator;
use crate::message::MailError;

/// Longest preparation of a run.
pub(crate) const PREPARE_MAX: Duration = Duration::from_secs(3600);

/// What the ranks of a job share: their end of it, their clock and their names.
pub struct Ranks {
    pub by: Rc<dyn Communicator>,
    pub clock: Rc<dyn Clock>,
    /// Name of the host of each rank.
    pub hosts: Vec<String>,
}

/// Why the gate is closed.
pub(crate) fn closed(error: MailError) -> GateError {
    match error {
        MailError::Stopped(stopped) => GateError::Stopped(stopped),
        other => GateError::Closed(other.to_string()),
    }
}
