//! Many hosts as one: an experiment that all run at once, and a tree that they back up together.
//!
//! The ranks of a job talk through a [`communicator`], of which MPI is one. Rank 0 conducts, and
//! works as well. For measurements it runs an ordinary experiment whose executor is
//! [`together::Together`]; for backups it hands out shards ([`conduct`], [`set`]) and keeps the
//! [`journal`].
//!
//! Not here: MPI, which only `takeup-mpi` links, and any protocol for hosts that share no job.
//!
//! # Map
//!
//! - [`communicator`]: how ranks talk to each other.
//! - [`local`]: ranks that are threads of one process.
//! - [`message`]: what they say.
//! - [`name`]: paths in messages and lines.
//! - [`meet`]: whether all hosts run the same, before anything starts.
//! - [`placeholders`]: what differs between hosts in the same arguments.
//! - [`clock`]: offsets and drift of the hosts' clocks.
//! - [`ranks`]: what the ranks of a job share.
//! - [`rank`]: the side of a rank that is not the first.
//! - [`together`]: one cell of an experiment on all hosts.
//! - [`merge`]: the runs of many hosts as one.
//! - [`verdict`]: one host is slow, or what they use is shared.
//! - [`conduct`]: orders handed out to idle ranks.
//! - [`units`]: a tree cut into units, and these gathered into shards.
//! - [`shards`]: a shard written, verified or restored.
//! - [`journal`]: what is planned and what is sealed.
//! - [`set`]: a set of shards, written and read by all ranks.

pub mod clock;
pub mod communicator;
pub mod conduct;
pub mod journal;
pub mod local;
pub mod meet;
pub mod merge;
pub mod message;
pub mod name;
pub mod placeholders;
pub mod rank;
pub mod ranks;
pub mod set;
pub mod shards;
pub mod together;
pub mod units;
pub mod verdict;
