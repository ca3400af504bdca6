//! The engine: stages as threads over bounded rings of page-aligned blocks.
//!
//! A stage is a group of threads with one job. Stages are joined by a ring ([`ring::ring`]) whose
//! memory is allocated at the start and never grows. A stage whose input is empty is *starved*, one
//! whose output is full is *blocked*. [`account`] distinguishes both from *working*, so that every
//! run can report which stage was its limit ([`bottleneck`], from the record of a [`run`]). Bulk
//! input and output goes through one trait with two back ends ([`backend`]): io_uring, and threads
//! that call pread and pwrite; [`in_flight`] completes their transfers.
//!
//! Not here: what the bytes mean (`archive`), where they come from in a tree (`tree`), and what a
//! path is (`device`).
//!
//! Bytes go through a ring in order, in blocks, whichever thread fills them:
//!
//! ```
//! use flow::account::Stage;
//! use flow::cancel::Cancel;
//! use flow::ring::{RingOffset, RingOptions, ring};
//! use flow::run::StageKind;
//!
//! let options = RingOptions { block_bytes: 512, blocks: 4, consumers: 1 };
//! let (producer, consumers) = ring(options, Cancel::new())?;
//! let mut reading = Stage::new(StageKind::Read).open();
//! let mut first = producer.reserve(300, &mut reading)?;
//! let mut second = producer.reserve(400, &mut reading)?;
//! assert_eq!(second.start_bytes(), RingOffset::new(300));
//! second.filler().put(&[2; 400]);
//! second.commit();
//! first.filler().put(&[1; 300]);
//! first.commit();
//! producer.finish();
//!
//! let mut writing = Stage::new(StageKind::Write).open();
//! let mut found = Vec::new();
//! while let Some(block) = consumers[0].next(&mut writing)? {
//!     found.push((block.position_bytes(), block.len()));
//! }
//! assert_eq!(found, [(RingOffset::START, 512), (RingOffset::new(512), 188)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - [`ring`]: the memory between two stages, its ends and its marks.
//! - [`crew`]: the threads of a run and their failures.
//! - [`account`]: how each thread spent its time.
//! - [`series`]: the same over time.
//! - [`run`]: the record of a run.
//! - [`bottleneck`]: what held a run back, from its times.
//! - [`backend`]: io_uring, and threads that call pread and pwrite.
//! - [`in_flight`]: transfers in flight on a back end, until they are complete.
//! - [`depth`]: how many requests of a stream may be in flight.
//! - [`source`]: the stage that reads a stream.
//! - [`sink`]: the stage that writes one.
//! - [`gaps`]: unreadable parts of a stream.
//! - [`restart`]: when a writer whose ring ran empty starts again.
//! - [`neighbour`]: what the program at the other end of a pipe does.
//! - [`budget`]: bytes that queues share.
//! - [`queue`]: bounded queues.
//! - [`turnstile`]: order in parallel work.
//! - [`steps`]: the cost of each block for the two stages of a stream, and what another ring would
//!   change.
//! - [`rate`]: a limit of bytes per second.
//! - [`cancel`]: the end of a run from outside.
//! - [`monitor`]: what a run reports while it runs.
//! - [`trap`]: panics on demand, for tests.

pub mod account;
pub mod backend;
pub mod bottleneck;
pub mod budget;
pub mod cancel;
pub mod crew;
pub mod depth;
pub mod gaps;
pub mod in_flight;
pub mod monitor;
pub mod neighbour;
pub mod queue;
pub mod rate;
pub mod restart;
pub mod ring;
pub mod run;
pub mod series;
pub mod sink;
pub mod source;
pub mod steps;
#[doc(hidden)]
pub mod trap;
pub mod turnstile;
