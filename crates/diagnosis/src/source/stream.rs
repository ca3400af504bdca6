//! How fast large files are read: as they are now, with more read ahead, and with many requests.
//!
//! A larger read-ahead is tried without setting it: two direct reads of its size are under way,
//! which is what the kernel has in the steady state (two windows). `takeup diagnose --try` measures
//! both (docs/diagnose.md).

use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use device::file::{cached_bytes, direct_alignment, drop_cached, is_in_memory};
use flow::cancel::Cancel;
use loads::read::{Cache, Engine, Pages, Reading, Watching, read_range};
use rustix::fs::{Mode, OFlags};
use storage::layers::Storage;

use super::{Found, ReadsAs};
use crate::amount::Amount;
use crate::chain::{Stream, Window};

/// Sizes of the read-ahead that are tried.
const WINDOWS: [u64; 4] = [512 << 10, 2 << 20, 8 << 20, 32 << 20];
/// Requests of the trial with many, and their size.
const MANY: usize = 16;
const MANY_BYTES: usize = 1 << 20;
/// The least and the most that a plain trial reads at once.
const PLAIN_BYTES_MIN: u64 = 4 << 10;
const PLAIN_BYTES_MAX: u64 = 4 << 20;
/// A trial lasts about this long, and reads this much at least.
const TRIAL: Duration = Duration::from_millis(250);
const TRIAL_BYTES_MIN: u64 = 4 << 20;
const TRIAL_BYTES_MAX: u64 = 512 << 20;
/// A trial holds this many windows at least.
const WINDOWS_PER_TRIAL: u64 = 4;
/// So many parts are asked for, where programs keep them in memory.
const TRIES: usize = 8;
const ROUNDS_MIN: usize = 2;
const ROUNDS_MAX: usize = 5;

/// A way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As programs read now, in pieces of this size.
    Plain(u64),
    /// As with this read-ahead.
    Ahead(u64),
    /// Many requests at once.
    Many,
}

impl Way {
    fn plain(piece_bytes: u64) -> Way {
        Way::Plain(piece_bytes.clamp(PLAIN_BYTES_MIN, PLAIN_BYTES_MAX))
    }

    fn reading(self) -> Reading {
        let direct = Reading {
            engine: Engine::Psync,
            cache: Cache::Direct,
            block_bytes: MANY_BYTES,
            read_ahead_bytes: None,
            depth: MANY,
            readers: 1,
            pages: Pages::Huge,
        };
        match self {
            Way::Plain(bytes) => Reading {
                cache: Cache::Buffered,
                block_bytes: usize::try_from(bytes).unwrap_or(MANY_BYTES),
                depth: 1,
                ..direct
            },
            Way::Ahead(bytes) => Reading {
                block_bytes: usize::try_from(bytes).unwrap_or(MANY_BYTES),
                depth: 2,
                ..direct
            },
            Way::Many => direct,
        }
    }

    fn least_bytes(self, window_bytes: u64) -> u64 {
        let window = match self {
            Way::Plain(bytes) => window_bytes.max(bytes),
            Way::Ahead(bytes) => bytes,
            Way::Many => (MANY * MANY_BYTES) as u64,
        };
        (WINDOWS_PER_TRIAL * window).max(TRIAL_BYTES_MIN)
    }
}

/// What the kernel makes of reads through the page cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// The read-ahead in force.
    pub(super) window_bytes: Option<u64>,
    /// See [`Stream::request_bytes_max`].
    pub(super) request_bytes_max: Option<u64>,
}

/// The largest request of the queue below a file system that has no read-ahead of its own.
pub(super) fn request_bytes_max(storage: &Storage) -> Option<u64> {
    let kib: u64 = storage.queue_setting("max_sectors_kb")?.parse().ok()?;
    Some(kib << 10)
}

