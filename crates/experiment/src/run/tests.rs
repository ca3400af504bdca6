//! Experiments with an executor that only computes: order, ends, continuing, failures.

use std::cell::Cell as Shared;
use std::path::Path;

use super::*;
use crate::plan::Stop;
use crate::record::{Factor, Level, Role, load};
use statistics::random::Random;

/// Computes instead of running: level n runs at n x 100 MB/s with some scatter and takes a second.
struct Fake<'a> {
    time: &'a Shared<f64>,
    /// Number of runs in the file from before.
    begun: u64,
    scatter: f64,
    failing: Option<u64>,
    /// Cancels in the middle of this run, counted from 1.
    cancel_in: Option<u64>,
    /// The user's token.
    cancel: Cancel,
    executed: Vec<u64>,
    /// Attempts, counted from 1, during which other programs are active.
    hit: &'a [u64],
    attempts: Shared<u64>,
}

/// Other programs use all cores, or none.
struct Scripted(bool);

impl Neighbours for Scripted {
    fn since(&self, _run: &RunRecord) -> Foreign {
        Foreign { cores_share: if self.0 { 0.97 } else { 0.0 }, ..Foreign::default() }
    }
}

#[derive(Debug, thiserror::Error)]
enum FakeError {
    #[error("no such engine")]
    NoEngine(#[source] std::io::Error),
    #[error("stopped")]
    Stopped,
}

/// The level of the one factor.
fn level(cell: &Cell) -> u64 {
    match cell["level"] {
        Level::Number(level) => level,
        Level::Text(_) => unreachable!("the plan has numbers"),
    }
}

impl Executor for Fake<'_> {
    type Error = FakeError;

    fn applies(&self, cell: &Cell) -> bool {
        cell["level"] != Level::Number(4)
    }

    fn neighbours(&self) -> Box<dyn Neighbours> {
        self.attempts.set(self.attempts.get() + 1);
        Box::new(Scripted(self.hit.contains(&self.attempts.get())))
    }

    fn execute(&mut self, cell: &Cell, _: &Cancel) -> Result<RunRecord, FakeError> {
        let level = level(cell);
        self.executed.push(level);
        self.time.set(self.time.get() + 1.0);
        if self.cancel_in == Some(self.executed.len() as u64) {
            self.cancel.cancel();
        }
        if self.failing == Some(level) {
            return Err(FakeError::NoEngine(std::io::Error::from_raw_os_error(2)));
        }
        // The same run scatters in the same way, also in a continued experiment.
        let mut random = Random::new(5 + 977 * (self.begun + self.executed.len() as u64));
        let rate = level as f64 * 1e8 * (self.scatter * random.normal()).exp();
        Ok(RunRecord {
            bytes: 1 << 30,
            seconds: (1u64 << 30) as f64 / rate,
            ..RunRecord::default()
        })
    }
}

struct Silent;

impl Observer for Silent {
    fn begins(&self, progress: &Progress<'_>) {
        assert!(progress.runs.0 < progress.runs.1);
    }
    fn ended(&self, progress: &Progress<'_>, run: &RunRecord) {
        assert_eq!(run.repeat, progress.block);
    }
}

fn plan(stop: Stop) -> Plan {
    let levels = (1..=4).map(Level::Number).collect();
    Plan {
        kind: "read".into(),
        title: String::new(),
        paths: vec!["/x".into()],
        length_bytes: 1,
        seed: 11,
        stop,
        random_reads: 0,
        run_seconds: 0.0,
        commands: None,
        factors: vec![Factor { name: "level".into(), levels, role: Role::Setting, present: None }],
    }
}

#[derive(Clone, Copy)]
struct Setting {
    scatter: f64,
    failing: Option<u64>,
    cancel_in: Option<u64>,
    hit: &'static [u64],
}

const STEADY: Setting = Setting { scatter: 0.01, failing: None, cancel_in: None, hit: &[] };

