//! The arguments of `takeup tune queue`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use service::tune::queue::{QueueLoad, TriedSetting, TuneQueueRequest};

use super::TuneMeasureArgs;
use crate::quantity::{Size, Span};

/// Measure which queue settings are best for a load
///
/// Takeup tries scheduler, queue length, largest request and merging in turn, each with the other
/// settings unchanged, until the runs can show the --difference. It says first how long that takes.
/// It only reads PATH, and restores every setting afterwards, even after a crash. It recommends the
/// smallest change that is as good as the best for this load, and only if the result is settled.
/// --apply sets it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo takeup tune queue /srv/db.img
  sudo takeup tune queue /dev/sdb --load read --block-size 1M --depth 8 --settings max_sectors_kb
  takeup tune revert

Without root, only the load with the present settings is measured. takeup bench disk measures other
loads, and combinations of settings.")]
pub struct TuneQueueArgs {
    /// File or block device to read; for a folder, the largest file in it
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Settings to try
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "scheduler,nr_requests,max_sectors_kb,nomerges"
    )]
    settings: Vec<QueueSettingName>,
    /// Load to measure
    #[arg(long, value_name = "LOAD", default_value = "randread")]
    load: QueueLoadName,
    /// Bytes of one request
    #[arg(short, long, value_name = "SIZE", default_value = "4k")]
    block_size: Size,
    /// Requests in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 32,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    depth: u64,
    /// Length of one run
    #[arg(long, value_name = "TIME", default_value = "2s")]
    runtime: Span,
    /// Keep the runs in this folder, one file for each setting, for `takeup report`
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// How it is measured.
    #[command(flatten)]
    pub measure: TuneMeasureArgs,
}

/// Settings that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum QueueSettingName {
    /// I/O scheduler, which orders the requests
    Scheduler,
    /// Requests that may wait
    NrRequests,
    /// Largest request
    MaxSectorsKb,
    /// Whether requests are merged
    Nomerges,
}

impl From<QueueSettingName> for TriedSetting {
    fn from(name: QueueSettingName) -> TriedSetting {
        match name {
            QueueSettingName::Scheduler => TriedSetting::Scheduler,
            QueueSettingName::NrRequests => TriedSetting::NrRequests,
            QueueSettingName::MaxSectorsKb => TriedSetting::MaxSectorsKb,
            QueueSettingName::Nomerges => TriedSetting::Nomerges,
        }
    }
}

/// Loads that write nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueueLoadName {
    /// Random reads
    Randread,
    /// Sequential reads
    Read,
}

impl TuneQueueArgs {
    /// What is asked for.
    pub fn request(&self) -> TuneQueueRequest {
        TuneQueueRequest {
            path: self.path.clone(),
            settings: self.settings.iter().copied().map(TriedSetting::from).collect(),
            load: match self.load {
                QueueLoadName::Randread => QueueLoad::Randread,
                QueueLoadName::Read => QueueLoad::Read,
            },
            block_bytes: self.block_size.0,
            depth: self.depth,
            run_seconds: self.runtime.0,
            output: self.output.clone(),
            measure: self.measure.request(),
        }
    }
}
