//! Whether a device has heads, by a short look at it.
//!
//! What the kernel says of a disk is often not true: a virtual disk calls itself rotating or not as
//! somebody set it, and behind a volume or a network may be anything. So a few files are read one
//! after the other in the order of their names, and a few that are neighbours on the device in the
//! order in which they lie there. Heads take milliseconds for each of the first, and less for the
//! others. What has no heads takes less than that, or the same for both. Files whose names have the
//! order of the disk say nothing. The bytes are those of the next files of the run, which are
//! needed anyway.

use std::collections::HashMap;
use std::time::Duration;

use super::limits::ReadOrder;

/// Files that are read in each order.
pub(super) const LOOK_FILES: usize = 16;
/// Files that a look needs.
pub(super) const SAMPLE_FILES: usize = 2 * LOOK_FILES;
/// The longest files that say something about heads, and not about bytes: the smaller ones, if
/// there are enough of them.
pub(crate) const LOOK_BYTES_MAX: [u64; 2] = [128 << 10, 2 << 20];
/// Heads cannot answer faster: half a turn of the fastest disk is 2 ms. A drive answers some reads
/// from its cache, so this is compared with the median.
const FASTEST_HEADS: Duration = Duration::from_millis(2);
/// Neighbours take at most this share of the time where heads move.
const NEIGHBOURS: f64 = 0.7;
/// A longer way from one file to the next is a jump: a disk passes less in the time of a turn.
pub(super) const JUMP_BYTES: u64 = 1 << 20;
/// Files until the next look at a device where order does not matter: at first, and at most.
const PAUSE_FILES_MIN: u64 = 1024;
const PAUSE_FILES_MAX: u64 = 256 << 10;

/// What is known of the devices.
#[derive(Debug)]
pub(super) struct Judge {
    devices: HashMap<u64, Device>,
    /// What holds for a device of which nothing is known.
    at_first: Verdict,
}

/// How the files of a device are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A look has to tell.
    Unknown,
    /// In the order of the disk.
    Sweep,
    /// As they come: order does not matter, or the page cache holds them.
    AsTheyCome,
}

#[derive(Clone, Copy, Debug)]
struct Device {
    has_heads: bool,
    /// Files that are read as they come, before what is known of the device counts again.
    pause_files: u64,
    next_pause_files: u64,
}

/// What a look has found: how long the median of the files took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub(super) by_name: Duration,
    pub(super) by_place: Duration,
    /// From one file to the next in the order of names, how often the way was a jump.
    pub(super) jumps: usize,
}

impl Looked {
    /// Whether heads move there; `None`: the files lie in the order of their names.
    pub(super) fn has_heads(&self) -> Option<bool> {
        if self.jumps < LOOK_FILES / 2 {
            return None;
        }
        let share = self.by_place.as_secs_f64() / self.by_name.as_secs_f64().max(1e-9);
        Some(self.by_name >= FASTEST_HEADS && share <= NEIGHBOURS)
    }
}

impl Judge {
    /// Nothing is known. An order that is asked for needs no look.
    pub(super) fn new(order: ReadOrder) -> Judge {
        let at_first = match order {
            ReadOrder::Auto => Verdict::Unknown,
            ReadOrder::Name => Verdict::AsTheyCome,
            ReadOrder::Inode | ReadOrder::Physical => Verdict::Sweep,
        };
        Judge { devices: HashMap::new(), at_first }
    }

    /// What holds for a device now.
    pub(super) fn verdict(&self, device: u64) -> Verdict {
        match self.devices.get(&device) {
            None => self.at_first,
            Some(known) if known.pause_files > 0 => Verdict::AsTheyCome,
            Some(known) if known.has_heads => Verdict::Sweep,
            Some(_) => self.at_first,
        }
    }

    /// The same for its next file, which counts towards the end of a pause.
    pub(super) fn next_file(&mut self, device: u64) -> Verdict {
        let verdict = self.verdict(device);
        if let Some(known) = self.devices.get_mut(&device) {
            known.pause_files = known.pause_files.saturating_sub(1);
        }
        verdict
    }

    /// It has heads: its files are read in the order of the disk.
    pub(super) fn sweep(&mut self, device: u64) {
        let known = Device { has_heads: true, pause_files: 0, next_pause_files: PAUSE_FILES_MIN };
        self.devices.insert(device, known);
    }

    /// Its next files are read as they come, more of them each time.
    pub(super) fn pass(&mut self, device: u64) {
        let new = Device { has_heads: false, pause_files: 0, next_pause_files: PAUSE_FILES_MIN };
        let known = self.devices.entry(device).or_insert(new);
        known.pause_files = known.next_pause_files;
        known.next_pause_files = (known.next_pause_files * 2).min(PAUSE_FILES_MAX);
    }
}

/// The middle one of some times; zero of none.
pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_heads(by_name_us: u64, by_place_us: u64) -> Option<bool> {
        let [by_name, by_place] = [by_name_us, by_place_us].map(Duration::from_micros);
        Looked { by_name, by_place, jumps: LOOK_FILES - 1 }.has_heads()
    }

    #[test]
    fn heads_take_their_time_and_less_for_neighbours() {
        assert_eq!(has_heads(12_700, 4_500), Some(true));
        assert_eq!(has_heads(90, 40), Some(false), "flash, whatever the order did");
        assert_eq!(has_heads(20_000, 19_500), Some(false), "far away, whatever the order");
        assert_eq!(has_heads(0, 0), Some(false), "from the page cache");
    }

    #[test]
    fn files_in_the_order_of_the_disk_say_nothing_of_it() {
        let few = Looked {
            by_name: Duration::from_micros(150),
            by_place: Duration::from_micros(150),
            jumps: 2,
        };
        assert_eq!(few.has_heads(), None);
    }

    #[test]
    fn a_device_without_heads_is_looked_at_again_and_less_and_less_often() {
        let mut judge = Judge::new(ReadOrder::Auto);
        assert_eq!(judge.verdict(1), Verdict::Unknown);
        for pause in [1024, 2048, 4096] {
            judge.pass(1);
            let passed = (0..).take_while(|_| judge.next_file(1) == Verdict::AsTheyCome).count();
            assert_eq!(passed, pause);
            assert_eq!(judge.verdict(1), Verdict::Unknown);
        }
        judge.sweep(1);
        assert!((0..1_000_000).all(|_| judge.next_file(1) == Verdict::Sweep));
        assert_eq!(judge.verdict(2), Verdict::Unknown);
        // What the page cache holds is passed, and the heads are not forgotten.
        judge.pass(1);
        assert_eq!((0..1024).filter(|_| judge.next_file(1) == Verdict::Sweep).count(), 0);
        assert_eq!(judge.verdict(1), Verdict::Sweep);
    }
}
