//! The arguments of `takeup browse`.

use std::path::PathBuf;

use clap::Args;

/// Look at folders as they were on a day, mark files, and restore them
///
/// On the whole terminal: go through folders, from day to day, see the versions of a file, mark
/// what you want back, and say where to. The command that restores it is printed, and runs. It
/// reads the catalogue, no archives; `takeup catalog ls` prints the same.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup browse
  takeup browse /mnt/sets/
  takeup browse --catalog /mnt/usb/catalog.sqlite")]
pub struct BrowseArgs {
    /// Only sets in this folder [default: all that the catalogue has]
    #[arg(value_name = "SETS")]
    pub from: Option<PathBuf>,
    /// The catalogue [default: catalog.sqlite in $XDG_STATE_HOME/takeup, or /var/lib/takeup of
    /// root]
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
}
