//! What can be said of an experiment before its first run: how long it takes at the least, how many
//! repeats the budget gives, and which runs say more of the drive's buffer than of its tape.

use base::format::{counted, duration, rate, size};
use model::program::{self, Copy, Ratio};
use model::tape::TapeModel;

use super::drive::Rates;
use super::job::{TapeJob, TapeWork};
use experiment::judgement::BUFFERS_MIN;
use experiment::plan::Stop;

/// Rounds that are gone through: the medium is full after few of them, and begun anew.
const ROUNDS_MAX: u64 = 1000;
/// Blocks of a file that are gone through; of a longer file several go as one.
const BLOCKS_MAX: u64 = 1 << 16;
/// How much longer than by the drive's rate blocks take, from which on it is told.
const BY_BLOCKS: f64 = 1.02;
/// Share of a round from which on winding is reported by itself.
const WINDING_WORTH_NAMING: f64 = 0.005;
/// How sure the numbers of a virtual drive are.
const AS_SET: &str = "as the virtual drive is set";

/// One sentence for each. `clock_ratio` is how many times as fast as ours the drive's clock runs.
pub(super) fn sentences(
    jobs: &[TapeJob],
    rates: &Rates,
    clock_ratio: f64,
    stop: &Stop,
) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(time(jobs, rates, clock_ratio, stop));
    all.extend(buffer(jobs, rates));
    all
}

/// What is in the trees that are written, and how much of them a run has.
pub(super) fn trees(jobs: &[TapeJob]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for job in jobs {
        let (Some(path), Some(content)) = (job.data.tree(job.read_block_bytes), job.tree) else {
            continue;
        };
        let part = if content.bytes > job.run_bytes {
            format!("the first {} of it (--length)", size(job.run_bytes))
        } else {
            "all of it".to_owned()
        };
        let (files, bytes) = (counted(content.files, "file", "files"), size(content.bytes));
        let one = format!("{} has {files} with {bytes}: a run writes {part}", path.display());
        if !said.contains(&one) {
            said.push(one);
        }
    }
    said
}

fn time(jobs: &[TapeJob], rates: &Rates, clock_ratio: f64, stop: &Stop) -> Option<String> {
    let highest = rates.highest_bytes_per_second.filter(|&rate| rate > 0)? as f64;
    let wanted = stop.repeats_min.max(1);
    let moved = jobs.iter().map(|job| Moved::by(job, rates, highest)).collect();
    let mut way = Way { rates, moved, head_bytes: 0 };
    let (mut all, mut within) = (Took::default(), 0);
    for _ in 0..wanted.min(ROUNDS_MAX) {
        all.add(way.round(jobs));
        within += u64::from(all.seconds() / clock_ratio <= stop.budget_seconds);
    }
    let rounds = wanted.min(ROUNDS_MAX) as f64;
    let ours = |seconds: f64| seconds / clock_ratio / rounds;
    let round_seconds = ours(all.seconds());
    let cells = counted(jobs.len() as u64, "run", "runs");
    let (budget, speed) = (duration(stop.budget_seconds), rate(highest));
    let enough = if within == wanted.min(ROUNDS_MAX) {
        let verb = if wanted == 1 { "takes" } else { "take" };
        format!("{} {verb} {}", repeats(wanted), duration(round_seconds * wanted as f64))
    } else if within == 0 {
        format!("the budget of {budget} is not enough for one round")
    } else {
        format!("the budget of {budget} gives {within} of {}", repeats(wanted))
    };
    let one = duration(round_seconds);
    let mut parts = format!("at the drive's native {speed}");
    if let Some(parameters) = &rates.parameters {
        let known = if rates.is_set { AS_SET } else { parameters.synchronise_ns.origin.name() };
        let marks = counted(all.filemarks / wanted.min(ROUNDS_MAX), "filemark", "filemarks");
        parts.push_str(&format!(", {} of it for {marks} ({known})", duration(ours(all.marking))));
        if ours(all.winding) > WINDING_WORTH_NAMING * round_seconds {
            parts.push_str(&format!(" and {} for winding", duration(ours(all.winding))));
        }
    }
    let slow = || way.moved.iter().filter(|moved| moved.by_commands);
    if slow().next().is_some() {
        let stops = slow().map(|moved| moved.stops).sum::<f64>().round() as u64;
        parts.push_str("; its small blocks take longer than that");
        if stops > 0 {
            let times = counted(stops, "time", "times");
            let known = if rates.is_set { "" } else { " (assumed)" };
            parts.push_str(&format!(", and the drive stops {times} to wait for them{known}"));
        }
    }
    Some(format!("a round of {cells} takes {one} {parts}; {enough}"))
}

