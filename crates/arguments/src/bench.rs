//! The arguments of `takeup bench`. Each kind of experiment has its own file; [`options`] has what
//! they share.

pub mod disk;
pub mod import;
pub mod options;
pub mod power;
pub mod read;
pub mod run;
pub mod tape;

use clap::{Args, Subcommand};

/// Run an experiment and report what to set
///
/// Takeup runs every combination several times, in random order within each round, until the
/// intervals are as narrow as requested or the time is used up. It appends every run to a file as
/// soon as the run ends; run the same command again to continue a stopped experiment. `takeup
/// report` draws the file, `takeup compare` compares two of them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench read /srv
  takeup bench disk /srv --load randread,randwrite
  takeup bench tape /dev/nst0
  takeup report takeup-bench-read.ndjson --html report.html")]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

impl BenchArgs {
    /// What is measured.
    pub fn command(&self) -> &BenchCommand {
        &self.command
    }
}

#[derive(Debug, Subcommand)]
// clap would take documentation here for the help.
pub enum BenchCommand {
    Read(read::BenchReadArgs),
    Disk(disk::BenchDiskArgs),
    Tape(tape::BenchTapeArgs),
    Import(import::BenchImportArgs),
    Run(run::BenchRunArgs),
    Power(power::BenchPowerArgs),
    PutBack(PutBackArgs),
}

/// Restore kernel settings that a killed experiment left changed
///
/// Every experiment does this when it begins; use this command if you run no further experiment.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench put-back")]
pub struct PutBackArgs {}
