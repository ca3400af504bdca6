//! Programs that run beside a test and end with it.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Databases refuse to run as root. This user and group own nothing.
const NOBODY: u32 = 65_534;
/// Longest time for a server to start or stop, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder that the user of the servers may write to.
pub fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("takeup-db").tempdir().unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

/// A program of a database, run by the ordinary user of the servers. It ends with the test, even if
/// the test is killed.
pub fn unprivileged(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    let nobody = NOBODY.to_string();
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
    command.arg(program).current_dir(folder).stdin(Stdio::null());
    // Without settings of the user who runs the tests.
    command.env_clear().env("LC_ALL", "C").env("HOME", folder);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The output of a program that must succeed.
#[track_caller]
pub fn succeeds(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{errors}");
    String::from_utf8(stdout).unwrap().trim().to_owned()
}

/// A server; ends with it.
pub struct Server {
    process: Child,
    /// The signal that stops it at once.
    stop: Signal,
}

impl Server {
    /// Starts the server and waits until `answers`. Its output goes to `log`.
    pub fn start(
        mut command: Command,
        log: &Path,
        stop: Signal,
        answers: impl Fn() -> bool,
    ) -> Server {
        let file = fs::File::create(log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let mut server = Server { process: command.spawn().unwrap(), stop };
        let begin = Instant::now();
        while !answers() {
            let ended = server.process.try_wait().unwrap();
            let said = || fs::read_to_string(log).unwrap_or_default();
            assert!(ended.is_none(), "{command:?} has ended: {ended:?}\n{}", said());
            assert!(begin.elapsed() < LIMIT, "{command:?} does not answer\n{}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Its process number; its other processes are children of this one.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        // The server may have ended already.
        let _ = kill(pid, self.stop);
        let begin = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if begin.elapsed() > LIMIT {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A load that goes on until it is dropped.
pub struct Load(Child);

impl Load {
    /// Runs the command again and again, with this standard input.
    pub fn of(mut command: Command) -> Load {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Load(command.process_group(0).spawn().unwrap())
    }

    /// The load still runs, so it has not failed.
    #[track_caller]
    pub fn goes_on(&mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "the load has ended");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}
