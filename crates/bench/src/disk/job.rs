//! A user's own job for fio, as far as it can be seen what it will do.
//!
//! fio has hundreds of options, and every version more: some remove the file, name others, run
//! programs, load code. So an option is taken when it is on the list below, and nothing else is.
//! What is taken is written out anew for fio, which never sees the file: it may change meanwhile,
//! and fio would replace `${NAME}` in it. The path to be used is given beside it.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use super::ramp::Ramp;

/// What a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The job for fio, without the file that it works on.
    pub text: String,
    /// Files that it names.
    pub files: Vec<String>,
    /// Whether a part of it writes or discards.
    pub writes: bool,
    /// Largest size and largest offset that a part of it asks for.
    pub size: Extent,
    /// See `size`.
    pub offset: Extent,
    /// Ramps as they are written, each with the number of its section.
    ramps: Vec<(usize, String)>,
    /// Sections other than the one that holds for all, and whether one of them waits for another.
    sections: usize,
    is_in_turn: bool,
}

/// Why a job is not run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line that a job may not have here.
    #[error("{line:?} {fault}")]
    Line {
        /// The line.
        line: String,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// It works on another file than the one that was named.
    #[error("it names {other}: name that as PATH, or take the line out")]
    OtherFile {
        /// The file.
        other: String,
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
    /// Another engine than those that do nothing but read and write.
    #[error("is none of the engines {}", ENGINES.join(" "))]
    Engine,
    /// An option that is not on the list.
    #[error("is not among the options that a job may have here")]
    NotListed,
    /// A value that could mean more than itself.
    #[error("has more in it than letters and numbers")]
    Value,
}

/// Bytes, and percents of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    bytes: u64,
    percent: u64,
}

impl Extent {
    fn add(&mut self, value: &str) -> Result<(), LineFault> {
        match value.strip_suffix('%') {
            Some(number) => {
                let number: u64 = number.parse().map_err(|_| LineFault::Share)?;
                self.percent = self.percent.max(number);
            }
            None => self.bytes = self.bytes.max(bytes(value).ok_or(LineFault::Size)?),
        }
        Ok(())
    }

