//! What a restore from tape needs: which media in which order, what is read of each, and how long
//! it takes the drive.
//!
//! The times are those of the model of the drive, which goes through the same steps as the restore.
//! How long people or a changer take for another medium, nobody knows; disks that are slower than
//! the drive are not looked at.

use std::path::Path;
use std::sync::Arc;

use archive::index::About;
use archive::label::hex;
use base::calendar::time_text;
use device::tape::{Access, TapeDrive};
use flow::cancel::Cancel;
use model::tape::TapeModel;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use runs::restore::{ChainReads, LostParts, SetReads, chain_reads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{HELD_BYTES_MAX, TapeStands, WantedBlocks, is_read_through, reading_order};

use super::{RestoreRequest, options};
use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::{Failure, nothing_found_hint};
use crate::tape_sets::TapeSets;
use crate::virtual_drive::VirtualDrive;

/// Blocks that the model reads one by one; of longer reads it takes several at once.
const STEPS_MAX: u64 = 200_000;

/// What a restore from tape needs.
#[derive(Clone, Debug)]
pub struct RestorePlanDone {
    pub about: About,
    pub steps: Vec<PlannedMedium>,
    /// Sets whose places are not known: their media are asked for.
    pub unknown: Vec<String>,
    /// Of which drive the times are; `None`: no drive is known, and no time.
    pub drive: Option<String>,
}

/// What is read of a medium, from when it is in the drive until the next one is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedMedium {
    /// Its id, as labels have it.
    pub medium: String,
    pub sets: Vec<PlannedSet>,
    pub bytes: u64,
    /// Places that the tape is wound to.
    pub places: u64,
    /// Time for winding and reading; null where no drive is known.
    pub seconds: Option<f64>,
}

/// What is read of a set on a medium.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSet {
    pub name: String,
    /// Number of the volume in the set.
    pub volume: u32,
}

/// What a restore from tape needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestorePlanAnswer {
    pub job: String,
    /// The set that is restored.
    pub set: String,
    pub number: u64,
    /// When its run began, in UTC.
    pub begun: String,
    /// The media in the order in which they are wanted.
    pub media: Vec<PlannedMedium>,
    /// Sets whose places are not known: their media are asked for.
    pub unknown: Vec<String>,
    /// Time in the drive, without the changes of medium; null where it is not known.
    pub seconds: Option<f64>,
    /// Of which drive the times are.
    pub drive: Option<String>,
}

impl Answer for RestorePlanAnswer {
    const COMMAND: &'static str = "restore plan";

    fn command(&self) -> &str {
        "restore"
    }
}

impl RestorePlanDone {
    /// Time in the drive, without the changes of medium.
    pub fn seconds(&self) -> Option<f64> {
        let all_known = self.unknown.is_empty();
        let seconds = self.steps.iter().map(|step| step.seconds);
        seconds.sum::<Option<f64>>().filter(|_| all_known)
    }

    /// As an answer.
    pub fn answer(&self) -> RestorePlanAnswer {
        RestorePlanAnswer {
            job: self.about.job.clone(),
            set: hex(&self.about.set),
            number: self.about.number,
            begun: time_text(self.about.begun_seconds as i64),
            media: self.steps.clone(),
            unknown: self.unknown.clone(),
            seconds: self.seconds(),
            drive: self.drive.clone(),
        }
    }
}

