//! The `restore` run: from an archive back into a directory.
//!
//! ```text
//! read --> ring --> [decompress --> ring] --> parse --> create (several workers)
//! ```
//!
//! The parsing thread goes through the archive and passes members to workers. Small files travel in
//! batches with their content on loan from the ring, and are written in the order of the archive,
//! so that they lie in that order on the disk; large ones travel piece by piece. What depends on
//! something else (a hard link on its target, a directory that replaces a file) waits, so the
//! outcome does not depend on the number of workers; see `order`.
//!
//! Damage is reported and the run continues. A file with incomplete content never gets its name:
//! its data are kept as `NAME.incomplete`, or removed if the file would have replaced another. A
//! full target ends the run.

mod chain;
mod check;
mod media;
mod order;
mod workers;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use archive::acl::NameLookup;
use archive::decode::{DecodeLimits, Decoder};
use archive::index::IndexError;
use flow::account::{Account, Stage};
use flow::backend::Engine;
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, Failure, StageFailure};
use flow::monitor::{Harm, Level, Monitor, Notice};
use flow::run::{Command, Endpoint, RunReport, StageKind};
use tree::{
    Accounts, Attributes, Destination, DestinationOptions, Modes, Overwrite, Owners, Privileges,
    Replaced,
};

use crate::origin::Origin;
use crate::past_cache::Way;
use crate::read::cross_check::set_id_holds;
use crate::read::excerpt::Excerpt;
use crate::read::members::MemberStream;
use crate::read::ranges::{Plan, StandIns, plan};
use crate::read::{Contents, IndexNeed, Input, ReadFailure, ReadSettings, read_archive};
use crate::selection::{NotFound, Selection};
use crate::warnings::Warnings;
use catalogue::IndexFile;
use tapeset::{Need, TapeIndex, TapeReading};

use crate::read::block_check::{BlockCheck, KeptChecksums};
pub use chain::{Chain, ChainPart, LostParts, restore_chain};
pub use media::{PlannedReads, SetInDrive, SetReads, chain_reads, set_in_drive, set_reads};
use order::Dispatcher;
use workers::Workers;

/// Bytes between selected members that are read through: a disk with heads needs about as long to
/// seek. What is read through on tape, the reading of the tape decides.
const BRIDGE_BYTES: u64 = 1 << 20;

/// Suffix of the name of a file with incomplete content.
pub const INCOMPLETE_SUFFIX: &str = ".incomplete";

/// The options of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Where the archive is.
    pub from: Origin,
    /// Directory to restore into; created if missing. Nothing is written outside it.
    pub into: PathBuf,
    /// Which members.
    pub selection: Selection,
    /// Leading components to strip from every path (and hard link target); members with no more
    /// components are not restored.
    pub strip_components: usize,
    /// What to do with existing files.
    pub overwrite: Overwrite,
    /// Owners of the files; by default as archived for root, and the user's own for others.
    pub owners: Option<Owners>,
    /// Permissions; by default as archived for root, reduced by the umask for others.
    pub modes: Option<Modes>,
    /// Whether set-ID bits, capabilities and other privileged attributes are restored.
    pub privileges: Privileges,
    /// Whether extended attributes and ACLs are restored.
    pub attributes: Attributes,
    /// Threads that create files; as many as cores if `None`.
    pub threads: Option<NonZero<usize>>,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
    /// Whether an archive that does not announce an index must have one anyway.
    pub index: IndexNeed,
    /// Whether the run waits until everything is on the disk.
    pub synchronise: Synchronise,
}

/// Whether a restore ends with synchronising the file systems that it wrote to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronise {
    /// The run succeeds only after syncfs(2), on every file system that it wrote to.
    #[default]
    Yes,
    /// The kernel writes back in its own time, as after `tar` or `cp`.
    No,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions {
            from: "-".into(),
            into: ".".into(),
            selection: Selection::default(),
            strip_components: 0,
            overwrite: Overwrite::Refuse,
            owners: None,
            modes: None,
            privileges: Privileges::WithOwner,
            attributes: Attributes::Read,
            threads: None,
            engine: Engine::Auto,
            ring_bytes: 64 << 20,
            index: IndexNeed::default(),
            synchronise: Synchronise::Yes,
        }
    }
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    pub run: RunReport,
    /// The tape's results, if it was a tape.
    pub tape: Option<TapeReading>,
    /// Number of warnings; the monitor received them.
    pub warnings: u64,
    /// Members that were not restored because their path exists (each with a warning).
    pub existing: u64,
    /// Requested paths that match nothing (each with a warning).
    pub not_found: Vec<NotFound>,
    /// The result of the index's checksums.
    pub checksums: Checksums,
}

