//! Where the files of a user's job are.
//!
//! fio takes names from its working folder, puts `directory` before them, and makes up names of its
//! own where a section has none. All of that is done here, with links followed, before fio is
//! started: it gets whole names, so that what was looked at is what it opens. Files that it would
//! make up names for are made in a folder of our own, below the one that it would have taken: it
//! cannot meet anything there that is somebody's.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base::format::binary_size;

use super::DiskError;
use super::job::{Beside, JobError, LINE_BYTES_MAX, ParsedJob, ParsedSection, Room};
use super::ramp::Ramp;
use super::safety::Access;
use super::targets::{fio_name, length_of};

/// Longest job file that is read.
const JOB_BYTES_MAX: u64 = 1 << 20;

/// Where the files of a section are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionFiles {
    Named(Vec<PathBuf>),
    /// fio makes them, in turn below each of these.
    Below(Vec<PathBuf>),
    /// There are none: the engine opens no file.
    None,
}

impl SectionFiles {
    fn paths(&self) -> &[PathBuf] {
        match self {
            SectionFiles::Named(paths) | SectionFiles::Below(paths) => paths,
            SectionFiles::None => &[],
        }
    }
}

/// What is asked for beside a job file.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobRequest<'a> {
    /// What sections work on that name no file: a file or a device, or a folder, from which
    /// relative names are taken then instead of the working folder. A file or a device takes the
    /// place of the only one that all sections name.
    pub path: Option<&'a Path>,
    /// Options as `NAME=VALUE` that take the place of all with their names.
    pub sets: &'a [String],
}

/// A job file that was read, and the files that it works on.
#[derive(Debug)]
pub struct UserJob {
    job: ParsedJob,
    sections: Vec<(ParsedSection, SectionFiles)>,
    rooms: Vec<(PathBuf, Room)>,
    /// The only file that the job names, where another one took its place.
    replaced: Option<PathBuf>,
}

impl UserJob {
    /// Reads a job file.
    ///
    /// # Errors
    /// When lines of it are refused, or a file that it names cannot be found.
    pub fn read(file: &Path, wanted: JobRequest<'_>) -> Result<UserJob, DiskError> {
        let wrong = |source: JobError| DiskError::Job { path: file.to_owned(), source };
        let text = text_of(file).map_err(|error| wrong(error.into()))?;
        UserJob::of_text(file, &text, wanted)
    }

    /// The same of a job file whose text is known.
    ///
    /// # Errors
    /// As `read`.
    pub fn of_text(file: &Path, text: &str, wanted: JobRequest<'_>) -> Result<UserJob, DiskError> {
        let wrong = |source: JobError| DiskError::Job { path: file.to_owned(), source };
        let variable = |name: &str| std::env::var(name).ok();
        let beside = Beside { sets: wanted.sets, variable: &variable };
        let job = ParsedJob::read(text, beside).map_err(wrong)?;
        let given = wanted.path.map(Given::of).transpose()?;
        let mut named = Vec::new();
        for section in job.sections() {
            let place = self::wanted(&section, given.as_ref())
                .ok_or_else(|| wrong(JobError::NoPlace { section: section.name.clone() }))?;
            named.push((section, place));
        }
        let replaced = given.as_ref().and_then(|given| replace(&mut named, given));
        let mut sections = Vec::new();
        for (section, place) in named {
            let place = match place {
                SectionFiles::Named(names) => SectionFiles::Named(all(&names, resolved)?),
                SectionFiles::Below(folders) => SectionFiles::Below(all(&folders, folder)?),
                SectionFiles::None => SectionFiles::None,
            };
            sections.push((section, place));
        }
        let rooms = rooms(&sections).map_err(wrong)?;
        let found = UserJob { job, sections, rooms, replaced };
        match given {
            Some(given) if !found.uses(&given) => {
                Err(wrong(JobError::NotUsed { path: given.path }))
            }
            _ => Ok(found),
        }
    }

