//! How long a chain takes, by the models of programs, pipes and drives.
//!
//! Read-ahead is a program in front of the first one: it waits for the disk, and its pipe holds two
//! windows, which is what the kernel has under way. A disk behind the page cache is a program
//! behind the last one. Small files make the first program wait, since the kernel does not read
//! ahead from one file to the next: so large and small files are played one after the other. What
//! holds a rate is a clock with a buffer behind it.

use model::ModelError;
use model::pipeline::{Output, Program, Surroundings, run};
use model::program::{Ratio, coalesced};
use model::tape::TapeModel;
use model::tape::parameters::TapeParameters;

use crate::amount::Pick;
use crate::chain::{Chain, Link, Reading, Source, TapeTarget, Target, Work};
use crate::station::{Station, StationRate, stations};

/// The result of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Of the source's bytes, in the whole run: what begins and ends it is in, which matters where
    /// the source is small.
    pub bytes_per_second: f64,
    /// Seconds of that run beside those of its data: a drive that starts, and empties its buffer.
    pub beside_seconds: f64,
    /// Stops of the tape in each second.
    pub stops_per_second: f64,
}

const MIB: f64 = 1048576.0;
/// What a program does with bytes that it only passes on: two copies, of a processor that copies
/// 5 GB/s.
const PASSING_NS_PER_MIB: u64 = 400_000;
/// One read or write beside its bytes: `dd` without `bs` passes on 400 MB/s where `bs=128k` does
/// 1.0 to 1.2 GB/s, in two calls for 512 bytes (`dd if=FILE of=OTHER`, 400 MiB in memory, in turn).
const CALL_NS: u64 = 500;
/// Smaller steps take the model longer and change nothing.
const STEP_BYTES: u64 = 32 << 10;
/// What the kernel holds of written data before it makes the writer wait.
const WRITTEN_BEHIND_BYTES: u64 = 128 << 20;
/// What `takeup backup` reads ahead of its writer.
const RING_BYTES: u64 = 64 << 20;
/// A program that holds a rate by the clock makes up for this much of what it was kept waiting
/// (pv's burst window).
const BURST_SECONDS: f64 = 5.0;
/// Beside a longer run the seconds of its end are nothing.
const END_MATTERS_SECONDS: f64 = 1000.0;
/// Half of the ring that `takeup backup` takes for a drive on a machine with 4 GiB or more.
const GATHERED_BYTES: u64 = 512 << 20;
const PLAYED_BYTES_MIN: u64 = 256 << 20;
/// So many that a stop of the tape more or less does not matter.
const PLAYED_TO_TAPE_BYTES_MIN: u64 = 2 << 30;
const PLAYED_BYTES_MAX: u64 = 8 << 30;
/// Times the largest buffer of the chain, so that what lies in it does not matter.
const BUFFERS_PLAYED: u64 = 6;

/// Plays a chain: its large files as a run of hours would go, then its small ones, and what a run
/// to a drive takes beside its data. Rates are taken from that end of their ranges.
///
/// # Errors
/// When the model stands still, which would be a defect of it.
pub fn forecast(chain: &Chain, pick: Pick) -> Result<Forecast, ModelError> {
    let (mut seconds, stops) = data_of(chain, pick)?;
    let is_short = chain.source.is_whole && seconds < END_MATTERS_SECONDS;
    let beside_seconds = if is_short { end_seconds(chain)? } else { 0.0 };
    seconds += beside_seconds;
    Ok(Forecast {
        bytes_per_second: chain.source.bytes() as f64 / seconds.max(1e-9),
        beside_seconds,
        stops_per_second: stops / seconds.max(1e-9),
    })
}

/// Seconds of the data, as a run of hours would take them, and stops of the tape in them.
fn data_of(chain: &Chain, pick: Pick) -> Result<(f64, f64), ModelError> {
    let (mut seconds, mut stops) = (0.0, 0.0);
    for (bytes, other) in [
        (
            chain.source.large_bytes,
            Source { small_bytes: 0, small_files: 0, ..chain.source.clone() },
        ),
        (chain.source.small_bytes, Source { large_bytes: 0, stream: None, ..chain.source.clone() }),
    ] {
        if bytes == 0 {
            continue;
        }
        let part_chain = Chain { source: other, ..chain.clone() };
        let part = played(&part_chain, pick)?;
        let own = bytes as f64 / part.bytes_per_second.min(bound(&part_chain, pick));
        seconds += own;
        stops += own * part.stops_per_second;
    }
    Ok((seconds, stops))
}