/// The result of the block checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// There was no index, or none readable in advance (a pipe). Checksums of the compression were
    /// checked anyway.
    Unknown,
    Hold {
        blocks: u64,
    },
    /// Some do not hold; each file in these blocks has a warning.
    Damaged {
        /// Number of blocks that differ.
        blocks: u64,
    },
}

/// Why a restore was not completed. What was restored before stays.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The archive cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The target does not accept more: it is full, read-only or broken.
    #[error(transparent)]
    Target(#[from] tree::RestoreError),
    /// The archive has none of the requested paths; each has a warning.
    #[error("nothing was restored: the archive has none of the paths")]
    NothingFound {
        /// The requested paths.
        paths: Vec<NotFound>,
    },
    /// No member has more components than were to be stripped.
    #[error(
        "nothing was restored: no path in the archive has more than {}",
        counted(*strip_components)
    )]
    NothingLeft { strip_components: usize },
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// Files were left out because the process could not open more files.
    #[error(transparent)]
    Shortage(#[from] base::interruptible::Shortage),
    /// The index of the set that is restored cannot be read.
    #[error("cannot read which set of the chain has what, in the index of {set}")]
    Tree {
        set: String,
        #[source]
        source: IndexError,
    },
    /// The tape's set is of a chain: with its index, [`restore_chain`] restores it.
    #[error("the set counts on sets before it")]
    OfChain(Box<TapeIndex>),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

fn counted(components: usize) -> String {
    if components == 1 { "1 component".to_owned() } else { format!("{components} components") }
}

impl Failure for RestoreError {
    fn is_echo(&self) -> bool {
        match self {
            RestoreError::Read(failure) => failure.is_echo(),
            error => matches!(error, RestoreError::Stopped(_)),
        }
    }
}

/// Restores an archive.
///
/// # Errors
/// See [`RestoreError`]. A member that cannot be restored is a warning to the monitor, not an
/// error.
pub fn restore(
    options: RestoreOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RestoreReport, RestoreError> {
    let destination = open_destination(&options)?;
    let result = restore_into(&destination, options, monitor, cancel)
        .and_then(|report| Ok(base::interruptible::check_shortage().map(|()| report)?));
    if result.is_err() {
        destination.take_back();
    }
    result
}

fn restore_into(
    destination: &Arc<Destination>,
    options: RestoreOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RestoreReport, RestoreError> {
    let start = Instant::now();
    let warnings = Warnings::new(monitor);
    let part = Part { destination, options: &options, warnings: &warnings, folders: Folders::Now };
    let mut report = part.restore(monitor, cancel)?;
    let members = report.run.members + report.existing;
    something(members, &options, &report.not_found, &warnings)?;
    synchronise(destination, &options, &mut report.run)?;
    report.run.seconds = start.elapsed().as_secs_f64();
    report.warnings = warnings.count();
    Ok(report)
}

/// Waits until everything is on the disk.
fn synchronise(
    destination: &Destination,
    options: &RestoreOptions,
    run: &mut RunReport,
) -> Result<(), RestoreError> {
    if options.synchronise == Synchronise::Yes {
        let before = Instant::now();
        destination.synchronise()?;
        run.synchronise_seconds = before.elapsed().as_secs_f64();
    }
    Ok(())
}

/// When folders get their metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folders {
    /// When the archive was read.
    Now,
    /// Later: another archive follows.
    Later,
}

/// One archive that is restored into a destination.
struct Part<'a> {
    destination: &'a Arc<Destination>,
    options: &'a RestoreOptions,
    warnings: &'a Warnings<'a>,
    folders: Folders,
}

impl Part<'_> {
    /// Restores what is selected of it. Whether that is anything, the caller looks at.
    fn restore(
        &self,
        monitor: &dyn Monitor,
        cancel: &Cancel,
    ) -> Result<RestoreReport, RestoreError> {
        let Part { destination, options, warnings, folders } = *self;
        let input = open_input(options, monitor, cancel)?;
        if folders == Folders::Now {
            check_chain(&input, warnings)?;
        }
        let check = input.index().and_then(BlockCheck::of).map(Arc::new);
        if let Some(check) = check.as_deref().filter(|_| folders == Folders::Now) {
            tell_of_the_run(&check.index, monitor);
        }
        let keep = check.is_none().then(Arc::<KeptChecksums>::default);
        let plan = check.as_deref().and_then(|check| make_plan(&check.index, &options.selection));
        let excerpt = match (&check, &plan) {
            (Some(check), Some(plan)) if input.can_jump() => Excerpt::new(&check.index, plan),
            _ => None,
        };
        let chunks = input.chunks();
        let stand_ins = plan.map_or_else(StandIns::default, |plan| plan.stand_ins);
        let settings = ReadSettings {
            engine: options.engine,
            way: Way::Fastest,
            ring_bytes: options.ring_bytes,
            threads: options.threads,
            make_decoder: naming_decoder,
            contents: Contents::Wanted,
            check: check.clone(),
            keep: keep.clone(),
            index: options.index,
            excerpt: excerpt.as_ref(),
            chunks: chunks.as_ref(),
        };
        let parse = Stage::new(StageKind::Parse);
        let create = Stage::new(StageKind::Create);
        monitor.stages(&[&parse, &create]);
        let mut selection = options.selection.clone();
        let crew = Crew::new(cancel);
        let body = |stream: &mut MemberStream<'_>, account: &mut Account| {
            let mut late = None;
            let workers = Workers::new(destination, options, &create, warnings, &crew);
            let result = workers.run(|| {
                let mut dispatcher =
                    Dispatcher::new(&workers, destination, options, &mut selection, warnings)
                        .with_stand_ins(&stand_ins)
                        .with_kept(keep.as_deref());
                dispatcher.dispatch(stream, account)?;
                dispatcher.drain(account)?;
                late = dispatcher.late_outcome();
                Ok(())
            });
            if folders == Folders::Now {
                finish(destination, warnings);
            }
            result.map(|()| (workers.report(), workers.existing(), late))
        };
        let ((mut run, existing, late), mut summary) =
            read_archive::<_, RestoreError>(input, &settings, &parse, monitor, &crew, body)?;
        let lost = std::mem::take(&mut summary.lost);
        let tape = summary.enter(&mut run, Command::Restore, Endpoint::Tree, warnings);
        run.stages.extend([parse.report(), create.report()]);
        let index = check.as_deref().map(|check| &check.index);
        let not_found = not_found(&mut selection, index, warnings);
        let checksums = check::conclude(check.as_deref(), late, &lost, options, warnings);
        let warnings = warnings.count();
        Ok(RestoreReport { run, tape, warnings, existing, not_found, checksums })
    }
}

