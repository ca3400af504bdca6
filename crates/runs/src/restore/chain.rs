//! A day of a chain: from each archive what that day still had of it.
//!
//! The index of the day's set names everything that was there, and the set of the chain that has
//! it. So each archive is read once, in the order of the chain, and each path is restored once: no
//! version is written to be replaced by the next, and nothing is deleted. Folders get their
//! metadata at the end of all.

use std::collections::HashMap;
use std::time::Instant;

use archive::index::{AgainReason, AgainRecord, EntryState, IndexError, TreeEntry};
use catalogue::IndexFile;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Monitor};

use super::{
    Checksums, Folders, Part, RestoreError, RestoreOptions, RestoreReport, finish,
    open_destination, something, synchronise, tell_of_the_run,
};
use crate::origin::Origin;
use crate::read::ReadFailure;
use crate::selection::{Members, Selection};
use crate::warnings::Warnings;
use tapeset::TapeReadFailure;

/// A set, and those that it counts on.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The index of the last one.
    pub index: IndexFile,
    /// From the full set to the last one.
    pub parts: Vec<ChainPart>,
    pub lost: LostParts,
}

/// A set of a chain.
#[derive(Clone, Debug)]
pub struct ChainPart {
    /// The name that its archive was given.
    pub name: String,
    /// Where it is; `None`: nowhere.
    pub from: Option<Origin>,
}

/// What becomes of a restore where a set of the chain is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostParts {
    /// Nothing more is restored.
    #[default]
    End,
    /// What only that set has is named, and the rest comes back.
    Named,
}

