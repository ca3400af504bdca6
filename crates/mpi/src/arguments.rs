//! The command line of `takeup-mpi`.

use std::num::NonZero;
use std::path::PathBuf;

use ::arguments::bench::disk::BenchDiskArgs;
use ::arguments::bench::read::BenchReadArgs;
use ::arguments::bench::run::BenchRunArgs;
use ::arguments::proposing::{COMPRESSIONS, proposing};
use ::arguments::quantity::{Size, one_or_more};
use archive::chunk::Compression;
use clap::{Args, Parser, Subcommand};

use crate::say::Loudness;

/// Measures many hosts at once, and backs up a large tree with them
///
/// One rank a host. All ranks get the same arguments; {rank} and {host} in them are filled in on
/// each host, {next} is the rank behind it, and --map fills in names of your own.
#[derive(Debug, Parser)]
#[command(
    name = "takeup-mpi",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi bench read /mnt/lustre/f.{rank} --block-size 1M
  srun -N 8 takeup-mpi bench read /dev/{disk} --map disks --cache direct --block-size 1M
  mpirun -np 8 --hostfile hosts takeup-mpi backup /mnt/lustre/home --to /mnt/nas/home.shards
  mpirun -np 8 --hostfile hosts takeup-mpi verify /mnt/nas/home.shards
  mpirun -np 4 --hostfile hosts takeup-mpi restore /mnt/nas/home.shards --into /mnt/new

Exit codes: 0 done, 1 failed or damage found, 2 done but incomplete, 3 written by a later version."
)]
pub struct ManyArgs {
    #[command(subcommand)]
    command: ManyCommand,
}

impl ManyArgs {
    /// What is done.
    pub fn command(&self) -> &ManyCommand {
        &self.command
    }
}

#[derive(Debug, Subcommand)]
// There is one of it in a process. clap would take documentation here for the help.
#[allow(clippy::large_enum_variant)]
pub enum ManyCommand {
    #[command(subcommand)]
    Bench(ManyBench),
    Backup(BackupArgs),
    Verify(VerifyArgs),
    Restore(RestoreArgs),
}

/// Run an experiment on all hosts at once
///
/// The experiment is that of takeup bench, with the number of hosts as a further factor. All hosts
/// begin at an agreed instant. The rate is that of the window in which all were active.
#[derive(Debug, Subcommand)]
pub enum ManyBench {
    Read(ManyReadArgs),
    Disk(ManyDiskArgs),
    Run(ManyRunArgs),
}

/// What all experiments on many hosts have.
#[derive(Args, Clone, Debug)]
pub struct HostsArgs {
    /// Numbers of hosts to measure; by default 1 and all, in between every power of two
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Hosts")]
    pub hosts: Vec<u64>,
    /// File with names that differ between hosts: host, name and value on each line; {NAME} in the
    /// arguments is filled in
    #[arg(long, value_name = "FILE", help_heading = "Hosts")]
    pub map: Option<PathBuf>,
}

/// Measure what streams get from files or block devices, on all hosts at once
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi bench read /mnt/lustre/one.file --block-size 1M
  mpirun -np 8 --hostfile hosts takeup-mpi bench read /mnt/lustre/file.{next} --block-size 1M")]
pub struct ManyReadArgs {
    /// What `takeup bench read` takes.
    #[command(flatten)]
    pub own: BenchReadArgs,
    /// Which hosts.
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Measure block devices or files with fio, on all hosts at once
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi bench disk /mnt/lustre/dir.{rank} --load randread")]
pub struct ManyDiskArgs {
    /// What `takeup bench disk` takes.
    #[command(flatten)]
    pub own: BenchDiskArgs,
    /// Which hosts.
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Compare commands, each run on all hosts at once
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi bench run --command 'cat=cat /mnt/lustre/f.{rank}' \\
    --bytes-of /mnt/lustre/f.{rank}")]
pub struct ManyRunArgs {
    /// What `takeup bench run` takes.
    #[command(flatten)]
    pub own: BenchRunArgs,
    /// Which hosts.
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// What all commands on sets have.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// Most hosts that work at a time, for a metadata server that takes no more
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    pub at_once: Option<NonZero<usize>>,
    /// Threads of each host that compress or check; by default one for each core
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    pub threads: Option<NonZero<usize>>,
    /// Print one JSON document at the end instead of text
    #[arg(long)]
    pub json: bool,
    /// Print nothing but warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl SetArgs {
    /// Whether progress and results are shown.
    pub fn loudness(&self) -> Loudness {
        if self.quiet { Loudness::Quiet } else { Loudness::Usual }
    }
}

/// Back up a large tree into shards, with all hosts
///
/// Every shard is a plain tar archive: `for s in shard-*.tar; do tar xpf $s; done` gives the tree,
/// without takeup. Rank 0 hands out shards to idle hosts and keeps the journal. After a crash, a
/// lost host or Ctrl-C the same command goes on: shards that are sealed stay.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi backup /mnt/lustre/home --to /mnt/nas/home.shards
  srun -N 8 takeup-mpi backup /mnt/lustre/home --to /mnt/nas/home.shards --compress")]
pub struct BackupArgs {
    /// Folders to back up, which all hosts see under the same name
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Folder of the shards, which all hosts see under the same name
    #[arg(short, long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// zstd[:LEVEL], gzip[:LEVEL] or none; zstd where the method is left out
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "zstd",
          default_value = "none", value_name = "METHOD", hide_possible_values = true,
          hide_default_value = true,
          value_parser = proposing(<Compression as std::str::FromStr>::from_str, COMPRESSIONS))]
    pub compress: Compression,
    /// Most bytes of a shard, unless one file is larger; small trees get smaller ones
    #[arg(long, value_name = "SIZE", default_value = "16G")]
    pub shard_size: Size,
    /// Do not enter other file systems
    #[arg(long)]
    pub one_file_system: bool,
    /// What all commands on sets have.
    #[command(flatten)]
    pub set: SetArgs,
}

/// Verify the shards of a set, with all hosts
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 8 --hostfile hosts takeup-mpi verify /mnt/nas/home.shards")]
pub struct VerifyArgs {
    /// Folder of the shards
    #[arg(value_name = "FOLDER")]
    pub from: PathBuf,
    /// What all commands on sets have.
    #[command(flatten)]
    pub set: SetArgs,
}

/// Restore the shards of a set, with all hosts
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mpirun -np 4 --hostfile hosts takeup-mpi restore /mnt/nas/home.shards --into /mnt/new")]
pub struct RestoreArgs {
    /// Folder of the shards
    #[arg(value_name = "FOLDER")]
    pub from: PathBuf,
    /// Folder to restore into, which all hosts see under the same name
    #[arg(long, value_name = "FOLDER")]
    pub into: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    pub overwrite: bool,
    /// What all commands on sets have.
    #[command(flatten)]
    pub set: SetArgs,
}
