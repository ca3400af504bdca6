//! What reading from tape needs, before it is read: which media in which order, what is read of
//! each, how often the tape is wound, and how long all of it takes the drive.
//!
//! The times are those of the model of the drive, which goes through the same steps as a restore.
//! How long people or a changer take for another medium, nobody knows. What takes the data counts
//! where its rate is given; the same model then says how often the drive stops for it, and of a
//! run that has ended, how often it probably did.

use std::path::Path;
use std::sync::Arc;

use archive::label::hex;
use device::tape::{Access, TapeDrive};
use flow::cancel::Cancel;
use flow::run::RunReport;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use model::tape::reading::{
    Passed, Taker, TapeReader, long_read, rate_without_stops, ring_without_stops,
};
use runs::restore::{PlannedReads, SetInDrive, SetReads, set_in_drive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{
    HELD_BYTES_MAX, TapeOrigin, TapeReading, TapeStands, WantedBlocks, blocks_read_through,
    reading_order,
};

use crate::failure::Failure;
use crate::virtual_drive::VirtualDrive;

/// Size of a read where it is asked from which rate on a drive streams.
const RING_STEP_BYTES: u64 = 1 << 20;
/// The ring that is reckoned with where none is known: the default, or a part of it.
const RING_BYTES_LEAST: u64 = 64 << 20;

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
    /// Part of it for winding.
    pub winding_seconds: Option<f64>,
    /// Time to rewind the medium before this one, which no other time has; null where this is the
    /// first, or no drive is known.
    pub rewind_seconds: Option<f64>,
    /// How often the drive stops for what takes the data; null where no rate is given.
    pub stops: Option<u64>,
}

/// What is read of a set on a medium.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSet {
    /// The name that its archive was given, or its id.
    pub name: String,
    /// Number of the volume in the set.
    pub volume: u32,
}

/// What reading from tape needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeForecast {
    /// The media in the order in which they are wanted.
    pub media: Vec<PlannedMedium>,
    /// Sets whose places are not known: their media are asked for.
    pub unknown: Vec<String>,
    /// Time in the drive, without the changes of medium; null where it is not known.
    pub seconds: Option<f64>,
    /// How often the tape is wound to another place.
    pub locates: u64,
    /// Part of `seconds` for winding.
    pub winding_seconds: Option<f64>,
    /// How often the drive stops for what takes the data; null where no rate is given.
    pub stops: Option<u64>,
    /// From which rate on it never has to, with the ring that the run has.
    pub streams_from_bytes_per_second: Option<u64>,
    /// Of which drive the times are.
    pub drive: Option<String>,
}

/// What became of a drive whose data were not taken in time, by its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitedAnswer {
    /// Rate at which the data were taken.
    pub taken_bytes_per_second: f64,
    /// How often the drive stopped, by the model: nothing reports it.
    pub estimated_stops: u64,
    /// The ring that spares all stops, if there is one in the memory of this machine.
    pub ring_without_stops_bytes: Option<u64>,
    /// From which rate on the drive streams with the ring that the run had.
    pub streams_from_bytes_per_second: u64,
    /// The drive that was modelled, in words.
    pub drive: String,
}

/// A drive whose times are known.
#[derive(Clone, Debug)]
pub(crate) struct TimedDrive {
    parameters: TapeParameters,
    /// How many times faster than real time it runs.
    speed_up: f64,
    words: String,
}

impl TimedDrive {
    /// The drive as it is: a virtual one by its settings, a real one by its generation.
    pub(crate) fn of(path: &Path, drive: &dyn TapeDrive) -> Option<TimedDrive> {
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

    /// A rate of this machine in the drive's own time.
    fn in_its_time(&self, bytes_per_second: f64) -> u64 {
        ((bytes_per_second / self.speed_up) as u64).max(1)
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns as f64 / 1e9 / self.speed_up
    }

    /// The rate on this machine from which on it streams behind such a ring.
    fn streams_from(&self, ring_bytes: u64) -> u64 {
        let rate = rate_without_stops(&self.parameters, ring_bytes, RING_STEP_BYTES);
        (rate as f64 * self.speed_up) as u64
    }
}

/// What takes the data, as this machine counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenAt {
    pub(crate) bytes_per_second: u64,
    pub(crate) ring_bytes: usize,
}

