//! How the memory of a run is divided between its rings, and whether it is enough.

use archive::chunk::Compression;
use flow::ring::RingOptions;

use super::error::BackupError;
use super::options::BackupOptions;

/// Sizes of the rings, checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingSizes {
    pub(super) archive: RingOptions,
    /// The ring behind compression, if any.
    pub(super) output: Option<RingOptions>,
}

/// What the writer needs of its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// It releases each block as soon as it is written.
    OneStream,
    /// It keeps blocks from the start of a chunk on.
    Segments,
}

/// Least number of chunks in front of the compressors of a backup to tape.
const CHUNKS_AHEAD: usize = 16;

impl RingSizes {
    pub(super) fn new(options: &BackupOptions, layout: Layout) -> Result<RingSizes, BackupError> {
        let block_bytes = options.block_bytes;
        if block_bytes == 0 || !block_bytes.is_multiple_of(512) || block_bytes > u32::MAX as usize {
            return Err(BackupError::BlockSize { block_bytes });
        }
        let too_small =
            |block_bytes| BackupError::RingTooSmall { ring_bytes: options.ring_bytes, block_bytes };
        let sized = |bytes: usize, block_bytes, consumers| match bytes / block_bytes {
            0..4 => Err(too_small(block_bytes)),
            blocks => Ok(RingOptions { block_bytes, blocks, consumers }),
        };
        if options.compression == Compression::None {
            let archive = sized(options.ring_bytes, block_bytes, 2)?;
            return Ok(RingSizes { archive, output: None });
        }
        // Chunks need room in front of the compressors, each of which holds one; their output is
        // smaller.
        let held_bytes = match layout {
            Layout::OneStream => 0,
            // Incompressible chunks grow by less than 1 %, and share their first and last block.
            Layout::Segments => {
                let chunk_bytes = options.compression.chunk_bytes();
                (chunk_bytes + chunk_bytes / 64).next_multiple_of(block_bytes) + 2 * block_bytes
            }
        };
        let share_bytes = match layout {
            Layout::OneStream => options.ring_bytes / 4,
            // The drive runs from the ring before it between two stops; compressors need only a few
            // chunks each.
            Layout::Segments => {
                let chunks_bytes = CHUNKS_AHEAD * options.compression.chunk_bytes();
                let archive_bytes = (options.ring_bytes / 8).max(chunks_bytes);
                (options.ring_bytes / 4).max(options.ring_bytes.saturating_sub(archive_bytes))
            }
        };
        let output_bytes = share_bytes.max(4 * block_bytes + held_bytes);
        let archive_bytes = options.ring_bytes.saturating_sub(output_bytes);
        let archive = sized(archive_bytes, options.compression.chunk_bytes(), 2)?;
        Ok(RingSizes { archive, output: Some(sized(output_bytes, block_bytes, 1)?) })
    }

    pub(super) fn bytes(&self) -> u64 {
        let bytes = |ring: &RingOptions| (ring.block_bytes * ring.blocks) as u64;
        bytes(&self.archive) + self.output.as_ref().map_or(0, bytes)
    }
}
