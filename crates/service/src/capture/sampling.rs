//! Samples `/proc` where the kernel cannot record calls.

use std::time::{Duration, Instant};

use capture::sampled::Sampler;
use flow::cancel::Cancel;

use super::CapturedSamples;
use super::process::CapturedProcess;
use crate::failure::Failure;

/// The longest time between two checks whether the process has ended.
const STEP: Duration = Duration::from_millis(10);

/// Samples until the process ends, the time is over, or a signal comes. `why` says why calls cannot
/// be recorded.
pub(super) fn sample(
    why: &Failure,
    span: Option<Duration>,
    mut process: CapturedProcess,
    cancel: &Cancel,
) -> Result<CapturedSamples, Failure> {
    let mut sampler = Sampler::begin(&[process.pid()]);
    process.release()?;
    let begun = Instant::now();
    let mut is_stopped = false;
    while process.runs_still() {
        is_stopped = cancel.check().is_err();
        if is_stopped || span.is_some_and(|span| begun.elapsed() >= span) {
            break;
        }
        std::thread::sleep(sampler.step().min(STEP));
    }
    let (sampled, failed) = match &process {
        CapturedProcess::Running(_) => (sampler.finish(), Ok(None)),
        CapturedProcess::Started { .. } => sampler.finish_with(process.pid(), || process.end()),
    };
    let failed = failed?;
    Ok(CapturedSamples { sampled, why: why.message().to_owned(), failed, is_stopped })
}
