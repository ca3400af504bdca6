//! A restore: writes the members of an archive into a folder.

mod chain;
mod plan;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::index::About;
use archive::label::hex;
use base::calendar::time_text;
use flow::cancel::Cancel;
use flow::monitor::{Level, Monitor as _, Notice};
use runs::restore::{Checksums, RestoreOptions, RestoreReport, Synchronise};
use runs::selection::Selection;
use runs::summary::RunSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tree::{Attributes, Modes, Overwrite, Owners, Privileges};

pub use plan::{PlannedOf, RestorePlanAnswer, RestorePlanDone, restore_plan};

use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::interrupted::{left_in, with_left};
use crate::outcome::Outcome;
use crate::run::{ArchiveSettings, EngineChoice, RunMonitor, RunObserver};
use crate::sets::{self, SetSelection};
use crate::tape_end::{self, Then};
use crate::tape_forecast::{self, WaitedAnswer};
use crate::tape_source::{self, TapeSourceAnswer, TapeSourceSettings};

/// What to restore, where to, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreRequest {
    /// The archive, or a folder of sets; `-` is standard input.
    pub from: PathBuf,
    /// Which set of the folder, or of the tapes.
    #[serde(default)]
    pub set: SetSelection,
    /// Whether what is left of a chain is restored where an archive or a medium of it is missing.
    #[serde(default)]
    pub partial: bool,
    /// Folder to restore into; created if missing. Nothing is written outside of it.
    pub into: PathBuf,
    /// Only these members and what is below them; empty: everything.
    #[serde(default)]
    pub paths: Vec<PathBuf>,
    /// Components of every path that are removed at its start.
    #[serde(default)]
    pub strip_components: usize,
    /// What happens to existing files.
    #[serde(default)]
    pub overwrite: RestoreOverwrite,
    /// Owners of the restored files; `None`: the archived names as root, else the user's own.
    #[serde(default)]
    pub owners: Option<RestoreOwners>,
    /// Permissions of the restored files; `None`: exact as root, else less the umask.
    #[serde(default)]
    pub modes: Option<RestoreModes>,
    /// Set-ID bits, capabilities and other privileges; `None`: restored only where owner and
    /// permissions are restored as archived.
    #[serde(default)]
    pub privileges: Option<RestorePrivileges>,
    /// Whether extended attributes and ACLs are left out.
    #[serde(default)]
    pub no_xattrs: bool,
    /// Whether the run ends before everything is on the disk.
    #[serde(default)]
    pub no_sync: bool,
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

/// What happens to existing files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOverwrite {
    /// They stay.
    #[default]
    No,
    /// They are replaced; a folder only if it is empty.
    Replace,
    /// They are replaced, except files that are newer or have the archived time and size.
    KeepNewer,
}

/// Owners of restored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOwners {
    /// The user who restores.
    Ignore,
    /// Users and groups by the archived names, else by the archived numbers.
    Names,
    /// Users and groups by the archived numbers.
    Numbers,
}

/// Permissions of restored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreModes {
    /// The archived permissions.
    Exact,
    /// The archived permissions less the umask.
    Umask,
}

/// Privileges of restored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestorePrivileges {
    /// They are restored, whatever the owner is.
    Keep,
    /// They are not restored.
    Drop,
}

/// The end of a restore.
#[derive(Debug)]
pub struct RestoreDone {
    /// What was requested.
    pub request: RestoreRequest,
    pub summary: RunSummary,
    pub report: RestoreReport,
    /// The set of a chain.
    pub set: Option<About>,
    /// What became of the drive, if it had to wait for the target.
    pub waited: Option<WaitedAnswer>,
}

/// The end of a restore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreAnswer {
    #[serde(flatten)]
    pub run: RunSummary,
    /// The set of a chain that was restored; null for a single archive.
    pub set: Option<RestoredSetAnswer>,
    /// What was read of a tape; null for other archives.
    pub tape: Option<TapeSourceAnswer>,
    /// The checksums of the blocks; null if there was no index to read in advance.
    pub checksums: Option<ChecksumsAnswer>,
    /// Members that were not restored because their path exists.
    pub existing: u64,
    /// Whether the run waited until everything was on the disk.
    pub synchronised: bool,
}

/// A set of a chain that was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoredSetAnswer {
    /// Its identity.
    pub set: String,
    pub job: String,
    /// Its number among the sets of the job.
    pub number: u64,
    pub level: u8,
    /// When its run began, in UTC.
    pub begun: String,
    /// The archives of its chain, the full set's first.
    pub chain: Vec<String>,
}

impl From<&About> for RestoredSetAnswer {
    fn from(about: &About) -> RestoredSetAnswer {
        RestoredSetAnswer {
            set: hex(&about.set),
            job: about.job.clone(),
            number: about.number,
            level: about.level,
            begun: time_text(about.begun_seconds as i64),
            chain: about.chain.iter().map(|set| set.name.clone()).collect(),
        }
    }
}

/// What became of the checksums of an archive's blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChecksumsAnswer {
    /// Blocks, where all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Blocks whose checksum does not hold.
    pub damaged_blocks: u64,
}