/// Tries the ways in turn, in rounds, until the time is over.
pub(super) fn look(found: &mut Found, kernel: Kernel, limit: Duration, cancel: &Cancel) {
    let Kernel { window_bytes, request_bytes_max } = kernel;
    let plain = Way::plain(found.reads_as.piece_bytes);
    if found.tree.large.is_empty() {
        return;
    }
    let mut places = Places::of(&found.tree.large);
    let window = window_bytes.unwrap_or(0);
    let begun = Instant::now();
    let ahead = WINDOWS.into_iter().filter(|bytes| *bytes > window).map(Way::Ahead);
    let mut trials: Vec<Trial> =
        [plain].into_iter().chain(ahead).chain([Way::Many]).map(Trial::of).collect();
    'rounds: for round in 0..ROUNDS_MAX {
        for trial in &mut trials {
            let is_over = begun.elapsed() >= limit && round >= ROUNDS_MIN;
            let is_far_over = begun.elapsed() >= limit * 2;
            if is_over || is_far_over || cancel.check().is_err() {
                break 'rounds;
            }
            trial.run(&mut places, window, found, cancel);
        }
        if begun.elapsed() >= limit && round + 1 >= ROUNDS_MIN {
            break;
        }
    }
    found.cached_share = places.cached_bytes as f64 / places.seen_bytes.max(1) as f64;
    let rate = |way: Way| {
        let trial = trials.iter().find(|trial| trial.way == way)?;
        Amount::of_trials(&trial.rates)
    };
    let Some(now) = rate(plain) else {
        let why = match places.kept {
            0 => "no trial ended",
            _ => "what was tried of them stays in memory, since programs use it",
        };
        found.unknown.push(format!("how fast its large files are read: {why}"));
        return;
    };
    let copied = places.copied.unwrap_or(f64::INFINITY);
    let windows: Vec<Window> = WINDOWS
        .into_iter()
        .filter_map(|bytes| Some(Window { bytes, rate: rate(Way::Ahead(bytes))? }))
        .map(|window| Window { rate: window.rate.at_most(Amount::told(copied)), ..window })
        .collect();
    if windows.is_empty() {
        found.unknown.push(format!(
            "what more read-ahead would bring: {}",
            places.no_direct.as_deref().unwrap_or("the files are too small to try it")
        ));
    }
    let ways = [rate(Way::Many), Some(now)].into_iter().flatten();
    let all = ways.chain(windows.iter().map(|it| it.rate));
    let Some(most) = all.reduce(|a, b| if b.typical > a.typical { b } else { a }) else { return };
    found.stream = Some(Stream { window_bytes, now, windows, request_bytes_max, most });
}

/// The rate of one plain read of large files, after what is cached of them was dropped. Reads of
/// another `round` begin elsewhere, and are long enough for a read-ahead of `window_bytes`.
pub fn plain_rate(found: &Found, round: usize, window_bytes: u64, cancel: &Cancel) -> Option<f64> {
    let mut places = Places::of(&found.tree.large);
    let plain = Way::plain(found.reads_as.piece_bytes);
    let length = plain.least_bytes(window_bytes).max(4 * TRIAL_BYTES_MIN);
    let mut part = None;
    for _ in 0..=round {
        part = places.cold_part(length);
    }
    let (path, range) = part?;
    let file = open(&path, Cache::Buffered)?;
    tell(&file, found.reads_as);
    let files = [file];
    let reading = plain.reading();
    let read = read_range(&reading, &files, range.clone(), Watching::BytesOnly, cancel).ok()?;
    drop_cached(&files[0], range.start, range.end - range.start);
    Some(read.bytes as f64 / read.seconds.max(1e-9))
}

/// The runs of a way.
struct Trial {
    way: Way,
    rates: Vec<f64>,
}

impl Trial {
    fn of(way: Way) -> Trial {
        Trial { way, rates: Vec::new() }
    }

