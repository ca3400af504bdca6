//! `takeup backup`: writes files into an archive.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive::chunk::Compression;
use base::escape::escape;
use base::finding::Certainty;
use clap::{Args, ValueEnum};
use device::tape::DriveCompression;
use device::target::Existing;
use flow::cancel::Cancel;
use flow::monitor::{Level, Monitor, Notice};
use flow::run::RunReport;
use model::tape::generation::Generation;
use runs::backup::{BackupOptions, Refill, Shrinking, backup};
use runs::destination::Destination;
use runs::streaming::TapeSummary;
use runs::verdict::{RunState, Verdict, no_file};
use serde_json::{Value, json};
use tapeset::{BlockLayout, DrivePace, START_FILL_PERCENT, TapeOptions, TapeReport};
use tree::{Attributes, FileSystems};

use crate::change::{ChangeArgs, Changer};
use crate::compression_by_name;
use crate::options::{CommonArgs, TargetArgs, destination};
use crate::outcome::{SummaryPlace, finish, print_with, summarise_with, wrote};
use crate::recording::RecordArgs;
use crate::terminal::Terminal;
use arguments::quantity::{Size, one_or_more};
use service::failure::Failure;
use service::outcome::{Outcome, certainty};
use service::virtual_drive::VirtualDrive;

/// Write files and directories into an archive
///
/// The archive is plain tar (pax), compressed or not; tar, bsdtar, zstd and gzip read it. A file
/// that cannot be read is reported and skipped, and the exit code is 2. A target file gets its name
/// once it is complete and synchronised: whatever stops the run, the name leads to the whole
/// archive or to the old file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup backup /srv --to /mnt/backup/srv.tar
  takeup backup /home /etc --exclude '*.cache' --compress zstd --to home.tar.zst
  takeup backup /srv --to - | ssh host 'cat > srv.tar'
  takeup backup /srv --to /dev/nst0
  takeup backup /srv --compress zstd --to /dev/nst0 --change-command ./next-tape")]
pub struct BackupArgs {
    /// What to back up
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Where the archive goes; - is standard output
    #[arg(short, long, value_name = "TARGET")]
    to: OsString,
    /// zstd[:LEVEL], gzip[:LEVEL] or none; zstd where the method is left out
    ///
    /// By default the name of the target decides: .tar.zst, .tzst and .zst are zstd, .tar.gz, .tgz
    /// and .gz are gzip, and every other target is not compressed.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "zstd",
          value_name = "METHOD")]
    compress: Option<Compression>,
    /// Threads that compress; by default one for each core
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    compress_threads: Option<NonZero<usize>>,
    /// Threads that read small files; by default as many as keep a disk busy
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    read_threads: Option<NonZero<usize>>,
    /// Leave out files and directories that match; can be repeated
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
    /// Replace an archive even if the new one has less than half of its members or bytes
    #[arg(long, requires = "overwrite")]
    force: bool,
    #[command(flatten)]
    tape: TapeArgs,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Options for tapes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tape")]
struct TapeArgs {
    /// Bytes of the archive between two filemarks; by default enough that filemarks take less than
    /// 1 % of the time
    #[arg(long, value_name = "SIZE")]
    segment_size: Option<Size>,
    /// Variable or fixed block size of the drive
    #[arg(long, value_enum, default_value_t = BlockMode::Variable, value_name = "MODE")]
    block_mode: BlockMode,
    /// Switch the drive's compression on or off; unchanged by default
    #[arg(long, value_enum, value_name = "SWITCH")]
    drive_compression: Option<Switch>,
    /// Write over the data on later volumes, too; --overwrite is only for the medium in the drive
    /// at the start
    #[arg(long)]
    overwrite_volumes: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

/// How blocks are laid out on tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BlockMode {
    /// Each write is a block
    Variable,
    /// Every block has the size --block-size
    Fixed,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Switch it on
    On,
    /// Switch it off
    Off,
}

/// Runs the command.
pub fn run(arguments: &BackupArgs) -> ExitCode {
    let place = if arguments.to == "-" { SummaryPlace::Error } else { SummaryPlace::Output };
    finish(back_up(arguments, place), "backup", &arguments.common, place)
}

