//! `takeup plan`: time, tapes and stops of a backup, before anything is written.

use std::process::ExitCode;

use arguments::plan::PlanArgs;
use flow::cancel::Cancel;
use report::plan::Details;
use service::failure::Failure;
use service::outcome::Outcome;
use service::output_file::OutputFile;
use service::plan::plan;

use crate::outcome::{SummaryPlace, finish, to_standard_output};

/// Runs the command.
pub fn run(arguments: &PlanArgs) -> ExitCode {
    finish(outcome(arguments), "plan", &arguments.common, SummaryPlace::Output)
}

fn outcome(arguments: &PlanArgs) -> Result<Outcome, Failure> {
    let common = &arguments.common;
    let request = arguments.request();
    let chart = arguments.chart.as_deref().map(OutputFile::open).transpose()?;
    let cancel = Cancel::new();
    if !request.paths.is_empty() {
        crate::interrupt::watch(&cancel);
    }
    let planned = plan(&request, &cancel)?;
    let mut line = String::new();
    if let (Some(mut file), Some(path)) = (chart, &arguments.chart) {
        let drawn = report::plan::chart(&planned)?;
        file.write(&drawn)?;
        file.complete()?;
        line = report::page::wrote(path, drawn.len() as u64);
    }
    if common.json {
        let document = service::document(&planned.answer());
        to_standard_output(format!("{document:#}\n").as_bytes())?;
    } else if !common.quiet {
        let style = crate::terminal::style(&std::io::stdout());
        let details = if arguments.parameters { Details::Parameters } else { Details::None };
        let text = report::plan::text(&planned, details, style) + &line;
        to_standard_output(text.as_bytes())?;
    }
    Ok(planned.outcome())
}