    fn run(&mut self, places: &mut Places, window: u64, found: &mut Found, cancel: &Cancel) {
        let reading = self.way.reading();
        if reading.cache == Cache::Direct && places.no_direct.is_some() {
            return;
        }
        let wanted = match self.rates.last() {
            Some(rate) => (rate * TRIAL.as_secs_f64()) as u64,
            None => places.rate.map_or(0, |rate| (rate * TRIAL.as_secs_f64()) as u64),
        };
        let least = self.way.least_bytes(window);
        let block = reading.block_bytes as u64;
        let length = wanted.clamp(least, TRIAL_BYTES_MAX.max(least)).next_multiple_of(block);
        let place = match self.way {
            Way::Plain(_) => places.cold_part(length),
            Way::Ahead(_) | Way::Many => places.take(length),
        };
        let Some((path, range)) = place else { return };
        // Two at once are not to be had of a file that is too small for two.
        if reading.cache == Cache::Direct && range.end - range.start < 2 * block {
            return;
        }
        let Some(file) = open(&path, reading.cache) else {
            if reading.cache == Cache::Direct {
                places.no_direct =
                    Some("this file system cannot be read past the page cache".to_owned());
            }
            return;
        };
        if reading.cache == Cache::Direct
            && direct_alignment(&file).is_some_and(|it| it.offset_bytes == 0)
        {
            places.no_direct =
                Some("this file system cannot be read past the page cache".to_owned());
            return;
        }
        if matches!(self.way, Way::Plain(_)) {
            tell(&file, found.reads_as);
        }
        let files = [file];
        let measured = read_range(&reading, &files, range.clone(), Watching::BytesOnly, cancel);
        let Ok(measured) = measured else {
            if reading.cache == Cache::Direct {
                places.no_direct = Some("reading past the page cache failed".to_owned());
            }
            return;
        };
        found.read_bytes += measured.bytes;
        let rate = measured.bytes as f64 / measured.seconds.max(1e-9);
        places.rate = Some(places.rate.map_or(rate, |known| known.max(rate)));
        self.rates.push(rate);
        if matches!(self.way, Way::Plain(_)) {
            places.after_plain(&files[0], &reading, range, cancel);
        }
    }
}

/// Whether more than half of a part is in the page cache, and may be read from a disk at all.
fn is_kept(path: &Path, range: Range<u64>) -> bool {
    let bytes = range.end - range.start;
    let file = open(path, Cache::Buffered).filter(|file| !is_in_memory(file));
    let cached = file.and_then(|file| cached_bytes(file.as_fd(), range)).unwrap_or(0);
    cached > bytes / 2
}

/// Tells the kernel what the program would tell it.
fn tell(file: &OwnedFd, reads_as: ReadsAs) {
    if reads_as.is_told_sequential {
        // A file system without read-ahead does not know it, and loses nothing.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
    }
}

fn open(path: &Path, cache: Cache) -> Option<OwnedFd> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    if cache == Cache::Direct {
        flags |= OFlags::DIRECT;
    }
    base::interruptible::open(path, flags, Mode::empty()).ok()
}

/// Parts of files that were not read yet.
struct Places {
    files: Vec<(PathBuf, u64)>,
    /// The file that is next, and how far each was read.
    turn: usize,
    done: Vec<u64>,
    cached_bytes: u64,
    seen_bytes: u64,
    /// Parts that stayed in memory.
    kept: u32,
    /// The highest rate so far.
    rate: Option<f64>,
    /// Rate of a read from memory.
    copied: Option<f64>,
    no_direct: Option<String>,
}

/// Trials begin at a multiple of it.
const STEP_BYTES: u64 = 1 << 20;

impl Places {
    fn of(files: &[(PathBuf, u64)]) -> Places {
        Places {
            files: files.to_vec(),
            turn: 0,
            done: vec![0; files.len()],
            cached_bytes: 0,
            seen_bytes: 0,
            kept: 0,
            rate: None,
            copied: None,
            no_direct: None,
        }
    }

