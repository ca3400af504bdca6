//! `takeup probe`: a tape drive, its settings and findings about it; for any other path, the layers
//! of storage below it.
//!
//! [`device::tape::survey`] queries a drive, [`findings`] has the rules, [`text`] and [`document`]
//! print the result. Layers come from [`storage::stack`], findings about them from
//! [`storage::findings`], and [`tree`] draws them.

mod document;
mod findings;
pub mod rules;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use device::tape::survey::{SurveyError, survey};
use device::tape::{self, OpenError};
use machine::Machine;
use rustix::fs::FileType;
use serde_json::json;
use storage::stack::{Stack, StackTarget};

use crate::failure::Failure;
use crate::outcome::to_standard_output;
use crate::quantity::Size;
use crate::standard_error::to_standard_error;
use crate::virtual_drive::VirtualDrive;

/// Show a tape drive or the storage below a path, its settings, and what is wrong
///
/// For a file, a folder or a block device: shows every layer from the file system down to the
/// hardware, with the settings in effect there and what sets them. Writes nothing, and does not
/// wake a disk in standby.
///
/// For a tape drive: moves no tape, and sends nothing to a drive in use. Reading the TapeAlert
/// flags clears them in the drive. Some answers need root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup probe /dev/nst0
  takeup probe --json /dev/nst0 | jq .recommended_block_bytes
  takeup probe /var/lib/postgresql
  takeup probe sda --json | jq '.layers[] | {name, settings}'")]
pub struct ProbeArgs {
    /// A tape drive, a file, a folder, or a block device by its node or its name
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Read size of your program, to compare with the read-ahead
    #[arg(long, value_name = "SIZE")]
    request: Option<Size>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &ProbeArgs) -> ExitCode {
    let failure = match probe(arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    if arguments.json {
        // If this fails, the message on standard error has the same content.
        let _ = to_standard_output(failure.to_json("probe").as_bytes());
    }
    to_standard_error(&failure.to_text());
    failure.exit_code()
}

fn probe(arguments: &ProbeArgs) -> Result<(), Failure> {
    let path = Path::new(&arguments.path);
    let Some(drive) = tape::find(path) else { return storage(arguments, path) };
    if arguments.request.is_some() {
        let message = format!("{} is a tape drive, which has no read-ahead", path.display());
        return Err(Failure::of(message, Some("leave out --request")));
    }
    let survey = survey(&drive).map_err(survey_failure)?;
    let played = VirtualDrive::of_tape(&survey.node);
    let findings = findings::findings(&survey, played.as_ref());
    let text = if arguments.json {
        format!("{:#}\n", document::document(&survey, played.as_ref(), &findings))
    } else {
        text::text(&survey, played.as_ref(), &findings)
    };
    to_standard_output(text.as_bytes())
}

/// The layers below a path that is not a tape drive.
fn storage(arguments: &ProbeArgs, path: &Path) -> Result<(), Failure> {
    let machine = Machine::this();
    let place = place(&machine, path)?;
    let stack = Stack::of(&machine, &place);
    let findings = storage::findings::findings(&stack, arguments.request.map(|size| size.0));
    let text = if arguments.json {
        let document = json!({
            "command": "probe",
            "path": path.to_string_lossy(),
            "layers": stack.layers,
            "read_ahead_acts_at": stack.read_ahead().map(|layer| &layer.name),
            "not_readable": stack.not_readable,
            "is_cut": stack.is_cut,
            "findings": findings,
        });
        format!("{document:#}\n")
    } else {
        tree::tree(&path.to_string_lossy(), &stack, &findings, tree::TreeLines::of_locale())
    };
    to_standard_output(text.as_bytes())
}

/// The target: a path, or a block device by its name.
fn place(machine: &Machine, path: &Path) -> Result<StackTarget, Failure> {
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
    if let Some(place) = StackTarget::of_name(machine, path) {
        return Ok(place);
    }
    let why = crate::failure::with_causes(&std::io::Error::from(error));
    let is_name = path.parent() == Some(Path::new("")) || path.starts_with("/dev");
    let hint = is_name.then_some("run `ls /sys/class/block` to list the block devices");
    Err(Failure::of(format!("cannot probe {shown}: {why}"), hint))
}

fn survey_failure(error: SurveyError) -> Failure {
    let hint = match &error {
        SurveyError::Rewinds { .. } => {
            Some("name the node that does not rewind, for example /dev/nst0")
        }
        SurveyError::Open(OpenError::NoSuchDevice { .. }) => Some(
            "run `ls /sys/class/scsi_tape` to list the drives, or `modprobe st` to load the \
                 driver",
        ),
        _ => None,
    };
    Failure::new(&error, hint.map(str::to_owned))
}
