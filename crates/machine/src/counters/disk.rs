//! `/proc/diskstats`: what the kernel counts of each block device
//! (Documentation/admin-guide/iostats.rst).

use std::fmt;

use super::{CounterError, read};

const DISKSTATS: &str = "/proc/diskstats";

/// Counters since the machine was started. Counters of time are 32 bits wide in the kernel and
/// wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests, sectors and so on of reads.
    pub read: Direction,
    /// Like `read`, for writes.
    pub write: Direction,
    /// Like `read`, for discards, which Linux counts since 4.19: its documentation says 4.18, which
    /// has 14 columns.
    pub discard: Direction,
    /// Like `read`, for flushes of the device's cache, which have no sectors; since Linux 5.5. Some
    /// kernels (6.18) count a flush without data also as a write of no sectors.
    pub flush: Direction,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u32,
    /// Sum of the times of all requests in milliseconds.
    pub weighted_ms: u32,
}

/// What the kernel shows of one block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRow {
    /// Major and minor number. Not unique: several rows may share 0:0, because the hidden paths
    /// below a multipath NVMe device have no number of their own. Device-mapper reuses its numbers.
    pub number: (u32, u32),
    /// Name, unique on the machine.
    pub name: String,
    pub counters: DiskCounters,
    /// Requests in flight at this moment.
    pub in_flight: u32,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Requests that were finished.
    pub requests: u64,
    /// Requests that the kernel merged into others.
    pub merges: u64,
    /// Sectors of 512 bytes, whatever the device's own sector size.
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

    /// What was counted since `earlier`. Each counter may have wrapped once.
    pub fn since(self, earlier: DiskCounters) -> DiskCounters {
        self.combined(earlier, Combine::Minus)
    }

    /// Like `since`, but `None` if the counters have started anew, as they do for another device
    /// that got the name of a removed one.
    ///
    /// A counter of requests or sectors is a machine word, which wraps to 0 on a 32-bit kernel.
    /// After a wrap only that counter is below its earlier value; for another device all are.
    pub fn since_the_same(self, earlier: DiskCounters) -> Option<DiskCounters> {
        let (now, before) = (self.words(), earlier.words());
        let pairs = || now.iter().zip(&before);
        if pairs().all(|(now, before)| now >= before) {
            return Some(self.since(earlier));
        }
        let wraps = |now: u64, before: u64| {
            before <= WORD_MAX && now.wrapping_sub(before) & WORD_MAX < WORD_MAX / 2
        };
        let may_wrap = pairs().all(|(now, before)| now >= before || wraps(*now, *before));
        let goes_on = pairs().any(|(now, before)| *before > 0 && now >= before);
        (may_wrap && goes_on).then(|| self.since(earlier).in_short_words())
    }

    /// The counters that the kernel keeps in a machine word.
    fn words(&self) -> [u64; 12] {
        let of = |it: Direction| [it.requests, it.merges, it.sectors];
        let [read, write] = [of(self.read), of(self.write)];
        let [discard, flush] = [of(self.discard), of(self.flush)];
        let mut words = [0; 12];
        for (word, value) in words.iter_mut().zip([read, write, discard, flush].concat()) {
            *word = value;
        }
        words
    }

    fn in_short_words(self) -> DiskCounters {
        let short = |it: Direction| Direction {
            requests: it.requests & WORD_MAX,
            merges: it.merges & WORD_MAX,
            sectors: it.sectors & WORD_MAX,
            time_ms: it.time_ms,
        };
        DiskCounters {
            read: short(self.read),
            write: short(self.write),
            discard: short(self.discard),
            flush: short(self.flush),
            ..self
        }
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

/// The largest number in a machine word of 32 bits.
const WORD_MAX: u64 = u32::MAX as u64;

/// Name and counters of each device of this machine.
///
/// # Errors
/// When `/proc/diskstats` cannot be read or understood.
pub fn now() -> Result<Vec<(String, DiskCounters)>, CounterError> {
    parse(&read(DISKSTATS)?)
}

/// All rows of this machine, in the kernel's order.
///
/// # Errors
/// When `/proc/diskstats` cannot be read or understood.
pub fn rows_now() -> Result<Vec<DiskRow>, CounterError> {
    rows(&read(DISKSTATS)?)
}

/// Name and counters of each device, from the text of `/proc/diskstats`.
///
/// # Errors
/// At the first line that does not have the kernel's format.
pub fn parse(text: &[u8]) -> Result<Vec<(String, DiskCounters)>, CounterError> {
    Ok(rows(text)?.into_iter().map(|row| (row.name, row.counters)).collect())
}

/// All rows of the text of `/proc/diskstats`, in its order.
///
/// # Errors
/// At the first line that does not have the kernel's format.
pub fn rows(text: &[u8]) -> Result<Vec<DiskRow>, CounterError> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| parse_line(line, index + 1)).collect()
}

