//! A user's own job for fio, as far as it can be seen what it will do.
//!
//! fio has hundreds of options, and every version more: some remove the file, name others, run
//! programs, load code. So an option is taken when it is on the list below, and nothing else is.
//! What is taken is written out anew for fio, which never sees the file: it may change meanwhile,
//! and fio would replace `${NAME}` in it. Where the files of a section are is no part of that text:
//! it is looked at by itself ([`places`](super::places)) and given to each section.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::ramp::Ramp;

/// What a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// As they stand in the file, those that hold for all behind them among them.
    blocks: Vec<Block>,
    /// Ramps as they are written, each with the number of its section.
    ramps: Vec<(usize, String)>,
    /// Whether a section waits for another.
    is_in_turn: bool,
}

/// A part of a job file: its head and what stands below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    name: String,
    /// Its lines for fio, without those that say where files are.
    text: String,
    options: Options,
}

impl Block {
    /// fio goes by the first letters.
    fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// What is known of the lines of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    files: Option<Vec<String>>,
    folders: Option<Vec<String>>,
    writes: Option<bool>,
    size: Extent,
    offset: Extent,
    file_bytes: Option<u64>,
    jobs: Option<u64>,
    files_of_job: Option<u64>,
}

impl Options {
    /// These, and where they say nothing, those that hold for all.
    fn over(&self, general: &Options) -> Options {
        let own = self.clone();
        Options {
            files: own.files.or_else(|| general.files.clone()),
            folders: own.folders.or_else(|| general.folders.clone()),
            writes: own.writes.or(general.writes),
            size: own.size.over(general.size),
            offset: own.offset.over(general.offset),
            file_bytes: own.file_bytes.or(general.file_bytes),
            jobs: own.jobs.or(general.jobs),
            files_of_job: own.files_of_job.or(general.files_of_job),
        }
    }
}

/// A section with all that holds for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    options: Options,
}

/// Room that files take which fio makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How many there are, at most.
    pub files: u64,
    /// All of their bytes.
    pub bytes: u64,
}

impl Section {
    /// The files that it names.
    #[must_use]
    pub fn files(&self) -> Option<&[String]> {
        self.options.files.as_deref()
    }

    /// The folders that it names.
    #[must_use]
    pub fn folders(&self) -> Option<&[String]> {
        self.options.folders.as_deref()
    }

    /// Whether it writes or discards. fio reads unless it is told otherwise.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.options.writes.unwrap_or(false)
    }

    /// Bytes from the start of a file of so many that it may ask for, at most, where it works on so
    /// many files: a size is divided by them (fio(1), `filename`).
    #[must_use]
    pub fn reach_bytes(&self, file_bytes: u64, files: usize) -> u64 {
        let Options { size, offset, .. } = self.options;
        let files = files.max(1) as u64;
        let size = match size.bytes {
            // What is left over goes to some of them.
            Some(all) if all.is_multiple_of(files) => Extent { bytes: Some(all / files), ..size },
            _ => size,
        };
        let end = size.of_file(file_bytes).saturating_add(offset.of_file(file_bytes));
        end.max(self.options.file_bytes.unwrap_or(0))
    }

    /// What files take that fio makes up names for; nobody knows without a size in bytes.
    #[must_use]
    pub fn room(&self) -> Option<Room> {
        let options = &self.options;
        let jobs = options.jobs.unwrap_or(1).max(1);
        let each = options.files_of_job.unwrap_or(1).max(1);
        let bytes = match options.file_bytes {
            Some(bytes) => bytes.saturating_mul(each),
            None => options.size.bytes?,
        };
        let before = options.offset.bytes.unwrap_or(0).saturating_mul(each);
        let bytes = bytes.saturating_add(before).saturating_mul(jobs);
        Some(Room { files: jobs.saturating_mul(each), bytes })
    }
}

