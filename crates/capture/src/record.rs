//! A capture in a file of JSON lines: the first line names the format, the last one the number of
//! lines.
//!
//! One line has the numbers of the profile; each file and each class over time has its own line.
//! Readings of watched devices are as in a `takeup watch` record, on the clock of the capture. The
//! size depends on the files used, not on the length of the capture. Findings are not stored: the
//! reader derives them again with its own rules.
//!
//! The record is written when the capture is over. A file without its last line was cut off, and is
//! shown as far as it goes.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::profile::timeline::{ClassTimeline, INTERVALS_MAX, Timeline};
use super::profile::{Cost, FileProfile, Profile, ProfileLimits};
use watch::Reading;
use watch::beside::READINGS_MAX;
use watch::lines::{Encoder, FileLines, LineFailure, ReadingLine, Readings};
use watch::record::LineError;

/// Format version. New fields do not change it.
pub const FORMAT: u32 = 1;
/// Largest count that is read: more than any recording has, and sums do not overflow.
const COUNT_MAX: u64 = 1 << 50;
/// Longest recording that is read, in s: some three hundred years.
const SECONDS_MAX: f64 = 1e10;
/// The most classes of files.
const CLASSES_MAX: usize = 16;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureRecordError {
    /// It cannot be opened or read.
    #[error("{what} {}", path.display())]
    File {
        /// `open` or `read`.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// `takeup capture` did not write it.
    #[error("{} is not a `takeup capture` record", path.display())]
    NoRecord { path: PathBuf },
    /// It was made by another version.
    #[error("{} has format {format}, but takeup reads only format {FORMAT}", path.display())]
    Format { path: PathBuf, format: u32 },
    /// A line does not belong in a capture record.
    #[error("{}, line {line}: not a line of a `takeup capture` record", path.display())]
    Line {
        path: PathBuf,
        /// From 1.
        line: u64,
        source: LineError,
    },
    /// It ends before the numbers of the profile.
    #[error("{} was cut off before the profile", path.display())]
    Empty { path: PathBuf },
}

/// Facts about a capture beside its profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heading {
    /// The time of day at its beginning, in seconds since 1970.
    pub began_unix_seconds: f64,
    /// What was captured: `process 4711`, or the command as it was typed.
    pub subject: String,
    /// Number of recorded events.
    pub events: u64,
    /// How the command failed, if it did.
    pub failed: Option<String>,
    /// Whether a signal stopped it.
    pub is_stopped: bool,
}

/// A capture as it is kept in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// Facts about the capture.
    pub heading: Heading,
    /// The profile of each file, and over time.
    pub profile: Profile,
    /// Readings of watched devices; `None` without `--watch`.
    pub beside: Option<Vec<Reading>>,
    /// Whether its end is missing.
    pub is_cut: bool,
}

#[derive(Serialize, Deserialize)]
struct First {
    takeup_capture: u32,
    #[serde(flatten)]
    heading: Heading,
}

/// A line after the first one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Profile(Numbers),
    File(Box<FileProfile>),
    Timeline(ClassTimeline),
    Reading(ReadingLine),
    End { lines: u64 },
}

/// The profile without files and timeline.
#[derive(Serialize, Deserialize)]
struct Numbers {
    seconds: f64,
    lost_events: u64,
    files_left_out: u64,
    operations_left_out: u64,
    unseen: Vec<String>,
    #[serde(default)]
    cost: Option<Cost>,
    interval_seconds: f64,
    is_watched: bool,
}

