//! Who is told of a run besides the user.

use std::path::PathBuf;

use clap::Args;
use service::telling::{TellingRequest, address};

/// Options of runs that a monitoring system follows.
#[derive(Args, Clone, Debug)]
pub struct TellingArgs {
    /// Write the numbers of the run to a file, as Prometheus reads them (textfile collector)
    ///
    /// The file is written whole and then gets its name. After a failure it keeps when a run last
    /// succeeded, and when all was last verified.
    #[arg(hide_short_help = true, long, value_name = "FILE.prom", help_heading = "Monitoring")]
    metrics: Option<PathBuf>,
    /// Tell the start, success and failure of the run to a monitoring service
    ///
    /// As healthchecks takes it (URL/start, URL, URL/fail), or Uptime Kuma (status=up or down,
    /// where the URL has /api/push/). curl sends it; it has 10 s, and what it says never makes a
    /// run fail.
    /// Success is exit code 0.
    #[arg(hide_short_help = true, long, value_name = "URL", help_heading = "Monitoring",
          value_parser = address)]
    ping: Option<String>,
}

impl TellingArgs {
    /// What is to be told.
    pub fn request(&self) -> TellingRequest {
        TellingRequest { metrics: self.metrics.clone(), ping: self.ping.clone() }
    }
}
