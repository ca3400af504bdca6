//! `takeup probe`: what a tape drive is, how it is set, and what stands out.
//!
//! What is known comes from [`device::tape::survey`]; [`findings`] says what of it matters,
//! [`text`] and [`document`] print it.

mod document;
mod findings;
pub mod rules;
#[cfg(test)]
mod tests;
mod text;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use device::tape::survey::{SurveyError, survey};
use device::tape::{self, OpenError};
use rustix::fs::FileType;

use crate::failure::{FAILED, Failure};
use crate::outcome::to_standard_output;
use crate::terminal::to_standard_error;
use crate::virtual_drive::VirtualDrive;

/// Say what a tape drive is, how it is set, and what stands out
///
/// Moves no tape, and sends nothing to a drive that somebody uses. The drive clears its TapeAlert
/// flags when it tells them. Some answers need root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup probe /dev/nst0
  takeup probe --json /dev/nst0 | jq .recommended_block_bytes")]
pub struct ProbeArgs {
    /// The drive
    #[arg(value_name = "PATH")]
    path: OsString,
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
    ExitCode::from(FAILED)
}

fn probe(arguments: &ProbeArgs) -> Result<(), Failure> {
    let path = Path::new(&arguments.path);
    let drive = tape::find(path).ok_or_else(|| no_tape(path))?;
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

fn no_tape(path: &Path) -> Failure {
    let shown = path.display();
    let status = match rustix::fs::stat(path) {
        Ok(status) => status,
        Err(error) => {
            let why = crate::failure::with_causes(&std::io::Error::from(error));
            return Failure::of(format!("cannot probe {shown}: {why}"), None);
        }
    };
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "nothing that could be probed",
    };
    let message =
        format!("cannot probe {shown}: it is {kind}, and only tape drives are probed yet");
    Failure::of(message, Some("tape drives are /dev/nst0, /dev/nst1 and so on"))
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
