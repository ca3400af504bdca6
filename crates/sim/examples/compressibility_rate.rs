//! How fast the estimate of the drive's compression is, whole and sampled as a drive in real time
//! takes it: `cargo run --release -p sim --example compressibility_rate`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use sim::model::compressibility::Compressibility;
use sim::tape::real_time::Sampled;

const BYTES: usize = 128 << 20;

fn main() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = (0..BYTES / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    let words = b"the quick brown fox jumps over the lazy dog and then it rests a while ";
    let text: Vec<u8> = noise
        .iter()
        .flat_map(|byte| {
            let from = usize::from(*byte) % (words.len() - 6);
            words[from..from + 6].iter().copied()
        })
        .take(BYTES)
        .collect();
    for (name, data) in [("zeros", &vec![0; BYTES]), ("noise", &noise), ("words", &text)] {
        let mut whole = Compressibility::new();
        let (native, rate) = pass(data, |block| whole.add(block));
        let mut sampled = Sampled::new();
        let (estimate, sampled_rate) = pass(data, |block| u64::from(sampled.add(block)));
        println!(
            "{name}: ratio {:.3} at {rate:.0} MB/s; sampled {:.3} at {sampled_rate:.0} MB/s",
            BYTES as f64 / native as f64,
            BYTES as f64 / estimate as f64,
        );
    }
}

/// Native bytes, and MB/s.
fn pass(data: &[u8], mut add: impl FnMut(&[u8]) -> u64) -> (u64, f64) {
    let begin = Instant::now();
    let native = data.chunks(1 << 20).map(&mut add).sum();
    (native, BYTES as f64 / begin.elapsed().as_secs_f64() / 1e6)
}
