//! `takeup probe`: what a tape drive is, how it is set, and what stands out; of any other path, the
//! layers of storage below it.
//!
//! What is known of a drive comes from [`device::tape::survey`]; [`findings`] says what of it
//! matters, [`text`] and [`document`] print it. Layers come from [`storage::stack`], what stands
//! out there from [`storage::findings`], and [`tree`] draws them.

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

/// Say what a tape drive or the storage below a path is, how it is set, and what stands out
///
/// Of a file, a folder or a block device: every layer from the file system down to the hardware,
/// with the settings that act there and who sets them. Nothing is written, and a disk that sleeps
/// is left to sleep.
///
/// Of a tape drive: moves no tape, and sends nothing to a drive that somebody uses. The drive
/// clears its TapeAlert flags when it tells them. Some answers need root.
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
    /// How much a program reads at once there, to hold the read-ahead against
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
        // The message on standard error tells the same, should this not be read.
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

/// The layers below anything else.
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

/// What is looked at: a path, or a block device by its name.
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
            let message = format!("cannot probe {shown}: it is {kind} and no tape drive");
            let hint = "tape drives are /dev/nst0, /dev/nst1 and so on; files, folders and block \
                        devices are shown with what they lie on";
            return Err(Failure::of(message, Some(hint)));
        }
        Err(error) => error,
    };
    if let Some(place) = StackTarget::of_name(machine, path) {
        return Ok(place);
    }
    let why = crate::failure::with_causes(&std::io::Error::from(error));
    let is_name = path.parent() == Some(Path::new("")) || path.starts_with("/dev");
    let hint = is_name.then_some("`ls /sys/class/block` shows the block devices");
    Err(Failure::of(format!("cannot probe {shown}: {why}"), hint))
}

fn survey_failure(error: SurveyError) -> Failure {
    let hint = match &error {
        SurveyError::Rewinds { .. } => {
            Some("name the node that does not rewind, for example /dev/nst0")
        }
        SurveyError::Open(OpenError::NoSuchDevice { .. }) => {
            Some("`ls /sys/class/scsi_tape` lists the drives; `modprobe st` loads their driver")
        }
        _ => None,
    };
    Failure::new(&error, hint.map(str::to_owned))
}