/// The forecast for what is read of these sets, from where the tape stands.
pub(crate) fn forecast(
    sets: &[SetReads],
    stands: Option<TapeStands>,
    drive: Option<&TimedDrive>,
    taken: Option<TakenAt>,
) -> TapeForecast {
    let unknown = sets.iter().filter(|set| set.blocks.is_none());
    let unknown: Vec<String> = unknown.map(|set| set.name.clone()).collect();
    let all_known = unknown.is_empty();
    let media = Steps::new(stands, drive, taken).through(sets);
    let seconds = media.iter().map(|step| step.seconds).sum::<Option<f64>>();
    let winding_seconds = media.iter().map(|step| step.winding_seconds).sum::<Option<f64>>();
    let ring_bytes = taken.map_or(RING_BYTES_LEAST, |taken| taken.ring_bytes as u64);
    let stops = media.iter().map(|step| step.stops).sum::<Option<u64>>();
    TapeForecast {
        locates: media.iter().map(|step| step.places).sum(),
        seconds: seconds.filter(|_| all_known),
        winding_seconds: winding_seconds.filter(|_| all_known),
        stops: stops.filter(|_| all_known && taken.is_some()),
        streams_from_bytes_per_second: drive.map(|drive| drive.streams_from(ring_bytes)),
        drive: drive.map(|drive| drive.words.clone()),
        media,
        unknown,
    }
}

/// The media in the order in which they are wanted.
struct Steps<'a> {
    drive: Option<&'a TimedDrive>,
    /// The model of it, going through the steps.
    reader: Option<TapeReader>,
    has_taker: bool,
    stands: Option<TapeStands>,
    media: Vec<PlannedMedium>,
}

impl<'a> Steps<'a> {
    fn new(
        stands: Option<TapeStands>,
        drive: Option<&'a TimedDrive>,
        taken: Option<TakenAt>,
    ) -> Steps<'a> {
        let reader = drive.map(|drive| {
            let taker = taken.map(|taken| Taker {
                ring_bytes: taken.ring_bytes as u64,
                bytes_per_second: drive.in_its_time(taken.bytes_per_second as f64),
            });
            TapeReader::new(drive.parameters.clone(), taker)
        });
        Steps { drive, reader, has_taker: taken.is_some(), stands, media: Vec::new() }
    }

    fn through(mut self, sets: &[SetReads]) -> Vec<PlannedMedium> {
        let blocks_of = |set: &SetReads| set.blocks.clone().unwrap_or_default();
        let first = sets.iter().flat_map(blocks_of).next();
        self.begin(first.map_or(1, |first| first.block_bytes.max(1)));
        for set in sets {
            let blocks = set.blocks.as_deref().unwrap_or_default();
            let motion = self.drive.map(|drive| &drive.parameters);
            for number in reading_order(blocks, self.stands, motion, HELD_BYTES_MAX, |_| None) {
                self.visit(&set.name, &blocks[number]);
            }
        }
        self.end();
        self.media
    }

    /// The medium in the drive counts as loaded.
    fn begin(&mut self, block_bytes: u64) {
        let object = self.stands.and_then(|stands| stands.object).unwrap_or(0);
        if let Some(reader) = &mut self.reader {
            reader.stand_at(object.saturating_mul(block_bytes));
        }
    }

    fn visit(&mut self, set: &str, wanted: &WantedBlocks) {
        let medium = hex(&wanted.medium);
        let is_next = self.media.last().is_none_or(|step| step.medium != medium);
        if is_next {
            let rewind_seconds = self.bring(wanted);
            let (sets, bytes, places) = (Vec::new(), 0, 0);
            let seconds = self.reader.as_ref().map(|_| 0.0);
            let (winding_seconds, stops) =
                (seconds, self.reader.as_ref().filter(|_| self.has_taker).map(|_| 0));
            self.media.push(PlannedMedium {
                medium,
                sets,
                bytes,
                places,
                seconds,
                winding_seconds,
                rewind_seconds,
                stops,
            });
        }
        let is_wound = self.reader.as_mut().is_none_or(|reader| read(reader, wanted));
        let position = self.reader.as_ref().map(TapeReader::position_bytes);
        let object = position.map(|position| position / wanted.block_bytes.max(1));
        self.stands = Some(TapeStands { medium: wanted.medium, object });
        if let Some(step) = self.media.last_mut() {
            let set = PlannedSet { name: set.to_owned(), volume: wanted.volume };
            if !step.sets.contains(&set) {
                step.sets.push(set);
            }
            step.bytes += wanted.blocks * wanted.block_bytes;
            step.places += u64::from(is_wound);
        }
        self.count();
    }

    /// The tape of another medium is at its beginning, where its first label is. Returns the time
    /// to rewind the one before.
    fn bring(&mut self, wanted: &WantedBlocks) -> Option<f64> {
        let is_here = self.stands.is_none_or(|stands| stands.medium == wanted.medium);
        let reader = self.reader.as_mut().filter(|_| !is_here)?;
        let way_back_ns = reader.change();
        // What the index has behind the end of the medium takes no time that is known.
        let _ = reader.read_over(1, wanted.block_bytes);
        Some(self.drive?.seconds(way_back_ns))
    }

    fn end(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.finish();
        }
        self.count();
    }

    /// What has passed belongs to the medium in the drive.
    fn count(&mut self) {
        let (Some(drive), Some(reader)) = (self.drive, &mut self.reader) else { return };
        let Passed { time_ns, wind_ns, stops, .. } = reader.passed();
        let Some(step) = self.media.last_mut() else { return };
        step.seconds = step.seconds.map(|seconds| seconds + drive.seconds(time_ns));
        step.winding_seconds = step.winding_seconds.map(|wound| wound + drive.seconds(wind_ns));
        step.stops = step.stops.map(|so_far| so_far + stops);
    }
}

