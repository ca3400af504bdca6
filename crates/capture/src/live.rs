//! Records running processes: turns events of the kernel into operations on files.
//!
//! A [`Follower`] takes events in the order of their times and hands out operations. A system call
//! is two events of one thread, its begin and its end. A request of io_uring is known by its ring
//! and its address, from its submission to its completion. Requests of libaio are counted from
//! `io_submit` to `io_getevents`, and what they ask for follows from the requests to the block
//! layer during their submission.
//!
//! The file of a descriptor is looked up in `/proc` soon after the kernel recorded the open. A file
//! that is closed sooner has no name: events come in batches, and a lookup counts only if the next
//! batch shows that nothing was closed meanwhile.
//!
//! `trace` reads the events, and the profile sums up the operations.

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
