//! The largest block that gets through: the smallest limit of drive, driver and host adapter.
//!
//! The driver passes a block to the drive straight from the program's memory, in at most 256 pieces
//! (`ST_MAX_SG`). A piece is a page, which gives 1 MiB with pages of 4 KiB. A larger block goes
//! through a bounce buffer that the driver has to find memory for. The maximum is 2^24 - 1 bytes,
//! since the commands have 24 bits for the length. So 1 MiB is the preferred block size, if drive
//! and adapter let it through.

use super::raw::MtOperation;
use super::scsi::BlockLimits;
use super::{BlockMode, Tape};

/// Most bytes that READ (6) and WRITE (6) can ask for.
pub const COMMAND_BYTES_MAX: u64 = (1 << 24) - 1;
/// Pieces of memory that the driver can pass at once, `ST_MAX_SG` in `drivers/scsi/st.c`.
pub const DRIVER_PIECES_MAX: u64 = 256;
/// Largest piece of the driver's bounce buffer, in pages: `ST_MAX_ORDER` is 6.
const BOUNCE_PAGES: u64 = 1 << 6;
/// The preferred block size.
pub const PREFERRED_BLOCK_BYTES: u64 = 1 << 20;

/// What limits the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    Drive,
    /// The tape driver and the commands it uses.
    Driver,
    HostAdapter,
    /// FUSE, which passes at most this much in one piece to a file system that plays a drive.
    Fuse,
}

impl LimitedBy {
    /// As words.
    pub fn name(self) -> &'static str {
        match self {
            LimitedBy::Drive => "drive",
            LimitedBy::Driver => "tape driver",
            LimitedBy::HostAdapter => "host adapter",
            LimitedBy::Fuse => "file system in user space (FUSE)",
        }
    }
}

/// What is between the driver and the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    HostAdapter,
    /// FUSE: the drive is a program.
    Fuse,
}

/// How the drive's own limits were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The drive said so.
    Asked,
    /// By trying block sizes in fixed mode.
    Tried,
    /// Not at all.
    Unknown,
}

/// The limits for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveLimits {
    /// The drive's own limits.
    pub drive: BlockLimits,
    /// How they were found.
    pub found: Found,
    /// Most bytes of one transfer, where it is known.
    pub transfer_bytes_max: Option<u64>,
    /// A transfer of this size gets through; the limit itself is unknown.
    pub transfer_bytes_sure: Option<u64>,
    /// Smallest block.
    pub block_bytes_min: u64,
    /// Largest block.
    pub block_bytes_max: u64,
    /// What sets that limit.
    pub limited_by: LimitedBy,
    /// Largest block that needs no bounce buffer.
    pub direct_bytes_max: u64,
    /// What is between the driver and the drive.
    pub way: Way,
}

/// Why a block size cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockSizeError {
    /// Too large.
    #[error(
        "blocks of {bytes} bytes are too large: the {} takes {bytes_max} at most",
        .limited_by.name()
    )]
    Large {
        /// The block.
        bytes: u64,
        /// Largest block.
        bytes_max: u64,
        /// What sets that limit.
        limited_by: LimitedBy,
    },
    /// Too small.
    #[error("blocks of {bytes} bytes are too small: the drive takes {bytes_min} at least")]
    Small {
        /// The block.
        bytes: u64,
        /// Smallest block.
        bytes_min: u64,
    },
    /// Not a multiple of the drive's granularity.
    #[error("blocks of {bytes} bytes do not suit the drive: it takes multiples of {grain}")]
    Odd {
        /// The block.
        bytes: u64,
        /// The granularity.
        grain: u64,
    },
}

