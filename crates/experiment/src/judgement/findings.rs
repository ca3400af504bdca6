//! Findings on the runs themselves: inconsistent rates, outliers, changes within a run, drift.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Unit};

use super::sampling::{MachineOverTime, sampling};
use super::{CellSummary, Judgement, Sentence, Subject, rules};
use crate::quantities;
use crate::record::{Cell, Factor, Level, RunRecord, shown_cell};
use crate::run::neighbours::{AGAIN, CORES, DISK, WAIT, was_hit};
use statistics::drift::{Moment, trend};
use statistics::median;
use statistics::series::{Course, course};

/// A printed rate further than this from bytes divided by seconds is not explained by rounding, nor
/// by units of 1000 instead of 1024 for file sizes (2.4 %).
const PRINTED_TOLERANCE: f64 = 0.05;

/// Runs shorter than this are reported as short, and their course is not analysed.
const SHORT_RUN_SECONDS: f64 = 1.0;

/// Number of places that a sentence names before it counts the rest.
const NAMED_MAX: usize = 3;

/// Everything that is odd about the runs.
pub fn doubts(factors: &[Factor], runs: &[RunRecord], judgement: &Judgement) -> Vec<Sentence> {
    let cells = &judgement.cells;
    let [changing, dipping, warming] = unsteady(factors, runs);
    let mut doubts = Vec::new();
    let mut add = |rule, certainty, texts: Vec<String>| {
        let sentence = |text| Sentence::new(Subject::Doubt, Finding::new(rule, certainty, text));
        doubts.extend(texts.into_iter().map(sentence));
    };
    add(&rules::PRINTED_RATE, Certainty::Measured, printed_rates(factors, runs));
    add(&rules::FAILED_RUNS, Certainty::Measured, Vec::from_iter(failures(factors, runs)));
    add(&rules::FOREIGN_LOAD, Certainty::Measured, Vec::from_iter(foreign(factors, runs)));
    add(&rules::OUTLIERS, Certainty::Inferred, Vec::from_iter(outliers(factors, cells)));
    add(&rules::REGIME_CHANGE, Certainty::Inferred, Vec::from_iter(changing));
    add(&rules::DIP, Certainty::Inferred, Vec::from_iter(dipping));
    add(&rules::WARM_UP, Certainty::Inferred, Vec::from_iter(warming));
    add(&rules::SHORT_RUNS, Certainty::Measured, Vec::from_iter(short_runs(runs)));
    let drift = drift(runs);
    let machine = machine_of(drift.as_deref());
    add(&rules::DRIFT, Certainty::Inferred, Vec::from_iter(drift));
    add(&rules::NOTE, Certainty::Told, notes(runs));
    doubts.extend(sampling(factors, judgement, machine));
    doubts
}

fn machine_of(drift: Option<&str>) -> MachineOverTime {
    if drift.is_some() { MachineOverTime::Drifts } else { MachineOverTime::Stays }
}

/// Whether the rates drifted over the experiment.
pub fn machine(runs: &[RunRecord]) -> MachineOverTime {
    machine_of(drift(runs).as_deref())
}

/// Findings from the device's counters on the recommended cells: how the kernel changed the
/// requests, and where they waited.
pub fn requests(judgement: &Judgement, factors: &[Factor], runs: &[RunRecord]) -> Vec<Sentence> {
    let mut found = Vec::new();
    for recommendation in &judgement.recommended {
        let cell = &judgement.cells[recommendation.cell];
        let run = runs.iter().find(|run| run.cell == cell.cell);
        let setting = |name: &str| run?.environment.get(name)?.parse::<f64>().ok();
        let asked = match cell.cell.get("block_bytes") {
            Some(Level::Number(bytes)) => Some(*bytes as f64),
            _ => None,
        };
        let seen = Seen {
            asked_bytes: asked,
            split_bytes: setting("queue max_sectors_kb").map(|kib| kib * 1024.0),
        };
        let place = match shown_cell(&cell.cell, factors) {
            none if none.is_empty() => none,
            some => format!("{some}: "),
        };
        found.extend(seen.meaning(&cell.measures).into_iter().map(|finding| {
            let what = format!("{place}{}", finding.what);
            Sentence::new(Subject::Finding, Finding { what, ..finding })
        }));
    }
    found
}

