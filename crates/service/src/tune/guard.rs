//! The guard: a process of its own that outlives the terminal and reverts a change on trial.
//!
//! It starts before the change is written to the list, which names it. It begins to wait once the
//! change is done, or when the parent process ends. The program that is the guard has its own
//! session, no open files of its parent, and `/` as its folder. If it dies, nothing is lost: the
//! time is in the list (`storage::settings::changes`).
//!
//! A systemd timer would also survive the end of all processes of a user. But systemd is not on
//! every machine, and a timer would have to start this program as well to use the list.

use std::io::Read;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use machine::processes::Process;
use storage::StorageError;
use storage::settings::changes::{Changes, Reverted, SettingsChange, ThisMachine, remembered};

use crate::failure::Failure;

/// How often it checks whether the change is confirmed or reverted already.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After this many failed attempts, the next command has to restore the change.
const TRIES_MAX: u32 = 24 * 3600;
/// The byte that it writes to standard output once it holds nothing of its parent.
pub const READY: u8 = b'r';

/// A guard that has not begun yet.
#[derive(Debug)]
pub struct TrialGuard {
    pub process: Process,
    /// It begins when this is closed.
    _begin: ChildStdin,
}

impl TrialGuard {
    /// Starts one with this command, and waits until it is independent.
    ///
    /// # Errors
    /// When it cannot start: then nothing must be changed on trial.
    pub fn start(command: Command) -> Result<TrialGuard, Failure> {
        let failed = |why: &str| {
            Failure::of(
                format!("cannot start the guard process: {why}; nothing was changed"),
                Some("leave out --for: the change stays until `takeup tune revert`"),
            )
        };
        let mut command = command;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command
            .current_dir("/")
            .spawn()
            .map_err(|error| failed(&crate::failure::with_causes(&error)))?;
        let mut said = [0];
        let ready = child.stdout.take().map(|mut out| out.read(&mut said));
        let process = Process::of(child.id());
        match (ready, process, child.stdin.take()) {
            (Some(Ok(1)), Some(process), Some(begin)) if said == [READY] => {
                Ok(TrialGuard { process, _begin: begin })
            }
            _ => Err(failed("it ended at once")),
        }
    }
}

/// How the guard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardEnd {
    /// Nothing is left to restore.
    Done,
    /// The next command has to restore the change.
    Failed,
}

/// Waits until nothing is left to restore in a list. When `ended` is set, it ends the trial:
/// without a guard, the change would stay.
pub fn stand(list: &Path, ended: &AtomicBool) -> GuardEnd {
    let Some(own) = Process::of(std::process::id()) else { return GuardEnd::Failed };
    let is_own = |change: &SettingsChange| change.trial.as_ref().is_some_and(|it| it.guard == own);
    let mut tries = 0;
    while tries < TRIES_MAX {
        if ended.load(Ordering::Relaxed) {
            let is_back = put_back(list, |changes| changes.put_back_guarded_by(&own));
            return if is_back { GuardEnd::Done } else { GuardEnd::Failed };
        }
        let Ok(changes) = remembered(list) else {
            tries += 1;
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        let left = changes.iter().filter(|it| is_own(it)).filter_map(|it| it.left(&ThisMachine));
        match left.min() {
            None => return GuardEnd::Done,
            Some(Duration::ZERO) if put_back(list, |it| it.put_back_overdue()) => {
                return GuardEnd::Done;
            }
            Some(Duration::ZERO) => {
                tries += 1;
                std::thread::sleep(LOOK_EVERY);
            }
            Some(left) => std::thread::sleep(left.min(LOOK_EVERY)),
        }
    }
    GuardEnd::Failed
}

/// Whether all that was overdue is restored, except devices that are gone. Fails while an
/// experiment has settings changed, because the experiment would restore the values that it found.
fn put_back(
    list: &Path,
    which: impl FnOnce(&mut Changes<'_>) -> Result<Reverted, StorageError>,
) -> bool {
    let done = || -> Option<()> {
        crate::state::recovered().ok()?;
        let mut changes = Changes::open(&ThisMachine, list).ok()?;
        which(&mut changes).ok().map(|_| ())
    };
    done().is_some()
}
