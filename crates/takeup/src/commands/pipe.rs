//! `takeup pipe`: a buffer in a pipeline.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use flow::cancel::Cancel;
use flow::ring::LastBlock;
use runs::pipe::{PipeOptions, pipe};
use tapeset::TapeOptions;

use crate::change::{ChangeArgs, Changer};
use crate::options::{CommonArgs, TargetArgs, destination};
use crate::outcome::{SummaryPlace, finish, print, summarise, wrote};
use crate::recording::RecordArgs;
use crate::terminal::Terminal;
use service::failure::Failure;
use service::outcome::Outcome;

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
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(arguments: &PipeArgs) -> ExitCode {
    let place = if arguments.to == "-" { SummaryPlace::Error } else { SummaryPlace::Output };
    finish(move_data(arguments, place), "pipe", &arguments.common, place)
}

fn move_data(arguments: &PipeArgs, place: SummaryPlace) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let target = &arguments.target;
    let nobody = Changer::new(&ChangeArgs::default(), &cancel);
    let options = PipeOptions {
        from: arguments.from.clone(),
        to: destination(&arguments.to, TapeOptions::default(), nobody),
        block_bytes: target.block_size.bytes(),
        ring_bytes: target.ring_bytes(0),
        start_fill_percent: target.start_fill.unwrap_or(0),
        rate_limit_bytes_per_second: target.rate_limit.map(|rate| rate.0),
        last_block: if arguments.pad { LastBlock::Padded } else { LastBlock::Short },
        engine: arguments.common.engine.into(),
        existing: target.existing(),
        mode: target.mode(),
    };
    let mut terminal =
        Terminal::new(&arguments.common).recording(arguments.record.apart_from(&arguments.to)?)?;
    let result = pipe(&options, &terminal, &cancel);
    terminal.close();
    let summary = summarise(result?, &mut terminal);
    print(&summary, &wrote(&arguments.to), &arguments.common, place)?;
    Ok(summary.verdict.state.into())
}
