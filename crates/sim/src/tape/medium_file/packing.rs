//! Packs blocks for the medium file, if that saves room.
//!
//! A compressing drive has already estimated whether a block shrinks (see
//! [`super::super::medium::Packing`]), from a sample and with a window of 1 KiB. Packing is
//! separate, and only decides how large the file becomes. After blocks that should have shrunk but
//! did not, like those of a drive with a given ratio, some are not tried: so incompressible data
//! cost almost nothing.

use std::io;

use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound, get_error_name};

/// Faster than level 1, with sizes a tenth larger: a compressing drive takes up to 1.2 GB/s from
/// the host. The example `compressibility_rate` prints these rates.
const LEVEL: i32 = -3;
/// A smaller saving, as a share of the block, is not worth unpacking it.
const WORTH_DIVISOR: usize = 8;
/// Blocks that are not tried after one that did not shrink.
const REST_BLOCKS: u32 = 15;

/// Packs and unpacks blocks.
pub struct Packer {
    compressor: CCtx<'static>,
    decompressor: DCtx<'static>,
    frame: Vec<u8>,
    /// Blocks that are still skipped.
    resting: u32,
}

impl Packer {
    /// A new packer. Allocates its memory, less than a MiB, with the first block.
    pub fn new() -> Packer {
        Packer {
            compressor: CCtx::create(),
            decompressor: DCtx::create(),
            frame: Vec::new(),
            resting: 0,
        }
    }

    /// A frame with the content of `block`, at least an eighth smaller; `None` if that is not
    /// possible.
    pub fn pack(&mut self, block: &[u8]) -> Option<&[u8]> {
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        let most = block.len() - block.len() / WORTH_DIVISOR;
        match self.compressed(block) {
            Ok(bytes) if bytes < most => Some(&self.frame[..bytes]),
            // An error would be one of memory; a block can always be stored unpacked.
            _ => {
                self.resting = REST_BLOCKS;
                None
            }
        }
    }

    /// Unpacks `frame` into `block`, which has its length.
    ///
    /// # Errors
    /// When it is no frame, or has another length.
    pub fn unpack(&mut self, frame: &[u8], block: &mut [u8]) -> io::Result<()> {
        match self.decompressor.decompress(block, frame) {
            Ok(bytes) if bytes == block.len() => Ok(()),
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a block of another length")),
            Err(code) => Err(io::Error::new(io::ErrorKind::InvalidData, get_error_name(code))),
        }
    }

    fn compressed(&mut self, block: &[u8]) -> Result<usize, usize> {
        self.frame.resize(compress_bound(block.len()), 0);
        self.compressor.set_parameter(CParameter::CompressionLevel(LEVEL))?;
        self.compressor.compress2(&mut self.frame[..], block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_shrink_is_left_alone_for_a_while() {
        let mut packer = Packer::new();
        let zeros = vec![0; 1 << 16];
        assert!(packer.pack(&zeros).unwrap().len() < 1000);
        assert_eq!(packer.pack(&testkit::samples::noise(0, 1 << 16)), None);
        for _ in 0..REST_BLOCKS {
            assert_eq!(packer.pack(&zeros), None);
        }
        assert!(packer.pack(&zeros).is_some());
        assert_eq!(packer.pack(&[]), None);
    }

    #[test]
    fn a_frame_of_another_length_is_none() {
        let mut packer = Packer::new();
        let frame = packer.pack(&[7; 5000]).unwrap().to_vec();
        let mut block = vec![0; 5000];
        packer.unpack(&frame, &mut block).unwrap();
        assert_eq!(block, [7; 5000]);
        assert!(packer.unpack(&frame, &mut [0; 4999]).is_err());
        assert!(packer.unpack(&frame, &mut [0; 5001]).is_err());
        assert!(packer.unpack(&frame[..frame.len() - 1], &mut block).is_err());
        assert!(packer.unpack(&testkit::samples::noise(0, 100), &mut block).is_err());
        assert!(packer.unpack(&[], &mut block).is_err());
    }
}
