//! Random numbers for test data. They must be the same next year, so they come from the generator
//! of `statistics`, which does not change. Not for secrets.

use statistics::random::Random;

/// A generator for one purpose.
pub struct Generator {
    random: Random,
}

impl Generator {
    /// The same seed and stream give the same numbers; streams of one seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { random: Random::new(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03)) }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.random.bits()
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit as usize) as u64
    }

    /// A log-normal deviate of the given mean; `sigma` is the deviation of its logarithm.
    pub fn log_normal(&mut self, mean: f64, sigma: f64) -> f64 {
        (mean.ln() - sigma * sigma / 2.0 + sigma * self.random.normal()).exp()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_a_seed_differ_and_repeat() {
        let first = |seed, stream| Generator::new(seed, stream).next();
        assert_eq!(first(7, 1), first(7, 1));
        assert_ne!(first(7, 1), first(7, 2));
        assert_ne!(first(7, 1), first(8, 1));
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
