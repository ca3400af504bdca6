//! Samples `/proc` where the kernel cannot record calls.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use capture::sampled::{Sampled, Sampler};
use capture::trace::TraceError;
use flow::cancel::Cancel;
use serde_json::json;

use super::job::Made;
use super::subject::Subject;
use super::{CaptureArgs, how_it_went, refusal};
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use service::failure::Failure;

/// The longest time between two checks whether the process has ended.
const STEP: Duration = Duration::from_millis(10);

/// The samples, and the outcome.
pub struct Told {
    sampled: Sampled,
    /// Why nothing was recorded.
    why: String,
    /// How the command failed, if it did.
    failed: Option<String>,
    /// A signal stopped it.
    is_stopped: bool,
}

/// Samples until the process ends, the time is over, or a signal comes. Prints first that calls
/// are not recorded.
pub fn sample(
    error: &TraceError,
    span: Option<Duration>,
    mut subject: Subject,
    cancel: &Cancel,
) -> Result<Told, Failure> {
    let refusal = refusal(error);
    to_standard_error(&refusal.to_text());
    to_standard_error("takeup: cannot record system calls; sampling /proc instead\n");
    let mut sampler = Sampler::begin(&[subject.pid()]);
    subject.release()?;
    let begun = Instant::now();
    let mut is_stopped = false;
    while subject.runs_still() {
        is_stopped = cancel.check().is_err();
        if is_stopped || span.is_some_and(|span| begun.elapsed() >= span) {
            break;
        }
        std::thread::sleep(sampler.step().min(STEP));
    }
    let (sampled, failed) = match &subject {
        Subject::Running(_) => (sampler.finish(), Ok(None)),
        Subject::Started { .. } => sampler.finish_with(subject.pid(), || subject.end()),
    };
    let failed = failed?;
    Ok(Told { sampled, why: refusal.message().to_owned(), failed, is_stopped })
}

/// Prints the samples.
pub fn print(arguments: &CaptureArgs, told: &Told) -> Result<ExitCode, Failure> {
    if arguments.json {
        let mut document = report::sampled::document(&told.sampled, &told.why);
        document["command"] = json!("capture");
        document["failed"] = json!(told.failed);
        document["is_stopped"] = json!(told.is_stopped);
        Made::default().add_to(&mut document);
        to_standard_output(format!("{document:#}\n").as_bytes())?;
    } else {
        let text = report::sampled::text(&told.sampled, &told.why, colour(&std::io::stdout()));
        to_standard_output(text.as_bytes())?;
    }
    let stopped = "the report covers the time until then";
    Ok(how_it_went(told.failed.as_deref(), told.is_stopped.then_some(stopped)))
}
