//! `takeup backup`: trees into an archive.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;

use archive::chunk::Compression;
use backup::backup::{BackupOptions, backup};
use clap::Args;
use flow::cancel::Cancel;
use report::explanation::Command;
use tree::{Attributes, FileSystems};

use crate::failure::Failure;
use crate::options::{CommonArgs, TargetArgs};
use crate::outcome::{Ends, Outcome, SummaryPlace, finish, kind_of, print, summarise};
use crate::terminal::Terminal;

/// Write files and directories into an archive
///
/// The archive is plain tar (pax), compressed or not; tar, bsdtar, zstd and gzip read it. A file
/// that cannot be read is reported and skipped, and the exit code is 2. A target that is a file
/// gets its name when it is complete and synchronised: whatever stops the run, there is the whole
/// archive under that name, or what was there before.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup backup /srv --to /mnt/backup/srv.tar
  takeup backup /home /etc --exclude '*.cache' --compress zstd --to home.tar.zst
  takeup backup /srv --to - | ssh host 'cat > srv.tar'
  takeup backup /srv --block-size 512k --start-fill 80 --to /dev/nst0")]
pub struct BackupArgs {
    /// What to back up
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Where the archive goes; - is standard output
    #[arg(short, long, value_name = "TARGET")]
    to: OsString,
    /// zstd[:LEVEL], gzip[:LEVEL] or none
    #[arg(short, long, default_value = "none", value_name = "METHOD")]
    compress: Compression,
    /// Threads that compress; by default one for each core
    #[arg(long, value_name = "N")]
    compress_threads: Option<NonZero<usize>>,
    /// Threads that read small files; by default as many as keep a disk busy
    #[arg(long, value_name = "N")]
    read_threads: Option<NonZero<usize>>,
    /// Leave out what matches; may be given several times
    #[arg(short = 'x', long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Do not enter other file systems
    #[arg(long)]
    one_file_system: bool,
    /// Leave out extended attributes and ACLs
    #[arg(long)]
    no_xattrs: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs the command.
pub fn run(arguments: &BackupArgs) -> ExitCode {
    let place = match arguments.to == "-" {
        true => SummaryPlace::Error,
        false => SummaryPlace::Output,
    };
    finish(back_up(arguments, place), "backup", &arguments.common, place)
}

fn back_up(arguments: &BackupArgs, place: SummaryPlace) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let options = options(arguments);
    let mut terminal = Terminal::new(&arguments.common);
    let result = backup(&options, &terminal, &cancel);
    terminal.close();
    let ends = Ends {
        command: Command::Backup,
        source: "tree",
        target: kind_of(&options.target, rustix::stdio::stdout()),
        rate_limit_bytes_per_second: options.rate_limit_bytes_per_second,
    };
    print(&summarise(&result?, &ends, &terminal), &arguments.common, place)?;
    match terminal.warnings_total() {
        0 => Ok(Outcome::Done),
        _ => Ok(Outcome::Warned),
    }
}

fn options(arguments: &BackupArgs) -> BackupOptions {
    let target = &arguments.target;
    BackupOptions {
        sources: arguments.sources.clone(),
        target: arguments.to.clone(),
        existing: target.existing(),
        compression: arguments.compress,
        compress_threads: arguments.compress_threads.map(NonZero::get),
        read_threads: arguments.read_threads.map(NonZero::get),
        block_bytes: target.block_size.bytes(),
        ring_bytes: target.ring_bytes(least_ring_bytes(arguments.compress)),
        start_fill_percent: target.start_fill,
        restart_fill_percent: None,
        excludes: arguments.exclude.clone(),
        file_systems: match arguments.one_file_system {
            true => FileSystems::One,
            false => FileSystems::All,
        },
        attributes: match arguments.no_xattrs {
            true => Attributes::Ignore,
            false => Attributes::Read,
        },
        engine: arguments.common.engine.into(),
        rate_limit_bytes_per_second: target.rate_limit.map(|rate| rate.0),
    }
}

/// Three quarters of the ring are for chunks on their way to the compressors, of which there have
/// to be four at least.
fn least_ring_bytes(compression: Compression) -> usize {
    match compression {
        Compression::None => 0,
        _ => compression.chunk_bytes() * 6,
    }
}
