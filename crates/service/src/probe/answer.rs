//! What was found as an answer. What is not known is null.

use std::path::PathBuf;

use base::finding::{Finding, Severity};
use device::tape::limits::{Found, LimitedBy};
use device::tape::survey::{Answers, KernelView, Readiness, Survey, options};
use device::tape::{BlockMode, Compression};
use model::tape::generation::{Generation, Steps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::stack::Layer;

use super::findings::recommended;
use super::{Probed, ProbedDrive, ProbedLayers};
use crate::Answer;
use crate::virtual_drive::VirtualDriveAnswer;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProbeAnswer {
    /// Of a tape drive.
    Drive(Box<DriveAnswer>),
    /// Of any other path.
    Layers(LayersAnswer),
}

impl Answer for ProbeAnswer {
    const COMMAND: &'static str = "probe";
}

/// The layers of storage below a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayersAnswer {
    /// As it was asked for; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// From the file system down to the hardware.
    pub layers: Vec<Layer>,
    /// The layer whose read-ahead acts.
    pub read_ahead_acts_at: Option<String>,
    /// What could not be read.
    pub not_readable: Vec<PathBuf>,
    /// Whether there are more layers than are followed.
    pub is_cut: bool,
    /// What stands out.
    pub findings: Vec<Finding>,
}

/// A tape drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveAnswer {
    /// As it was asked for.
    pub device: String,
    /// The node that does not rewind.
    pub node: String,
    /// ready, empty, not ready or busy.
    pub state: String,
    /// The program that has the drive open.
    pub holder: Option<HolderAnswer>,
    pub drive: DriveFacts,
    pub medium: Option<MediumFacts>,
    /// Where the tape stands.
    pub position: Option<PositionFacts>,
    /// The block sizes that go through.
    pub blocks: Option<BlockLimits>,
    /// What the kernel says.
    pub driver: DriverFacts,
    /// The block size to use.
    pub recommended_block_bytes: Option<u64>,
    pub recommended_because: Option<String>,
    /// What stands out.
    pub findings: Vec<Finding>,
    /// Questions without an answer.
    pub unanswered: Option<Vec<Unanswered>>,
}

/// A program that has the drive open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HolderAnswer {
    /// Its process id.
    pub process: u32,
    pub name: String,
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unanswered {
    /// The question.
    pub what: String,
    /// Why there is no answer.
    pub why: String,
}

/// What the drive says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveFacts {
    /// The maker.
    pub vendor: Option<String>,
    /// The model.
    pub product: Option<String>,
    /// Its version.
    pub firmware: Option<String>,
    pub serial_number: Option<String>,
    /// The generation of LTO.
    pub generation: Option<GenerationFacts>,
    pub buffer_bytes: Option<u64>,
    /// on, off or unable.
    pub compression: Option<String>,
    /// The TapeAlert flags that are set.
    pub tape_alerts: Option<Vec<AlertFacts>>,
    pub as_set: Option<VirtualDriveAnswer>,
}

/// A TapeAlert flag (SSC-4, annex A).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertFacts {
    pub flag: u8,
    /// As the standard has it.
    pub severity: Severity,
    /// What it means.
    pub meaning: String,
}

/// A generation of LTO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationFacts {
    /// For example LTO-8.
    pub name: String,
    /// The lowest speed of native data.
    pub lowest_bytes_per_second: u64,
    /// The highest speed of native data.
    pub highest_bytes_per_second: u64,
    /// The speeds that are known.
    pub speeds_bytes_per_second: Vec<u64>,
    /// Whether those are all speeds.
    pub speeds_are_complete: bool,
    /// How sure they are.
    pub speeds_certainty: String,
    /// Native bytes of a medium.
    pub capacity_bytes: u64,
    /// The buffer of a drive.
    pub assumed_buffer_bytes: u64,
    /// How sure that is.
    pub buffer_certainty: String,
}

/// The medium in the drive (SSC-4, log page 17h).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediumFacts {
    /// As the drive reports it.
    pub density_code: u8,
    /// The generation of LTO.
    pub generation: Option<GenerationFacts>,
    /// Whether it can be read only.
    pub write_protected: bool,
    /// Whether it can be written once only.
    pub write_once: Option<bool>,
    /// The label for a library.
    pub barcode: Option<String>,
    pub serial_number: Option<String>,
    /// Its maker.
    pub manufacturer: Option<String>,
    /// As the drive calls it.
    pub personality: Option<String>,
    /// How often it was loaded.
    pub loads: Option<u64>,
    /// Native bytes that it holds.
    pub capacity_bytes: Option<u64>,
    /// Native bytes that are used.
    pub used_bytes: Option<u64>,
    /// Bytes written in its life.
    pub written_bytes: Option<u64>,
    /// Bytes read in its life.
    pub read_bytes: Option<u64>,
    /// Write errors that were not corrected.
    pub write_errors: Option<u64>,
    /// Read errors that were not corrected.
    pub read_errors: Option<u64>,
    /// The compression ratio of what was written.
    pub write_ratio_percent: Option<u64>,
}

