//! A timing model of read-ahead: one thread reads a file from start to end through the page cache.
//!
//! [`Policy::Linux`] follows the kernel's `mm/readahead.c`. The first window depends on the size of
//! the request, the next ones are twice or four times as large, up to the limit. Each window has a
//! mark at its start; when the reader reaches it, the next window is requested. So in the steady
//! state two windows are under way while the reader waits. [`Policy::Ahead`] keeps a fixed amount
//! under way in requests of fixed size, like file systems where both numbers are configured (VxFS).
//!
//! Not here: random reading, several readers, and data already in the cache.

use super::disk::{DiskModel, DiskParameters};
use super::{BILLION, transfer_ns};

/// How much is read ahead of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing: the reader's own requests go to the disk, one after the other: `O_DIRECT`.
    Direct,
    /// The kernel's read-ahead with this limit (`read_ahead_kb`); 0 reads page by page.
    Linux {
        /// The limit.
        window_bytes: u64,
    },
    /// A fixed amount in requests of a fixed size.
    Ahead {
        /// Under way at any time.
        window_bytes: u64,
        /// Size of one request.
        request_bytes: u64,
    },
}

/// A reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Bytes of one read(2).
    pub read_bytes: u64,
    /// Rate at which the reader copies and processes cached bytes.
    pub copy_bytes_per_second: u64,
}

const PAGE_BYTES: u64 = 4096;

/// Time to read `total_bytes` from the start of a file stored in one piece.
pub fn sequential_read_ns(
    disk: &DiskParameters,
    policy: Policy,
    reader: Reader,
    total_bytes: u64,
) -> u64 {
    let mut run = Run {
        disk: DiskModel::new(disk.clone()),
        now_ns: 0,
        total_bytes: total_bytes.next_multiple_of(PAGE_BYTES),
        request_max_bytes: disk.request_bytes_max,
    };
    let reader = Reader { read_bytes: reader.read_bytes.max(PAGE_BYTES), ..reader };
    match policy {
        Policy::Direct => run.direct(reader),
        Policy::Linux { window_bytes } => run.linux(reader, window_bytes / PAGE_BYTES * PAGE_BYTES),
        Policy::Ahead { window_bytes, request_bytes } => {
            run.ahead(reader, window_bytes, request_bytes.max(PAGE_BYTES));
        }
    }
    run.now_ns
}

/// The same as a rate, for a file much longer than any window.
pub fn sequential_bytes_per_second(disk: &DiskParameters, policy: Policy, reader: Reader) -> u64 {
    let window = match policy {
        Policy::Direct => reader.read_bytes,
        Policy::Linux { window_bytes } | Policy::Ahead { window_bytes, .. } => window_bytes,
    };
    let total = 64 * window.max(reader.read_bytes).max(1 << 20);
    let ns = sequential_read_ns(disk, policy, reader, total).max(1);
    let rate = u128::from(total) * u128::from(BILLION) / u128::from(ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A window of the kernel's read-ahead, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: u64,
    size: u64,
    /// Distance of the mark from the end.
    ahead: u64,
    done_ns: u64,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.size
    }

    fn mark(&self) -> u64 {
        self.end() - self.ahead
    }
}

struct Run {
    disk: DiskModel,
    now_ns: u64,
    total_bytes: u64,
    request_max_bytes: u64,
}

impl Run {
    fn direct(&mut self, reader: Reader) {
        let mut at = 0;
        while at < self.total_bytes {
            let bytes = reader.read_bytes.min(self.total_bytes - at);
            self.now_ns = self.disk.submit(self.now_ns, at, bytes);
            self.now_ns += transfer_ns(bytes, reader.copy_bytes_per_second);
            at += bytes;
        }
    }

    fn linux(&mut self, reader: Reader, limit_bytes: u64) {
        if limit_bytes == 0 {
            return self.direct(Reader { read_bytes: PAGE_BYTES, ..reader });
        }
        // A request larger than the window is read at once, up to the disk's largest request.
        let most = if reader.read_bytes > limit_bytes {
            limit_bytes.max(reader.read_bytes.min(self.request_max_bytes))
        } else {
            limit_bytes
        };
        let mut current = first_window(reader.read_bytes.min(self.total_bytes), most);
        current.done_ns = self.submit(current);
        let mut next: Option<Window> = None;
        let mut at = 0;
        while at < self.total_bytes {
            if at >= current.end() {
                current = match next.take() {
                    Some(window) => window,
                    None => self.following(&current, most),
                };
            }
            let stop = match next {
                None if at >= current.mark() => {
                    next = Some(self.following(&current, most));
                    continue;
                }
                None => current.mark(),
                Some(_) => current.end(),
            };
            let bytes = (stop - at).min(self.total_bytes - at);
            self.now_ns = self.now_ns.max(current.done_ns);
            self.now_ns += transfer_ns(bytes, reader.copy_bytes_per_second);
            at += bytes;
        }
    }

