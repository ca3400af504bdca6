//! The shell that runs commands: whether it is one, what it can tell, and what its start takes.

use std::time::Instant;

use flow::cancel::Cancel;

use super::error::ProgramsError;
use super::group::{CommandEnd, CommandOutput, GroupedCommand, run};
use experiment::plan::commands::Failing;
use statistics::median;

/// Starts of the shell that are timed.
const STARTS: usize = 5;

/// A shell that has been tried.
#[derive(Clone, Debug)]
pub struct Shell {
    name: String,
    /// Put before each line.
    prefix: &'static str,
    /// Time from its start to its end with nothing to do.
    pub start_seconds: f64,
    /// Whether a run fails with any program of a pipeline.
    pub tells_all: bool,
}

impl Shell {
    /// Tries it.
    pub fn new(name: &str, failing: Failing) -> Result<Shell, ProgramsError> {
        let mut shell =
            Shell { name: name.to_owned(), prefix: "", start_seconds: 0.0, tells_all: false };
        let wrong = |why: String| ProgramsError::Shell { shell: name.to_owned(), why };
        let mut seconds = Vec::new();
        for _ in 0..STARTS {
            let start = Instant::now();
            let ended = match shell.run(&[], ":", CommandOutput::Discarded) {
                Err(ProgramsError::Start { source, .. }) => {
                    return Err(wrong(base::failures::with_causes(&source)));
                }
                ended => ended?,
            };
            if !ended.status.success() {
                return Err(wrong(format!("is not a shell: {}", ended.how())));
            }
            seconds.push(ended.seconds.min(start.elapsed().as_secs_f64()));
        }
        shell.start_seconds = median(&seconds).unwrap_or(0.0);
        const PIPEFAIL: &str = "set -o pipefail\n";
        let understood = shell.run(&[], &format!("{PIPEFAIL}exit 0"), CommandOutput::Discarded)?;
        if failing == Failing::AnyProgram && understood.status.success() {
            (shell.prefix, shell.tells_all) = (PIPEFAIL, true);
        }
        Ok(shell)
    }

    /// Its name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program, its options and the line.
    pub fn arguments(&self, line: &str) -> Vec<String> {
        vec![self.name.clone(), "-c".to_owned(), format!("{}{line}", self.prefix)]
    }

    /// Whether it understands a line and finds the program that it begins with; nothing is run.
    /// `what` is whose line it is.
    pub fn check(&self, what: &str, line: &str) -> Result<(), ProgramsError> {
        let (what, line) = (what.to_owned(), line.to_owned());
        let parsed = self.run(&["-n"], &line, CommandOutput::Discarded)?;
        if !parsed.status.success() {
            return Err(ProgramsError::Syntax { what, line, said: parsed.said });
        }
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./+-".contains(letter);
        if !first.is_empty() && first.chars().all(is_plain) {
            let found = self.run(&[], &format!("command -v {first}"), CommandOutput::Discarded)?;
            if !found.status.success() {
                let program = first.to_owned();
                return Err(ProgramsError::NoProgram { what, line, program });
            }
        }
        Ok(())
    }

    fn run(
        &self,
        options: &[&str],
        line: &str,
        output: CommandOutput,
    ) -> Result<CommandEnd, ProgramsError> {
        let mut arguments = vec![self.name.clone()];
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        arguments.extend(["-c".to_owned(), line.to_owned()]);
        run(GroupedCommand { arguments: &arguments, output }, &Cancel::new(), &mut |_| {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_checked_and_not_run() {
        let shell = Shell::new("bash", Failing::AnyProgram).unwrap();
        assert!(shell.tells_all && shell.start_seconds > 0.0);
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("made");
        let check = |line: &str, expected: &str| {
            let error = shell.check("command a", line).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        shell.check("command a", &format!("touch {}", made.display())).unwrap();
        assert!(!made.exists());
        check("echo 'a", "unexpected EOF");
        check("tarr -cf x", "command a: \"tarr -cf x\": no program tarr");
        shell.check("command a", "LC_ALL=C tarr").unwrap();
        let error = |name: &str| Shell::new(name, Failing::AnyProgram).unwrap_err().to_string();
        assert!(error("/no/such/shell").contains("No such file"), "{}", error("/no/such/shell"));
        assert!(error("/bin/false").contains("is not a shell: status 1"));
        assert!(!Shell::new("bash", Failing::LastProgram).unwrap().tells_all);
    }
}