/// Says what a restore from tape would need. Nothing is restored; the tape in the drive is read
/// only where it has to say which set is meant.
///
/// # Errors
/// When it is no tape drive, there is no such set, or none of the paths is in it.
pub fn restore_plan(
    request: &RestoreRequest,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<RestorePlanDone, Failure> {
    let Some(drive) = device::tape::find(&request.from) else {
        let message = format!("--plan: {} is no tape drive", request.from.display());
        return Err(Failure::of(message, Some("of a folder every archive is at hand")));
    };
    let drive = Arc::new(drive);
    let tape_sets = TapeSets::for_reading();
    let (set, selection) = (request.tape.set.as_ref(), &request.set);
    let wanted = match tape_sets.wanted(drive.clone(), set, selection, cancel)? {
        Some(wanted) => wanted,
        None => tape_sets.last_of_tape(drive.clone(), cancel)?,
    };
    let options = options(request, cancel, changer)?;
    let Some(tape) = options.from.as_tape().cloned() else {
        return Err(Failure::of("the drive is gone", None));
    };
    let lost = if request.partial { LostParts::Named } else { LostParts::End };
    let chain = tape_sets.chain(&wanted, &tape, lost)?;
    let reads = chain_reads(&options, &chain)?;
    if reads.sets.is_empty() && !reads.not_found.is_empty() {
        let hint = nothing_found_hint(&reads.not_found);
        return Err(Failure::of("none of the requested paths is in the set", Some(&hint)));
    }
    let timed = timed_drive(&request.from, &*drive);
    let unknown = reads.sets.iter().filter(|set| set.blocks.is_none());
    Ok(RestorePlanDone {
        about: wanted.about,
        unknown: unknown.map(|set| set.name.clone()).collect(),
        steps: steps(&reads, timed.as_ref()),
        drive: timed.map(|timed| timed.words),
    })
}

/// A drive whose times are known.
struct TimedDrive {
    parameters: TapeParameters,
    /// How many times faster than real time it runs.
    speed_up: f64,
    words: String,
}

/// The drive as it is: a virtual one by its settings, a real one by its generation.
fn timed_drive(path: &Path, drive: &dyn TapeDrive) -> Option<TimedDrive> {
    if let Some(time) = path.to_str().and_then(VirtualDrive::parameters_of_tape) {
        let (parameters, speed_up) = time;
        let words = "the virtual drive, as it is set".to_owned();
        return Some(TimedDrive { parameters, speed_up, words });
    }
    let mut tape = drive.open(Access::Read).ok()?;
    let generation = Generation::of_density(tape.status().ok()?.density)?;
    let product = tape.inquiry().map(|names| names.product).unwrap_or_default();
    let generation = generation.in_drive(&product);
    let words = format!("{} ({})", generation.title(), generation.speed_certainty);
    Some(TimedDrive { parameters: TapeParameters::of(generation), speed_up: 1.0, words })
}

/// The media in the order in which they are wanted.
fn steps(reads: &ChainReads, drive: Option<&TimedDrive>) -> Vec<PlannedMedium> {
    let mut steps: Vec<PlannedMedium> = Vec::new();
    let mut clock = drive.map(Clock::new);
    let mut in_drive: Option<[u8; 16]> = None;
    for SetReads { name, blocks, .. } in &reads.sets {
        let blocks = blocks.as_deref().unwrap_or_default();
        let stands = in_drive.map(|medium| {
            let block_bytes = blocks.first().map_or(1, |first| first.block_bytes.max(1));
            let object = clock.as_ref().map(|clock| clock.position_bytes() / block_bytes);
            TapeStands { medium, object }
        });
        let motion = drive.map(|drive| &drive.parameters);
        for number in reading_order(blocks, stands, motion, HELD_BYTES_MAX) {
            let wanted = &blocks[number];
            let medium = hex(&wanted.medium);
            let is_next = steps.last().is_none_or(|step| step.medium != medium);
            in_drive = Some(wanted.medium);
            if is_next {
                // The tape of another medium is at its beginning, where its first label is.
                if let Some(clock) = clock.as_mut().filter(|_| !steps.is_empty()) {
                    clock.change();
                    clock.take(1, wanted.block_bytes);
                }
                let (sets, bytes, places, seconds) =
                    (Vec::new(), 0, 0, clock.as_ref().map(|_| 0.0));
                steps.push(PlannedMedium { medium, sets, bytes, places, seconds });
            }
            let is_wound = clock.as_mut().is_none_or(|clock| clock.read(wanted));
            let Some(step) = steps.last_mut() else { continue };
            let set = PlannedSet { name: name.clone(), volume: wanted.volume };
            if !step.sets.contains(&set) {
                step.sets.push(set);
            }
            step.bytes += wanted.blocks * wanted.block_bytes;
            step.places += u64::from(is_wound || is_next);
            if let (Some(seconds), Some(clock)) = (&mut step.seconds, &mut clock) {
                *seconds += clock.passed_seconds();
            }
        }
    }
    steps
}

/// The model of the drive, going through the steps of a restore.
struct Clock {
    model: TapeModel,
    speed_up: f64,
    now_ns: u64,
    told_ns: u64,
    capacity_bytes: u64,
}

impl Clock {
    fn new(drive: &TimedDrive) -> Clock {
        let capacity_bytes = drive.parameters.capacity_bytes.value;
        let mut model = TapeModel::new(drive.parameters.clone());
        let loaded_ns = model.load(0, capacity_bytes);
        // The first medium counts as loaded.
        let (now_ns, told_ns) = (loaded_ns, loaded_ns);
        Clock { model, speed_up: drive.speed_up, now_ns, told_ns, capacity_bytes }
    }

    /// Another medium comes into the drive. That takes no time of the restore's own.
    fn change(&mut self) {
        let unloaded_ns = self.model.unload(self.now_ns);
        self.now_ns = self.model.load(unloaded_ns, self.capacity_bytes);
        self.told_ns = self.now_ns;
    }

    /// Bytes from the beginning of the medium to the tape's position.
    fn position_bytes(&self) -> u64 {
        self.model.position_bytes()
    }

    /// Goes to the blocks and reads them. Whether the tape was wound there, and not read on to.
    fn read(&mut self, wanted: &WantedBlocks) -> bool {
        let at = self.model.position_bytes();
        let place = wanted.first.unwrap_or(0) * wanted.block_bytes;
        let is_read_on = place >= at && is_read_through(self.model.parameters(), at, place);
        if is_read_on {
            self.take((place - at) / wanted.block_bytes, wanted.block_bytes);
        } else {
            self.now_ns = self.model.locate(self.now_ns, place);
        }
        self.take(wanted.blocks, wanted.block_bytes);
        !is_read_on
    }

    /// Reads blocks; of very many, several at once.
    fn take(&mut self, blocks: u64, block_bytes: u64) {
        let at_once = blocks.div_ceil(STEPS_MAX).max(1);
        let mut left = blocks;
        while left > 0 {
            let now = left.min(at_once);
            let bytes = now * block_bytes;
            // What the index has behind the end of the medium takes no time that is known.
            let Ok(read) = self.model.read(self.now_ns, bytes, bytes) else { return };
            self.now_ns = read.at_ns;
            left -= now;
        }
    }

    fn passed_seconds(&mut self) -> f64 {
        let passed = self.now_ns - std::mem::replace(&mut self.told_ns, self.now_ns);
        passed as f64 / 1e9 / self.speed_up
    }
}
