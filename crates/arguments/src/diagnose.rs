//! The arguments of `takeup diagnose`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use service::diagnose::given::DiagnoseGivenRequest;
use service::diagnose::{BUDGET_SECONDS, DiagnoseRequest, DiagnoseSubject};
use service::failure::Failure;

use crate::quantity::Span;

/// Find out why a backup is slow, and what makes it fast
///
/// Names what limits a backup from its source to its target, what to change, and what that brings.
/// Takeup reads parts of the source for some seconds in several ways, tries the compressor of the
/// line on that data, and plays the whole chain with the models of programs, pipes and drives: as
/// it is, and with each change. Nothing is written and nothing is set, unless asked for: --run runs
/// the line, --try makes the first change for a moment, --write-test writes some data beside the
/// target.
///
/// With --given, it reads what other programs printed, in mails or copies of a terminal: iostat -x,
/// sar -d, fio and its jobs, dd, time, strace, tar --totals, pv, mt status, tapeinfo, sg_logs,
/// btape, lsblk, settings of a device's queue, and the summaries of backup programs. It then looks
/// at nothing of this machine. A line that is not whole is not read.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup diagnose /srv /dev/nst0
  takeup diagnose /srv
  takeup diagnose 'tar czf - /srv | dd of=/dev/nst0 bs=512k'
  takeup diagnose --run 'tar cf - /srv | gzip > /mnt/srv.tar.gz'
  sudo takeup diagnose --try 'tar cf /mnt/nas/srv.tar /srv'
  takeup diagnose --write-test /srv /mnt/nas/srv.tar
  takeup diagnose --pid $(pgrep -x tar)
  takeup diagnose --host
  takeup diagnose --given mail.txt
  iostat -m -x 30 3 | takeup diagnose --given -
  takeup diagnose /srv /dev/nst0 --json | jq '.findings[].sentence'

With several paths, the last one is the target. A line is read, and run only with --run, or for
some seconds without its target with --try.")]
pub struct DiagnoseArgs {
    /// What is backed up and where to, by `takeup backup`; or a line of other programs in quotes
    #[arg(
        value_name = "PATH|LINE",
        required_unless_present_any = ["pid", "host", "given"],
        conflicts_with_all = ["pid", "host", "given"]
    )]
    subject: Vec<OsString>,
    /// Look at a process that runs, and at all that pipes join it to
    #[arg(long, value_name = "PID", conflicts_with_all = ["host", "given"])]
    pid: Option<u32>,
    /// Look for what stands out on this machine: every file system, every tape drive
    #[arg(long, conflicts_with = "given")]
    pub host: bool,
    /// Read what other programs printed: files with text; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    given: Vec<PathBuf>,
    /// Run the line to its end, which writes what it writes, and look at its programs
    #[arg(long, conflicts_with_all = ["pid", "host", "given"])]
    run: bool,
    /// Make the first change for a moment, and measure what it brings: a setting is put back, a
    /// line runs for some seconds with its output thrown away
    #[arg(long = "try", conflicts_with_all = ["host", "given"])]
    tries: bool,
    /// Write a file without a name beside the target for some seconds, to know what it takes
    #[arg(long, conflicts_with_all = ["host", "given"])]
    write_test: bool,
    /// Most time of all trials, such as 15s, 2m
    #[arg(long, value_name = "TIME", conflicts_with_all = ["host", "given"])]
    budget: Option<Span>,
    /// Print every station of the chain with its numbers
    #[arg(long, conflicts_with_all = ["host", "given"], help_heading = "Output")]
    pub all: bool,
    /// Draw the stations against what they could give, as SVG; an existing file is replaced
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["host", "given"],
        help_heading = "Output"
    )]
    pub chart: Option<PathBuf>,
    /// Write a page with the answer, the chain as a picture and all numbers; an existing file is
    /// replaced
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["host", "given"],
        help_heading = "Output"
    )]
    pub html: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl DiagnoseArgs {
    /// The texts to read, if there are any.
    pub fn given(&self) -> Option<DiagnoseGivenRequest> {
        (!self.given.is_empty()).then(|| DiagnoseGivenRequest { given: self.given.clone() })
    }

    /// What is asked for of this machine.
    ///
    /// # Errors
    /// When a line follows other words, or is not UTF-8.
    pub fn request(&self) -> Result<DiagnoseRequest, Failure> {
        let subject = match self.pid {
            Some(pid) => DiagnoseSubject::Process(pid),
            None => subject(&self.subject)?,
        };
        if self.run && !matches!(subject, DiagnoseSubject::Line(_)) {
            let hint = "give the line in quotes, or leave out --run";
            return Err(Failure::of("--run: there is no line to run", Some(hint)));
        }
        Ok(DiagnoseRequest {
            subject,
            budget_seconds: self.budget.map_or(BUDGET_SECONDS, |span| span.0),
            runs: self.run,
            tries: self.tries,
            writes: self.write_test,
        })
    }

    /// Whether a line was given as words, without quotes around it.
    pub fn is_unquoted_line(&self) -> bool {
        let is_line = matches!(subject(&self.subject), Ok(DiagnoseSubject::Line(_)));
        is_line && self.subject.len() > 1
    }
}

