//! The engine: stages as threads over bounded rings of page-aligned blocks.
//!
//! A stage is a group of threads with one job. Stages are joined by a ring ([`ring::ring`]) whose
//! memory is taken at the start and never grows; a stage that finds its ring empty is *starved*,
//! one that finds it full is *blocked*, and [`account`] keeps both apart from *working*, so that
//! every run can say which stage was its limit ([`bottleneck`], from the record of a [`run`]). Bulk
//! input and output goes through one trait with two back ends ([`backend`]): io_uring, and threads
//! that call pread and pwrite; [`in_flight`] brings what is under way on one of them to its end.
//!
//! Not here: what the bytes mean (`archive`), where they come from in a tree (`tree`), and what a
//! path is (`device`).

pub mod account;
pub mod backend;
pub mod bottleneck;
pub mod budget;
pub mod cancel;
pub mod crew;
pub mod gaps;
pub mod in_flight;
pub mod monitor;
pub mod queue;
pub mod rate;
pub mod restart;
pub mod ring;
pub mod run;
pub mod sink;
pub mod source;
#[doc(hidden)]
pub mod trap;
pub mod turnstile;
