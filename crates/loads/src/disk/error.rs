//! Errors of experiments with fio.

use std::io;
use std::path::PathBuf;

use base::format::size;
use flow::cancel::Stopped;
use storage::StorageError;

use super::job::JobError;
use experiment::record::CellError;
use experiment::run::gate::GateError;

/// Why an experiment with fio cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The path cannot be looked at.
    #[error("open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Something uses the device: a file system, an array, a volume group, swap.
    #[error("{} is mounted or in use", path.display())]
    InUse { path: PathBuf },
    /// There are data that a write would destroy.
    #[error("{} holds data, which the run would destroy", path.display())]
    HoldsData { path: PathBuf },
    /// Neither a file nor a block device.
    #[error("{} is neither a file nor a block device", path.display())]
    Kind { path: PathBuf },
    /// A job would read behind the end, for which fio makes the file longer.
    #[error(
        "{} has {file_bytes} bytes, but the job reads to byte {reach_bytes}: fio would extend it",
        path.display()
    )]
    Beyond {
        path: PathBuf,
        file_bytes: u64,
        /// Where the job ends.
        reach_bytes: u64,
    },
    /// A name that fio cannot be told.
    #[error(
        "{} has a backslash, a ';', a '#' or a control character in its name, in a job also a '$', \
         or ends with a blank: fio would use another file",
        path.display()
    )]
    Name { path: PathBuf },
    /// More names than fio reads.
    #[error("the names of the files of section [{section}] are longer than fio reads")]
    Names { section: String },
    /// Files are to be made in something that is not a folder.
    #[error("{} is not a folder", path.display())]
    NoFolder { path: PathBuf },
    /// The file system is too full.
    #[error(
        "the files to be made below {} take {}, and {} are free",
        path.display(), size(*needed_bytes), size(*free_bytes)
    )]
    Room {
        path: PathBuf,
        /// What they take.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// The file system has no room for so many.
    #[error("{files} files are to be made below {}, which takes {free_files} more", path.display())]
    Files {
        path: PathBuf,
        files: u64,
        /// How many it takes.
        free_files: u64,
    },
    /// There is nothing to read.
    #[error("{} is empty or does not exist: there is nothing to read", path.display())]
    Empty { path: PathBuf },
    /// The device behind the path is not known.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The length of the path is not known.
    #[error("length of {}", path.display())]
    Length { path: PathBuf, source: io::Error },
    /// There is no fio.
    #[error("fio is not installed")]
    NoFio,
    /// fio cannot be started.
    #[error("start fio")]
    Start(#[source] io::Error),
    /// Nothing is known of a fio that was started.
    #[error("wait for fio")]
    Wait(#[source] io::Error),
    /// fio failed.
    #[error("fio: {said}")]
    Failed { said: String },
    /// It was to begin together with other hosts, and did not.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The user's job cannot be run safely.
    #[error("job {}", path.display())]
    Job {
        /// The job file.
        path: PathBuf,
        source: JobError,
    },
    /// The plan names no path, or several.
    #[error("takeup runs fio on one path at a time")]
    OnePath,
    /// Loads that make files of their own, and others.
    #[error("loads of many files work below a folder, and others on a file or a device: not both")]
    TwoKinds,
    /// What the runs need cannot be made.
    #[error("make {}", path.display())]
    Make { path: PathBuf, source: io::Error },
    /// A cell of it asks for something that cannot be.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// What was made for the runs is still there.
    #[error("remove {}", path.display())]
    Remove {
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// The device has no such setting.
    #[error("{device} has no {what} that could be set")]
    NoSetting {
        /// The device, or the number of a file system without one.
        device: String,
        what: &'static str,
    },
    /// The device offers other values.
    #[error("{what} is not what {device} offers: {offered}")]
    NotOffered {
        /// The setting and its value.
        what: String,
        /// The disk.
        device: String,
        /// What there is.
        offered: String,
    },
    /// The kernel refused every combination with these settings.
    #[error("{what} cannot be set")]
    NotTaken {
        /// The settings and their values.
        what: String,
        source: StorageError,
    },
    /// The paths of a multipath device would fail.
    #[error("max_sectors_kb of the paths below {device} is not changed while it is in use")]
    Multipath {
        /// The multipath device.
        device: String,
    },
    /// Another program changed the setting during the run.
    #[error("{} became {found:?} during the run, which was to have {wanted:?}", path.display())]
    NotKept {
        path: PathBuf,
        wanted: String,
        /// What it holds.
        found: String,
    },
    /// A level of a setting is invalid.
    #[error(transparent)]
    Level(CellError),
    /// It is no JSON at all.
    #[error("not the output of fio: there is no document in it")]
    FioNoDocument,
    /// It is no JSON of fio.
    #[error("not the output of fio")]
    FioSyntax(#[from] serde_json::Error),
    /// A latency that is no number.
    #[error("not the output of fio: bin {ns:?}")]
    FioBin {
        /// As printed.
        ns: String,
    },
    /// A job failed.
    #[error("fio: job {job} failed with error {code}")]
    FioJob {
        job: String,
        /// An errno.
        code: i64,
    },
    /// There is no job in it.
    #[error("fio ran no job")]
    FioNoJob,
}
