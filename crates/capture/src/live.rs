//! A recording of what runs: events of the kernel made operations of files.
//!
//! A [`Follower`] takes events in the order of their times and hands out operations. A system call
//! is two events of one thread, its begin and its end. A request of io_uring is known by its ring
//! and its address, from its submission to its completion. Requests of libaio are counted from
//! `io_submit` to `io_getevents`, and what they ask for is seen where the block layer is given it
//! while they are submitted.
//!
//! Where a descriptor leads is looked up in `/proc`, soon after the kernel has recorded that it was
//! opened. Whoever opens and closes faster than that leaves a file without a name: events come in
//! batches, and a lookup counts only if the next batch shows that nothing was closed meanwhile.
//!
//! Not here: where events come from (`trace`), and what operations say of a file (the profile).

mod asynchronous;
mod calls;
mod descriptors;
pub(super) mod files;
mod follower;
mod lookups;
mod mapped;
mod operations;
mod requests;
mod session;
#[cfg(test)]
mod tests;
mod threads;

pub use calls::{events, events_everywhere};
pub use follower::Follower;
pub use session::{BUFFER_BYTES, RecordingEnd, Session};
pub use threads::family;
