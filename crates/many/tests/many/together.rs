//! Cells that several ranks run at once.

use std::cell::Cell as Shared;
use std::rc::Rc;
use std::thread;

use experiment::record::{Cell, Level, RunRecord, cell};
use experiment::run::Executor;
use experiment::run::gate::{CommonStart, GateError, StartsTogether};
use flow::cancel::Cancel;
use many::clock::{Clock, OwnClock};
use many::communicator::Communicator;
use many::local::Local;
use many::rank::serve;
use many::ranks::Ranks;
use many::together::Together;
use proptest::prelude::*;
use statistics::histogram::Histogram;

/// A load that returns what it was told.
struct Told {
    load: Load,
    start: CommonStart,
    runs: Shared<u64>,
}

#[derive(Clone, Debug)]
struct Load {
    seconds: f64,
    bytes: u64,
    latencies: Vec<u64>,
    fails: Fails,
}

impl Load {
    fn new(seconds: f64, bytes: u64, latencies: Vec<u64>) -> Load {
        Load { seconds, bytes, latencies, fails: Fails::Never }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fails {
    Never,
    BeforeTheGate,
    Behind,
}

#[derive(Debug, thiserror::Error)]
enum ToldError {
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("the disk is gone")]
    Disk,
}

impl Told {
    fn new(load: Load) -> Told {
        Told { load, start: CommonStart::default(), runs: Shared::new(0) }
    }
}

impl Executor for Told {
    type Error = ToldError;

    fn applies(&self, cell: &Cell) -> bool {
        !cell.contains_key("hosts")
    }

    fn execute(&mut self, _: &Cell, cancel: &Cancel) -> Result<RunRecord, ToldError> {
        self.runs.set(self.runs.get() + 1);
        let first = self.runs.get() == 1;
        if first && self.load.fails == Fails::BeforeTheGate {
            return Err(ToldError::Disk);
        }
        self.start.wait(cancel)?;
        if first && self.load.fails == Fails::Behind {
            return Err(ToldError::Disk);
        }
        let mut latency = Histogram::default();
        self.load.latencies.iter().for_each(|ns| latency.add(*ns));
        Ok(RunRecord {
            bytes: self.load.bytes,
            // As told, so that rates do not depend on how busy the machine is.
            seconds: self.load.seconds,
            latency: Some(latency),
            ..RunRecord::default()
        })
    }
}

impl StartsTogether for Told {
    fn start_together(&mut self, start: CommonStart) {
        self.start = start;
    }
}

/// A clock that began at another time.
struct Ahead(OwnClock, i64);

impl Clock for Ahead {
    fn now_ns(&self) -> i64 {
        self.0.now_ns() + self.1
    }
}

fn ranks(by: Local, ahead_ns: i64) -> Ranks {
    let hosts = (0..by.size()).map(|rank| format!("host{rank}")).collect();
    Ranks { by: Rc::new(by), clock: Rc::new(Ahead(OwnClock::default(), ahead_ns)), hosts }
}

/// Runs these cells on rank 0, with these loads on all ranks.
fn run(loads: Vec<Load>, cells: &[Cell]) -> Vec<Result<RunRecord, String>> {
    let mut group = Local::group(loads.len()).into_iter();
    let mut loads = loads.into_iter();
    let (first, own) = (group.next().unwrap(), Told::new(loads.next().unwrap()));
    thread::scope(|scope| {
        for (by, load) in group.zip(loads) {
            scope.spawn(move || {
                let ahead = by.rank() as i64 * 1_000_000_000_000;
                let mut load = Told::new(load);
                serve(&ranks(by, ahead), &mut load, Cell::clone, &Cancel::new()).unwrap();
            });
        }
        let ranks = Rc::new(ranks(first, 0));
        let mut together = Together::new(own, ranks, 60.0, Box::new(Cell::clone));
        let one = |cell: &Cell| {
            assert!(together.applies(cell));
            together.execute(cell, &Cancel::new()).map_err(|error| error.to_string())
        };
        let runs = cells.iter().map(one).collect();
        together.finish().unwrap();
        runs
    })
}

fn hosts(count: u64) -> Cell {
    [("hosts".to_owned(), Level::Number(count))].into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The merged histogram is that of all samples, to the bucket.
    #[test]
    fn latencies_are_those_of_all_samples(
        samples in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..40), 1..5),
    ) {
        let told = samples.iter().map(|own| Load::new(20.0, 10, own.clone())).collect();
        let all = samples.len() as u64;
        let runs = run(told, &[hosts(all), hosts(all)]);
        let mut expected = Histogram::default();
        samples.iter().flatten().for_each(|ns| expected.add(*ns));
        for run in runs {
            let run = run.unwrap();
            prop_assert_eq!(run.latency.unwrap_or_default(), expected.clone());
            prop_assert_eq!(run.hosts.len(), samples.len());
        }
    }
}

