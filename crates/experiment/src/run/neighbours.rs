//! The effect of other programs on a run: cores that they use while the run waits for one, and
//! bytes that they move on its disk.
//!
//! A disturbed run is repeated, a limited number of times in an experiment. Its record has
//! `others_cores_percent` (of all cores), `others_wait_percent` (the share of the time in which a
//! stage of the run was ready but had no core), `others_disk_bytes`, and `run_again` if there was a
//! second attempt. Other programs on other cores do no harm: a run that never waits for a core is
//! not disturbed. The waiting of programs that a run starts is unknown; such a run counts as
//! disturbed if other programs leave less than half of the cores.

use std::path::Path;
use std::time::Instant;

use machine::counters::processor::{ProcessorClock, children_ns};
use machine::processes::ProcessTimes;
use storage::DiskWatch;

use crate::record::RunRecord;

/// Names of the numbers of a run.
pub const CORES: &str = "others_cores_percent";
/// See [`CORES`].
pub const WAIT: &str = "others_wait_percent";
/// See [`CORES`].
pub const DISK: &str = "others_disk_bytes";
/// See [`CORES`].
pub const AGAIN: &str = "run_again";

/// Share of its time that a stage waits for a core, from which on the run counts as delayed.
const WAIT_MIN: f64 = 0.05;
/// Share of the cores that other programs must use to be the cause.
const CORES_MIN: f64 = 0.10;
/// Share of the cores for runs whose waiting is unknown.
const CORES_ALONE_MIN: f64 = 0.5;
/// Bytes of other programs on the disk: smallest share of the run's bytes, and smallest number.
const DISK_SHARE_MIN: f64 = 0.1;
const DISK_BYTES_MIN: u64 = 16 << 20;

/// The activity of other programs during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foreign {
    /// Share of all cores that they used.
    pub cores_share: f64,
    /// The largest share of its time that a stage waited for a core; `None` if unknown.
    pub wait_share: Option<f64>,
    /// Bytes that they moved on the disk of the run.
    pub disk_bytes: u64,
}

/// A watch that has begun.
pub trait Neighbours {
    /// The activity of other programs since the beginning of the run that just ended.
    fn since(&self, run: &RunRecord) -> Foreign;
}

/// Watches nothing.
pub struct Unwatched;

impl Neighbours for Unwatched {
    fn since(&self, _run: &RunRecord) -> Foreign {
        Foreign::default()
    }
}

/// The counters of this machine.
pub struct MachineCounters {
    clock: Option<ProcessorClock>,
    children_ns: u64,
    disk: Option<DiskWatch>,
    /// Another process that belongs to the runs, and its processor time at the beginning.
    own_server: Option<(u32, ProcessTimes)>,
    begun: Instant,
}

impl MachineCounters {
    /// Begins to watch. `disk` is the path that is read or written, if this process alone does the
    /// I/O of the run on its disk.
    pub fn watch(disk: Option<&Path>) -> MachineCounters {
        MachineCounters {
            clock: ProcessorClock::start(),
            children_ns: own_children_ns(),
            disk: disk.and_then(DiskWatch::start),
            own_server: None,
            begun: Instant::now(),
        }
    }

    /// Does not count a process as another program: the one that is the virtual drive of the runs.
    pub fn without(mut self, process: Option<u32>) -> MachineCounters {
        // The time of this process is never counted.
        let process = process.filter(|process| *process != std::process::id());
        self.own_server = process.and_then(|it| Some((it, ProcessTimes::of(it)?)));
        self
    }

    /// Processor time of the process that is no other program.
    fn own_server_seconds(&self) -> f64 {
        let used = || {
            let (process, before) = self.own_server?;
            let now = ProcessTimes::of(process)?;
            let is_same = now.start_ticks == before.start_ticks;
            is_same.then(|| now.used_seconds() - before.used_seconds())
        };
        used().unwrap_or(0.0)
    }
}

impl Neighbours for MachineCounters {
    fn since(&self, run: &RunRecord) -> Foreign {
        let took = self.begun.elapsed().as_secs_f64() * flow::crew::cores() as f64;
        let children = own_children_ns().saturating_sub(self.children_ns) as f64 / 1e9;
        let others = self.clock.and_then(|clock| clock.others_seconds()).unwrap_or(0.0);
        Foreign {
            cores_share: ((others - children - self.own_server_seconds()) / took.max(1e-9))
                .clamp(0.0, 1.0),
            wait_share: wait_share(run),
            disk_bytes: self.disk.as_ref().and_then(DiskWatch::others_bytes).unwrap_or(0),
        }
    }
}

fn own_children_ns() -> u64 {
    children_ns().map_or(0, |[user, system]| user + system)
}

