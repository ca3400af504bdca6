//! What a measurement says of a source whose files are fetched in the order of its disk.
//!
//! A backup first fetches a whole window of such files; only then bytes go on into the archive. So
//! the bytes of the archive in the first seconds say nothing. What counts is how fast files are
//! opened and fetched, once there are many to choose from: the second half of what was fetched.

use std::time::Duration;

use flow::monitor::FetchedAhead;

/// What was fetched so far, at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AheadSample {
    /// Since the run began.
    pub(super) seconds: f64,
    pub(super) ahead: FetchedAhead,
    /// Content that went on into the archive.
    pub(super) through_bytes: u64,
}

/// Files that would be fetched, with their content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilesAndBytes {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// A source whose files are fetched in the order of its disk, because accesses take long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredAccess {
    /// Median time to read a file that lies far from the one before.
    pub access_time: Duration,
    /// Mean time of a file and its content, if enough of them were fetched.
    pub file_seconds: Option<f64>,
    /// Mean content of a file that was fetched.
    pub file_bytes: Option<f64>,
}

/// Pieces that say something.
const PIECES_MIN: u64 = 100;

impl MeasuredAccess {
    /// `None` where files are read as they come.
    pub(super) fn of(samples: &[AheadSample]) -> Option<MeasuredAccess> {
        let last = samples.last()?;
        let access_time = last.ahead.access_time?;
        let fetched = Fetched::of(samples);
        let file_seconds = fetched.as_ref().map(|it| it.file_seconds);
        let file_bytes = fetched.as_ref().map(|it| it.file_bytes);
        Some(MeasuredAccess { access_time, file_seconds, file_bytes })
    }

    /// Whether getting to files takes more of the time than reading them, on any disk.
    pub fn is_the_limit(&self) -> bool {
        let (Some(seconds), Some(bytes)) = (self.file_seconds, self.file_bytes) else {
            return false;
        };
        seconds > (2.0 * bytes / SLOWEST_BYTES_PER_SECOND).max(ACCESS_SECONDS)
    }
}

/// A file that takes longer than this has cost a seek, a part of a turn, or a long line.
const ACCESS_SECONDS: f64 = 1e-3;
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
    /// Content that went on into the archive by then, and for each file that was fetched meanwhile.
    through_bytes: f64,
    through_for_each: f64,
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
            through_bytes: end.through_bytes as f64,
            through_for_each: (end.through_bytes - middle.through_bytes) as f64 / files_of(pieces),
        })
    }
}

/// How long the files of a tree take that are fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    pub(super) seconds: f64,
    /// Content of larger files that is not read meanwhile, but when the others are done.
    pub(super) large_bytes_alone: f64,
}

/// A tree of files that are fetched and of larger ones. `None` where too few files were fetched.
pub(super) fn forecast(
    samples: &[AheadSample],
    small: FilesAndBytes,
    large: FilesAndBytes,
) -> Option<Forecast> {
    let fetched = Fetched::of(samples)?;
    let mean = small.bytes as f64 / small.files.max(1) as f64;
    // Files that are larger than those so far take longer, as far as their bytes count.
    let weight = f64::midpoint(1.0, mean / fetched.file_bytes.max(1.0));
    let left = (small.files as f64 - fetched.files).max(0.0);
    let unopened = (small.files as f64 - fetched.opened - left * fetched.opened_for_each).max(0.0);
    let opening = unopened * fetched.open_seconds;
    let seconds = fetched.seconds + left * fetched.file_seconds * weight + opening;
    // Of what goes on, larger files have the share that they have of the tree.
    let through = fetched.through_bytes + left * fetched.through_for_each;
    let unread = (1.0 - through / (small.bytes + large.bytes).max(1) as f64).max(0.0);
    Some(Forecast { seconds, large_bytes_alone: unread * large.bytes as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS_TIME: Duration = Duration::from_millis(9);
    const NONE: FilesAndBytes = FilesAndBytes { files: 0, bytes: 0 };

    /// So many files of 10 kB are opened and fetched at each tenth of a second.
    fn samples(rows: &[(u64, u64)]) -> Vec<AheadSample> {
        let row = |(number, (files, fetched)): (usize, &(u64, u64))| AheadSample {
            through_bytes: 0,
            seconds: number as f64 / 10.0,
            ahead: FetchedAhead {
                files: *files,
                pieces: 2 * files,
                bytes: 10_000 * files,
                fetched_pieces: 2 * fetched,
                fetched_bytes: 10_000 * fetched,
                access_time: Some(ACCESS_TIME),
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
        let took = forecast(&samples(&rows), tree(4000), NONE).unwrap().seconds;
        assert!((took - 5.0).abs() < 0.2, "{took}");
        // Twice as many have to be opened, too.
        let twice = forecast(&samples(&rows), tree(8000), NONE).unwrap().seconds;
        assert!((twice - 10.0).abs() < 0.3, "{twice}");
    }

    #[test]
    fn a_window_that_moves_needs_no_more_time_for_opening() {
        let rows: Vec<_> = (0..40).map(|step| (1000 + 100 * step, 100 * step)).collect();
        let took = forecast(&samples(&rows), tree(100_000), NONE).unwrap().seconds;
        assert!((took - 100.0).abs() < 1.0, "{took}");
    }

    /// Larger files that are read while others are fetched cost nothing on top.
    #[test]
    fn what_is_read_meanwhile_takes_no_time_alone() {
        let rows: Vec<_> = (0..40).map(|step| (1000 + 100 * step, 100 * step)).collect();
        let large = FilesAndBytes { files: 1000, bytes: 3_000_000_000 };
        let alone = |through_of_each: u64| {
            let mut samples = samples(&rows);
            for (sample, (_, fetched)) in samples.iter_mut().zip(&rows) {
                sample.through_bytes = through_of_each * fetched;
            }
            forecast(&samples, tree(100_000), large).unwrap().large_bytes_alone / 3e9
        };
        // The tree has 40 kB for each file of 10 kB.
        assert_eq!(alone(40_000), 0.0);
        assert!((alone(10_000) - 0.75).abs() < 0.01 && alone(0) == 1.0);
    }

    /// Files of half a megabyte take milliseconds as one stream, too.
    #[test]
    fn accesses_are_the_limit_where_bytes_cannot_take_that_long() {
        let is_the_limit = |milliseconds: f64, bytes: f64| {
            let (file_seconds, file_bytes) = (Some(milliseconds / 1e3), Some(bytes));
            MeasuredAccess { access_time: ACCESS_TIME, file_seconds, file_bytes }.is_the_limit()
        };
        assert!(is_the_limit(2.0, 30e3) && is_the_limit(14.0, 500e3));
        assert!(!is_the_limit(0.3, 30e3) && !is_the_limit(3.0, 500e3));
    }

    #[test]
    fn few_files_say_nothing() {
        assert_eq!(forecast(&samples(&[(50, 0), (50, 20), (50, 40)]), tree(1000), NONE), None);
        assert_eq!(forecast(&[], tree(1000), NONE), None);
        let access = MeasuredAccess::of(&samples(&[(50, 0), (50, 20), (50, 40)])).unwrap();
        assert_eq!((access.access_time, access.is_the_limit()), (ACCESS_TIME, false));
        let ahead = FetchedAhead::default();
        let without = AheadSample { seconds: 1.0, ahead, through_bytes: 0 };
        assert_eq!(MeasuredAccess::of(&[without]), None);
    }
}
