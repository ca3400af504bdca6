//! What a compressor does in a second of a processor, on data of the source.
//!
//! The program runs with the options of the line; its input is the sample, its output is counted
//! and thrown away. What `takeup backup` would have in its place is tried the same way: its own
//! gzip is another library's.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use archive::chunk::{ChunkCompressor, Compression};
use machine::counters::processor::children_ns;
use rustix::time::{ClockId, clock_gettime};

use crate::amount::Amount;
use crate::source::sample::Sample;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressor {
    /// Input for each second of a processor, in bytes.
    pub rate: Amount,
    /// Input bytes for each byte of output.
    pub ratio: f64,
    /// Bytes at the beginning of the sample that it was tried on.
    pub seen_bytes: usize,
}

const TRIALS: usize = 3;
/// A trial is fed for this long.
const TRIAL: Duration = Duration::from_millis(400);
/// A trial that lasts longer is ended.
const LIMIT: Duration = Duration::from_secs(10);
/// Less data say nothing.
const BYTES_MIN: u64 = 256 << 10;
const PIECE_BYTES: usize = 64 << 10;
/// A chunk of `takeup backup`, or less.
const OWN_CHUNK_BYTES: usize = 1 << 20;

/// Tries a program of these words; the reason where it cannot be tried.
pub fn try_compressor(words: &[String], sample: &Sample) -> Result<Compressor, String> {
    let data = sample.bytes();
    if (data.len() as u64) < BYTES_MIN {
        return Err("too little of the source was read to try it on".to_owned());
    }
    let mut rates = Vec::new();
    let (mut taken, mut given) = (0, 0);
    let (mut from, mut seen_bytes) = (0, 0);
    for _ in 0..TRIALS {
        let one = run(words, &data[from..])?;
        // A program with its own start and end needs some data to show its rate.
        if one.taken_bytes < BYTES_MIN {
            break;
        }
        rates.push(one.taken_bytes as f64 / one.processor_seconds.max(1e-4));
        taken += one.taken_bytes;
        given += one.given_bytes;
        let next = from + usize::try_from(one.taken_bytes).unwrap_or(usize::MAX);
        seen_bytes = seen_bytes.max(next.min(data.len()));
        from = if data.len().saturating_sub(next) < 4 << 20 { 0 } else { next };
    }
    let rate = Amount::of_trials(&rates).ok_or("it took too little in its time")?;
    Ok(Compressor { rate, ratio: taken as f64 / given.max(1) as f64, seen_bytes })
}

/// The same, with its ratio of that part of the sample that a slower program has seen, as far as it
/// comes: what lies behind it may shrink otherwise.
pub fn try_beside(
    words: &[String],
    sample: &Sample,
    seen_bytes: usize,
) -> Result<Compressor, String> {
    let tried = try_compressor(words, sample)?;
    let data = &sample.bytes()[..seen_bytes.min(sample.bytes().len())];
    let one = run(words, data)?;
    let ratio = one.taken_bytes as f64 / one.given_bytes.max(1) as f64;
    Ok(Compressor { ratio, seen_bytes: data.len(), ..tried })
}

