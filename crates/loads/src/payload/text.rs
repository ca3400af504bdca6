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
//! bits and a copy at 19. The tests hold that against `model`'s estimate, with zstd's opinion
//! beside.

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
/// Words made at once: what they need stays in the cache.
const WORDS: usize = 384;
const MADE_BYTES: usize = WORDS * WORD_BYTES;
/// Places in [`Text::memory`]: new words that wait, what was made before, what is made now.
const BEFORE: usize = MADE_BYTES;
const MADE: usize = BEFORE + BACK_BYTES_MAX;
const MEMORY_BYTES: usize = MADE + MADE_BYTES;

/// The stream.
#[derive(Clone, Debug)]
pub struct Text {
    random: Noise,
    /// A word is new when 32 random bits are below this.
    new_below: u64,
    memory: Box<[u8; MEMORY_BYTES]>,
    /// Where the first byte stands that was not handed out yet.
    at: usize,
    /// New words at the beginning of the memory that have been used.
    used: usize,
}

impl Text {
    /// The beginning of the stream; the ratio lies between [`RATIO_MIN`] and [`RATIO_MAX`].
    pub fn new(ratio: f64, seed: u64) -> Text {
        let new_below = (share_of_new(ratio) * (1u64 << 32) as f64) as u64;
        let mut memory = Box::new([0; MEMORY_BYTES]);
        let mut random = Noise::new(seed);
        // New words, and something for the first ones to copy from, which is not handed out.
        random.fill(&mut memory[..]);
        Text { random, new_below, memory, at: MEMORY_BYTES, used: 0 }
    }

    /// Fills `buffer` with what comes next.
    pub fn fill(&mut self, mut buffer: &mut [u8]) {
        while !buffer.is_empty() {
            if self.at == MEMORY_BYTES {
                self.make();
            }
            let bytes = buffer.len().min(MEMORY_BYTES - self.at);
            let (now, later) = buffer.split_at_mut(bytes);
            now.copy_from_slice(&self.memory[self.at..][..bytes]);
            self.at += bytes;
            buffer = later;
        }
    }

    /// Whether a word is new cannot be foreseen by the processor, so that nothing branches on it:
    /// both kinds are copies, from different places.
    fn make(&mut self) {
        let mut decisions = [0; WORDS * 8];
        self.random.fill(&mut decisions);
        self.random.fill(&mut self.memory[..self.used * WORD_BYTES]);
        self.memory.copy_within(MEMORY_BYTES - BACK_BYTES_MAX.., BEFORE);
        self.used = 0;
        for (number, decision) in decisions.as_chunks::<8>().0.iter().enumerate() {
            let bits = u64::from_le_bytes(*decision);
            let at = MADE + number * WORD_BYTES;
            // Any byte may be the first one of a copy, which never reaches into itself.
            let choices = (BACK_BYTES_MAX - WORD_BYTES + 1) as u64;
            let back = WORD_BYTES + (((bits >> 32) * choices) >> 32) as usize;
            let is_new = usize::from(bits & 0xffff_ffff < self.new_below);
            let from = is_new * self.used * WORD_BYTES + (1 - is_new) * (at - back);
            self.used += is_new;
            let mut word = [0; WORD_BYTES];
            word.copy_from_slice(&self.memory[from..from + WORD_BYTES]);
            self.memory[at..at + WORD_BYTES].copy_from_slice(&word);
        }
        self.at = MADE;
    }
}

/// Share of new words that gives a ratio: bits of a word are a mean of both kinds.
fn share_of_new(ratio: f64) -> f64 {
    let bits = 8.0 * WORD_BYTES as f64 / ratio;
    ((bits - COPY_BITS) / (NEW_BITS - COPY_BITS)).clamp(0.0, 1.0)
}
