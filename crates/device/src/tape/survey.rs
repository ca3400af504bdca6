//! Everything that can be found out about a tape drive without moving its tape.
//!
//! A drive in use by another program is not queried: a command between two writes would make it
//! stop. Then only the kernel's data are reported. Otherwise the tape is opened, which makes the
//! driver process resets and new media, and each query is sent once.

use std::fs;

use super::drive::{Access, Holder, OpenError, TapeDrive};
use super::limits::DriveLimits;
use super::raw::{QuestionError, Statistics};
use super::scsi::alert::Alert;
use super::scsi::inquiry::Inquiry;
use super::scsi::log::{SequentialAccess, VolumeStatistics};
use super::scsi::mode::{Compression, ModeHeader};
use super::scsi::position::Position;
use super::st::{StDrive, TapeFolder};
use super::{Tape, TapeStatus};
use model::tape::generation::Generation;

/// Driver options, `MT_ST_*` of `linux/mtio.h`.
pub mod options {
    /// The driver writes two filemarks when a program closes the tape after writing.
    pub const TWO_FILEMARKS: u32 = 0x10;
    /// `MTEOM` is fast, but loses the number of the file.
    pub const FAST_END_OF_DATA: u32 = 0x20;
    /// Rewind and the like do not wait.
    pub const NO_WAIT: u32 = 0x2000;
    /// Filemarks do not wait, even the synchronising ones.
    pub const NO_WAIT_FILEMARKS: u32 = 0x8000;
    /// Bits and names, as `mt stsetoptions` calls them.
    pub const NAMES: [(u32, &str); 16] = [
        (0x1, "buffer-writes"),
        (0x2, "async-writes"),
        (0x4, "read-ahead"),
        (0x8, "debug"),
        (TWO_FILEMARKS, "two-fms"),
        (FAST_END_OF_DATA, "fast-eod"),
        (0x40, "auto-lock"),
        (0x80, "def-writes"),
        (0x100, "can-bsr"),
        (0x200, "no-blklimits"),
        (0x400, "can-partitions"),
        (0x800, "scsi2logical"),
        (0x1000, "sysv"),
        (NO_WAIT, "no-wait"),
        (0x4000, "sili"),
        (NO_WAIT_FILEMARKS, "no-wait-eof"),
    ];
}

/// The state of the drive, or why it was not queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A medium is there and ready.
    Ready,
    /// The drive is empty.
    Empty,
    /// The medium is not ready, or is being loaded.
    NotReady,
    /// Another program uses it.
    Busy(Option<Holder>),
}

/// What the kernel knows of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelView {
    /// Vendor, product and firmware, as the drive reported them when it was found.
    pub names: Option<Inquiry>,
    /// Host, channel, target and unit.
    pub address: Option<String>,
    /// Driver of the host adapter.
    pub host_driver: Option<String>,
    /// Generic device of the drive.
    pub generic_device: Option<String>,
    /// The tape driver's options, see [`options`].
    pub options: Option<u32>,
    /// Whether the driver passes blocks straight from the program's memory (`try_direct_io`).
    pub direct_io: Option<bool>,
    /// The counters.
    pub statistics: Option<Statistics>,
}

/// The answers of the drive.
#[derive(Clone, Debug)]
pub struct Answers {
    /// What the driver knows of medium and position.
    pub status: TapeStatus,
    /// Names of the drive.
    pub names: Option<Inquiry>,
    pub serial_number: Option<String>,
    /// Medium type and buffering.
    pub mode: Option<ModeHeader>,
    /// Whether it compresses.
    pub compression: Option<Compression>,
    /// TapeAlert flags; `None` if the drive has no such page.
    pub alerts: Option<Vec<Alert>>,
    /// Counters since the medium was loaded.
    pub sequential: Option<SequentialAccess>,
    /// The life of the medium.
    pub volume: Option<VolumeStatistics>,
    /// Position of the tape.
    pub position: Option<Position>,
    /// The same number, from the driver.
    pub object: Option<u64>,
    /// Block sizes.
    pub limits: DriveLimits,
    /// Failed queries and why, apart from queries that the drive does not support.
    pub unanswered: Vec<(&'static str, String)>,
}

/// A drive, looked at.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Name as given.
    pub device: String,
    /// The node that was opened; another than `device` if that rewinds when it is closed.
    pub node: String,
    /// Its state.
    pub readiness: Readiness,
    /// The kernel's data.
    pub kernel: KernelView,
    /// The drive's answers; `None` if it was not queried.
    pub answers: Option<Answers>,
}