/// Facts on the requests of a run besides the counters.
pub struct Seen {
    /// Bytes of a request of the program.
    pub asked_bytes: Option<f64>,
    /// Size at which the kernel splits requests.
    pub split_bytes: Option<f64>,
}

impl Seen {
    /// Findings from measures that are named as in [`crate::observed`].
    pub fn meaning(&self, measures: &BTreeMap<String, f64>) -> Vec<Finding> {
        let get = |name: &str| measures.get(name).copied();
        let mut found = Vec::from_iter(submission(measures));
        let (Some(request), Some(merged)) =
            (get("device_request_bytes"), get("device_merged_percent"))
        else {
            return found;
        };
        let size = base::format::size(request as u64);
        let mut say = |rule, text: String| {
            found.push(
                Finding::new(rule, Certainty::Measured, text)
                    .with_number("request", request, Unit::Bytes)
                    .with_number("merged", merged / 100.0, Unit::Share),
            );
        };
        match (self.asked_bytes, self.split_bytes) {
            (Some(asked), Some(split)) if asked > split * 1.05 && request <= split * 1.02 => {
                let (asked, split) = (asked as u64, split as u64);
                let asked = crate::record::binary_size(asked);
                let text = format!(
                    "the kernel splits requests of {asked} (max_sectors_kb is {}): the device gets \
                     {size} each time",
                    split / 1024
                );
                say(&rules::SPLIT, text);
            }
            _ if merged >= 20.0 => {
                let text = format!(
                    "the kernel merges requests, {merged:.0} % of them into another one: the \
                     device gets {size} each time"
                );
                say(&rules::MERGED, text);
            }
            (Some(asked), _) if merged < 2.0 && (request / asked - 1.0).abs() < 0.03 => {
                let text = format!(
                    "the kernel neither merges nor splits requests: the device gets {size} each \
                     time, as the program asked"
                );
                say(&rules::UNCHANGED, text);
            }
            _ => {}
        }
        if let (Some(program), Some(device)) = (get("fio_clat_mean_ns"), get("device_await_ns"))
            && program > 2.0 * device
        {
            let text = format!(
                "requests wait in the host: each takes {}, of which {} at the device",
                quantities::Unit::Nanoseconds.shown(program),
                quantities::Unit::Nanoseconds.shown(device)
            );
            say(&rules::HOST_QUEUE, text);
        }
        found
    }
}

/// Asynchronous calls that block: libaio does buffered I/O within the call (io_submit(2)), and a
/// full queue makes the program wait for a place.
fn submission(measures: &BTreeMap<String, f64>) -> Option<Finding> {
    let (submitted, answered) =
        (*measures.get("fio_slat_mean_ns")?, *measures.get("fio_clat_mean_ns")?);
    if submitted <= answered {
        return None;
    }
    let shown = |ns: f64| quantities::Unit::Nanoseconds.shown(ns);
    let text = format!(
        "the program waits while it submits requests: {} for each, and {} more for the answer; \
         fewer are in flight than it asks for",
        shown(submitted),
        shown(answered)
    );
    Some(Finding::new(&rules::SUBMISSION, Certainty::Measured, text))
}

fn printed_rates(factors: &[Factor], runs: &[RunRecord]) -> Vec<String> {
    let one = |run: &RunRecord| {
        let (printed, computed) = (run.printed_bytes_per_second?, run.bytes_per_second()?);
        let apart = printed / computed - 1.0;
        (apart.abs() > PRINTED_TOLERANCE).then(|| {
            format!(
                "{}: {} was printed, but size / time is {} ({:+.0} %): size / time is used",
                shown_cell(&run.cell, factors),
                base::format::rate(printed),
                base::format::rate(computed),
                apart * 100.0
            )
        })
    };
    runs.iter().filter_map(one).collect()
}