/// Goes to the blocks and reads them. Whether the tape was wound there, and not read on to.
fn read(reader: &mut TapeReader, wanted: &WantedBlocks) -> bool {
    let block_bytes = wanted.block_bytes.max(1);
    let (at, place) = (reader.position_bytes() / block_bytes, wanted.first.unwrap_or(0));
    let most = blocks_read_through(reader.parameters(), at, place, block_bytes);
    let is_read_on = place >= at && place - at <= most;
    if is_read_on {
        let _ = reader.read_over(place - at, block_bytes);
    } else {
        reader.go_to(place.saturating_mul(block_bytes));
    }
    let _ = reader.read(wanted.blocks, wanted.block_bytes);
    !is_read_on
}

/// Largest ring that is proposed: as many times less than the memory.
const RING_MEMORY_DIVISOR: u64 = 2;

/// What became of a drive that had to wait, by its model. `None`: it never had to, or no drive is
/// known.
pub(crate) fn waited_in(
    path: &Path,
    tape: Option<&TapeReading>,
    run: &RunReport,
) -> Option<WaitedAnswer> {
    let tape = tape.filter(|tape| tape.ring_was_full > 0)?;
    let drive = device::tape::find(path)?;
    let timed = TimedDrive::of(path, &drive)?;
    let other = tape.ready_seconds + tape.winding_seconds + tape.change_seconds;
    let taking_seconds = run.seconds - run.synchronise_seconds - other;
    if tape.bytes == 0 || taking_seconds <= 0.0 {
        return None;
    }
    let taken_bytes_per_second = tape.bytes as f64 / taking_seconds;
    let bytes_per_second = timed.in_its_time(taken_bytes_per_second);
    let taker = Taker { ring_bytes: run.ring_bytes, bytes_per_second };
    let block_bytes = tape.block_bytes.max(512);
    let passed = long_read(timed.parameters.clone(), taker, tape.bytes, block_bytes);
    let most_bytes = memory_bytes() / RING_MEMORY_DIVISOR;
    let ring = (passed.stops > 0)
        .then(|| ring_without_stops(&timed.parameters, taker, tape.bytes, block_bytes, most_bytes));
    Some(WaitedAnswer {
        taken_bytes_per_second,
        estimated_stops: passed.stops,
        ring_without_stops_bytes: ring.flatten(),
        streams_from_bytes_per_second: timed.streams_from(run.ring_bytes),
        drive: timed.words,
    })
}

fn memory_bytes() -> u64 {
    let memory = rustix::system::sysinfo();
    memory.totalram as u64 * u64::from(memory.mem_unit.max(1))
}

/// The drive that is asked.
///
/// # Errors
/// When it is none.
pub(crate) fn planned_drive(from: &Path) -> Result<Arc<dyn TapeDrive>, Failure> {
    let Some(drive) = device::tape::find(from) else {
        let message = format!("--dry-run: {} is no tape drive", from.display());
        return Err(Failure::of(message, Some("what is on disk is at hand: leave it out")));
    };
    Ok(Arc::new(drive))
}

/// The set that is meant, on the tape in the drive.
///
/// # Errors
/// When there is none, or nothing says what it holds.
pub(crate) fn found(tape: &TapeOrigin, cancel: &Cancel) -> Result<SetInDrive, Failure> {
    set_in_drive(tape, cancel)?.ok_or_else(|| {
        let hint = "without --dry-run it is read, whatever it holds";
        let message = format!("{} has no index that says what there is", tape.drive.name());
        Failure::of(message, Some(hint))
    })
}

/// The forecast for what is read.
pub(crate) fn planned(
    from: &Path,
    drive: &dyn TapeDrive,
    reads: &PlannedReads,
    stands: Option<TapeStands>,
    taken: Option<TakenAt>,
) -> TapeForecast {
    let timed = TimedDrive::of(from, drive);
    forecast(&reads.sets, stands, timed.as_ref(), taken)
}
