//! The arguments of `takeup capture`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use service::capture::{CaptureRequest, CaptureSource, JobRequest};

use crate::quantity::{Size, Span};

/// Record how a process uses its files
///
/// Records each read, write, sync and the like of a process, its threads and its children with the
/// kernel's own tracepoints: the process is not stopped, and nothing is loaded into the kernel. At
/// the end Takeup reports for each file the calls, their sizes and order, the requests in flight,
/// and how often it was synced. What cannot be known is reported as such. Needs root; without it,
/// or on a kernel that cannot record calls, Takeup samples /proc instead.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup capture --pid $(head -1 /var/lib/postgresql/17/main/postmaster.pid) --for 30s
  takeup capture -- tar cf - /srv > /dev/null
  takeup capture --import trace.strace
  takeup capture --pid 4711 --for 10s --json | jq '.files[] | {path, engine, calls}'
  takeup capture --pid 4711 --for 30s --fio load.fio --validate
  takeup capture --watch --record load.ndjson -- fio load.fio
  takeup report load.ndjson -o load.html

Name the parent process of a database, such as the postmaster: that records all of its processes,
including those that write on behalf of others.")]
pub struct CaptureArgs {
    /// Record this running process
    #[arg(
        long,
        value_name = "PID",
        required_unless_present_any = ["command", "import", "from", "guard"],
        conflicts_with_all = ["command", "import", "from"]
    )]
    pid: Option<u32>,
    /// Import a recording of strace -f -ttt -T -yy, blkparse or fio --write_iolog
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "span", "buffer"])]
    import: Option<PathBuf>,
    /// Print a capture from a file that --record wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "span", "buffer", "import"])]
    from: Option<PathBuf>,
    /// Write the capture to this new file, for `takeup report` and --from
    #[arg(long, value_name = "FILE", conflicts_with_all = ["import", "from"])]
    record: Option<PathBuf>,
    /// Watch the block devices below the captured files, or the named ones, during the capture, as
    /// `takeup watch` does
    #[arg(long, value_name = "DEVICE", num_args = 0.., conflicts_with_all = ["import", "from"])]
    watch: Option<Vec<PathBuf>>,
    /// Stop recording after this time, such as 30s, 10m, and end the command
    #[arg(long = "for", alias = "seconds", value_name = "TIME")]
    span: Option<Span>,
    /// Size of the kernel's buffers for recorded events, on all processors together
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "64M")]
    buffer: Size,
    /// The mount point of tracefs, if it is not a usual one
    #[arg(hide_short_help = true, long, value_name = "FOLDER", conflicts_with = "import")]
    pub tracefs: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    job: JobArgs,
    /// Wait for the end of a capture and remove what it left (started by `takeup capture`)
    #[arg(long, hide = true)]
    pub guard: bool,
    /// Start this command and record it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Options for the fio job.
#[derive(Args, Debug)]
struct JobArgs {
    /// Write the load as a fio job to this file; the job uses its own files, not the captured ones
    #[arg(long, value_name = "JOB")]
    fio: Option<PathBuf>,
    /// The folder for the files of the job, instead of TAKEUP_JOB_DIR when the job runs; --validate
    /// makes a folder there, or else in the working folder, and removes it
    #[arg(hide_short_help = true, long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Run the job with fio for a minute at most, record it the same way, and compare both
    #[arg(long)]
    validate: bool,
    /// The most space for the files of a validation; larger files are cut
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SIZE",
        default_value = "1G",
        requires = "validate"
    )]
    limit: Size,
}

impl CaptureArgs {
    /// What is asked for.
    pub fn request(&self) -> CaptureRequest {
        let source = match (&self.import, &self.from, self.pid) {
            (Some(path), ..) => CaptureSource::Import(path.clone()),
            (None, Some(path), _) => CaptureSource::Record(path.clone()),
            (None, None, Some(pid)) => CaptureSource::Process(pid),
            (None, None, None) => CaptureSource::Command(self.command.clone()),
        };
        CaptureRequest {
            source,
            record: self.record.clone(),
            watch: self.watch.clone(),
            seconds: self.span.map(|span| span.0),
            buffer_bytes: self.buffer.0,
            tracefs: self.tracefs.clone(),
            job: JobRequest {
                fio: self.job.fio.clone(),
                folder: self.job.folder.clone(),
                validate: self.job.validate,
                limit_bytes: self.job.limit.0,
            },
        }
    }
}

/// The running program as a guard, which removes what a killed capture leaves: also where its file
/// was replaced.
pub fn guard_command(tracefs: Option<&Path>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("takeup").args(["capture", "--guard"]);
    if let Some(folder) = tracefs {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        command.arg("--tracefs").arg(folder);
    }
    command
}
