//! Known designs.

use experiment::plan::Stop;
use experiment::record::{Factor, Level};

/// Sizes of files of `btape speed`; in powers of 1024, so that they are whole in any block size.
pub const BTAPE_FILE_BYTES: [u64; 3] = [1 << 30, 2 << 30, 4 << 30];
/// Repeats of every value.
pub const BTAPE_REPEATS: u64 = 3;
/// A drive takes a minute for the largest file; such a design should not be cut off.
const BUDGET_SECONDS: f64 = 7.0 * 86_400.0;

/// The design of Bacula's `btape speed`: for each block size zeros and random data, raw and in
/// Bacula's blocks, files of 1, 2 and 4 GB, three times each: 36 values
/// (`published/lto4-btape.toml`). `scale` makes the files smaller.
pub fn btape(block_bytes: &[u64], scale: f64) -> Vec<Factor> {
    let words = |name: &str, words: &[&str]| {
        Factor::new(name, words.iter().map(|&word| Level::Text(word.to_owned())).collect())
    };
    let numbers = |name: &str, numbers: &[u64]| {
        Factor::new(name, numbers.iter().map(|&number| Level::Number(number)).collect())
    };
    let file_bytes = BTAPE_FILE_BYTES.map(|bytes| scaled(bytes, scale));
    vec![
        words("data", &["zeros", "random"]),
        words("framing", &["raw", "bacula"]),
        numbers("file_bytes", &file_bytes),
        numbers("block_bytes", block_bytes),
    ]
}

/// When that design is done: with its repeats.
pub fn btape_stop() -> Stop {
    Stop {
        repeats_min: BTAPE_REPEATS,
        repeats_max: BTAPE_REPEATS,
        budget_seconds: BUDGET_SECONDS,
        ..Stop::default()
    }
}

/// A scaled length that can still be read: in whole MiB, or units of tar where it is shorter.
fn scaled(bytes: u64, scale: f64) -> u64 {
    const MIB: u64 = 1 << 20;
    const UNIT: u64 = 512;
    let bytes = (bytes as f64 * scale) as u64;
    if bytes >= MIB {
        (bytes + MIB / 2) / MIB * MIB
    } else {
        bytes.next_multiple_of(UNIT).max(UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_size_has_36_values() {
        let cells: usize = btape(&[65536], 1.0).iter().map(|factor| factor.levels.len()).product();
        assert_eq!(cells as u64 * BTAPE_REPEATS, 36);
        let small = btape(&[65536], 0.01);
        assert_eq!(small[2].levels[0], Level::Number(10 << 20));
        assert_eq!(btape(&[65536], 1e-12)[2].levels[0], Level::Number(512));
    }
}