/// How much longer a run takes than its rate says: the drive still writes what its buffer holds,
/// and a filemark. None without a drive.
fn end_seconds(chain: &Chain) -> Result<f64, ModelError> {
    let Target::Tape(_) = chain.target else { return Ok(0.0) };
    let source = &chain.source;
    if source.reading == Reading::ManyAtOnce {
        return gathered_seconds(chain, data_of(chain, Pick::Typical)?.0);
    }
    // What most bytes are of fills the buffer.
    let own = if source.large_bytes >= source.small_bytes {
        Source { small_bytes: 0, small_files: 0, ..source.clone() }
    } else {
        Source { large_bytes: 0, stream: None, ..source.clone() }
    };
    let part = Chain { source: own, ..chain.clone() };
    let bytes = part.source.bytes().min(PLAYED_BYTES_MAX);
    let rate = played(&part, Pick::Typical)?.bytes_per_second.min(bound(&part, Pick::Typical));
    let (programs, drive, speed_up) = stages(&part, Pick::Typical);
    let play = Play { chain: &part, programs: &programs, drive: drive.as_ref() };
    let (whole, _) = play.run(bytes)?;
    Ok((whole / speed_up - bytes as f64 / rate).max(0.0))
}

/// `takeup backup` lets the drive start when half its ring is full, or all is read, so that it does
/// not stop: what was gathered until then is written later than it was read. `data_seconds` are
/// those that the rate of the whole lets expect.
fn gathered_seconds(chain: &Chain, data_seconds: f64) -> Result<f64, ModelError> {
    let ratio = chain.links.iter().fold(1.0, |ratio, link| match link.work {
        Work::Compresses { ratio: own, .. } => ratio * own.max(0.01),
        _ => ratio,
    });
    let stored = ((chain.source.bytes() as f64 / ratio) as u64).clamp(1, PLAYED_BYTES_MAX);
    let read_seconds =
        data_of(&Chain { target: Target::Nowhere, ..chain.clone() }, Pick::Typical)?.0;
    let gathered = stored.min(GATHERED_BYTES);
    // The ring is half full, in the mean, when the reading of more than that ends.
    let left = if stored > gathered { gathered / 2 } else { gathered };
    let (all, left) = (drive_seconds(chain, stored)?, drive_seconds(chain, left)?);
    let first = read_seconds * gathered as f64 / stored as f64;
    Ok(((first + all).max(read_seconds + left) - data_seconds).max(0.0))
}

/// How long the drive takes for bytes that are there: it starts, and writes a filemark.
fn drive_seconds(chain: &Chain, stored_bytes: u64) -> Result<f64, ModelError> {
    let in_memory = Source { stream: None, small: None, small_files: 0, ..chain.source.clone() };
    let passes = chain.links.iter().take(1);
    let links = passes.map(|link| Link { work: Work::Passes, ..link.clone() }).collect();
    let part = Chain { source: in_memory, links, ..chain.clone() };
    let (programs, drive, speed_up) = stages(&part, Pick::Typical);
    // What comes compressed is not compressed again.
    let play = Play { chain, programs: &programs, drive: drive.as_ref() };
    Ok(play.run(stored_bytes.max(1))?.0 / speed_up)
}

/// No chain is faster than its slowest station. A drive that starts and stops makes what was played
/// a few percent too fast or too slow. The time of a disk that holds source and target is shared.
fn bound(chain: &Chain, pick: Pick) -> f64 {
    let all = stations(chain);
    let rate = |it: &StationRate| it.now.map(|own| own.at(pick));
    let slowest = all.iter().filter_map(rate).fold(f64::INFINITY, f64::min);
    if !matches!(chain.target, Target::Disk { is_of_source: true, .. }) {
        return slowest;
    }
    let of_disk = all.iter().filter(|it| !matches!(it.station, Station::Program(_)));
    let seconds: f64 = of_disk.filter_map(rate).map(|rate| 1.0 / rate.max(1.0)).sum();
    slowest.min(1.0 / seconds.max(1e-18))
}

