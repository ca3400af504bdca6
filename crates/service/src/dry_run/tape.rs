//! How many tapes a backup would take, and how long the drive, by the model of `takeup plan`.
//!
//! The drive is not opened: a real one is known by the product name that the kernel has, a virtual
//! one by its settings. Neither says how fast the source is, so that the time is that of a source
//! that keeps up with the drive.

use std::path::Path;

use model::plan::{Compression, Drain, PlanSource, Refill, Setup, plan};
use model::program::Ratio;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::BackupRequest;
use crate::virtual_drive::VirtualDrive;

/// As fast as no source is: the drive sets the pace.
const SOURCE_BYTES_PER_SECOND: u64 = 1_000_000_000_000;
/// As `takeup plan` has them.
const CHANGE_SECONDS: u64 = 60;
const RING_BYTES: u64 = 1 << 30;
const START_FILL_PERCENT: u8 = 95;

/// What a backup would take of a drive and its tapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapesAnswer {
    /// The drive whose numbers these are, and where they come from.
    pub drive: String,
    /// How `takeup plan --drive` calls it; null of a virtual drive.
    pub generation: Option<String>,
    /// Empty tapes.
    pub tapes: u64,
    /// Time in the drive, if the source keeps up with it; changes of tapes with 60 s each besides
    /// the drive's own time.
    pub seconds: f64,
    /// Bytes on the tapes.
    pub medium_bytes: u64,
    /// Host bytes for each byte on the tape that this counts with, by the sample;
    /// null: as if nothing compressed.
    pub ratio: Option<f64>,
}

/// The drive at a path.
struct KnownDrive {
    parameters: TapeParameters,
    /// How many times faster than real time it runs.
    speed_up: f64,
    words: String,
    generation: Option<String>,
}

fn known_drive(path: &Path) -> Option<KnownDrive> {
    let found = device::tape::find(path)?;
    if let Some((parameters, speed_up)) = path.to_str().and_then(VirtualDrive::parameters_of_tape) {
        let words = "the virtual drive, as it is set".to_owned();
        return Some(KnownDrive { parameters, speed_up, words, generation: None });
    }
    let product = found.folder()?.device_text("model")?;
    let generation = Generation::of_product(&product)?;
    let words = format!("{} ({})", generation.title(), generation.speed_certainty);
    let name = generation.name.replace('-', "").to_lowercase();
    let parameters = TapeParameters::of(generation);
    Some(KnownDrive { parameters, speed_up: 1.0, words, generation: Some(name) })
}

/// Plans for so many bytes in so many files, with the ratio of the compression on the way, if it is
/// known. `None`: the target is no drive, or one of which nothing is known.
pub(super) fn tapes(
    request: &BackupRequest,
    bytes: u64,
    files: u64,
    ratio: Option<f64>,
) -> Option<TapesAnswer> {
    let drive = known_drive(&request.to)?;
    let setup = Setup {
        drive: drive.parameters,
        drives: 1,
        source: PlanSource {
            size_bytes: bytes,
            files,
            bytes_per_second: SOURCE_BYTES_PER_SECOND,
            file_ns: 0,
        },
        compression: ratio.map_or(Compression::None, |it| Compression::Drive(Ratio::of(it))),
        ring_bytes: request.target.ring_bytes.unwrap_or(RING_BYTES),
        start_fill_percent: request.target.start_fill_percent.unwrap_or(START_FILL_PERCENT),
        refill: Refill::WhenSlow,
        drain: Drain::Unlimited,
        block_bytes: request.target.block_bytes,
        change_ns: CHANGE_SECONDS * 1_000_000_000,
    };
    let planned = plan(&setup).ok()?;
    Some(TapesAnswer {
        drive: drive.words,
        generation: drive.generation,
        tapes: planned.volumes,
        seconds: planned.seconds / drive.speed_up,
        medium_bytes: planned.medium_bytes,
        ratio,
    })
}
