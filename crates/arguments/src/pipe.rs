//! The arguments of `takeup pipe`.

use std::ffi::OsString;

use clap::Args;
use service::pipe::PipeRequest;

use crate::run::{CommonArgs, RecordArgs, TargetArgs};

/// Buffer a stream between two programs, files or devices
///
/// Takeup reads and writes at the same time, with a ring of blocks between, so that a source and a
/// target that are slow in turn do not wait for each other. It replaces `dd obs=512k` or mbuffer in
/// a pipeline. The data are not changed; every write except the last is one block. A target file
/// gets its name once it is complete and synchronised. A tape is written from its current position,
/// in blocks of --block-size, and closed by a filemark.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tar cf - /srv | gzip | takeup pipe --block-size 512k --to /dev/nst0
  ssh host 'tar cf - /srv' | takeup pipe --ring 256M --start-fill 50 > srv.tar
  takeup pipe --from disk.img --to /dev/sdx --overwrite")]
pub struct PipeArgs {
    /// Where the data come from; - is standard input
    #[arg(long, default_value = "-", value_name = "FILE")]
    from: OsString,
    /// Where they go; - is standard output
    #[arg(long, default_value = "-", value_name = "FILE")]
    to: OsString,
    #[command(flatten)]
    target: TargetArgs,
    /// Pad the last block with zeros, for devices that take only whole blocks
    #[arg(long)]
    pad: bool,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

impl PipeArgs {
    /// What is asked for.
    pub fn request(&self) -> PipeRequest {
        PipeRequest {
            from: self.from.clone().into(),
            to: self.to.clone().into(),
            target: self.target.settings(),
            pad: self.pad,
            engine: self.common.engine.into(),
            record: self.record.record.clone(),
        }
    }

    /// Whether the data go to standard output.
    pub fn is_to_standard_output(&self) -> bool {
        self.to == "-"
    }
}
