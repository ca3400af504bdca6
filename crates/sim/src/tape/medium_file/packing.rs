//! Blocks made smaller for the medium file, where that pays.
//!
//! A drive that compresses has said already whether a block shrinks (see
//! [`super::super::medium::Packing`]), from a sample and with a window of 1 KiB; what the block
//! takes here is another matter, and only decides how large the file becomes. Blocks that did not
//! shrink although they should have, as those of a drive with a given ratio, are followed by some
//! that are not tried: so data that do not compress cost next to nothing.

use std::io;

use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound, get_error_name};

/// Faster than level 1, at sizes a tenth larger: a drive that compresses takes up to 1.2 GB/s from
/// the host. Rates are those that the example `compressibility_rate` prints.
const LEVEL: i32 = -3;
/// Fewer blocks saved bytes than this part of them: not worth the way back.
const WORTH_DIVISOR: usize = 8;
/// Blocks that are not tried after one that did not shrink.
const REST_BLOCKS: u32 = 15;

/// Compresses blocks and gets them back.
pub struct Packer {
    compressor: CCtx<'static>,
    decompressor: DCtx<'static>,
    frame: Vec<u8>,
    /// Blocks that are still not tried.
    resting: u32,
}

impl Packer {
    /// Nothing was packed yet. Takes its memory, less than a MiB, with the first block.
    pub fn new() -> Packer {
        Packer {
            compressor: CCtx::create(),
            decompressor: DCtx::create(),
            frame: Vec::new(),
            resting: 0,
        }
    }

    /// A frame with the content of `block`, at least an eighth smaller; none if there is no such.
    pub fn pack(&mut self, block: &[u8]) -> Option<&[u8]> {
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        let most = block.len() - block.len() / WORTH_DIVISOR;
        match self.compressed(block) {
            Ok(bytes) if bytes < most => Some(&self.frame[..bytes]),
            // An error would be one of memory; a block can always be stored as it is.
            _ => {
                self.resting = REST_BLOCKS;
                None
            }
        }
    }

    /// The block that `frame` was made of, into `block`, which is of its length.
    ///
    /// # Errors
    /// When it is no frame, or one of another length.
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
