//! What tests are fed with and how they look at what came out, for the tests of all crates.
//!
//! Not here: what only one crate's tests need, and what a test needs of the machine (`needs`).

/// Marsaglia's xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled", 2016): the same numbers for a seed, for ever.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A generator for one of many things whose numbers follow each other.
    pub fn numbered(number: u64) -> Random {
        Random::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Another one, told from this one by a number; this one does not move.
    pub fn branch(&self, number: u64) -> Random {
        Random::new(self.0 ^ number)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.bits() >> 33) % limit
    }

    /// A place in something of that length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 8);
        while out.len() < bytes {
            out.extend_from_slice(&self.bits().to_le_bytes());
        }
        out.truncate(bytes);
        out
    }
}

/// Bytes that do not compress and differ with the seed.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    Random::numbered(seed).bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_repeats_and_differs_with_the_seed() {
        assert_eq!(noise(3, 1001), noise(3, 1001));
        assert_eq!(noise(3, 1001)[..77], noise(3, 77));
        assert_ne!(noise(3, 64), noise(4, 64));
    }
}
