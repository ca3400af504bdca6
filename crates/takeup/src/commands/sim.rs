//! `takeup sim`: a virtual drive or disk for any program.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use arguments::sim::{DiskArgs, SimArgs, SimCommand, StatusArgs, TapeArgs};
use service::failure::Failure;
use service::outcome::Outcome;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit_code::{FAILED, FailureExitCode as _};
use crate::interrupt::listen;
use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &SimArgs) -> ExitCode {
    let result = match arguments.command() {
        SimCommand::Tape(arguments) => tape(arguments),
        SimCommand::Disk(arguments) => disk(arguments),
        SimCommand::Status(arguments) => return status(arguments),
        SimCommand::Load(arguments) => service::sim::load(&arguments.request()),
        SimCommand::Eject(arguments) => service::sim::eject(&arguments.request()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

fn status(arguments: &StatusArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let answer = || -> Result<Outcome, Failure> {
        let answer = service::sim::status(&arguments.request())?;
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&answer)),
            Form::Text => report::sim::status(&answer, style(&std::io::stdout())),
        };
        to_standard_output(text.as_bytes())?;
        Ok(Outcome::Done)
    };
    end(answer(), "sim status", form)
}

fn tape(arguments: &TapeArgs) -> Result<(), Failure> {
    let mut mounted = service::sim::tape::mount(&arguments.request())?;
    let mut unmounter = mounted.unmounter();
    unmount_on_signal("drive", move || unmounter.unmount());
    to_standard_error(&report::sim::tape(&mounted));
    mounted.run()
}

/// Mounts the disk and waits until it is unmounted. What a script needs goes to standard output.
fn disk(arguments: &DiskArgs) -> Result<(), Failure> {
    let mounted = service::sim::disk::mount(&arguments.request())?;
    let unmounter = mounted.unmounter();
    unmount_on_signal("disk", move || unmounter.unmount());
    if arguments.json {
        let document = service::document(&mounted.answer());
        to_standard_output(format!("{document}\n").as_bytes())?;
    } else {
        to_standard_error(&report::sim::disk(&mounted));
        if let Some(path) = mounted.loop_path() {
            to_standard_output(format!("{}\n", path.display()).as_bytes())?;
        }
    }
    mounted.wait()
}

/// Time for programs to close the drive after a signal, before takeup ends.
const HOLDERS_WAIT: Duration = Duration::from_secs(3);

fn unmount_on_signal(
    what: &'static str,
    mut unmount: impl FnMut() -> std::io::Result<()> + Send + 'static,
) {
    let Ok(mut signals) = listen(&[SIGINT, SIGTERM, SIGHUP]) else { return };
    let watch = move || {
        if signals.forever().next().is_none() {
            return;
        }
        if let Err(error) = unmount() {
            to_standard_error(&format!("takeup: cannot unmount: {error}\n"));
        }
        // The connection ends with the last open file. Everything is intact up to the last request,
        // so programs that keep a file open need not be waited for.
        thread::sleep(HOLDERS_WAIT);
        to_standard_error(&format!("takeup: the {what} was still in use\n"));
        std::process::exit(FAILED.into());
    };
    let _ = thread::Builder::new().name("takeup-signals".to_owned()).spawn(watch);
}
