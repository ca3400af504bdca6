//! All sets of a tape, in the order in which they lie on it: so the tape passes once.

use std::time::Instant;

use flow::cancel::Cancel;
use runs::list::ListError;
use runs::origin::Origin;
use runs::read::ReadFailure;
use tapeset::{SetOnVolume, labelled_sets};

use super::{Named, VerifySetsDone, VerifySetsRequest, read_and_note, read_back};
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::run::{ArchiveSettings, ReadOrderChoice, RunObserver};
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
        if !set.has_index && set.followed {
            warnings.push(format!("{} is incomplete: its run did not end", named(set).archive));
        }
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

fn request_of(set: &SetOnVolume, request: &VerifySetsRequest) -> VerifyRequest {
    let set_wanted = Some(SetWanted::Number(set.number));
    // A run that did not end has no index; all others have one that can be read.
    let may_lack_index = !set.has_index && set.followed;
    let require_index = request.archive.require_index || !may_lack_index;
    VerifyRequest {
        from: request.from.clone(),
        cached: false,
        against: None,
        no_owners: true,
        no_xattrs: true,
        no_extra: false,
        read_order: ReadOrderChoice::Auto,
        read_window_bytes: None,
        archive: ArchiveSettings { require_index, ..request.archive.clone() },
        tape: TapeSourceSettings { set: set_wanted, eject: false, ..request.tape.clone() },
        engine: request.engine,
        record: None,
    }
}
