//! How the ranks of a job talk to each other: small messages, and a sum of counts.
//!
//! `takeup-mpi` has one that is MPI; [`crate::local`] has one for the threads of a process. No data
//! of a backup or of a measurement goes this way.

use std::time::Duration;

/// A rank is gone, or the messages of the job no longer arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommunicationError {
    /// This rank ended before the job did.
    #[error("rank {0} is gone")]
    Lost(usize),
    /// What the library says.
    #[error("the communication between the hosts failed: {0}")]
    Failed(String),
}

/// How to wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Looks all the time: where a microsecond counts, and nothing is measured.
    Busy,
    /// Sleeps between two looks, and leaves the processor to others.
    Idle,
}

/// One rank's end of a job.
pub trait Communicator {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Sends a message; two to the same rank arrive in this order.
    ///
    /// # Errors
    /// When the rank is gone.
    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), CommunicationError>;

    /// The next message and its sender; `None` if none came in this time.
    ///
    /// # Errors
    /// When a rank that may still be needed is gone.
    fn receive(
        &self,
        wait: Duration,
        waiting: Waiting,
    ) -> Result<Option<(usize, Vec<u8>)>, CommunicationError>;

    /// Adds the counts of all ranks, position by position. All ranks call it, with as many counts;
    /// rank 0 gets the sums, the others nothing.
    ///
    /// # Errors
    /// When a rank is gone.
    fn sum(&self, counts: &[u64]) -> Result<Option<Vec<u64>>, CommunicationError>;
}