#[test]
fn a_run_that_others_hit_is_run_again_and_what_stays_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 4, repeats_max: 4, ..Stop::default() };
    // The second run is disturbed, but not its repetition; the fourth is disturbed both times.
    let hit = Setting { hit: &[2, 5, 6], ..STEADY };
    let (_, executed, experiment) = go(&directory.path().join("a"), &plan(stop), &hit);
    assert_eq!((executed.len(), experiment.runs.len()), (14, 12));
    let of = |name: &str| {
        let has = |run: &&RunRecord| run.measures.contains_key(name);
        experiment.runs.iter().filter(has).map(|run| run.order).collect::<Vec<u64>>()
    };
    assert_eq!(of(neighbours::AGAIN), [2, 4]);
    assert_eq!(of(neighbours::CORES), [4]);
    let factors = &experiment.header.factors;
    let judged = crate::judgement::judge(factors, &experiment.runs, &Default::default());
    let told = judged.sentences.iter().find(|one| one.text.starts_with("other programs disturbed"));
    let text = &told.unwrap().text;
    assert!(
        text.contains("disturbed 1 of 12 runs, although 2 were run again: they used up to 97 %"),
        "{text}"
    );
    // Repetitions are limited: three of twelve at most.
    let always = Setting { hit: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], ..STEADY };
    let (_, executed, experiment) = go(&directory.path().join("b"), &plan(stop), &always);
    assert_eq!((executed.len(), experiment.runs.len()), (15, 12));
}

/// Forecasts during an experiment whose runs take a second each.
#[test]
fn the_first_runs_say_how_long_all_take() {
    struct Heard(std::cell::RefCell<Vec<String>>);
    impl Observer for Heard {
        fn foretold(&self, what: &str) {
            self.0.borrow_mut().push(what.to_owned());
        }
        fn begins(&self, _: &Progress<'_>) {}
        fn ended(&self, _: &Progress<'_>, _: &RunRecord) {}
    }
    let directory = tempfile::tempdir().unwrap();
    let heard = |repeats_min: u64, budget_seconds: f64| {
        let stop = Stop { repeats_min, repeats_max: 100, budget_seconds, ..Stop::default() };
        let heard = Heard(Default::default());
        let path = directory.path().join(format!("{repeats_min}-{budget_seconds}"));
        go_heard(&path, &plan(stop), &STEADY, &heard);
        heard.0.into_inner().first().cloned().unwrap_or_default()
    };
    assert_eq!(
        heard(12, 600.0),
        "the first 3 runs took 1.00 s each, preparation included: 12 repeats of 3 combinations \
         take about 36.0 s"
    );
    assert!(heard(20, 40.0).ends_with("; the budget of 40.0 s is too small: raise --budget"));
    assert_eq!(heard(5, 600.0), "", "over in half a minute");
}

/// Runs an experiment, continuing the file, and returns how it ended and which levels were run.
fn go(path: &Path, plan: &Plan, setting: &Setting) -> (ExperimentEnd, Vec<u64>, Experiment) {
    go_heard(path, plan, setting, &Silent)
}

fn go_heard(
    path: &Path,
    plan: &Plan,
    setting: &Setting,
    observer: &dyn Observer,
) -> (ExperimentEnd, Vec<u64>, Experiment) {
    let time = Shared::new(0.0);
    let mut fake = Fake {
        time: &time,
        begun: if path.exists() { load(path).unwrap().runs.len() as u64 } else { 0 },
        scatter: setting.scatter,
        failing: setting.failing,
        cancel_in: setting.cancel_in,
        cancel: Cancel::new(),
        executed: Vec::new(),
        hit: setting.hit,
        attempts: Shared::new(0),
    };
    let header = header(plan);
    let mut experiment = if path.exists() {
        load(path).unwrap()
    } else {
        Experiment { header, runs: Vec::new(), torn_bytes: 0 }
    };
    let mut file = if path.exists() {
        let (file, begun) = RunFile::begun(path).unwrap().unwrap();
        file.go_on(&begun).unwrap()
    } else {
        RunFile::create(path, &experiment.header).unwrap()
    };
    let cancel = fake.cancel.clone();
    let parts = Parts {
        executor: &mut fake,
        file: &mut file,
        observer,
        clock: &|| time.get(),
        cancel: &cancel,
    };
    let ended = run(plan, &mut experiment, parts).unwrap();
    assert_eq!(load(path).unwrap().runs, experiment.runs, "the file has every run");
    (ended, fake.executed, experiment)
}

#[test]
fn steady_runs_end_early_and_scattering_ones_at_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 5, repeats_max: 12, ..Stop::default() };
    let (ended, executed, _) = go(&directory.path().join("a"), &plan(stop), &STEADY);
    assert_eq!((ended, executed.len()), (ExperimentEnd::Narrow, 15), "{executed:?}");
    assert!(!executed.contains(&4), "what does not apply is not run");
    let wild = Setting { scatter: 0.5, ..STEADY };
    let (ended, executed, _) = go(&directory.path().join("b"), &plan(stop), &wild);
    assert_eq!((ended, executed.len()), (ExperimentEnd::Repeats, 36));
    let stop = Stop { budget_seconds: 10.0, ..stop };
    let (ended, executed, _) = go(&directory.path().join("c"), &plan(stop), &wild);
    assert_eq!((ended, executed.len()), (ExperimentEnd::Budget, 10));
}

