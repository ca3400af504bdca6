//! What a measurement says of a source on a disk with heads.
//!
//! Such a disk first fetches a whole window of files in its own order; only then bytes go on into
//! the archive. So the bytes of the archive in the first seconds say nothing. What counts is how
//! fast files are opened and fetched, once there are many to choose from: the second half of what
//! was fetched.

use flow::monitor::{FetchedAhead, LookTimes};

/// What was fetched so far, at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AheadSample {
    /// Since the run began.
    pub(super) seconds: f64,
    pub(super) ahead: FetchedAhead,
}

/// Files that would be fetched, with their content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilesAndBytes {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// A disk with heads, as a measurement found it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredHeads {
    /// How long a file took when the heads were found.
    pub look: LookTimes,
    /// Mean time of a file and its content, if enough of them were fetched.
    pub file_seconds: Option<f64>,
    /// Mean content of a file that was fetched.
    pub file_bytes: Option<f64>,
}

/// Pieces that say something.
const PIECES_MIN: u64 = 100;

impl MeasuredHeads {
    /// `None` where no heads were found.
    pub(super) fn of(samples: &[AheadSample]) -> Option<MeasuredHeads> {
        let last = samples.last()?;
        let look = last.ahead.look?;
        let fetched = Fetched::of(samples);
        let file_seconds = fetched.as_ref().map(|it| it.file_seconds);
        let file_bytes = fetched.as_ref().map(|it| it.file_bytes);
        Some(MeasuredHeads { look, file_seconds, file_bytes })
    }

    /// Whether the heads are on their way for more of the time than they read, on any disk.
    pub fn is_seeking(&self) -> bool {
        let (Some(seconds), Some(bytes)) = (self.file_seconds, self.file_bytes) else {
            return false;
        };
        seconds > (2.0 * bytes / SLOWEST_BYTES_PER_SECOND).max(SEEK_SECONDS)
    }
}

/// A file that takes longer than this has cost a seek or a part of a turn.
const SEEK_SECONDS: f64 = 1e-3;
/// The inner tracks of disks that are still in use are faster.
const SLOWEST_BYTES_PER_SECOND: f64 = 80e6;

/// Costs of files, from the samples of a run.
struct Fetched {
    /// At the last sample.
    seconds: f64,
    /// Opened and fetched by then.
    opened: f64,
    files: f64,
    file_bytes: f64,
    /// Time of one file while many are fetched.
    file_seconds: f64,
    /// Time of opening one that is not in it.
    open_seconds: f64,
    /// Files that were opened for each that was fetched meanwhile.
    opened_for_each: f64,
}

impl Fetched {
    /// `None` where too little was fetched.
    fn of(samples: &[AheadSample]) -> Option<Fetched> {
        let last = samples.last()?;
        let done = last.ahead.fetched_pieces;
        let middle = samples.iter().find(|it| 2 * it.ahead.fetched_pieces >= done)?;
        // What came in between two samples counts from the first to the last time that differ.
        let end = samples.iter().find(|it| it.ahead.fetched_pieces == done)?;
        let pieces = done - middle.ahead.fetched_pieces;
        if pieces < PIECES_MIN || end.seconds <= middle.seconds {
            return None;
        }
        let FetchedAhead { files, pieces: all, bytes, .. } = last.ahead;
        let files_of = |pieces: u64| pieces as f64 * files as f64 / all.max(1) as f64;
        let file_seconds = (end.seconds - middle.seconds) / files_of(pieces);
        let opened_for_each = (files - middle.ahead.files) as f64 / files_of(pieces);
        let before = middle.seconds - files_of(middle.ahead.fetched_pieces) * file_seconds;
        Some(Fetched {
            seconds: end.seconds,
            opened: files as f64,
            files: files_of(done),
            file_bytes: bytes as f64 / files.max(1) as f64,
            file_seconds,
            open_seconds: before.max(0.0) / middle.ahead.files.max(1) as f64,
            opened_for_each,
        })
    }
}

