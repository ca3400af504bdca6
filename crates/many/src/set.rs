//! A tree backed up, verified and restored by many hosts: the side of rank 0.
//!
//! [`work`] is what every rank does for one order. What the shards hold is in the
//! [`journal`](crate::journal): a later run goes on where an earlier one ended, at whatever step.

mod list;
mod read;
mod terms;
mod write;

pub use read::read_set;
pub use terms::{HostShare, Progress, SetAnswer, SetError, SetRead, SetRequest, Step, Tell, work};
pub use write::back_up;
