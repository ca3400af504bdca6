//! `takeup-mpi`: what `takeup` does on one host, on many at once.
//!
//! One rank a host, each with the threaded engine of `takeup`. MPI carries small messages alone,
//! and only from the first thread of each process. The library knows no MPI: [`job::run`] takes a
//! communicator, and the binary, which is built with the feature `mpi`, brings the one of MPI.
//!
//! # Map
//!
//! - [`arguments`](mod@arguments): the command line.
//! - [`job`]: from the command line to the exit code, on every rank.
//! - [`bench`](mod@bench): experiments on all hosts.
//! - [`set`]: a tree backed up, verified and restored in shards.
//! - [`say`]: what rank 0 says on standard error.

// The doc comments of options are help texts, in which `zstd[:LEVEL]` is no link.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

pub mod arguments;
pub mod bench;
pub mod job;
pub mod say;
pub mod set;
