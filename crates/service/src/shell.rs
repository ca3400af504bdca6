//! A shell command of the user: started, given its input, and ended in time with all that it
//! started.

use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use flow::cancel::{Cancel, Stopped};
use machine::unnamed_file;

/// How long a command may take to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// How often a wait looks for a cancel.
const STEP: Duration = Duration::from_millis(50);

/// A command.
pub(crate) struct Shell<'a> {
    pub(crate) command: &'a str,
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// What it reads from standard input; `None`: nothing.
    pub(crate) input: Option<&'a [u8]>,
    /// Longest time that it may take.
    pub(crate) limit: Option<Duration>,
}

/// Why a command has no exit status.
#[derive(Debug)]
pub(crate) enum ShellError {
    /// It could not be started, or not be waited for.
    Failed(io::Error),
    /// The run was stopped, and the command with it.
    Stopped(Stopped),
    /// It took too long, and was ended.
    TooLong,
}

impl From<io::Error> for ShellError {
    fn from(error: io::Error) -> ShellError {
        ShellError::Failed(error)
    }
}

/// Runs the command, whose output goes to standard error.
pub(crate) fn run(shell: &Shell<'_>, cancel: &Cancel) -> Result<ExitStatus, ShellError> {
    let child = Command::new("/bin/sh")
        .args(["-c", &format!("{}{}", machine::open_files::shell_line(), shell.command)])
        .stdin(shell.input.map_or_else(|| Ok(Stdio::null()), input)?)
        // The processes that the shell starts must end with it.
        .process_group(0)
        // Standard output may carry Takeup's own document.
        .stdout(io::stderr().as_fd().try_clone_to_owned()?)
        .envs(shell.variables.iter().copied())
        .spawn()?;
    wait(child, shell.limit, cancel)
}

/// In a file, so that nobody has to write while the command runs.
fn input(bytes: &[u8]) -> io::Result<Stdio> {
    let mut file = unnamed_file()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Waits for the command, which takes minutes with an autoloader.
fn wait(
    mut child: Child,
    limit: Option<Duration>,
    cancel: &Cancel,
) -> Result<ExitStatus, ShellError> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if let Err(stopped) = cancel.check() {
            end(&mut child);
            return Err(ShellError::Stopped(stopped));
        }
        if limit.is_some_and(|limit| begun.elapsed() >= limit) {
            end(&mut child);
            return Err(ShellError::TooLong);
        }
        std::thread::sleep(STEP);
    }
}

/// Ends a command and everything that it started. SIGTERM comes first, since the arm of a library
/// may be moving.
fn end(child: &mut Child) {
    let Ok(group) = i32::try_from(child.id()) else { return };
    let Some(group) = rustix::process::Pid::from_raw(group) else { return };
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    let asked = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < GRACE {
        std::thread::sleep(STEP);
    }
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_its_input_and_ends_in_time() {
        let run_for = |command, limit| {
            let input = Some(&b"two\nlines\n"[..]);
            run(&Shell { command, variables: &[], input, limit }, &Cancel::new())
        };
        assert!(run_for("test \"$(wc -l)\" = 2", None).unwrap().success());
        assert!(!run_for("test \"$(wc -l)\" = 3", None).unwrap().success());
        let short = Some(Duration::from_millis(100));
        assert!(matches!(run_for("sleep 60", short), Err(ShellError::TooLong)));
    }
}
