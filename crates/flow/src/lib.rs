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
//!
//! Bytes go through a ring in order, in blocks, whoever fills them:
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
//! - [`account`]: what each thread did with its time.
//! - [`series`]: the same over time.
//! - [`run`]: the record of a run.
//! - [`bottleneck`]: from times to what held a run back.
//! - [`backend`]: io_uring, and threads that call pread and pwrite.
//! - [`in_flight`]: what is under way on a back end, brought to its end.
//! - [`depth`]: how much of a stream may be under way.
//! - [`source`]: the stage that reads a stream.
//! - [`sink`]: the stage that writes one.
//! - [`gaps`]: what could not be read of a stream.
//! - [`restart`]: when a writer that ran dry starts again.
//! - [`neighbour`]: what programs do at the other end of a pipe.
//! - [`budget`]: bytes that queues share.
//! - [`queue`]: bounded queues.
//! - [`turnstile`]: order in parallel work.
//! - [`steps`]: what each block cost the two stages of a stream, and what another ring would
//!   change.
//! - [`rate`]: a limit of bytes per second.
//! - [`cancel`]: the end of a run from outside.
//! - [`monitor`]: what a run reports while it runs.
//! - [`trap`]: a panic to order, for tests.

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
