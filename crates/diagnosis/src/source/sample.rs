//! Some data of a source, to try compressors on.
//!
//! Large and small files have the same parts of it as of the source, in pieces that take turns: a
//! slow compressor sees only the beginning. Places in large files are drawn by their bytes.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use device::file::{cached_bytes, drop_cached};
use flow::cancel::Cancel;
use model::compressibility::Compressibility;
use rustix::fs::{Mode, OFlags, SeekFrom, seek};

use super::Found;

/// Data of the source.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    large: Vec<u8>,
    small: Vec<u8>,
    /// What compressors are tried on.
    bytes: Vec<u8>,
}

/// The most that is kept of each kind.
const PART_BYTES_MAX: usize = 16 << 20;
/// A piece of one kind before the other one follows.
const PIECE_BYTES: usize = 256 << 10;
/// A multiple of all sizes of pages: only whole ones leave memory.
const PAGE_BYTES: u64 = 64 << 10;
/// What a fast compressor needs to show its rate: with less of one kind its share is smaller.
const BYTES_MIN: f64 = (8 << 20) as f64;

impl Sample {
    /// Adds data of a large file, as long as there is room.
    pub fn add_large(&mut self, data: &[u8]) {
        add(&mut self.large, data);
    }

    /// Adds data of a small file, as long as there is room.
    pub fn add_small(&mut self, data: &[u8]) {
        add(&mut self.small, data);
    }

    /// Puts both kinds together, as they are in a source with these bytes of each.
    pub fn mix(&mut self, large_bytes: u64, small_bytes: u64) {
        let whole = (large_bytes + small_bytes).max(1) as f64;
        let share = large_bytes as f64 / whole;
        // As much as both have for their shares; what could not be read has none.
        let of = |part: &[u8], share: f64| {
            if part.is_empty() || share <= 0.0 { f64::INFINITY } else { part.len() as f64 / share }
        };
        let least = of(&self.large, share).min(of(&self.small, 1.0 - share));
        let total = if least.is_finite() { least.max(BYTES_MIN) } else { 0.0 };
        let wanted = |share: f64, part: &[u8]| part.len().min((total * share).ceil() as usize);
        let ends = [wanted(share, &self.large), wanted(1.0 - share, &self.small)];
        let parts = [&self.large[..ends[0]], &self.small[..ends[1]]];
        let mut done = [0, 0];
        self.bytes.clear();
        while done != ends {
            // The kind that lags behind its share.
            let behind = |at: usize| done[at] as f64 / ends[at].max(1) as f64;
            let is_large = done[1] == ends[1] || (done[0] < ends[0] && behind(0) <= behind(1));
            let at = usize::from(!is_large);
            let end = ends[at].min(done[at] + PIECE_BYTES);
            self.bytes.extend_from_slice(&parts[at][done[at]..end]);
            done[at] = end;
        }
    }

    /// The data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a drive's own compression would make of it: bytes in for each byte out.
    pub fn drive_ratio(&self) -> Option<f64> {
        let mut estimate = Compressibility::new();
        for piece in self.bytes.chunks(64 << 10) {
            estimate.jump();
            estimate.add(piece);
        }
        (estimate.host_bytes() > 0).then(|| estimate.ratio().max(1.0))
    }
}

fn add(part: &mut Vec<u8>, data: &[u8]) {
    let room = PART_BYTES_MAX - part.len();
    part.extend_from_slice(&data[..data.len().min(room)]);
}

/// Reads the places of large files that the walk has drawn, for as long as is given, and puts the
/// sample together.
pub(super) fn look(found: &mut Found, limit: Duration, cancel: &Cancel) {
    let begun = Instant::now();
    let mut buffer = vec![0; PIECE_BYTES];
    for (path, at) in found.tree.places.iter() {
        if begun.elapsed() >= limit || cancel.check().is_err() {
            break;
        }
        let Some(bytes) = read(path, *at, &mut buffer) else { continue };
        found.read_bytes += bytes as u64;
        found.sample.add_large(&buffer[..bytes]);
    }
    found.sample.mix(found.tree.large_bytes, found.tree.small_bytes);
}

