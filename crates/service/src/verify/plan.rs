//! What a verification from tape needs, without reading it.

use archive::label::hex;
use base::calendar::time_text;
use flow::cancel::Cancel;
use runs::restore::set_reads;
use runs::selection::Selection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VerifyRequest;
use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::tape_forecast::{TapeForecast, found, planned, planned_drive};

/// What a verification from tape needs.
#[derive(Clone, Debug)]
pub struct VerifyPlanDone {
    pub set: [u8; 16],
    /// When its run began, in seconds since 1970, if that is known.
    pub begun_seconds: Option<u64>,
    pub forecast: TapeForecast,
}

/// What a verification from tape needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyPlanAnswer {
    /// The set that is read.
    pub set: String,
    /// When its run began, in UTC, if that is known.
    pub begun: Option<String>,
    #[serde(flatten)]
    pub forecast: TapeForecast,
}

impl Answer for VerifyPlanAnswer {
    const COMMAND: &'static str = "verify plan";

    fn command(&self) -> &str {
        "verify"
    }
}

impl VerifyPlanDone {
    /// As an answer.
    pub fn answer(&self) -> VerifyPlanAnswer {
        let begun = self.begun_seconds.map(|seconds| time_text(seconds as i64));
        VerifyPlanAnswer { set: hex(&self.set), begun, forecast: self.forecast.clone() }
    }
}

/// Says what a verification from tape would need. The tape in the drive is read only where it has
/// to say what it holds.
///
/// # Errors
/// When it is no tape drive, or there is no such set.
pub fn verify_plan(
    request: &VerifyRequest,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<VerifyPlanDone, Failure> {
    let drive = planned_drive(&request.from)?;
    let from = request.tape.origin(&request.from, cancel, changer)?;
    let Some(tape) = from.as_tape() else {
        return Err(Failure::of("the drive is gone", None));
    };
    let here = found(tape, cancel)?;
    let reads = set_reads(&here, &Selection::default());
    let forecast = planned(&request.from, &*drive, &reads, here.stands, None);
    Ok(VerifyPlanDone { set: here.set, begun_seconds: here.begun_seconds, forecast })
}
