//! Waiting for another program to release its lease on a file.
//!
//! When a program holds a write lease on a file (a file server does), opening the file starts the
//! break of the lease. A non-blocking open fails with EWOULDBLOCK until the holder releases the
//! lease or the kernel revokes it, `/proc/sys/fs/lease-break-time` seconds later (fcntl(2), "File
//! leases").

use std::time::{Duration, Instant};

/// Time between two attempts: holders that answer do so within milliseconds.
const STEP: Duration = Duration::from_millis(10);
/// Extra time beyond the kernel's, which counts whole seconds.
const MARGIN: Duration = Duration::from_secs(5);
/// Wait if the kernel never revokes a lease (the value is 0) or does not report the value.
const USUAL: Duration = Duration::from_secs(45);

/// A wait for leases to be released.
#[derive(Clone, Copy, Debug)]
pub struct LeaseWait {
    until: Instant,
}

impl LeaseWait {
    /// A wait that starts now. It ends when the kernel must have revoked every lease whose break
    /// was started before.
    pub fn begin() -> LeaseWait {
        let told = std::fs::read_to_string("/proc/sys/fs/lease-break-time").ok();
        let seconds = told.and_then(|text| text.trim().parse().ok()).filter(|it| *it > 0);
        LeaseWait { until: Instant::now() + seconds.map_or(USUAL, Duration::from_secs) + MARGIN }
    }

    /// Sleeps until the next attempt. False when the time is over.
    pub fn step(&self) -> bool {
        std::thread::sleep(STEP);
        Instant::now() < self.until
    }
}
