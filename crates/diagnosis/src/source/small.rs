//! What small files cost: found, opened and read one after the other, or several at once.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use device::file::{cached_bytes, drop_cached, is_in_memory};
use flow::cancel::Cancel;
use rustix::fs::{Mode, OFlags};

use super::Found;
use crate::amount::Amount;
use crate::chain::{FILES_AT_ONCE, SmallFiles};

/// Fewer small files than this are not worth a trial.
const FILES_MIN: u64 = 8;
/// Files of one trial, one by one and at once.
const TRIAL_FILES: [usize; 2] = [24, 6 * FILES_AT_ONCE];
/// What each thread of a trial keeps of the files' data, and a file more.
const KEPT_BYTES_MAX: usize = 256 << 10;
/// What `takeup backup` reads at once.
const READ_BYTES: u64 = 1 << 20;

/// Tries some of the small files of the tree: groups one by one and at once, in turn.
pub(super) fn look(found: &mut Found, read_bytes: u64, limit: Duration, cancel: &Cancel) {
    if found.tree.small_files < FILES_MIN {
        return;
    }
    let listing = found.tree.seconds / (found.tree.files() + found.tree.folders).max(1) as f64;
    let mut files: Vec<(PathBuf, u64)> = found.tree.small.iter().flatten().cloned().collect();
    files.retain(|(path, _)| make_cold(path));
    let begun = Instant::now();
    let (mut by_one, mut at_once) = (Vec::new(), Vec::new());
    let mut left = files.as_slice();
    for number in 0.. {
        let wanted = TRIAL_FILES[number % 2].min(left.len());
        let (group, rest) = left.split_at(wanted);
        left = rest;
        if group.is_empty() {
            break;
        }
        let is_over = begun.elapsed() >= limit && number >= 4;
        if is_over || begun.elapsed() >= limit * 2 || cancel.check().is_err() {
            break;
        }
        let trials = if number.is_multiple_of(2) { &mut by_one } else { &mut at_once };
        let threads = if number.is_multiple_of(2) { 1 } else { FILES_AT_ONCE };
        let pieces = if threads == 1 { read_bytes } else { READ_BYTES };
        let (seconds, bytes) = read_all(group, threads, pieces, found);
        found.read_bytes += bytes;
        let each = seconds / group.len() as f64;
        // `takeup backup` lists ahead of its readers; other programs do one after the other.
        trials.push(if threads == 1 { each + listing } else { each.max(listing) });
    }
    let Some(one_by_one) = Amount::of_trials(&by_one) else {
        found.unknown.push("what its small files cost: none could be tried".to_owned());
        return;
    };
    // One group only: what several at once bring is not known.
    let at_once = Amount::of_trials(&at_once).unwrap_or(one_by_one);
    let at_once = at_once.at_most(one_by_one);
    found.small = Some(SmallFiles { one_by_one, at_once });
}

/// Whether a file is not in the cache any more, or was never anywhere else.
fn make_cold(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let Ok(file) = base::interruptible::open(path, flags, Mode::empty()) else { return false };
    drop_cached(&file, 0, 0);
    is_in_memory(&file) || cached_bytes(file.as_fd(), 0..0).is_none_or(|cached| cached == 0)
}

/// Seconds and bytes of files, by so many threads.
fn read_all(
    files: &[(PathBuf, u64)],
    threads: usize,
    read_bytes: u64,
    found: &mut Found,
) -> (f64, u64) {
    let next = AtomicUsize::new(0);
    let length = usize::try_from(read_bytes.clamp(512, READ_BYTES)).unwrap_or(512);
    let begun = Instant::now();
    let read = || {
        let (mut buffer, mut bytes, mut kept) = (vec![0; length], 0, Vec::new());
        while let Some((path, _)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
            let Ok(file) = base::interruptible::open(path, flags, Mode::empty()) else { continue };
            let _ = rustix::fs::fstat(&file);
            let mut at = 0;
            while let Ok(count @ 1..) = base::interruptible::read_at(&file, &mut buffer, at) {
                at += count as u64;
                if kept.len() < KEPT_BYTES_MAX {
                    kept.extend_from_slice(&buffer[..count]);
                }
            }
            bytes += at;
            drop_cached(&file, 0, 0);
        }
        (bytes, kept)
    };
    let all: Vec<(u64, Vec<u8>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    all.iter().for_each(|(_, kept)| found.sample.add_small(kept));
    (seconds, all.iter().map(|(bytes, _)| bytes).sum())
}
