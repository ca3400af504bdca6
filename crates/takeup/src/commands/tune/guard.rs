//! The guard: a process of this program that outlives the terminal and reverts a change on trial.
//!
//! It has its own session, so that it survives when the terminal closes; no open files of its
//! parent, so that no pipe waits for it; and `/` as its folder, so that it keeps nothing mounted.
//! `service::tune::guard` starts it and does the rest.
#![allow(unsafe_code)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arguments::tune::TuneGuardArgs;
use service::tune::guard::{self, GuardEnd};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit_code::FAILED;

/// The command that starts it: the running program, even if its file was replaced or removed.
pub fn command(list: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("takeup").args(["tune", "guard"]).arg(list);
    command
}

/// Runs the command.
pub fn run(arguments: &TuneGuardArgs) -> ExitCode {
    close_inherited();
    // Fails only if this process already leads a session.
    let _ = rustix::process::setsid();
    // Only flags, because the guard keeps no file open.
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&ended));
    }
    let told = say_ready().and_then(|()| wait_for_begin());
    match told.map(|()| guard::stand(&arguments.list, &ended)) {
        Ok(GuardEnd::Done) => ExitCode::SUCCESS,
        Ok(GuardEnd::Failed) | Err(_) => ExitCode::from(FAILED),
    }
}

/// Closes all descriptors except the standard three.
fn close_inherited() {
    let entries: Vec<i32> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in entries {
        // The descriptor of the listed folder is among them, and closed already.
        if fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
            continue;
        }
        // SAFETY: `main` has only parsed the arguments, so nothing in this process owns this
        // descriptor: it is open and was inherited from the parent.
        unsafe { rustix::io::close(number) };
    }
}

/// Writes the ready byte, then replaces standard output, so that no reader waits for it.
fn say_ready() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(&[guard::READY])?;
    out.flush()?;
    let nothing = fs::File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}

fn wait_for_begin() -> std::io::Result<()> {
    // Returns when the parent closes the pipe.
    std::io::stdin().take(1).read_to_end(&mut Vec::new())?;
    let nothing = fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&nothing)?)
}