/// Where the tape stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionFacts {
    /// Counted from 0.
    pub file_number: Option<u32>,
    /// Counted from 0.
    pub block_in_file: Option<u32>,
    /// As the drive counts blocks and filemarks.
    pub object: Option<u64>,
    pub at_beginning: bool,
    /// Whether data end there.
    pub at_end_of_data: bool,
    /// Whether the end of the medium is near.
    pub behind_early_warning: Option<bool>,
}

/// The block sizes that go through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockLimits {
    /// The block size that the drive is set to; null where each write is a block.
    pub fixed_bytes: Option<u32>,
    /// The smallest that the drive takes.
    pub drive_bytes_min: u32,
    /// The largest that the drive takes.
    pub drive_bytes_max: u32,
    /// asked, tried or unknown.
    pub drive_limits_found: String,
    /// The largest transfer of the way to the drive.
    pub transfer_bytes_max: Option<u64>,
    /// A transfer that goes through in any case.
    pub transfer_bytes_sure: Option<u64>,
    /// The largest block.
    pub largest_bytes: u64,
    /// drive, driver, host adapter or fuse.
    pub largest_is_limited_by: String,
    /// The largest block that is not copied.
    pub direct_bytes_max: u64,
}

/// What the kernel says of the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverFacts {
    /// host:channel:target:unit.
    pub address: Option<String>,
    /// The driver of the adapter.
    pub host_driver: Option<String>,
    /// The node for SCSI commands.
    pub generic_device: Option<String>,
    /// Options of st that are set.
    pub options: Option<Vec<String>>,
    /// Whether blocks are not copied.
    pub direct_io: Option<bool>,
    /// Since the drive appeared.
    pub written_bytes: Option<u64>,
    /// Time of these writes.
    pub write_ns: Option<u64>,
    /// Since the drive appeared.
    pub read_bytes: Option<u64>,
    /// Time of these reads.
    pub read_ns: Option<u64>,
}

impl Probed {
    /// As an answer.
    pub fn answer(&self) -> ProbeAnswer {
        match self {
            Probed::Drive(drive) => ProbeAnswer::Drive(Box::new(drive_answer(drive))),
            Probed::Layers(layers) => ProbeAnswer::Layers(layers_answer(layers)),
        }
    }
}

fn layers_answer(layers: &ProbedLayers) -> LayersAnswer {
    let stack = &layers.stack;
    LayersAnswer {
        path: layers.path.to_string_lossy().into_owned(),
        layers: stack.layers.clone(),
        read_ahead_acts_at: stack.read_ahead().map(|layer| layer.name.clone()),
        not_readable: stack.not_readable.clone(),
        is_cut: stack.is_cut,
        findings: layers.findings.clone(),
    }
}

fn drive_answer(drive: &ProbedDrive) -> DriveAnswer {
    let ProbedDrive { survey, played, findings } = drive;
    let answers = survey.answers.as_ref();
    let names = survey.names();
    let holder = match &survey.readiness {
        Readiness::Busy(Some(holder)) => {
            Some(HolderAnswer { process: holder.process, name: holder.name.clone() })
        }
        _ => None,
    };
    let advice = answers.map(|answers| recommended(&answers.limits));
    DriveAnswer {
        device: survey.device.clone(),
        node: survey.node.clone(),
        state: state(&survey.readiness).to_owned(),
        holder,
        drive: DriveFacts {
            vendor: names.map(|names| names.vendor.clone()),
            product: names.map(|names| names.product.clone()),
            firmware: names.map(|names| names.revision.clone()),
            serial_number: answers.and_then(|answers| answers.serial_number.clone()),
            generation: survey.drive_generation().map(generation),
            buffer_bytes: answers
                .and_then(|answers| answers.sequential)
                .and_then(|page| page.buffer_bytes),
            compression: answers.and_then(|answers| answers.compression).map(compression),
            tape_alerts: answers.and_then(alerts),
            as_set: played.as_ref().map(VirtualDriveAnswer::of),
        },
        medium: answers
            .filter(|answers| answers.status.online)
            .map(|answers| medium(survey, answers)),
        position: answers.filter(|answers| answers.status.online).map(position),
        blocks: answers.map(blocks),
        driver: driver(&survey.kernel),
        recommended_block_bytes: advice.as_ref().map(|advice| advice.0),
        recommended_because: advice.map(|advice| advice.1),
        findings: findings.clone(),
        unanswered: answers.map(|answers| {
            let list = answers.unanswered.iter();
            list.map(|(what, why)| Unanswered { what: what.to_string(), why: why.to_string() })
                .collect()
        }),
    }
}