fn repeats(count: u64) -> String {
    counted(count, "repeat", "repeats")
}

/// What rounds take in the drive's time.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    moving: f64,
    marking: f64,
    winding: f64,
    filemarks: u64,
}

impl Took {
    fn add(&mut self, more: Took) {
        self.moving += more.moving;
        self.marking += more.marking;
        self.winding += more.winding;
        self.filemarks += more.filemarks;
    }

    fn seconds(&self) -> f64 {
        self.moving + self.marking + self.winding
    }
}

/// A drive that gets the blocks of a run.
#[derive(Clone, Copy, Debug)]
struct Moved {
    seconds: f64,
    /// How often it stops to wait for blocks.
    stops: f64,
    /// Whether the commands of the blocks take longer than the bytes at the drive's rate.
    by_commands: bool,
}

impl Moved {
    /// By the model of the drive, where it is known: each block has its command, and below the
    /// lowest speed the tape stops and backs up. By its rate otherwise.
    fn by(job: &TapeJob, rates: &Rates, highest: f64) -> Moved {
        let bytes = job.bytes();
        let by_rate = Moved { seconds: bytes as f64 / highest, stops: 0.0, by_commands: false };
        let Some(known) = &rates.parameters else { return by_rate };
        let mut known = known.clone();
        let block_bytes = job.block_bytes.max(1) as u64;
        let command_seconds = known.command_overhead_ns.value as f64 / 1e9
            + block_bytes as f64 / known.host_bytes_per_second.value.max(1) as f64;
        let commands_seconds = bytes as f64 / block_bytes as f64 * command_seconds;
        known.fit_highest_speed(rates.highest_bytes_per_second.unwrap_or(0));
        // After the filemark of each file the drive stands, so that they are alike.
        let file_bytes = bytes.div_ceil(job.filemarks().max(1));
        let together = file_bytes.div_ceil(block_bytes.saturating_mul(BLOCKS_MAX));
        let (known, block_bytes) = program::coalesced(&known, block_bytes, together);
        let mut tape = TapeModel::new(known);
        let copy = Copy { block_bytes, source_bytes_per_second: u64::MAX, ratio: Ratio::NONE };
        let run = program::copy(&mut tape, copy, file_bytes);
        if run.host_bytes == 0 {
            return by_rate;
        }
        let counters = tape.counters();
        let times = bytes as f64 / run.host_bytes as f64;
        let moving_ns = run.elapsed_ns.saturating_sub(counters.synchronise_ns);
        Moved {
            seconds: (times * moving_ns as f64 / 1e9).max(by_rate.seconds),
            stops: times * counters.back_hitches as f64,
            by_commands: commands_seconds > BY_BLOCKS * by_rate.seconds,
        }
    }
}

/// The head's way over the medium while runs follow each other.
struct Way<'a> {
    rates: &'a Rates,
    /// Of each run of a round.
    moved: Vec<Moved>,
    /// Behind the label, which is next to nothing.
    head_bytes: u64,
}

impl Way<'_> {
    /// Every run once. The order of a round is drawn later, and changes little.
    fn round(&mut self, jobs: &[TapeJob]) -> Took {
        let mut all = Took::default();
        for (number, job) in jobs.iter().enumerate() {
            all.add(self.run(job, self.moved[number].seconds));
        }
        all
    }

    /// As [`super::drive::MeasuredDrive`] goes: back to the start where the rest of the medium is
    /// too small, and for a run that reads to the front of what was written for it.
    fn run(&mut self, job: &TapeJob, mut moving: f64) -> Took {
        let bytes = job.bytes();
        let end_bytes = self.head_bytes.saturating_add(bytes);
        let mut winding = 0.0;
        if self.rates.usable_bytes().is_some_and(|usable| end_bytes > usable) {
            winding += self.wind(0);
        }
        let begun_bytes = self.head_bytes;
        self.head_bytes = begun_bytes.saturating_add(bytes);
        let filemarks = job.filemarks();
        let parameters = self.rates.parameters.as_ref();
        let mark_ns = parameters.map_or(0, |known| known.synchronise_ns.value);
        if job.operation == TapeWork::Read {
            winding += self.wind(begun_bytes);
            self.head_bytes = begun_bytes.saturating_add(bytes);
            moving *= 2.0;
        }
        let marking = filemarks as f64 * mark_ns as f64 / 1e9;
        Took { moving, marking, winding, filemarks }
    }

    /// Seconds to another place.
    fn wind(&mut self, to_bytes: u64) -> f64 {
        let from_bytes = std::mem::replace(&mut self.head_bytes, to_bytes);
        let parameters = self.rates.parameters.as_ref();
        parameters.map_or(0, |known| known.winding_ns(from_bytes, to_bytes)) as f64 / 1e9
    }
}

