//! The arguments of `takeup backup`.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use archive::chunk::Compression;
use clap::{Args, ValueEnum};
use service::backup::{BackupRequest, TapeBlockMode, TapeTargetSettings};
use service::dry_run::Sampling;
use service::sets::SetSettings;

use crate::proposing::{COMPRESSIONS, proposing};
use crate::quantity::{Size, one_or_more};
use crate::run::{ChangeArgs, CommonArgs, ReadOrderArgs, RecordArgs, TargetArgs};
use crate::telling::TellingArgs;

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
  takeup backup /home --to /mnt/sets/ --incremental
  takeup backup /home --to /mnt/sets/ --incremental --dry-run
  takeup backup /srv --to /dev/nst0 --dry-run --sample
  takeup backup /home --to /mnt/sets/ --incremental --changed-from changed --audit-every 7
  takeup backup /home --to /mnt/sets/ --incremental --changed-from btrfs:/home
  takeup backup /srv --to - | ssh host 'cat > srv.tar'
  takeup backup /srv --to /dev/nst0
  takeup backup /srv --compress zstd --to /dev/nst0 --change-command ./next-tape")]
pub struct BackupArgs {
    /// What to back up
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Where the archive goes; - is standard output; a folder, with / at its end, gets a set of a
    /// chain, whose archive takeup names
    #[arg(short, long, value_name = "TARGET")]
    to: OsString,
    /// zstd[:LEVEL], gzip[:LEVEL] or none; zstd where the method is left out
    ///
    /// By default the name of the target decides: .tar.zst, .tzst and .zst are zstd, .tar.gz, .tgz
    /// and .gz are gzip, and every other target is not compressed.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "zstd",
          value_name = "METHOD", hide_possible_values = true,
          value_parser = proposing(Compression::from_str, COMPRESSIONS))]
    compress: Option<Compression>,
    /// Threads that compress; by default one for each core
    #[arg(hide_short_help = true, long, value_name = "N",
          value_parser = one_or_more::<NonZero<usize>>)]
    compress_threads: Option<NonZero<usize>>,
    /// Threads that read small files; by default as many as keep a disk busy
    #[arg(hide_short_help = true, long, value_name = "N",
          value_parser = one_or_more::<NonZero<usize>>)]
    read_threads: Option<NonZero<usize>>,
    #[command(flatten)]
    order: ReadOrderArgs,
    /// Only say what would be stored, and why, and what a tape drive would need for it; nothing is
    /// written, and no content is read without --sample
    #[arg(short = 'n', long, conflicts_with = "record")]
    pub dry_run: bool,
    /// Of a dry run: read up to 134 MB of what would be stored, and say how far it compresses
    #[arg(long, requires = "dry_run")]
    sample: bool,
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
    #[arg(hide_short_help = true, long, requires = "overwrite")]
    force: bool,
    #[command(flatten)]
    set: SetArgs,
    #[command(flatten)]
    tape: TapeArgs,
    /// Who is told of it.
    #[command(flatten)]
    pub telling: TellingArgs,
    /// What all runs have.
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Options for sets of a chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sets in a folder or on tape")]
struct SetArgs {
    /// Store only what has changed since the last set of the job; TARGET is a folder of sets, or a
    /// tape
    #[arg(short, long)]
    incremental: bool,
    /// Store what has changed since this set: its archive's name, or the start of its id
    #[arg(hide_short_help = true, long, value_name = "SET", conflicts_with = "level")]
    since: Option<String>,
    /// Store what has changed since the last set of a lower level; 0 is a full set
    #[arg(hide_short_help = true, long, value_name = "N", conflicts_with = "incremental",
          value_parser = clap::value_parser!(u8).range(..=9))]
    level: Option<u8>,
    /// Name of the job that the set belongs to; by default \"backup\"
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Look only where this file says that something has changed: paths, each with a NUL behind
    /// it, as `find -print0` writes them; - is standard input; btrfs:SUBVOLUME asks btrfs
    ///
    /// A list of what has changed since the last set, by a program that knows. Only the folders
    /// that hold a path of it are read; everything else counts as unchanged. Paths are absolute or
    /// relative to the current folder. Without a set to begin from, everything is stored.
    ///
    /// btrfs:SUBVOLUME is what btrfs knows to have changed since the set before began, and
    /// btrfs:SUBVOLUME@GENERATION since a transaction; this needs root. zfs:POOL/FS@FROM..@UNTIL is
    /// what `zfs diff` lists. A file whose name begins with btrfs: or zfs: is named with ./ in
    /// front.
    #[arg(long, value_name = "LIST")]
    changed_from: Option<PathBuf>,
    /// Look everywhere in every Nth set in spite of --changed-from, and name what the list missed
    #[arg(hide_short_help = true, long, value_name = "N", requires = "changed_from",
          value_parser = one_or_more::<NonZero<u32>>)]
    audit_every: Option<NonZero<u32>>,
    /// Go on although a source is empty now, or lies on another file system than in the last set
    #[arg(hide_short_help = true, long)]
    source_may_change: bool,
}

impl SetArgs {
    fn settings(&self) -> SetSettings {
        SetSettings {
            incremental: self.incremental,
            since: self.since.clone(),
            level: self.level,
            job: self.job.clone(),
            source_may_change: self.source_may_change,
            changed_from: self.changed_from.clone(),
            audit_every: self.audit_every,
        }
    }
}

