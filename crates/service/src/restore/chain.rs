//! A set of a chain, restored with the sets that it counts on.

use std::sync::Arc;

use base::failures::with_causes;
use catalogue::FolderSet;
use device::tape::TapeDrive;
use flow::cancel::Cancel;
use runs::restore::{Chain, ChainPart, LostParts, RestoreError, restore_chain};
use tapeset::TapeOrigin;

use super::{RestoreDone, RestoreRequest, done, options};
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::run::RunMonitor;
use crate::sets::{self, Gaps};
use crate::tape_sets::TapeSets;
use crate::tape_source::{self, TapeSourceSettings};

fn lost_parts(request: &RestoreRequest) -> LostParts {
    if request.partial { LostParts::Named } else { LostParts::End }
}

/// Restores a set of a folder.
pub(super) fn restore_from_folder(
    request: &RestoreRequest,
    monitor: RunMonitor<'_>,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestoreDone, Failure> {
    let gaps = if request.partial { Gaps::Accept } else { Gaps::Refuse };
    let (folder, named) = (&request.from, request.tape.set.as_ref());
    let wanted = sets::chain_in(sets::read(folder)?, folder, named, &request.set, gaps)?;
    wanted.tell_doubts(&monitor);
    let last = wanted.sets.last().ok_or_else(|| Failure::of("the chain has no set", None))?;
    let unreadable = |error: std::io::Error| {
        let message =
            format!("the index of {} cannot be read: {}", last.name(), with_causes(&error));
        Failure::of(message, None)
    };
    let part = |link: &archive::index::ChainSet| {
        let set: Option<&FolderSet> = wanted.sets.iter().find(|set| set.about.set == link.set);
        let from = set.map(|set| set.path.as_os_str().to_owned().into());
        ChainPart { name: link.name.clone(), from }
    };
    let parts = last.about.chain.iter().map(part).collect();
    let index = last.index().map_err(unreadable)?;
    let chain = Chain { index, parts, lost: lost_parts(request) };
    let tape = TapeSourceSettings { set: None, ..request.tape.clone() };
    let alone = RestoreRequest { tape, ..request.clone() };
    let options = options(&alone, cancel, changer)?;
    let report = restore_chain(options, &chain, &monitor, cancel).map_err(Failure::from);
    done(request, monitor, report, Some(last.about.clone()), cancel)
}

/// Restores from tapes: the set that is named, or the last one of the tape in the drive. If that is
/// of a chain, with the sets that it counts on.
pub(super) fn restore_from_tape(
    request: &RestoreRequest,
    drive: Arc<dyn TapeDrive>,
    monitor: RunMonitor<'_>,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestoreDone, Failure> {
    let tape_sets = TapeSets::for_reading();
    let (set, selection) = (request.tape.set.as_ref(), &request.set);
    let named = tape_sets.wanted(drive, set, selection, cancel)?;
    let options = options(request, cancel, changer)?;
    let Some(tape) = options.from.as_tape().cloned() else {
        return Err(Failure::of("the drive is gone", None));
    };
    let wanted = match named {
        Some(wanted) => wanted,
        None => match runs::restore::restore(options.clone(), &monitor, cancel) {
            Err(RestoreError::OfChain(index)) => tape_sets.read_from_tape(*index)?,
            other => {
                let report = other.map_err(|error| not_restored(error, &tape, cancel));
                if let Ok(report) = &report {
                    let (settings, read) = (&request.tape, report.tape.as_ref());
                    let tape = Some(&tape);
                    tape_source::tell_complete_set(settings, tape, read, &monitor, cancel);
                }
                return done(request, monitor, report, None, cancel);
            }
        },
    };
    if let Some(doubts) = &wanted.doubts {
        doubts.tell_doubts(&monitor);
    }
    let chain = tape_sets.chain(&wanted, &tape, lost_parts(request))?;
    let report = restore_chain(options, &chain, &monitor, cancel).map_err(Failure::from);
    done(request, monitor, report, Some(wanted.about), cancel)
}

/// The failure, with a hint if another set of the tape has the requested paths.
fn not_restored(error: RestoreError, tape: &TapeOrigin, cancel: &Cancel) -> Failure {
    if let RestoreError::NothingFound { paths } = &error
        && let Some(hint) = tape_source::in_another_set(tape, paths, cancel)
    {
        return Failure::new(&error, Some(hint));
    }
    error.into()
}
