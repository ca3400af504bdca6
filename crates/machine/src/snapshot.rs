//! A machine as its files and a few programs show it: this one, or one that was recorded.
//!
//! A recorded machine is a folder with what was copied of `/proc`, `/sys`, `/dev`, `/etc` and
//! `/usr/lib`, links among it, and what programs answered in files below `answers`, so that what
//! was seen elsewhere is told in the same words as what is here. What this user may not read is
//! remembered and is no error.

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

/// No file that is read is longer, and no answer of a program.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 4096;
/// A program that has not answered by then is ended.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// All of them together: disks that hang are many at a time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// A look at whether it has, so often.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A machine that is looked at.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    is_recorded: bool,
    not_readable: RefCell<BTreeSet<PathBuf>>,
    /// The time that is left to programs.
    left: Cell<Duration>,
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        Machine::below(PathBuf::from("/"), false)
    }

    /// The one that was copied into a folder.
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

    /// Whether it is a copy.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Where a path of the machine is to be read.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The path on the machine of what is read there.
    pub fn shown(&self, place: &Path) -> PathBuf {
        match place.strip_prefix(&self.root) {
            Ok(path) => Path::new("/").join(path),
            Err(_) => place.to_owned(),
        }
    }

    /// The text of a file without blanks around it; none where it cannot be read.
    pub fn text(&self, place: &Path) -> Option<String> {
        let bytes = self.bytes(place)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The same where it is not empty.
    pub fn word(&self, place: &Path) -> Option<String> {
        self.text(place).filter(|text| !text.is_empty())
    }

    /// The bytes of a file, as far as the limit.
    pub fn bytes(&self, place: &Path) -> Option<Vec<u8>> {
        let read = || {
            let mut bytes = Vec::new();
            File::open(place)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| self.note(place, &error)).ok()
    }

    /// What a folder holds, sorted by name; nothing where it cannot be read.
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

    /// What could not be read for want of rights so far.
    pub fn not_readable(&self) -> Vec<PathBuf> {
        self.not_readable.borrow().iter().cloned().collect()
    }

    /// What a program writes, whatever its exit code; none where it is not there, or does not end
    /// within ten seconds, or where such programs took half a minute before. A recorded machine has
    /// it in the file `answers/PROGRAM ARGUMENTS`, slashes written as `!`.
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
            // One that waits for a device that hangs cannot be ended, and is not waited for.
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