    /// Options of the job that do not go to fio and of which that matters, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[(String, &'static str)] {
        self.job.left_out()
    }

    /// The file that the job names, where it works on the given one in its place.
    #[must_use]
    pub fn replaced(&self) -> Option<&Path> {
        self.replaced.as_deref()
    }

    /// What it works on, each once: files and devices that it names, folders of those it has made.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in self.sections.iter().flat_map(|(_, place)| place.paths()) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// What its parts do before they are counted.
    #[must_use]
    pub fn ramp(&self) -> Ramp {
        self.job.ramp()
    }

    /// Whether a part of it writes or discards.
    #[must_use]
    pub fn access(&self) -> Access {
        access(self.sections.iter().any(|(section, _)| section.writes()))
    }

    /// Every file and device that it names, with what is done to it.
    #[must_use]
    pub fn named(&self) -> Vec<(&Path, Access)> {
        let mut named = Vec::new();
        for (section, place) in &self.sections {
            if let SectionFiles::Named(paths) = place {
                named.extend(paths.iter().map(|path| (&**path, access(section.writes()))));
            }
        }
        named
    }

    /// Looks whether it stays within a file of which it is only to read: fio makes a file as long
    /// as the job wants it, also for reading, and it holds other bytes then.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_reach(&self, path: &Path) -> Result<(), DiskError> {
        for (section, place) in &self.sections {
            let SectionFiles::Named(paths) = place else { continue };
            if !paths.iter().any(|own| own == path) {
                continue;
            }
            let file_bytes = length_of(path)?;
            let reach_bytes = section.reach_bytes(file_bytes, paths.len());
            if reach_bytes > file_bytes {
                let path = path.to_owned();
                return Err(DiskError::Beyond { path, file_bytes, reach_bytes });
            }
        }
        Ok(())
    }

    /// The folders in which files are made, each once, with the room that they take.
    #[must_use]
    pub fn rooms(&self) -> &[(PathBuf, Room)] {
        &self.rooms
    }

    /// The job for fio, with the folders in which files are made by those that they are below.
    ///
    /// # Errors
    /// When a name would mean another one in it.
    pub fn text(&self, made: impl Fn(&Path) -> PathBuf) -> Result<String, DiskError> {
        let lines: Result<Vec<String>, DiskError> =
            self.sections.iter().map(|(section, place)| line(section, place, &made)).collect();
        let lines = lines?;
        Ok(self.job.text(|section| lines.get(section).cloned()))
    }

    /// The same of those sections alone whose files are made.
    ///
    /// # Errors
    /// As `text`.
    pub fn text_of_made(&self, made: impl Fn(&Path) -> PathBuf) -> Result<String, DiskError> {
        let mut lines: Vec<Option<String>> = Vec::new();
        for (section, place) in &self.sections {
            lines.push(match place {
                SectionFiles::Below(_) => Some(line(section, place, &made)?),
                SectionFiles::Named(_) | SectionFiles::None => None,
            });
        }
        Ok(self.job.text(|section| lines.get(section).cloned().flatten()))
    }

    /// Whether a section works on what was given beside the job, or below it.
    fn uses(&self, given: &Given) -> bool {
        self.sections.iter().any(|(section, place)| {
            let is_it = place.paths().contains(&given.path);
            is_it || given.is_folder && is_relative(section)
        })
    }
}

/// The folders in which files are made, each once, with the room that they take.
fn rooms(sections: &[(ParsedSection, SectionFiles)]) -> Result<Vec<(PathBuf, Room)>, JobError> {
    let mut rooms: Vec<(PathBuf, Room)> = Vec::new();
    for (section, place) in sections {
        let SectionFiles::Below(folders) = place else { continue };
        let no_size = || JobError::NoSize { section: section.name.clone() };
        let all = section.room().ok_or_else(no_size)?;
        let share = |amount: u64| amount.div_ceil(folders.len().max(1) as u64);
        for folder in folders {
            let own = match rooms.iter_mut().find(|(known, _)| known == folder) {
                Some((_, room)) => room,
                None => {
                    rooms.push((folder.clone(), Room::default()));
                    &mut rooms.last_mut().expect("it was pushed just now").1
                }
            };
            own.files = own.files.saturating_add(share(all.files));
            own.bytes = own.bytes.saturating_add(share(all.bytes));
        }
    }
    Ok(rooms)
}

/// Whether a name of a section is none from the root on.
fn is_relative(section: &ParsedSection) -> bool {
    let names = section.folders().or(section.files()).unwrap_or_default();
    names.iter().any(|name| !name.starts_with('/'))
}

/// What was given beside a job.
struct Given {
    path: PathBuf,
    is_folder: bool,
}

impl Given {
    fn of(path: &Path) -> Result<Given, DiskError> {
        let path = resolved(path)?;
        Ok(Given { is_folder: path.is_dir(), path })
    }
}

fn access(writes: bool) -> Access {
    if writes { Access::Writes } else { Access::Reads }
}

