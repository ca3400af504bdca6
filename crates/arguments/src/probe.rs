//! The arguments of `takeup probe`.

use std::ffi::OsString;

use clap::Args;
use service::probe::ProbeRequest;

use crate::quantity::Size;

/// Show a tape drive or the storage below a path, its settings, and what is wrong
///
/// For a file, a folder or a block device: shows every layer from the file system down to the
/// hardware, with the settings in effect there and what sets them. Writes nothing, and does not
/// wake a disk in standby.
///
/// For a tape drive: moves no tape, and sends nothing to a drive in use. Reading the TapeAlert
/// flags clears them in the drive. Some answers need root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup probe /dev/nst0
  takeup probe --json /dev/nst0 | jq .recommended_block_bytes
  takeup probe /var/lib/postgresql
  takeup probe sda --json | jq '.layers[] | {name, settings}'")]
pub struct ProbeArgs {
    /// A tape drive, a file, a folder, or a block device by its node or its name
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Read size of your program, to compare with the read-ahead
    #[arg(long, value_name = "SIZE")]
    request: Option<Size>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

impl ProbeArgs {
    /// What is asked for.
    pub fn request(&self) -> ProbeRequest {
        ProbeRequest {
            path: self.path.clone().into(),
            request_bytes: self.request.map(|size| size.0),
        }
    }
}
