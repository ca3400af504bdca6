//! `takeup browse`: folders as of a day, on the whole terminal, and the restore of what was marked.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use arguments::browse::BrowseArgs;
use arguments::restore::RestoreArgs;
use base::escape::escape_path;
use clap::{Args as _, Command, FromArgMatches as _};
use experiment::judgement::quoted;
use screen::browse::BrowseRestore;
use screen::browse::run::{BrowseEnd, browse};
use screen::draw::Look;
use screen::run::RunError;
use service::catalog::Browser;
use service::failure::{Failure, with_causes};

use crate::exit_code::FailureExitCode as _;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;

/// The hint if there is no terminal.
const OTHER_FORMS: &str = "`takeup catalog ls` prints folders, and `takeup catalog find` versions";

/// Runs the command.
pub fn run(arguments: &BrowseArgs) -> ExitCode {
    match show(arguments) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(wanted)) => restore(&wanted),
        Err(failure) => {
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

/// Shows the catalogue; returns what the user wants back.
fn show(arguments: &BrowseArgs) -> Result<Option<BrowseRestore>, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::of("there is no terminal to show folders on", Some(OTHER_FORMS)));
    }
    let (browser, _) =
        Browser::open(arguments.catalog.as_deref(), arguments.from.as_deref(), |caught_up| {
            to_standard_error(&report::catalog::caught_up(caught_up));
        })?;
    let look = Look { title: "takeup browse".to_owned(), colour: colour(&io::stdout()) };
    match browse(&browser, &look) {
        Ok(BrowseEnd::Quit) => Ok(None),
        Ok(BrowseEnd::Restore(wanted)) => Ok(Some(wanted)),
        Ok(BrowseEnd::Signal(signal)) => {
            // End as if the signal had not been caught.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Ok(None)
        }
        Err(RunError::Source(failure)) => Err(failure),
        Err(RunError::Terminal(error)) => {
            let message = format!("use the terminal: {}", with_causes(&error));
            Err(Failure::of(message, Some(OTHER_FORMS)))
        }
    }
}

/// Restores as the command that is printed first would.
fn restore(wanted: &BrowseRestore) -> ExitCode {
    let BrowseRestore { from, into, paths } = wanted;
    let shown = |word: &Path| quoted(&escape_path(word));
    let mut typed: Vec<OsString> = vec!["takeup restore".into(), from.from.clone().into()];
    let mut text = format!("takeup restore {}", shown(&from.from));
    if let Some(set) = &from.set {
        typed.extend(["--set".into(), set.into()]);
        text.push_str(&format!(" --set {set}"));
    }
    // In one word, since it may begin with a minus.
    let mut option = OsString::from("--into=");
    option.push(into);
    typed.extend([option, "--".into()]);
    typed.extend(paths.iter().map(|path| path.clone().into()));
    let words: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    to_standard_error(&format!("{text} --into {} {}\n", shown(into), words.join(" ")));
    let command = RestoreArgs::augment_args(Command::default().name("takeup restore"));
    let parsed = command
        .try_get_matches_from(typed)
        .and_then(|matches| RestoreArgs::from_arg_matches(&matches));
    match parsed {
        Ok(arguments) => super::restore::run(&arguments),
        Err(error) => crate::misuse::usage(error),
    }
}