/// Paths, or a line: one word with spaces that is no path, or words that begin with a program.
fn subject(words: &[OsString]) -> Result<DiagnoseSubject, Failure> {
    let is_path = |word: &OsString| Path::new(word).exists();
    let is_line = |word: &OsString| {
        let text = word.to_string_lossy();
        !is_path(word) && text.trim().contains(char::is_whitespace)
    };
    match words {
        [line] if is_line(line) => text(line).map(DiagnoseSubject::Line),
        [first, ..] if is_line(first) => {
            let hint = "put the whole line in quotes, and nothing behind it";
            Err(Failure::of("a line is one word in quotes", Some(hint)))
        }
        [first, _, ..] if !is_path(first) && is_program(first) => {
            let words: Result<Vec<String>, Failure> = words.iter().map(text).collect();
            let quoted: Vec<String> =
                words?.iter().map(|word| crate::explain::quoted(word)).collect();
            Ok(DiagnoseSubject::Line(quoted.join(" ")))
        }
        [source] => Ok(DiagnoseSubject::Backup { sources: vec![source.into()], target: None }),
        [sources @ .., target] => Ok(DiagnoseSubject::Backup {
            sources: sources.iter().map(PathBuf::from).collect(),
            target: Some(target.into()),
        }),
        [] => Err(Failure::of("nothing to look at", Some("name a path or a line"))),
    }
}

/// Whether the shell would find a program of this name.
fn is_program(name: &OsString) -> bool {
    let is_name = !name.as_bytes().contains(&b'/');
    let path = std::env::var_os("PATH").unwrap_or_default();
    is_name && std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn text(word: &OsString) -> Result<String, Failure> {
    let not_text = || Failure::of("the line is not UTF-8", None);
    word.to_str().map(str::to_owned).ok_or_else(not_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> DiagnoseSubject {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        subject(&words).unwrap()
    }

    #[test]
    fn paths_and_lines_are_told_apart() {
        let backup = |sources: &[&str], target: Option<&str>| DiagnoseSubject::Backup {
            sources: sources.iter().map(PathBuf::from).collect(),
            target: target.map(PathBuf::from),
        };
        assert_eq!(of(&["/srv"]), backup(&["/srv"], None));
        assert_eq!(of(&["/a", "/b", "/dev/nst0"]), backup(&["/a", "/b"], Some("/dev/nst0")));
        let line = |text: &str| DiagnoseSubject::Line(text.to_owned());
        assert_eq!(of(&["tar cf - /srv | gzip"]), line("tar cf - /srv | gzip"));
        assert_eq!(of(&["tar", "cf", "/dev/nst0", "/a b"]), line("tar cf /dev/nst0 '/a b'"));
        // A folder that was mistyped is no program.
        assert_eq!(of(&["nosuch", "/dev/nst0"]), backup(&["nosuch"], Some("/dev/nst0")));
        let words: Vec<OsString> = ["tar cf - /srv", "x"].iter().map(OsString::from).collect();
        assert!(subject(&words).is_err());
    }
}
