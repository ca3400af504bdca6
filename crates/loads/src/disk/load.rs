//! One load: from a cell to the command line of fio.

use std::ffi::OsString;

use super::job::Room;
use crate::read::Pages;
use experiment::record::{Cell, CellError, Level};

/// One load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    engine: String,
    /// fio's word for it.
    pub(crate) pattern: String,
    read_percent: u64,
    /// Past the page cache.
    pub direct: bool,
    /// Bytes of one request.
    pub(crate) block_bytes: u64,
    /// Requests in flight of each job.
    pub(crate) depth: u64,
    /// Jobs that do the same.
    pub(crate) jobs: u64,
    fsync_every: u64,
    /// Of the memory that fio reads into and writes from.
    pub pages: Pages,
    /// Of loads that go through many files.
    pub files: Option<Files>,
}

/// Files of each job, one after the other, each from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    pub count: u64,
    /// Bytes of each.
    pub bytes: u64,
}

/// fio has no option for transparent huge pages (`--mem=mmaphuge` takes reserved ones, of which
/// most machines have none). Its allocator's does it, see `process`; the kernel can follow where a
/// buffer covers a whole huge page, and so much slack around it makes sure of that.
const HUGE_ALIGNMENT_BYTES: u64 = 32 << 20;

const ENGINES: &[&str] = &["sync", "psync", "libaio", "io_uring"];
const PATTERNS: &[&str] = &[
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "randrw",
    "trim",
    "randtrim",
    "readfiles",
    "writefiles",
];

/// Most files of all jobs together; fio keeps some hundred bytes of each in memory.
const FILES_MAX: u64 = 4_000_000;

/// What the kernel asks of requests past its cache, at least.
const SECTOR_BYTES: u64 = 512;

impl Load {
    /// From a cell; what it does not name is a random read of 4 KiB, one at a time.
    pub fn from_cell(cell: &Cell) -> Result<Load, CellError> {
        let word = |name: &str, usual: &str, known: &[&str]| match cell.get(name) {
            Some(Level::Text(text)) if known.contains(&text.as_str()) => Ok(text.clone()),
            Some(level) => {
                let (shown, known) = (level.shown(name), known.join(", "));
                Err(CellError::Impossible(format!("{name} {shown}: known are {known}")))
            }
            None => Ok(usual.to_owned()),
        };
        let number =
            |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| match cell.get(name) {
                Some(Level::Number(number)) if range.contains(number) => Ok(*number),
                Some(level) => Err(CellError::OutOfRange {
                    name: name.to_owned(),
                    level: level.shown(name),
                    least: *range.start(),
                    most: *range.end(),
                }),
                None => Ok(usual),
            };
        let mut load = Load {
            engine: word("engine", "psync", ENGINES)?,
            pattern: word("load", "randread", PATTERNS)?,
            read_percent: number("read_percent", 50, 0..=100)?,
            direct: word("cache", "direct", &["direct", "buffered"])? == "direct",
            block_bytes: number("block_bytes", 4096, 512..=(64 << 20))?,
            depth: number("depth", 1, 1..=4096)?,
            jobs: number("jobs", 1, 1..=256)?,
            fsync_every: number("fsync_every", 0, 0..=1_000_000)?,
            pages: Pages::from_cell(cell)?,
            files: None,
        };
        if load.pattern.ends_with("files") {
            let count = number("files", 1000, 1..=1_000_000)?;
            let bytes = number("file_bytes", 16384, 1..=(1 << 40))?;
            load.files = Some(Files { count, bytes });
            load.block_bytes = load.block_bytes.min(bytes);
            load.check_files()?;
        }
        Ok(load)
    }

    /// Whether fio would go through all of each file, and keep them all in mind.
    fn check_files(&self) -> Result<(), CellError> {
        let Some(files) = self.files else { return Ok(()) };
        let shown = |bytes: u64| Level::Number(bytes).shown("file_bytes");
        let wrong = |what: String| {
            Err(CellError::Impossible(format!("files of {}: {what}", shown(files.bytes))))
        };
        if !files.bytes.is_multiple_of(self.block_bytes) {
            return wrong(format!("no multiple of requests of {}", shown(self.block_bytes)));
        }
        if self.direct && !self.block_bytes.is_multiple_of(SECTOR_BYTES) {
            return wrong(format!("past the cache goes what is a multiple of {SECTOR_BYTES} B"));
        }
        if files.count.saturating_mul(self.jobs) > FILES_MAX {
            return wrong(format!(
                "{} of {} jobs are more than {FILES_MAX}",
                files.count, self.jobs
            ));
        }
        Ok(())
    }

