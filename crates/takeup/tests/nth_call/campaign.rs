//! One command, all its calls, all their faults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use testkit::stepper::{Call, CallVerdict, ProgramEnd, Step, Stepped};

use crate::fault::{Fault, faults_of, is_on_error_output};

/// A command under test.
pub trait Case: Sync {
    /// Brings a place to the state before a run, and gives the command.
    fn prepare(&self, place: &std::path::Path) -> Command;
    /// What it reads from standard input.
    fn input(&self) -> Option<PathBuf> {
        None
    }
    /// Exit code of a run without a fault.
    fn code(&self) -> i32 {
        0
    }
    /// Checks exit code, messages and files. `Err` has what is wrong.
    fn check(&self, place: &std::path::Path, run: &Run) -> Result<(), String>;
}

/// The result of a run with a fault.
pub struct Run {
    pub fault: Option<Fault>,
    /// The call that had the fault.
    pub met: Option<Met>,
    pub ended: ProgramEnd,
}

/// A call that had a fault.
#[derive(Debug)]
pub struct Met {
    pub path: Option<PathBuf>,
    pub on_error_output: bool,
    pub offset_bytes: u64,
    /// The same place of the same file was read by another call.
    pub again: bool,
}

impl Run {
    pub fn code(&self) -> i32 {
        self.ended.code.unwrap_or(-1)
    }

    /// Whether the fault met a call of one of these names.
    pub fn met_call(&self, names: &[&str]) -> bool {
        self.met.is_some() && self.fault.is_some_and(|fault| names.contains(&fault.call))
    }
}

/// Counts calls by name, and lets one of them go wrong.
struct Injector<'a> {
    /// The program has started; before that, its loader opens libraries.
    began: bool,
    counts: &'a mut BTreeMap<&'static str, usize>,
    fault: Option<(Fault, usize)>,
    met: Option<Met>,
    /// Places that were read with pread64 without failure.
    reads: Vec<(Option<PathBuf>, std::ops::Range<u64>)>,
}

/// poll(2): Rust's runtime polls the standard descriptors before `main`.
const FIRST_CALL: i64 = 7;

impl Step for Injector<'_> {
    fn before(&mut self, call: &Call) -> CallVerdict {
        self.began |= call.number == FIRST_CALL;
        let counted = |name: &&str| self.began && !(*name == "close" && is_kernels_own(call));
        let Some(name) = call.name().filter(counted) else { return CallVerdict::Pass };
        let count = self.counts.entry(name).or_default();
        *count += 1;
        let Some((fault, at)) = self.fault.filter(|(fault, _)| fault.call == name) else {
            return CallVerdict::Pass;
        };
        if *count != at {
            self.note_read(call);
            return CallVerdict::Pass;
        }
        self.met = Some(Met {
            path: call.path(),
            on_error_output: is_on_error_output(call),
            offset_bytes: call.arguments[3],
            again: false,
        });
        fault.verdict
    }
}

/// Whether the call is about one of the kernel's own files, which closing cannot write to: the
/// standard library panics when closing such a directory fails.
fn is_kernels_own(call: &Call) -> bool {
    call.path().is_some_and(|path| path.starts_with("/proc") || path.starts_with("/sys"))
}

impl Injector<'_> {
    fn note_read(&mut self, call: &Call) {
        if let (Some("pread64"), Some(length)) = (call.name(), call.length_bytes()) {
            let from = call.arguments[3];
            self.reads.push((call.path(), from..from + length));
        }
    }

    /// Whether another call read what the failed call should have read.
    fn met(self) -> Option<Met> {
        let mut met = self.met?;
        let same = |(path, range): &(Option<PathBuf>, std::ops::Range<u64>)| {
            *path == met.path && range.contains(&met.offset_bytes)
        };
        met.again = self.reads.iter().any(same);
        Some(met)
    }
}

/// Every run here takes less than a second.
const LIMIT: Duration = Duration::from_secs(60);

fn run(
    case: &dyn Case,
    place: &std::path::Path,
    fault: Option<(Fault, usize)>,
    counts: &mut BTreeMap<&'static str, usize>,
) -> Run {
    let command = case.prepare(place);
    let input = case.input().unwrap_or_else(|| PathBuf::from("/dev/null"));
    let mut injector = Injector { began: false, counts, fault, met: None, reads: Vec::new() };
    let ended = Stepped::new(&command, input.to_str().unwrap(), LIMIT).run(&mut injector).unwrap();
    Run { fault: fault.map(|(fault, _)| fault), met: injector.met(), ended }
}

