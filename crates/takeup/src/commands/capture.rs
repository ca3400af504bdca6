//! `takeup capture`: records how a process uses its files.

use std::process::ExitCode;

use arguments::capture::{CaptureArgs, guard_command};
use flow::cancel::Cancel;
use report::captured::devices_text;
use service::capture::{CaptureDone, CaptureObserver, Capturing, Together, leftovers};
use service::failure::Failure;
use service::outcome::Outcome;

use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &CaptureArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let outcome = if arguments.guard {
        let tracefs = arguments.tracefs.as_deref();
        Ok(leftovers::guard(tracefs, std::io::stdin().lock(), std::io::stdout()))
    } else {
        answer(arguments, form)
    };
    end(outcome, "capture", form)
}

fn answer(arguments: &CaptureArgs, form: Form) -> Result<Outcome, Failure> {
    let request = arguments.request();
    let capturing = Capturing::prepare(&request)?;
    if let Some(path) = capturing.cut_record() {
        to_standard_error(&report::watch::cut(path));
    }
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let done = capturing.run(guard_command, &cancel, &mut Sampling)?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&done.answer())),
        Form::Text => text(&done),
    };
    to_standard_output(text.as_bytes())?;
    if let Some(remark) = report::captures::remark(&done.end()) {
        to_standard_error(&remark);
    }
    for failure in done.failures() {
        to_standard_error(&failure.to_text());
    }
    Ok(done.outcome())
}

fn text(done: &CaptureDone) -> String {
    let style = style(&std::io::stdout());
    match done {
        CaptureDone::Calls(calls) => {
            let captured = &calls.captured;
            report::captures::text(&captured.profile, style)
                + &devices_text(&Together::of(captured), style)
                + &report::captures::job_text(&calls.job, style)
        }
        CaptureDone::Samples(samples) => {
            report::sampled::text(&samples.sampled, &samples.why, style)
        }
    }
}

/// Says that `/proc` is sampled, before that takes its time.
struct Sampling;

impl CaptureObserver for Sampling {
    fn samples_instead(&mut self, why: &Failure) {
        to_standard_error(&why.to_text());
        to_standard_error(report::sampled::INSTEAD);
    }
}