    /// The next part of that length, of a file that holds it; else of the largest file.
    fn take(&mut self, length: u64) -> Option<(PathBuf, Range<u64>)> {
        let count = self.files.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let left = self.files[at].1.saturating_sub(self.done[at]);
            if left < length {
                continue;
            }
            let start = self.done[at];
            self.done[at] = (start + length).next_multiple_of(STEP_BYTES);
            self.turn = at + 1;
            return Some(self.cold(at, start..start + length));
        }
        // All was read once: the trials dropped it again.
        if self.done.iter().any(|done| *done > 0) {
            self.done.fill(0);
            let largest = self.files.first()?.1;
            let length = length.min(largest);
            self.done[0] = length;
            return Some(self.cold(0, 0..length));
        }
        let bytes = self.files.first()?.1;
        self.done[0] = bytes;
        Some(self.cold(0, 0..bytes))
    }

    /// A part that is read from the disk. Programs that have mapped a file keep it in memory: a
    /// plain read of it would measure that.
    fn cold_part(&mut self, length: u64) -> Option<(PathBuf, Range<u64>)> {
        for _ in 0..TRIES {
            let (path, range) = self.take(length)?;
            if !is_kept(&path, range.clone()) {
                return Some((path, range));
            }
            self.kept += 1;
        }
        None
    }

    /// Drops what the cache holds of a part: it would not be read from the disk.
    fn cold(&mut self, at: usize, range: Range<u64>) -> (PathBuf, Range<u64>) {
        let path = self.files[at].0.clone();
        if let Some(file) = open(&path, Cache::Buffered) {
            let cached = cached_bytes(file.as_fd(), range.clone()).unwrap_or(0);
            self.seen_bytes += range.end - range.start;
            if !is_in_memory(&file) {
                self.cached_bytes += cached.min(range.end - range.start);
            }
            drop_cached(&file, range.start, range.end - range.start);
        }
        (path, range)
    }

    /// Reads a part again, from memory, and drops it.
    fn after_plain(
        &mut self,
        file: &OwnedFd,
        reading: &Reading,
        range: Range<u64>,
        cancel: &Cancel,
    ) {
        let again = range.start..range.end.min(range.start + (64 << 20));
        let files = [file.try_clone().ok()].into_iter().flatten().collect::<Vec<_>>();
        let copied = read_range(reading, &files, again.clone(), Watching::BytesOnly, cancel);
        if let Ok(copied) = copied {
            let rate = copied.bytes as f64 / copied.seconds.max(1e-9);
            self.copied = Some(self.copied.map_or(rate, |known| known.max(rate)));
        }
        drop_cached(file, range.start, range.end - range.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that has mapped a file keeps it there, and a plain read takes it from memory.
    #[test]
    fn what_stays_in_memory_is_seen() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        // Kernels before 6.5 do not tell.
        let is_told = cached_bytes(file.as_fd(), 0..1).is_some();
        assert_eq!(is_kept(&path, 0..3 << 20), is_told);
        drop_cached(&file, 0, 0);
        assert!(!is_kept(&path, 0..3 << 20));
    }

    /// A file that is smaller than a trial was read from memory, where it had just been written,
    /// and windows larger than the file looked like a file system without direct reads.
    #[test]
    fn files_smaller_than_a_trial_are_dropped_from_memory_and_no_window_is_claimed() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let mut places = Places::of(&[(path.clone(), 3 << 20)]);
        let (_, range) = places.take(TRIAL_BYTES_MIN).unwrap();
        assert_eq!(range, 0..3 << 20);
        assert_eq!(places.seen_bytes, 3 << 20, "what was cached of it is known");
        let paths = [folder.path().to_owned()];
        let cancel = Cancel::new();
        let found =
            super::super::look(&paths, ReadsAs::of("tar", 10240), Duration::from_secs(1), &cancel)
                .unwrap();
        let windows = &found.stream.unwrap().windows;
        assert!(windows.iter().all(|window| 2 * window.bytes <= 3 << 20), "{windows:?}");
        assert!(!found.unknown.iter().any(|it| it.contains("failed")), "{:?}", found.unknown);
    }
}