/// Tells what befell the run that wrote a set: it may have ended early.
fn tell_of_the_run(index: &IndexFile, monitor: &dyn Monitor) {
    for text in index.of_the_run() {
        let text = format!("the run that wrote this says: {text}");
        monitor.notice(Notice { level: Level::Notable, object: Vec::new(), text });
    }
}

/// Opens the archive, and refuses it without an index that the user requires.
fn open_input(
    options: &RestoreOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<Input, ReadFailure> {
    let need = if options.selection.is_everything() { Need::Everything } else { Need::Index };
    let input = Input::open(&options.from, need, monitor, cancel)?;
    if options.index == IndexNeed::Required {
        input.require_index()?;
    }
    Ok(input)
}

/// Refuses a set on tape that is no whole day by itself. Without its index it is restored as it is.
fn check_chain(input: &Input, warnings: &Warnings<'_>) -> Result<(), RestoreError> {
    let Input::Tape(tape) = input else { return Ok(()) };
    let index = tape.index().filter(|index| {
        let about = index.index.about();
        about.is_ok_and(|about| about.is_some_and(|about| about.chain.len() > 1))
    });
    if let Some(index) = index {
        return Err(RestoreError::OfChain(Box::new(index.clone())));
    }
    if tape.counts_on_others() {
        let text = "the set holds only what changed since another set, and its index, which says \
                    what else there was, cannot be read";
        warnings.warn(Harm::NotRestored, tape.device().as_bytes(), text);
    }
    Ok(())
}

/// Whether it is fine that nothing was restored: everything is up to date, or was damaged.
fn something(
    members: u64,
    options: &RestoreOptions,
    not_found: &[NotFound],
    warnings: &Warnings<'_>,
) -> Result<(), RestoreError> {
    let strip_components = options.strip_components;
    // Members lost to damage are in the archive all the same.
    if members > 0 || warnings.count() > not_found.len() as u64 {
        return Ok(());
    }
    match not_found {
        [_, ..] if not_found.len() == options.selection.count() => {
            Err(RestoreError::NothingFound { paths: not_found.to_vec() })
        }
        [] if strip_components > 0 => Err(RestoreError::NothingLeft { strip_components }),
        _ => Ok(()),
    }
}

/// The paths that match nothing, each with a warning. With an index, all members are searched for
/// similar names, since a partial restore did not see all of them.
fn not_found(
    selection: &mut Selection,
    index: Option<&IndexFile>,
    warnings: &Warnings<'_>,
) -> Vec<NotFound> {
    if let Some(index) = index {
        pass_all(selection, index);
    }
    let not_found = selection.not_found();
    for missing in &not_found {
        warnings.warn(Harm::NotFound, &missing.path, "not found in the archive");
    }
    not_found
}

/// Shows all members of an index to a selection, as long as that lacks any.
fn pass_all(selection: &mut Selection, index: &IndexFile) {
    if selection.lacks_any()
        && let Ok(files) = index.files()
    {
        files.map_while(Result::ok).for_each(|record| selection.pass(&record.path));
    }
}

/// Ranges of the selected members, if there is an index that has them.
fn make_plan(index: &IndexFile, selection: &Selection) -> Option<Plan> {
    if selection.is_everything() {
        return None;
    }
    // An index with parts of another set would lead to other places, or leave some out.
    if set_id_holds(index) != Some(true) {
        return None;
    }
    plan(|| index.files(), selection, BRIDGE_BYTES).ok()
}

/// Opens the directory that members are restored into.
fn open_destination(options: &RestoreOptions) -> Result<Arc<Destination>, RestoreError> {
    let default = DestinationOptions::for_this_user();
    let destination = DestinationOptions {
        overwrite: options.overwrite,
        owners: options.owners.unwrap_or(default.owners),
        modes: options.modes.unwrap_or(default.modes),
        privileges: options.privileges,
        // Without a final synchronisation there is none in between.
        replaced: match options.synchronise {
            Synchronise::Yes => Replaced::Flushed,
            Synchronise::No => Replaced::Unflushed,
        },
        attributes: options.attributes,
        ..default
    };
    Ok(Destination::open(&options.into, destination, Arc::new(Accounts::load()))?)
}

/// Gives directories their metadata, even after a failure: a directory without its final mode would
/// stay closed to its group. Reports how many objects lack privileged attributes; that is no error.
fn finish(destination: &Destination, warnings: &Warnings<'_>) {
    destination.finish(|problem| warnings.metadata(&problem));
    let objects = match destination.without_privilege() {
        0 => return,
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    };
    let text = format!(
        "set-ID bits, capabilities and other privileges of {objects} were not restored: they need \
         the archived owner and mode (--privileges)"
    );
    warnings.note(b"", text);
}

/// A decoder that resolves the names of users and groups in ACLs on this machine.
fn naming_decoder() -> Decoder {
    struct Names(Accounts);
    impl NameLookup for Names {
        fn user_id(&mut self, name: &[u8]) -> Option<u32> {
            self.0.user_id(name)
        }
        fn group_id(&mut self, name: &[u8]) -> Option<u32> {
            self.0.group_id(name)
        }
    }
    Decoder::with_names(DecodeLimits::default(), Box::new(Names(Accounts::load())))
}