#[test]
fn an_interrupted_experiment_runs_what_it_would_have_run() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 3, repeats_max: 3, ..Stop::default() };
    let (_, whole, _) = go(&directory.path().join("whole"), &plan(stop), &STEADY);
    assert_eq!(whole.len(), 9);
    for cut in 1..=9 {
        let path = directory.path().join(format!("cut {cut}"));
        let cancelled = Setting { cancel_in: Some(cut), ..STEADY };
        let (ended, before, _) = go(&path, &plan(stop), &cancelled);
        assert_eq!(ended, ExperimentEnd::Cancelled);
        let (ended, after, experiment) = go(&path, &plan(stop), &STEADY);
        // Both conditions hold at the last block.
        assert!(matches!(ended, ExperimentEnd::Repeats | ExperimentEnd::Narrow), "{ended:?}");
        // The run that was stopped in its middle left no record and is run again.
        assert_eq!([&before[..before.len() - 1], &after].concat(), whole);
        let orders: Vec<u64> = experiment.runs.iter().map(|run| run.order).collect();
        assert_eq!(orders, (1..=9).collect::<Vec<u64>>());
        assert!(is_same(&plan(Stop::default()), &experiment.header));
        assert!(!is_same(&Plan { seed: 12, ..plan(stop) }, &experiment.header));
    }
}

/// The progress and the intervals do not depend on how often it was interrupted.
#[test]
fn an_interrupted_experiment_ends_where_it_would_have_ended() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 3, repeats_max: 20, ..Stop::default() };
    let scattering = Setting { scatter: 0.04, ..STEADY };
    let (ended, whole, _) = go(&directory.path().join("whole"), &plan(stop), &scattering);
    assert_eq!(ended, ExperimentEnd::Narrow);
    assert!((12..60).contains(&whole.len()), "{}", whole.len());
    for cut in 1..=whole.len() as u64 {
        let path = directory.path().join(format!("cut {cut}"));
        let cancelled = Setting { cancel_in: Some(cut), ..scattering };
        go(&path, &plan(stop), &cancelled);
        let (ended, _, experiment) = go(&path, &plan(stop), &scattering);
        assert_eq!(
            (ended, experiment.runs.len()),
            (ExperimentEnd::Narrow, whole.len()),
            "cut in {cut}"
        );
    }
}

#[test]
fn a_cell_that_fails_is_told_and_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 5, repeats_max: 5, ..Stop::default() };
    let failing = Setting { failing: Some(2), ..STEADY };
    let (ended, executed, experiment) = go(&directory.path().join("a"), &plan(stop), &failing);
    assert_eq!(ended, ExperimentEnd::Narrow, "the others are as narrow as asked");
    assert_eq!(executed.iter().filter(|&&level| level == 2).count(), 2);
    let errors: Vec<&str> = experiment.runs.iter().filter_map(|run| run.error.as_deref()).collect();
    assert_eq!(errors, ["no such engine: No such file or directory"; 2], "with its cause");
    let mut plan = plan(stop);
    plan.factors[0].levels = vec![Level::Number(2)];
    let (ended, executed, _) = go(&directory.path().join("b"), &plan, &failing);
    assert_eq!((ended, executed.len()), (ExperimentEnd::Failed, 2));
}

