//! A look at a device: how long does it take to get from one file to another?
//!
//! A few files that lie far from each other are read one after the other, in the order of their
//! names. If the median of them takes as long as heads need to move, files are worth fetching in
//! the order of the disk: heads then pass all of them on one way.
//!
//! Whether there really are heads cannot be known by such times. The neighbours of a sample may lie
//! hundreds of tracks apart, and then reading them takes half a turn as well. And it need not be
//! known: a device that is slow for another reason, as one at the end of a long line,
//! answers as many reads at once in one order as in the other.
//!
//! The bytes are those of the next files of the run, which are needed anyway.

use std::time::{Duration, Instant};

use device::btrfs::places::Places;
use flow::cancel::{Cancel, Stopped};

use super::found::{Found, load_checksums};
use super::{READ_BYTES, fetch};

/// Files whose median counts; half of them may decide which it is.
const LOOK_FILES: usize = 8;
/// Files that a look needs: with fewer there is nothing to be gained.
pub(super) const SAMPLE_FILES: usize = 2 * LOOK_FILES;
/// A longer way from one file to the next is a jump: a disk passes less in the time of a turn.
pub(super) const JUMP_BYTES: u64 = 1 << 20;
/// If fewer of the ways in the order of names are jumps, this is the order of the disk.
const JUMPS_SHARE_MIN: f64 = 0.125;
/// The start of a file whose time counts: of more, bytes would take a large part.
const TIMED_BYTES: u64 = 128 << 10;
/// Heads that have to move do not answer faster: the fastest disk takes 0.7 ms to the next track,
/// and then half a turn of 4 ms. A drive answers some reads from its cache, so this is compared
/// with the median.
const FASTEST_HEADS: Duration = Duration::from_micros(1500);

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// The files lie in the order of their names.
    InOrder,
    /// No heads had to move: the usual time of an access.
    Fast(Duration),
    /// As slow as heads, or slower: the usual time of an access.
    Slow(Duration),
}

/// Files of a chunk that tell how long an access takes, in the order of names.
#[derive(Debug)]
pub(super) struct Sample(Vec<Place>);

/// Where a file begins and ends.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Number of the file among those that were given.
    number: usize,
    address: u64,
    end: u64,
}

impl Sample {
    /// `None` where too few files say something, as on a file system that has no addresses.
    pub(super) fn of(found: &[Found]) -> Option<Sample> {
        let mut numbers: Vec<usize> = (0..found.len()).collect();
        numbers.sort_unstable_by_key(|number| found[*number].place);
        let place = |number: usize| {
            let Found { stretches, has_addresses, .. } = &found[number];
            let (first, last) = (stretches.first()?, stretches.last()?);
            let end = last.address + last.length_bytes;
            has_addresses.then_some(Place { number, address: first.address, end })
        };
        let places: Vec<Place> = numbers.into_iter().filter_map(place).collect();
        (places.len() >= SAMPLE_FILES).then_some(Sample(places))
    }

    /// Reads some of the files that were given.
    pub(super) fn look(
        &self,
        found: &[Found],
        places: &mut Places,
        cancel: &Cancel,
    ) -> Result<Looked, Stopped> {
        // A read that also waits for checksums would take two accesses.
        load_checksums(self.far_apart().map(|it| &found[it.number]), places, cancel)?;
        let mut memory = vec![0; READ_BYTES];
        Ok(self.look_by(|it| timed(&found[it.number], &mut memory)))
    }

    fn look_by(&self, mut timed: impl FnMut(&Place) -> Duration) -> Looked {
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        for place in self.far_apart() {
            let took = timed(place);
            let of_its_kind = if took < FASTEST_HEADS { &mut fast } else { &mut slow };
            of_its_kind.push(took);
            // So many of LOOK_FILES decide which kind the median is of.
            if slow.len() == LOOK_FILES / 2 {
                return Looked::Slow(median(slow));
            }
            if fast.len() > LOOK_FILES / 2 {
                return Looked::Fast(median(fast));
            }
        }
        Looked::InOrder
    }

    /// The first files that are a jump away from the one before; none if names have the order of
    /// the disk.
    fn far_apart(&self) -> impl Iterator<Item = &Place> + Clone {
        let Sample(places) = self;
        let is_jump = |two: &&[Place]| two[1].address.abs_diff(two[0].end) > JUMP_BYTES;
        let jumps = places.windows(2).filter(is_jump).count();
        let has_jumps = jumps as f64 >= JUMPS_SHARE_MIN * places.len() as f64;
        let mut ended_at = u64::MAX;
        let far = places.iter().filter(move |place| {
            let is_far = place.address.abs_diff(ended_at) > JUMP_BYTES;
            if is_far {
                ended_at = place.end;
            }
            is_far
        });
        far.take(if has_jumps { LOOK_FILES } else { 0 })
    }
}

