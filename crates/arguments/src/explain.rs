//! The arguments of `takeup explain`.

use clap::Args;
use service::explain::{ExplainRequest, ExplainTarget};
use service::failure::Failure;

use crate::quantity::Span;

/// Find the bottleneck of a pipeline, and what would help
///
/// Runs a pipeline of other programs through the shell and samples what each stage does: it works,
/// or waits for its input, for the next stage, for a file or device, or for something else. At the
/// end Takeup names the bottleneck, the change that helps most, and how long the pipeline would
/// then take. The programs have no terminal and no input; their output is discarded without
/// --show-output.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup explain 'tar cf - /srv | gzip -c | dd obs=512k of=/dev/nst0'
  takeup explain --baseline 'tar cf - /srv | zstd -c > /mnt/srv.tar.zst'
  takeup explain --try 'tar cf - /srv | gzip -c > /dev/nst0'
  takeup explain tar cf /dev/nst0 /srv
  takeup explain --try -- tar -b 20 -cf /dev/nst0 /srv
  takeup explain --pid $(pgrep -x gzip) --for 10s
  takeup explain 'pg_dump shop | gzip > shop.gz' --json | jq '.limit, .findings[].sentence'

The pipeline really runs and writes its output. --baseline and --try run it again.")]
pub struct ExplainArgs {
    /// The pipeline in quotes, or the words of a single program, after `--` if it has options
    #[arg(value_name = "PIPELINE", required_unless_present = "pid", conflicts_with = "pid")]
    pipeline: Vec<String>,
    /// Look at a running process, and at all processes that pipes join it to
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// End the pipeline, or stop looking at --pid, after this time, such as 30s, 10m
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Run the pipeline first without its last stage, to measure the rest alone; not with --for:
    /// runs that are cut off after the same time cannot be compared
    #[arg(long, conflicts_with_all = ["pid", "span"])]
    baseline: bool,
    /// Run the pipeline again with the proposed change; not with --for
    #[arg(long = "try", conflicts_with_all = ["pid", "span"])]
    tries: bool,
    /// The shell [default: $SHELL, or /bin/sh]
    #[arg(long, value_name = "SHELL", conflicts_with = "pid")]
    shell: Option<String>,
    /// Print the output of the programs on standard error
    #[arg(long, conflicts_with = "pid")]
    pub show_output: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

impl ExplainArgs {
    /// The program, where the words of one were typed and not a line in quotes.
    pub fn single_program(&self) -> Option<&str> {
        match &self.pipeline[..] {
            [program, _, ..] => Some(program),
            _ => None,
        }
    }

    /// What is asked for.
    ///
    /// # Errors
    /// When a pipeline in quotes is followed by other words.
    pub fn request(&self) -> Result<ExplainRequest, Failure> {
        let target = match self.pid {
            Some(pid) => ExplainTarget::Process(pid),
            None => ExplainTarget::Pipeline(typed(&self.pipeline)?),
        };
        Ok(ExplainRequest {
            target,
            shell: self.shell.clone(),
            seconds: self.span.map(|span| span.0),
            baseline: self.baseline,
            tries: self.tries,
            shows_output: self.show_output,
        })
    }
}

/// The line to run: one word is a line for the shell, several are the words of one program.
fn typed(words: &[String]) -> Result<String, Failure> {
    match words {
        [line] => Ok(line.clone()),
        // A line in quotes contains spaces, and no other word may follow it.
        [first, other, ..] if first.trim().contains(char::is_whitespace) => {
            let hint =
                "put the whole pipeline in quotes; `takeup explain --help` lists the options";
            Err(Failure::of(format!("unexpected argument {other:?}"), Some(hint)))
        }
        words => Ok(words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")),
    }
}

/// A word, quoted for the shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