/// The share of the stage that waited most. With a faster clock of a virtual drive its states are
/// longer than real time.
fn wait_share(run: &RunRecord) -> Option<f64> {
    let clock_ratio = run.measures.get("drive_clock_ratio").copied().unwrap_or(1.0);
    let of = |stage: &flow::run::StageReport| {
        let states = [
            stage.working_seconds,
            stage.starved_seconds,
            stage.blocked_seconds,
            stage.apart_seconds,
        ];
        let own = states.iter().sum::<f64>() / clock_ratio * stage.threads.max(1) as f64;
        if own > 0.0 { stage.core_wait_seconds / own } else { 0.0 }
    };
    run.stages.iter().map(of).reduce(f64::max)
}

impl Foreign {
    /// Whether it disturbed the run.
    pub fn has_hit(&self, run: &RunRecord) -> bool {
        self.has_taken_cores() || self.has_used_disk(run)
    }

    fn has_taken_cores(&self) -> bool {
        match self.wait_share {
            Some(wait) => wait >= WAIT_MIN && self.cores_share >= CORES_MIN,
            None => self.cores_share >= CORES_ALONE_MIN,
        }
    }

    fn has_used_disk(&self, run: &RunRecord) -> bool {
        self.disk_bytes >= DISK_BYTES_MIN
            && self.disk_bytes as f64 >= DISK_SHARE_MIN * run.bytes as f64
    }

    /// Its weight, to compare two attempts.
    pub fn weight(&self, run: &RunRecord) -> f64 {
        let cores = self.wait_share.unwrap_or(self.cores_share);
        cores + self.disk_bytes as f64 / run.bytes.max(1) as f64
    }

    /// Records it with a disturbed run.
    pub fn keep(&self, run: &mut RunRecord) {
        let cores = self.has_taken_cores().then_some(100.0 * self.cores_share);
        let wait = cores.and(self.wait_share).map(|wait| 100.0 * wait);
        let disk = (self.disk_bytes >= DISK_BYTES_MIN).then_some(self.disk_bytes as f64);
        let named = [(CORES, cores), (WAIT, wait), (DISK, disk)];
        let known = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        run.measures.extend(known);
    }
}

/// Whether a recorded run was disturbed.
pub fn was_hit(run: &RunRecord) -> bool {
    [CORES, DISK].iter().any(|name| run.measures.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::run::{StageKind, StageReport};

    #[test]
    fn cores_of_others_are_no_harm_to_who_does_not_wait_for_one() {
        let waited = |seconds: f64| {
            let stage = StageReport::of_one_thread(StageKind::Write, [6.0, 4.0, 0.0]);
            let stage = StageReport { core_wait_seconds: seconds, ..stage };
            RunRecord { bytes: 1 << 30, stages: vec![stage], ..RunRecord::default() }
        };
        let foreign = |run: &RunRecord, cores_share: f64| {
            let wait_share = wait_share(run);
            Foreign { cores_share, wait_share, disk_bytes: 0 }.has_hit(run)
        };
        assert!(foreign(&waited(1.0), 0.9) && !foreign(&waited(0.1), 0.9));
        assert!(!foreign(&waited(1.0), 0.01), "its own threads are in each other's way");
        let silent = RunRecord::default();
        assert!(foreign(&silent, 0.8) && !foreign(&silent, 0.3));
        let mut fast = waited(0.05);
        fast.measures.insert("drive_clock_ratio".to_owned(), 20.0);
        assert!(foreign(&fast, 0.9), "10 s of the drive's time are half a second of ours");
        let disk = Foreign { disk_bytes: 1 << 28, ..Foreign::default() };
        assert!(disk.has_hit(&waited(0.0)));
    }

    /// A process that spins beside this one, which waits for it.
    #[test]
    fn a_process_beside_the_run_is_seen_and_a_child_is_not() {
        let watch = MachineCounters::watch(None);
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh").args(["-c", spin]).spawn().unwrap();
        child.wait().unwrap();
        let took = watch.begun.elapsed().as_secs_f64();
        let own_ns = own_children_ns() - watch.children_ns;
        assert!(own_ns > 0, "the child used a core for {took} s");
        let with = watch.since(&RunRecord::default()).cores_share;
        let blind = MachineCounters { children_ns: own_children_ns(), ..watch };
        let without = blind.since(&RunRecord::default()).cores_share;
        assert!(without >= with, "{with} {without}");
    }

    #[test]
    fn the_process_that_is_the_drive_is_no_other_program() {
        let watch = MachineCounters::watch(None);
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; cat";
        let mut drive = std::process::Command::new("sh")
            .args(["-c", spin])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let watch = watch.without(Some(drive.id()));
        // It has done its work, and was not waited for.
        let mut byte = [0];
        std::io::Read::read_exact(drive.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let seconds = watch.own_server_seconds();
        let gone = MachineCounters::watch(None).without(Some(drive.id()));
        drop(drive.stdin.take());
        drive.wait().unwrap();
        assert!(seconds > 0.0, "it spun");
        assert_eq!(gone.own_server_seconds(), 0.0);
        let own = MachineCounters::watch(None).without(Some(std::process::id()));
        assert!(own.own_server.is_none(), "its time would be taken away twice");
    }
}
