//! `takeup verify`: reads an archive back, and compares it with the live files.

use std::process::ExitCode;

use arguments::verify::VerifyArgs;
use flow::cancel::Cancel;
use service::failure::Failure;
use service::outcome::Outcome;
use service::verify::verify;

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, print};
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &VerifyArgs) -> ExitCode {
    finish(verify_archive(arguments), "verify", &arguments.common, SummaryPlace::Output)
}

fn verify_archive(arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let request = arguments.request();
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let result = verify(&request, &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    let done = result?;
    let end = report::verify::end(&done);
    print(&end, &done.answer(), &arguments.common, SummaryPlace::Output)?;
    Ok(done.outcome())
}
