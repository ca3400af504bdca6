//! What a restore from tape needs, without restoring.

use archive::index::About;
use archive::label::hex;
use base::calendar::time_text;
use flow::cancel::Cancel;
use runs::restore::{LostParts, chain_reads, set_reads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::where_it_stands;

use super::{RestoreRequest, options};
use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::{Failure, nothing_found_hint};
use crate::tape_forecast::{TakenAt, TapeForecast, found, planned, planned_drive};
use crate::tape_sets::TapeSets;
use crate::tape_source;

/// What a restore from tape needs.
#[derive(Clone, Debug)]
pub struct RestorePlanDone {
    pub set: PlannedOf,
    pub forecast: TapeForecast,
}

/// Which set is restored.
#[derive(Clone, Debug)]
pub enum PlannedOf {
    /// One of a chain.
    Chain(Box<About>),
    /// One by itself.
    Alone {
        set: [u8; 16],
        /// When its run began, in seconds since 1970, if that is known.
        begun_seconds: Option<u64>,
    },
}

/// What a restore from tape needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestorePlanAnswer {
    /// The job of a set of a chain.
    pub job: Option<String>,
    /// The set that is restored.
    pub set: String,
    /// Its number among the sets of the job.
    pub number: Option<u64>,
    /// When its run began, in UTC, if that is known.
    pub begun: Option<String>,
    #[serde(flatten)]
    pub forecast: TapeForecast,
}

impl Answer for RestorePlanAnswer {
    const COMMAND: &'static str = "restore plan";

    fn command(&self) -> &str {
        "restore"
    }
}

impl RestorePlanDone {
    /// As an answer.
    pub fn answer(&self) -> RestorePlanAnswer {
        let (job, set, number, begun) = match &self.set {
            PlannedOf::Chain(about) => {
                (Some(about.job.clone()), about.set, Some(about.number), Some(about.begun_seconds))
            }
            PlannedOf::Alone { set, begun_seconds } => (None, *set, None, *begun_seconds),
        };
        let begun = begun.map(|seconds| time_text(seconds as i64));
        RestorePlanAnswer { job, set: hex(&set), number, begun, forecast: self.forecast.clone() }
    }
}

/// Says what a restore from tape would need, where the data are taken at this rate. Nothing is
/// restored; the tape in the drive is read only where it has to say which set is meant, and what
/// that holds.
///
/// # Errors
/// When it is no tape drive, there is no such set, or none of the paths is in it.
pub fn restore_plan(
    request: &RestoreRequest,
    target_bytes_per_second: Option<u64>,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestorePlanDone, Failure> {
    let drive = planned_drive(&request.from)?;
    let tape_sets = TapeSets::for_reading();
    let (set, selection) = (request.tape.set.as_ref(), &request.set);
    let named = tape_sets.wanted(drive.clone(), set, selection, cancel)?;
    let options = options(request, cancel, changer)?;
    let Some(tape) = options.from.as_tape().cloned() else {
        return Err(Failure::of("the drive is gone", None));
    };
    let lost = if request.partial { LostParts::Named } else { LostParts::End };
    let (wanted, stands, here) = match named {
        Some(wanted) => (Some(wanted), where_it_stands(&tape), None),
        None => {
            let here = found(&tape, cancel)?;
            let about = here.index.index.about().map_err(|error| Failure::new(&error, None))?;
            let is_of_chain = about.is_some_and(|about| about.chain.len() > 1);
            let index = here.index.clone();
            let wanted = is_of_chain.then(|| tape_sets.read_from_tape(index)).transpose()?;
            (wanted, here.stands, Some(here))
        }
    };
    let (set, reads) = match (wanted, here) {
        (Some(wanted), _) => {
            let chain = tape_sets.chain(&wanted, &tape, lost)?;
            (PlannedOf::Chain(Box::new(wanted.about)), chain_reads(&options, &chain)?)
        }
        (None, Some(here)) => {
            let reads = set_reads(&here, &options.selection);
            let (set, begun_seconds) = (here.set, here.begun_seconds);
            let about = here.index.index.about().ok().flatten();
            let alone = PlannedOf::Alone { set, begun_seconds };
            (about.map_or(alone, |about| PlannedOf::Chain(Box::new(about))), reads)
        }
        (None, None) => return Err(Failure::of("there is no set", None)),
    };
    if reads.sets.iter().all(is_empty) && !reads.not_found.is_empty() {
        let hint = nothing_found_hint(&reads.not_found);
        return Err(Failure::of("none of the requested paths is in the set", Some(&hint)));
    }
    let taken = target_bytes_per_second.map(|bytes_per_second| {
        let ring_bytes = tape_source::ring_bytes(&request.archive, &options.from);
        TakenAt { bytes_per_second, ring_bytes }
    });
    Ok(RestorePlanDone { set, forecast: planned(&request.from, &*drive, &reads, stands, taken) })
}

fn is_empty(set: &runs::restore::SetReads) -> bool {
    set.blocks.as_ref().is_some_and(Vec::is_empty)
}
