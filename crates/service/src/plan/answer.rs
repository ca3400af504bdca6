//! A plan as an answer. What is not known is null.

use model::plan::alternatives::{Alternative, Effort};
use model::plan::{Compression, Plan};
use model::tape::generation::Generation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::mount::drive::DriveParameter;

use super::{HeadsReads, MeasuredAccess, MeasuredSource, Planned, TimeWindow};
use crate::Answer;
use crate::calibration::disk::{CalibratedDisk, DiskFromRuns};
use crate::calibration::{CalibratedDrive, FromRuns};

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanAnswer {
    /// The generation of the drive, for example LTO-8.
    pub drive: String,
    /// The generation of its media.
    pub medium: String,
    /// The maker of the drive, if given.
    pub maker: Option<String>,
    /// The same backup with the drive of each maker, if the maker is not given and matters.
    pub makers: Vec<MakerAnswer>,
    /// Drives that write at the same time.
    pub drives: u64,
    /// The experiment that the model of the drive comes from.
    pub from: Option<CalibratedDrive>,
    pub source: PlanSourceAnswer,
    /// The measurement of the paths.
    pub measured: Option<MeasuredAnswer>,
    /// How the data compress.
    pub compression: CompressionAnswer,
    /// Memory for blocks that wait for the drive.
    pub ring_bytes: u64,
    /// How full the ring must be before a waiting writer continues.
    pub start_fill_percent: u8,
    /// Bytes of one write.
    pub block_bytes: u64,
    /// The plan as requested.
    pub plan: PredictedRun,
    /// Whether the plan fits into the available time, if given.
    pub window: Option<WindowAnswer>,
    /// Other ways to do the backup.
    pub alternatives: Vec<AlternativeAnswer>,
    /// The names of the best ways.
    pub best: BestWays,
    /// What limits the plan, and the best ways, in words.
    pub explanation: String,
    /// The parameters of the model of the drive.
    pub parameters: Vec<DriveParameter>,
}

impl Answer for PlanAnswer {
    const COMMAND: &'static str = "plan";
}

/// The backup with the drive of one maker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MakerAnswer {
    pub maker: Option<String>,
    /// The lowest speed of native data.
    pub lowest_bytes_per_second: u64,
    /// The highest speed of native data.
    pub highest_bytes_per_second: u64,
    /// How sure the speeds are.
    pub speeds_certainty: String,
    /// Time of the backup.
    pub seconds: f64,
    /// Stops for lack of data.
    pub back_hitches: u64,
}

/// The source of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSourceAnswer {
    /// Content.
    pub size_bytes: u64,
    pub files: u64,
    /// Rate of content while a file is read.
    pub bytes_per_second: u64,
    /// Additional time for each file.
    pub file_ns: u64,
    /// The number of cores, if they limit the rate.
    pub bounded_by_cores: Option<u64>,
    /// Bytes of one read, if the rate comes from a disk.
    pub read_block_bytes: Option<u64>,
    /// The kernel's read-ahead, if the rate comes from a disk.
    pub read_ahead_bytes: Option<u64>,
    /// How its files are read, if the disk has heads and their number is known.
    pub heads: Option<HeadsAnswer>,
    /// The experiment that the disk comes from.
    pub from: Option<CalibratedDisk>,
}

/// How the files of a disk with heads are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadsAnswer {
    /// Mean content of a file.
    pub file_bytes: u64,
    /// The part in the middle of the disk on which the files are assumed to lie side by side, in
    /// another order than that of their names.
    pub spread_bytes: u64,
    /// Content that may be read ahead.
    pub window_bytes: u64,
    /// Files that are read ahead in the order of the disk; null if they are read by name.
    pub window_files: Option<u64>,
    /// Time of all files.
    pub seconds: f64,
    /// Share of it in which the heads are on their way, 0 to 1.
    pub seek_share: f64,
    /// Time of all files in the order of their names.
    pub by_name_seconds: f64,
}

/// A source whose files are read in the order of its disk, because accesses take long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredAccessAnswer {
    /// Median time to read a file that lies far from the one before.
    pub access_seconds: f64,
    /// Mean time of a file in the order of the disk; null if too few were read.
    pub file_seconds: Option<f64>,
    /// Whether getting to files takes more of the time than reading them.
    pub is_the_limit: bool,
}