/// Tries the compression of `takeup backup`, in one thread; `None` where there is too little data.
pub fn try_own(compression: Compression, sample: &Sample) -> Option<Compressor> {
    let data = sample.bytes();
    if (data.len() as u64) < BYTES_MIN {
        return None;
    }
    let mut compressor = ChunkCompressor::new(compression).ok()?;
    let (mut rates, mut out) = (Vec::new(), Vec::new());
    let (mut taken, mut given, mut seen_bytes) = (0, 0, 0);
    for _ in 0..TRIALS {
        let (begun, used) = (Instant::now(), thread_seconds());
        let mut own = 0;
        // A whole chunk at least; the same data again where there is little of it.
        for chunk in data.chunks(OWN_CHUNK_BYTES) {
            compressor.compress(chunk, &mut out).ok()?;
            own += chunk.len();
            given += out.len();
            if begun.elapsed() >= TRIAL / 2 {
                break;
            }
        }
        rates.push(own as f64 / (thread_seconds() - used).max(1e-4));
        taken += own;
        seen_bytes = seen_bytes.max(own);
    }
    let rate = Amount::of_trials(&rates)?;
    Some(Compressor { rate, ratio: taken as f64 / given.max(1) as f64, seen_bytes })
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Ran {
    taken_bytes: u64,
    given_bytes: u64,
    processor_seconds: f64,
}

fn run(words: &[String], data: &[u8]) -> Result<Ran, String> {
    let failed = |error: std::io::Error| format!("it cannot be started: {error}");
    let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or("");
    let mut command = machine::programs::command(name).map_err(failed)?;
    command.args(words.get(1..).unwrap_or(&[]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let before = children_ns().map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let own = rustix::process::Pid::from_child(&child);
    let (ended, waits) = mpsc::channel::<()>();
    let counts = std::thread::scope(|scope| {
        // It has been fed by then, whatever it does with that.
        scope.spawn(move || {
            if waits.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            }
        });
        let feeding = scope.spawn(move || {
            let Some(mut input) = input else { return 0 };
            let begun = Instant::now();
            let mut taken = 0;
            for piece in data.chunks(PIECE_BYTES) {
                if begun.elapsed() >= TRIAL || input.write_all(piece).is_err() {
                    break;
                }
                taken += piece.len() as u64;
            }
            taken
        });
        let mut given = 0;
        if let Some(mut output) = output {
            let mut buffer = vec![0; 256 << 10];
            while let Ok(bytes @ 1..) = output.read(&mut buffer) {
                given += bytes as u64;
            }
        }
        let taken = feeding.join().unwrap_or(0);
        drop(ended);
        (taken, given)
    });
    let status = child.wait().map_err(failed)?;
    let after = children_ns().map_err(failed)?;
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    let used = (after[0] - before[0]) + (after[1] - before[1]);
    let (taken_bytes, given_bytes) = counts;
    Ok(Ran { taken_bytes, given_bytes, processor_seconds: used as f64 / 1e9 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        let mut sample = Sample::default();
        let mut state = 1u32;
        let mut letters = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"abcdefgh"[(state >> 29) as usize]
        };
        let text: Vec<u8> = (0..6 << 20).map(|_| letters()).collect();
        sample.add_large(&text);
        sample.mix(1, 0);
        sample
    }

    #[test]
    fn a_compressor_is_tried_on_data() {
        let words = ["gzip".to_owned(), "-1".to_owned()];
        let found = try_compressor(&words, &sample()).unwrap();
        // Eight letters are 3 bits each.
        assert!((1.8..2.7).contains(&found.ratio), "{found:?}");
        assert!(found.rate.low > 0.0 && found.rate.low <= found.rate.high);
    }

    /// Half of it shrinks, and only behind what the slow one has seen.
    #[test]
    fn ratios_are_compared_on_the_same_data() {
        let mut sample = Sample::default();
        let mut random = statistics::random::Random::new(5);
        let noise: Vec<u8> = (0..1 << 20).map(|_| random.bits() as u8).collect();
        sample.add_large(&noise);
        sample.add_large(&vec![0; 3 << 20]);
        sample.mix(1, 0);
        let words = ["gzip".to_owned(), "-1".to_owned()];
        let beside = try_beside(&words, &sample, 1 << 20).unwrap();
        assert!((0.9..1.1).contains(&beside.ratio), "{beside:?}");
        assert!(try_compressor(&words, &sample).unwrap().ratio > 3.0);
    }

    #[test]
    fn our_own_compression_is_tried_on_data() {
        let found = try_own(Compression::Gzip { level: 1 }, &sample()).unwrap();
        assert!((1.8..2.7).contains(&found.ratio), "{found:?}");
        assert!(found.rate.low > 0.0 && found.rate.low <= found.rate.high);
        assert_eq!(try_own(Compression::Gzip { level: 1 }, &Sample::default()), None);
    }

    #[test]
    fn what_cannot_be_tried_is_said() {
        let error = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            try_compressor(&words, &sample()).unwrap_err()
        };
        assert!(error(&["gzip", "--nonsense"]).contains("it ended with"));
        assert!(error(&["no-such-program"]).contains("cannot be started"));
        let none = try_compressor(&["gzip".to_owned()], &Sample::default());
        assert!(none.unwrap_err().contains("too little"));
    }
}