impl DriveLimits {
    /// Combines the limits of drive, driver and adapter.
    pub fn new(
        drive: BlockLimits,
        found: Found,
        transfer_bytes_max: Option<u64>,
        pieces_max: Option<u64>,
        page_bytes: u64,
    ) -> DriveLimits {
        let pieces = pieces_max.unwrap_or(DRIVER_PIECES_MAX).clamp(1, DRIVER_PIECES_MAX);
        let drive_max = match drive.bytes_max {
            0 => u64::MAX,
            bytes => u64::from(bytes),
        };
        let driver_max = COMMAND_BYTES_MAX.min(pieces * page_bytes * BOUNCE_PAGES);
        let adapter_max = transfer_bytes_max.unwrap_or(u64::MAX);
        let (block_bytes_max, limited_by) = [
            (drive_max, LimitedBy::Drive),
            (adapter_max, LimitedBy::HostAdapter),
            (driver_max, LimitedBy::Driver),
        ]
        .into_iter()
        .min_by_key(|limit| limit.0)
        .expect("three limits are there");
        DriveLimits {
            drive,
            found,
            transfer_bytes_max,
            transfer_bytes_sure: transfer_bytes_max,
            block_bytes_min: u64::from(drive.bytes_min).max(1),
            block_bytes_max,
            limited_by,
            direct_bytes_max: block_bytes_max.min(pieces * page_bytes),
            way: Way::HostAdapter,
        }
    }

    /// Whether blocks of this size get through.
    ///
    /// # Errors
    /// When they do not. This is computed, not tried.
    pub fn check(&self, bytes: u64) -> Result<(), BlockSizeError> {
        let grain = self.grain();
        let (bytes_max, limited_by) = (self.block_bytes_max, self.limited_by);
        if bytes > bytes_max {
            Err(BlockSizeError::Large { bytes, bytes_max, limited_by })
        } else if bytes < self.block_bytes_min {
            Err(BlockSizeError::Small { bytes, bytes_min: self.block_bytes_min })
        } else if !bytes.is_multiple_of(grain) {
            Err(BlockSizeError::Odd { bytes, grain })
        } else {
            Ok(())
        }
    }

    /// The recommended block size: 1 MiB, or the largest power of two that gets through without a
    /// bounce buffer, in whole units of tar.
    pub fn recommended_block_bytes(&self) -> u64 {
        let at_most = PREFERRED_BLOCK_BYTES.min(self.direct_bytes_max);
        let sizes = (9..=20).rev().map(|power| 1u64 << power).filter(|size| *size <= at_most);
        let mut fitting = sizes.filter(|size| self.check(*size).is_ok());
        fitting.next().unwrap_or(512)
    }

    /// Block sizes are multiples of this many bytes.
    fn grain(&self) -> u64 {
        1u64 << self.drive.granularity.min(23)
    }
}

impl Tape {
    /// The limits for a block. Queries the drive, or tries block sizes if the drive does not
    /// answer, and then restores the block size. Moves no tape. Not to be called while the drive
    /// streams.
    pub fn limits(&mut self) -> DriveLimits {
        let (drive, found) = match self.block_limits() {
            Ok(limits) => (limits, Found::Asked),
            Err(_) => self.search_limits(),
        };
        let way = self.raw().way();
        let mut transfer = self.raw().transfer_bytes_max();
        if way == Way::Fuse && found != Found::Unknown {
            // The setting that counts is the one at the time of the mount. Only the program that
            // plays the drive knows it, and refuses larger blocks.
            transfer = transfer.max(Some(u64::from(drive.bytes_max)));
        }
        let pieces = self.raw().pieces_max();
        let page_bytes = rustix::param::page_size() as u64;
        let mut limits = DriveLimits::new(drive, found, transfer, pieces, page_bytes);
        limits.transfer_bytes_sure = self.raw().transfer_bytes_sure().or(transfer);
        if way == Way::Fuse && limits.limited_by == LimitedBy::HostAdapter {
            limits.limited_by = LimitedBy::Fuse;
        }
        limits.way = way;
        limits
    }