fn back_up(arguments: &BackupArgs, place: SummaryPlace) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let changer = Changer::new(&arguments.tape.change, &cancel);
    let to = destination(&arguments.to, tape_options(&arguments.tape, &arguments.to), changer);
    let chosen = compression_by_name::choose(arguments.compress, &to)?;
    let options = options(arguments, to, chosen.compression);
    let folder = std::path::absolute(&arguments.to).ok();
    let folder = folder.as_deref().and_then(Path::parent).filter(|_| arguments.to != "-");
    let source = arguments.sources.first().map(PathBuf::as_path);
    let mut terminal = Terminal::new(&arguments.common)
        .recording(arguments.record.apart_from(&arguments.to)?)?
        .watching(source, folder);
    if let Some(text) = chosen.contradiction {
        let object = arguments.to.as_encoded_bytes().to_vec();
        terminal.notice(Notice { level: Level::Note, object, text });
    }
    let result = backup(&options, &terminal, &cancel);
    terminal.close();
    let report = result?;
    let tape = report.tape.as_ref().map(|tape| tape_summary(&report.run, tape));
    let summary = summarise_with(report.run, &mut terminal, |summary| {
        if let Some(verdict) = all_left_out(&summary.run, &report.excluded) {
            summary.verdict = verdict;
        }
        summary.findings.extend(tape.as_ref().and_then(|tape| tape.finding.clone()));
    });
    let fields = json!({ "tape": tape });
    let lines = tape.map(|tape| tape.to_text()).unwrap_or_default();
    let fields = if lines.is_empty() { Value::Null } else { fields };
    print_with(&summary, &wrote(&arguments.to), &fields, &lines, &arguments.common, place)?;
    Ok(summary.verdict.state.into())
}

/// The verdict on an archive without a file because of `--exclude`, which is likely a mistake.
fn all_left_out(run: &RunReport, excluded: &[String]) -> Option<Verdict> {
    if run.files > 0 || excluded.is_empty() {
        return None;
    }
    let globs: Vec<String> = excluded.iter().map(|glob| escape(glob.as_bytes())).collect();
    let text = format!(
        "INCOMPLETE: the archive holds {}: --exclude {} left out everything",
        no_file(run),
        globs.join(" ")
    );
    Some(Verdict { state: RunState::Incomplete, text })
}

fn options(arguments: &BackupArgs, to: Destination, compression: Compression) -> BackupOptions {
    let target = &arguments.target;
    let is_tape = to.is_tape();
    let mut options = BackupOptions {
        sources: arguments.sources.clone(),
        target: to,
        existing: target.existing(),
        shrinking: if arguments.force { Shrinking::Allow } else { Shrinking::Refuse },
        mode: target.mode(),
        compression,
        compress_threads: arguments.compress_threads.map(NonZero::get),
        read_threads: arguments.read_threads.map(NonZero::get),
        block_bytes: target.block_size.bytes(),
        ring_bytes: target.ring_bytes(least_ring_bytes(compression)),
        start_fill_percent: target.start_fill.unwrap_or(0),
        refill: Refill::AsAtTheStart,
        excludes: arguments.exclude.clone(),
        file_systems: if arguments.one_file_system { FileSystems::One } else { FileSystems::All },
        attributes: if arguments.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        engine: arguments.common.engine.into(),
        rate_limit_bytes_per_second: target.rate_limit.map(|rate| rate.0),
    };
    if is_tape {
        pace_for_tape(&mut options, target);
    }
    options
}

fn tape_options(arguments: &TapeArgs, to: &OsStr) -> TapeOptions {
    TapeOptions {
        segment_bytes: arguments.segment_size.map(|size| size.bytes() as u64),
        layout: match arguments.block_mode {
            BlockMode::Variable => BlockLayout::Variable,
            BlockMode::Fixed => BlockLayout::Fixed,
        },
        drive_compression: arguments.drive_compression.map(|switch| match switch {
            Switch::On => DriveCompression::On,
            Switch::Off => DriveCompression::Off,
        }),
        later_volumes: if arguments.overwrite_volumes { Existing::Replace } else { Existing::Keep },
        pace: to.to_str().and_then(pace_of_virtual_drive),
    }
}

