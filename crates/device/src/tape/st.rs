//! The kernel's tape driver, `st`, behind [`RawTape`].
//!
//! A drive is first opened without waiting, checked, and then accepted or refused. An ordinary open
//! would wait two minutes for a medium and then return an error number without details. For a node
//! that rewinds when it is closed (`/dev/st0`), its non-rewinding sister is opened instead, if
//! there is one.
//!
//! Not here: the meaning of results, commands and answers, which [`super::Tape`] knows.

mod holders;
mod ioctl;
mod kernel_log;
mod sysfs;

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use storage::settings::fuse;

pub use sysfs::TapeFolder;

use super::drive::{Access, Holder, OpenError, TAPE_MAJOR, TapeDrive};
use super::limits::Way;
use super::played;
use super::raw::{MtOperation, QuestionError, RawStatus, RawTape, Statistics};
use super::sense::Sense;
use super::survey::options;
use super::{Tape, TapeStatus};
use kernel_log::KernelLog;

/// How long a medium may take to get ready. The driver itself waits as long (`ST_BLOCK_SECONDS`).
const READY_WAIT_SECONDS: u64 = 120;
/// How long a command that moves no tape may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// Caps of the block layer itself, `BLK_DEF_MAX_SECTORS` of past and present kernels. If one of
/// these is reported, the adapter's limit may be larger.
const SOFT_LIMITS: [u64; 2] = [1280 << 10, 4 << 20];
/// Minor numbers with this bit belong to nodes that do not rewind when they are closed.
const NO_REWIND: u32 = 0x80;

/// A drive of the tape driver, or a FUSE file that plays one.
#[derive(Clone, Debug)]
pub struct StDrive {
    name: String,
    path: PathBuf,
    folder: Option<TapeFolder>,
}

impl StDrive {
    /// The drive that `path` leads to; opens nothing.
    pub fn new(path: impl Into<PathBuf>) -> StDrive {
        let path = path.into();
        let name = path.display().to_string();
        let Some(minor) = tape_minor(&path) else {
            let path = played_sister(&path).unwrap_or(path);
            return StDrive { name, path, folder: None };
        };
        let sister = no_rewind_sister(&path, minor);
        let minor = if sister.is_some() { minor | NO_REWIND } else { minor };
        let folder = TapeFolder::of_device(TAPE_MAJOR, minor);
        StDrive { name, path: sister.unwrap_or(path), folder }
    }

    /// The kernel's folder of the drive; `None` for a FUSE file.
    pub fn folder(&self) -> Option<&TapeFolder> {
        self.folder.as_ref()
    }

    /// The node that is opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether closing the node rewinds the medium.
    pub fn rewinds(&self) -> bool {
        tape_minor(&self.path).is_some_and(|minor| minor & NO_REWIND == 0)
    }

    /// Another process that has the drive open, through the tape driver or bypassing it.
    pub fn holder(&self) -> Option<Holder> {
        let generic = self.folder.as_ref().and_then(TapeFolder::generic_device);
        let paths: Vec<PathBuf> =
            [Some(self.path.clone()), generic].into_iter().flatten().collect();
        holders::find(&paths)
    }

    /// Opens without waiting, and checks the state.
    fn try_open(&self, access: Access) -> Result<(StTape, TapeStatus), OpenError> {
        let mode = match access {
            Access::Write => OFlags::RDWR,
            Access::Read | Access::Look => OFlags::RDONLY,
        };
        let flags = mode | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = base::interruptible::open(&self.path, flags, Mode::empty())
            .map_err(|error| self.refusal(error))?;
        let raw = match ioctl::status(file.as_fd()) {
            Ok(raw) => raw,
            Err(error) if is_unknown_request(&error) => {
                return Err(OpenError::NotATape { device: self.name.clone() });
            }
            Err(source) => return Err(OpenError::Other { device: self.name.clone(), source }),
        };
        let tape = StTape {
            file,
            folder: self.folder.clone(),
            generic: None,
            log: self.folder.as_ref().and_then(KernelLog::open),
        };
        Ok((tape, raw.into()))
    }