    /// Finds the limits by setting block sizes: the driver answers EINVAL outside of them.
    fn search_limits(&mut self) -> (BlockLimits, Found) {
        let unknown = BlockLimits { granularity: 0, bytes_max: 0, bytes_min: 1 };
        let Ok(before) = self.status() else { return (unknown, Found::Unknown) };
        let mut takes = |bytes: u32| {
            let count = i32::try_from(bytes).unwrap_or(i32::MAX);
            self.raw().operate(MtOperation::SetBlockSize, count).is_ok()
        };
        // A size that every drive supports. The search needs one to start from.
        let Some(known) = [512, 1024, 4096, 32_768, 1 << 20].into_iter().find(|size| takes(*size))
        else {
            return (unknown, Found::Unknown);
        };
        let largest = last_that_holds(known, COMMAND_BYTES_MAX as u32, &mut takes);
        let smallest = known - last_that_holds(0, known - 1, |less| takes(known - less));
        let bytes = match before.block_mode {
            BlockMode::Variable => 0,
            BlockMode::Fixed(bytes) => bytes,
        };
        takes(bytes);
        let limits = BlockLimits { granularity: 0, bytes_max: largest, bytes_min: smallest };
        (limits, Found::Tried)
    }
}

/// The last number for which `holds` is true, between `first` and `last`. `holds` is true for
/// `first`, and false from some number on.
fn last_that_holds(first: u32, last: u32, mut holds: impl FnMut(u32) -> bool) -> u32 {
    let (mut yes, mut no) = (first, last + 1);
    if holds(last) {
        return last;
    }
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn limits(drive_max: u32, transfer: Option<u64>, pieces: Option<u64>) -> DriveLimits {
        let drive = BlockLimits { granularity: 0, bytes_max: drive_max, bytes_min: 4 };
        DriveLimits::new(drive, Found::Asked, transfer, pieces, PAGE)
    }

    #[track_caller]
    fn check(limits: DriveLimits, bytes_max: u64, by: LimitedBy, recommended: u64) {
        assert_eq!(limits.block_bytes_max, bytes_max);
        assert_eq!(limits.limited_by, by);
        assert_eq!(limits.recommended_block_bytes(), recommended);
        assert_eq!(limits.check(recommended), Ok(()));
        assert!(limits.check(bytes_max).is_ok() && limits.check(bytes_max + 1).is_err());
    }

    #[test]
    fn the_smallest_limit_counts() {
        check(limits(1 << 20, None, None), 1 << 20, LimitedBy::Drive, 1 << 20);
        check(limits(8 << 20, None, None), 8 << 20, LimitedBy::Drive, 1 << 20);
        check(limits(0, None, None), COMMAND_BYTES_MAX, LimitedBy::Driver, 1 << 20);
        check(limits(0xff_ffff, Some(512 << 10), None), 512 << 10, LimitedBy::HostAdapter, 1 << 19);
        check(limits(0xff_ffff, Some(3 << 20), None), 3 << 20, LimitedBy::HostAdapter, 1 << 20);
        // With few pieces, larger blocks bounce, so a smaller one is better.
        check(limits(0, None, Some(64)), COMMAND_BYTES_MAX, LimitedBy::Driver, 256 << 10);
        check(limits(65_535, None, None), 65_535, LimitedBy::Drive, 32 << 10);
    }

    #[test]
    fn a_message_names_the_limit() {
        let error = limits(1 << 20, None, None).check(2 << 20).unwrap_err();
        let expected = "blocks of 2097152 bytes are too large: the drive takes 1048576 at most";
        assert_eq!(error.to_string(), expected);
        let drive = BlockLimits { granularity: 2, bytes_max: 1 << 20, bytes_min: 4 };
        let limits = DriveLimits::new(drive, Found::Asked, None, None, PAGE);
        assert_eq!(limits.check(1026), Err(BlockSizeError::Odd { bytes: 1026, grain: 4 }));
        assert_eq!(limits.check(2), Err(BlockSizeError::Small { bytes: 2, bytes_min: 4 }));
    }

    #[test]
    fn a_search_finds_every_limit() {
        for limit in (1..300).chain([1 << 20, (1 << 24) - 2, (1 << 24) - 1]) {
            assert_eq!(last_that_holds(1, (1 << 24) - 1, |bytes| bytes <= limit), limit);
        }
    }
}
