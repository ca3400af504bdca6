//! How a set is laid out on tape, and what follows from the drive for segments and pace.

use archive::chunk::Compression;
use device::tape::DriveCompression;
use device::target::Existing;
use flow::restart::Restart;
use model::tape::generation::Generation;

/// How blocks are laid out on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockLayout {
    /// The drive takes each write as a block.
    #[default]
    Variable,
    /// The drive is set to the block size and takes nothing else.
    Fixed,
}

/// What a backup to a tape can be told besides what every backup can.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapeOptions {
    /// Length from which on a segment is closed, in bytes of the archive. By default as long as
    /// filemarks cost less than 1 % of the time.
    pub segment_bytes: Option<u64>,
    /// How blocks are laid out.
    pub layout: BlockLayout,
    /// Switches the drive's compression; left as it is by default.
    pub drive_compression: Option<DriveCompression>,
    /// Whether what volumes after the first hold may be written over.
    pub later_volumes: Existing,
    /// What the pace is chosen by; by default that of the drive's generation.
    pub pace: Option<DrivePace>,
}

/// What the writer to a drive is paced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrivePace {
    /// Below this the tape stops.
    pub lowest_bytes_per_second: u64,
    /// The drive's own buffer.
    pub buffer_bytes: u64,
    /// Its highest speed, in its own time: what a filemark costs it is told in that, too.
    pub highest_bytes_per_second: u64,
}

impl From<&Generation> for DrivePace {
    fn from(generation: &Generation) -> DrivePace {
        DrivePace {
            lowest_bytes_per_second: generation.lowest_speed(),
            buffer_bytes: generation.buffer_bytes,
            highest_bytes_per_second: generation.highest_speed(),
        }
    }
}

/// Time that an immediate filemark is assumed to cost. Drives are not known to tell; the measured
/// cost of a synchronising one, a stop, is seconds.
const FILEMARK_SECONDS: f64 = 0.05;
/// Part of the time that filemarks and labels may cost.
const OVERHEAD_SHARE: f64 = 0.01;
/// Segment where the drive is not known.
const SEGMENT_BYTES: u64 = 1 << 30;
/// Compression that segments are expected to gain at most on average: they are cut by bytes of the
/// archive, and on tape they are shorter.
const COMPRESSION_RATIO: f64 = 3.0;

/// Length of a segment in bytes of the archive.
pub fn segment_bytes(pace: Option<DrivePace>, block_bytes: usize, compression: Compression) -> u64 {
    let Some(pace) = pace else { return SEGMENT_BYTES };
    let rate = pace.highest_bytes_per_second as f64;
    let overhead_bytes = FILEMARK_SECONDS * rate + block_bytes as f64;
    let ratio = match compression {
        Compression::None => 1.0,
        _ => COMPRESSION_RATIO,
    };
    (overhead_bytes / OVERHEAD_SHARE * ratio) as u64
}

/// Fill at which a writer to tape starts: half a ring lies before the drive then, and the start is
/// not held up for as long as a full one takes.
pub const START_FILL_PERCENT: u8 = 50;
/// Fill at which it starts again where the source is slower than the lowest speed of the drive. A
/// stop is sure to come again then: the fuller the ring, the longer the run until it does.
const REFILL_PERCENT: usize = 95;

/// A ring that is drained without a limit, as it is when nobody knows what the drive makes of the
/// data, has to be so many times as large as the drive's buffer to be worth the wait: the drive
/// sees a fast host, takes its highest step, and has emptied a smaller one before the stop is made
/// up for (`docs/design/models.md`, "Pacing"; 2.0 at a source of 60 % of the lowest step).
const UNLIMITED_RING_BUFFERS: u64 = 2;

/// When the writer to a drive starts again after it found a ring of so many blocks empty.
pub(crate) fn restart(
    pace: Option<DrivePace>,
    compressed: Compressed,
    capacity_blocks: usize,
    block_bytes: usize,
) -> Restart {
    // Of a drive that is not known nothing is known to be gained by waiting.
    let Some(pace) = pace else { return Restart::AtFill { blocks: 1 } };
    let lowest_bytes_per_second = pace.lowest_bytes_per_second;
    let ring_bytes = (capacity_blocks * block_bytes) as u64;
    let worth_bytes = pace.buffer_bytes.saturating_mul(UNLIMITED_RING_BUFFERS);
    let is_worth_it = compressed == Compressed::NotByDrive || ring_bytes >= worth_bytes;
    Restart::Paced {
        blocks: if is_worth_it { (capacity_blocks * REFILL_PERCENT / 100).max(1) } else { 1 },
        lowest_bytes_per_second,
        // Slow enough for a long run, fast enough for the lowest step. What a drive's own
        // compression makes of the data is not known while it writes.
        drain_bytes_per_second: match compressed {
            Compressed::NotByDrive => Some(lowest_bytes_per_second + lowest_bytes_per_second / 50),
            Compressed::PerhapsByDrive => None,
        },
    }
}

