//! Errors as the user sees them: one line `takeup: what: which object: why`, and a hint where the
//! user can do something.
//!
//! Libraries report what went wrong. Hints name options, which only the command line knows: they
//! are here, one table per kind of error.

mod wording;

use std::error::Error;
use std::io;

use archive::label::LabelError;
use base::escape::escape;
use base::interruptible::Shortage;
use capture::record::CaptureRecordError;
use device::source::SourceError;
use device::tape::OpenError;
use device::target::TargetError;
use experiment::record::RecordError;
use flow::crew::StageFailure;
use loads::tape::TapeBenchError;
use model::ModelError;
use runs::backup::{BackupError, Unfinished};
use runs::list::ListError;
use runs::pipe::PipeError;
use runs::read::ReadFailure;
use runs::restore::RestoreError;
use runs::run_record::RunRecordError;
use runs::selection::NotFound;
use runs::verify::VerifyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::tape::MediumFileError;
use tapeset::{ChangeError, Refused, TapeReadFailure, TapeSetError};

use wording::system_text;
pub use wording::without_error_numbers;

/// What kind of failure it is: an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The command did not do its job.
    Failed,
    /// A later version of this program wrote the data.
    LaterVersion,
}

/// A failure as an answer: what `--json` prints in the place of a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureAnswer {
    /// The command that failed.
    pub command: String,
    /// What failed, on which object, and why.
    pub error: String,
    pub hint: Option<String>,
    /// A line for each thing that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// Why a command did not do its job.
#[derive(Debug)]
pub struct Failure {
    message: String,
    /// One line for each thing that is wrong.
    details: Vec<String>,
    hint: Option<String>,
    kind: FailureKind,
}