#[test]
fn a_medium_is_changed_once_in_a_block() {
    let levels = |levels: &[&str]| levels.iter().map(|&one| Level::Text(one.into())).collect();
    let factor = |name: &str, levels| Factor {
        name: name.into(),
        levels,
        role: Role::Setting,
        present: None,
    };
    let mut plan = plan(Stop::default());
    plan.factors.push(factor("medium", levels(&["LTO-3", "LTO-4", "LTO-5"])));
    let cells = plan.cells();
    let mut firsts = std::collections::BTreeSet::new();
    for block in 1..=20 {
        let plain = plan.order(cells.len(), block);
        let mut order = plain.clone();
        keep_together(&mut order, &cells);
        let mut media: Vec<&Level> = order.iter().map(|&index| &cells[index]["medium"]).collect();
        media.dedup();
        assert_eq!(media.len(), 3);
        firsts.insert(media[0]);
        // Within a medium the order is random.
        for medium in media {
            let of = |order: &[usize]| -> Vec<usize> {
                let own = order.iter().filter(|&&index| cells[index]["medium"] == *medium);
                own.copied().collect()
            };
            assert_eq!(of(&order), of(&plain));
        }
    }
    assert!(firsts.len() > 1, "no medium is always the first");
}

/// Level 1 takes a second of the clock, level 2 twenty. Levels 3, 4 and 7 end only when stopped; of
/// level 4 almost nothing was measured by then, and level 7 stops slowly.
struct Uneven<'a> {
    time: &'a Shared<f64>,
    executed: Vec<u64>,
}

impl Executor for Uneven<'_> {
    type Error = FakeError;

    fn applies(&self, _: &Cell) -> bool {
        true
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, FakeError> {
        let level = level(cell);
        self.executed.push(level);
        match level {
            1 => self.time.set(self.time.get() + 1.0),
            2 | 5 | 6 => self.time.set(self.time.get() + 20.0),
            _ => {
                while cancel.check().is_ok() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                if level == 7 {
                    std::thread::sleep(std::time::Duration::from_millis(500));
                }
                return Err(FakeError::Stopped);
            }
        }
        Ok(RunRecord { bytes: 1000, seconds: 1.0, ..RunRecord::default() })
    }

    fn unfinished(&self) -> Option<Unfinished> {
        let seconds = match self.executed.last() {
            Some(4) => 0.001,
            Some(7) => 0.1,
            _ => 10.0,
        };
        Some(Unfinished { bytes: 7_000_000_000, seconds })
    }
}

fn go_uneven(levels: &[u64], budget_seconds: f64) -> (ExperimentEnd, Vec<u64>, Vec<RunRecord>) {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop { repeats_min: 50, repeats_max: 50, budget_seconds, ..Stop::default() };
    let mut plan = plan(stop);
    plan.factors[0].levels = levels.iter().copied().map(Level::Number).collect();
    let time = Shared::new(0.0);
    let mut executor = Uneven { time: &time, executed: Vec::new() };
    let mut experiment = Experiment { header: header(&plan), runs: Vec::new(), torn_bytes: 0 };
    let mut file = RunFile::create(&directory.path().join("a"), &experiment.header).unwrap();
    let parts = Parts {
        executor: &mut executor,
        file: &mut file,
        observer: &Silent,
        clock: &|| time.get(),
        cancel: &Cancel::new(),
    };
    let ended = run(&plan, &mut experiment, parts).unwrap();
    assert!(time.get() <= budget_seconds || levels.contains(&3));
    let missing = not_run(&plan, &executor, &experiment.runs);
    assert_eq!(missing.is_empty(), levels.iter().all(|level| executor.executed.contains(level)));
    (ended, executor.executed, experiment.runs)
}

#[test]
fn a_slow_cell_is_not_begun_when_its_own_time_is_not_left() {
    // The mean of both is 10.5 s; judged by the mean, a third run of level 2 would begin at 42 of
    // 60 s.
    let (ended, executed, _) = go_uneven(&[1, 2], 55.0);
    assert_eq!(ended, ExperimentEnd::Budget);
    assert_eq!(executed.iter().filter(|&&level| level == 2).count(), 2, "{executed:?}");
}

