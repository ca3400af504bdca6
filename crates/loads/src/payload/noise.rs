//! Random bytes at the rate of memory.
//!
//! Lanes of xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
//! 2021) beside each other, so that the processor's vector unit does several at once. Its period of
//! 2^256 and a state of its own for each lane mean that no page comes twice, in a run or between
//! runs with different seeds. It is no cipher, and no drive looks for more than repeats.

use statistics::random::Random;

/// Generators side by side: two registers of 128 bits for each word of state, or one of 256.
const LANES: usize = 8;
/// Bytes of one step of all lanes.
const STEP_BYTES: usize = LANES * 8;

/// The stream.
#[derive(Clone, Debug)]
pub struct Noise {
    state: [[u64; LANES]; 4],
    /// The last step, of which `left` bytes at its end are not used yet.
    step: [u8; STEP_BYTES],
    left: usize,
}

impl Noise {
    /// The beginning of the stream of this seed.
    pub fn new(seed: u64) -> Noise {
        let mut random = Random::new(seed);
        let mut state = [[0; LANES]; 4];
        state.iter_mut().flatten().for_each(|word| *word = random.bits());
        Noise { state, step: [0; STEP_BYTES], left: 0 }
    }

    /// Fills `buffer` with what comes next.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let kept = self.left.min(buffer.len());
        let (first, rest) = buffer.split_at_mut(kept);
        first.copy_from_slice(&self.step[STEP_BYTES - self.left..][..kept]);
        self.left -= kept;
        let (steps, last) = rest.as_chunks_mut::<STEP_BYTES>();
        let mut state = self.state;
        for step in steps {
            *step = next(&mut state);
        }
        if !last.is_empty() {
            self.step = next(&mut state);
            last.copy_from_slice(&self.step[..last.len()]);
            self.left = STEP_BYTES - last.len();
        }
        self.state = state;
    }
}

/// One step of all lanes.
#[inline(always)]
fn next(state: &mut [[u64; LANES]; 4]) -> [u8; STEP_BYTES] {
    let mut bytes = [0; STEP_BYTES];
    let [a, b, c, d] = state;
    for lane in 0..LANES {
        let result = a[lane].wrapping_add(d[lane]).rotate_left(23).wrapping_add(a[lane]);
        let shifted = b[lane] << 17;
        c[lane] ^= a[lane];
        d[lane] ^= b[lane];
        b[lane] ^= c[lane];
        a[lane] ^= d[lane];
        c[lane] ^= shifted;
        d[lane] = d[lane].rotate_left(45);
        bytes[lane * 8..][..8].copy_from_slice(&result.to_le_bytes());
    }
    bytes
}
