//! Timing models of tape drives, disks and the programs between them, without I/O.
//!
//! A model has no clock of its own. Its caller passes the time of a request and gets the time of
//! completion. So the same code runs in virtual time, for plans and tests (days of tape in
//! milliseconds), and in real time behind a file system. All times are whole nanoseconds. Bytes in
//! motion are counted in billionths of a byte, so a rate in bytes per second has the same value in
//! billionths per nanosecond: nothing is rounded away, whatever the order of the calls.
//!
//! [`tape`] is the drive, with the known data of the generations of LTO. [`disk`] is the disk,
//! [`read_ahead`] the kernel's read-ahead over a disk, [`compressibility`] a drive's compression.
//! [`program`] and [`pipeline`] are the programs that move the bytes. [`plan`] runs them over a
//! whole backup to tape.
//!
//! ```
//! use model::program::{Ratio, Stream, stream};
//! use model::tape::TapeModel;
//! use model::tape::generation::Generation;
//! use model::tape::parameters::TapeParameters;
//!
//! // 200 GB at 60 MB/s to an LTO-7 drive, whose lowest step is 101.46 MB/s.
//! let lto7 = Generation::of_product("ULTRIUM-HH7").expect("it is in the table");
//! let stops = |start_fill_percent| {
//!     let mut drive = TapeModel::new(TapeParameters::of(lto7));
//!     let program = Stream {
//!         source_bytes_per_second: 60_000_000,
//!         ring_bytes: 4 << 30,
//!         start_fill_percent,
//!         drain_bytes_per_second: Some(lto7.lowest_speed()),
//!         block_bytes: 1 << 20,
//!         ratio: Ratio::of(1.0),
//!     };
//!     stream(&mut drive, program, 200_000_000_000);
//!     drive.counters().back_hitches
//! };
//! // A writer that waits for a full ring makes few long stops out of many short ones.
//! assert!(stops(100) * 4 < stops(0));
//! ```
//!
//! Not here: the bytes themselves, the semantics of the kernel's tape driver, and any clock or
//! device. Crate `sim` has drives and disks that other programs can use.
//!
//! # Map
//!
//! - [`tape`]: a drive: generations, parameters, mechanics, choice of a speed.
//! - [`disk`]: a disk: service times, queue, write cache.
//! - [`sweep`]: many files from a disk with heads, in its order.
//! - [`read_ahead`]: the read-ahead of the kernel over a disk.
//! - [`compressibility`]: how a drive's compression shrinks data.
//! - [`program`]: programs that move bytes.
//! - [`pipeline`]: programs joined by pipes.
//! - [`engine`]: processor time of a backup.
//! - [`plan`]: a backup to tape in virtual time, alternatives, needs of a time window.
//! - `error`: what a model cannot do.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod compressibility;
pub mod disk;
pub mod engine;
mod error;
pub mod pipeline;
pub mod plan;
pub mod program;
pub mod read_ahead;
pub mod sweep;
pub mod tape;

pub use error::ModelError;

/// Nanoseconds in a second, and billionths of a byte in a byte.
pub const BILLION: u64 = 1_000_000_000;

/// A number without its fraction; the nearest 64-bit number if it is out of range.
#[expect(clippy::cast_possible_truncation, reason = "what a cast does is what is wanted")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// Time that `bytes` take at a rate, rounded up to a nanosecond. A rate of zero counts as one byte
/// a second.
pub fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    let rate = u128::from(bytes_per_second.max(1));
    let ns = (u128::from(bytes) * u128::from(BILLION)).div_ceil(rate);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Bytes that pass in a time at a rate, rounded down.
pub fn bytes_in(ns: u64, bytes_per_second: u64) -> u64 {
    let bytes = u128::from(ns) * u128::from(bytes_per_second) / u128::from(BILLION);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