/// Fills a buffer from a place of a file, behind a hole that is there. What was not in memory
/// before leaves it again; kernels before 6.5 do not tell, and there it stays.
fn read(path: &Path, share: f64, buffer: &mut [u8]) -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = base::interruptible::open(path, flags, Mode::empty()).ok()?;
    // Nothing is read ahead.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
    let bytes = seek(&file, SeekFrom::End(0)).ok()?;
    let place = (share * bytes.saturating_sub(buffer.len() as u64) as f64) as u64;
    // Where holes are not known, all is data.
    let begin = seek(&file, SeekFrom::Data(place)).or_else(|_| seek(&file, SeekFrom::Data(0)));
    let at = begin.unwrap_or(place) / PAGE_BYTES * PAGE_BYTES;
    let range = at..at + buffer.len() as u64;
    let was_cached = cached_bytes(file.as_fd(), range).is_none_or(|cached| cached > 0);
    let mut filled = 0;
    while filled < buffer.len() {
        match base::interruptible::read_at(&file, &mut buffer[filled..], at + filled as u64) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => filled += bytes,
        }
    }
    if !was_cached {
        drop_cached(&file, at, filled as u64);
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow compressor saw the first large file only.
    #[test]
    fn every_beginning_has_both_kinds_by_their_bytes() {
        let mut sample = Sample::default();
        sample.add_large(&vec![b'l'; 12 << 20]);
        sample.add_small(&vec![b's'; 2 << 20]);
        sample.mix(750, 250);
        // Small files have too little for more.
        assert_eq!(sample.bytes().len(), 8 << 20);
        for length in [2 << 20, 4 << 20, 8 << 20] {
            let small = sample.bytes()[..length].iter().filter(|it| **it == b's').count();
            let share = small as f64 / length as f64;
            assert!((share - 0.25).abs() <= 0.125, "{share} of {length}");
        }
    }

    /// Few small files left a megabyte for compressors that take one in a millisecond.
    #[test]
    fn a_fast_compressor_has_enough() {
        let mut sample = Sample::default();
        sample.add_large(&vec![1; 12 << 20]);
        sample.add_small(&vec![2; 400 << 10]);
        sample.mix(500, 500);
        assert_eq!(sample.bytes().len(), (4 << 20) + (400 << 10));
    }

    /// A disk image has its data behind holes.
    #[test]
    fn holes_are_no_data() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("image");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 1 << 20], 32 << 20).unwrap();
        file.sync_all().unwrap();
        let mut buffer = vec![0; 4096];
        assert_eq!(read(&path, 0.1, &mut buffer), Some(4096));
        assert_eq!(buffer[..], [7; 4096]);
    }

    #[test]
    fn one_kind_alone_is_all_of_it() {
        for (large, small) in [(5, 0), (0, 5)] {
            let mut sample = Sample::default();
            sample.add_large(&vec![1; 3 << 20]);
            sample.add_small(&vec![2; 3 << 20]);
            sample.mix(large, small);
            let expected = if large > 0 { 1 } else { 2 };
            assert_eq!(sample.bytes().len(), 3 << 20);
            assert!(sample.bytes().iter().all(|byte| *byte == expected));
        }
        let mut none = Sample::default();
        none.mix(0, 0);
        assert!(none.bytes().is_empty());
    }

    /// Where one kind could not be read, the other stands for it.
    #[test]
    fn what_could_not_be_read_leaves_the_rest() {
        let mut sample = Sample::default();
        sample.add_large(&vec![1; 3 << 20]);
        sample.mix(500, 500);
        assert_eq!(sample.bytes().len(), 3 << 20);
    }
}
