//! A day of a chain: from each archive what that day still had of it.
//!
//! The index of the day's set names everything that was there, and the set of the chain that has
//! it. So each archive is read once, in the order of the chain, and each path is restored once: no
//! version is written to be replaced by the next, and nothing is deleted. Folders get their
//! metadata at the end of all.

use std::collections::HashMap;
use std::time::Instant;

use archive::index::{AgainReason, AgainRecord, EntryState, IndexError, TreeEntry};
use catalogue::FolderSet;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Monitor};

use super::{
    Checksums, Folders, Part, RestoreError, RestoreOptions, RestoreReport, finish,
    open_destination, something, synchronise,
};
use crate::selection::{Members, Selection};
use crate::warnings::Warnings;

/// Restores the tree that the last of these sets found. They are its chain, from the full set on.
/// Where the options say the archive is, and whether it must have an index, does not count.
///
/// # Errors
/// See [`RestoreError`]. A member that cannot be restored is a warning to the monitor, not an
/// error.
pub fn restore_chain(
    options: RestoreOptions,
    chain: &[&FolderSet],
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RestoreReport, RestoreError> {
    let destination = open_destination(&options)?;
    let warnings = Warnings::new(monitor);
    let start = Instant::now();
    let restore = || {
        let mut selection = options.selection.clone();
        let wanted = wanted(chain, &mut selection, &warnings)?;
        let not_found = selection.not_found();
        for missing in &not_found {
            warnings.warn(Harm::NotFound, &missing.path, "not found in the set");
        }
        let mut joined: Option<RestoreReport> = None;
        for (set, members) in chain.iter().zip(wanted) {
            if members.count() == 0 {
                continue;
            }
            let options = RestoreOptions {
                from: set.path.as_os_str().to_owned().into(),
                selection: Selection::exactly(members),
                ..options.clone()
            };
            let folders = Folders::Later;
            let part =
                Part { destination: &destination, options: &options, warnings: &warnings, folders };
            join(&mut joined, part.restore(monitor, cancel)?);
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
fn wanted(
    chain: &[&FolderSet],
    selection: &mut Selection,
    warnings: &Warnings<'_>,
) -> Result<Vec<Members>, RestoreError> {
    let mut wanted: Vec<Members> = chain.iter().map(|_| Members::default()).collect();
    let Some(last) = chain.last() else { return Ok(wanted) };
    let failed = |source| RestoreError::Tree { set: last.name(), source };
    let section = "takeup-index/tree";
    let unreadable = |source| failed(IndexError::NamedRead { section, source });
    let index = last.index().map_err(unreadable)?;
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
        match place(&entry, chain.len() as u32 - 1, &noted) {
            Some(place) => {
                let members = wanted.get_mut(place as usize).ok_or_else(|| {
                    let reason = "a place is behind the end of the chain";
                    failed(IndexError::Named { section, reason })
                })?;
                members.add(&entry.path);
            }
            None => {
                let text = "could not be read by the backup, and no earlier set has it";
                warnings.warn(Harm::NotRestored, &entry.path, text);
            }
        }
    }
    Ok(wanted)
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