fn buffer(jobs: &[TapeJob], rates: &Rates) -> Vec<String> {
    let Some(buffer) = rates.buffer_bytes.filter(|&bytes| bytes > 0) else { return Vec::new() };
    let writes = || jobs.iter().filter(|job| job.operation == TapeWork::Write);
    let inside = writes().filter(|job| job.bytes() <= buffer).count();
    let short = writes().filter(|job| job.bytes() < BUFFERS_MIN * buffer).count() - inside;
    let (all, buffer) = (jobs.len(), size(buffer));
    let mut said = Vec::new();
    if inside > 0 {
        said.push(format!(
            "{inside} of {all} runs fit into the drive's buffer ({buffer}): they measure the way \
             to the drive; --length makes them longer"
        ));
    }
    if short > 0 {
        said.push(format!(
            "{short} of {all} runs are shorter than {BUFFERS_MIN} of the drive's buffers ({buffer} \
             each): how the buffer is filled and emptied weighs in them"
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tree::Content;
    use experiment::record::cell;
    use model::tape::generation::Generation;
    use model::tape::parameters::TapeParameters;

    #[test]
    fn what_is_known_of_a_tree() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let job = |bytes: u64| {
            let job = TapeJob::from_cell(&cell(&[("data", &data)]), bytes).unwrap();
            let content = Content { objects: 3, files: 2, bytes: 5_000_000 };
            TapeJob { tree: Some(content), ..job }
        };
        let said = trees(&[job(1 << 20), job(1 << 20), job(1 << 30)]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].ends_with(
            "has 2 files with 5.00 MB: a run writes the first 1.05 MB of it (--length)"
        ));
        assert!(said[1].ends_with("a run writes all of it"), "{said:?}");
    }

    #[test]
    fn what_is_known_before_the_first_run() {
        let job = |bytes: u64| TapeJob::from_cell(&cell(&[]), bytes).unwrap();
        let jobs = [job(1 << 28), job(2 << 30), job(4 << 30)];
        let rates = Rates {
            buffer_bytes: Some(1 << 30),
            highest_bytes_per_second: Some(100_000_000),
            ..Rates::default()
        };
        let said = |budget_seconds| {
            let stop = Stop { budget_seconds, ..Stop::default() };
            sentences(&jobs, &rates, 1.0, &stop).join("\n")
        };
        let text = said(600.0);
        assert!(
            text.contains("a round of 3 runs takes 1 min 07 s at the drive's native"),
            "{text}"
        );
        assert!(text.contains("5 repeats take 5 min 36 s"), "{text}");
        assert!(text.contains("1 of 3 runs fit into the drive's buffer"), "{text}");
        assert!(text.contains("1 of 3 runs are shorter than 3 of the drive's buffers"), "{text}");
        assert!(said(150.0).contains("the budget of 2 min 30 s gives 2 of 5 repeats"));
        assert!(said(20.0).contains("is not enough for one round"));
    }

    /// 64 MiB in blocks of 1 KiB with 1 ms for each take more than a minute, whatever the rate.
    #[test]
    fn commands_of_small_blocks_are_part_of_a_round() {
        let job = |block: &str| {
            let mut cell = cell(&[]);
            cell.insert(
                "block_bytes".to_owned(),
                experiment::record::Level::Number(block.parse().unwrap()),
            );
            TapeJob::from_cell(&cell, 64 << 20).unwrap()
        };
        let generation = Generation::all().iter().find(|known| known.name == "LTO-3").unwrap();
        let mut parameters = TapeParameters::of(generation);
        assert!(parameters.set("command_overhead_ns", 1_000_000));
        assert!(parameters.set("synchronise_ns", 0) && parameters.set("buffer_bytes", 4 << 20));
        let rates = Rates {
            highest_bytes_per_second: Some(80 << 20),
            parameters: Some(parameters),
            is_set: true,
            ..Rates::default()
        };
        let stop = Stop { repeats_min: 1, ..Stop::default() };
        let said = |block| time(&[job(block)], &rates, 1.0, &stop).unwrap();
        assert!(said("1024").contains("takes 1 min 0"), "{}", said("1024"));
        assert!(said("1024").contains("small blocks take longer"), "{}", said("1024"));
        // 64 MiB at 80 MiB a second, and before that some of the buffer at the host's rate.
        assert!(said("1048576").contains("takes 830 ms"), "{}", said("1048576"));
        assert!(!said("1048576").contains("small blocks"), "{}", said("1048576"));
    }

    /// Below the lowest speed the tape stops again and again: with a small buffer and slow back
    /// hitches that takes longer than the commands do.
    #[test]
    fn back_hitches_are_part_of_a_round() {
        let mut small = cell(&[]);
        small.insert("block_bytes".to_owned(), experiment::record::Level::Number(16_384));
        let job = TapeJob::from_cell(&small, 256 << 20).unwrap();
        let generation = Generation::all().iter().find(|known| known.name == "LTO-3").unwrap();
        let mut parameters = TapeParameters::of(generation);
        let set = [
            ("command_overhead_ns", 1_000_000),
            ("buffer_bytes", 4 << 20),
            ("back_hitch_ns", 4_000_000_000),
        ];
        assert!(set.into_iter().all(|(name, value)| parameters.set(name, value)));
        let rates = Rates {
            highest_bytes_per_second: Some(parameters.highest_bytes_per_second()),
            parameters: Some(parameters),
            is_set: true,
            ..Rates::default()
        };
        let moved = Moved::by(&job, &rates, 80e6);
        // 16384 commands of 1 ms bring 16 MB/s. While the tape stops the buffer is full after a
        // quarter of a second and waits for the rest of the four.
        let commands_seconds = 16.384;
        assert!(moved.stops > 10.0, "{moved:?}");
        assert!(moved.seconds > commands_seconds + 3.0 * moved.stops, "{moved:?}");
        let said = time(&[job], &rates, 1.0, &Stop { repeats_min: 1, ..Stop::default() }).unwrap();
        assert!(said.contains(", and the drive stops "), "{said}");
    }

    /// A virtual LTO-3 with a small cartridge: filemarks and the way back are most of a round.
    #[test]
    fn filemarks_and_winding_are_part_of_a_round() {
        let job = |levels: &[(&str, &str)]| TapeJob::from_cell(&cell(levels), 80 << 20).unwrap();
        let jobs = [job(&[]), job(&[("files", "4")]), job(&[("operation", "read")])];
        let generation = Generation::all().iter().find(|known| known.name == "LTO-3").unwrap();
        let mut parameters = TapeParameters::of(generation);
        let set = [
            ("capacity_bytes", 1_000_000_000),
            ("wraps", 1),
            ("synchronise_ns", 2_000_000_000),
            ("buffer_bytes", 1 << 20),
            ("wind_ns", 100_000_000_000),
            ("settle_ns", 1_000_000_000),
        ];
        assert!(set.into_iter().all(|(name, value)| parameters.set(name, value)));
        let rates = Rates {
            highest_bytes_per_second: Some(80 << 20),
            parameters: Some(parameters),
            is_set: true,
            capacity_bytes: Some(1_000_000_000),
            ..Rates::default()
        };
        let said = |repeats_min, clock_ratio| {
            let stop = Stop { budget_seconds: 600.0, repeats_min, ..Stop::default() };
            time(&jobs, &rates, clock_ratio, &stop).unwrap()
        };
        // Four times 80 MiB, of which one is read again: 4 s. Six filemarks of 2 s. A tenth of the
        // tape and a bit back for the one that is read: 8.4 s and 1 s to find it.
        let text = said(1, 1.0);
        assert!(text.starts_with("a round of 3 runs takes 25.4 s at the drive's native"), "{text}");
        let parts = ", 12.0 s of it for 6 filemarks (as the virtual drive is set) and 9.39 s for \
                     winding; 1 repeat takes 25.4 s";
        assert!(text.ends_with(parts), "{text}");
        assert!(said(1, 10.0).contains("takes 2.54 s"), "in the time of this machine");
        // 11 files of 84 MB fit: with the fourth round the tape is full, and wound to its start.
        let four = said(4, 1.0);
        let rewound_seconds = (11.0 * 8.388608 + 1.0) / 4.0;
        let winding = format!("and {} for winding", duration(9.388608 + rewound_seconds));
        assert!(four.contains(&winding), "{four}: {winding}");
    }
}