/// Seconds in which all files of a tree that are fetched would be; `None` where too few were.
pub(super) fn seconds(samples: &[AheadSample], tree: FilesAndBytes) -> Option<f64> {
    let fetched = Fetched::of(samples)?;
    let mean = tree.bytes as f64 / tree.files.max(1) as f64;
    // Files that are larger than those so far take longer, as far as their bytes count.
    let weight = f64::midpoint(1.0, mean / fetched.file_bytes.max(1.0));
    let left = (tree.files as f64 - fetched.files).max(0.0);
    let unopened = (tree.files as f64 - fetched.opened - left * fetched.opened_for_each).max(0.0);
    Some(fetched.seconds + left * fetched.file_seconds * weight + unopened * fetched.open_seconds)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LOOK: LookTimes =
        LookTimes { by_name: Duration::from_millis(9), by_place: Duration::from_millis(3) };

    /// So many files of 10 kB are opened and fetched at each tenth of a second.
    fn samples(rows: &[(u64, u64)]) -> Vec<AheadSample> {
        let row = |(number, (files, fetched)): (usize, &(u64, u64))| AheadSample {
            seconds: number as f64 / 10.0,
            ahead: FetchedAhead {
                files: *files,
                pieces: 2 * files,
                bytes: 10_000 * files,
                fetched_pieces: 2 * fetched,
                fetched_bytes: 10_000 * fetched,
                look: Some(LOOK),
            },
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn tree(files: u64) -> FilesAndBytes {
        FilesAndBytes { files, bytes: 10_000 * files }
    }

    #[test]
    fn what_is_left_takes_as_long_as_the_second_half() {
        // A second of opening, then 100 files in a tenth of a second.
        let opening = (0..10).map(|step| (400 * step, 0));
        let rows: Vec<_> = opening.chain((0..=20).map(|step| (4000, 100 * step))).collect();
        let took = seconds(&samples(&rows), tree(4000)).unwrap();
        assert!((took - 5.0).abs() < 0.2, "{took}");
        // Twice as many have to be opened, too.
        let twice = seconds(&samples(&rows), tree(8000)).unwrap();
        assert!((twice - 10.0).abs() < 0.3, "{twice}");
    }

    #[test]
    fn a_window_that_moves_needs_no_more_time_for_opening() {
        let rows: Vec<_> = (0..40).map(|step| (1000 + 100 * step, 100 * step)).collect();
        let took = seconds(&samples(&rows), tree(100_000)).unwrap();
        assert!((took - 100.0).abs() < 1.0, "{took}");
    }

    /// Files of half a megabyte take milliseconds as one stream, too.
    #[test]
    fn seeks_are_named_where_bytes_cannot_take_that_long() {
        let is_seeking = |milliseconds: f64, bytes: f64| {
            let (file_seconds, file_bytes) = (Some(milliseconds / 1e3), Some(bytes));
            MeasuredHeads { look: LOOK, file_seconds, file_bytes }.is_seeking()
        };
        assert!(is_seeking(2.0, 30e3) && is_seeking(14.0, 500e3));
        assert!(!is_seeking(0.3, 30e3) && !is_seeking(3.0, 500e3));
    }

    #[test]
    fn few_files_say_nothing() {
        assert_eq!(seconds(&samples(&[(50, 0), (50, 20), (50, 40)]), tree(1000)), None);
        assert_eq!(seconds(&[], tree(1000)), None);
        let heads = MeasuredHeads::of(&samples(&[(50, 0), (50, 20), (50, 40)])).unwrap();
        assert_eq!((heads.look, heads.is_seeking()), (LOOK, false));
        let without = AheadSample { seconds: 1.0, ahead: FetchedAhead::default() };
        assert_eq!(MeasuredHeads::of(&[without]), None);
    }
}
