//! The arguments of `takeup tune readahead`.

use std::path::PathBuf;

use clap::Args;
use service::tune::read_ahead::TuneReadAheadRequest;

use super::TuneMeasureArgs;
use crate::quantity::Size;

/// Measure which read-ahead is best for a path
///
/// Takeup reads one stream through the page cache with each value in turn, until the runs can show
/// the --difference. It says first how long that takes. It writes nothing to PATH, and restores the
/// setting afterwards, even after a crash. It recommends the smallest value that is as good as the
/// best, and only if the result is settled. --apply sets it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune readahead /srv/images
  sudo takeup tune readahead /srv/images/big.img --apply
  takeup tune revert

Without root, only the rate and the latency with the present read-ahead are measured, and the model
computes the read-ahead that they need.")]
pub struct ReadAheadArgs {
    /// File or block device to read; for a folder, the largest file in it
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Read-ahead values to try besides the present one
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "64k,128k,256k,512k,1M,2M,4M,8M,16M"
    )]
    levels: Vec<Size>,
    /// Read size of the program
    #[arg(short, long, value_name = "SIZE", default_value = "128k")]
    block_size: Size,
    /// Bytes of one run [default: what takes about a second]
    #[arg(long, value_name = "SIZE")]
    length: Option<Size>,
    /// Keep the runs in this file, for `takeup report`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How it is measured.
    #[command(flatten)]
    pub measure: TuneMeasureArgs,
}

impl ReadAheadArgs {
    /// What is asked for.
    pub fn request(&self) -> TuneReadAheadRequest {
        TuneReadAheadRequest {
            path: self.path.clone(),
            levels: self.levels.iter().map(|level| level.0).collect(),
            block_bytes: self.block_size.0,
            length_bytes: self.length.map(|length| length.0),
            output: self.output.clone(),
            measure: self.measure.request(),
        }
    }
}
