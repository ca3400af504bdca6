//! Data that a drive compresses as much as one asks.
//!
//! Text compresses because words come again. So do these data: words of [`WORD_BYTES`], either new
//! or copied from the last KiB, which is as far back as SLDC (ECMA-321) looks. Only the share of
//! new words differs between ratios. The letters of a new word are random bytes and not an
//! alphabet's: a small alphabet is something that zstd makes use of and a drive does not, and then
//! "3:1" would mean two things. Nothing lies further back than a KiB, so that a longer memory finds
//! no more.
//!
//! What a ratio is: host bytes for each byte on the medium with SLDC's first scheme, a literal at 9
//! bits and a copy at 19. The tests hold that against `sim`'s estimate, and zstd's opinion next to it.

use super::noise::Noise;

/// Bytes of a word: long enough that a copy is cheap, and below 32, where SLDC's codes for lengths
/// become longer.
pub const WORD_BYTES: usize = 24;

/// Below it a drive passes data through as they are.
pub const RATIO_MIN: f64 = 1.1;

/// Above it nearly all words are copies.
pub const RATIO_MAX: f64 = 8.0;

/// Bits of a new word: a literal is 9 bits.
const NEW_BITS: f64 = 9.0 * WORD_BYTES as f64;
/// Bits of a copied word: 1, 8 for lengths of 16 to 31, and 10 for the distance.
const COPY_BITS: f64 = 19.0;

/// How far back copies reach: within the history of 1,024 bytes.
const BACK_BYTES_MAX: usize = 1000;
/// Bytes made at once, which stay in the first-level cache.
const MADE_BYTES: usize = 512 * WORD_BYTES;

/// The stream.
#[derive(Clone, Debug)]
pub struct Text {
    random: Noise,
    /// A word is new when 32 random bits are below this.
    new_below: u64,
    /// The last [`BACK_BYTES_MAX`] bytes of what was made before, then what is made now.
    made: Vec<u8>,
    /// Where the first byte stands that was not handed out yet.
    at: usize,
}

impl Text {
    /// The beginning of the stream; the ratio lies between [`RATIO_MIN`] and [`RATIO_MAX`].
    pub fn new(ratio: f64, seed: u64) -> Text {
        let mut random = Noise::new(seed);
        let mut made = vec![0; BACK_BYTES_MAX + MADE_BYTES];
        // The first words have something to copy from, which is not handed out.
        random.fill(&mut made[MADE_BYTES..]);
        let new_below = (share_of_new(ratio) * (1u64 << 32) as f64) as u64;
        Text { random, new_below, at: made.len(), made }
    }

    /// Fills `buffer` with what comes next.
    pub fn fill(&mut self, mut buffer: &mut [u8]) {
        while !buffer.is_empty() {
            if self.at == self.made.len() {
                self.make();
            }
            let bytes = buffer.len().min(self.made.len() - self.at);
            let (now, later) = buffer.split_at_mut(bytes);
            now.copy_from_slice(&self.made[self.at..][..bytes]);
            self.at += bytes;
            buffer = later;
        }
    }

    fn make(&mut self) {
        self.made.copy_within(MADE_BYTES.., 0);
        for at in (BACK_BYTES_MAX..self.made.len()).step_by(WORD_BYTES) {
            let bits = self.random.bits();
            if bits & 0xffff_ffff < self.new_below {
                self.random.fill(&mut self.made[at..][..WORD_BYTES]);
                continue;
            }
            // Any byte may be the first one, and the copy never reaches into itself.
            let choices = (BACK_BYTES_MAX - WORD_BYTES) as u64;
            let back = WORD_BYTES + ((bits >> 32) * choices >> 32) as usize;
            self.made.copy_within(at - back..at - back + WORD_BYTES, at);
        }
        self.at = BACK_BYTES_MAX;
    }
}

/// Share of new words that gives a ratio: bits of a word are a mean of both kinds.
fn share_of_new(ratio: f64) -> f64 {
    let bits = 8.0 * WORD_BYTES as f64 / ratio;
    ((bits - COPY_BITS) / (NEW_BITS - COPY_BITS)).clamp(0.0, 1.0)
}