    fn refusal(&self, error: Errno) -> OpenError {
        let device = self.name.clone();
        match error {
            Errno::BUSY => OpenError::Busy { device, holder: self.holder() },
            Errno::NOMEDIUM => OpenError::NoMedium { device },
            Errno::ROFS => OpenError::WriteProtected { device },
            Errno::NOENT | Errno::NXIO | Errno::NODEV => OpenError::NoSuchDevice { device },
            error => OpenError::Other { device, source: error.into() },
        }
    }
}

impl TapeDrive for StDrive {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, access: Access) -> Result<Tape, OpenError> {
        let device = || self.name.clone();
        let options = self.folder().and_then(TapeFolder::options).unwrap_or(0);
        if access == Access::Write && options & options::NO_WAIT_FILEMARKS != 0 {
            return Err(OpenError::NeverWaits { device: device() });
        }
        for _ in 0..READY_WAIT_SECONDS {
            let (tape, status) = self.try_open(access)?;
            if access != Access::Look && status.no_medium {
                return Err(OpenError::NoMedium { device: device() });
            }
            if access == Access::Look || status.online {
                // When opened without waiting, the driver does not refuse a protected medium.
                if access == Access::Write && status.write_protected {
                    return Err(OpenError::WriteProtected { device: device() });
                }
                return Ok(Tape::new(Box::new(tape), device()));
            }
            drop(tape);
            std::thread::sleep(Duration::from_secs(1));
        }
        Err(OpenError::NotReady { device: device(), waited_seconds: READY_WAIT_SECONDS })
    }
}

/// A tape of the tape driver, open.
#[derive(Debug)]
pub struct StTape {
    file: OwnedFd,
    folder: Option<TapeFolder>,
    /// Opened for the first command; `Err` if that failed.
    generic: Option<io::Result<OwnedFd>>,
    log: Option<KernelLog>,
}

impl StTape {
    /// The generic device of the drive.
    fn generic(&mut self) -> Option<BorrowedFd<'_>> {
        let folder = self.folder.as_ref();
        let generic = self.generic.get_or_insert_with(|| {
            let missing = || io::Error::from(Errno::NOENT);
            open_generic(&folder.and_then(TapeFolder::generic_device).ok_or_else(missing)?)
        });
        generic.as_ref().ok().map(AsFd::as_fd)
    }

    fn send(&mut self, command: &[u8], data: ioctl::Data<'_>) -> Result<usize, QuestionError> {
        if self.folder.is_none() {
            return self.send_to_played(command, data);
        }
        let own = self.file.try_clone().map_err(QuestionError::System)?;
        // The tape driver supports SG_IO as well, for root (`st_ioctl`).
        let file = self.generic().unwrap_or(own.as_fd());
        let mut sense = [0u8; 64];
        let result = ioctl::command(file, command, data, &mut sense, COMMAND_LIMIT)
            .map_err(QuestionError::System)?;
        if result.host_status != 0 {
            let (host, driver) = (result.host_status, result.driver_status);
            return Err(QuestionError::Transport { host, driver });
        }
        /// SAM-5, status codes.
        const GOOD: u8 = 0;
        if result.status != GOOD {
            let said = Sense::parse(&sense[..result.sense_bytes]).unwrap_or_default();
            // A recovered error has returned its data.
            if !said.is_recovered() {
                return Err(QuestionError::Refused(said));
            }
        }
        Ok(result.moved_bytes)
    }
}

impl StTape {
    /// Sends to a drive that is played in user space.
    fn send_to_played(
        &self,
        command: &[u8],
        data: ioctl::Data<'_>,
    ) -> Result<usize, QuestionError> {
        let asked = match &data {
            ioctl::Data::FromDrive(data) => played::Asked::For(data.len()),
            ioctl::Data::ToDrive(data) => played::Asked::With(data),
        };
        let Some(mut bytes) = played::encode_request(command, asked) else {
            return Err(QuestionError::System(Errno::INVAL.into()));
        };
        let answer: &mut [u8] = match data {
            ioctl::Data::FromDrive(data) => data,
            ioctl::Data::ToDrive(_) => &mut [],
        };
        match ioctl::ask_played(self.file.as_fd(), &mut bytes) {
            Ok(()) => played::decode_answer(&bytes, answer),
            Err(error) if is_unknown_request(&error) => Err(QuestionError::NoGenericDevice),
            Err(error) => Err(QuestionError::System(error)),
        }
    }
}

