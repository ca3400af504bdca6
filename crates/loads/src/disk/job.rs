//! A user's own job for fio, as far as it can be seen what it will do.
//!
//! fio has hundreds of options, and every version more: some remove the file, name others, run
//! programs, load code. So an option is passed on when the table says that it is harmless
//! ([`options`]), and what the table does not have is refused. What is passed on is written out
//! anew for fio, which never sees the file: it may change meanwhile, and fio would replace
//! `${NAME}` in it. Where the files of a section are is no part of that text: it is looked at by
//! itself ([`places`](super::places)) and given to each section.

mod fault;
mod options;
mod values;

use std::fmt::Write as _;

use super::ramp::Ramp;
use options::{ENGINES, ENGINES_WITHOUT_FILES, Treatment, first_name, treatment};
use values::{
    NAME_BYTES_MAX, SizeOrPercent, bytes, expanded, is_harmless_format, is_plain_letter,
    is_plain_value, names, number, time,
};

pub use fault::{JobError, LineFault, RefusedLine};

/// What a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedJob {
    /// As they stand in the file, those that hold for all behind them among them.
    blocks: Vec<Block>,
    /// Ramps as they are written, each with the number of its section.
    ramps: Vec<(usize, String)>,
    /// Whether a section waits for another.
    is_in_turn: bool,
    /// Options that do not go to fio, each once, with the reason.
    left_out: Vec<(String, &'static str)>,
}

/// What is said of a job beside its file.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// Options that take the place of all with their names.
    pub sets: &'a [String],
    /// The values of `${NAME}`.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A part of a job file: its head and what stands below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    name: String,
    /// Its lines for fio, without those that say where files are.
    text: String,
    /// The section that it waits for.
    waits_for: Option<String>,
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
    engine: Option<String>,
    writes: Option<bool>,
    /// Whether blocks that were written are discarded, which is no pattern.
    discards: bool,
    size: SizeOrPercent,
    offset: SizeOrPercent,
    increment: SizeOrPercent,
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
            engine: own.engine.or_else(|| general.engine.clone()),
            writes: own.writes.or(general.writes),
            discards: own.discards || general.discards,
            size: own.size.over(general.size),
            offset: own.offset.over(general.offset),
            increment: own.increment.over(general.increment),
            file_bytes: own.file_bytes.or(general.file_bytes),
            jobs: own.jobs.or(general.jobs),
            files_of_job: own.files_of_job.or(general.files_of_job),
        }
    }
}

/// A section with all that holds for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedSection {
    pub name: String,
    options: Options,
}

/// Room that files take which fio makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How many there are, at most.
    pub files: u64,
    pub bytes: u64,
}

impl ParsedSection {
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
        self.options.writes.unwrap_or(false) || self.options.discards
    }

    /// Whether its engine opens no file: what it names is not touched.
    #[must_use]
    pub fn is_without_files(&self) -> bool {
        let engine = self.options.engine.as_deref();
        engine.is_some_and(|engine| ENGINES_WITHOUT_FILES.contains(&engine))
    }

    /// Bytes from the start of a file of so many that it may ask for, at most, where it works on so
    /// many files: a size is divided by them (fio(1), `filename`).
    #[must_use]
    pub fn reach_bytes(&self, file_bytes: u64, files: usize) -> u64 {
        let Options { size, offset, increment, jobs, .. } = self.options;
        let files = files.max(1) as u64;
        let size = match size.bytes {
            // What is left over goes to some of them.
            Some(all) if all.is_multiple_of(files) => {
                SizeOrPercent { bytes: Some(all / files), ..size }
            }
            _ => size,
        };
        // Each job begins that much behind the one before it.
        let behind = increment.of_file(file_bytes).saturating_mul(jobs.unwrap_or(1).max(1) - 1);
        let start = offset.of_file(file_bytes).saturating_add(behind);
        let end = size.of_file(file_bytes).saturating_add(start);
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
        let behind = options.increment.bytes.unwrap_or(0).saturating_mul(jobs - 1);
        let before = options.offset.bytes.unwrap_or(0).saturating_add(behind);
        let before = before.saturating_mul(each);
        let bytes = bytes.saturating_add(before).saturating_mul(jobs);
        Some(Room { files: jobs.saturating_mul(each), bytes })
    }
}