/// The sum of the counters of the devices with these names; `None` if none of them has counters.
pub fn sum(all: &[(String, DiskCounters)], names: &[&str]) -> Option<DiskCounters> {
    let wanted = all.iter().filter(|(name, _)| names.contains(&name.as_str()));
    wanted.map(|(_, counters)| *counters).reduce(DiskCounters::plus)
}

/// Number of counters on kernels that count neither discards nor flushes.
const OLD_FIELDS: usize = 11;

fn parse_line(line: &str, number: usize) -> Result<DiskRow, CounterError> {
    let error = |what| CounterError::Malformed { file: DISKSTATS, line: number, what };
    let mut words = line.split_ascii_whitespace();
    let mut device_number = || words.next()?.parse().ok();
    let number = (device_number(), device_number());
    let name = words.next().ok_or(error("name"))?.to_owned();
    let (Some(major), Some(minor)) = number else { return Err(error("device number")) };
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
    // Some old kernels show a negative number as a very large one.
    let in_flight = u32::try_from(fields[8]).unwrap_or(0);
    Ok(DiskRow { number: (major, minor), name, counters, in_flight })
}

/// Prints the row in the kernel's format.
impl fmt::Display for DiskRow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiskRow { number: (major, minor), name, counters, in_flight } = self;
        let DiskCounters { read, write, discard, flush, busy_ms, weighted_ms } = counters;
        write!(formatter, "{major} {minor} {name}")?;
        let direction = |it: &Direction| [it.requests, it.merges, it.sectors, it.time_ms.into()];
        for field in [direction(read), direction(write)].concat() {
            write!(formatter, " {field}")?;
        }
        write!(formatter, " {in_flight} {busy_ms} {weighted_ms}")?;
        for field in direction(discard) {
            write!(formatter, " {field}")?;
        }
        write!(formatter, " {} {}", flush.requests, flush.time_ms)
    }
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
        assert_eq!(error(b"8 0 sda 1 2\n"), "/proc/diskstats, line 1: no eleven counters");
        assert_eq!(error(b"8 0\n"), "/proc/diskstats, line 1: no name");
        assert!(error(b"8 0 sda 1 2 x 4 5 6 7 8 9 10 11").ends_with("no number"));
        // The weighted time wraps: 6 before the end, 4 behind it.
        let later = DiskCounters { weighted_ms: 4, ..found[0].1 };
        assert_eq!(later.since(found[0].1).weighted_ms, 10);
        let requests = |names: &[&str]| sum(&found, names).map(|counters| counters.read.requests);
        assert_eq!(requests(&["sda", "nvme0n1", "gone"]), Some(11));
        assert_eq!(requests(&["gone"]), None);
    }

    #[test]
    fn rows_that_share_a_number_are_told_apart_by_their_names() {
        let text = b"259 1 nvme0n1 9 0 72 4 0 0 0 0 2 3 4 5 6 7 8 9 10\n\
                     0 0 nvme0c0n1 5 0 40 2 0 0 0 0 1 2 2\n\
                     0 0 nvme0c1n1 4 0 32 2 0 0 0 0 18446744073709551615 1 2\n";
        let found = rows(text).unwrap();
        let seen: Vec<_> = found.iter().map(|row| (row.number, row.name.as_str())).collect();
        assert_eq!(seen, [((259, 1), "nvme0n1"), ((0, 0), "nvme0c0n1"), ((0, 0), "nvme0c1n1")]);
        let in_flight: Vec<u32> = found.iter().map(|row| row.in_flight).collect();
        assert_eq!(in_flight, [2, 1, 0]);
        // A printed row parses to the same row.
        for row in &found {
            assert_eq!(&rows(row.to_string().as_bytes()).unwrap()[0], row);
        }
        let error = rows(b"x 0 sda 1 2 3 4 5 6 7 8 9 10 11").unwrap_err();
        assert_eq!(error.to_string(), "/proc/diskstats, line 1: no device number");
    }

    #[test]
    fn a_counter_that_wraps_is_told_from_counters_that_begin_anew() {
        let counters = |requests, sectors, time_ms| DiskCounters {
            read: Direction { requests, merges: 0, sectors, time_ms },
            ..DiskCounters::default()
        };
        let before = counters(1000, 0xffff_ff00, u32::MAX);
        let difference = counters(1010, 0x100, 9).since_the_same(before).unwrap();
        let read = difference.read;
        assert_eq!((read.requests, read.sectors, read.time_ms), (10, 0x200, 10));
        // Another device, or the same one after it came back.
        assert_eq!(counters(3, 24, 1).since_the_same(before), None);
        assert_eq!(counters(0, 0, 0).since_the_same(counters(7, 56, 3)), None);
        // A 64-bit counter does not wrap in the life of a disk.
        let large = counters(1000, 1 << 40, 0);
        assert_eq!(counters(1010, 16, 0).since_the_same(large), None);
        assert_eq!(counters(7, 8, 0).since_the_same(counters(7, 8, 0)), Some(counters(0, 0, 0)));
    }

    #[test]
    fn the_kernel_of_this_machine_is_understood() {
        now().unwrap();
    }
}