/// Whether a byte from the host may be less than a byte on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressed {
    /// The data is compressed already, or the drive's compression was switched off.
    NotByDrive,
    /// The drive may compress it.
    PerhapsByDrive,
}

/// Largest ring that a run with a tape takes without being asked; and at most this part of the
/// memory.
const RING_BYTES_MAX: usize = 1 << 30;
const RING_MEMORY_DIVISOR: u64 = 4;

/// Memory for the rings of a run with a tape, which should not have to stop while others are slower
/// for a moment: a part of the machine's, and not less than `usual_bytes`.
pub fn ring_bytes(usual_bytes: usize) -> usize {
    let memory = rustix::system::sysinfo();
    let memory_bytes = memory.totalram as u64 * u64::from(memory.mem_unit.max(1));
    let share = usize::try_from(memory_bytes / RING_MEMORY_DIVISOR).unwrap_or(RING_BYTES_MAX);
    share.min(RING_BYTES_MAX).max(usual_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_ring_is_larger_with_a_tape_and_has_a_limit() {
        let usual = 4 * MIB;
        // No machine that this runs on has less than 32 MiB.
        assert!((2 * usual..=1024 * MIB).contains(&ring_bytes(usual)), "{}", ring_bytes(usual));
        assert_eq!(ring_bytes(3 << 30), 3 << 30);
    }

    #[test]
    fn waiting_is_for_rings_that_are_worth_it() {
        // LTO-7.
        let generation = Generation::of_density(0x5c);
        let buffer_mib = (generation.unwrap().buffer_bytes / MIB as u64) as usize;
        let paced =
            |compressed, blocks| restart(generation.map(DrivePace::from), compressed, blocks, MIB);
        let told = |restart| match restart {
            Restart::Paced { blocks, drain_bytes_per_second, .. } => {
                (blocks, drain_bytes_per_second)
            }
            Restart::AtFill { .. } => panic!("the source is judged at the start in any case"),
        };
        assert_eq!(told(paced(Compressed::PerhapsByDrive, buffer_mib)), (1, None));
        let large = 2 * buffer_mib + 2;
        assert_eq!(told(paced(Compressed::PerhapsByDrive, large)), (large * 95 / 100, None));
        let (blocks, limit) = told(paced(Compressed::NotByDrive, buffer_mib));
        assert_eq!(blocks, buffer_mib * 95 / 100);
        assert!(limit.unwrap() > generation.unwrap().lowest_speed());
        let at_once = Restart::AtFill { blocks: 1 };
        assert_eq!(restart(None, Compressed::NotByDrive, 4096, MIB), at_once);
    }

    #[test]
    fn a_drive_that_is_known_by_itself_is_paced_by_its_own_numbers() {
        let pace = DrivePace {
            lowest_bytes_per_second: 1000,
            buffer_bytes: MIB as u64,
            highest_bytes_per_second: 2000,
        };
        let expected = Restart::Paced {
            blocks: 3,
            lowest_bytes_per_second: 1000,
            drain_bytes_per_second: Some(1020),
        };
        assert_eq!(restart(Some(pace), Compressed::NotByDrive, 4, MIB), expected);
    }

    #[test]
    fn segments_are_as_long_as_the_drive_is_fast() {
        let pace = |highest_bytes_per_second| {
            let (lowest_bytes_per_second, buffer_bytes) = (1000, MIB as u64);
            Some(DrivePace { lowest_bytes_per_second, buffer_bytes, highest_bytes_per_second })
        };
        let long = |pace| segment_bytes(pace, MIB, Compression::None);
        // A filemark of 50 ms and a block with the label are 1 % of it.
        assert_eq!(long(pace(100_000_000)), 100 * (5_000_000 + MIB as u64));
        assert!(long(pace(10_000_000)) < long(pace(100_000_000)));
        assert_eq!(long(None), SEGMENT_BYTES);
        // LTO-7.
        let generation = Generation::of_density(0x5c).unwrap();
        assert_eq!(long(Some(generation.into())), long(pace(generation.highest_speed())));
    }
}
