//! The lock of a folder of sets: one process writes into it at a time.
//!
//! The lock is that of an open file, which dies with its process. Nothing is written into the file:
//! who holds it the kernel knows, for those who have to wait.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use base::escape::{escape, escape_path};
use base::format::long_time;
use flow::cancel::Cancel;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::unusable;
use crate::failure::Failure;

/// The lock of a folder, which dies with the process that holds it.
pub(crate) const LOCK: &str = ".takeup-lock";
/// Most bytes of the holder's command line that are shown.
const COMMAND_BYTES_MAX: usize = 200;
/// How often a wait tries again, beside what a try takes.
const POLL: Duration = Duration::from_millis(200);

/// A folder of sets that no other process writes into, as long as this lives.
pub(crate) struct FolderLock {
    _file: File,
}

/// A wait for a folder.
pub(crate) struct LockWait<'a> {
    pub(crate) longest: Duration,
    pub(crate) cancel: &'a Cancel,
    /// Is told once who is waited for.
    pub(crate) tell: &'a dyn Fn(String),
}

impl FolderLock {
    /// Locks a folder, which is made if it is missing.
    pub(crate) fn take(folder: &Path) -> Result<FolderLock, Failure> {
        make(folder)?;
        FolderLock::take_file(folder, LOCK)
    }

    /// Locks what is known of the tapes of a job.
    pub(crate) fn take_for_job(folder: &Path, job: &str) -> Result<FolderLock, Failure> {
        FolderLock::take_file(folder, &format!("{LOCK}-{job}"))
    }

    fn take_file(folder: &Path, name: &str) -> Result<FolderLock, Failure> {
        let file = open(folder, name)?;
        if try_lock(&file, folder)? {
            return Ok(FolderLock { _file: file });
        }
        let message = format!("another backup writes into {}", in_use(folder, name));
        Err(Failure::of(message, Some("try again when it has ended")))
    }

    /// The same, and waits for the process that has it.
    pub(crate) fn wait(folder: &Path, wait: &LockWait<'_>) -> Result<FolderLock, Failure> {
        make(folder)?;
        let (file, begun) = (open(folder, LOCK)?, Instant::now());
        let mut is_told = false;
        while !try_lock(&file, folder)? {
            if begun.elapsed() >= wait.longest {
                let waited = long_time(wait.longest.as_secs_f64());
                let message = format!(
                    "another backup writes into {}, for over {waited}",
                    in_use(folder, LOCK)
                );
                let hint = "run it again when that has ended, or let the job wait for longer: \
                            wait-for-target";
                return Err(Failure::of(message, Some(hint)));
            }
            if !is_told {
                let folder = in_use(folder, LOCK);
                (wait.tell)(format!("waiting for another backup, which writes into {folder}"));
                is_told = true;
            }
            wait.cancel.check().map_err(|error| Failure::new(&error, None))?;
            std::thread::sleep(POLL);
        }
        Ok(FolderLock { _file: file })
    }
}

fn make(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        return Ok(());
    }
    let made = std::fs::create_dir(folder);
    made.map_err(|error| unusable("cannot make the folder", folder, &error))
}

fn open(folder: &Path, name: &str) -> Result<File, Failure> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).open(folder.join(name));
    file.map_err(|error| unusable("cannot lock the folder", folder, &error))
}

fn try_lock(file: &File, folder: &Path) -> Result<bool, Failure> {
    match base::interruptible::lock_unless_in_use(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(unusable("cannot lock the folder", folder, &error.into())),
    }
}

/// The folder, and who holds it, where the kernel of this machine says so.
fn in_use(folder: &Path, name: &str) -> String {
    let holder = || {
        let lock = std::fs::metadata(folder.join(name)).ok()?;
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        holder_of(&locks, lock.dev(), lock.ino())
    };
    match holder() {
        None => escape_path(folder),
        Some(process) => format!("{} ({})", escape_path(folder), told(process)),
    }
}

/// A process with the begin of its command line.
fn told(process: u32) -> String {
    let mut command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.truncate(COMMAND_BYTES_MAX);
    let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(escape).collect();
    match &words[..] {
        [] => format!("process {process}"),
        words => format!("process {process}: {}", words.join(" ")),
    }
}

/// The process that has a lock on a file (`/proc/locks`, proc(5)).
fn holder_of(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    let mut holders = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match &fields[..] {
            // One that waits has an arrow in front.
            [_, "FLOCK", _, _, process, at, ..] if *at == place => process.parse().ok(),
            _ => None,
        }
    });
    holders.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_process_with_the_lock_on_the_file() {
        let locks = "\
1: POSIX  ADVISORY  WRITE 811 00:19:7 0 EOF
2: FLOCK  ADVISORY  WRITE 812 08:11:7 0 EOF
2: -> FLOCK  ADVISORY  WRITE 813 00:19:7 0 EOF
3: FLOCK  ADVISORY  WRITE 814 00:19:7 0 EOF
4: OFDLCK ADVISORY  WRITE -1 00:19:7 0 EOF
";
        let device = rustix::fs::makedev(0, 0x19);
        assert_eq!(holder_of(locks, device, 7), Some(814));
        assert_eq!(holder_of(locks, device, 8), None);
        assert_eq!(holder_of("garbage\n5: FLOCK", device, 7), None);
    }
}