impl Answer for RestoreAnswer {
    const COMMAND: &'static str = "restore";
}

impl RestoreDone {
    /// As an answer.
    pub fn answer(&self) -> RestoreAnswer {
        RestoreAnswer {
            run: self.summary.clone(),
            set: self.set.as_ref().map(RestoredSetAnswer::from),
            tape: self.report.tape.as_ref().map(|tape| TapeSourceAnswer {
                waited: self.waited.clone(),
                ..TapeSourceAnswer::from(tape)
            }),
            checksums: match self.report.checksums {
                Checksums::Unknown => None,
                Checksums::Hold { blocks } => {
                    Some(ChecksumsAnswer { blocks: Some(blocks), damaged_blocks: 0 })
                }
                Checksums::Damaged { blocks } => {
                    Some(ChecksumsAnswer { blocks: None, damaged_blocks: blocks })
                }
            },
            existing: self.report.existing,
            synchronised: !self.request.no_sync,
        }
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.summary.verdict.state.into()
    }
}

/// Restores. `changer` gets other volumes where the request has no command for that.
///
/// # Errors
/// When the archive cannot be read or the folder not be written. What was not restored is a
/// warning.
pub fn restore(
    request: &RestoreRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestoreDone, Failure> {
    let monitor = RunMonitor::new(observer)
        .recording(request.record.as_deref(), None)?
        .watching(Some(&request.from), Some(&request.into));
    if sets::is_folder(&request.from) {
        return chain::restore_from_folder(request, monitor, cancel, changer);
    }
    if let Some(drive) = device::tape::find(&request.from).filter(|_| request.tape.file.is_none()) {
        return chain::restore_from_tape(request, Arc::new(drive), monitor, cancel, changer);
    }
    if request.set != SetSelection::default() {
        let message = format!("{} is no folder of sets", request.from.display());
        let hint = "--at and --job choose among the sets of a folder, or of a tape";
        return Err(Failure::of(message, Some(hint)));
    }
    if request.partial {
        let message = format!("--partial: {} is no set of a chain", request.from.display());
        let hint = "leave it out: of a single archive all that can be read is restored";
        return Err(Failure::of(message, Some(hint)));
    }
    if let Some(text) = sets::part_of_chain(&request.from) {
        let object = request.from.as_os_str().as_bytes().to_vec();
        monitor.notice(Notice { level: Level::Notable, object, text });
    }
    let options = options(request, cancel, changer)?;
    let report = runs::restore::restore(options, &monitor, cancel).map_err(Failure::from);
    done(request, monitor, report, None, cancel)
}

/// The end of a run, with what is left of it where the user stopped it.
fn done(
    request: &RestoreRequest,
    mut monitor: RunMonitor<'_>,
    report: Result<RestoreReport, Failure>,
    set: Option<About>,
    cancel: &Cancel,
) -> Result<RestoreDone, Failure> {
    let report = report.map_err(|failure| {
        let _ = tape_end::end(&request.from, Then::KeepMedium, &monitor);
        with_left(failure, cancel, || left_in(&request.into))
    })?;
    let waited = tape_forecast::waited_in(&request.from, report.tape.as_ref(), &report.run);
    let reported = tape_end::end(&request.from, request.tape.eject.into(), &monitor);
    let summary = monitor.summarise(report.run.clone(), |summary| {
        summary.findings.extend(reported.iter().cloned());
    });
    Ok(RestoreDone { request: request.clone(), summary, report, set, waited })
}

/// The members that these paths select.
pub(crate) fn selection(paths: &[PathBuf]) -> Selection {
    let bytes = |path: &PathBuf| Path::as_os_str(path).as_bytes().to_vec();
    Selection::new(paths.iter().map(bytes))
}

fn options(
    request: &RestoreRequest,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestoreOptions, Failure> {
    let from = request.tape.origin(&request.from, cancel, changer)?;
    let ring_bytes = tape_source::ring_bytes(&request.archive, &from);
    Ok(RestoreOptions {
        from,
        into: request.into.clone(),
        selection: selection(&request.paths),
        strip_components: request.strip_components,
        overwrite: match request.overwrite {
            RestoreOverwrite::No => Overwrite::Refuse,
            RestoreOverwrite::Replace => Overwrite::Replace,
            RestoreOverwrite::KeepNewer => Overwrite::KeepNewer,
        },
        owners: request.owners.map(|owners| match owners {
            RestoreOwners::Ignore => Owners::Ignore,
            RestoreOwners::Names => Owners::Names,
            RestoreOwners::Numbers => Owners::Numbers,
        }),
        modes: request.modes.map(|modes| match modes {
            RestoreModes::Exact => Modes::Exact,
            RestoreModes::Umask => Modes::Umask,
        }),
        privileges: match request.privileges {
            None => Privileges::WithOwner,
            Some(RestorePrivileges::Keep) => Privileges::Keep,
            Some(RestorePrivileges::Drop) => Privileges::Drop,
        },
        attributes: if request.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        index: request.archive.index(),
        threads: request.archive.threads,
        engine: request.engine.into(),
        ring_bytes,
        synchronise: if request.no_sync { Synchronise::No } else { Synchronise::Yes },
    })
}