#[test]
fn all_begin_at_the_agreed_instant_whatever_their_clocks_say() {
    let told = (0..4).map(|_| Load::new(20.0, 1 << 20, Vec::new())).collect();
    let run = run(told, &[hosts(4)]).remove(0).unwrap();
    // Hours lie between these clocks; a common start is off by what a busy machine takes to wake a
    // thread.
    for host in &run.hosts {
        assert!(host.started_after_seconds < 5.0, "{host:?}");
        assert!(host.seconds < 30.0, "{host:?}");
    }
    assert!(run.measures["hosts_window_seconds"] > 0.0, "{:?}", run.measures);
}

#[test]
fn single_hosts_run_in_turn_the_slowest_first() {
    let told = [20.0, 20.0, 200.0, 20.0].map(|seconds| Load::new(seconds, 1 << 20, Vec::new()));
    let mut cells = vec![hosts(4)];
    cells.extend((0..5).map(|_| hosts(1)));
    cells.push(hosts(2));
    let runs = run(told.into(), &cells);
    let ranks: Vec<Vec<u64>> = runs
        .iter()
        .map(|run| run.as_ref().unwrap().hosts.iter().map(|host| host.rank).collect())
        .collect();
    assert_eq!(ranks[0], [0, 1, 2, 3]);
    assert_eq!(ranks[1], [2], "{ranks:?}");
    let mut alone: Vec<u64> = ranks[1..5].iter().flatten().copied().collect();
    alone.sort_unstable();
    assert_eq!(alone, [0, 1, 2, 3]);
    // The one that is slow alone runs first again.
    assert_eq!(ranks[5], [2]);
    assert_eq!(ranks[6], [0, 1]);
}

/// One host that fails is named, and the next run has all of them again.
#[test]
fn a_host_that_fails_is_named_and_the_others_go_on() {
    for failing in 0..3 {
        for fails in [Fails::BeforeTheGate, Fails::Behind] {
            let mut told: Vec<Load> = (0..3).map(|_| Load::new(20.0, 10, vec![5])).collect();
            told[failing].fails = fails;
            let runs = run(told, &[hosts(3), hosts(3)]);
            let error = runs[0].as_ref().unwrap_err();
            let expected = format!("host{failing} (rank {failing}): the disk is gone");
            assert!(error.contains(&expected), "{fails:?} {error}");
            let second = runs[1].as_ref().unwrap();
            assert_eq!(second.latency.as_ref().unwrap().count(), 3, "{fails:?} {failing}");
        }
    }
}

#[test]
fn more_hosts_than_there_are_do_not_apply() {
    let together = Together::new(
        Told::new(Load::new(0.0, 1, Vec::new())),
        Rc::new(ranks(Local::group(1).remove(0), 0)),
        1.0,
        Box::new(Cell::clone),
    );
    assert!(together.applies(&hosts(1)) && together.applies(&Cell::new()));
    assert!(!together.applies(&hosts(2)) && !together.applies(&hosts(0)));
    assert!(!together.applies(&cell(&[("hosts", "many")])));
}