impl Failure {
    /// A failure from an error and all its causes.
    pub fn new(error: &(dyn Error + 'static), hint: Option<String>) -> Failure {
        let is_later = is_of_later_version(error);
        let hint = hint.filter(|_| !is_later).or_else(|| cause_hint(error));
        let kind = if is_later { FailureKind::LaterVersion } else { FailureKind::Failed };
        Failure { message: with_causes(error), details: Vec::new(), hint, kind }
    }

    /// A failure from a message alone, without an error value.
    pub fn of(message: impl Into<String>, hint: Option<&str>) -> Failure {
        let hint = hint.map(str::to_owned);
        Failure { message: message.into(), details: Vec::new(), hint, kind: FailureKind::Failed }
    }

    /// Adds a line for each thing that is wrong.
    pub fn with_details(self, details: Vec<String>) -> Failure {
        Failure { details, ..self }
    }

    /// Adds what follows from it to the message.
    pub fn followed_by(self, what: &str) -> Failure {
        Failure { message: format!("{}: {what}", self.message), ..self }
    }

    /// The exit code of this failure.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The message, one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The lines for standard error.
    pub fn to_text(&self) -> String {
        let mut text = format!("takeup: {}\n", escape(self.message.as_bytes()));
        for detail in &self.details {
            text.push_str(&format!("  {}\n", escape(detail.as_bytes())));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {}\n", escape(hint.as_bytes())));
        }
        text
    }

    /// As an answer of this command.
    pub fn answer(&self, command: &str) -> FailureAnswer {
        FailureAnswer {
            command: command.to_owned(),
            error: self.message.clone(),
            hint: self.hint.clone(),
            details: self.details.clone(),
        }
    }

    /// The document that `--json` prints instead of a summary.
    ///
    /// # Panics
    /// Never: it is made of texts.
    pub fn to_json(&self, command: &str) -> String {
        let document = serde_json::to_value(self.answer(command));
        format!("{:#}\n", document.expect("texts can be written as JSON"))
    }

    /// The same as the last line of a stream of documents.
    ///
    /// # Panics
    /// Never: it is made of texts.
    pub fn to_json_line(&self, command: &str) -> String {
        let document = serde_json::to_value(self.answer(command));
        format!("{}\n", document.expect("texts can be written as JSON"))
    }
}

impl From<PipeError> for Failure {
    fn from(error: PipeError) -> Failure {
        let hint = match &error {
            PipeError::Source(source) => source_hint(source),
            PipeError::Target(target) => target_hint(target),
            PipeError::SetUp { what: "io_uring", .. } => Some(NO_URING.to_owned()),
            PipeError::Closed { .. } => Some(READER_GONE.to_owned()),
            PipeError::Tape(error) => tape_set_hint(error),
            PipeError::Stage(failure) => stage_hint(failure),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let hint = match &error {
            BackupError::Target(target) => target_hint(target),
            BackupError::TargetIsSource { .. } => {
                Some("write the archive outside of the folders that are backed up".to_owned())
            }
            BackupError::FarLess { target, .. } => Some(format!(
                "check that every source is mounted; {target} is unchanged and the new archive was \
                 deleted; add --force to replace it anyway"
            )),
            BackupError::RingTooSmall { block_bytes, .. } => {
                let least = base::format::size(8 * *block_bytes as u64);
                Some(format!("set --ring to at least {least}, or use a smaller --block-size"))
            }
            BackupError::Engine(_) => Some(NO_URING.to_owned()),
            BackupError::Shortage(shortage) => shortage_hint(*shortage),
            BackupError::Tape(error) => tape_set_hint(error),
            BackupError::Stage(failure) => stage_hint(failure),
            BackupError::Unfinished(unfinished) => {
                return Failure::from_unfinished(unfinished);
            }
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl Failure {
    /// A set on tape that was not completed: the hint says what of it can be restored.
    fn from_unfinished(unfinished: &Unfinished) -> Failure {
        let safe = &unfinished.safe;
        let restored = match (safe.volumes, safe.segments) {
            (0, _) => "",
            (_, 0) => ": the next backup starts after it",
            _ => ": `takeup restore` restores their files, and the next backup starts after them",
        };
        let mut hint = format!("{safe}{restored}");
        if let BackupError::Tape(error) = &unfinished.error
            && let Some(more) = tape_set_hint(error)
        {
            hint = format!("{more}; {hint}");
        }
        Failure::new(unfinished, Some(hint))
    }
}

/// Hints for errors of writing a set to tape.
fn tape_set_hint(error: &TapeSetError) -> Option<String> {
    let text = match error {
        TapeSetError::Open(error) => return open_hint(error),
        TapeSetError::Refused { refused: Refused::Foreign, .. } => {
            "add --overwrite to write over the medium from its beginning"
        }
        TapeSetError::Refused { refused: Refused::TestArea, .. } => {
            "add --overwrite to write over the medium: it holds only test data"
        }
        TapeSetError::Refused { refused: Refused::OtherName { .. }, .. } => {
            "put in the medium with that name, or leave --volume-name out to write to this one"
        }
        TapeSetError::Refused { refused: Refused::NoMedium, .. } => "put a medium into the drive",
        TapeSetError::Refused { refused: Refused::DataFollow, .. } => {
            "run `mt eom` to move behind the data, or add --overwrite to write over them"
        }
        TapeSetError::NoVolume { used: 0, last: Refused::Foreign | Refused::TestArea, .. } => {
            "put a medium of Takeup into the drive, or a blank one; --overwrite writes over the \
             one that is in the drive when a backup begins"
        }
        TapeSetError::NoVolume {
            last: Refused::Foreign | Refused::TestArea | Refused::Full,
            ..
        } => "add --overwrite-volumes to write over the data on later volumes",
        TapeSetError::Tape(error) if error.said.is_some_and(|said| said.is_unreadable()) => {
            "add --overwrite to write over the medium from its beginning; what it holds is unknown"
        }
        TapeSetError::Refused { refused: Refused::WriteProtected, .. } => {
            "move the write-protect switch of the cartridge; `takeup list` can read it as it is"
        }
        TapeSetError::BlockSize { .. } => "set another size with --block-size; nothing was written",
        TapeSetError::Change { source: ChangeError::NobodyToAsk, .. } => {
            "run takeup on a terminal, or add --change-command COMMAND to change volumes"
        }
        TapeSetError::EndOfMedium { .. } => {
            "use `takeup backup` to continue on another medium; a filemark closes the data on this \
             one"
        }
        TapeSetError::Nothing { .. } => {
            "check the command before the pipe; `mt weof` writes only a filemark"
        }
        TapeSetError::Compression(_) => "leave --drive-compression out",
        _ => return None,
    };
    Some(text.to_owned())
}

fn open_hint(error: &OpenError) -> Option<String> {
    let text = match error {
        OpenError::NoMedium { .. } => "put a medium into the drive",
        OpenError::Busy { .. } => "wait until the other program is done",
        OpenError::NoSuchDevice { .. } => {
            "`ls /dev/nst*` shows the tape drives of this machine; `takeup sim tape FOLDER --drive \
             lto6` plays one at FOLDER/nst0"
        }
        OpenError::NotATape { .. } => "name the node of a tape drive, such as /dev/nst0",
        OpenError::NeverWaits { device } => {
            return Some(format!("run `mt -f {device} stclearoptions 0x8000` to make it wait"));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

impl From<TapeBenchError> for Failure {
    fn from(error: TapeBenchError) -> Failure {
        let hint = match &error {
            TapeBenchError::Open(error) => open_hint(error),
            TapeBenchError::Target(error) => target_hint(error),
            TapeBenchError::HoldsData { .. } => Some(
                "add --overwrite to destroy its data, or on a tape --append to write after them"
                    .into(),
            ),
            TapeBenchError::OtherMedium { .. } => {
                Some("add --overwrite to give the medium the name in --medium-label".into())
            }
            TapeBenchError::BlockSize { .. } => {
                Some("run `takeup probe` to see which block sizes work".into())
            }
            TapeBenchError::LongerThanMedium { capacity_bytes, .. } => {
                // The label takes room at the start, and the early warning comes before the end.
                let fitting = (capacity_bytes / 100 * 97) >> 20;
                Some(format!("use shorter runs: --length {fitting}M fits"))
            }
            TapeBenchError::Full { .. } => Some("use shorter runs with --length".into()),
            TapeBenchError::NoMedium { .. } | TapeBenchError::NobodyChanges => Some(
                "run takeup on a terminal, or add --change-command COMMAND to change media".into(),
            ),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        Failure::new(&error, None)
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Failure {
        let hint = match &error {
            ListError::Read(failure) => read_hint(failure),
            ListError::Stage(failure) => stage_hint(failure),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Failure {
        let hint = match &error {
            RestoreError::Read(failure) => read_hint(failure),
            RestoreError::Stage(failure) => stage_hint(failure),
            RestoreError::Shortage(shortage) => shortage_hint(*shortage),
            RestoreError::NothingFound { paths } => Some(nothing_found_hint(paths)),
            RestoreError::NothingLeft { .. } => {
                Some("use a smaller --strip-components; `takeup list` shows the paths".to_owned())
            }
            RestoreError::Target(tree::RestoreError::Synchronise { .. }) => Some(
                "restore again once the cause is fixed: the files may not be on the disk"
                    .to_owned(),
            ),
            error if root_kind(error) == Some(io::ErrorKind::StorageFull) => Some(
                "free some space, then run it again with --overwrite=keep-newer: what was \
                 restored so far stays"
                    .to_owned(),
            ),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Failure {
        let hint = match &error {
            VerifyError::Read(failure) => read_hint(failure),
            VerifyError::Stage(failure) => stage_hint(failure),
            VerifyError::Shortage(shortage) => shortage_hint(*shortage),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

/// A similar path of the archive, for when it has none of the requested paths.
pub fn nothing_found_hint(paths: &[NotFound]) -> String {
    let near = paths.iter().find_map(|missing| Some((&missing.path, missing.near.as_ref()?)));
    match near {
        Some((path, near)) => near_hint(path, near),
        None => "run `takeup list` to see the paths in the archive".to_owned(),
    }
}

/// Proposes a path that the archive has for one that it does not have.
pub fn near_hint(path: &[u8], near: &[u8]) -> String {
    format!("try {}: the archive does not have {}", escape(near), escape(path))
}

/// Hints for stages that break down.
fn stage_hint(failure: &StageFailure) -> Option<String> {
    match failure {
        StageFailure::Panicked { .. } => {
            Some("report this bug with the lines above and the command that you ran".to_owned())
        }
        StageFailure::NotStarted { .. } => None,
    }
}

/// Hint for a process without free descriptors. Takeup has raised the soft limit already.
fn shortage_hint(shortage: Shortage) -> Option<String> {
    shortage
        .is_of_descriptors()
        .then(|| "raise the hard limit of open files (`ulimit -H -n` shows it)".to_owned())
}

const NO_URING: &str = "add --engine pread to run without io_uring";
const READER_GONE: &str =
    "look at the messages of the program that reads the pipe: it ended before takeup";

/// Hints for errors of reading an archive.
pub fn read_hint(failure: &ReadFailure) -> Option<String> {
    match failure {
        ReadFailure::Open(source) => source_hint(source),
        ReadFailure::NotAnArchive { .. } => {
            Some("run `file NAME` to see what it is; decrypt encrypted archives first".into())
        }
        ReadFailure::CutOff { .. } => Some(
            "copy the archive again, and compare its size with the original: the copy or the \
             backup was interrupted"
                .to_owned(),
        ),
        ReadFailure::Unreadable { .. } => Some("use another copy of the archive".to_owned()),
        ReadFailure::OtherCompression { format, .. } => Some(format!(
            "decompress it in a pipe: `{} < NAME | takeup list -`, or restore or verify",
            format.command
        )),
        ReadFailure::OnlyZeros { .. } => Some(
            "check whether the archive was written: lost writes and preallocated files hold zeros"
                .to_owned(),
        ),
        ReadFailure::NoIndex { .. } => {
            Some("omit --require-index to read it as an archive without an index".to_owned())
        }
        ReadFailure::Window { window_bytes, .. } => Some(format!(
            "decompress it with `zstd -dc --long={} FILE` and pipe the output to takeup, which \
             reads it with - in place of the file",
            window_bytes.next_power_of_two().ilog2()
        )),
        ReadFailure::SetUp { .. } => Some(NO_URING.to_owned()),
        ReadFailure::Tape(TapeReadFailure::Open(error)) => open_hint(error),
        ReadFailure::Tape(failure) => tape_hint(failure).map(str::to_owned),
        _ => None,
    }
}

/// Hints for errors of reading a tape.
fn tape_hint(failure: &TapeReadFailure) -> Option<&'static str> {
    Some(match failure {
        TapeReadFailure::Blank { .. } => {
            "check that it is the right medium; `takeup probe` shows more"
        }
        TapeReadFailure::AtEndOfData { .. } => {
            "add --file 0 to read the first file of the tape, or run `mt rewind` first"
        }
        TapeReadFailure::NoSets { .. } => {
            "omit --set and --sets to read a tape of another program, file by file"
        }
        TapeReadFailure::NoSuchSet { .. } | TapeReadFailure::AmbiguousSet { .. } => {
            "run `takeup list DEVICE --sets` to see the sets"
        }
        TapeReadFailure::PlaceLost { .. } | TapeReadFailure::Broken { .. } => {
            "clean the drive and try again; what was read before the error is restored"
        }
        TapeReadFailure::Exchanged { .. } => "put the first medium back and start again",
        TapeReadFailure::VolumeMissing { .. } => {
            "run takeup on a terminal, or add --change-command COMMAND to change volumes; \
             --without-volume N restores what the other volumes hold"
        }
        _ => return None,
    })
}

fn source_hint(error: &SourceError) -> Option<String> {
    match error {
        SourceError::Terminal => Some("name a file, or redirect one with < or |".to_owned()),
        SourceError::NotReadable { what: "a directory", .. } => {
            Some("use `takeup backup` to archive a directory".to_owned())
        }
        _ => None,
    }
}

fn target_hint(error: &TargetError) -> Option<String> {
    let text = match error {
        TargetError::Exists { .. } => {
            "--overwrite replaces it, but only when the new file is complete"
        }
        TargetError::HoldsData { .. } => "add --overwrite to write over it from its start",
        TargetError::Busy { .. } => "wait for that run to end, or choose another name",
        TargetError::NoStorage { .. } => "use `--to - > DEVICE` to write there anyway",
        TargetError::NoDevice { .. } => {
            "run `lsblk` to see the disks, `ls /dev/nst*` to see the tape drives"
        }
        TargetError::NoNewFile { .. } => {
            "use `--to - 1<> FILE` to write over the file in place; its content is lost with the \
             first block"
        }
        TargetError::Terminal => "name a file with --to, or redirect the output with | or >",
        TargetError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "create the folder first"
        }
        TargetError::Open { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
            "unmount it, or remove it from its array, first"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Hints that depend only on the cause, not on the operation that failed.
fn cause_hint(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(RecordError::Line { line: 1, .. }) = error.downcast_ref() {
        return Some(NO_RECORD.to_owned());
    }
    if is_of_later_version(error) {
        return Some("use the version of takeup that wrote it, or a later one".to_owned());
    }
    let text = match root_kind(error)? {
        io::ErrorKind::StorageFull => "free some space, or compress more; nothing was kept",
        io::ErrorKind::PermissionDenied => "run as a user with the permission, for example root",
        io::ErrorKind::BrokenPipe => READER_GONE,
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether the error is that a later version of Takeup wrote the data.
fn is_of_later_version(error: &(dyn Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        let is_later = matches!(error.downcast_ref(), Some(LabelError::Later { .. }))
            || matches!(error.downcast_ref(), Some(Refused::LaterVersion { .. }))
            || matches!(error.downcast_ref(), Some(catalogue::CatalogueError::Later { .. }))
            || matches!(
                error.downcast_ref(),
                Some(many::set::SetError::Journal(many::journal::JournalError::Later { .. }))
            );
        if is_later {
            return true;
        }
        let format = match (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()) {
            (Some(RecordError::Format { format, .. }), ..) => Some(*format),
            (_, Some(CaptureRecordError::Format { format, .. }), _) => Some(*format),
            (_, _, Some(RunRecordError::Format { format, .. })) => Some(*format),
            _ => None,
        };
        let format = format.or_else(|| match (error.downcast_ref(), error.downcast_ref()) {
            (Some(watch::record::WatchRecordError::Format { format, .. }), _) => Some(*format),
            (_, Some(MediumFileError::Version { version, .. })) => Some(*version),
            _ => None,
        });
        // Formats count from 1: 0 is damage, not a later version.
        if format.is_some_and(|format| format > 1) {
            return true;
        }
        at = error.source();
    }
    false
}

fn root_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        at = error.source();
    }
    None
}

/// For files whose first line is invalid: later lines can be damaged in a real record.
const NO_RECORD: &str = "name a file of runs, as `takeup bench ... -o FILE` writes it; `takeup \
                         bench import` makes one from a table";

/// The error and its causes, joined by colons, without repeated texts.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    base::failures::with_causes_as(error, |error| match error.downcast_ref::<io::Error>() {
        Some(error) => system_text(error),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests;