/// Threads that wait for each other make a few calls more in one run and fewer in the next. A fault
/// after the last call of a run has no effect, and is tried again at that run's last call. Since
/// the number of calls differs each time, only a few tries are made.
fn until_met(
    case: &dyn Case,
    place: &std::path::Path,
    fault: Fault,
    mut at: usize,
) -> (Run, usize) {
    for _ in 0..MOST_TRIES {
        let mut counts = BTreeMap::new();
        let disturbed = run(case, place, Some((fault, at)), &mut counts);
        match counts.get(fault.call) {
            Some(&last) if disturbed.met.is_none() => at = last,
            _ => return (disturbed, at),
        }
    }
    (run(case, place, Some((fault, at)), &mut BTreeMap::new()), at)
}

const MOST_TRIES: usize = 4;

/// Places of each fault that the short form tries; `TAKEUP_LONG=1` tries all.
fn places(total: usize, salt: usize) -> Vec<usize> {
    if std::env::var_os("TAKEUP_LONG").is_some() {
        return (1..=total).collect();
    }
    let most: usize =
        std::env::var("TAKEUP_FAULTS").ok().and_then(|most| most.parse().ok()).unwrap_or(1);
    let mut places: Vec<usize> =
        (0..most.min(total)).map(|at| (at * total / most + salt * 7919) % total + 1).collect();
    // The last call of its kind is where a run reports its success.
    places.push(total);
    places.sort_unstable();
    places.dedup();
    places
}

/// Tries all faults of a command in a few threads. Panics with every violation.
pub fn campaign(name: &str, case: &dyn Case) {
    let folder = tempfile::tempdir().unwrap();
    let mut counts = BTreeMap::new();
    let undisturbed = run(case, folder.path(), None, &mut counts);
    assert_eq!(undisturbed.code(), case.code(), "{name}: {}", undisturbed.ended.errors);
    case.check(folder.path(), &undisturbed).unwrap();
    let calls: Vec<&'static str> = counts.keys().copied().collect();
    let only = std::env::var("TAKEUP_FAULT").unwrap_or_default();
    let work: Vec<(Fault, usize)> = faults_of(&calls)
        .into_iter()
        .enumerate()
        .filter(|(_, fault)| fault.shown().contains(&only))
        .flat_map(|(salt, fault)| {
            places(counts[fault.call], salt).into_iter().map(move |at| (fault, at))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let folder = tempfile::tempdir().unwrap();
        let mut tally = Tally::default();
        while let Some(&(fault, at)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (run, at) = until_met(case, folder.path(), fault, at);
            tally.add(case, folder.path(), &run, at);
        }
        tally
    };
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut untrue = Vec::new();
    let (mut met, mut codes) = (0, [0; 3]);
    for tally in tallies {
        met += tally.met;
        codes.iter_mut().zip(tally.codes).for_each(|(sum, part)| *sum += part);
        untrue.extend(tally.untrue);
    }
    let total: usize = counts.values().sum();
    eprintln!(
        "{name}: {total} calls of {} names; {} faults tried, {met} met a call; \
         {} done, {} failed, {} done with warnings, {} untrue",
        counts.len(),
        work.len(),
        codes[0],
        codes[1],
        codes[2],
        untrue.len()
    );
    untrue.sort();
    assert!(untrue.is_empty(), "{name}:\n{}", untrue.join("\n"));
    assert!(met * 10 >= work.len() * 8, "most faults meet a call: {met} of {}", work.len());
}

#[derive(Default)]
struct Tally {
    met: usize,
    /// Runs by exit code.
    codes: [usize; 3],
    untrue: Vec<String>,
}

impl Tally {
    fn add(&mut self, case: &dyn Case, place: &std::path::Path, run: &Run, at: usize) {
        self.met += usize::from(run.met.is_some());
        if let Some(count) = run.ended.code.and_then(|code| self.codes.get_mut(code as usize)) {
            *count += 1;
        }
        if let Err(why) = judge(case, place, run) {
            let fault = run.fault.map(|fault| fault.shown()).unwrap_or_default();
            self.untrue.push(format!(
                "  {fault} at {at} ({}): {why}; exit {:?}: {}",
                run.met
                    .as_ref()
                    .and_then(|met| met.path.as_ref())
                    .map_or_else(|| "?".to_owned(), |path| path.display().to_string()),
                run.ended.code,
                run.ended.errors.trim_end()
            ));
        }
    }
}

fn judge(case: &dyn Case, place: &std::path::Path, run: &Run) -> Result<(), String> {
    if run.ended.hung {
        return Err("hangs".into());
    }
    if !matches!(run.ended.code, Some(0..=2)) || run.ended.errors.contains("panicked") {
        return Err("breaks down".into());
    }
    let told = run.ended.errors.contains("takeup: ") || run.ended.errors.contains("warning");
    let unheard = run.met.as_ref().is_some_and(|met| met.on_error_output);
    if run.code() != 0 && !told && !unheard {
        return Err("does not say why".into());
    }
    let no_failure = run.fault.as_ref().is_some_and(Fault::is_no_failure);
    let interrupted = run.met.is_some() && no_failure;
    if interrupted && run.code() != case.code() {
        return Err("is no failure".into());
    }
    case.check(place, run)
}
