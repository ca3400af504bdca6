//! The arguments of `takeup probe`.

use std::ffi::OsString;

use clap::Args;
use service::probe::ProbeRequest;

use crate::quantity::Size;

/// Say what a tape drive or the storage below a path is, how it is set, and what stands out
///
/// Of a file, a folder or a block device: every layer from the file system down to the hardware,
/// with the settings that act there and who sets them. Nothing is written, and a disk that sleeps
/// is left to sleep.
///
/// Of a tape drive: moves no tape, and sends nothing to a drive that somebody uses. The drive
/// clears its TapeAlert flags when it tells them. Some answers need root.
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
    /// How much a program reads at once there, to hold the read-ahead against
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
