//! A tape drive before it is opened: which drive a path leads to, and why it cannot be used.
//!
//! Runs hold a [`TapeDrive`], because a change of medium closes and reopens the tape (st reads the
//! new medium's limits and position when it is opened). The real drive is [`super::st::StDrive`];
//! crate `sim` has one inside the process.

use std::fmt;
use std::io;
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Tape;
use super::st::StDrive;

/// Major number of SCSI tapes, `Documentation/admin-guide/devices.txt`.
pub const TAPE_MAJOR: u32 = 9;

/// Purpose of opening a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read it: there must be a medium.
    Read,
    /// To read and write it: there must be a medium that can be written to.
    Write,
    /// To query its state: works without a medium and waits for nothing.
    Look,
}

/// A drive that can be opened by one opener at a time.
pub trait TapeDrive: Send + Sync {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Opens it. Waits up to two minutes for a medium that is being loaded.
    ///
    /// # Errors
    /// When there is no medium, another program has the drive, or the medium is write-protected.
    fn open(&self, access: Access) -> Result<Tape, OpenError>;
}

/// A process that has the drive open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub process: u32,
    /// Its name, `/proc/PID/comm`.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (process {})", self.name, self.process)
    }
}

/// Why a tape drive cannot be used or surveyed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The drive is empty.
    #[error("cannot open {device}: no medium in the drive")]
    NoMedium { device: String },
    /// A medium is there, or is being loaded, but the drive does not get ready.
    #[error("cannot open {device}: the drive is not ready after {waited_seconds} s")]
    NotReady {
        device: String,
        /// How long Takeup waited.
        waited_seconds: u64,
    },
    /// Another program has it open.
    #[error("cannot open {device}: in use{}", by(.holder.as_ref()))]
    Busy {
        device: String,
        /// The process that has it, if known.
        holder: Option<Holder>,
    },
    /// The medium cannot be written to.
    #[error("cannot write to {device}: the medium is write-protected")]
    WriteProtected { device: String },
    /// The driver never waits for the medium, so Takeup could never report success.
    #[error("cannot write to {device}: its driver does not wait for filemarks")]
    NeverWaits { device: String },
    /// The path does not lead to a tape drive.
    #[error("{device} is not a tape drive")]
    NotATape { device: String },
    /// The path leads to nothing.
    #[error("cannot open {device}: no such tape drive")]
    NoSuchDevice { device: String },
    #[error("cannot open {device}")]
    Other {
        device: String,
        /// The system's error.
        source: io::Error,
    },
    /// The node rewinds when it is closed, and has no non-rewinding sister.
    #[error("cannot survey {device}: closing it rewinds the tape")]
    Rewinds { device: String },
    /// The driver does not answer.
    #[error("cannot query the state of {device}")]
    NoStatus { device: String, source: io::Error },
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// The tape drive that `path` leads to, if any: a character device of the kernel's tape driver, or
/// a FUSE file that answers like one. A name that only tapes have counts too, so that Takeup
/// reports a missing drive instead of making a file of its name.
pub fn find(path: &Path) -> Option<StDrive> {
    let is_tape = match rustix::fs::stat(path) {
        Ok(status) => match FileType::from_raw_mode(status.st_mode) {
            FileType::CharacterDevice => rustix::fs::major(status.st_rdev) == TAPE_MAJOR,
            FileType::RegularFile => plays_a_tape(path),
            _ => false,
        },
        Err(Errno::NOENT) => base::drive_names::is_drive(path),
        Err(_) => false,
    };
    is_tape.then(|| StDrive::new(path))
}

/// Whether this FUSE file answers `MTIOCGET`. Other files are not opened, since opening some
/// devices has an effect on them.
fn plays_a_tape(path: &Path) -> bool {
    /// `FUSE_SUPER_MAGIC` of <linux/magic.h>.
    const FUSE: u64 = 0x6573_5546;
    let in_user_space = rustix::fs::statfs(path).is_ok_and(|status| status.f_type as u64 == FUSE);
    in_user_space && super::st::answers_status(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tape_is_not_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nst0");
        std::fs::write(&file, "no tape").unwrap();
        assert!(find(&file).is_none());
        assert!(find(directory.path()).is_none());
        assert!(find(Path::new("/dev/null")).is_none());
        assert!(find(&directory.path().join("nothing")).is_none());
    }

    #[test]
    fn a_drive_that_is_not_there_says_so() {
        let drive = find(Path::new("/dev/nst31")).expect("the name of a tape");
        match drive.open(Access::Look) {
            Err(OpenError::NoSuchDevice { device }) => assert_eq!(device, "/dev/nst31"),
            other => panic!("{:?}", other.err()),
        }
    }

    #[test]
    fn messages_name_the_holder() {
        let holder = Some(Holder { process: 7, name: "mt".to_owned() });
        let error = OpenError::Busy { device: "/dev/nst0".to_owned(), holder };
        assert_eq!(error.to_string(), "cannot open /dev/nst0: in use by mt (process 7)");
    }
}