fn failures(factors: &[Factor], runs: &[RunRecord]) -> Option<String> {
    // A stopped run has a bound, and a sentence of its own.
    let is_failure = |run: &&RunRecord| run.error.is_some() && run.cut_after_seconds.is_none();
    let failed: Vec<&RunRecord> = runs.iter().filter(is_failure).collect();
    let first = failed.first()?;
    let why = first.error.as_deref().unwrap_or_default();
    let place = shown_cell(&first.cell, factors);
    Some(format!("{} of {} runs failed, first {place}: {why}", failed.len(), runs.len()))
}

/// Runs that other programs disturbed, and how many were repeated.
fn foreign(factors: &[Factor], runs: &[RunRecord]) -> Option<String> {
    let hit: Vec<&RunRecord> = runs.iter().filter(|run| was_hit(run)).collect();
    let again = runs.iter().filter(|run| run.measures.contains_key(AGAIN)).count() as u64;
    let all = runs.len();
    let Some(first) = hit.first() else {
        let (counted, them) = match again {
            0 => return None,
            1 => ("1 run".to_owned(), "it"),
            _ => (format!("{again} runs"), "them"),
        };
        return Some(format!(
            "other programs disturbed {counted} of {all}; Takeup repeated {them}, undisturbed"
        ));
    };
    let most =
        |name: &str| hit.iter().filter_map(|run| run.measures.get(name)).copied().reduce(f64::max);
    let cores = most(CORES).map(|percent| match most(WAIT) {
        Some(wait) => format!(
            "they used up to {percent:.0} % of the cores, and a run waited for a core up to \
             {wait:.0} % of its time"
        ),
        None => format!("they used up to {percent:.0} % of the cores"),
    });
    let disk = most(DISK).map(|bytes| {
        format!("they moved up to {} on the disk during a run", base::format::size(bytes as u64))
    });
    let what: Vec<String> = cores.into_iter().chain(disk).collect();
    let repeated = match again {
        0 => String::new(),
        some => format!(
            ", although {} run again",
            match some {
                1 => "1 was".to_owned(),
                some => format!("{some} were"),
            }
        ),
    };
    Some(format!(
        "other programs disturbed {} of {all} runs{repeated}: {} (first {} repeat {}); repeat on \
         an idle machine: these rates are lower than the hardware's",
        hit.len(),
        what.join(", "),
        shown_cell(&first.cell, factors),
        first.repeat,
    ))
}

fn outliers(factors: &[Factor], cells: &[CellSummary]) -> Option<String> {
    let found: Vec<String> = cells
        .iter()
        .flat_map(|cell| {
            let place = shown_cell(&cell.cell, factors);
            cell.outliers.iter().map(move |repeat| format!("{place} repeat {repeat}"))
        })
        .collect();
    let named = named(&found)?;
    let verb = if found.len() == 1 { "does" } else { "do" };
    Some(format!("{named} {verb} not look like the other repeats; no run was left out"))
}

/// Runs whose rate changes permanently, runs whose rate changes for a while, and runs with much
/// warm-up.
fn unsteady(factors: &[Factor], runs: &[RunRecord]) -> [Option<String>; 3] {
    let [mut changing, mut dipping, mut warming] = [const { Vec::new() }; 3];
    for run in runs {
        let Some(series) = &run.series else { continue };
        if run.measures.get("filemarks").is_some_and(|&filemarks| filemarks > 1.0) {
            // No data pass at a filemark; filemarks have a finding of their own.
            continue;
        }
        let rates = before_filemark(run, series);
        if rates.len() < 40 || run.seconds < SHORT_RUN_SECONDS {
            continue;
        }
        let list = match course(&rates) {
            Course::Steady => continue,
            Course::Changes => &mut changing,
            Course::Dips => &mut dipping,
            Course::WarmsUp => &mut warming,
        };
        list.push(format!("{} repeat {}", shown_cell(&run.cell, factors), run.repeat));
    }
    let told = |list: &[String], what: &str| named(list).map(|named| format!("{what}: {named}"));
    [
        told(&changing, "the rate changes during the run and does not return"),
        told(&dipping, "the rate changes for a while during the run, then returns"),
        told(
            &warming,
            "warm-up takes a fifth of the run or more; longer runs (--length) reduce that share",
        ),
    ]
}

