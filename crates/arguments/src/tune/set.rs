//! The arguments of `takeup tune set`, and the options of every command that sets something.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use service::failure::Failure;
use service::tune::apply::ApplyRequest;
use service::tune::set::{SettingValue, TuneSetRequest};

use crate::proposing::{SETTINGS, proposing};
use crate::quantity::Span;

/// Set read-ahead or queue settings of the device below a path
///
/// Before any write, Takeup refuses a value that the kernel would change, that would fail the paths
/// of a multipath device, or that would have no effect. It writes limits before read-ahead, which
/// the kernel resets with them. It reads all values back, and once more after udev has run.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune set /srv/images read_ahead_kb=1024
  takeup tune set /dev/sdb scheduler=mq-deadline nr_requests=256 max_sectors_kb=512
  takeup tune set /dev/sdb scheduler=bfq --for 10m && takeup tune confirm
  takeup tune revert

NAME is a file of /sys/block/*/queue: scheduler, write_cache, rotational, max_sectors_kb, nomerges,
wbt_lat_usec, nr_requests, read_ahead_kb. Read-ahead is set on the device of the file system of
PATH, all others on the disks at the bottom. readahead=4M is read_ahead_kb=4096.")]
pub struct TuneSetArgs {
    /// File, folder or block device
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Settings to change
    #[arg(value_name = "NAME=VALUE", required = true, hide_possible_values = true,
          value_parser = proposing(String::from_str, SETTINGS))]
    settings: Vec<String>,
    #[command(flatten)]
    apply: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Options of every command that sets something.
#[derive(Args, Clone, Copy, Debug)]
pub struct ApplyArgs {
    /// Time after which all values are read back once more
    #[arg(long, default_value = "5s", value_name = "TIME")]
    settle: Span,
    /// Restore the old values after this time, unless you run `takeup tune confirm`
    #[arg(long = "for", value_name = "TIME")]
    trial: Option<Span>,
}

impl ApplyArgs {
    /// What is asked for.
    pub(super) fn request(&self) -> ApplyRequest {
        ApplyRequest {
            settle_seconds: self.settle.0,
            trial_seconds: self.trial.map(|trial| trial.0),
        }
    }
}

impl TuneSetArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When a setting is not typed as `NAME=VALUE`.
    pub fn request(&self) -> Result<TuneSetRequest, Failure> {
        let settings: Result<Vec<SettingValue>, Failure> =
            self.settings.iter().map(|text| text.parse()).collect();
        Ok(TuneSetRequest {
            path: self.path.clone(),
            settings: settings?,
            apply: self.apply.request(),
        })
    }
}
