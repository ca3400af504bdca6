//! Errors as the user sees them: one line `takeup: what: which object: why`, and a hint where there
//! is something to do.
//!
//! Libraries say what went wrong; only here is known which option would have helped. The hints are
//! one table per kind of error.

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
use model::plan::PlanError;
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
    /// What to do.
    pub hint: Option<String>,
    /// A line for each thing that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// Why a command did not do its job.
#[derive(Debug)]
pub struct Failure {
    message: String,
    /// What it consists of, a line each.
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

    /// A failure that has no error behind it.
    pub fn of(message: impl Into<String>, hint: Option<&str>) -> Failure {
        let hint = hint.map(str::to_owned);
        Failure { message: message.into(), details: Vec::new(), hint, kind: FailureKind::Failed }
    }

    /// The same, with a line for each thing that is wrong.
    pub fn with_details(self, details: Vec<String>) -> Failure {
        Failure { details, ..self }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What went wrong, in a line.
    pub fn message(&self) -> &str {
        &self.message
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
                Some("write the archive to a place outside of what is backed up".to_owned())
            }
            BackupError::FarLess { target, .. } => Some(format!(
                "is a source not mounted? {target} is as it was, and nothing of the new archive is \
                 kept; --force puts it in its place all the same"
            )),
            BackupError::RingTooSmall { block_bytes, .. } => {
                let least = base::format::size(8 * *block_bytes as u64);
                Some(format!("--ring of at least {least}, or smaller blocks with --block-size"))
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
    /// A set on tape that did not come to its end: the hint is what of it is there.
    fn from_unfinished(unfinished: &Unfinished) -> Failure {
        let safe = &unfinished.safe;
        let restored = match safe.segments {
            0 => "the next backup begins behind it",
            _ => "`takeup restore` gives their files back, and the next backup begins behind them",
        };
        let mut hint = format!("{safe}: {restored}");
        if let BackupError::Tape(error) = &unfinished.error
            && let Some(more) = tape_set_hint(error)
        {
            hint = format!("{more}; {hint}");
        }
        Failure::new(unfinished, Some(hint))
    }
}

/// What can be done when a set cannot be written to tape.
fn tape_set_hint(error: &TapeSetError) -> Option<String> {
    let text = match error {
        TapeSetError::Open(error) => return open_hint(error),
        TapeSetError::Refused { refused: Refused::Foreign, .. } => {
            "--overwrite writes over it from its beginning"
        }
        TapeSetError::Refused { refused: Refused::TestArea, .. } => {
            "--overwrite writes over it from its beginning: nothing but test data is lost"
        }
        TapeSetError::Refused { refused: Refused::NoMedium, .. } => "put a medium into the drive",
        TapeSetError::Refused { refused: Refused::DataFollow, .. } => {
            "`mt eom` goes behind them; --overwrite writes over them"
        }
        TapeSetError::NoVolume {
            last: Refused::Foreign | Refused::TestArea | Refused::Full,
            ..
        } => "--overwrite-volumes writes over what later volumes hold",
        TapeSetError::Tape(error) if error.said.is_some_and(|said| said.is_unreadable()) => {
            "nothing is known of what the medium holds; --overwrite writes over it from its \
             beginning"
        }
        TapeSetError::Refused { refused: Refused::WriteProtected, .. } => {
            "its write-protect switch is set; `takeup list` reads it all the same"
        }
        TapeSetError::BlockSize { .. } => "--block-size sets the size; nothing was written",
        TapeSetError::Change { source: ChangeError::NobodyToAsk, .. } => {
            "run it on a terminal, or say with --change-command how volumes are changed"
        }
        TapeSetError::EndOfMedium { .. } => {
            "a filemark closes what is on it; `takeup backup` goes on on another medium"
        }
        TapeSetError::Nothing { .. } => {
            "was the command in front of the pipe mistyped? `mt weof` writes a filemark alone"
        }
        TapeSetError::Compression(_) => "leave --drive-compression out",
        _ => return None,
    };
    Some(text.to_owned())
}

fn open_hint(error: &OpenError) -> Option<String> {
    let text = match error {
        OpenError::NoMedium { .. } => "put a medium into the drive",
        OpenError::Busy { .. } => "wait until it is done",
        OpenError::NoSuchDevice { .. } => "`ls /dev/nst*` shows the drives that the kernel knows",
        OpenError::NotATape { .. } => "name the node of a tape drive, such as /dev/nst0",
        OpenError::NeverWaits { device } => {
            return Some(format!("`mt -f {device} stclearoptions 0x8000` makes it wait"));
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
                "--overwrite gives away what it holds; on a tape --append writes behind it".into(),
            ),
            TapeBenchError::OtherMedium { .. } => {
                Some("--overwrite gives it the name that --medium-label says".into())
            }
            TapeBenchError::BlockSize { .. } => {
                Some("takeup probe tells which blocks go through".into())
            }
            TapeBenchError::LongerThanMedium { capacity_bytes, .. } => {
                // A label is in front of it, and the end is warned of before it comes.
                let fitting = (capacity_bytes / 100 * 97) >> 20;
                Some(format!("--length makes the runs shorter: {fitting}M would fit"))
            }
            TapeBenchError::Full { .. } => Some("--length makes the runs shorter".into()),
            TapeBenchError::NoMedium { .. } | TapeBenchError::NobodyChanges => Some(
                "run it on a terminal, or say with --change-command how media are changed".into(),
            ),
            _ => None,
        };
        Failure::new(&error, hint)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
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
            RestoreError::NothingLeft { .. } => Some(
                "--strip-components leaves so many components of every path out; takeup list \
                 shows the paths"
                    .to_owned(),
            ),
            RestoreError::Target(tree::RestoreError::Synchronise { .. }) => Some(
                "what was restored may not be on the disk: restore again once the cause is mended"
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

/// What may have been meant, where nothing of what was asked for is in an archive.
pub fn nothing_found_hint(paths: &[NotFound]) -> String {
    let near = paths.iter().find_map(|missing| Some((&missing.path, missing.near.as_ref()?)));
    match near {
        Some((path, near)) => format!("for {} the archive has {}", escape(path), escape(near)),
        None => "takeup list shows what is in it; paths are those of the list".to_owned(),
    }
}

/// What can be done when a stage breaks down.
fn stage_hint(failure: &StageFailure) -> Option<String> {
    match failure {
        StageFailure::Panicked { .. } => {
            Some("please report it, with the lines above and what was run".to_owned())
        }
        StageFailure::NotStarted { .. } => None,
    }
}

/// What can be done when the process has no descriptors left. The soft limit was raised already.
fn shortage_hint(shortage: Shortage) -> Option<String> {
    shortage
        .is_of_descriptors()
        .then(|| "raise the hard limit of open files (`ulimit -H -n` shows it)".to_owned())
}

const NO_URING: &str = "--engine pread works without io_uring";
const READER_GONE: &str = "the program behind the pipe ended first: its messages say why";

/// What can be done when an archive cannot be read.
pub fn read_hint(failure: &ReadFailure) -> Option<String> {
    match failure {
        ReadFailure::Open(source) => source_hint(source),
        ReadFailure::NotAnArchive { .. } => {
            Some("`file NAME` tells what it is; encrypted archives have to be opened first".into())
        }
        ReadFailure::OnlyZeros { .. } => Some(
            "a write that was never done, or a file that was made longer than its content, \
                 leaves zeros"
                .to_owned(),
        ),
        ReadFailure::NoIndex { .. } => {
            Some("without --require-index it is read as an archive that never had one".to_owned())
        }
        ReadFailure::Window { window_bytes, .. } => Some(format!(
            "`zstd -dc --long={} FILE` decompresses it; its output is read from a pipe, with - in \
             the place of the file",
            window_bytes.next_power_of_two().ilog2()
        )),
        ReadFailure::SetUp { .. } => Some(NO_URING.to_owned()),
        ReadFailure::Tape(TapeReadFailure::Open(error)) => open_hint(error),
        ReadFailure::Tape(failure) => tape_hint(failure).map(str::to_owned),
        _ => None,
    }
}

/// What can be done when a tape cannot be read.
fn tape_hint(failure: &TapeReadFailure) -> Option<&'static str> {
    Some(match failure {
        TapeReadFailure::Blank { .. } => "is it the right medium? `takeup probe` tells more",
        TapeReadFailure::AtEndOfData { .. } => {
            "--file 0 reads the first file of the tape, `mt rewind` goes back to it"
        }
        TapeReadFailure::NoSets { .. } => {
            "without --set or --sets a tape of another program is read too, file by file"
        }
        TapeReadFailure::NoSuchSet { .. } | TapeReadFailure::AmbiguousSet { .. } => {
            "`takeup list DEVICE --sets` tells which sets there are"
        }
        TapeReadFailure::PlaceLost { .. } | TapeReadFailure::Broken { .. } => {
            "clean the drive and try again; what was read before is restored"
        }
        TapeReadFailure::Exchanged { .. } => "put the first medium back and start again",
        TapeReadFailure::VolumeMissing { .. } => {
            "start in a terminal to be asked for volumes, or with --change-command; \
             --without-volume N brings back what is on the others"
        }
        _ => return None,
    })
}

fn source_hint(error: &SourceError) -> Option<String> {
    match error {
        SourceError::Terminal => Some("name a file, or send it in with < or |".to_owned()),
        SourceError::NotReadable { what: "a directory", .. } => {
            Some("`takeup backup` archives a directory".to_owned())
        }
        _ => None,
    }
}

fn target_hint(error: &TargetError) -> Option<String> {
    let text = match error {
        TargetError::Exists { .. } => {
            "--overwrite puts the new one in its place when it is complete"
        }
        TargetError::HoldsData { .. } => "--overwrite writes over it from its start",
        TargetError::Busy { .. } => "wait for that run to end, or choose another name",
        TargetError::NoStorage { .. } => "`--to - > DEVICE` sends the archive there all the same",
        TargetError::NoDevice { .. } => "`lsblk` shows the disks, `ls /dev/nst*` the tape drives",
        TargetError::NoNewFile { .. } => {
            "`--to - 1<> FILE` writes over the file itself, from its start; what it held is lost \
             with the first block"
        }
        TargetError::Terminal => "name a file with --to, or send it on with | or >",
        TargetError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "the folder has to exist already"
        }
        TargetError::Open { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
            "it is mounted or part of an array: release it first"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Hints that depend on the cause alone, whatever failed with it.
fn cause_hint(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(RecordError::Line { line: 1, .. }) = error.downcast_ref() {
        return Some(NO_RECORD.to_owned());
    }
    if is_of_later_version(error) {
        return Some("use the version of takeup that wrote it, or a later one".to_owned());
    }
    let text = match root_kind(error)? {
        io::ErrorKind::StorageFull => "nothing of it is kept; free some space, or compress more",
        io::ErrorKind::PermissionDenied => "run as a user who may, for example with sudo",
        io::ErrorKind::BrokenPipe => READER_GONE,
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether something is of a later version of this program, and so cannot be read by this one.
fn is_of_later_version(error: &(dyn Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        let is_later = matches!(error.downcast_ref(), Some(LabelError::Later { .. }))
            || matches!(error.downcast_ref(), Some(Refused::LaterVersion { .. }));
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
            (Some(watch::record::RecordError::Format { format, .. }), _) => Some(*format),
            (_, Some(MediumFileError::Version { version, .. })) => Some(*version),
            _ => None,
        });
        // Formats count from 1: 0 is none of ours.
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

/// What is a record is known from its first line.
const NO_RECORD: &str = "the runs of an experiment are wanted, as takeup bench keeps them (-o \
                         FILE); takeup bench import makes such a file of a table";

/// The error and its causes, joined by colons, without what is said twice.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    base::failures::with_causes_as(error, |error| match error.downcast_ref::<io::Error>() {
        Some(error) => system_text(error),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_and_a_hint() {
        let error = PipeError::Target(TargetError::Open {
            path: "/no\nwhere/x".into(),
            source: io::Error::from_raw_os_error(2),
        });
        let expected = "takeup: cannot open /no\\nwhere/x: no such file or directory\n\
                        hint: the folder has to exist already\n";
        assert_eq!(Failure::from(error).to_text(), expected);
    }

    #[test]
    fn a_tape_of_a_later_version_has_its_own_code() {
        let source = LabelError::Later { version: 2 };
        let (device, place) = ("nst0".to_owned(), "file 0".to_owned());
        let failure = ReadFailure::Tape(TapeReadFailure::Label { device, place, source });
        let read = Failure::from(RestoreError::Read(failure));
        let expected = "takeup: cannot read file 0 of the tape in nst0: a later version of takeup \
                        wrote the label (version 2, and this one knows 1)\n\
                        hint: use the version of takeup that wrote it, or a later one\n";
        assert_eq!((read.kind, &*read.to_text()), (FailureKind::LaterVersion, expected));
        let refused = Refused::LaterVersion { version: 2 };
        let device = "nst0".to_owned();
        let written = Failure::from(BackupError::Tape(TapeSetError::Refused { device, refused }));
        let text = written.to_text();
        assert_eq!(written.kind, FailureKind::LaterVersion, "{text}");
        assert!(text.starts_with("takeup: cannot write to nst0: the medium holds a set of a "));
        assert_eq!(text.matches("this one knows").count(), 1, "{text}");
    }

    #[test]
    fn a_restore_that_is_not_on_the_disk_is_a_failure() {
        let source = io::Error::from_raw_os_error(5);
        let error = RestoreError::Target(tree::RestoreError::Synchronise { source });
        let text = Failure::from(error).to_text();
        let expected = "takeup: cannot synchronise the destination: input/output error\n\
                        hint: what was restored may not be on the disk";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_full_target_is_told_whatever_the_step() {
        let source = io::Error::from_raw_os_error(28);
        let error = PipeError::Write { object: "/x".into(), offset_bytes: 7, source };
        let text = Failure::from(error).to_text();
        let expected = "takeup: cannot write /x at byte 7: no space left on device\n";
        assert!(text.starts_with(expected) && text.contains("hint: nothing"), "{text}");
    }
}