fn state(readiness: &Readiness) -> &'static str {
    match readiness {
        Readiness::Ready => "ready",
        Readiness::Empty => "empty",
        Readiness::NotReady => "not ready",
        Readiness::Busy(_) => "busy",
    }
}

fn generation(generation: &Generation) -> GenerationFacts {
    GenerationFacts {
        name: generation.name.to_owned(),
        lowest_bytes_per_second: generation.lowest_speed(),
        highest_bytes_per_second: generation.highest_speed(),
        speeds_bytes_per_second: generation.speeds.to_vec(),
        speeds_are_complete: generation.steps == Steps::All,
        speeds_certainty: generation.speed_certainty.to_string(),
        capacity_bytes: generation.capacity_bytes,
        assumed_buffer_bytes: generation.buffer_bytes,
        buffer_certainty: generation.buffer_certainty.to_string(),
    }
}

fn compression(compression: Compression) -> String {
    let word = match compression {
        Compression::On => "on",
        Compression::Off => "off",
        Compression::Unable => "unable",
    };
    word.to_owned()
}

fn alerts(answers: &Answers) -> Option<Vec<AlertFacts>> {
    let list = answers.alerts.as_ref()?.iter().map(|alert| AlertFacts {
        flag: alert.flag,
        severity: alert.severity,
        meaning: alert.meaning.to_owned(),
    });
    Some(list.collect())
}

fn medium(survey: &Survey, answers: &Answers) -> MediumFacts {
    let volume = answers.volume.clone().unwrap_or_default();
    MediumFacts {
        density_code: answers.status.density,
        generation: survey.medium_generation().map(generation),
        write_protected: answers.status.write_protected,
        write_once: volume.write_once,
        barcode: volume.barcode,
        serial_number: volume.serial_number,
        manufacturer: volume.manufacturer,
        personality: volume.personality,
        loads: volume.loads,
        capacity_bytes: volume.capacity_bytes,
        used_bytes: volume.used_bytes,
        written_bytes: volume.written_bytes,
        read_bytes: volume.read_bytes,
        write_errors: volume.write_errors,
        read_errors: volume.read_errors,
        write_ratio_percent: volume.write_ratio_percent,
    }
}

fn position(answers: &Answers) -> PositionFacts {
    let status = &answers.status;
    let told = answers.position;
    PositionFacts {
        file_number: status.file_number,
        block_in_file: status.block_in_file,
        object: told.and_then(|position| position.object).or(answers.object),
        at_beginning: status.at_beginning,
        at_end_of_data: status.at_end_of_data,
        behind_early_warning: told.map(|position| position.behind_early_warning),
    }
}

fn blocks(answers: &Answers) -> BlockLimits {
    let limits = &answers.limits;
    BlockLimits {
        fixed_bytes: match answers.status.block_mode {
            BlockMode::Variable => None,
            BlockMode::Fixed(bytes) => Some(bytes),
        },
        drive_bytes_min: limits.drive.bytes_min,
        drive_bytes_max: limits.drive.bytes_max,
        drive_limits_found: match limits.found {
            Found::Asked => "asked",
            Found::Tried => "tried",
            Found::Unknown => "unknown",
        }
        .to_owned(),
        transfer_bytes_max: limits.transfer_bytes_max,
        transfer_bytes_sure: limits.transfer_bytes_sure,
        largest_bytes: limits.block_bytes_max,
        largest_is_limited_by: match limits.limited_by {
            LimitedBy::Drive => "drive",
            LimitedBy::Driver => "driver",
            LimitedBy::HostAdapter => "host adapter",
            LimitedBy::Fuse => "fuse",
        }
        .to_owned(),
        direct_bytes_max: limits.direct_bytes_max,
    }
}

fn driver(kernel: &KernelView) -> DriverFacts {
    let names = kernel.options.map(|set| {
        let named = options::NAMES.iter().filter(|(bit, _)| set & bit != 0);
        named.map(|(_, name)| (*name).to_owned()).collect()
    });
    DriverFacts {
        address: kernel.address.clone(),
        host_driver: kernel.host_driver.clone(),
        generic_device: kernel.generic_device.clone(),
        options: names,
        direct_io: kernel.direct_io,
        written_bytes: kernel.statistics.map(|counters| counters.write_bytes),
        write_ns: kernel.statistics.map(|counters| counters.write_ns),
        read_bytes: kernel.statistics.map(|counters| counters.read_bytes),
        read_ns: kernel.statistics.map(|counters| counters.read_ns),
    }
}
