//! What the runs of an experiment do: loads on a path, loads of many files, a user's job.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use base::escape::escape_path;
use base::format::size;
use flow::cancel::Cancel;

use super::DiskError;
use super::job::Room;
use super::load::Load;
use super::own_file::OwnFile;
use super::places::{self, UserJob};
use super::process;
use super::safety::{Access, Permission};
use super::targets::{OwnFolder, Targets, check_room, fio_name, length_of};
use crate::read::Pages;
use experiment::plan::Plan;
use experiment::record::Cell;

/// What is run, and on what.
#[derive(Debug)]
pub enum Work {
    /// The load of a cell, on a file or a device.
    Loads {
        path: PathBuf,
        /// What all of the loads together do to it.
        access: Access,
        /// Bytes that it has; a file that is not there is made as long as it is wanted.
        there_bytes: Option<u64>,
    },
    /// The load of a cell, on one file of our own in a folder.
    Own {
        below: PathBuf,
        /// Length of the file.
        length_bytes: u64,
        /// The file, as long as the runs go on.
        file: Option<OwnFile>,
    },
    /// The load of a cell, on many files of our own.
    Files {
        /// The folder that ours is made in.
        below: PathBuf,
        /// Ours, with the files.
        folder: Option<OwnFolder>,
        /// Files to be read that are there, by their folder, and for how many jobs.
        there: BTreeMap<String, u64>,
    },
    /// A job of the user's.
    Job(Box<JobWork>),
}

/// A user's job, and what is made for it.
#[derive(Debug)]
pub struct JobWork {
    job: UserJob,
    /// The job for fio.
    pub text: String,
    /// Where files are made.
    folders: Vec<OwnFolder>,
    /// Whether they are there.
    is_made: bool,
}

impl Work {
    /// What a plan asks for, and the files and devices of it; all is looked at, nothing is made.
    ///
    /// # Errors
    /// When something of it cannot be, or may not be done.
    pub fn of(
        plan: &Plan,
        job: Option<UserJob>,
        permission: Permission,
    ) -> Result<(Work, Targets), DiskError> {
        if let Some(job) = job {
            return JobWork::of(job, permission);
        }
        let [path] = &plan.paths[..] else { return Err(DiskError::OnePath) };
        // fio takes "-" for a pipe.
        let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
        let loads: Result<Vec<Load>, _> = plan.cells().iter().map(Load::from_cell).collect();
        let loads = loads?;
        if path.is_dir() && loads.iter().all(|load| load.files.is_none()) {
            let length_bytes = plan.length_bytes;
            check_room(&path, Room { files: 1, bytes: length_bytes })?;
            let work = Work::Own { below: path, length_bytes, file: None };
            return Ok((work, Targets::default()));
        }
        fio_name(&path)?;
        if loads.iter().any(|load| load.files.is_some()) {
            if loads.iter().any(|load| load.files.is_none()) {
                return Err(DiskError::TwoKinds);
            }
            let below = places::folder(&path)?;
            fio_name(&below)?;
            check_room(&below, room_of(&loads))?;
            let work = Work::Files { below, folder: None, there: BTreeMap::new() };
            return Ok((work, Targets::default()));
        }
        let writes = loads.iter().any(|load| load.writes());
        let access = if writes { Access::Writes } else { Access::Reads };
        let targets = Targets::check(&[(&path, access)], permission)?;
        let is_there = !targets.makes_one();
        let there_bytes = is_there.then(|| length_of(&path)).transpose()?;
        let there_bytes = there_bytes.filter(|bytes| *bytes > 0);
        Ok((Work::Loads { path, access, there_bytes }, targets))
    }

    /// The files, devices and folders that it works on.
    pub fn paths(&self) -> Vec<PathBuf> {
        match self {
            Work::Loads { path, .. } => vec![path.clone()],
            Work::Own { below, .. } | Work::Files { below, .. } => vec![below.clone()],
            Work::Job(work) => work.job.paths(),
        }
    }

