//! All sets of a tape, in the order in which they lie on it: so the tape passes once, where copies
//! of the indexes are at hand.

use std::time::Instant;

use flow::cancel::Cancel;
use runs::list::ListError;
use runs::origin::Origin;
use runs::read::ReadFailure;
use tapeset::{SetOnVolume, labelled_sets};

use super::{Named, VerifySetsDone, VerifySetsRequest, by_itself, read_and_note, read_back};
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::run::RunObserver;
use crate::tape_end::{self, Then};
use crate::tape_sets::TapeSets;
use crate::tape_source::{SetWanted, TapeSourceSettings, no_tape};
use crate::verify::VerifyRequest;

/// Reads all sets of the medium in a drive, and notes in the journal what became of those of
/// chains.
///
/// # Errors
/// When the tape holds no set or cannot be read, or the run was stopped. Damage is in the result.
pub(super) fn verify_sets(
    request: &VerifySetsRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: &SharedChanger,
) -> Result<VerifySetsDone, Failure> {
    let begun = Instant::now();
    let from = request.tape.origin(&request.from, cancel, changer.clone())?;
    let Origin::Tape(tape) = &from else {
        return Err(no_tape("--sets", &request.from, "omit --sets: only tapes hold several sets"));
    };
    let sets = labelled_sets(tape, cancel).map_err(ReadFailure::from).map_err(ListError::from)?;
    let known = TapeSets::of_this_user().and_then(|sets| sets.read()).unwrap_or_default();
    let (mut verified, mut warnings) = (Vec::new(), Vec::new());
    for set in &sets {
        let one = request_of(set, request);
        let of_chain = known.sets.iter().find(|known| Named::of(known).set == set.id);
        let archive = match of_chain {
            Some(known) => {
                let changer = changer.clone();
                let (archive, failure) =
                    read_and_note(known, &request.from, &one, observer, cancel, changer)?;
                warnings.extend(failure.map(|failure| failure.message().to_owned()));
                archive
            }
            None => read_back(named(set), &one, observer, cancel, changer.clone())?,
        };
        verified.push(archive);
    }
    if request.tape.eject {
        let (_, ejected) = tape_end::look(&request.from, Then::Eject);
        warnings.extend(ejected.err());
    }
    warnings.dedup();
    let seconds = begun.elapsed().as_secs_f64();
    let (from, lost) = (request.from.clone(), Vec::new());
    Ok(VerifySetsDone { from, verified, lost, warnings, seconds })
}

/// `set 2 (0123456789ab)`.
fn named(set: &SetOnVolume) -> Named {
    let archive = format!("set {} ({})", set.number, set.id.get(..12).unwrap_or(&set.id));
    Named { set: set.id.clone(), archive }
}

/// A set that lacks its index is read as far as it goes, and is not sound then: nothing tells a run
/// that did not end from an index that was lost.
fn request_of(set: &SetOnVolume, request: &VerifySetsRequest) -> VerifyRequest {
    let set_wanted = Some(SetWanted::Number(set.number));
    VerifyRequest {
        tape: TapeSourceSettings { set: set_wanted, eject: false, ..request.tape.clone() },
        ..by_itself(request.from.clone(), request.archive.clone(), request.engine)
    }
}
