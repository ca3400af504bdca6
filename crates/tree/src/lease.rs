//! Waiting for a lease of another program on a file.
//!
//! Who opens a file that another program holds a write lease on (a file server does) starts the
//! break of the lease, and an open that does not block is told EWOULDBLOCK until the holder has let
//! go, or the kernel has taken the lease away: `/proc/sys/fs/lease-break-time` seconds later
//! (fcntl(2), "File leases").

use std::time::{Duration, Instant};

/// Time between two attempts: holders that answer do so within milliseconds.
const STEP: Duration = Duration::from_millis(10);
/// What is waited beyond the time of the kernel, which counts in seconds.
const MARGIN: Duration = Duration::from_secs(5);
/// What is waited where the kernel never takes a lease away (it says 0) or does not say.
const USUAL: Duration = Duration::from_secs(45);

/// A wait for leases that have to be let go.
#[derive(Clone, Copy, Debug)]
pub struct LeaseWait {
    until: Instant,
}

impl LeaseWait {
    /// A wait that begins now, and ends when the kernel must have broken every lease that was asked
    /// for before.
    pub fn begin() -> LeaseWait {
        let told = std::fs::read_to_string("/proc/sys/fs/lease-break-time").ok();
        let seconds = told.and_then(|text| text.trim().parse().ok()).filter(|it| *it > 0);
        LeaseWait { until: Instant::now() + seconds.map_or(USUAL, Duration::from_secs) + MARGIN }
    }

    /// Sleeps until the next attempt. False when it is of no use any more.
    pub fn step(&self) -> bool {
        std::thread::sleep(STEP);
        Instant::now() < self.until
    }
}