    /// What the user should know before the runs.
    pub fn note(&self) -> Option<String> {
        let Work::Own { below, length_bytes, .. } = self else { return None };
        Some(format!(
            "{} is a folder: the loads run on a file of {} that takeup makes in it, and deletes",
            escape_path(below),
            size(*length_bytes)
        ))
    }

    /// Makes the folders that files are made in, and the file of our own.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn begin(&mut self) -> Result<(), DiskError> {
        match self {
            Work::Loads { .. } => {}
            Work::Own { below, length_bytes, file } => {
                *file = Some(OwnFile::new(below, *length_bytes)?);
            }
            Work::Files { below, folder, .. } => *folder = Some(OwnFolder::new(below)?),
            Work::Job(work) => work.begin()?,
        }
        Ok(())
    }

    /// The user's job.
    pub fn job(&self) -> Option<&UserJob> {
        match self {
            Work::Job(work) => Some(&work.job),
            _ => None,
        }
    }

    /// What fio is given on its standard input.
    pub fn text(&self) -> Option<&str> {
        match self {
            Work::Job(work) => Some(&work.text),
            _ => None,
        }
    }

    /// The load of a cell; a job is none.
    pub fn load(&self, cell: &Cell) -> Result<Option<Load>, DiskError> {
        match self {
            Work::Job(_) => Ok(None),
            _ => Ok(Some(Load::from_cell(cell)?)),
        }
    }

    /// Makes what a run of the cell reads, and removes what it makes. What memory holds of it is on
    /// the disk then.
    ///
    /// # Errors
    /// When that is not possible, or the run is stopped.
    pub fn prepare(&mut self, cell: &Cell, cancel: &Cancel) -> Result<(), DiskError> {
        match self {
            Work::Loads { .. } => {}
            Work::Files { folder: Some(folder), there, .. } => {
                let load = Load::from_cell(cell)?;
                let name = folder_of(&load);
                if load.writes() {
                    folder.empty(&name)?;
                } else if there.get(&name).is_none_or(|jobs| *jobs < load.jobs()) {
                    let mut arguments = load.arguments(0, 0.0);
                    arguments.push(option("--directory=", &folder.folder(&name)?)?);
                    make(arguments, None, cancel)?;
                    there.insert(name, load.jobs());
                }
                folder.sync();
            }
            Work::Own { file: Some(file), .. } => file.prepare(cancel)?,
            Work::Own { .. } | Work::Files { .. } => {}
            Work::Job(work) => work.prepare(cancel)?,
        }
        Ok(())
    }

    /// The command line of fio, of at most so many bytes of a path or for so many seconds.
    ///
    /// # Errors
    /// When the cell is none, or the path cannot be looked at.
    pub fn arguments(
        &self,
        cell: &Cell,
        length_bytes: u64,
        seconds: f64,
    ) -> Result<Vec<OsString>, DiskError> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut read_only = |writes: bool| {
            if !writes {
                arguments.push("--readonly".into());
            }
        };
        match self {
            Work::Job(work) => {
                read_only(work.job.access() == Access::Writes);
                // The job comes from standard input.
                arguments.extend(["--output-format=json+".into(), "-".into()]);
            }
            Work::Loads { path, access, there_bytes } => {
                read_only(*access == Access::Writes);
                let length = there_bytes.map_or(length_bytes, |bytes| bytes.min(length_bytes));
                arguments.extend(Load::from_cell(cell)?.arguments(length, seconds));
                arguments.push(option("--filename=", path)?);
            }
            Work::Own { below, length_bytes, file } => {
                let load = Load::from_cell(cell)?;
                read_only(load.writes());
                arguments.extend(load.arguments(*length_bytes, seconds));
                let own = file.as_ref().map_or_else(|| below.clone(), OwnFile::path);
                arguments.push(option("--filename=", &own)?);
            }
            Work::Files { folder, below, .. } => {
                let load = Load::from_cell(cell)?;
                read_only(load.writes());
                arguments.extend(load.arguments(length_bytes, seconds));
                let own = folder.as_ref().map_or(&**below, OwnFolder::path);
                arguments.push(option("--directory=", &own.join(folder_of(&load)))?);
            }
        }
        Ok(arguments)
    }

    /// Removes what was made.
    ///
    /// # Errors
    /// When something is still there.
    pub fn remove_made(&mut self) -> Result<(), DiskError> {
        match self {
            Work::Loads { .. } => Ok(()),
            Work::Own { file, .. } => {
                *file = None;
                Ok(())
            }
            Work::Files { folder, .. } => folder.iter_mut().try_for_each(OwnFolder::remove),
            Work::Job(work) => work.folders.iter_mut().try_for_each(OwnFolder::remove),
        }
    }
}