impl Captured {
    /// The lines of the file.
    pub fn to_lines(&self) -> String {
        let profile = &self.profile;
        let numbers = Numbers {
            seconds: profile.seconds,
            lost_events: profile.lost_events,
            files_left_out: profile.files_left_out,
            operations_left_out: profile.operations_left_out,
            unseen: profile.unseen.clone(),
            cost: profile.cost,
            interval_seconds: profile.timeline.interval_seconds,
            is_watched: self.beside.is_some(),
        };
        let first = First { takeup_capture: FORMAT, heading: self.heading.clone() };
        let mut text = line_of(&first) + &line_of(&Entry::Profile(numbers));
        for file in &profile.files {
            text.push_str(&line_of(&Entry::File(Box::new(file.clone()))));
        }
        for class in &profile.timeline.classes {
            text.push_str(&line_of(&Entry::Timeline(class.clone())));
        }
        let mut encoder = Encoder::default();
        for reading in self.beside.iter().flatten() {
            text.push_str(&line_of(&Entry::Reading(encoder.line(reading))));
        }
        let lines = text.lines().count() as u64;
        text + &line_of(&Entry::End { lines })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is not a capture record or has another format, or has a wrong line.
    pub fn read(path: &Path) -> Result<Captured, CaptureRecordError> {
        let opened = File::open(path).map_err(|source| CaptureRecordError::File {
            what: "open",
            path: path.to_owned(),
            source,
        });
        Captured::of(BufReader::new(opened?), path)
    }

    /// Reads lines; errors name `path`.
    ///
    /// # Errors
    /// As for [`Captured::read`].
    pub fn of(lines: impl BufRead, path: &Path) -> Result<Captured, CaptureRecordError> {
        let mut lines = FileLines::of(lines);
        let heading = first(&mut lines, path)?;
        let mut reader = Reader::default();
        while let Some(bytes) = next(&mut lines, path)? {
            let entry = serde_json::from_slice(&bytes).map_err(LineError::Json);
            let taken = entry.and_then(|entry| reader.take(entry, lines.number()));
            taken.map_err(|source| wrong(&lines, path, source))?;
        }
        let Some(numbers) = reader.numbers else {
            return Err(CaptureRecordError::Empty { path: path.to_owned() });
        };
        let Numbers {
            seconds, lost_events, files_left_out, operations_left_out, unseen, cost, ..
        } = numbers;
        let timeline =
            Timeline { interval_seconds: numbers.interval_seconds, classes: reader.classes };
        let files = reader.files;
        Ok(Captured {
            heading,
            profile: Profile {
                seconds,
                files,
                lost_events,
                files_left_out,
                operations_left_out,
                unseen,
                timeline,
                cost,
            },
            beside: numbers.is_watched.then_some(reader.beside),
            is_cut: !reader.has_ended,
        })
    }
}

/// Whether a file is a capture record of this or another format. Only regular files are tested: a
/// pipe can be read only once.
pub fn is_record(path: &Path) -> bool {
    let is_file = path.metadata().is_ok_and(|it| it.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
    let first = first(&mut FileLines::of(BufReader::new(file)), path);
    matches!(first, Ok(_) | Err(CaptureRecordError::Format { .. }))
}

fn line_of(entry: &impl Serialize) -> String {
    // All map keys are texts, and numbers that JSON lacks become null: this cannot fail.
    serde_json::to_string(entry).expect("plain numbers and texts") + "\n"
}

fn first<R: BufRead>(lines: &mut FileLines<R>, path: &Path) -> Result<Heading, CaptureRecordError> {
    #[derive(Deserialize)]
    struct Version {
        takeup_capture: u32,
    }
    let no_record = || CaptureRecordError::NoRecord { path: path.to_owned() };
    let bytes = next(lines, path)?.ok_or_else(no_record)?;
    let version: Version = serde_json::from_slice(&bytes).map_err(|_| no_record())?;
    if version.takeup_capture != FORMAT {
        let format = version.takeup_capture;
        return Err(CaptureRecordError::Format { path: path.to_owned(), format });
    }
    let first: First =
        serde_json::from_slice(&bytes).map_err(|it| wrong(lines, path, LineError::Json(it)))?;
    let is_time = (0.0..SECONDS_MAX * 10.0).contains(&first.heading.began_unix_seconds);
    let number = out_of_range("the start time");
    if is_time { Ok(first.heading) } else { Err(wrong(lines, path, number)) }
}

fn next<R: BufRead>(
    lines: &mut FileLines<R>,
    path: &Path,
) -> Result<Option<Vec<u8>>, CaptureRecordError> {
    lines.next_line().map_err(|failure| match failure {
        LineFailure::Read(source) => {
            CaptureRecordError::File { what: "read", path: path.to_owned(), source }
        }
        LineFailure::Long => wrong(lines, path, LineError::Long),
    })
}

fn wrong<R: BufRead>(lines: &FileLines<R>, path: &Path, source: LineError) -> CaptureRecordError {
    CaptureRecordError::Line { path: path.to_owned(), line: lines.number(), source }
}

/// The lines read so far.
#[derive(Default)]
struct Reader {
    numbers: Option<Numbers>,
    files: Vec<FileProfile>,
    classes: Vec<ClassTimeline>,
    readings: Readings,
    beside: Vec<Reading>,
    has_ended: bool,
}

impl Reader {
    fn take(&mut self, entry: Entry, number: u64) -> Result<(), LineError> {
        let is_first = matches!(entry, Entry::Profile(_));
        if self.has_ended || self.numbers.is_some() == is_first {
            return Err(LineError::Damage("it is out of order".to_owned()));
        }
        match entry {
            Entry::Profile(numbers) => self.numbers = Some(checked(numbers)?),
            Entry::File(file) => {
                check_file(&file)?;
                self.files.push(*file);
                limit(self.files.len(), ProfileLimits::default().files, "files")?;
            }
            Entry::Timeline(class) => {
                check_class(&class)?;
                self.classes.push(class);
                limit(self.classes.len(), CLASSES_MAX, "classes")?;
            }
            Entry::Reading(line) => {
                let reading = self.readings.reading(line)?;
                if !(-SECONDS_MAX..SECONDS_MAX).contains(&reading.at_seconds) {
                    return Err(out_of_range("the time of a reading"));
                }
                self.beside.push(reading);
                limit(self.beside.len(), READINGS_MAX + 1, "readings")?;
            }
            Entry::End { lines } if lines != number - 1 => {
                let before = number - 1;
                return Err(LineError::Damage(format!(
                    "{before} lines precede it, {lines} were recorded: the file was cut or edited"
                )));
            }
            Entry::End { .. } => self.has_ended = true,
        }
        Ok(())
    }
}

fn out_of_range(what: &str) -> LineError {
    LineError::Damage(format!("{what} is out of range"))
}

fn limit(count: usize, most: usize, of: &str) -> Result<(), LineError> {
    if count > most { Err(LineError::Damage(format!("too many {of}"))) } else { Ok(()) }
}

fn checked(numbers: Numbers) -> Result<Numbers, LineError> {
    let is_time = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    if !is_time(numbers.seconds) || !is_time(numbers.interval_seconds) {
        return Err(out_of_range("a time of the profile"));
    }
    let counts = [numbers.lost_events, numbers.files_left_out, numbers.operations_left_out];
    if counts.iter().any(|it| *it > COUNT_MAX) {
        return Err(out_of_range("a count of the profile"));
    }
    let costs =
        numbers.cost.map(|it| [it.events_per_second, it.event_seconds, it.recorder_seconds]);
    if costs.into_iter().flatten().any(|it| !(0.0..1e18).contains(&it)) {
        return Err(out_of_range("the cost of recording"));
    }
    Ok(numbers)
}

fn check_file(file: &FileProfile) -> Result<(), LineError> {
    let sizes = || file.block_sizes.read.iter().chain(&file.block_sizes.write);
    let counts = [file.calls, file.reads, file.writes, file.errors, file.sync.calls];
    let others = [file.block_sizes.others].into_iter().chain(sizes().map(|(_, count)| *count));
    let others = others.chain(file.places.counts.iter().map(|(_, count)| *count));
    let engines = file.engines.values().copied();
    if counts.into_iter().chain(others).chain(engines).any(|it| it > COUNT_MAX) {
        return Err(out_of_range("a count of a file"));
    }
    let shares = [
        file.read_share,
        file.sequential_share,
        file.rewrite_share,
        file.reuse_share,
        file.known_share.values().copied().reduce(f64::max),
    ];
    if shares.into_iter().flatten().any(|it| !(0.0..=1.0).contains(&it)) {
        return Err(out_of_range("a share of a file"));
    }
    let times = [file.think_seconds, file.latency_seconds, file.sync.seconds];
    let range = file.sync.operations_range.unwrap_or_default();
    let counts = [
        file.depth,
        file.sync.operations_between,
        file.sync.operations_mean,
        Some(range[0]),
        Some(range[1]),
        Some(file.operations_per_second),
    ];
    let burstiness = [file.burstiness];
    let all = times.into_iter().chain(counts).chain(burstiness).flatten();
    if all.into_iter().any(|it| !(0.0..1e18).contains(&it)) {
        return Err(out_of_range("a number of a file"));
    }
    Ok(())
}

fn check_class(class: &ClassTimeline) -> Result<(), LineError> {
    limit(class.intervals.len(), INTERVALS_MAX, "intervals")?;
    let is_much = |count: u64| count > COUNT_MAX;
    for it in &class.intervals {
        let is_depth = it.depth.is_none_or(|depth| (0.0..1e12).contains(&depth));
        if [it.reads, it.writes, it.syncs].into_iter().any(is_much) || !is_depth {
            return Err(out_of_range("a number of an interval"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
