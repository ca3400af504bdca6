//! A machine as its files and a few programs show it: this machine, or a recorded one.
//!
//! A recorded machine is a folder with copies of files and links of `/proc`, `/sys`, `/dev`, `/etc`
//! and `/usr/lib`, and with the output of programs in files below `answers`. So a machine recorded
//! elsewhere is reported in the same words as this one. Files that this user may not read are
//! remembered and are not an error.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// Longest file and longest output of a program that is read.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Most entries of a folder that are read.
const ENTRIES_MAX: usize = 4096;
/// A program that has not answered by then is killed.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Limit for all programs together: often many disks hang at once.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How often to check whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The machine that is inspected.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    is_recorded: bool,
    not_readable: RefCell<BTreeSet<PathBuf>>,
    /// The time left for programs.
    left: Cell<Duration>,
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        Machine::below(PathBuf::from("/"), false)
    }

    /// The machine recorded in a folder.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn recorded(folder: &Path) -> io::Result<Machine> {
        Ok(Machine::below(fs::canonicalize(folder)?, true))
    }

    fn below(root: PathBuf, is_recorded: bool) -> Machine {
        let left = Cell::new(ANSWERS_WITHIN);
        Machine { root, is_recorded, not_readable: RefCell::default(), left }
    }

    /// Whether this is a recorded machine.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// The path at which a path of the machine can be read.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The path on the machine of what is read at `place`.
    pub fn shown(&self, place: &Path) -> PathBuf {
        match place.strip_prefix(&self.root) {
            Ok(path) => Path::new("/").join(path),
            Err(_) => place.to_owned(),
        }
    }

    /// The text of a file, trimmed; `None` if it cannot be read.
    pub fn text(&self, place: &Path) -> Option<String> {
        let bytes = self.bytes(place)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Like [`Machine::text`]; `None` if it is empty.
    pub fn word(&self, place: &Path) -> Option<String> {
        self.text(place).filter(|text| !text.is_empty())
    }

    /// The bytes of a file, up to the limit.
    pub fn bytes(&self, place: &Path) -> Option<Vec<u8>> {
        let read = || {
            let mut bytes = Vec::new();
            File::open(place)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| self.note(place, &error)).ok()
    }

    /// The entries of a folder, sorted by name; empty if it cannot be read.
    pub fn entries(&self, folder: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.note(folder, &error);
                return Vec::new();
            }
        };
        let mut paths: Vec<PathBuf> =
            entries.flatten().take(ENTRIES_MAX).map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    fn note(&self, place: &Path, error: &io::Error) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.not_readable.borrow_mut().insert(self.shown(place));
        }
    }

    /// The files that could not be read so far for lack of rights.
    pub fn not_readable(&self) -> Vec<PathBuf> {
        self.not_readable.borrow().iter().cloned().collect()
    }

    /// The output of a program, whatever its exit code. `None` if the program is missing, does not
    /// end within ten seconds, or such programs took 30 seconds before. A recorded machine has the
    /// output in the file `answers/PROGRAM ARGUMENTS`, with slashes written as `!`.
    pub fn answer(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let bytes = if self.is_recorded {
            let name = format!("{program} {}", arguments.join(" ")).replace('/', "!");
            self.bytes(&self.at("answers").join(name))?
        } else {
            let left = self.left.get();
            if left.is_zero() {
                return None;
            }
            let begun = Instant::now();
            let answer = output(program, arguments, left.min(ANSWER_WITHIN));
            self.left.set(left.saturating_sub(begun.elapsed()));
            answer.ok()?
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What a program writes to its standard output.
fn output(program: &str, arguments: &[&str], within: Duration) -> io::Result<Vec<u8>> {
    let ends = Instant::now() + within;
    let mut child = crate::programs::command(program)?
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let read = read_until(&mut child, ends);
    while child.try_wait()?.is_none() {
        if read.is_err() || Instant::now() >= ends {
            // A process that waits for a hanging device cannot be killed, so we do not wait for it.
            let _ = child.kill();
            let _ = child.try_wait();
            break;
        }
        sleep(LOOK_EVERY);
    }
    read
}

fn read_until(child: &mut Child, ends: Instant) -> io::Result<Vec<u8>> {
    let mut pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let flags = rustix::fs::fcntl_getfl(&pipe)?;
    rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 8192]);
    while (bytes.len() as u64) < TEXT_BYTES_MAX {
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= ends {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                sleep(LOOK_EVERY);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_answer_are_missing_or_are_ended() {
        let long = Duration::from_secs(60);
        assert_eq!(output("sh", &["-c", "echo a; exit 4"], long).unwrap(), b"a\n");
        assert!(output("no-such-program-at-all", &[], long).is_err());
        let never = output("sleep", &["600"], Duration::from_millis(50));
        assert_eq!(never.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let endless = output("yes", &[], long);
        assert_eq!(endless.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn programs_have_some_time_together() {
        let machine = Machine::this();
        assert_eq!(machine.answer("sh", &["-c", "echo a"]).as_deref(), Some("a\n"));
        assert!(machine.left.get() < ANSWERS_WITHIN);
        machine.left.set(Duration::ZERO);
        assert_eq!(machine.answer("sh", &["-c", "echo a"]), None);
    }

    #[test]
    fn a_recorded_machine_is_read_below_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("answers")).unwrap();
        fs::write(folder.path().join("answers/smartctl -H !dev!sda"), "fine\n").unwrap();
        let machine = Machine::recorded(folder.path()).unwrap();
        assert_eq!(machine.answer("smartctl", &["-H", "/dev/sda"]).as_deref(), Some("fine\n"));
        assert_eq!(machine.answer("sh", &["-c", "echo a"]), None);
        let place = machine.at("/sys/block");
        assert_eq!(machine.shown(&place), Path::new("/sys/block"));
        assert_eq!((machine.text(&place), machine.entries(&place)), (None, Vec::new()));
        assert!(Machine::recorded(&folder.path().join("not there")).is_err());
    }
}