impl RawTape for StTape {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.mark();
        Ok(rustix::io::read(&self.file, buffer)?)
    }

    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.mark();
        Ok(rustix::io::write(&self.file, block)?)
    }

    fn operate(&mut self, operation: MtOperation, count: i32) -> io::Result<()> {
        self.mark();
        ioctl::operate(self.file.as_fd(), operation, count)
    }

    fn status(&mut self) -> io::Result<RawStatus> {
        ioctl::status(self.file.as_fd())
    }

    fn position(&mut self) -> io::Result<u64> {
        self.mark();
        ioctl::position(self.file.as_fd())
    }

    fn command(&mut self, command: &[u8], data: &mut [u8]) -> Result<usize, QuestionError> {
        self.send(command, ioctl::Data::FromDrive(data))
    }

    fn command_with(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError> {
        self.send(command, ioctl::Data::ToDrive(data)).map(|_| ())
    }

    fn statistics(&mut self) -> Option<Statistics> {
        self.folder.as_ref()?.statistics()
    }

    fn last_sense(&mut self) -> Option<Sense> {
        self.log.as_mut()?.sense_since_mark()
    }

    fn transfer_bytes_max(&mut self) -> Option<u64> {
        if self.folder.is_none() {
            return Some(fuse::request_bytes_max());
        }
        self.soft_limit().filter(|bytes| !SOFT_LIMITS.contains(bytes))
    }

    fn way(&mut self) -> Way {
        if self.folder.is_none() { Way::Fuse } else { Way::HostAdapter }
    }

    fn transfer_bytes_sure(&mut self) -> Option<u64> {
        self.soft_limit()
    }

    fn pieces_max(&mut self) -> Option<u64> {
        let generic = self.generic()?;
        ioctl::pieces_max(generic).ok().filter(|pieces| *pieces > 0)
    }
}

impl StTape {
    /// The block layer's limit for ordinary requests to the drive, through its generic device. If
    /// it is one of the block layer's own caps, the tape driver's requests may be larger.
    fn soft_limit(&mut self) -> Option<u64> {
        let generic = self.generic()?;
        ioctl::transfer_bytes_max(generic).ok().filter(|bytes| *bytes > 0)
    }

    /// From here on, the kernel's log lines belong to the next call.
    fn mark(&mut self) {
        if let Some(log) = &mut self.log {
            log.mark();
        }
    }
}

/// Whether `path` answers `MTIOCGET`, or is in use as only a device can be.
pub(super) fn answers_status(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match base::interruptible::open(path, flags, Mode::empty()) {
        Ok(file) => ioctl::status(file.as_fd()).is_ok(),
        Err(error) => error == Errno::BUSY,
    }
}

fn is_unknown_request(error: &io::Error) -> bool {
    let unknown = [Errno::NOTTY, Errno::INVAL, Errno::NOSYS];
    Errno::from_io_error(error).is_some_and(|errno| unknown.contains(&errno))
}

fn tape_minor(path: &Path) -> Option<u32> {
    let status = rustix::fs::stat(path).ok()?;
    let is_tape = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice
        && rustix::fs::major(status.st_rdev) == TAPE_MAJOR;
    is_tape.then(|| rustix::fs::minor(status.st_rdev))
}

/// The non-rewinding node of the same drive and mode, if `path` rewinds.
fn no_rewind_sister(path: &Path, minor: u32) -> Option<PathBuf> {
    if minor & NO_REWIND != 0 {
        return None;
    }
    let wanted = minor | NO_REWIND;
    let folder = TapeFolder::of_device(TAPE_MAJOR, wanted)?;
    let real = fs::canonicalize(path).ok()?;
    let sister = real.with_file_name(folder.node()?);
    (tape_minor(&sister) == Some(wanted)).then_some(sister)
}

/// Like `no_rewind_sister`, for a FUSE file that plays a tape: `nst0` beside `st0`.
fn played_sister(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("st")?;
    let numbered = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let sister = path.with_file_name(format!("n{name}"));
    (numbered && sister.exists()).then_some(sister)
}

fn open_generic(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |mode| base::interruptible::open(path, mode | flags, Mode::empty());
    Ok(open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY))?)
}
