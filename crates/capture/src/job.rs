//! A profile as a job for fio, and how near the job comes to what was captured.
//!
//! Files that are alike become one [`group`], and a group one or two [`section`]s of the job:
//! reads, and writes with their syncs, since fio counts the syncs of a mixed section twice (3.33:
//! 131 syncs of 270 writes for `fdatasync=4`). Each line says where its value comes from; what is
//! not known stands there as a comment, with what was taken in its place. The job works on files of
//! its own, in a folder that is given or asked for, never on what was captured; [`check_folder`]
//! refuses one where they would meet. [`compare()`] holds the profile of a run of the job against
//! the one it came from.
//!
//! A [`Trial`] makes the files and says how fio is started.
//!
//! Not here: starting it under a recording, which is the command's.

use rustix::fs::MetadataExt;
mod blocks;
mod cadence;
mod compare;
mod extent;
mod group;
mod limits;
mod numbers;
mod part;
mod scale;
mod section;
mod slice;
mod spread;
mod trial;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use base::format::{count, counted};
use loads::disk::{DiskError, fio_name};

use self::group::FileGroup;
use self::section::{JobSection, Part};
use self::slice::Slice;
use super::operation::FileKind;
use super::profile::{Class, FileProfile, Profile};

pub use compare::{Compared, PROPERTIES, Score, Validation, compare};
pub use limits::JobLimits;
use numbers::whole;
pub use section::Line;
pub use trial::Trial;

/// The variable that says where a job's files are, when no folder was given.
pub const DIRECTORY_VARIABLE: &str = "TAKEUP_JOB_DIR";

/// Most groups of a job; those with the fewest operations are left out.
const GROUPS_MAX: usize = 16;

/// Files with less than this share of all operations, and of all bytes, are left out: what a
/// program reads once when it starts says little of it, and makes a job that nobody can read.
const SHARE_MIN: f64 = 0.005;

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub enum CaptureJobError {
    /// There is nothing in the profile that fio could do.
    #[error("cannot make a job: the capture has no read or write of a file")]
    Nothing,
    /// A file of the job is one that was captured.
    #[error("cannot use {}: it is one of the captured files", path.display())]
    Captured { path: PathBuf },
    /// fio cannot make the files, or there is no room for them.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The job file cannot be written.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// What is in the place of a file of the job is not known.
    #[error("cannot read {}", path.display())]
    Look { path: PathBuf, source: std::io::Error },
}

/// Where the files of a job are, and how large it may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobTarget<'a> {
    /// The folder; without one the job asks for it with [`DIRECTORY_VARIABLE`].
    pub folder: Option<&'a Path>,
    /// What it is cut to; without, it is as large as what was captured.
    pub limits: Option<JobLimits>,
}

/// A job for fio.
#[derive(Clone, Debug)]
pub struct FioJob {
    directory: String,
    groups: Vec<Written>,
    left_out: Vec<String>,
    heading: String,
    /// Seconds after which fio ends it.
    runtime_seconds: Option<u64>,
}

/// A group and what became of it.
#[derive(Clone, Debug)]
struct Written {
    group: FileGroup,
    sections: Vec<JobSection>,
}

impl FioJob {
    /// The job that does what a profile says.
    ///
    /// # Errors
    /// When there is nothing to do, or the folder cannot be named to fio.
    pub fn of(profile: &Profile, target: &JobTarget<'_>) -> Result<FioJob, CaptureJobError> {
        let directory = match target.folder {
            Some(folder) => fio_name(folder)?.to_string_lossy().into_owned(),
            None => format!("${{{DIRECTORY_VARIABLE}}}"),
        };
        let (chosen, mut left_out) = chosen(profile);
        let mut groups = group::joined(&chosen, profile.seconds);
        groups.sort_by_key(|group| std::cmp::Reverse(group.operations()));
        if groups.len() > GROUPS_MAX {
            let rest: Vec<FileGroup> = groups.drain(GROUPS_MAX..).collect();
            let operations: u64 = rest.iter().map(FileGroup::operations).sum();
            let files: usize = rest.iter().map(|group| group.paths.len()).sum();
            left_out.push(format!(
                "{} with {} in groups beyond the {GROUPS_MAX} largest",
                counted(files as u64, "file", "files"),
                counted(operations, "read or write", "reads and writes"),
            ));
        }
        if groups.is_empty() {
            return Err(CaptureJobError::Nothing);
        }
        group::name(&mut groups);
        let scale = scale::Scale::of(&groups, profile.seconds, target.limits);
        let groups = groups.into_iter().map(|group| {
            let sections = sections(&group, &scale);
            Written { group, sections }
        });
        let groups = groups.collect();
        let heading = heading(profile, &scale);
        let runtime_seconds = target.limits.map(|limits| whole(limits.seconds.ceil()).max(1));
        Ok(FioJob { directory, groups, left_out, heading, runtime_seconds })
    }

    /// Names of its files, each once.
    #[must_use]
    pub fn files(&self) -> Vec<&str> {
        let names = self.groups.iter().flat_map(|written| &written.group.names);
        names.map(String::as_str).collect()
    }