    fn following(&mut self, current: &Window, most: u64) -> Window {
        let size = next_size(current.size, most);
        let mut window = Window { start: current.end(), size, ahead: size, done_ns: 0 };
        window.done_ns = self.submit(window);
        window
    }

    fn submit(&mut self, window: Window) -> u64 {
        let left = self.total_bytes.saturating_sub(window.start);
        self.disk.submit(self.now_ns, window.start, window.size.min(left))
    }

    fn ahead(&mut self, reader: Reader, window_bytes: u64, request_bytes: u64) {
        let mut under_way = std::collections::VecDeque::new();
        let (mut asked, mut at) = (0, 0);
        while at < self.total_bytes {
            while asked < self.total_bytes && asked < at + window_bytes.max(request_bytes) {
                let bytes = request_bytes.min(self.total_bytes - asked);
                under_way.push_back((self.disk.submit(self.now_ns, asked, bytes), bytes));
                asked += bytes;
            }
            let Some((done_ns, bytes)) = under_way.pop_front() else { break };
            self.now_ns = self.now_ns.max(done_ns);
            self.now_ns += transfer_ns(bytes, reader.copy_bytes_per_second);
            at += bytes;
        }
    }
}

/// `get_init_ra_size` and the rest of the first call of `page_cache_sync_ra`.
fn first_window(request_bytes: u64, most: u64) -> Window {
    let rounded = (request_bytes.div_ceil(PAGE_BYTES)).next_power_of_two() * PAGE_BYTES;
    let size = match rounded {
        small if small <= most / 32 => small * 4,
        middle if middle <= most / 4 => middle * 2,
        _ => most,
    };
    let ahead = if size > request_bytes { size - request_bytes } else { size };
    if ahead < size {
        return Window { start: 0, size, ahead, done_ns: 0 };
    }
    // The mark is at the start, so it is reached at once, and the next window joins this one.
    let more = next_size(size, most);
    if size + more <= most {
        Window { start: 0, size: size + more, ahead: more, done_ns: 0 }
    } else {
        Window { start: 0, size: most.max(size), ahead: most >> 1, done_ns: 0 }
    }
}

/// `get_next_ra_size`.
fn next_size(size: u64, most: u64) -> u64 {
    match size {
        small if small < most / 16 => small * 4,
        middle if middle <= most / 2 => middle * 2,
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 600 MB/s is the path of the measurements below: two file systems and two copies.
    const READER: Reader = Reader { read_bytes: 256 << 10, copy_bytes_per_second: 600_000_000 };

    fn virtual_disk() -> DiskParameters {
        DiskParameters::constant(5_500_000, 1 << 40)
    }

    fn check(policy: Policy, expected_mb_s: f64, tolerance: f64) {
        let rate = sequential_bytes_per_second(&virtual_disk(), policy, READER) as f64 / 1e6;
        let off = (rate / expected_mb_s - 1.0).abs();
        assert!(off <= tolerance, "{policy:?}: {rate} MB/s, expected {expected_mb_s}");
    }

    /// Measured with dd bs=256k on a loop device over a FUSE file whose reads take 5.5 ms, kernel
    /// 6.18 (the collection of facts on block devices).
    #[test]
    fn read_ahead_is_that_of_the_measured_kernel() {
        check(Policy::Linux { window_bytes: 0 }, 0.7, 0.08);
        check(Policy::Linux { window_bytes: 128 << 10 }, 88.0, 0.08);
        check(Policy::Linux { window_bytes: 1 << 20 }, 280.0, 0.08);
        check(Policy::Linux { window_bytes: 4 << 20 }, 583.0, 0.08);
        check(Policy::Direct, 46.0, 0.05);
    }

    proptest! {
        #[test]
        fn more_ahead_is_never_slower(shift in 12u32..24, read_shift in 12u32..21) {
            let reader = Reader { read_bytes: 1 << read_shift, ..READER };
            let rate = |shift: u32| {
                let policy = Policy::Linux { window_bytes: 1 << shift };
                sequential_bytes_per_second(&virtual_disk(), policy, reader)
            };
            prop_assert!(rate(shift + 1) as f64 >= rate(shift) as f64 * 0.97);
        }
    }

    proptest! {
        // A case takes a tenth of a second.
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_more_passes_than_windows_and_link_allow(
            shift in 12u32..24,
            link_mb in 1u64..2000,
            service_us in 1u64..10_000,
        ) {
            let disk = DiskParameters::constant(service_us * 1000, link_mb * 1_000_000);
            let window_bytes = 1u64 << shift;
            let policy = Policy::Ahead { window_bytes, request_bytes: 4096 };
            let rate = sequential_bytes_per_second(&disk, policy, READER);
            let windows = window_bytes as f64 / (service_us as f64 * 1e-6);
            prop_assert!(rate as f64 <= windows * 1.05 && rate <= link_mb * 1_000_000);
        }
    }
}