/// The programs and the drive of the model, and how many times faster than real time it runs.
fn stages(chain: &Chain, pick: Pick) -> (Vec<Program>, Option<TapeParameters>, f64) {
    let speed_up = match &chain.target {
        Target::Tape(tape) => tape.speed_up.max(1e-3),
        _ => 1.0,
    };
    let mut programs = reading(chain, pick, speed_up);
    for (at, link) in chain.links.iter().enumerate() {
        let mut own = program(chain, link, chain.links.len() - at == 1, pick, speed_up);
        if at == 0 && chain.source.reading == Reading::OneByOne {
            own.wait_ns_per_mib += small_ns_per_mib(chain, pick, speed_up);
        }
        if let Work::Holds { bytes_per_second } = link.work {
            let wait_ns_per_mib = (ns_per_mib(bytes_per_second) as f64 * speed_up) as u64;
            programs.push(Program { wait_ns_per_mib, write_bytes: STEP_BYTES, ..own });
            own.input_bytes = ((BURST_SECONDS * bytes_per_second) as u64).max(STEP_BYTES);
        }
        programs.push(own);
    }
    if let Target::Disk { rate, .. } = &chain.target {
        programs.push(Program {
            input_bytes: WRITTEN_BEHIND_BYTES,
            read_bytes: 1 << 20,
            write_bytes: 1 << 20,
            processor_ns_per_mib: 0,
            wait_ns_per_mib: ns_per_mib(rate.at(pick)),
            output: Output::Same,
        });
    }
    let drive = match &chain.target {
        Target::Tape(tape) => Some(drive(tape, &mut programs)),
        _ => None,
    };
    (programs, drive, speed_up)
}

fn played(chain: &Chain, pick: Pick) -> Result<Forecast, ModelError> {
    let (programs, drive, speed_up) = stages(chain, pick);
    let output = chain.links.iter().fold(1.0, |share, link| match link.work {
        Work::Compresses { ratio, .. } => share / ratio.max(1.0),
        _ => share,
    });
    let buffers = programs.iter().map(|it| it.input_bytes + it.write_bytes).max().unwrap_or(0);
    let drives = drive.as_ref().map_or(0, |it| it.buffer_bytes.value);
    let wanted = BUFFERS_PLAYED * buffers.max((drives as f64 / output) as u64);
    let least = if drive.is_some() { PLAYED_TO_TAPE_BYTES_MIN } else { PLAYED_BYTES_MIN };
    let most = wanted.clamp(least, PLAYED_BYTES_MAX);
    let play = Play { chain, programs: &programs, drive: drive.as_ref() };
    // What the start and the end take is paid once, and is not a rate.
    let ((whole, stops), (half, half_stops)) = (play.run(most)?, play.run(most / 2)?);
    let seconds = ((whole - half) / speed_up).max(1e-9);
    Ok(Forecast {
        bytes_per_second: (most - most / 2) as f64 / seconds,
        beside_seconds: 0.0,
        stops_per_second: (stops - half_stops).max(0.0) / seconds,
    })
}

/// A chain as the model takes it.
struct Play<'a> {
    chain: &'a Chain,
    programs: &'a [Program],
    drive: Option<&'a TapeParameters>,
}

impl Play<'_> {
    /// Seconds and stops of the tape.
    fn run(&self, bytes: u64) -> Result<(f64, f64), ModelError> {
        let drive_ratio = match &self.chain.target {
            Target::Tape(tape) if !self.chain.compresses() => Ratio::of(tape.ratio),
            _ => Ratio::NONE,
        };
        let processors = self.chain.cores();
        let around = Surroundings { processors, drive_ratio };
        let mut tape = self.drive.map(|parameters| TapeModel::new(parameters.clone()));
        let run = run(self.programs, around, tape.as_mut(), bytes)?;
        let stops = tape.map_or(0, |tape| tape.counters().back_hitches);
        Ok((run.elapsed_ns as f64 / 1e9, stops as f64))
    }
}

fn ns_per_mib(bytes_per_second: f64) -> u64 {
    (MIB / bytes_per_second.max(1.0) * 1e9) as u64
}

