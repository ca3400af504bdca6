//! The layout of a set on tape, and what follows from the drive for segments and pace.

use archive::chunk::Compression;
use archive::label::MediumName;
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
    /// The drive is set to the block size and accepts no other.
    Fixed,
}

/// Options of a backup to tape.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapeOptions {
    /// Length at which a segment is closed, in bytes of the archive. The default keeps the cost of
    /// filemarks below 1 % of the time.
    pub segment_bytes: Option<u64>,
    /// How blocks are laid out.
    pub layout: BlockLayout,
    /// Switches the drive's compression; unchanged by default.
    pub drive_compression: Option<DriveCompression>,
    /// Whether volumes after the first may be overwritten.
    pub later_volumes: Existing,
    /// What the first medium is called. One without a name gets it; one that has sets and another
    /// name is refused. Later media without a name get a number behind it, or their bar code.
    pub medium_name: Option<MediumName>,
    /// Native capacity of a medium; by default that of the generation.
    pub capacity_bytes: Option<u64>,
    /// What the pace is chosen by; by default the drive's generation.
    pub pace: Option<DrivePace>,
}

/// What the writer to a drive is paced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrivePace {
    /// Below this rate the tape stops.
    pub lowest_bytes_per_second: u64,
    /// Bytes of the drive's own buffer.
    pub buffer_bytes: u64,
    /// Its highest speed in its own time, which the cost of a filemark counts in, too.
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

/// Assumed cost of an immediate filemark, since drives do not report it. A synchronising filemark
/// stops the tape and costs seconds.
const FILEMARK_SECONDS: f64 = 0.05;
/// Share of the time that filemarks and labels may cost.
const OVERHEAD_SHARE: f64 = 0.01;
/// Length of a segment for an unknown drive.
const SEGMENT_BYTES: u64 = 1 << 30;
/// Highest average compression expected. Segments are cut by bytes of the archive, and are shorter
/// on tape.
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

/// Fill at which a writer to tape starts: half a ring is ready for the drive, without the wait for
/// a full one.
pub const START_FILL_PERCENT: u8 = 50;
/// Fill at which it starts again if the source is slower than the drive's lowest speed. The drive
/// will stop again; the fuller the ring, the later.
const REFILL_PERCENT: usize = 95;

/// A ring that is drained without a limit must have this multiple of the drive's buffer to be worth
/// the wait. It is drained so if the drive's compression of the data is unknown. The drive sees a
/// fast host, takes its highest step, and empties a smaller ring before the stop is made up for
/// (`docs/design/models.md`, "Pacing"; 2.0 at a source of 60 % of the lowest step).
const UNLIMITED_RING_BUFFERS: u64 = 2;

/// When the writer to a drive starts again after a ring of this many blocks ran empty.
pub(crate) fn restart(
    pace: Option<DrivePace>,
    compressed: Compressed,
    capacity_blocks: usize,
    block_bytes: usize,
) -> Restart {
    // Waiting is not known to help an unknown drive.
    let Some(pace) = pace else { return Restart::AtFill { blocks: 1 } };
    let lowest_bytes_per_second = pace.lowest_bytes_per_second;
    let ring_bytes = (capacity_blocks * block_bytes) as u64;
    let worth_bytes = pace.buffer_bytes.saturating_mul(UNLIMITED_RING_BUFFERS);
    let is_worth_it = compressed == Compressed::NotByDrive || ring_bytes >= worth_bytes;
    Restart::Paced {
        blocks: if is_worth_it { (capacity_blocks * REFILL_PERCENT / 100).max(1) } else { 1 },
        lowest_bytes_per_second,
        // Slow enough for a long run, fast enough for the lowest step. The drive does not report
        // its compression while it writes.
        drain_bytes_per_second: match compressed {
            Compressed::NotByDrive => Some(lowest_bytes_per_second + lowest_bytes_per_second / 50),
            Compressed::PerhapsByDrive => None,
        },
    }
}

/// Whether a byte from the host may take less than a byte on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressed {
    /// The data are compressed already, or the drive's compression is off.
    NotByDrive,
    /// The drive may compress it.
    PerhapsByDrive,
}

/// Largest default ring of a run with a tape; and at most this share of the memory.
const RING_BYTES_MAX: usize = 1 << 30;
const RING_MEMORY_DIVISOR: u64 = 4;

/// Memory for the rings of a run with a tape: a share of the machine's memory, at least
/// `usual_bytes`. The drive must not stop whenever another stage is slow for a moment.
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
