//! A verification: reads an archive back, and compares it with the live files.

mod answer;
mod plan;
mod verdict;

use std::path::PathBuf;

use flow::cancel::Cancel;
use runs::summary::RunSummary;
use runs::verify::{ExtraFiles, PageCache, VerifyError, VerifyOptions, VerifyReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tree::{Attributes, CompareOwners};

use crate::change::SharedChanger;
use crate::failure::{Failure, FailureKind};
use crate::interrupted::with_left;
use crate::outcome::Outcome;
use crate::run::{ArchiveSettings, EngineChoice, ReadOrderChoice, RunMonitor, RunObserver, bytes};
use crate::tape_end::{self, Then};
use crate::tape_forecast::{self, WaitedAnswer};
use crate::tape_source::{self, TapeSourceSettings};

pub use answer::{
    BoundedAnswer, CheckedAnswer, DifferenceAnswer, DifferingAnswer, ElsewhereAnswer,
    ProblemAnswer, ReadFromAnswer, VerifyAnswer,
};
pub use plan::{VerifyPlanAnswer, VerifyPlanDone, verify_plan};

/// What to verify and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyRequest {
    /// The archive; `-` is standard input.
    pub from: PathBuf,
    /// Whether data in the page cache may be used; else they are dropped first, to read the disk.
    #[serde(default)]
    pub cached: bool,
    /// Folder to compare with, in which the paths of the archive start.
    #[serde(default)]
    pub against: Option<PathBuf>,
    /// Whether owners are not compared.
    #[serde(default)]
    pub no_owners: bool,
    /// Whether extended attributes and ACLs are not compared.
    #[serde(default)]
    pub no_xattrs: bool,
    /// Whether files that are not in the archive are not looked for.
    #[serde(default)]
    pub no_extra: bool,
    /// In which order live files are read.
    #[serde(default)]
    pub read_order: ReadOrderChoice,
    /// How much of them may be fetched ahead in the order of the disk, in bytes; by default an
    /// eighth of the memory that is available, at most 4 GiB.
    #[serde(default)]
    pub read_window_bytes: Option<u64>,
    /// How the archive is read.
    #[serde(default)]
    pub archive: ArchiveSettings,
    /// What only tapes need.
    #[serde(default)]
    pub tape: TapeSourceSettings,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
    /// A new file that gets the record of the run.
    #[serde(default)]
    pub record: Option<PathBuf>,
}

/// The end of a verification.
#[derive(Debug)]
pub struct VerifyDone {
    /// The folder that was compared with.
    pub against: Option<PathBuf>,
    pub summary: RunSummary,
    pub report: VerifyReport,
    /// What became of the drive, if it had to wait for the checking.
    pub waited: Option<WaitedAnswer>,
}

impl VerifyDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.summary.verdict.state.into()
    }
}

/// Why an archive was not verified.
#[derive(Debug)]
pub(crate) struct NotVerified {
    pub(crate) failure: Failure,
    /// The archive is not as it was written; otherwise nothing is known of it.
    pub(crate) is_of_the_archive: bool,
}

impl From<Failure> for NotVerified {
    fn from(failure: Failure) -> NotVerified {
        NotVerified { failure, is_of_the_archive: false }
    }
}

impl From<VerifyError> for NotVerified {
    fn from(error: VerifyError) -> NotVerified {
        let is_of_the_archive = error.is_of_the_archive();
        let failure = Failure::from(error);
        let is_later = failure.kind() == FailureKind::LaterVersion;
        NotVerified { is_of_the_archive: is_of_the_archive && !is_later, failure }
    }
}

/// Verifies. `changer` gets other volumes where the request has no command for that.
///
/// # Errors
/// When the archive cannot be read. Damage and differences are in the result.
pub fn verify(
    request: &VerifyRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<VerifyDone, Failure> {
    try_verify(request, observer, cancel, changer).map_err(|it| it.failure)
}

/// As [`verify`]; the error also says whether the archive is to blame.
pub(crate) fn try_verify(
    request: &VerifyRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<VerifyDone, NotVerified> {
    let from = request.tape.origin(&request.from, cancel, changer)?;
    let ring_bytes = tape_source::ring_bytes(&request.archive, &from);
    let tape = from.as_tape().cloned();
    let options = VerifyOptions {
        from,
        against: request.against.clone(),
        extra: if request.no_extra { ExtraFiles::Ignored } else { ExtraFiles::Named },
        cache: if request.cached { PageCache::Used } else { PageCache::Dropped },
        attributes: if request.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        owners: if request.no_owners { CompareOwners::Ignore } else { CompareOwners::Compare },
        index: request.archive.index(),
        read_order: request.read_order.into(),
        read_window_bytes: request.read_window_bytes.map(bytes),
        threads: request.archive.threads,
        engine: request.engine.into(),
        ring_bytes,
    };
    let mut monitor = RunMonitor::new(observer)
        .recording(request.record.as_deref(), None)?
        .watching(Some(&request.from), None);
    let report = runs::verify::verify(options, &monitor, cancel).map_err(|error| {
        let _ = tape_end::end(&request.from, Then::KeepMedium, &monitor);
        let NotVerified { failure, is_of_the_archive } = error.into();
        let left = || "the archive was not read to its end".to_owned();
        NotVerified { failure: with_left(failure, cancel, left), is_of_the_archive }
    })?;
    let waited = tape_forecast::waited_in(&request.from, report.tape.as_ref(), &report.run);
    let (settings, read) = (&request.tape, report.tape.as_ref());
    tape_source::tell_complete_set(settings, tape.as_ref(), read, &monitor, cancel);
    let reported = tape_end::end(&request.from, request.tape.eject.into(), &monitor);
    let summary = monitor.summarise(report.run.clone(), |summary| {
        summary.verdict = verdict::verdict(&report, std::mem::take(&mut summary.verdict));
        summary.findings.extend(reported.iter().cloned());
    });
    Ok(VerifyDone { against: request.against.clone(), summary, report, waited })
}
