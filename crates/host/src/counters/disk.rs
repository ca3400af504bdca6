//! `/proc/diskstats`: what the kernel counts of each block device
//! (Documentation/admin-guide/iostats.rst).

use super::{CounterError, read};

const DISKSTATS: &str = "/proc/diskstats";

/// Counters since the machine was started. Those of time are 32 bits wide in the kernel and wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests, sectors and so on of reads.
    pub read: Direction,
    /// The same of writes.
    pub write: Direction,
    /// The same of discards, which Linux counts since 4.18.
    pub discard: Direction,
    /// The same of flushes of the device's cache, which have no sectors; since Linux 5.5. Some
    /// kernels (6.18) count a flush that comes with no data also as a write of no sectors.
    pub flush: Direction,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u32,
    /// Sum of the times of all requests in milliseconds.
    pub weighted_ms: u32,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Requests that were finished.
    pub requests: u64,
    /// Requests that were merged into others before.
    pub merges: u64,
    /// Sectors of 512 bytes, whatever the device calls a sector.
    pub sectors: u64,
    /// Sum of the times of its requests in milliseconds.
    pub time_ms: u32,
}

impl Direction {
    fn combined(self, other: Direction, with: Combine) -> Direction {
        Direction {
            requests: with.wide(self.requests, other.requests),
            merges: with.wide(self.merges, other.merges),
            sectors: with.wide(self.sectors, other.sectors),
            time_ms: with.narrow(self.time_ms, other.time_ms),
        }
    }

    /// Both directions together.
    pub fn plus(self, other: Direction) -> Direction {
        self.combined(other, Combine::Plus)
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(512)
    }
}

#[derive(Clone, Copy)]
enum Combine {
    Plus,
    Minus,
}

impl Combine {
    fn wide(self, a: u64, b: u64) -> u64 {
        match self {
            Combine::Plus => a.wrapping_add(b),
            Combine::Minus => a.wrapping_sub(b),
        }
    }

    fn narrow(self, a: u32, b: u32) -> u32 {
        match self {
            Combine::Plus => a.wrapping_add(b),
            Combine::Minus => a.wrapping_sub(b),
        }
    }
}

impl DiskCounters {
    /// Counters of two disks together.
    pub fn plus(self, other: DiskCounters) -> DiskCounters {
        self.combined(other, Combine::Plus)
    }

    /// What was counted since `earlier`, over at most one wrap of each.
    pub fn since(self, earlier: DiskCounters) -> DiskCounters {
        self.combined(earlier, Combine::Minus)
    }

    fn combined(self, other: DiskCounters, with: Combine) -> DiskCounters {
        DiskCounters {
            read: self.read.combined(other.read, with),
            write: self.write.combined(other.write, with),
            discard: self.discard.combined(other.discard, with),
            flush: self.flush.combined(other.flush, with),
            busy_ms: with.narrow(self.busy_ms, other.busy_ms),
            weighted_ms: with.narrow(self.weighted_ms, other.weighted_ms),
        }
    }
}

/// Name and counters of each device of this machine.
///
/// # Errors
/// When `/proc/diskstats` cannot be read or understood.
pub fn now() -> Result<Vec<(String, DiskCounters)>, CounterError> {
    parse(&read(DISKSTATS)?)
}

/// Name and counters of each device, from the text of `/proc/diskstats`.
///
/// # Errors
/// At the first line that is not as the kernel writes it.
pub fn parse(text: &[u8]) -> Result<Vec<(String, DiskCounters)>, CounterError> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| parse_line(line, index + 1)).collect()
}

/// Counters of the devices with these names, added up; none where none of them is counted.
pub fn sum(all: &[(String, DiskCounters)], names: &[&str]) -> Option<DiskCounters> {
    let wanted = all.iter().filter(|(name, _)| names.contains(&name.as_str()));
    wanted.map(|(_, counters)| *counters).reduce(DiskCounters::plus)
}

/// Counters of kernels that count no discards and no flushes.
const OLD_FIELDS: usize = 11;

fn parse_line(line: &str, number: usize) -> Result<(String, DiskCounters), CounterError> {
    let error = |what| CounterError::Malformed { file: DISKSTATS, line: number, what };
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next().ok_or(error("name"))?.to_owned();
    let mut fields = [0u64; 17];
    for (index, field) in fields.iter_mut().enumerate() {
        let Some(word) = words.next() else {
            // Older kernels end here.
            if index >= OLD_FIELDS { break } else { return Err(error("eleven counters")) }
        };
        *field = word.parse().map_err(|_| error("number"))?;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the kernel prints 32 bits of its times")]
    let milliseconds = |index: usize| fields[index] as u32;
    let direction = |from: usize| Direction {
        requests: fields[from],
        merges: fields[from + 1],
        sectors: fields[from + 2],
        time_ms: milliseconds(from + 3),
    };
    let counters = DiskCounters {
        read: direction(0),
        write: direction(4),
        discard: direction(11),
        flush: Direction {
            requests: fields[15],
            time_ms: milliseconds(16),
            ..Direction::default()
        },
        busy_ms: milliseconds(9),
        weighted_ms: milliseconds(10),
    };
    Ok((name, counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_old_and_new_kernels() {
        let old = b"   8       0 sda 10 2 160 7 20 3 320 9 0 15 4294967290\n";
        let new = b" 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n\n";
        let found = parse(&[&old[..], &new[..]].concat()).unwrap();
        assert_eq!(found[0].0, "sda");
        assert_eq!(found[0].1.read.bytes(), 160 * 512);
        assert_eq!((found[1].1.write.requests, found[1].1.busy_ms), (5, 10));
        assert_eq!((found[0].1.discard.requests, found[1].1.discard.sectors), (0, 14));
        assert_eq!((found[1].1.flush.requests, found[1].1.flush.time_ms), (16, 17));
        assert_eq!(found[0].1.flush, Direction::default());
        let error = |text: &[u8]| parse(text).unwrap_err().to_string();
        assert_eq!(error(b"8 0 sda 1 2\n"), "line 1 of /proc/diskstats has no eleven counters");
        assert_eq!(error(b"8 0\n"), "line 1 of /proc/diskstats has no name");
        assert!(error(b"8 0 sda 1 2 x 4 5 6 7 8 9 10 11").ends_with("no number"));
        // The weighted time wraps: 6 before the end, 4 behind it.
        let later = DiskCounters { weighted_ms: 4, ..found[0].1 };
        assert_eq!(later.since(found[0].1).weighted_ms, 10);
        let requests = |names: &[&str]| sum(&found, names).map(|counters| counters.read.requests);
        assert_eq!(requests(&["sda", "nvme0n1", "gone"]), Some(11));
        assert_eq!(requests(&["gone"]), None);
    }

    #[test]
    fn the_kernel_of_this_machine_is_understood() {
        now().unwrap();
    }
}