    /// What its files take.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let of = |written: &Written| written.sections.iter().map(JobSection::file_bytes).max();
        self.groups.iter().filter_map(of).fold(0, u64::saturating_add)
    }

    /// As fio reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.heading.clone();
        for left_out in &self.left_out {
            let _ = writeln!(text, "; left out: {}", plain(left_out));
        }
        let _ = write!(
            text,
            "[global]\n; its own files, never the captured ones\ndirectory={}\n\
             ; threads, so that all of it ends with fio\nthread\n",
            self.directory,
        );
        if let Some(seconds) = self.runtime_seconds {
            let _ = write!(text, "; limit of the run time, in seconds\nruntime={seconds}\n");
        }
        for written in &self.groups {
            for section in &written.sections {
                let _ = write!(text, "\n[{}]\n", section.name);
                for line in &section.lines {
                    let _ = writeln!(text, "; {}", plain(&line.origin));
                    if let Some(value) = &line.value {
                        let _ = writeln!(text, "{value}");
                    }
                }
            }
        }
        text
    }
}

/// The sections of a group. Where nothing pauses they come one after the other, but for those that
/// are one load: side by side there would be more in flight than was captured.
fn sections(group: &FileGroup, scale: &scale::Scale) -> Vec<JobSection> {
    let mut sections: Vec<JobSection> = Vec::new();
    let mut before: Option<String> = None;
    for part in Part::of(group) {
        if *part != Part::Syncs && !group.pauses() {
            before = sections.last().map(|section| section.name.clone());
        }
        for slice in Slice::of(group, *part) {
            if slice.is_after {
                before = sections.last().map(|section| section.name.clone());
            }
            sections.push(JobSection::of(group, *part, slice, scale, before.as_deref()));
        }
    }
    sections
}

/// A comment must stay one line, whatever a file is called.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn heading(profile: &Profile, scale: &scale::Scale) -> String {
    let mut text = format!(
        "; A job for fio with the load of a takeup capture of {:.1} s with {}.\n",
        profile.seconds,
        counted(profile.files.len() as u64, "file", "files"),
    );
    if profile.lost_events > 0 {
        let lost = counted(profile.lost_events, "event was", "events were");
        let _ = writeln!(text, "; {lost} lost: the counts below may be too low.");
    }
    if scale.share < 1.0 {
        let share = scale.share * 100.0;
        let _ = writeln!(text, "; Cut to {share:.2} % of the operations by a limit.");
    }
    text
}

/// The files that a job can stand for and that matter, and in words those that are left out.
fn chosen(profile: &Profile) -> (Vec<&FileProfile>, Vec<String>) {
    let operations = |file: &FileProfile| file.reads + file.writes;
    let bytes = |file: &FileProfile| {
        file.read_bytes.unwrap_or(0).saturating_add(file.written_bytes.unwrap_or(0))
    };
    let is_disk = |file: &&FileProfile| {
        let seekable = matches!(file.kind, FileKind::Regular | FileKind::BlockDevice);
        seekable && (file.class != Class::Device || file.kind == FileKind::BlockDevice)
    };
    let (disks, others): (Vec<_>, Vec<_>) =
        profile.files.iter().filter(|file| operations(file) > 0).partition(is_disk);
    let all: u64 = disks.iter().map(|file| operations(file)).sum();
    let all_bytes = disks.iter().map(|file| bytes(file)).fold(0, u64::saturating_add);
    let matters = |file: &&FileProfile| {
        let of = |part: u64, whole: u64| part as f64 > SHARE_MIN * whole as f64;
        of(operations(file), all) || of(bytes(file), all_bytes)
    };
    let (chosen, small): (Vec<_>, Vec<_>) = disks.into_iter().partition(matters);
    let sum = |files: &[&FileProfile]| files.iter().map(|file| operations(file)).sum::<u64>();
    let mut left_out = Vec::new();
    for (files, why) in [
        (&others, "no disk, or closed before their name was known"),
        (&small, "less than 0.5 % of operations and bytes each"),
    ] {
        if !files.is_empty() {
            left_out.push(format!(
                "{} with {} ({why})",
                counted(files.len() as u64, "file", "files"),
                counted(sum(files), "read or write", "reads and writes"),
            ));
        }
    }
    if profile.operations_left_out > 0 {
        let files = counted(profile.files_left_out, "file", "files");
        let calls = count(profile.operations_left_out);
        left_out.push(format!("{files} with {calls} operations (beyond the limit of the capture)"));
    }
    (chosen, left_out)
}

/// Looks whether a job may have its files in a folder: none of them may be one that was captured,
/// by its name or by another one.
///
/// # Errors
/// When one is, or this cannot be found out.
pub fn check_folder(
    job: &FioJob,
    folder: &Path,
    captured: &Profile,
) -> Result<(), CaptureJobError> {
    let number = |path: &Path| match fs::metadata(path) {
        Ok(known) => Ok(Some((known.dev(), known.ino()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CaptureJobError::Look { path: path.to_owned(), source }),
    };
    let paths = || captured.files.iter().filter_map(|file| file.path.as_deref()).map(Path::new);
    // A captured file that cannot be looked at is still known by its name.
    let numbers: BTreeSet<(u64, u64)> =
        paths().filter_map(|path| number(path).ok().flatten()).collect();
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    for name in job.files() {
        let (given, real) = (folder.join(name), whole.join(name));
        let is_captured = paths().any(|path| path == given || path == real)
            || number(&given)?.is_some_and(|number| numbers.contains(&number));
        if is_captured {
            return Err(CaptureJobError::Captured { path: given });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