    /// Whether anything is written or discarded.
    pub fn writes(&self) -> bool {
        !matches!(self.pattern.as_str(), "read" | "randread" | "readfiles")
    }

    /// Whether all that is done is to discard.
    pub fn trims(&self) -> bool {
        matches!(self.pattern.as_str(), "trim" | "randtrim")
    }

    /// Whether anything is read.
    pub fn reads(&self) -> bool {
        matches!(self.pattern.as_str(), "read" | "randread" | "rw" | "randrw" | "readfiles")
    }

    /// Calls that wait have one request in flight, whatever is asked for.
    pub fn is_sensible(&self) -> bool {
        self.depth == 1 || matches!(self.engine.as_str(), "libaio" | "io_uring")
    }

    /// The files that all jobs together work on, and the room that they take.
    pub fn room(&self) -> Option<Room> {
        let files = self.files?.count.saturating_mul(self.jobs);
        Some(Room { files, bytes: files.saturating_mul(self.files?.bytes) })
    }

    /// Jobs at once.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Bytes that all jobs together move when a run goes once through `length_bytes`, or through
    /// all files.
    pub fn bytes_of(&self, length_bytes: u64) -> u64 {
        if let Some(room) = self.room() {
            return room.bytes;
        }
        (length_bytes / self.block_bytes * self.block_bytes).saturating_mul(self.jobs)
    }

    /// Whether a run ends with its length, also where a time is given: a file is made once.
    pub fn ends_by_itself(&self) -> bool {
        self.files.is_some()
    }

    /// How much there is to do. Files are made as they are opened, within the time of the run, and
    /// one is closed before the next is opened, or as many later as there are requests in flight.
    fn extent(&self, length_bytes: u64) -> Vec<String> {
        let Some(files) = self.files else {
            return vec![format!("--size={}", length_bytes / self.block_bytes * self.block_bytes)];
        };
        let mut all = vec![
            format!("--nrfiles={}", files.count),
            format!("--filesize={}", files.bytes),
            format!("--openfiles={}", self.depth.min(files.count)),
            "--file_service_type=sequential".to_owned(),
        ];
        if self.writes() {
            all.extend(["--create_on_open=1", "--fallocate=none"].map(str::to_owned));
        }
        all
    }

    /// The command line of fio.
    pub fn arguments(&self, length_bytes: u64, seconds: f64) -> Vec<OsString> {
        let mut all = vec![
            "--name=takeup".to_owned(),
            "--output-format=json+".to_owned(),
            "--group_reporting".to_owned(),
            "--random_generator=tausworthe64".to_owned(),
            "--randrepeat=0".to_owned(),
            "--refill_buffers".to_owned(),
            // One process, so that its memory can be looked at.
            "--thread".to_owned(),
            // Unasked, fio tells the kernel what it is about to do, which doubles the read-ahead or
            // switches it off. Databases do not, and the setting in force is what is measured.
            "--fadvise_hint=0".to_owned(),
            format!("--ioengine={}", self.engine),
            format!("--rw={}", self.pattern.trim_end_matches("files")),
            format!("--bs={}", self.block_bytes),
            format!("--iodepth={}", self.depth),
            format!("--numjobs={}", self.jobs),
            format!("--direct={}", u8::from(self.direct)),
        ];
        all.extend(self.extent(length_bytes));
        if matches!(self.pattern.as_str(), "rw" | "randrw") {
            all.push(format!("--rwmixread={}", self.read_percent));
        }
        if self.pages == Pages::Huge {
            all.push(format!("--iomem_align={HUGE_ALIGNMENT_BYTES}"));
        }
        if self.fsync_every > 0 {
            all.push(format!("--fsync={}", self.fsync_every));
        }
        if seconds > 0.0 && !self.ends_by_itself() {
            let milliseconds = (seconds * 1e3).round().max(1.0) as u64;
            all.extend(["--time_based".to_owned(), format!("--runtime={milliseconds}ms")]);
        }
        all.into_iter().map(OsString::from).collect()
    }
}
