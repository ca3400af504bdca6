//! Jobs: backups that run again and again by themselves, and what is kept of them.
//!
//! A file that people write names the jobs. What became of each run is in a journal, a text that
//! only grows. Which sets are kept follows from times and chains alone, so that it can be tested
//! without a backup.
//!
//! Not here: running a job, which is `service`'s, and the sets in a folder, which are
//! `catalogue`'s.
//!
//! # Map
//!
//! - `config`: the file with the jobs.
//! - `values`: what its values may be.
//! - `retention`: which sets are kept, and why.
//! - `rotation`: which parts of archives were read back, and which are next.
//! - `journal`: what became of runs, verifications and sets.
//! - `digest`: what a set carries of it.
//! - `units`: a service and a timer for systemd.

mod config;
mod digest;
mod journal;
mod retention;
mod rotation;
mod units;
mod values;

pub use config::{
    After, Config, ConfigError, Exceeded, Hooks, Job, Keep, Quota, VerifyPolicy, place_in,
};
pub use digest::{DIGEST_BYTES_MAX, digest, read_digest};
pub use journal::{Entry, Event, Journal, JournalError, Journaled, RunResult};
pub use retention::{Because, Fate, RetainedSet, fates};
pub use rotation::{PartState, Readings, RotatedArchive, next_parts};
pub use units::{UnitSettings, service_unit, timer_unit};
pub use values::{
    AbsolutePath, Address, ChangesSource, Command, Glob, JobName, Method, Period, Quantity, Share,
    TargetPath,
};
