//! The guard: a process of this program that outlives the terminal and reverts a change on trial.
//!
//! It starts before the change is written to the list, which names it. It begins to wait once the
//! change is done, or when the parent process ends. It has its own session, so that it survives
//! when the terminal closes; no open files of its parent, so that no pipe waits for it; and `/` as
//! its folder, so that it keeps nothing mounted. If it dies, nothing is lost: the time is in the
//! list (`storage::settings::changes`).
//!
//! A systemd timer would also survive the end of all processes of a user. But systemd is not on
//! every machine, and a timer would have to start this program as well to use the list.
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

/// How often it checks whether the change is confirmed or reverted already.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After this many failed attempts, the next command has to restore the change.
const TRIES_MAX: u32 = 24 * 3600;
/// The byte that it writes once it holds nothing of its parent.
const READY: u8 = b'r';

/// A guard that has not begun yet.
pub struct Guard {
    /// Its process.
    pub process: Process,
    /// It begins when this is closed.
    _begin: ChildStdin,
}

impl Guard {
    /// Starts one, and waits until it is independent.
    ///
    /// # Errors
    /// When it cannot start: then nothing must be changed on trial.
    pub fn start(list: &Path) -> Result<Guard, Failure> {
        let failed = |why: &str| {
            Failure::of(
                format!("cannot start the guard process: {why}; nothing was changed"),
                Some("leave out --for: the change stays until `takeup tune revert`"),
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
        // The running program, even if its file was replaced or removed.
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
    // Fails only if this process already leads a session.
    let _ = rustix::process::setsid();
    // Only flags, because the guard keeps no file open.
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
    out.write_all(&[READY])?;
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

/// Waits until nothing is left to restore. A signal that ends the guard ends the trial: without a
/// guard, the change would stay.
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

/// Whether all that was overdue is restored, except devices that are gone. Fails while an
/// experiment has settings changed, because the experiment would restore the values that it found.
fn put_back(
    list: &Path,
    which: impl FnOnce(&mut Changes<'_>) -> Result<Reverted, ChangeError>,
) -> bool {
    let done = || -> Option<()> {
        service::state::recovered().ok()?;
        let mut changes = Changes::open(&ThisMachine, list).ok()?;
        which(&mut changes).ok().map(|_| ())
    };
    done().is_some()
}
