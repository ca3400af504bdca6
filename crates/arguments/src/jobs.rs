//! The arguments of `takeup run`, `status`, `check-config` and `units`.

use std::path::PathBuf;

use clap::Args;
use service::jobs::{CheckConfigRequest, JobRequest, StatusRequest, TrialRequest, UnitsRequest};

use crate::run::CommonArgs;
use crate::telling::TellingArgs;

/// Which file has the jobs.
#[derive(Args, Debug)]
struct ConfigArgs {
    /// The file with the jobs [default: /etc/takeup/takeup.toml of root, takeup/takeup.toml in
    /// $XDG_CONFIG_HOME or ~/.config of others]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Run a job: back up, verify, and remove what is not kept any more
///
/// The job stands in a file, see docs/jobs.md. Its set is an incremental one until the last full
/// one is too old. Commands of the job run before and after; those after it run whatever happened.
/// The journal keeps what became of it, for `takeup status`. The exit code is 2 if something is to
/// be looked at, 1 if there is no backup or an archive is damaged.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup run homes
  takeup run homes --full
  takeup run homes --trial
  takeup run homes --config /srv/takeup.toml --json")]
pub struct RunArgs {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: String,
    /// Make a full set
    #[arg(long)]
    full: bool,
    /// Restore some files of the newest set, chosen at random, into a folder that goes afterwards,
    /// and compare them with their hashes; no backup is made
    #[arg(long, conflicts_with_all = ["full", "source_may_change", "target_may_change"])]
    trial: bool,
    /// Take it that a source is empty now, or lies on another file system than in the last set
    #[arg(long)]
    source_may_change: bool,
    /// Take it that the folder has none of the sets that the last run left there
    #[arg(long)]
    target_may_change: bool,
    #[command(flatten)]
    config: ConfigArgs,
    /// Who is told of it.
    #[command(flatten)]
    pub telling: TellingArgs,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl RunArgs {
    /// What is asked for, where it is a trial restore.
    pub fn trial_request(&self) -> Option<TrialRequest> {
        let (job, config) = (self.job.clone(), self.config.config.clone());
        let engine = self.common.engine.into();
        self.trial.then_some(TrialRequest { job, config, engine })
    }

    /// What is asked for.
    pub fn request(&self) -> JobRequest {
        JobRequest {
            job: self.job.clone(),
            config: self.config.config.clone(),
            full: self.full,
            source_may_change: self.source_may_change,
            target_may_change: self.target_may_change,
            engine: self.common.engine.into(),
        }
    }
}

/// Say when each job last succeeded, what was verified, and what is overdue
///
/// A success is a set that can be restored from what lies in its folder. The exit code is 2 if a
/// job is overdue, a set cannot be restored, or anything else is to be looked at.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup status
  takeup status homes --json")]
pub struct StatusArgs {
    /// Only this job
    #[arg(value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Write the state of the jobs to a file, as Prometheus reads it (textfile collector)
    ///
    /// The file is written whole and then gets its name.
    #[arg(long, value_name = "FILE.prom", help_heading = "Monitoring")]
    pub metrics: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl StatusArgs {
    /// What is asked for.
    pub fn request(&self) -> StatusRequest {
        StatusRequest { job: self.job.clone(), config: self.config.config.clone() }
    }
}

/// Check the file with the jobs
///
/// What is wrong is said with its line and column. Then it looks whether sources and targets are
/// there today, and whether systemd understands the schedules.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup check-config
  takeup check-config --config ./takeup.toml

A file with all that may stand in it; only sources and to are needed:
  [jobs.homes]
  sources = [\"/home\", \"/etc\"]
  to = \"/mnt/backup/homes/\"
  exclude = [\"*.cache\"]
  compress = \"zstd\"
  one-file-system = true
  full-every = \"30 days\"
  schedule = \"02:30\"
  overdue-after = \"2 days\"
  keep = { last = 3, daily = 14, weekly = 8, monthly = 12, yearly = 2 }
  quota = { set = \"500GB\", kept = \"4TB\", exceeded = \"refuse\" }
  verify = { after = \"checksums\", within = \"90 days\" }
  #   after = \"sample\", sample = \"10 %\": a tenth of all archives, in turn
  #   after = \"source\": the new archive, and compared with the sources

  [jobs.homes.hooks]
  before = \"/usr/local/bin/freeze\"
  after-backup = \"/usr/local/bin/thaw\"
  after = \"cat >>/var/log/backups.json\"
  timeout = \"10 minutes\"")]
pub struct CheckConfigArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl CheckConfigArgs {
    /// What is asked for.
    pub fn request(&self) -> CheckConfigRequest {
        CheckConfigRequest { config: self.config.config.clone() }
    }
}

/// Print, or write, a systemd service and a timer for a job
///
/// Without --write nothing is changed. The service may write the target and nothing else, unless
/// the job has commands of its own.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup units homes
  takeup units homes --write && systemctl daemon-reload
  systemctl enable --now takeup-homes.timer")]
pub struct UnitsArgs {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: String,
    /// Write them into /etc/systemd/system; without root, ~/.config/systemd/user
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    config: ConfigArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl UnitsArgs {
    /// What is asked for.
    pub fn request(&self) -> UnitsRequest {
        UnitsRequest {
            job: self.job.clone(),
            config: self.config.config.clone(),
            write: self.write,
        }
    }
}
