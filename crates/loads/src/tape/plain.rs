//! A target that is no tape: a file, `/dev/null`, a pipe.
//!
//! What it measures is said with every run, since it is not a drive: a file is the page cache and
//! then its disk, with fsync(2) in the place of the filemark; `/dev/null` is the generator and
//! nothing else; a pipe is its reader.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device::file::drop_cached;
use device::target::{Existing, FileMode, Target, TargetError, TargetKind};
use flow::account::Account;
use flow::cancel::Cancel;
use flow::ring::Block;
use flow::sink::{Sink, StreamSink};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use storage::layers::Storage;
use tree::Identity;

use super::error::TapeBenchError;
use super::options::Occupied;
use super::transfer::{Medium, Taken};
use experiment::environment;
use experiment::observed::{About, Before, Measures};

/// What stands behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainKind {
    File,
    Nothing,
    Pipe,
}

/// Such a target, open.
pub(super) struct Plain {
    file: Arc<OwnedFd>,
    path: PathBuf,
    kind: PlainKind,
    /// We have made it.
    is_ours: bool,
    device: Option<Storage>,
    sink: Option<StreamSink>,
}

impl Plain {
    /// Opens it. A file that holds something is left alone unless it may be written over; one that
    /// does not exist is made, and removed at the end.
    pub(super) fn open(path: &Path, occupied: Occupied) -> Result<Plain, TapeBenchError> {
        let not_possible = |what| TapeBenchError::NotPossible { path: path.to_owned(), what };
        match rustix::fs::stat(path) {
            Err(Errno::NOENT) => {
                Target::check_new_file(path)?;
                Plain::file(path, OFlags::CREATE | OFlags::EXCL)
            }
            Err(error) => Err(failed("cannot use", path, error)),
            Ok(status) => match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile if status.st_size > 0 && occupied == Occupied::Keep => {
                    Err(TapeBenchError::HoldsData { device: path.display().to_string() })
                }
                FileType::RegularFile => Plain::file(path, OFlags::empty()),
                FileType::Directory => Err(not_possible("a directory; name a file in it")),
                FileType::BlockDevice => {
                    Err(not_possible("a block device, which takeup bench disk measures"))
                }
                FileType::CharacterDevice | FileType::Fifo => Plain::special(path),
                _ => Err(not_possible("not a tape, file or pipe")),
            },
        }
    }

    fn file(path: &Path, flags: OFlags) -> Result<Plain, TapeBenchError> {
        let mode = Mode::from_raw_mode(0o644);
        let opened = base::interruptible::open(path, OFlags::RDWR | OFlags::CLOEXEC | flags, mode);
        let file = opened.map_err(|error| failed("cannot use", path, error))?;
        Ok(Plain {
            file: Arc::new(file),
            path: path.to_owned(),
            kind: PlainKind::File,
            is_ours: flags.contains(OFlags::CREATE),
            device: Storage::of(path).ok(),
            sink: None,
        })
    }

    fn special(path: &Path) -> Result<Plain, TapeBenchError> {
        Target::check_storage(path.as_os_str())?;
        let target = Target::open(path.as_os_str(), Existing::Replace, FileMode::Usual)?;
        let kind = match target.kind {
            TargetKind::CharacterDevice => PlainKind::Nothing,
            TargetKind::Pipe => PlainKind::Pipe,
            _ => return Err(TargetError::NoStorage { path: path.to_owned() }.into()),
        };
        Ok(Plain {
            file: Arc::clone(&target.file),
            path: path.to_owned(),
            kind,
            is_ours: false,
            device: None,
            sink: None,
        })
    }

    /// Whether what was written can be read again.
    pub(super) fn gives_back(&self) -> bool {
        self.kind == PlainKind::File
    }

    /// The file, where it is one.
    pub(super) fn identity(&self) -> Option<Identity> {
        (self.kind == PlainKind::File).then(|| Identity::of_descriptor(&self.file).ok()).flatten()
    }

    /// What a rate means here.
    pub(super) fn caution(&self) -> &'static str {
        match self.kind {
            PlainKind::File => {
                "the target is a file: this measures the page cache and its disk, with fsync in \
                 the place of the filemark"
            }
            PlainKind::Nothing => "nothing is stored there: this measures the generator",
            PlainKind::Pipe => "the target is a pipe: this measures its reader",
        }
    }

    /// An empty target, for the next run.
    pub(super) fn prepare(&mut self, cancel: &Cancel) -> Result<(), TapeBenchError> {
        if self.kind == PlainKind::File {
            self.empty()?;
            self.synchronise()?;
            self.to_start()?;
        }
        self.sink = Some(StreamSink::new(Arc::clone(&self.file), cancel.clone()));
        Ok(())
    }

    /// To the beginning of what was written, with nothing of it in memory.
    pub(super) fn rewind(&mut self) -> Result<(), TapeBenchError> {
        let status = rustix::fs::fstat(&self.file);
        let status = status.map_err(|error| failed("length of", &self.path, error))?;
        drop_cached(&self.file, 0, status.st_size as u64);
        self.to_start()
    }

    pub(super) fn look(&self) -> Before {
        match &self.device {
            Some(device) => Before::look(device),
            None => Before::look_at_this_machine(),
        }
    }

    pub(super) fn measures(&self, before: &Before, about: About, bytes: u64) -> Measures {
        match &self.device {
            Some(device) => before.measures(device, about, bytes),
            None => before.measures_of_this_machine(bytes),
        }
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        match &self.device {
            Some(device) => environment::of(&self.path, device),
            None => BTreeMap::from([("path".to_owned(), self.path.display().to_string())]),
        }
    }

    /// Removes what was made for the runs, or leaves an empty file.
    pub(super) fn put_back(&mut self) -> Result<(), TapeBenchError> {
        if self.kind != PlainKind::File {
            return Ok(());
        }
        self.empty()?;
        if !std::mem::take(&mut self.is_ours) {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(|source| {
            let path = self.path.clone();
            TapeBenchError::File { step: "remove", path, source }
        })
    }

    fn empty(&self) -> Result<(), TapeBenchError> {
        let emptied = base::interruptible::ftruncate(&self.file, 0);
        emptied.map_err(|error| failed("empty", &self.path, error))
    }

    fn synchronise(&self) -> Result<(), TapeBenchError> {
        let written = base::interruptible::fsync(&self.file);
        written.map_err(|error| failed("synchronise", &self.path, error))
    }

    fn to_start(&self) -> Result<(), TapeBenchError> {
        let sought = rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Start(0));
        sought.map(drop).map_err(|error| failed("wind back", &self.path, error))
    }
}

fn failed(step: &'static str, path: &Path, error: Errno) -> TapeBenchError {
    TapeBenchError::File { step, path: path.to_owned(), source: error.into() }
}

impl Drop for Plain {
    /// The way out through an error or a panic.
    fn drop(&mut self) {
        if self.is_ours {
            let _ = self.put_back();
        }
    }
}

impl Medium for Plain {
    fn write(&mut self, block: &Block, account: &mut Account) -> Result<Taken, TapeBenchError> {
        let sink = self.sink.as_mut().expect("a run begins with a sink");
        sink.write(block.clone(), account)?;
        Ok(Taken::Whole)
    }

    fn end_file(&mut self) -> Result<(), TapeBenchError> {
        match self.kind {
            PlainKind::File => self.synchronise(),
            PlainKind::Nothing | PlainKind::Pipe => Ok(()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TapeBenchError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::read(&self.file, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("read", &self.path, error)),
            }
        }
        Ok((filled > 0).then_some(filled))
    }
}
