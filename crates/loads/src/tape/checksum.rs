//! A sum over all bytes in their order, fast enough to be no part of what is measured: it tells
//! whether what a drive gives back is what it was given.
//!
//! Not against forgery, and weaker than the hashes of a backup, which `verify` is for.

/// Lanes that do not wait for each other: a multiplication takes a few cycles.
const LANES: usize = 8;
/// An odd number with as many ones as zeros: each step can be undone, so no difference in a single
/// word is ever lost.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sum of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksum {
    lanes: [u64; LANES],
    bytes: u64,
}

impl Checksum {
    /// Adds a block; one that is no multiple of 64 bytes is taken as if zeros followed.
    pub(super) fn add(&mut self, block: &[u8]) {
        self.bytes += block.len() as u64;
        let chunks = block.chunks_exact(LANES * 8);
        let rest = chunks.remainder();
        chunks.for_each(|chunk| self.step(chunk));
        if !rest.is_empty() {
            let mut last = [0; LANES * 8];
            last[..rest.len()].copy_from_slice(rest);
            self.step(&last);
        }
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn step(&mut self, chunk: &[u8]) {
        for (lane, word) in self.lanes.iter_mut().zip(chunk.chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            *lane = (lane.rotate_left(29) ^ word).wrapping_mul(FACTOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(blocks: &[&[u8]]) -> Checksum {
        let mut checksum = Checksum::default();
        blocks.iter().for_each(|block| checksum.add(block));
        checksum
    }

    proptest! {
        #[test]
        fn every_difference_shows(
            mut bytes in prop::collection::vec(any::<u8>(), 128..600),
            at in any::<prop::sample::Index>(), bit in 0u32..8,
        ) {
            bytes.truncate(bytes.len() / 64 * 64);
            let whole = of(&[&bytes]);
            let cut = bytes.len() / 128 * 64;
            prop_assert_eq!(of(&[&bytes[..cut], &bytes[cut..]]), whole);
            let mut swapped = bytes[64..128].to_vec();
            swapped.extend_from_slice(&bytes[..64]);
            swapped.extend_from_slice(&bytes[128..]);
            prop_assert_eq!(of(&[&swapped]) == whole, swapped == bytes);
            prop_assert_ne!(of(&[&bytes[..bytes.len() - 64]]), whole);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_ne!(of(&[&bytes]), whole);
        }
    }
}