/// The rates of a series up to the filemark that ends a run on tape: no data pass during the
/// filemark, which has a finding of its own.
fn before_filemark(run: &RunRecord, series: &statistics::bytes_over_time::Series) -> Vec<f64> {
    let mut rates = series.rates();
    if let Some(filemark) = run.measures.get("filemark_seconds") {
        let steps = (run.seconds - filemark) / series.step_seconds;
        rates.truncate(steps.max(0.0) as usize);
    }
    rates
}

/// Only for timed runs: runs of an imported table may have no time of their own.
fn short_runs(runs: &[RunRecord]) -> Option<String> {
    let has_series = |run: &&RunRecord| run.series.is_some();
    let is_timed = |run: &&RunRecord| has_series(run) || run.started_unix_seconds > 0;
    let timed = runs.iter().filter(|run| is_timed(run) && run.error.is_none());
    let lengths: Vec<f64> = timed.map(|run| run.seconds).collect();
    let typical = median(&lengths).filter(|&typical| typical < SHORT_RUN_SECONDS)?;
    let longer = if runs.iter().any(|run| has_series(&run)) {
        "longer runs (--length) scatter less and show whether the rate lasts"
    } else {
        "longer runs scatter less, and starting up is a smaller part of them"
    };
    Some(format!(
        "the runs are short: a typical one took {}; {longer}",
        base::format::duration(typical)
    ))
}

/// Whether the system as a whole became faster or slower: a line through the runs in their order,
/// without the effects of the cells.
fn drift(runs: &[RunRecord]) -> Option<String> {
    let has_order = runs.iter().all(|run| run.order > 0);
    let last = runs.iter().map(|run| if has_order { run.order } else { run.repeat }).max()? as f64;
    let mut cells: BTreeMap<&Cell, usize> = BTreeMap::new();
    let point = |run| {
        let run: &RunRecord = run;
        let next = cells.len();
        Some(Moment {
            cell: *cells.entry(&run.cell).or_insert(next),
            block: run.repeat,
            time: if has_order { run.order } else { run.repeat } as f64 / last,
            log: run.speed()?.ln(),
        })
    };
    let moments: Vec<Moment> = runs.iter().filter_map(point).collect();
    let trend = trend(&moments)?;
    let change = trend.ratio() - 1.0;
    let is_settled = !trend.interval(0.99)?.contains(1.0);
    (is_settled && change.abs() > 0.03).then(|| {
        let way = if change < 0.0 { "slower" } else { "faster" };
        format!(
            "drift: all rates became {:.0} % {way} during the experiment; comparisons stay fair, \
             but each rate depends on when it was measured",
            change.abs() * 100.0
        )
    })
}

/// Notes of the runs, each once, with the number of runs that have it.
fn notes(runs: &[RunRecord]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for note in runs.iter().flat_map(|run| &run.notes) {
        let place = *places.entry(note).or_insert(counts.len());
        match counts.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => counts.push((note, 1)),
        }
    }
    counts.iter().map(|(note, count)| format!("{note} ({count} of {} runs)", runs.len())).collect()
}

/// The first few of several places, and how many more there are; `None` for an empty list.
pub fn named(places: &[String]) -> Option<String> {
    let shown = places.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    match places.len() {
        0 => None,
        few if few <= NAMED_MAX => Some(shown),
        many => Some(format!("{shown} and {} more", many - NAMED_MAX)),
    }
}
