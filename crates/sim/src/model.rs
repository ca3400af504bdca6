//! Time-true models of tape drives, disks and the programs between them.
//!
//! A model has no clock of its own. It is told when a request arrives and answers when that request
//! completes, so that the same code runs in virtual time, for plans and tests (days of tape in
//! milliseconds), and in real time behind a file system. All times are whole nanoseconds, bytes in
//! motion are counted in billionths of a byte, and a rate of bytes per second is then as many
//! billionths per nanosecond: nothing is rounded away, whatever the order of the calls.
//!
//! [`tape`] is the drive, [`disk`] the disk, [`read_ahead`] the kernel's read-ahead over a disk,
//! [`compressibility`] what a drive's compression makes of data, [`program`] and [`pipeline`] the
//! programs that move bytes from one to the other.
//!
//! Not here: the bytes themselves, and the semantics of the kernel's tape driver.

pub mod compressibility;
pub mod disk;
pub mod pipeline;
pub mod program;
pub mod read_ahead;
pub mod tape;

/// Nanoseconds in a second, and billionths of a byte in a byte.
pub const BILLION: u64 = 1_000_000_000;

/// Time that `bytes` take at a rate, rounded up to a nanosecond; a rate of zero is taken as one
/// byte a second.
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