impl JobWork {
    fn of(job: UserJob, permission: Permission) -> Result<(Work, Targets), DiskError> {
        let named = job.named();
        let targets = Targets::check(&named, permission)?;
        for (path, _) in named {
            if targets.is_only_read(path) {
                job.check_reach(path)?;
            }
        }
        for (folder, room) in job.rooms() {
            check_room(folder, *room)?;
        }
        // As it will be, but for the names of folders that are not there yet.
        let text = job.text(Path::to_owned)?;
        let work = JobWork { job, text, folders: Vec::new(), is_made: false };
        Ok((Work::Job(Box::new(work)), targets))
    }

    fn begin(&mut self) -> Result<(), DiskError> {
        for (below, _) in self.job.rooms() {
            self.folders.push(OwnFolder::new(below)?);
        }
        self.text = self.job.text(|below| self.made_below(below))?;
        Ok(())
    }

    /// Our folder below one that the job names.
    fn made_below(&self, below: &Path) -> PathBuf {
        let own = self.folders.iter().find(|folder| folder.below == below);
        own.map_or_else(|| below.to_owned(), |folder| folder.path().to_owned())
    }

    fn prepare(&mut self, cancel: &Cancel) -> Result<(), DiskError> {
        if !self.folders.is_empty() && !self.is_made {
            let text = self.job.text_of_made(|below| self.made_below(below))?;
            make(vec!["-".into()], Some(&text), cancel)?;
            self.is_made = true;
        }
        self.folders.iter().for_each(OwnFolder::sync);
        Ok(())
    }
}

/// The name of the folder that the files of a load are in: those to be read stay from run to run.
fn folder_of(load: &Load) -> String {
    match load.files {
        Some(files) if !load.writes() => format!("{}-of-{}", files.count, files.bytes),
        _ => "made".to_owned(),
    }
}

/// The room of all loads: what is read stays, and one of those that are written is there at a time.
fn room_of(loads: &[Load]) -> Room {
    let mut rooms: BTreeMap<String, Room> = BTreeMap::new();
    for load in loads {
        let own = rooms.entry(folder_of(load)).or_default();
        let room = load.room().unwrap_or_default();
        own.files = own.files.max(room.files);
        own.bytes = own.bytes.max(room.bytes);
    }
    rooms.values().fold(Room::default(), |sum, room| Room {
        files: sum.files.saturating_add(room.files),
        bytes: sum.bytes.saturating_add(room.bytes),
    })
}

fn option(name: &str, path: &Path) -> Result<OsString, DiskError> {
    let mut text = OsString::from(name);
    text.push(fio_name(path)?);
    Ok(text)
}

/// Has fio make its files and nothing else; they are on the disk when all of them are there.
fn make(mut arguments: Vec<OsString>, job: Option<&str>, cancel: &Cancel) -> Result<(), DiskError> {
    let only = ["--create_only=1", "--create_fsync=0"].map(OsString::from);
    match job {
        // In front of a job they hold for all of its sections.
        Some(_) => {
            arguments = only.into_iter().chain(arguments).collect();
        }
        None => arguments.extend(only),
    }
    process::run(&arguments, job, Pages::Small, &mut || {}, cancel).map(drop)
}
