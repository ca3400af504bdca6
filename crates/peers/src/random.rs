//! Pseudo-random numbers that stay the same for ever.
//!
//! Test data is made from a seed and must be the same next year, so the generator is written down
//! here and does not depend on a crate whose algorithm may change: xoshiro256++ with a SplitMix64
//! start, after Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021).
//! Nothing here is fit for secrets.

/// A xoshiro256++ generator.
pub struct Generator {
    state: [u64; 4],
}

impl Generator {
    /// A generator for one purpose: the same seed and stream give the same numbers, and streams of
    /// one seed are unrelated to each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut state = [0; 4];
        for word in &mut state {
            *word = split_mix(&mut mixer);
        }
        Self { state }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `limit`, by multiplication; the bias is below 2^-32 for the small limits
    /// used here.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number in 0..1 with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normal deviate (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A log-normal deviate of the given mean; `sigma` is the deviation of its logarithm.
    pub fn log_normal(&mut self, mean: f64, sigma: f64) -> f64 {
        (mean.ln() - sigma * sigma / 2.0 + sigma * self.normal()).exp()
    }

    /// Appends `bytes` bytes that no program can compress.
    pub fn noise(&mut self, out: &mut Vec<u8>, bytes: usize) {
        out.reserve(bytes + 8);
        let end = out.len() + bytes;
        while out.len() < end {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(end);
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_algorithm() {
        // The update as it stands in the paper, statement by statement.
        fn reference(s: &mut [u64; 4]) -> u64 {
            let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
            let t = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= t;
            s[3] = s[3].rotate_left(45);
            result
        }
        let mut generator = Generator::new(7, 1);
        let mut state = generator.state;
        for _ in 0..1000 {
            assert_eq!(generator.next(), reference(&mut state));
        }
    }

    #[test]
    fn log_normal_has_the_mean_it_is_asked_for() {
        let mut generator = Generator::new(1, 2);
        let count = 200_000;
        let sum: f64 = (0..count).map(|_| generator.log_normal(9000.0, 1.2)).sum();
        let mean = sum / f64::from(count);
        assert!((8700.0..9300.0).contains(&mean), "{mean}");
    }
}