/// Nanoseconds that small files take beside each MiB of all files.
fn small_ns_per_mib(chain: &Chain, pick: Pick, speed_up: f64) -> u64 {
    let source = &chain.source;
    let Some(small) = source.small else { return 0 };
    let each = match source.reading {
        Reading::OneByOne => small.one_by_one,
        Reading::ManyAtOnce => small.at_once,
    };
    // The slow end of a time is its high one.
    let each = match pick {
        Pick::Low => each.high,
        Pick::Typical => each.typical,
        Pick::High => each.low,
    };
    let seconds = each * source.small_files as f64 * speed_up;
    (seconds * 1e9 / (source.bytes() as f64 / MIB)) as u64
}

/// The kernel's read-ahead, or the readers of `takeup backup`.
fn reading(chain: &Chain, pick: Pick, speed_up: f64) -> Vec<Program> {
    let source = &chain.source;
    let share = source.large_bytes as f64 / source.bytes() as f64;
    let (rate, step_bytes) = match (&source.stream, source.reading) {
        (None, _) => (f64::INFINITY, STEP_BYTES),
        (Some(stream), Reading::OneByOne) => {
            (stream.now.at(pick), stream.window_bytes.unwrap_or(STEP_BYTES))
        }
        (Some(stream), Reading::ManyAtOnce) => (stream.most.at(pick), 1 << 20),
    };
    let small = match source.reading {
        Reading::OneByOne => 0,
        Reading::ManyAtOnce => small_ns_per_mib(chain, pick, speed_up),
    };
    let step_bytes = step_bytes.max(STEP_BYTES);
    let wait =
        if rate.is_finite() { (ns_per_mib(rate) as f64 * share * speed_up) as u64 } else { 0 };
    vec![Program {
        input_bytes: 0,
        read_bytes: step_bytes,
        write_bytes: step_bytes,
        processor_ns_per_mib: 0,
        wait_ns_per_mib: wait + small,
        output: Output::Same,
    }]
}

fn program(chain: &Chain, link: &Link, is_last: bool, pick: Pick, speed_up: f64) -> Program {
    let is_first = chain.links.first() == Some(link);
    let input_bytes = match (is_first, chain.source.reading, &chain.source.stream) {
        (true, Reading::ManyAtOnce, _) => RING_BYTES,
        // Two windows.
        (true, Reading::OneByOne, Some(stream)) => {
            2 * stream.window_bytes.unwrap_or(STEP_BYTES).max(STEP_BYTES)
        }
        (true, Reading::OneByOne, None) => 2 * STEP_BYTES,
        (false, ..) => link.input_bytes.max(STEP_BYTES),
    };
    let in_time = |ns: u64| (ns as f64 * speed_up) as u64;
    let mut program = Program {
        input_bytes,
        read_bytes: link.read_bytes.max(STEP_BYTES),
        write_bytes: if is_last { link.write_bytes } else { link.write_bytes.max(STEP_BYTES) },
        processor_ns_per_mib: in_time(PASSING_NS_PER_MIB + calls_ns_per_mib(link)),
        wait_ns_per_mib: 0,
        output: Output::Same,
    };
    match &link.work {
        Work::Passes | Work::Unknown(_) | Work::Holds { .. } => {}
        Work::Compresses { rate, ratio, threads } => {
            let at_once = threads.min(chain.processors).max(1.0);
            let whole = ns_per_mib(rate.at(pick)) as f64 / at_once;
            program.processor_ns_per_mib = in_time(whole as u64);
            let permille = (1000.0 / ratio.max(0.01)) as u64;
            program.output = Output::Alternating { period_bytes: 1 << 20, permille: [permille; 2] };
        }
    }
    program
}

/// What the calls of a program cost beside their bytes.
fn calls_ns_per_mib(link: &Link) -> u64 {
    let calls = |bytes: u64| (1 << 20) / bytes.clamp(1, 1 << 20);
    CALL_NS * (calls(link.read_bytes) + calls(link.write_bytes))
}

/// The drive, and the last program with steps that are large enough.
fn drive(tape: &TapeTarget, programs: &mut [Program]) -> TapeParameters {
    let Some(last) = programs.last_mut() else { return tape.parameters.clone() };
    let block_bytes = last.write_bytes.max(1);
    let together = STEP_BYTES.div_ceil(block_bytes).max(1);
    let (parameters, step_bytes) = coalesced(&tape.parameters, block_bytes, together);
    last.write_bytes = step_bytes;
    parameters
}