/// Restores the tree that the last set of a chain found. Where the options say the archive is, and
/// whether it must have an index, does not count.
///
/// # Errors
/// See [`RestoreError`]. A member that cannot be restored is a warning to the monitor, not an
/// error.
pub fn restore_chain(
    options: RestoreOptions,
    chain: &Chain,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RestoreReport, RestoreError> {
    let destination = open_destination(&options)?;
    let warnings = Warnings::new(monitor);
    let start = Instant::now();
    tell_of_the_run(&chain.index, monitor);
    let restore = || {
        let mut selection = options.selection.clone();
        let wanted = wanted(chain, &mut selection, &warnings)?;
        let not_found = selection.not_found();
        for missing in &not_found {
            warnings.warn(Harm::NotFound, &missing.path, "not found in the set");
        }
        let mut joined: Option<RestoreReport> = None;
        for (place, (set, members)) in chain.parts.iter().zip(wanted).enumerate() {
            let Some(from) = set.from.clone().filter(|_| members.count() > 0) else { continue };
            let selection = Selection::exactly(members);
            let of_set = RestoreOptions { from, selection, ..options.clone() };
            let folders = Folders::Later;
            let part =
                Part { destination: &destination, options: &of_set, warnings: &warnings, folders };
            // A medium that is not there stops its own part alone.
            match part.restore(monitor, &cancel.part()) {
                Ok(report) => join(&mut joined, report),
                Err(error) if chain.lost == LostParts::Named && is_of_the_medium(&error) => {
                    let why = base::failures::with_causes(&error);
                    let why = format!("is in the set {}, which cannot be read: {why}", set.name);
                    name_lost(chain, place as u32, &options.selection, &why, &warnings)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((joined, not_found))
    };
    let restored = restore();
    // Even after a failure: a folder without its final mode would stay closed to its group.
    finish(&destination, &warnings);
    let result = restored.and_then(|(joined, not_found)| {
        let mut report = joined.unwrap_or_else(RestoreReport::of_nothing);
        report.not_found = not_found;
        let members = report.run.members + report.existing;
        something(members, &options, &report.not_found, &warnings)?;
        synchronise(&destination, &options, &mut report.run)?;
        report.run.seconds = start.elapsed().as_secs_f64();
        report.warnings = warnings.count();
        base::interruptible::check_shortage()?;
        Ok(report)
    });
    if result.is_err() {
        destination.take_back();
    }
    result
}

/// For each set of the chain what the last one wants of it.
pub(super) fn wanted(
    chain: &Chain,
    selection: &mut Selection,
    warnings: &Warnings<'_>,
) -> Result<Vec<Members>, RestoreError> {
    let mut wanted: Vec<Members> = chain.parts.iter().map(|_| Members::default()).collect();
    each_wanted(chain, selection, |path, place| match place {
        Some(place) if chain.parts[place].from.is_some() => wanted[place].add(path),
        Some(place) => {
            let name = &chain.parts[place].name;
            let text = format!("is in the set {name}, which is not there");
            warnings.warn(Harm::NotRestored, path, &text);
        }
        None => {
            let text = "could not be read by the backup, and no earlier set has it";
            warnings.warn(Harm::NotRestored, path, text);
        }
    })?;
    Ok(wanted)
}

/// Names what is wanted of a set that cannot be read.
fn name_lost(
    chain: &Chain,
    lost: u32,
    selection: &Selection,
    why: &str,
    warnings: &Warnings<'_>,
) -> Result<(), RestoreError> {
    each_wanted(chain, &mut selection.clone(), |path, place| {
        if place == Some(lost as usize) {
            warnings.warn(Harm::NotRestored, path, why);
        }
    })
}

/// Calls for each selected object with the place in the chain of the set that has it; `None`: no
/// set has it.
fn each_wanted(
    chain: &Chain,
    selection: &mut Selection,
    mut take: impl FnMut(&[u8], Option<usize>),
) -> Result<(), RestoreError> {
    let Chain { index, parts, .. } = chain;
    let Some(last) = parts.last() else { return Ok(()) };
    let failed = |source| RestoreError::Tree { set: last.name.clone(), source };
    let section = "takeup-index/tree";
    let noted: HashMap<u64, AgainReason> = index
        .again()
        .map_err(failed)?
        .into_iter()
        .map(|AgainRecord { path, reason, .. }| (path, reason))
        .collect();
    let missing = IndexError::Named { section, reason: "there is none" };
    let Some(entries) = index.tree().map_err(failed)? else { return Err(failed(missing)) };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if !selection.selects(&entry.path) {
            continue;
        }
        let place = place(&entry, parts.len() as u32 - 1, &noted).map(|place| place as usize);
        if place.is_some_and(|place| place >= parts.len()) {
            let reason = "a place is behind the end of the chain";
            return Err(failed(IndexError::Named { section, reason }));
        }
        take(&entry.path, place);
    }
    Ok(())
}

/// Whether a set could not be read because its medium is not there.
fn is_of_the_medium(error: &RestoreError) -> bool {
    matches!(
        error,
        RestoreError::Read(ReadFailure::Tape(
            TapeReadFailure::VolumeMissing { .. }
                | TapeReadFailure::WrongVolumes { .. }
                | TapeReadFailure::NoData { .. }
        ))
    )
}

/// The set that has an object: an earlier one, if the last could not read it.
fn place(entry: &TreeEntry, last: u32, noted: &HashMap<u64, AgainReason>) -> Option<u32> {
    match noted.get(&AgainRecord::path_hash(&entry.path)) {
        Some(AgainReason::Unread) if entry.state == EntryState::Stored => entry.before,
        Some(AgainReason::Relinked) => Some(last),
        _ => Some(entry.place),
    }
}

/// Adds the report of the next archive.
fn join(joined: &mut Option<RestoreReport>, next: RestoreReport) {
    let Some(joined) = joined else {
        *joined = Some(next);
        return;
    };
    joined.run.append(&next.run);
    joined.existing += next.existing;
    joined.tape = match (joined.tape.take(), next.tape) {
        (Some(mut tape), Some(next)) => {
            tape.append(next);
            Some(tape)
        }
        (tape, next) => tape.or(next),
    };
    joined.checksums = match (joined.checksums, next.checksums) {
        (Checksums::Hold { blocks }, Checksums::Hold { blocks: more }) => {
            Checksums::Hold { blocks: blocks + more }
        }
        (Checksums::Damaged { blocks }, Checksums::Damaged { blocks: more }) => {
            Checksums::Damaged { blocks: blocks + more }
        }
        (damaged @ Checksums::Damaged { .. }, _) | (_, damaged @ Checksums::Damaged { .. }) => {
            damaged
        }
        _ => Checksums::Unknown,
    };
}

impl RestoreReport {
    /// Nothing was selected, or nothing was there.
    fn of_nothing() -> RestoreReport {
        RestoreReport {
            run: flow::run::RunReport {
                command: flow::run::Command::Restore,
                target: flow::run::Endpoint::Tree,
                ..flow::run::RunReport::default()
            },
            tape: None,
            warnings: 0,
            existing: 0,
            not_found: Vec::new(),
            checksums: Checksums::Unknown,
        }
    }
}
