//! What a tape drive is, how it is set, and what stands out; of any other path, the layers of
//! storage below it.
//!
//! What is known of a drive comes from [`device::tape::survey`], layers from [`storage::stack`];
//! [`findings`] and [`storage::findings`] say what of it matters.

mod answer;
pub mod findings;
pub mod rules;

use std::path::{Path, PathBuf};

use base::finding::Finding;
use device::tape::survey::{Survey, survey};
use device::tape::{self, OpenError};
use machine::Machine;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::stack::{Stack, StackTarget};

use crate::failure::{Failure, with_causes};
use crate::virtual_drive::VirtualDrive;

pub use answer::{DriveAnswer, LayersAnswer, ProbeAnswer};

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRequest {
    /// A tape drive, a file, a folder, or a block device by its node or its name.
    pub path: PathBuf,
    /// Bytes that a program reads at once there, to judge the read-ahead by.
    #[serde(default)]
    pub request_bytes: Option<u64>,
}

/// What was found.
#[derive(Debug)]
pub enum Probed {
    /// A tape drive.
    Drive(Box<ProbedDrive>),
    /// The layers below a path.
    Layers(ProbedLayers),
}

/// What was found of a tape drive.
#[derive(Debug)]
pub struct ProbedDrive {
    /// What the drive and the kernel answered.
    pub survey: Survey,
    /// What it was set to, where it is a virtual drive.
    pub played: Option<VirtualDrive>,
    /// What stands out.
    pub findings: Vec<Finding>,
}

/// What was found below a path.
#[derive(Debug)]
pub struct ProbedLayers {
    /// As it was asked for.
    pub path: PathBuf,
    /// The layers.
    pub stack: Stack,
    /// What stands out.
    pub findings: Vec<Finding>,
}

/// Looks at a drive or a path. Nothing is written, and no tape moves.
///
/// # Errors
/// When the path is neither a tape drive nor on a file system or block device, or cannot be read.
pub fn probe(request: &ProbeRequest) -> Result<Probed, Failure> {
    let path = &request.path;
    let Some(drive) = tape::find(path) else { return layers(request).map(Probed::Layers) };
    if request.request_bytes.is_some() {
        let message = format!("{} is a tape drive, which has no read-ahead", path.display());
        return Err(Failure::of(message, Some("leave out --request")));
    }
    let survey = survey(&drive).map_err(survey_failure)?;
    let played = VirtualDrive::of_tape(&survey.node);
    let findings = findings::findings(&survey, played.as_ref());
    Ok(Probed::Drive(Box::new(ProbedDrive { survey, played, findings })))
}

/// The layers below a path that is not a tape drive.
fn layers(request: &ProbeRequest) -> Result<ProbedLayers, Failure> {
    let machine = Machine::this();
    let stack = Stack::of(&machine, &target(&machine, &request.path)?);
    let findings = storage::findings::findings(&stack, request.request_bytes);
    Ok(ProbedLayers { path: request.path.clone(), stack, findings })
}

/// The target: a path, or a block device by its name.
fn target(machine: &Machine, path: &Path) -> Result<StackTarget, Failure> {
    let shown = path.display();
    let error = match rustix::fs::stat(path) {
        Ok(status) => {
            let kind = match FileType::from_raw_mode(status.st_mode) {
                FileType::CharacterDevice => "a character device",
                FileType::Fifo => "a pipe",
                FileType::Socket => "a socket",
                _ => return StackTarget::of(path).map_err(|error| Failure::new(&error, None)),
            };
            let message = format!("cannot probe {shown}: it is {kind}, not a tape drive");
            let hint = "name a tape drive (/dev/nst0, /dev/nst1), a file, a folder or a block \
                        device";
            return Err(Failure::of(message, Some(hint)));
        }
        Err(error) => error,
    };
    if let Some(target) = StackTarget::of_name(machine, path) {
        return Ok(target);
    }
    let why = with_causes(&std::io::Error::from(error));
    let is_name = path.parent() == Some(Path::new("")) || path.starts_with("/dev");
    let hint = is_name.then_some("run `ls /sys/class/block` to list the block devices");
    Err(Failure::of(format!("cannot probe {shown}: {why}"), hint))
}

fn survey_failure(error: OpenError) -> Failure {
    let hint = match &error {
        OpenError::Rewinds { .. } => {
            Some("name the node that does not rewind, for example /dev/nst0")
        }
        OpenError::NoSuchDevice { .. } => Some(
            "run `ls /sys/class/scsi_tape` to list the drives, or `modprobe st` to load the \
             driver",
        ),
        _ => None,
    };
    Failure::new(&error, hint.map(str::to_owned))
}