    fn of_file(self, file_bytes: u64) -> u64 {
        let share = u128::from(file_bytes) * u128::from(self.percent) / 100;
        self.bytes.max(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Job {
    /// Bytes from the start of a file of so many that the job may ask for, at most.
    #[must_use]
    pub fn reach_bytes(&self, file_bytes: u64) -> u64 {
        self.size.of_file(file_bytes).saturating_add(self.offset.of_file(file_bytes))
    }

    /// What its parts do before they are counted.
    #[must_use]
    pub fn ramp(&self) -> Ramp {
        let is_global = |section: usize| section == 0;
        match &self.ramps[..] {
            [] => Ramp::None,
            [(section, text)]
                if !self.is_in_turn && (is_global(*section) || self.sections == 1) =>
            {
                time(text).map_or(Ramp::Several, |ramp| {
                    if ramp.is_zero() { Ramp::None } else { Ramp::For(ramp) }
                })
            }
            _ => Ramp::Several,
        }
    }

    /// Reads a job file of fio (fio(1), "job file format").
    ///
    /// # Errors
    /// When a line is not on the list of what a job may have.
    pub fn read(text: &str) -> Result<Job, JobError> {
        let mut job = Job::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let taken = match line.split_once('=') {
                _ if line.starts_with('[') => job.begin_section(line),
                Some((name, value)) => job.take(name.trim(), Some(value.trim())),
                None => job.take(line, None),
            };
            taken.map_err(|fault| JobError::Line { line: line.to_owned(), fault })?;
        }
        Ok(job)
    }

    fn begin_section(&mut self, line: &str) -> Result<(), LineFault> {
        let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        // fio takes the name of a section for that of a file, too.
        let is_plain = |name: &&str| !name.is_empty() && name.chars().all(is_plain_letter);
        let name = name.filter(is_plain).ok_or(LineFault::Section)?;
        self.sections += usize::from(name != "global");
        let _ = writeln!(self.text, "[{name}]");
        Ok(())
    }

    fn take(&mut self, name: &str, value: Option<&str>) -> Result<(), LineFault> {
        let text = value.unwrap_or("");
        match name {
            "filename" => {
                self.files.push(text.replace("\\:", ":"));
                // Given beside the job, and checked to be the same.
                return Ok(());
            }
            // It would put all sections into one sum, and they are told apart.
            "group_reporting" => return Ok(()),
            "rw" | "readwrite" => {
                let pattern = text.split([':', ',']).next().unwrap_or(text);
                self.writes |= !matches!(pattern, "read" | "randread");
            }
            "size" => self.size.add(text)?,
            "offset" => self.offset.add(text)?,
            "ramp_time" => self.ramps.push((self.sections, text.to_owned())),
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
            Some(value) => writeln!(self.text, "{name}={value}"),
            None => writeln!(self.text, "{name}"),
        };
        Ok(())
    }
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

/// Engines that do nothing but read and write the one file.
const ENGINES: &[&str] =
    &["sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring"];

/// What shapes a load, its length and its statistics. None of them names a file, makes, removes,
/// lengthens or cuts one, or runs anything.
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
    "number_ios",
    "numjobs",
    "offset",
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
mod tests {
    use super::*;

    #[test]
    fn a_job_says_what_it_would_do() {
        let text = "# x\n[global]\nioengine=libaio\nfilename = /dev/sdx\n[a]\nrw=randread\n\
                    stonewall\n[b]\nrw=randrw:8\nsize=1m\noffset=10%\n";
        let job = Job::read(text).unwrap();
        assert_eq!((&job.files[..], job.writes), (&["/dev/sdx".to_owned()][..], true));
        let written = "[global]\nioengine=libaio\n[a]\nrw=randread\nstonewall\n[b]\nrw=randrw:8\n\
                       size=1m\noffset=10%\n";
        assert_eq!(job.text, written);
        assert_eq!(job.reach_bytes(100 << 20), 11 << 20);
        assert_eq!(Job::read("[a]\ngroup_reporting=1\n").unwrap().text, "[a]\n");
        assert!(!Job::read("[a]\nrw=read\n").unwrap().writes);
        assert!(!Job::read("[a]\n").unwrap().writes, "fio reads unless it is told otherwise");
        assert!(Job::read("[a]\nreadwrite=trim\n").unwrap().writes);
        assert!(Job::read("[a]\nrw=read,randwrite\n").is_ok_and(|job| !job.writes));
    }

    #[test]
    fn what_is_not_on_the_list_is_refused() {
        for line in [
            "unlink=1",
            "opendir=/srv",
            "directory=/srv",
            "filename_format=x",
            "exec_prerun=touch x",
            "include x.fio",
            "include",
            "create_only=1",
            "create_on_open=1",
            "filesize=1g",
            "nrfiles=2",
            "write_bw_log=x",
            "read_iolog=x",
            "allow_file_create=1",
            "ioengine=external:/x.so",
            "ioengine=filedelete",
            "ioengine=mmap",
            "size=${SIZE}",
            "size=0",
            "size=1e",
            "bs=4k\"",
            "description=`x`",
            "[../x]",
            "[/dev/sdx]",
            "[a",
            "Unlink=1",
            "unlink = 1",
            "--unlink=1",
        ] {
            let error = Job::read(&format!("[a]\nrw=read\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(&format!("{line:?}")), "{line}: {error}");
        }
    }

    #[test]
    fn ramps_of_parts_that_begin_together() {
        let ramp = |text: &str| Job::read(text).unwrap().ramp();
        assert_eq!(ramp("[a]\nrw=read\n"), Ramp::None);
        assert_eq!(ramp("[a]\nramp_time=0\n"), Ramp::None);
        let second = Ramp::For(Duration::from_secs(1));
        assert_eq!(ramp("[a]\nrw=read\nramp_time=1\n"), second);
        assert_eq!(ramp("[global]\nramp_time=1000ms\n[a]\nrw=read\n[b]\nrw=read\n"), second);
        assert_eq!(ramp("[a]\nramp_time=1\n[b]\nrw=read\n"), Ramp::Several);
        assert_eq!(ramp("[global]\nramp_time=1\n[a]\n[b]\nstonewall\n"), Ramp::Several);
        assert_eq!(ramp("[a]\nramp_time=1y\n"), Ramp::Several);
    }

    #[test]
    fn sizes_are_those_of_fio() {
        let sizes = [("512", 512), ("4k", 4096), ("4KiB", 4096), ("2M", 2 << 20), ("1t", 1 << 40)];
        for (text, expected) in sizes {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in ["", "0", "-1", "k", "1x", "1.5g", "99999999999t"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