impl Survey {
    /// Generation of the medium, with the speeds of a drive of this maker.
    pub fn medium_generation(&self) -> Option<&'static Generation> {
        let medium = Generation::of_density(self.answers.as_ref()?.status.density)?;
        Some(self.names().map_or(medium, |names| medium.in_drive(&names.product)))
    }

    /// Generation of the drive.
    pub fn drive_generation(&self) -> Option<&'static Generation> {
        Generation::of_product(&self.names()?.product)
    }

    /// Names of the drive, from the drive itself or the kernel.
    pub fn names(&self) -> Option<&Inquiry> {
        let told = self.answers.as_ref().and_then(|answers| answers.names.as_ref());
        told.or(self.kernel.names.as_ref())
    }
}

/// Surveys a drive. Moves no tape, and sends nothing to a drive that another program uses.
///
/// # Errors
/// When it is not a tape drive, or cannot be opened for another reason than being in use.
pub fn survey(drive: &StDrive) -> Result<Survey, OpenError> {
    let device = drive.name().to_owned();
    if drive.rewinds() {
        return Err(OpenError::Rewinds { device });
    }
    let folder = drive.folder();
    let mut survey = Survey {
        device,
        node: drive.path().display().to_string(),
        readiness: Readiness::Busy(None),
        kernel: folder.map(kernel_view).unwrap_or_default(),
        answers: None,
    };
    let holder = drive.holder();
    let in_flight = folder.and_then(TapeFolder::in_flight).unwrap_or(0);
    if holder.is_some() || in_flight > 0 {
        survey.readiness = Readiness::Busy(holder);
        return Ok(survey);
    }
    // If a query met a notice of the drive, the driver missed it: open the tape once more.
    for _ in 0..2 {
        let mut tape = match drive.open(Access::Look) {
            Err(OpenError::Busy { holder, .. }) => {
                survey.readiness = Readiness::Busy(holder);
                return Ok(survey);
            }
            tape => tape?,
        };
        let (answers, attention) = ask(&mut tape)?;
        survey.readiness = match (answers.status.no_medium, answers.status.online) {
            (true, _) => Readiness::Empty,
            (false, true) => Readiness::Ready,
            (false, false) => Readiness::NotReady,
        };
        survey.answers = Some(answers);
        if !attention {
            break;
        }
    }
    Ok(survey)
}

fn kernel_view(folder: &TapeFolder) -> KernelView {
    let name = |file| folder.device_text(file);
    let names = name("vendor").zip(name("model")).map(|(vendor, product)| Inquiry {
        device_type: 1,
        vendor,
        product,
        revision: name("rev").unwrap_or_default(),
    });
    // An attribute of the driver since Linux 2.6.37; a parameter of the module before.
    let setting = fs::read_to_string("/sys/bus/scsi/drivers/st/try_direct_io");
    KernelView {
        names,
        address: folder.address(),
        host_driver: folder.host_driver(),
        generic_device: folder.generic_device().map(|path| path.display().to_string()),
        options: folder.options(),
        direct_io: setting.ok().map(|text| text.trim() == "1"),
        statistics: folder.statistics(),
    }
}

/// Sends all queries. The flag is true if the drive gave a notice instead of an answer.
fn ask(tape: &mut Tape) -> Result<(Answers, bool), OpenError> {
    let status = tape
        .status()
        .map_err(|error| OpenError::NoStatus { device: error.device, source: error.source })?;
    let mut questions = Questions::default();
    let has_medium = status.online;
    let answers = Answers {
        names: questions.note("names", tape.inquiry()),
        serial_number: questions.note("serial number", tape.serial_number()),
        mode: questions.note("mode", tape.mode_header()),
        compression: questions.note("compression", tape.drive_compression()),
        sequential: questions.note("counters", tape.sequential_access()),
        volume: has_medium
            .then(|| questions.note("volume statistics", tape.volume_statistics()))
            .flatten(),
        position: has_medium.then(|| tape.long_position().ok()).flatten(),
        object: has_medium.then(|| tape.position().ok()).flatten(),
        limits: tape.limits(),
        // Last, to include flags that an earlier query has set.
        alerts: questions.note("TapeAlert", tape.alerts()),
        unanswered: Vec::new(),
        status,
    };
    let Questions { unanswered, attention } = questions;
    Ok((Answers { unanswered, ..answers }, attention))
}

#[derive(Default)]
struct Questions {
    unanswered: Vec<(&'static str, String)>,
    attention: bool,
}

impl Questions {
    fn note<A>(&mut self, what: &'static str, answer: Result<A, QuestionError>) -> Option<A> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        self.attention |= error.is_attention();
        if !error.is_unknown() {
            let source = std::error::Error::source(&error);
            let cause = source.map(|cause| format!(": {cause}")).unwrap_or_default();
            self.unanswered.push((what, format!("{error}{cause}")));
        }
        None
    }
}