/// Options for tapes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tape")]
struct TapeArgs {
    /// Bytes of the archive between two filemarks; by default enough that filemarks take less than
    /// 1 % of the time
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    segment_size: Option<Size>,
    /// Variable or fixed block size of the drive
    #[arg(hide_short_help = true, long, value_enum, default_value_t = BlockMode::Variable,
          value_name = "MODE")]
    block_mode: BlockMode,
    /// Switch the drive's compression on or off; unchanged by default
    #[arg(hide_short_help = true, long, value_enum, value_name = "SWITCH")]
    drive_compression: Option<Switch>,
    /// Write over the data on later volumes, too; --overwrite is only for the medium in the drive
    /// at the start
    #[arg(hide_short_help = true, long)]
    overwrite_volumes: bool,
    /// What the medium in the drive is called; by default its bar code, where the drive tells it
    ///
    /// One without a name gets this one. One that holds sets and is called otherwise is refused: it
    /// is another medium. With --overwrite it gets the name anew. Later volumes that have neither
    /// name nor bar code get the name with their number.
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    volume_name: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
    /// Eject the medium at the end
    #[arg(hide_short_help = true, long)]
    eject: bool,
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

impl BackupArgs {
    /// What a dry run reads.
    pub fn sampling(&self) -> Sampling {
        if self.sample { Sampling::Stretches } else { Sampling::Nothing }
    }

    /// What is asked for.
    pub fn request(&self) -> BackupRequest {
        BackupRequest {
            sources: self.sources.clone(),
            to: self.to.clone().into(),
            compress: self.compress.map(|method| method.to_string()),
            compress_threads: self.compress_threads,
            read_threads: self.read_threads,
            read_order: self.order.read_order.into(),
            read_window_bytes: self.order.read_window_bytes(),
            exclude: self.exclude.clone(),
            one_file_system: self.one_file_system,
            no_xattrs: self.no_xattrs,
            target: self.target.settings(),
            force: self.force,
            set: self.set.settings(),
            tape: self.tape.settings(),
            engine: self.common.engine.into(),
            record: self.record.record.clone(),
        }
    }

    /// Whether the archive goes to standard output.
    pub fn is_to_standard_output(&self) -> bool {
        self.to == "-"
    }
}

impl TapeArgs {
    fn settings(&self) -> TapeTargetSettings {
        TapeTargetSettings {
            segment_bytes: self.segment_size.map(|size| size.0),
            block_mode: match self.block_mode {
                BlockMode::Variable => TapeBlockMode::Variable,
                BlockMode::Fixed => TapeBlockMode::Fixed,
            },
            drive_compression: self.drive_compression.map(|switch| switch == Switch::On),
            overwrite_volumes: self.overwrite_volumes,
            change_command: self.change.change_command.clone(),
            volume_name: self.volume_name.clone(),
            eject: self.eject,
        }
    }
}

/// Joins `--compress` and its method to one argument. The argument after the option is its method
/// only if it looks like one, since it can also be a source.
pub fn with_method(typed: Vec<OsString>) -> Vec<OsString> {
    if typed.get(1).is_none_or(|command| command != "backup") {
        return typed;
    }
    let mut words = typed.into_iter().peekable();
    let mut joined = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            joined.push(word);
            joined.extend(words);
            return joined;
        }
        let text = word.to_str().unwrap_or_default();
        if text == "--compress" || text == "-c" {
            let method = words.next_if(|next| is_method(next)).unwrap_or_else(|| "zstd".into());
            let mut whole = OsString::from("--compress=");
            whole.push(method);
            joined.push(whole);
        } else if let Some(method) = text.strip_prefix("-c").filter(|it| is_method(OsStr::new(it)))
        {
            joined.push(format!("--compress={method}").into());
        } else {
            joined.push(word);
        }
    }
    joined
}

/// A known method, or a word that can only be a mistyped method: clap reports it as unknown.
fn is_method(word: &OsStr) -> bool {
    let Some(text) = word.to_str() else { return false };
    let name = text.split(':').next().unwrap_or_default();
    let is_known = ["zstd", "gzip", "none"].contains(&name);
    let is_word = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
        && !Path::new(text).exists();
    is_known || is_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_no_method() {
        let joined = |words: &[&str]| {
            let typed = ["takeup", "backup"].into_iter().chain(words.iter().copied());
            let joined = with_method(typed.map(OsString::from).collect());
            joined[2..].iter().map(|it| it.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(joined(&["--compress", "/home", "--to"]), ["--compress=zstd", "/home", "--to"]);
        assert_eq!(joined(&["--compress", "gzip:9", "/home"]), ["--compress=gzip:9", "/home"]);
        assert_eq!(joined(&["-czstd:19", "/home"]), ["--compress=zstd:19", "/home"]);
        assert_eq!(joined(&["-c", "src"]), ["--compress=zstd", "src"]);
        assert_eq!(joined(&["--compress", "lzma", "/home"]), ["--compress=lzma", "/home"]);
        assert_eq!(joined(&["/home", "--compress"]), ["/home", "--compress=zstd"]);
        assert_eq!(joined(&["--", "--compress", "gzip"]), ["--", "--compress", "gzip"]);
        let other = vec!["takeup".into(), "plan".into(), "--compress".into(), "zstd".into()];
        assert_eq!(with_method(other.clone()), other);
    }
}
