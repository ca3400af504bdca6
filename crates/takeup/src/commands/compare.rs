//! `takeup compare`: two experiments, or two records of a watch, side by side.

use std::path::Path;
use std::process::ExitCode;

use arguments::compare::CompareArgs;
use report::experiments::{comparison_page, comparison_text};
use report::page::{Page, wrote};
use service::compare::{CompareRequest, ComparedFiles, ComparedPair, compared};
use service::failure::Failure;
use service::outcome::Outcome;

use crate::commands::recorded::say_damage;
use crate::outcome::{Form, end, to_standard_output};
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &CompareArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments, form), "compare", form)
}

fn show(arguments: &CompareArgs, form: Form) -> Result<Outcome, Failure> {
    let request = arguments.request();
    let ComparedFiles { what, page } = compared(&request)?;
    if let ComparedPair::Watches { a, b, .. } = &what {
        say_damage(&request.a, a);
        say_damage(&request.b, b);
    }
    let mut line = String::new();
    if let (Some(mut file), Some(path)) = (page, &request.html) {
        let text = page_of(&what, &request).to_html();
        file.write(&text)?;
        file.complete()?;
        line = wrote(path, text.len() as u64);
    }
    let text = match (form, &what) {
        (Form::Json, _) => format!("{:#}\n", service::document(&what.answer())),
        (Form::Text, ComparedPair::Experiments { comparison, .. }) => {
            comparison_text(comparison, style(&std::io::stdout())) + &line
        }
        (Form::Text, ComparedPair::Watches { a, b, comparison }) => {
            report::comparison::text(a, b, comparison, style(&std::io::stdout())) + &line
        }
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn page_of(what: &ComparedPair, request: &CompareRequest) -> Page {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match what {
        ComparedPair::Experiments { a, b, comparison } => comparison_page(a, b, comparison),
        ComparedPair::Watches { a, b, comparison } => {
            let names = [name(&request.a), name(&request.b)];
            report::comparison::page(a, b, comparison, [&names[0], &names[1]])
        }
    }
}
