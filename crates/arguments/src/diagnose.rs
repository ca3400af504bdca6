//! The arguments of `takeup diagnose`.

use std::path::PathBuf;

use clap::Args;
use service::diagnose::DiagnoseRequest;

/// Read what other programs printed, and report what it means together
///
/// The texts may be mails or copies of a terminal. Takeup recognises iostat -x, fio and its jobs,
/// dd, time, strace, tapeinfo, settings of a device's queue, and the summaries of backup programs,
/// and reports what they show, what they rule out, and what to send to decide more. It runs nothing
/// of the text and looks at nothing of this machine. A line that is not whole is not read.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup diagnose --given mail.txt
  takeup diagnose --given job.fio fio.txt iostat.txt
  iostat -m -x 30 3 | takeup diagnose --given -
  takeup diagnose --given mail.txt --json | jq '.shown[].finding.sentence'

Send whole lines: iostat with its line of columns, strace and dd with the command in front.")]
pub struct DiagnoseArgs {
    /// Files with text; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    given: Vec<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl DiagnoseArgs {
    /// What is asked for.
    pub fn request(&self) -> DiagnoseRequest {
        DiagnoseRequest { given: self.given.clone() }
    }
}