/// What was measured of the paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredAnswer {
    /// Bytes of content that were read.
    pub read_bytes: u64,
    /// Time of reading.
    pub seconds: f64,
    /// Compression ratio in a drive; null if nothing was read.
    pub drive_ratio: Option<f64>,
    /// Compression ratio of zstd.
    pub software_ratio: Option<f64>,
    /// Rate of zstd on all cores.
    pub software_bytes_per_second: Option<u64>,
    /// Objects that could not be read.
    pub problems: u64,
    /// Accesses take long: files are read in the order of the disk. Null if they do not.
    pub access: Option<MeasuredAccessAnswer>,
}

/// Where the data are compressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum CompressionAnswer {
    /// Nowhere.
    None,
    Drive {
        ratio: f64,
        /// Whether the ratio is a guess.
        is_ratio_assumed: bool,
    },
    /// On the host.
    Software {
        ratio: f64,
        /// Bytes of input.
        bytes_per_second: u64,
    },
}

/// The predicted result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedRun {
    /// From the first byte to the last filemark, changes of volumes included.
    pub seconds: f64,
    /// The part of it that is changing volumes.
    pub change_seconds: f64,
    /// Volumes over all drives.
    pub volumes: u64,
    /// Stops for lack of data, over all drives.
    pub back_hitches: u64,
    /// Hours that tapes are in motion, over all drives.
    pub motion_hours: f64,
    /// Content per second of the whole time.
    pub bytes_per_second: f64,
    /// Rate on the medium of each drive while writing.
    pub native_bytes_per_second: f64,
    /// Share of the writing time in which tape passes the head.
    pub streaming_share: f64,
    /// Size of the archive as it leaves the host.
    pub archive_bytes: u64,
    /// Its size on media.
    pub medium_bytes: u64,
    /// source, staging disk, software compression, commands, interface or medium.
    pub limit: String,
    /// Rate of the limit, in content.
    pub limit_bytes_per_second: f64,
    /// Rate of content below which a drive has to stop.
    pub lowest_bytes_per_second: f64,
}

/// Whether a plan fits into the available time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowAnswer {
    /// The available time.
    pub seconds: f64,
    /// Whether the requested plan fits.
    pub fits: bool,
    /// The time that is left, below zero if the plan is too long.
    pub seconds_left: f64,
    /// The rate that all content needs to fit.
    pub content_bytes_per_second: f64,
    /// The names of the alternatives that fit.
    pub alternatives_that_fit: Vec<String>,
    /// What would be enough, with all else as requested.
    pub needs: NeedsAnswer,
}

/// What a plan needs to end in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeedsAnswer {
    /// A sufficient rate of the source; null if no source is fast enough.
    pub source_bytes_per_second: Option<u64>,
    /// The least number of such drives; null if no number is enough.
    pub drives: Option<u64>,
}

/// Another way to do the backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlternativeAnswer {
    /// A few words.
    pub name: String,
    /// setting, procedure or hardware.
    pub effort: String,
    /// Options of `takeup backup` that do it, if it is a setting.
    pub options: Option<String>,
    pub plan: PredictedRun,
}

/// The names of the best ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestWays {
    /// With settings alone.
    pub with_settings: Option<String>,
    /// With other ways of working, too.
    pub with_procedures: Option<String>,
    /// With other drives, too.
    pub of_all: Option<String>,
}

impl Planned {
    /// As an answer.
    pub fn answer(&self) -> PlanAnswer {
        let setup = &self.setup;
        let best = |most: Effort| self.best_name(most).map(str::to_owned);
        PlanAnswer {
            drive: self.drive.name.to_owned(),
            medium: self.medium.unwrap_or(self.drive).name.to_owned(),
            maker: self.drive.maker.map(|maker| maker.to_string()),
            makers: self.makers().iter().map(maker).collect(),
            drives: setup.drives,
            from: self.from.as_ref().map(FromRuns::answer),
            source: self.source_answer(),
            measured: self.measured.as_ref().map(measured),
            compression: self.compression_answer(),
            ring_bytes: setup.ring_bytes,
            start_fill_percent: setup.start_fill_percent,
            block_bytes: setup.block_bytes,
            plan: predicted(self.asked()),
            window: self.window.map(|window| self.window_answer(window)),
            alternatives: self.list[1..].iter().map(alternative).collect(),
            best: BestWays {
                with_settings: best(Effort::Setting),
                with_procedures: best(Effort::Procedure),
                of_all: best(Effort::Hardware),
            },
            explanation: self.explanation(),
            parameters: setup.drive.rows().iter().map(DriveParameter::from).collect(),
        }
    }

