//! How far what would be stored compresses: stretches of it, compressed as the archive would.
//!
//! The contents are taken one after the other, as in the archive, and cut into parts of the same
//! length; in each part a stretch begins at a random byte. So every byte is as likely as any other,
//! and the mean share of the stretches estimates the share of all. A stretch goes on into the next
//! files, since small files compress by what is beside them. The draws are the same in each run
//! over the same tree. How much there is must be known before, from a first walk.
//!
//! Not here: names and other metadata, and the index, which an archive has besides.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use archive::chunk::{ChunkCompressor, Compression};
use model::compressibility::Compressibility;
use runs::backup::StoredContent;
use rustix::fs::{SeekFrom, seek};
use statistics::interval::of_mean;
use statistics::random::Random;
use tree::{Accounts, Attributes, Capture, CaptureOptions, Capturer};

/// Most stretches. Of fewer bytes than these have, all is read.
const STRETCHES_MAX: u64 = 16;
/// Most bytes of a stretch; it is as long as a chunk, which is compressed on its own.
const STRETCH_BYTES_MAX: u64 = 8 << 20;
/// Any number: the same tree gives the same answer.
const SEED: u64 = 34;
/// Of the interval, by Student's t: so many have the true value in them.
const CONFIDENCE: f64 = 0.95;

/// How far the contents compress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressedShare {
    /// Bytes after compression for each byte before it, the mean of the stretches.
    pub share: f64,
    /// Its 95 % interval, from the spread of the stretches; empty where all was read.
    pub low: f64,
    pub high: f64,
}

/// What the stretches say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledContents {
    /// Stretches that were read.
    pub stretches: u64,
    pub read_bytes: u64,
    /// Files that could not be read.
    pub unread: u64,
    /// By the compression of the run; `None` without one, or of fewer than two stretches.
    pub compressed: Option<CompressedShare>,
    /// In a drive that compresses, as LTO drives do.
    pub in_drive: Option<CompressedShare>,
}

/// Reads and compresses the stretches while the files pass.
pub(super) struct Stretches {
    /// Where they begin, ascending.
    begins: VecDeque<u64>,
    stretch_bytes: u64,
    /// Whether they are all that there is.
    is_whole: bool,
    passed_bytes: u64,
    /// Those that have begun and are not full.
    open: Vec<Vec<u8>>,
    capturer: Capturer,
    compressor: Option<ChunkCompressor>,
    /// Bytes before and after compression.
    by_run: Vec<(u64, u64)>,
    by_drive: Vec<(u64, u64)>,
    sampled: SampledContents,
}

impl Stretches {
    /// Of so many bytes.
    pub(super) fn of(all_bytes: u64, compression: Compression) -> Stretches {
        let stretch_bytes = (compression.chunk_bytes() as u64).min(STRETCH_BYTES_MAX);
        let parts = all_bytes.div_ceil(stretch_bytes);
        let is_whole = parts <= STRETCHES_MAX;
        let mut random = Random::new(SEED);
        let part_bytes = all_bytes as f64 / STRETCHES_MAX as f64;
        let drawn = |part: u64| ((part as f64 + random.unit()) * part_bytes) as u64;
        let begins = if is_whole {
            (0..parts).map(|part| part * stretch_bytes).collect()
        } else {
            (0..STRETCHES_MAX).map(drawn).collect()
        };
        let look = CaptureOptions { attributes: Attributes::Ignore, ..CaptureOptions::default() };
        Stretches {
            begins,
            stretch_bytes,
            is_whole,
            passed_bytes: 0,
            open: Vec::new(),
            capturer: Capturer::new(look, Arc::new(Accounts::load())),
            compressor: match compression {
                Compression::None => None,
                other => ChunkCompressor::new(other).ok(),
            },
            by_run: Vec::new(),
            by_drive: Vec::new(),
            sampled: SampledContents::default(),
        }
    }

    /// The next content.
    pub(super) fn pass(&mut self, content: StoredContent<'_>) {
        let StoredContent { entry, size_bytes, stored_bytes } = content;
        let begin_bytes = self.passed_bytes;
        self.passed_bytes += stored_bytes;
        let has_begin = self.begins.front().is_some_and(|begin| *begin < self.passed_bytes);
        if stored_bytes == 0 || (self.open.is_empty() && !has_begin) {
            return;
        }
        let file = match self.capturer.capture(entry, None) {
            Ok(Capture::Object(object)) => object.file,
            _ => None,
        };
        self.sampled.unread += u64::from(file.is_none());
        for stretch in &mut self.open {
            if let Some(file) = &file {
                append(stretch, file, 0, stored_bytes, self.stretch_bytes);
            }
        }
        while let Some(begin) = self.next_begin() {
            let mut stretch = Vec::new();
            if let Some(file) = &file {
                let inside = begin - begin_bytes.min(begin);
                // Of a file with holes, the data behind that place.
                let at = if size_bytes > stored_bytes { size_bytes / 2 } else { inside };
                let most_bytes = stored_bytes - inside.min(stored_bytes);
                append(&mut stretch, file, at, most_bytes, self.stretch_bytes);
            }
            self.open.push(stretch);
        }
        let stretch_bytes = self.stretch_bytes;
        let is_full = |stretch: &Vec<u8>| stretch.len() as u64 >= stretch_bytes;
        let (full, open) = std::mem::take(&mut self.open).into_iter().partition(is_full);
        self.open = open;
        self.compress(full);
    }