/// Why a job is not run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job file cannot be read.
    #[error("cannot be read")]
    Read(#[from] io::Error),
    /// A line that a job may not have here.
    #[error("{line:?} {fault}")]
    Line {
        /// The line.
        line: String,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// There is nothing to run.
    #[error("it has no section to run")]
    NoSection,
    /// A section that says nothing of where its files are.
    #[error("section [{section}] names neither a file nor a folder")]
    NoPlace {
        /// The section.
        section: String,
    },
    /// A path was given that no section works on.
    #[error("no section works on {}: each names its own", path.display())]
    NotUsed {
        /// The path.
        path: PathBuf,
    },
    /// Files that fio would make, of a length that nobody knows.
    #[error("section [{section}] has no size in bytes, and files are to be made for it")]
    NoSize {
        /// The section.
        section: String,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// A section whose name could be that of a file.
    #[error("is no plain name")]
    Section,
    /// A percentage without a number.
    #[error("is no share")]
    Share,
    /// No size that fio would understand.
    #[error("is no size")]
    Size,
    /// No plain number.
    #[error("is no number from 1 to {NUMBER_MAX}")]
    Number,
    /// Another engine than those that do nothing but read and write.
    #[error("is none of the engines {}", ENGINES.join(" "))]
    Engine,
    /// Nothing that fio does.
    #[error("is none of the patterns {}", PATTERNS.join(" "))]
    Pattern,
    /// An option that is not on the list.
    #[error("is not among the options that a job may have here")]
    NotListed,
    /// A value that could mean more than itself.
    #[error("has more in it than letters and numbers")]
    Value,
    /// A list of files that fio would understand in another way.
    #[error("is no list of files: names are divided by ':', and '-' is none")]
    Files,
    /// A pattern for names that could lead elsewhere.
    #[error("has more in it than letters, numbers, $jobname, $jobnum and $filenum")]
    Format,
    /// It stands before the first section.
    #[error("stands in no section")]
    Outside,
    /// fio reads a line in pieces of this size, each as a line of its own.
    #[error("is longer than {LINE_BYTES_MAX} bytes")]
    Long,
}

/// Longest line that fio is given; it cuts them at 4,096 bytes.
pub const LINE_BYTES_MAX: usize = 4000;

/// Most jobs of a section, and files of a job.
const NUMBER_MAX: u64 = 1_000_000;

/// Bytes, and percents of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    bytes: Option<u64>,
    percent: u64,
}

impl Extent {
    fn add(&mut self, value: &str) -> Result<(), LineFault> {
        match value.strip_suffix('%') {
            Some(number) => {
                let number: u64 = number.parse().map_err(|_| LineFault::Share)?;
                self.percent = self.percent.max(number);
            }
            None => {
                let bytes = bytes(value).ok_or(LineFault::Size)?;
                self.bytes = Some(bytes.max(self.bytes.unwrap_or(0)));
            }
        }
        Ok(())
    }

    /// A number of bytes takes the place of another one; a percentage stays beside it.
    fn over(self, general: Extent) -> Extent {
        Extent { bytes: self.bytes.or(general.bytes), percent: self.percent.max(general.percent) }
    }

    fn of_file(self, file_bytes: u64) -> u64 {
        let share = u128::from(file_bytes) * u128::from(self.percent) / 100;
        self.bytes.unwrap_or(0).max(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Job {
    /// What its parts do before they are counted.
    #[must_use]
    pub fn ramp(&self) -> Ramp {
        let is_global = |section: usize| section == 0;
        match &self.ramps[..] {
            [] => Ramp::None,
            [(section, text)] if !self.is_in_turn && (is_global(*section) || self.count() == 1) => {
                time(text).map_or(Ramp::Several, |ramp| {
                    if ramp.is_zero() { Ramp::None } else { Ramp::For(ramp) }
                })
            }
            _ => Ramp::Several,
        }
    }

    /// The sections, each with what holds for all that stands before it.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let mut general = Options::default();
        let mut sections = Vec::new();
        for block in &self.blocks {
            let options = block.options.over(&general);
            if block.is_global() {
                general = options;
            } else {
                sections.push(Section { name: block.name.clone(), options });
            }
        }
        sections
    }

    /// The job for fio: each section, by its number, with a line that says where its files are.
    /// One without such a line is left out.
    #[must_use]
    pub fn text(&self, place: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::new();
        let mut number = 0;
        for block in &self.blocks {
            let place = if block.is_global() {
                Some(String::new())
            } else {
                number += 1;
                place(number - 1)
            };
            if let Some(place) = place {
                let _ = write!(text, "[{}]\n{}{place}", block.name, block.text);
            }
        }
        text
    }

    /// Sections other than those that hold for all.
    fn count(&self) -> usize {
        self.blocks.iter().filter(|block| !block.is_global()).count()
    }

    /// Reads a job file of fio (fio(1), "job file format").
    ///
    /// # Errors
    /// When a line is not on the list of what a job may have.
    pub fn read(text: &str) -> Result<Job, JobError> {
        let mut job = Job::default();
        for line in text.lines().map(str::trim) {
            job.line(line).map_err(|fault| JobError::Line { line: line.to_owned(), fault })?;
        }
        if job.count() == 0 {
            return Err(JobError::NoSection);
        }
        Ok(job)
    }

    fn line(&mut self, line: &str) -> Result<(), LineFault> {
        if line.starts_with('[') {
            return self.begin_section(line);
        }
        // fio cuts a line there, wherever that is.
        let end = line.find(['#', ';']).unwrap_or(line.len());
        let line = line[..end].trim();
        match line.split_once('=') {
            _ if line.is_empty() => Ok(()),
            _ if line.len() > LINE_BYTES_MAX => Err(LineFault::Long),
            Some((name, value)) => self.take(name.trim(), Some(value.trim())),
            None => self.take(line, None),
        }
    }

    fn begin_section(&mut self, line: &str) -> Result<(), LineFault> {
        let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        // fio takes the name of a section for that of a file, too.
        let is_plain = |name: &&str| {
            !name.is_empty() && name.len() < NAME_BYTES_MAX && name.chars().all(is_plain_letter)
        };
        let name = name.filter(is_plain).ok_or(LineFault::Section)?;
        self.blocks.push(Block { name: name.to_owned(), ..Block::default() });
        Ok(())
    }

    fn take(&mut self, name: &str, value: Option<&str>) -> Result<(), LineFault> {
        let sections = self.count();
        let block = self.blocks.last_mut().ok_or(LineFault::Outside)?;
        let options = &mut block.options;
        let text = value.unwrap_or("");
        match name {
            // Given to each section, once it is known to be harmless.
            "filename" => {
                options.files = Some(names(text)?);
                return Ok(());
            }
            "directory" => {
                options.folders = Some(names(text)?);
                return Ok(());
            }
            // It would put all sections into one sum, and they are told apart.
            "group_reporting" => return Ok(()),
            // All of them are threads of one process, so that nothing stays behind a run.
            "thread" => return Ok(()),
            "rw" | "readwrite" => {
                let pattern = text.split(':').next().unwrap_or(text);
                if !PATTERNS.contains(&pattern) {
                    return Err(LineFault::Pattern);
                }
                let writes = !matches!(pattern, "read" | "randread");
                options.writes = Some(writes || options.writes == Some(true));
            }
            "size" => options.size.add(text)?,
            "offset" => options.offset.add(text)?,
            "filesize" => {
                let ends: Option<Vec<u64>> = text.split(['-', ':']).map(bytes).collect();
                let largest = ends.and_then(|ends| ends.into_iter().max());
                options.file_bytes = Some(largest.ok_or(LineFault::Size)?);
            }
            "numjobs" => options.jobs = Some(number(text)?),
            "nrfiles" => options.files_of_job = Some(number(text)?),
            "filename_format" if is_harmless_format(text) => {
                let _ = writeln!(block.text, "{name}={text}");
                return Ok(());
            }
            "filename_format" => return Err(LineFault::Format),
            "ramp_time" => self.ramps.push((sections, text.to_owned())),
            "stonewall" | "wait_for_previous" | "startdelay" => self.is_in_turn = true,
            "ioengine" if !ENGINES.contains(&text) => {
                return Err(LineFault::Engine);
            }
            _ if !OPTIONS.contains(&name) => return Err(LineFault::NotListed),
            _ => {}
        }
        if !text.chars().all(is_plain_value) {
            return Err(LineFault::Value);
        }
        let _ = match value {
            Some(value) => writeln!(block.text, "{name}={value}"),
            None => writeln!(block.text, "{name}"),
        };
        Ok(())
    }
}

/// What `rw` may say (fio(1), `readwrite`), in front of a colon.
const PATTERNS: [&str; 11] = [
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

/// Longest name of a section; fio cuts it at 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// Names that are divided by colons; one with a backslash before it is part of a name.
fn names(text: &str) -> Result<Vec<String>, LineFault> {
    let mut names = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let name = names.last_mut().expect("there is one from the start");
        match letter {
            '\\' if letters.peek() == Some(&':') => name.extend(letters.next()),
            ':' => names.push(String::new()),
            // The rest is looked at when the name is known in full.
            _ => name.push(letter),
        }
    }
    let is_odd = |name: &String| name.is_empty() || name == "-" || name.contains(['$', '`', '"']);
    if names.iter().any(is_odd) { Err(LineFault::Files) } else { Ok(names) }
}

fn number(text: &str) -> Result<u64, LineFault> {
    let number: Option<u64> = text.parse().ok();
    number.filter(|number| (1..=NUMBER_MAX).contains(number)).ok_or(LineFault::Number)
}

/// Whether all names that it makes stay in their folder.
fn is_harmless_format(text: &str) -> bool {
    let known = ["$jobname", "$jobnum", "$filenum"];
    let rest = known.iter().fold(text.to_owned(), |rest, keyword| rest.replace(keyword, ""));
    !text.is_empty() && rest.chars().all(is_plain_letter)
}

fn is_plain_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_. ".contains(letter)
}

fn is_plain_value(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.,:/%+ ".contains(letter)
}

/// fio's sizes (fio(1), "parameter types"): powers of 1024, or of 1000 with `kB`, which is fewer.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok().filter(|number| *number > 0)?;
    let power = match &text[end..] {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 1,
        "m" | "mb" | "mi" | "mib" => 2,
        "g" | "gb" | "gi" | "gib" => 3,
        "t" | "tb" | "ti" | "tib" => 4,
        _ => return None,
    };
    number.checked_mul(1024u64.pow(power))
}

/// fio's times (fio(1), "parameter types"): seconds, unless a unit says otherwise.
fn time(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u32 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "" | "s" => Duration::from_secs(1),
        "ms" => Duration::from_millis(1),
        "us" => Duration::from_micros(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    unit.checked_mul(number)
}

/// Engines that do nothing but read and write the files of a section.
const ENGINES: &[&str] =
    &["sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring"];

/// What shapes a load, its length and its statistics. None of them names a file, removes or cuts
/// one, or runs anything.
const OPTIONS: &[&str] = &[
    "ba",
    "blockalign",
    "blocksize",
    "blocksize_range",
    "bs",
    "bsrange",
    "bssplit",
    "buffer_compress_percentage",
    "buffered",
    "clat_percentiles",
    "cpus_allowed",
    "description",
    "direct",
    "end_fsync",
    "fadvise_hint",
    "fdatasync",
    "file_service_type",
    "filesize",
    "fixedbufs",
    "fsync",
    "fsync_on_close",
    "hipri",
    "invalidate",
    "io_size",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_batch_submit",
    "iodepth_low",
    "ioengine",
    "lat_percentiles",
    "loops",
    "nice",
    "norandommap",
    "nrfiles",
    "number_ios",
    "numjobs",
    "offset",
    "openfiles",
    "percentage_random",
    "percentile_list",
    "prio",
    "prioclass",
    "ramp_time",
    "random_distribution",
    "random_generator",
    "randrepeat",
    "randseed",
    "rate",
    "rate_iops",
    "readwrite",
    "refill_buffers",
    "registerfiles",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "scramble_buffers",
    "size",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "startdelay",
    "stonewall",
    "thinktime",
    "thinktime_blocks",
    "thread",
    "time_based",
    "wait_for_previous",
    "zero_buffers",
];

#[cfg(test)]
mod tests;