#[test]
fn a_run_that_does_not_end_is_kept_as_a_bound() {
    let (ended, executed, runs) = go_uneven(&[3], 0.05);
    assert_eq!((ended, executed, runs.len()), (ExperimentEnd::Cut, vec![3], 1));
    let run = &runs[0];
    assert!(run.cut_after_seconds.unwrap() >= 0.05, "{run:?}");
    // It should have moved 7 GB, and was measured for 10 s.
    assert_eq!(run.slower_than_bytes_per_second, Some(7e8));
    assert!(run.error.as_ref().unwrap().starts_with("slower than 700 MB/s: stopped after"));
    assert_eq!(run.bytes_per_second(), None);
}

#[test]
fn a_run_whose_time_went_before_it_was_measured_tells_nothing_and_is_tried_again() {
    let (ended, executed, runs) = go_uneven(&[4], 0.05);
    assert_eq!((ended, executed), (ExperimentEnd::Failed, vec![4, 4]));
    for run in &runs {
        assert_eq!((run.cut_after_seconds, run.slower_than_bytes_per_second), (None, None));
        assert!(run.error.as_ref().unwrap().contains("of which 1 ms were measured"), "{run:?}");
    }
}

#[test]
fn the_time_of_stopping_is_not_part_of_a_run_that_was_cut() {
    // A drive writes out its buffer before it stops.
    let begun = std::time::Instant::now();
    let (ended, executed, runs) = go_uneven(&[7], 0.1);
    let all = begun.elapsed().as_secs_f64();
    assert_eq!((ended, executed), (ExperimentEnd::Cut, vec![7]));
    let run = &runs[0];
    let cut = run.cut_after_seconds.unwrap();
    assert!(cut >= 0.1 && cut + 0.5 <= all, "{cut} of {all} s");
    assert_eq!(run.slower_than_bytes_per_second, Some(7e10));
}

#[test]
fn what_was_asked_for_and_did_not_run_is_known() {
    let (ended, executed, runs) = go_uneven(&[2, 5, 6], 20.0);
    assert_eq!(ended, ExperimentEnd::Budget);
    assert_eq!((executed.len(), runs.len()), (1, 1), "level 2 and more take all of the budget");
}

#[test]
fn a_slow_cell_costs_the_others_nothing() {
    // By the budget alone level 3 could have used all of the real time.
    let begun = std::time::Instant::now();
    let (ended, executed, runs) = go_uneven(&[3, 1], 6.0);
    assert_eq!(ended, ExperimentEnd::Budget, "{executed:?}");
    assert_eq!(executed.iter().filter(|&&level| level == 3).count(), 1, "it is not tried again");
    assert!(executed.iter().filter(|&&level| level == 1).count() >= 3, "{executed:?}");
    assert_eq!(runs.iter().filter(|run| run.cut_after_seconds.is_some()).count(), 1);
    assert!(begun.elapsed().as_secs() < 60, "bounded");
}

#[test]
fn shares_of_the_budget_and_what_others_took() {
    let room = |left_seconds, waiting| limit::Room {
        left_seconds,
        budget_seconds: 600.0,
        waiting,
        run_seconds_max: None,
    };
    let cell = |level| Cell::from([("level".to_owned(), Level::Number(level))]);
    let mut estimates = Estimates::of(&[]);
    assert_eq!(estimates.allowed_seconds(&cell(1), room(600.0, 40)), 150.0, "nothing is known");
    assert_eq!(estimates.allowed_seconds(&cell(1), room(600.0, 2)), 300.0, "its share");
    estimates.add(&cell(1), 27.0);
    assert_eq!(estimates.allowed_seconds(&cell(2), room(573.0, 39)), 81.0, "three times");
    assert_eq!(estimates.allowed_seconds(&cell(1), room(40.0, 39)), 100.0, "it has run");
    assert_eq!(estimates.allowed_seconds(&cell(2), room(10.0, 1)), 70.0, "and no more");
    let given = limit::Room { run_seconds_max: Some(5.0), ..room(600.0, 2) };
    assert_eq!(estimates.allowed_seconds(&cell(2), given), 5.0);
}