impl ParsedJob {
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
    pub fn sections(&self) -> Vec<ParsedSection> {
        let mut general = Options::default();
        let mut sections = Vec::new();
        for block in &self.blocks {
            let options = block.options.over(&general);
            if block.is_global() {
                general = options;
            } else {
                sections.push(ParsedSection { name: block.name.clone(), options });
            }
        }
        sections
    }

    /// Options that do not go to fio and of which that matters, each once, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[(String, &'static str)] {
        &self.left_out
    }

    /// The job for fio: each section, by its number, with a line that says where its files are.
    /// One without such a line is left out, and others do not wait for it.
    #[must_use]
    pub fn text(&self, place: impl Fn(usize) -> Option<String>) -> String {
        let sections = self.blocks.iter().filter(|block| !block.is_global());
        let places: Vec<(&str, Option<String>)> =
            sections.enumerate().map(|(number, block)| (&*block.name, place(number))).collect();
        let is_left_out =
            |name: &str| places.iter().any(|(own, place)| *own == name && place.is_none());
        let mut text = String::new();
        let mut known = places.iter();
        for block in &self.blocks {
            let place = if block.is_global() {
                ""
            } else {
                match known.next() {
                    Some((_, Some(place))) => place,
                    _ => continue,
                }
            };
            let _ = write!(text, "[{}]\n{}{place}", block.name, block.text);
            if let Some(other) = block.waits_for.as_deref().filter(|name| !is_left_out(name)) {
                let _ = writeln!(text, "wait_for={other}");
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
    /// When lines are not of those that a job may have here.
    pub fn read(text: &str, beside: Beside<'_>) -> Result<ParsedJob, JobError> {
        let mut job = ParsedJob::default();
        let mut refused = Vec::new();
        let own = job.set(beside, &mut refused);
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if let Err(fault) = job.line(line, &own, beside.variable) {
                let number = Some(index + 1);
                refused.push(RefusedLine { number, line: line.to_owned(), fault });
            }
        }
        if !refused.is_empty() {
            return Err(JobError::Lines { lines: refused });
        }
        if job.count() == 0 {
            return Err(JobError::NoSection);
        }
        Ok(job)
    }

    /// Puts what is set beside the file in front of it, for all sections; the names of it.
    fn set(&mut self, beside: Beside<'_>, refused: &mut Vec<RefusedLine>) -> Vec<String> {
        let mut own = Vec::new();
        if !beside.sets.is_empty() {
            self.blocks.push(Block { name: "global".to_owned(), ..Block::default() });
        }
        for set in beside.sets {
            let taken = match set.split_once('=') {
                Some((name, value)) => {
                    let name = name.trim();
                    own.push(first_name(name).to_owned());
                    self.take(name, Some(value.trim()), beside.variable)
                }
                None => Err(LineFault::NoValue),
            };
            if let Err(fault) = taken {
                refused.push(RefusedLine { number: None, line: set.clone(), fault });
            }
        }
        own
    }

    fn line(
        &mut self,
        line: &str,
        set: &[String],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), LineFault> {
        // fio cuts a line there, wherever that is.
        let end = line.find(['#', ';']).unwrap_or(line.len());
        let line = line[..end].trim();
        if line.is_empty() {
            return Ok(());
        }
        if line.starts_with('[') {
            return self.begin_section(line);
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(LineFault::Long);
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        if set.iter().any(|own| own == first_name(name)) {
            return Ok(());
        }
        self.take(name, value, variable)
    }

    fn begin_section(&mut self, line: &str) -> Result<(), LineFault> {
        let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        // fio takes the name of a section for that of a file, too.
        let is_plain = |name: &&str| {
            !name.is_empty() && name.len() < NAME_BYTES_MAX && name.chars().all(is_plain_letter)
        };
        let found = name.filter(is_plain);
        // What stands below a head that is refused is looked at all the same.
        let name = found.unwrap_or("refused").to_owned();
        self.blocks.push(Block { name, ..Block::default() });
        found.map(drop).ok_or(LineFault::Section)
    }

    /// Takes an option, unless it is one that is refused.
    fn take(
        &mut self,
        name: &str,
        value: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), LineFault> {
        if self.blocks.is_empty() {
            return Err(LineFault::Outside);
        }
        match treatment(name).ok_or_else(|| unknown(name))? {
            Treatment::Passed => {}
            Treatment::LeftOut(why) => {
                self.leave_out(name, value, why);
                return Ok(());
            }
            Treatment::RefusedIfSet(_) if value == Some("0") => return Ok(()),
            Treatment::Refused(why) | Treatment::RefusedIfSet(why) => {
                return Err(LineFault::Refused(why));
            }
        }
        let value = value.map(|value| expanded(value, variable)).transpose()?;
        self.pass(name, value.as_deref())
    }

    fn leave_out(&mut self, name: &str, value: Option<&str>, why: &'static str) {
        let is_known = self.left_out.iter().any(|(known, _)| known == name);
        if !why.is_empty() && value != Some("0") && !is_known {
            self.left_out.push((name.to_owned(), why));
        }
    }

    /// Writes an option down for fio, or keeps what is given to each section later.
    fn pass(&mut self, name: &str, value: Option<&str>) -> Result<(), LineFault> {
        let sections = self.count();
        let block = self.blocks.last_mut().ok_or(LineFault::Outside)?;
        let text = value.unwrap_or("");
        match first_name(name) {
            // Given to each section, once it is known to be harmless.
            "filename" => {
                block.options.files = Some(names(text)?);
                return Ok(());
            }
            "directory" => {
                block.options.folders = Some(names(text)?);
                return Ok(());
            }
            "filename_format" if is_harmless_format(text) => {
                let _ = writeln!(block.text, "{name}={text}");
                return Ok(());
            }
            "filename_format" => return Err(LineFault::Format),
            "wait_for" => {
                if text.is_empty() || !text.chars().all(is_plain_letter) {
                    return Err(LineFault::Value);
                }
                block.waits_for = Some(text.to_owned());
                self.is_in_turn = true;
                return Ok(());
            }
            "ramp_time" => self.ramps.push((sections, text.to_owned())),
            "stonewall" | "startdelay" => self.is_in_turn = true,
            first => block.options.note(first, text)?,
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

impl Options {
    /// Keeps what is looked at before fio is started.
    fn note(&mut self, name: &str, text: &str) -> Result<(), LineFault> {
        match name {
            "rw" => {
                let pattern = text.split(':').next().unwrap_or(text);
                if !PATTERNS.contains(&pattern) {
                    return Err(LineFault::Pattern);
                }
                let writes = !matches!(pattern, "read" | "randread");
                self.writes = Some(writes || self.writes == Some(true));
            }
            "trim_percentage" | "trim_backlog" => self.discards |= text != "0",
            "size" => self.size.add(text)?,
            "offset" | "offset_increment" if text == "0" => {}
            "offset" => self.offset.add(text)?,
            "offset_increment" => self.increment.add(text)?,
            "filesize" => {
                let ends: Option<Vec<u64>> = text.split(['-', ':']).map(bytes).collect();
                let largest = ends.and_then(|ends| ends.into_iter().max());
                self.file_bytes = Some(largest.ok_or(LineFault::Size)?);
            }
            "numjobs" => self.jobs = Some(number(text)?),
            "nrfiles" => self.files_of_job = Some(number(text)?),
            "ioengine" => {
                if !ENGINES.contains(&text) && !ENGINES_WITHOUT_FILES.contains(&text) {
                    return Err(LineFault::Engine(text.to_owned()));
                }
                self.engine = Some(text.to_owned());
            }
            // Behind a colon a file is named, which fio makes.
            "mem" if !MEMORIES.contains(&text) => return Err(LineFault::Memory),
            _ => {}
        }
        Ok(())
    }
}

/// What is said of an option that is not in the table.
fn unknown(name: &str) -> LineFault {
    // fio goes by the first letters.
    match treatment("include") {
        Some(Treatment::Refused(why)) if name.starts_with("include") => LineFault::Refused(why),
        _ => LineFault::NotListed,
    }
}

/// Longest line that fio is given; it cuts them at 4,096 bytes.
pub const LINE_BYTES_MAX: usize = 4000;

/// Memory that belongs to fio alone.
const MEMORIES: [&str; 4] = ["malloc", "shm", "shmhuge", "mmap"];

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

#[cfg(test)]
mod tests;