    fn next_begin(&mut self) -> Option<u64> {
        let is_here = self.begins.front().is_some_and(|begin| *begin < self.passed_bytes);
        if is_here { self.begins.pop_front() } else { None }
    }

    fn compress(&mut self, stretches: Vec<Vec<u8>>) {
        let mut out = Vec::new();
        for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
            self.sampled.stretches += 1;
            self.sampled.read_bytes += stretch.len() as u64;
            let before = stretch.len() as u64;
            if let Some(compressor) = &mut self.compressor
                && compressor.compress(stretch, &mut out).is_ok()
            {
                self.by_run.push((before, out.len() as u64));
            }
            self.by_drive.push((before, Compressibility::new().add(stretch)));
        }
    }

    /// After the last content.
    pub(super) fn finish(mut self) -> SampledContents {
        let rest = std::mem::take(&mut self.open);
        self.compress(rest);
        let of = |stretches| if self.is_whole { sum(stretches) } else { mean(stretches) };
        let (compressed, in_drive) = (of(&self.by_run), of(&self.by_drive));
        SampledContents { compressed, in_drive, ..self.sampled }
    }
}

/// Appends what a file has from a place on, or from the first data behind it, at most so much and
/// until the stretch is full.
fn append(stretch: &mut Vec<u8>, file: &OwnedFd, at: u64, most_bytes: u64, stretch_bytes: u64) {
    let mut at = seek(file, SeekFrom::Data(at)).unwrap_or(at);
    let wanted = most_bytes.min(stretch_bytes.saturating_sub(stretch.len() as u64)) as usize;
    let end = stretch.len() + wanted;
    let mut filled = stretch.len();
    stretch.resize(end, 0);
    while filled < end {
        match base::interruptible::read_at(file, &mut stretch[filled..], at) {
            Ok(bytes @ 1..) => {
                filled += bytes;
                at += bytes as u64;
            }
            // It became shorter, or cannot be read any further.
            _ => break,
        }
    }
    stretch.truncate(filled);
}

/// Of all that there is.
fn sum(stretches: &[(u64, u64)]) -> Option<CompressedShare> {
    let before: u64 = stretches.iter().map(|(before, _)| before).sum();
    let after: u64 = stretches.iter().map(|(_, after)| after).sum();
    let share = after as f64 / before as f64;
    (before > 0).then_some(CompressedShare { share, low: share, high: share })
}

/// The mean and its interval; `None` of fewer than two stretches.
fn mean(stretches: &[(u64, u64)]) -> Option<CompressedShare> {
    let shares = stretches.iter().map(|(before, after)| *after as f64 / *before as f64);
    let shares: Vec<f64> = shares.collect();
    let interval = of_mean(&shares, CONFIDENCE)?;
    let share = statistics::mean(&shares)?;
    Some(CompressedShare { share, low: interval.low.max(0.0), high: interval.high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_wide_as_the_stretches_differ() {
        assert_eq!(mean(&[(2, 1)]), None);
        let same = mean(&[(2, 1); 16]).unwrap();
        assert_eq!((same.share, same.low, same.high), (0.5, 0.5, 0.5));
        let half: Vec<(u64, u64)> = (0..16).map(|at| (1, at % 2)).collect();
        let found = mean(&half).unwrap();
        assert!((found.high - found.low - 0.55).abs() < 0.01, "{found:?}");
        assert_eq!(sum(&half).map(|it| (it.low, it.high)), Some((0.5, 0.5)));
    }

    #[test]
    fn stretches_begin_in_every_part() {
        let zstd = Compression::Zstd { level: 3 };
        let few = Stretches::of(20 << 20, zstd);
        assert_eq!((few.begins.len(), few.begins[1], few.is_whole), (3, 8 << 20, true));
        let many = Stretches::of(16_000 << 20, zstd);
        assert!(!many.is_whole);
        for (part, begin) in (0u64..).zip(&many.begins) {
            assert!((part * 1000..(part + 1) * 1000).contains(&(begin >> 20)), "{part} {begin}");
        }
    }
}