/// The middle one of some times; zero of none.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Reads a file. How long its start took.
fn timed(found: &Found, memory: &mut [u8]) -> Duration {
    let Ok((file, _)) = found.entry.open_file() else { return Duration::ZERO };
    let Some(first) = found.stretches.first() else { return Duration::ZERO };
    let begun = Instant::now();
    let start_bytes = first.length_bytes.min(TIMED_BYTES);
    fetch(&file, first.offset_bytes, start_bytes, memory);
    let took = begun.elapsed();
    for stretch in &found.stretches {
        fetch(&file, stretch.offset_bytes, stretch.length_bytes, memory);
    }
    took
}

#[cfg(test)]
mod tests {
    use model::disk::{DiskModel, DiskParameters};
    use statistics::random::Random;

    use super::*;

    const SLOW: [fn() -> DiskParameters; 4] = [
        DiskParameters::sata7200,
        DiskParameters::sas15k,
        || DiskParameters::array(4),
        || DiskParameters::array(12),
    ];
    const FAST: [fn() -> DiskParameters; 2] = [DiskParameters::ssd_sata, DiskParameters::nvme];

    /// The first 256 of so many files, over a part of a disk. Their names have another order than
    /// their places.
    fn scattered(random: &mut Random, files: u64, largest: usize, part: u64) -> Sample {
        let sizes: Vec<u64> = (0..files).map(|_| 1000 + random.below(largest) as u64).collect();
        let gap = part.saturating_sub(sizes.iter().sum()) / files;
        let mut at = 1 << 30;
        let mut places = Vec::new();
        for (number, size) in sizes.into_iter().enumerate() {
            places.push(Place { number, address: at, end: at + size });
            at += (size + random.below(2 * gap as usize) as u64).next_multiple_of(4096);
        }
        random.shuffle(&mut places);
        places.truncate(256);
        Sample(places)
    }

    fn look_at(disk: DiskParameters, sample: &Sample) -> Looked {
        let mut disk = DiskModel::new(disk);
        let mut now_ns = 0;
        sample.look_by(|it| {
            let begun_ns = now_ns;
            let end = it.end.next_multiple_of(4096);
            let timed_bytes = (end - it.address).min(TIMED_BYTES);
            now_ns = disk.submit(now_ns, it.address, timed_bytes);
            let took = now_ns - begun_ns;
            let rest = it.address + timed_bytes;
            if rest < end {
                now_ns = disk.submit(now_ns, rest, end - rest);
            }
            Duration::from_nanos(took)
        })
    }

    /// Looks at a hundred trees of each kind: on a full disk, and on small parts of one.
    fn looks(disk: fn() -> DiskParameters) -> Vec<Looked> {
        let mut random = Random::new(7);
        let mut looked = Vec::new();
        for files in [64, 256, 4000u64] {
            for largest in [60_000, 2_000_000] {
                for part in [1 << 28, 1 << 30, 1 << 35, 1 << 39, 3 << 40] {
                    for _ in 0..100 {
                        let sample = scattered(&mut random, files, largest, part);
                        looked.push(look_at(disk(), &sample));
                    }
                }
            }
        }
        looked
    }

    #[test]
    fn disks_with_heads_are_slow_whatever_part_of_them_a_tree_has() {
        for (number, disk) in SLOW.into_iter().enumerate() {
            let looked = looks(disk);
            let slow = looked.iter().filter(|it| matches!(it, Looked::Slow(_))).count();
            assert!(slow * 100 >= looked.len() * 98, "disk {number}: {slow} of {}", looked.len());
        }
    }

    #[test]
    fn flash_is_fast() {
        for disk in FAST {
            assert!(looks(disk).iter().all(|it| matches!(it, Looked::Fast(_))));
        }
    }

    #[test]
    fn files_in_the_order_of_the_disk_are_not_read_for_it() {
        for files in [64, 256] {
            let Sample(mut places) = scattered(&mut Random::new(5), files, 60_000, 0);
            places.sort_unstable_by_key(|it| it.address);
            let sample = Sample(places);
            assert_eq!(sample.look_by(|_| Duration::from_millis(9)), Looked::InOrder);
        }
    }
}