/// The pace of a virtual drive comes from its settings and its `--speed-up`. The run is paced by
/// the same lowest speed by which it is judged.
fn pace_of_virtual_drive(device: &str) -> Option<DrivePace> {
    let drive = VirtualDrive::of_tape(device)?;
    let VirtualDrive { lowest_bytes_per_second, buffer_bytes, .. } = drive;
    // The time of a filemark shrinks by the same factor, so the length of segments depends on
    // neither.
    let highest_bytes_per_second = (drive.highest_bytes_per_second as f64 / drive.speed_up) as u64;
    Some(DrivePace { lowest_bytes_per_second, buffer_bytes, highest_bytes_per_second })
}

/// A tape must not stop often: a large ring gives few long stops instead of many short ones.
fn pace_for_tape(options: &mut BackupOptions, target: &TargetArgs) {
    let default = tapeset::ring_bytes(options.ring_bytes);
    options.ring_bytes = target.ring.map_or(default, Size::bytes);
    options.start_fill_percent = target.start_fill.unwrap_or(START_FILL_PERCENT);
    if target.start_fill.is_none() {
        options.refill = Refill::AsTheTargetNeeds;
    }
}

fn tape_summary(run: &RunReport, tape: &TapeReport) -> TapeSummary {
    let mut summary = summary_of_generation(run, tape);
    if let Some(drive) = VirtualDrive::of_tape(&tape.device) {
        summary.drive_buffer_bytes = Some(drive.buffer_bytes);
        summary.lowest_bytes_per_second = Some(drive.lowest_bytes_per_second);
        summary.lowest_certainty = Some(drive.certainty());
        summary.certainty = Some(Certainty::Told);
    }
    summary.judged()
}

fn summary_of_generation(run: &RunReport, tape: &TapeReport) -> TapeSummary {
    let waited_seconds = tape.synchronise_seconds + tape.change_seconds;
    TapeSummary {
        device: tape.device.clone(),
        set: tape.set.clone(),
        generation: tape.generation.map(|generation| generation.name),
        lowest_bytes_per_second: tape.generation.map(Generation::lowest_speed),
        drive_buffer_bytes: tape.generation.map(|generation| generation.buffer_bytes),
        lowest_certainty: tape.generation.map(|it| it.speed_certainty.to_string()),
        certainty: tape.generation.map(|it| certainty(it.speed_certainty)),
        block_bytes: tape.block_bytes,
        segment_bytes: tape.segment_bytes,
        file_number: tape.file_number,
        volumes: tape.volumes,
        segments: tape.segments,
        blocks: tape.blocks,
        bytes: tape.blocks * tape.block_bytes,
        filemarks: tape.filemarks,
        write_seconds: tape.drive_write_ns.map(|ns| ns as f64 / 1e9),
        synchronise_seconds: tape.synchronise_seconds,
        change_seconds: tape.change_seconds,
        streaming_seconds: (tape.seconds - waited_seconds).max(0.0),
        ring_ran_empty: run.times_ran_empty,
        ready_seconds: tape.ready_seconds,
        label_seconds: tape.label_seconds,
        ..TapeSummary::default()
    }
}

/// Three quarters of the ring are for chunks that wait for the compressors: four chunks at least.
fn least_ring_bytes(compression: Compression) -> usize {
    match compression {
        Compression::None => 0,
        _ => compression.chunk_bytes() * 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_drive_is_paced_by_what_it_was_set_to() {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("nst0");
        let pace = || pace_of_virtual_drive(tape.to_str().unwrap());
        assert_eq!(pace(), None, "no drive of ours");
        let status = json!({ "drive": "LTO-4", "time": {
            "speed_up": 2.5, "lowest_bytes_per_second": 20_000_000,
            "highest_bytes_per_second": 90_000_000, "buffer_bytes": 5_000_000,
        } });
        std::fs::write(folder.path().join("status"), status.to_string()).unwrap();
        let (lowest_bytes_per_second, buffer_bytes) = (50_000_000, 5_000_000);
        // Not sped up, like the time of a filemark.
        let highest_bytes_per_second = 90_000_000;
        let set = DrivePace { lowest_bytes_per_second, buffer_bytes, highest_bytes_per_second };
        assert_eq!(pace(), Some(set));
    }
}
