//! Who puts a change on trial back: a process of this program that outlives the terminal.
//!
//! It is started before the change is written to the list, which names it, and told to begin once
//! the change is done, or by the end of who started it. It has a session of its own, so that no
//! terminal that closes takes it along; nothing of what its caller had open, so that no pipe waits
//! for it; and `/` as its folder, so that nothing stays mounted for it. It holds nothing that
//! matters: whatever becomes of it, the time stands in the list (`storage::settings::changes`).
//!
//! A timer of systemd would outlive more (the end of all processes of a user), but there is not one
//! on every machine, and it knows the list only by starting this program as well.
#![allow(unsafe_code)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use machine::processes::Process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use storage::settings::changes::{
    ChangeError, Changes, Reverted, SettingsChange, ThisMachine, remembered,
};

use crate::exit_code::FAILED;
use service::failure::Failure;

/// Wait for the end of a trial (started by `takeup tune set --for`)
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// The list of changes
    list: PathBuf,
}

/// How often it looks whether the change is confirmed or taken back already.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A change that could not be put back so often is left to the next command.
const TRIES_MAX: u32 = 24 * 3600;
/// What it says once nothing of its caller is left to it.
const READY: u8 = b'r';

/// A guard that waits to be told to begin.
pub struct Guard {
    /// Who it is.
    pub process: Process,
    /// It begins when this is closed.
    _begin: ChildStdin,
}

impl Guard {
    /// Starts one, and waits until it is on its own.
    ///
    /// # Errors
    /// When there is none: then nothing ought to be changed for a while.
    pub fn start(list: &Path) -> Result<Guard, Failure> {
        let failed = |why: &str| {
            Failure::of(
                format!("nobody could be started to put it back: {why}; nothing was changed"),
                Some("without --for it stays until `takeup tune revert`"),
            )
        };
        let mut child =
            Guard::spawn(list).map_err(|error| failed(&service::failure::with_causes(&error)))?;
        let mut said = [0];
        let ready = child.stdout.take().map(|mut out| out.read(&mut said));
        let process = Process::of(child.id());
        match (ready, process, child.stdin.take()) {
            (Some(Ok(1)), Some(process), Some(begin)) if said == [READY] => {
                Ok(Guard { process, _begin: begin })
            }
            _ => Err(failed("it ended at once")),
        }
    }

    fn spawn(list: &Path) -> std::io::Result<Child> {
        // The program as it runs, whatever has become of its file.
        Command::new("/proc/self/exe")
            .arg0("takeup")
            .args(["tune", "guard"])
            .arg(list)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
    }
}

/// Runs the command.
pub fn run(arguments: &GuardArgs) -> ExitCode {
    close_inherited();
    // Who has a session already has no terminal to lose.
    let _ = rustix::process::setsid();
    // Flags alone: it keeps nothing open.
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&ended));
    }
    let told = say_ready().and_then(|()| wait_for_begin());
    match told {
        Ok(()) => watch(&arguments.list, &ended),
        Err(_) => ExitCode::from(FAILED),
    }
}

/// Closes all but the three that every process has.
fn close_inherited() {
    let entries: Vec<i32> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in entries {
        // The folder above is among them, and closed already.
        if fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
            continue;
        }
        // SAFETY: `main` has only parsed the arguments, so that nothing of this process owns it:
        // it is open, and the caller's.
        unsafe { rustix::io::close(number) };
    }
}

/// Says so, and then has no standard output that anybody could wait for.
fn say_ready() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(&[READY])?;
    out.flush()?;
    let nothing = fs::File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}

fn wait_for_begin() -> std::io::Result<()> {
    // No more than the end of it comes.
    std::io::stdin().take(1).read_to_end(&mut Vec::new())?;
    let nothing = fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&nothing)?)
}

/// Until nothing of what it is to put back is left. Whoever ends it ends the trial: what nobody
/// waits for any more would stay.
fn watch(list: &Path, ended: &AtomicBool) -> ExitCode {
    let Some(own) = Process::of(std::process::id()) else { return ExitCode::from(FAILED) };
    let is_own = |change: &SettingsChange| change.trial.as_ref().is_some_and(|it| it.guard == own);
    let mut tries = 0;
    while tries < TRIES_MAX {
        if ended.load(Ordering::Relaxed) {
            let is_back = put_back(list, |changes| changes.put_back_guarded_by(&own));
            return if is_back { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
        }
        let Ok(changes) = remembered(list) else {
            tries += 1;
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        let left = changes.iter().filter(|it| is_own(it)).filter_map(|it| it.left(&ThisMachine));
        match left.min() {
            None => return ExitCode::SUCCESS,
            Some(Duration::ZERO) if put_back(list, |it| it.put_back_overdue()) => {
                return ExitCode::SUCCESS;
            }
            Some(Duration::ZERO) => {
                tries += 1;
                std::thread::sleep(LOOK_EVERY);
            }
            Some(left) => std::thread::sleep(left.min(LOOK_EVERY)),
        }
    }
    ExitCode::from(FAILED)
}

/// Whether all that was overdue is back, but for devices that are gone. An experiment that has
/// settings changed is waited for: it would put back what it found.
fn put_back(
    list: &Path,
    which: impl FnOnce(&mut Changes<'_>) -> Result<Reverted, ChangeError>,
) -> bool {
    let done = || -> Option<()> {
        crate::commands::bench::recovered().ok()?;
        let mut changes = Changes::open(&ThisMachine, list).ok()?;
        which(&mut changes).ok().map(|_| ())
    };
    done().is_some()
}