/// Where a section's files are, as fio would have it: `directory` stands before every name, also
/// before one that begins at the root.
fn wanted(section: &ParsedSection, given: Option<&Given>) -> Option<SectionFiles> {
    if section.is_without_files() {
        return Some(SectionFiles::None);
    }
    let base = match given {
        Some(given) if given.is_folder => given.path.clone(),
        _ => PathBuf::new(),
    };
    let folders = section.folders();
    if let Some(files) = section.files() {
        let folder = folders.and_then(<[String]>::first);
        let name = |file: &String| match folder {
            Some(folder) => base.join(format!("{folder}/{file}")),
            None => base.join(file),
        };
        return Some(SectionFiles::Named(files.iter().map(name).collect()));
    }
    if let Some(folders) = folders {
        return Some(SectionFiles::Below(folders.iter().map(|folder| base.join(folder)).collect()));
    }
    let Given { path, is_folder } = given?;
    let paths = vec![path.clone()];
    Some(if *is_folder { SectionFiles::Below(paths) } else { SectionFiles::Named(paths) })
}

/// Has the sections work on the given file or device, where all of them name one and the same
/// other one; that one.
fn replace(sections: &mut [(ParsedSection, SectionFiles)], given: &Given) -> Option<PathBuf> {
    let mut found: Option<PathBuf> = None;
    for (section, place) in sections.iter() {
        match place {
            SectionFiles::Named(paths) if section.files().is_some() => {
                for path in paths {
                    let path = resolved(path).unwrap_or_else(|_| path.clone());
                    if found.get_or_insert_with(|| path.clone()) != &path {
                        return None;
                    }
                }
            }
            SectionFiles::None => {}
            // It works on the given one already.
            SectionFiles::Named(_) | SectionFiles::Below(_) => return None,
        }
    }
    let found = found.filter(|found| !given.is_folder && *found != given.path)?;
    for (_, place) in sections {
        if matches!(place, SectionFiles::Named(_)) {
            *place = SectionFiles::Named(vec![given.path.clone()]);
        }
    }
    Some(found)
}

fn all(
    paths: &[PathBuf],
    each: impl Fn(&Path) -> Result<PathBuf, DiskError>,
) -> Result<Vec<PathBuf>, DiskError> {
    paths.iter().map(|path| each(path)).collect()
}

/// The whole name of a file that need not be there, links followed.
fn resolved(path: &Path) -> Result<PathBuf, DiskError> {
    let failed = |source: io::Error| DiskError::Open { path: path.to_owned(), source };
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            let name = path.file_name().ok_or_else(|| failed(error))?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new(".")).canonicalize().map_err(failed)?;
            Ok(parent.join(name))
        }
        found => found.map_err(failed),
    }
}

/// The whole name of a folder that is there.
pub(super) fn folder(path: &Path) -> Result<PathBuf, DiskError> {
    let found = path.canonicalize();
    let found = found.map_err(|source| DiskError::Open { path: path.to_owned(), source })?;
    if found.is_dir() { Ok(found) } else { Err(DiskError::NoFolder { path: found }) }
}

/// What a section is told of where its files are.
fn line(
    section: &ParsedSection,
    place: &SectionFiles,
    made: &impl Fn(&Path) -> PathBuf,
) -> Result<String, DiskError> {
    let (option, paths) = match place {
        SectionFiles::None => return Ok(String::new()),
        SectionFiles::Named(paths) => ("filename", paths.clone()),
        SectionFiles::Below(folders) => {
            ("directory", folders.iter().map(|folder| made(folder)).collect())
        }
    };
    let mut names: Vec<String> = Vec::new();
    for path in &paths {
        // fio replaces some words behind a dollar in a job.
        if path.as_os_str().as_bytes().contains(&b'$') {
            return Err(DiskError::Name { path: path.clone() });
        }
        let name = fio_name(path)?.into_string();
        names.push(name.map_err(|_| DiskError::Name { path: path.clone() })?);
    }
    let line = format!("{option}={}\n", names.join(":"));
    if line.len() > LINE_BYTES_MAX {
        return Err(DiskError::Names { section: section.name.clone() });
    }
    Ok(line)
}

fn text_of(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(JOB_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > JOB_BYTES_MAX {
        let told = format!("it is longer than {}", binary_size(JOB_BYTES_MAX));
        return Err(io::Error::new(io::ErrorKind::InvalidData, told));
    }
    Ok(text)
}
