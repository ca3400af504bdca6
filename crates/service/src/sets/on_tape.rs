//! The place in a chain of a set that goes to the tape in a drive. What is known of the sets before
//! it is in the copies of their indexes; where there is none of the job, on the tape.

use std::sync::Arc;

use device::tape::TapeDrive;
use flow::cancel::Cancel;
use flow::monitor::Monitor;

use super::{
    Hold, NewSet, NewTapeSet, Place, Tapes, check_job, job, options, own_name, sources, tell,
    tell_unusable,
};
use crate::backup::BackupRequest;
use crate::failure::Failure;
use crate::tape_sets::TapeSets;

impl NewSet {
    /// Chooses its place in a chain.
    pub(crate) fn plan_on_tape(
        request: &BackupRequest,
        drive: Arc<dyn TapeDrive>,
        hold: Hold<'_>,
        cancel: &Cancel,
        monitor: &dyn Monitor,
    ) -> Result<NewSet, Failure> {
        let job = job(request);
        check_job(job)?;
        let sources = sources(request)?;
        // Whatever is wrong with what is known: the backup is made, as a full set if need be.
        let tape_sets = TapeSets::for_reading();
        let lock = match hold {
            Hold::Take => tape_sets.lock_if_possible(job)?,
            Hold::Held(_) | Hold::None => None,
        };
        if !matches!(hold, Hold::None)
            && let Err(failure) = tape_sets.know_last_of(drive, job, cancel)
        {
            cancel.check().map_err(|error| Failure::new(&error, None))?;
            let text = format!("the sets before are not known: {}", failure.message());
            tell(monitor, &request.to, text);
        }
        let known = tape_sets.read().unwrap_or_default();
        tell_unusable(monitor, &known.unusable);
        let account = tape_sets.account().unwrap_or_default();
        let path = tape_sets.folder();
        let overwrites = request.target.overwrite || request.tape.overwrite_volumes;
        let tape = Some(Tapes { account: &account, overwrites });
        let place = Place { known: &known, path, tape };
        let (options, list) = options(request, sources, &place, "", monitor)?;
        let copy = match hold {
            Hold::None => None,
            _ => match tape_sets.begin_copy(&own_name(&options.about)) {
                Ok(copy) => Some(copy),
                Err(failure) => {
                    let text = format!("no copy of the index can be kept: {}", failure.message());
                    tell(monitor, tape_sets.folder(), text);
                    None
                }
            },
        };
        let tape = NewTapeSet { copy, log: tape_sets.log(Some(job)) };
        Ok(NewSet { path: request.to.clone(), options, tape: Some(tape), list, _lock: lock })
    }
}
