//! The arguments of `takeup tune`.

mod measure;
mod queue;
mod read_ahead;
mod set;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use service::tune::persist::{PersistAction, TunePersistRequest};
use service::tune::revert::TuneRevertRequest;

pub use measure::TuneMeasureArgs;
pub use queue::TuneQueueArgs;
pub use read_ahead::ReadAheadArgs;
pub use set::{ApplyArgs, TuneSetArgs};

/// Measure, set and revert read-ahead and queue settings
///
/// Takeup saves the old values in a list before it changes anything: `takeup tune revert` restores
/// them, even after a crash or a restart.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune readahead /srv/images
  takeup tune set /dev/sdb read_ahead_kb=1024
  takeup tune show
  takeup tune revert")]
pub struct TuneArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TuneCommand,
}

/// The commands of `takeup tune`.
#[derive(Debug, Subcommand)]
// Documentation of a variant would replace the help of its arguments.
pub enum TuneCommand {
    #[command(name = "readahead")]
    ReadAhead(ReadAheadArgs),
    Queue(Box<TuneQueueArgs>),
    Set(TuneSetArgs),
    Show(TuneShowArgs),
    Revert(TuneRevertArgs),
    Confirm(TuneConfirmArgs),
    Persist(TunePersistArgs),
    #[command(hide = true)]
    Guard(TuneGuardArgs),
}

/// Show changed settings, and whether they still hold
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune show
  takeup tune show --json | jq .")]
pub struct TuneShowArgs {
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Restore all changed settings
///
/// This works after a crash, and if a device has another name now. After a restart the kernel has
/// its own values: then only settings that still hold the changed value are restored. Takeup names
/// a device that is gone; run the command again when it is back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune revert
  takeup tune revert --forget")]
pub struct TuneRevertArgs {
    /// Remove devices that are gone from the list of changes
    #[arg(long)]
    forget: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl TuneRevertArgs {
    /// What is asked for.
    pub fn request(&self) -> TuneRevertRequest {
        TuneRevertRequest { forget: self.forget }
    }
}

/// Keep what was set with --for
///
/// If the time is already over, restores the old values instead, with exit code 2.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune set /dev/sdb scheduler=bfq --for 10m
  takeup tune confirm")]
pub struct TuneConfirmArgs {
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Show how to keep changed settings over a restart, and write the udev rules
///
/// A udev rule keeps settings of a device with a WWN, a serial number or a UUID. Where tuned,
/// multipathd, lvm or nfs-utils set a value after udev, Takeup shows the line for their
/// configuration, and does not write it. Settings of a loop device, or of a device without a
/// persistent name, cannot be kept.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune persist
  sudo takeup tune persist --write
  sudo takeup tune persist --remove")]
pub struct TunePersistArgs {
    /// Write the rules to /etc/udev/rules.d/99-takeup.rules
    #[arg(long)]
    write: bool,
    /// Remove that file, unless it was edited
    #[arg(long, conflicts_with = "write")]
    remove: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl TunePersistArgs {
    /// What is asked for.
    pub fn request(&self) -> TunePersistRequest {
        let action = match (self.write, self.remove) {
            (_, true) => PersistAction::Remove,
            (true, false) => PersistAction::Write,
            (false, false) => PersistAction::Show,
        };
        TunePersistRequest { action }
    }
}

/// Wait for the end of a trial (started by `takeup tune set --for`)
#[derive(Args, Debug)]
pub struct TuneGuardArgs {
    /// The list of changes
    pub list: PathBuf,
}