    fn source_answer(&self) -> PlanSourceAnswer {
        let source = &self.setup.source;
        PlanSourceAnswer {
            size_bytes: source.size_bytes,
            files: source.files,
            bytes_per_second: source.bytes_per_second,
            file_ns: source.file_ns,
            bounded_by_cores: self.bounded_by_cores.map(|cores| cores as u64),
            read_block_bytes: self.reads.map(|reads| reads.read_bytes),
            read_ahead_bytes: self.reads.map(|reads| reads.read_ahead_bytes),
            heads: self.reads.and_then(|reads| reads.heads).map(heads),
            from: self.source_from.as_ref().map(DiskFromRuns::answer),
        }
    }

    fn compression_answer(&self) -> CompressionAnswer {
        match self.setup.compression {
            Compression::None => CompressionAnswer::None,
            Compression::Drive(ratio) => CompressionAnswer::Drive {
                ratio: ratio.as_f64(),
                is_ratio_assumed: self.is_ratio_assumed,
            },
            Compression::Software { ratio, bytes_per_second } => {
                CompressionAnswer::Software { ratio: ratio.as_f64(), bytes_per_second }
            }
        }
    }

    fn window_answer(&self, window: TimeWindow) -> WindowAnswer {
        let fitting = self.list[1..].iter().filter(|one| window.fits(&one.plan));
        WindowAnswer {
            seconds: window.seconds,
            fits: window.fits(self.asked()),
            seconds_left: window.seconds - self.asked().seconds,
            content_bytes_per_second: self.setup.source.size_bytes as f64 / window.seconds,
            alternatives_that_fit: fitting.map(|one| one.name.clone()).collect(),
            needs: NeedsAnswer {
                source_bytes_per_second: window.needs.source_bytes_per_second,
                drives: window.needs.drives,
            },
        }
    }
}

fn maker((row, plan): &(&'static Generation, Plan)) -> MakerAnswer {
    MakerAnswer {
        maker: row.maker.map(|maker| maker.to_string()),
        lowest_bytes_per_second: row.lowest_speed(),
        highest_bytes_per_second: row.highest_speed(),
        speeds_certainty: row.speed_certainty.to_string(),
        seconds: plan.seconds,
        back_hitches: plan.back_hitches,
    }
}

fn measured(measured: &MeasuredSource) -> MeasuredAnswer {
    MeasuredAnswer {
        read_bytes: measured.read_bytes,
        seconds: measured.seconds,
        drive_ratio: measured.drive_ratio,
        software_ratio: measured.software.map(|(ratio, _)| ratio),
        software_bytes_per_second: measured.software.map(|(_, rate)| rate),
        problems: measured.problems,
        access: measured.access.as_ref().map(measured_access),
    }
}

fn heads(heads: HeadsReads) -> HeadsAnswer {
    HeadsAnswer {
        file_bytes: heads.file_bytes,
        spread_bytes: heads.spread_bytes,
        window_bytes: heads.window_bytes,
        window_files: heads.window_files,
        seconds: heads.seconds,
        seek_share: heads.seek_share(),
        by_name_seconds: heads.by_name_seconds,
    }
}

fn measured_access(access: &MeasuredAccess) -> MeasuredAccessAnswer {
    MeasuredAccessAnswer {
        access_seconds: access.access_time.as_secs_f64(),
        file_seconds: access.file_seconds,
        is_the_limit: access.is_the_limit(),
    }
}

fn predicted(plan: &Plan) -> PredictedRun {
    PredictedRun {
        seconds: plan.seconds,
        change_seconds: plan.change_seconds,
        volumes: plan.volumes,
        back_hitches: plan.back_hitches,
        motion_hours: plan.motion_hours,
        bytes_per_second: plan.bytes_per_second,
        native_bytes_per_second: plan.native_bytes_per_second,
        streaming_share: plan.streaming_share,
        archive_bytes: plan.archive_bytes,
        medium_bytes: plan.medium_bytes,
        limit: plan.limit.name().to_owned(),
        limit_bytes_per_second: plan.limit_bytes_per_second,
        lowest_bytes_per_second: plan.lowest_bytes_per_second,
    }
}

fn alternative(one: &Alternative) -> AlternativeAnswer {
    AlternativeAnswer {
        name: one.name.clone(),
        effort: one.effort.name().to_owned(),
        options: one.options.clone(),
        plan: predicted(&one.plan),
    }
}
