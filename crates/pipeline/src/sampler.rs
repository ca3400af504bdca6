//! Samples the processes of a pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use machine::counters::processor::{ProcessorClock, thread_ns};
use machine::pipes::{self, End, Holders, Side, ends};
use machine::processes::{Process, children, numbers};
use machine::threads;

use super::followed::{AtPipes, Followed, Found, SPLICES};
use super::{Look, Pipe, Stage};

/// The largest share of a core that sampling takes, beside [`COST_SECONDS`] at the start.
pub const COST_SHARE: f64 = 0.008;
/// Processor time, in seconds, that sampling may take at the start without a limit on its share.
pub const COST_SECONDS: f64 = 0.05;
/// The shortest time between two samples.
const STEP: Duration = Duration::from_millis(10);
/// Samples from one search for processes to the next, after the first [`SEARCHES_AT_FIRST`].
const SEARCH_EVERY: u64 = 5;
const SEARCHES_AT_FIRST: u64 = 10;
/// Further processes, stages and pipes are not sampled.
pub(super) const PROCESSES_MAX: usize = 256;
const STAGES_MAX: usize = 32;
const PIPES_MAX: usize = 64;
/// The writer of a pipe waits when it is this full.
const FULL_SHARE: f64 = 7.0 / 8.0;

/// Samples a pipeline until it ends.
pub struct Sampler {
    start: Instant,
    last: Instant,
    next: Instant,
    looks: u64,
    cost_seconds: f64,
    is_stopped: bool,
    followed: Vec<Followed>,
    pipes: Vec<Between>,
    /// The processes given to [`Sampler::of_processes`]; `None` where a shell starts them.
    attached: Option<Vec<u32>>,
    /// The first process of each stage.
    tops: BTreeSet<u32>,
    clock: Option<ProcessorClock>,
    /// The shell's command line: the shell may replace itself with its only program.
    shell: Vec<String>,
}

/// A pipe between two stages.
struct Between {
    number: pipes::Number,
    from: usize,
    to: usize,
    pipe: Option<pipes::Pipe>,
    is_open: bool,
    is_full: bool,
    is_empty: bool,
    seconds: f64,
    full_seconds: f64,
    empty_seconds: f64,
    capacity_bytes: u64,
}

impl Sampler {
    /// Samples the stages that a shell with this command line will start.
    pub fn of_shell(arguments: &[String]) -> Sampler {
        Sampler { shell: arguments.to_vec(), ..Sampler::new(None) }
    }

    /// Samples processes that already run.
    pub fn of_processes(processes: Vec<u32>) -> Sampler {
        Sampler::new(Some(processes))
    }

    fn new(attached: Option<Vec<u32>>) -> Sampler {
        let now = Instant::now();
        Sampler {
            start: now,
            last: now,
            next: now,
            looks: 0,
            cost_seconds: 0.0,
            is_stopped: false,
            followed: Vec::new(),
            pipes: Vec::new(),
            attached,
            tops: BTreeSet::new(),
            clock: ProcessorClock::start(),
            shell: Vec::new(),
        }
    }

    /// Whether any stage still runs.
    pub fn is_running(&self) -> bool {
        self.followed.iter().any(|followed| !followed.is_gone)
    }

    /// What each running stage did most so far: its program, the kind of time, the share.
    pub fn so_far(&self) -> Vec<(String, &'static str, f64)> {
        let order = self.order();
        let live = order.iter().map(|&at| &self.followed[at]).filter(|it| !it.is_gone);
        live.filter(|it| !it.is_shell).map(Followed::mostly).collect()
    }

    /// Takes a sample if it is due. `shell` is the process that starts the stages; it is not used
    /// for processes that already ran.
    pub fn look(&mut self, shell: u32) {
        let now = Instant::now();
        // The next sample may be far off, and how long a stage runs after another has ended is
        // measured from that end: each end is sampled.
        let is_time = now >= self.next || self.followed.iter().any(Followed::has_just_ended);
        if self.is_stopped || !is_time {
            return;
        }
        let used_ns = thread_ns();
        let seconds = now.duration_since(self.last).as_secs_f64();
        self.notice_ends(seconds);
        if self.looks < SEARCHES_AT_FIRST || self.looks.is_multiple_of(SEARCH_EVERY) {
            self.search(shell);
        }
        self.look_at_pipes(seconds);
        let at_pipes = self.at_pipes();
        for (followed, pipes) in self.followed.iter_mut().zip(at_pipes) {
            if !followed.is_gone {
                followed.look(seconds, pipes, &self.tops);
            }
        }
        self.looks += 1;
        self.last = now;
        self.cost_seconds += thread_ns().saturating_sub(used_ns) as f64 / 1e9;
        let affordable_at = ((self.cost_seconds - COST_SECONDS) / COST_SHARE).max(0.0);
        self.next = (now + STEP).max(self.start + Duration::from_secs_f64(affordable_at));
    }

    /// Stops sampling: the stages will be ended from outside, and the time of that is not theirs.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Finds stages that ended in the `seconds` since the last sample.
    fn notice_ends(&mut self, seconds: f64) {
        let at_pipes = self.at_pipes();
        for (followed, pipes) in self.followed.iter_mut().zip(at_pipes) {
            followed.notice_end(seconds, pipes);
        }
    }

    /// The state of the pipes of each stage.
    fn at_pipes(&self) -> Vec<AtPipes> {
        let mut at_pipes = vec![AtPipes::default(); self.followed.len()];
        for between in self.pipes.iter().filter(|between| between.is_open) {
            at_pipes[between.to].is_empty |= between.is_empty;
            at_pipes[between.from].is_full |= between.is_full;
        }
        for (at, pipes) in at_pipes.iter_mut().enumerate() {
            let mut writers =
                self.pipes.iter().filter(|it| it.to == at).map(|it| it.from).peekable();
            pipes.is_input_over =
                writers.peek().is_some() && writers.all(|from| self.followed[from].is_gone);
        }
        at_pipes
    }

    fn look_at_pipes(&mut self, seconds: f64) {
        for between in self.pipes.iter_mut().filter(|between| between.is_open) {
            (between.is_full, between.is_empty) = (false, false);
            let Some(Ok(fill)) = between.pipe.as_ref().map(pipes::Pipe::look) else { continue };
            let share = fill.bytes as f64 / fill.capacity_bytes.max(1) as f64;
            between.is_full = share >= FULL_SHARE;
            between.is_empty = fill.bytes == 0;
            between.seconds += seconds;
            between.full_seconds += if between.is_full { seconds } else { 0.0 };
            between.empty_seconds += if between.is_empty { seconds } else { 0.0 };
            between.capacity_bytes = fill.capacity_bytes;
        }
    }

    /// The processes that the shell started, or the program that it became.
    fn tops(&self, shell: u32) -> Vec<u32> {
        if threads::arguments(shell) == self.shell { tops(shell) } else { vec![shell] }
    }

    /// Finds stages that have started, and their processes.
    fn search(&mut self, shell: u32) {
        let tops = self.attached.clone().unwrap_or_else(|| self.tops(shell));
        self.tops = tops.iter().copied().collect();
        for &top in &tops {
            let Some(process) = Process::of(top) else { continue };
            let known = self.followed.iter().any(|followed| followed.process == process);
            if !known && self.followed.len() < STAGES_MAX {
                // A child has the shell's command line until its exec, and the shell itself has
                // none for a moment during its own exec.
                let words = threads::arguments(top);
                let is_shell = top == shell && (words == self.shell || words.is_empty());
                let found = match (&self.attached, is_shell) {
                    (Some(_), _) => Found::Running,
                    (None, true) => Found::Shell,
                    (None, false) => Found::Started,
                };
                self.followed.push(Followed::new(process, found));
            }
        }
        for followed in self.followed.iter_mut().filter(|followed| !followed.is_gone) {
            followed.search(&self.tops);
        }
        self.search_pipes();
    }

    fn search_pipes(&mut self) {
        let mut found: BTreeMap<pipes::Number, Holders<usize>> = BTreeMap::new();
        let mut held: BTreeMap<pipes::Number, Vec<(usize, u32, End)>> = BTreeMap::new();
        let live = self.followed.iter().enumerate().filter(|(_, followed)| !followed.is_gone);
        for (at, followed) in live {
            for &process in &followed.processes {
                for end in ends(process) {
                    found.entry(end.pipe).or_default().add(at, process, end);
                    held.entry(end.pipe).or_default().push((at, process, end));
                }
            }
        }
        self.find_inner(&held);
        for between in &mut self.pipes {
            between.is_open = found.get(&between.number).is_some_and(|ends| ends.sides().is_some());
        }
        for (number, ends) in found {
            let Some(((from, to), process, end)) = ends.sides() else { continue };
            let known = self.pipes.iter_mut().find(|between| between.number == number);
            if let Some(between) = known {
                (between.from, between.to, between.is_open) = (from, to, true);
                // The process through which it was to be opened may have ended before that.
                let opened = || pipes::Pipe::of(process, end).ok();
                between.pipe = between.pipe.take().or_else(opened);
            } else if self.pipes.len() < PIPES_MAX {
                self.pipes.push(Between {
                    number,
                    from,
                    to,
                    pipe: pipes::Pipe::of(process, end).ok(),
                    is_open: true,
                    is_full: false,
                    is_empty: false,
                    seconds: 0.0,
                    full_seconds: 0.0,
                    empty_seconds: 0.0,
                    capacity_bytes: 0,
                });
            }
        }
    }

    /// Finds pipes whose both ends are held within one stage: a process that waits there waits for
    /// its own stage.
    fn find_inner(&mut self, held: &BTreeMap<pipes::Number, Vec<(usize, u32, End)>>) {
        self.followed.iter_mut().for_each(|followed| followed.inner.clear());
        for holders in held.values() {
            let Some(&(owner, _, _)) = holders.first() else { continue };
            let has = |side: Side| holders.iter().any(|(_, _, end)| end.side == side);
            let is_inner = holders.iter().all(|(at, _, _)| *at == owner)
                && has(Side::Read)
                && has(Side::Write);
            if is_inner {
                let files = holders.iter().map(|(_, process, end)| (*process, end.file.into()));
                self.followed[owner].inner.extend(files);
            }
        }
    }

    /// The last stage mostly ends between two samples, and there is none after the shell's end.
    fn notice_last_end(&mut self) {
        let now = Instant::now();
        if !self.is_stopped && self.followed.iter().any(Followed::has_just_ended) {
            self.notice_ends(now.duration_since(self.last).as_secs_f64());
            self.last = now;
        }
    }

    /// The result.
    pub fn finish(mut self) -> Look {
        self.notice_last_end();
        let seconds = self.last.duration_since(self.start).as_secs_f64();
        // The shell is a stage only if it became the only program.
        let has_others = self.followed.iter().any(|followed| !followed.is_shell);
        let order = self.order();
        let joined: BTreeSet<usize> = self.pipes.iter().flat_map(|it| [it.from, it.to]).collect();
        // Programs that run beside the pipeline are not stages.
        let is_part = |at: &usize| joined.is_empty() || joined.contains(at);
        let is_other = |at: &usize| !(has_others && self.followed[*at].is_shell);
        let kept: Vec<usize> = order.into_iter().filter(|it| is_part(it) && is_other(it)).collect();
        let place = |at: usize| kept.iter().position(|&kept| kept == at);
        let pipe = |between: &Between| {
            let share =
                |part: f64| (between.seconds > 0.0).then(|| (part / between.seconds).min(1.0));
            Some(Pipe {
                from: place(between.from)?,
                to: place(between.to)?,
                capacity_bytes: between.capacity_bytes,
                full_share: share(between.full_seconds),
                empty_share: share(between.empty_seconds),
            })
        };
        let pipes: Vec<Pipe> = self.pipes.iter().filter_map(pipe).collect();
        let mut stages: Vec<Stage> = kept.iter().map(|&at| self.followed[at].finish()).collect();
        uncounted(&mut stages, &pipes);
        let begin = kept.iter().map(|&at| self.followed[at].since).min();
        let ends = kept.iter().zip(&stages).map(|(&at, stage)| {
            self.followed[at].since + Duration::from_secs_f64(stage.lifetime_seconds)
        });
        let piped = begin.zip(ends.max()).map(|(begin, end)| end.duration_since(begin));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let used: f64 = stages.iter().map(|stage| stage.processor_seconds).sum();
        let others = self.clock.and_then(|clock| clock.others_seconds()).unwrap_or(0.0);
        Look {
            seconds,
            piped_seconds: piped.map_or(0.0, |piped| piped.as_secs_f64()),
            stages,
            pipes,
            looks: self.looks,
            looking_seconds: self.cost_seconds,
            cores,
            others_cores: (others - used).max(0.0) / seconds.max(f64::MIN_POSITIVE),
            drive: None,
            absent: Vec::new(),
        }
    }

    /// Stages in the order of the data; in the order of their start where no pipe joins them.
    fn order(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.followed.len()).collect();
        left.sort_by_key(|&at| {
            (self.followed[at].process.start_ticks, self.followed[at].process.pid)
        });
        let mut order = Vec::new();
        while !left.is_empty() {
            let feeds = |at: usize| {
                self.pipes.iter().any(|it| it.to == at && left.contains(&it.from) && it.from != at)
            };
            // In a circle of pipes any stage may be the first.
            let next = left.iter().position(|&at| !feeds(at)).unwrap_or(0);
            order.push(left.remove(next));
        }
        order
    }
}

/// A stage whose calls read less than half of what was written for it moves bytes in a way that no
/// counter has; what its pipe can hold is taken into account.
fn uncounted(stages: &mut [Stage], pipes: &[Pipe]) {
    for pipe in pipes {
        let given = stages[pipe.from].bytes_out.unwrap_or(0);
        let taken = stages[pipe.to].bytes_in.unwrap_or(u64::MAX);
        if taken.saturating_add(pipe.capacity_bytes) < given / 2 {
            stages[pipe.to].does_not_count(SPLICES);
        }
    }
}

/// The first process of each stage that a shell started: its children, or the children of its only
/// child if that has several. The shell itself where it became the program.
fn tops(shell: u32) -> Vec<u32> {
    let mut at = shell;
    for _ in 0..8 {
        let below = children(at);
        match below.as_slice() {
            [] => return vec![at],
            [only] if children(*only).len() > 1 => at = *only,
            _ => return below,
        }
    }
    children(at)
}

/// A process and all processes that pipes join it to, however many stages away, by number.
pub fn joined(process: u32) -> Vec<u32> {
    let of = |it: u32| -> (u32, Vec<End>) { (it, ends(it)) };
    let own = std::process::id();
    let all: Vec<(u32, Vec<End>)> = numbers().filter(|it| *it != own).map(of).collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&at) = found.get(next).filter(|_| found.len() < STAGES_MAX) {
        next += 1;
        let Some((_, here)) = all.iter().find(|(it, _)| *it == at) else { continue };
        for (other, there) in &all {
            // Standard error is not part of a pipeline, nor is an unnamed pipe that two programs
            // have beside their input and output.
            let is_own = |end: &End| end.file == 0 || end.file == 1 || end.pipe.is_named();
            let joins = |a: &End, b: &End| {
                let is_between = a.pipe == b.pipe && a.side != b.side;
                is_between && a.file != 2 && b.file != 2 && (is_own(a) || is_own(b))
            };
            let is_joined = here.iter().any(|a| there.iter().any(|b| joins(a, b)));
            // A process with both ends of a pipe talks to itself, or did not close one of them.
            let both = |ends: &[End]| {
                let has = |side: Side, pipe: pipes::Number| {
                    ends.iter().any(|end| end.side == side && end.pipe == pipe)
                };
                ends.iter().all(|end| has(Side::Read, end.pipe) && has(Side::Write, end.pipe))
            };
            // A parent may collect what `process` prints, and is not a stage.
            let is_joined = is_joined && !found.contains(other) && !both(there);
            if is_joined && !below(*other).contains(&process) {
                found.push(*other);
            }
        }
    }
    // The children of a stage hold its pipes as well, and are part of it.
    let is_below =
        |it: &u32| *it != process && found.iter().any(|other| below(*other).contains(it));
    let mut kept: Vec<u32> = found.iter().copied().filter(|it| !is_below(it)).collect();
    kept.sort_unstable();
    kept
}

/// All descendants of a process.
fn below(process: u32) -> Vec<u32> {
    let mut below = children(process);
    let mut next = 0;
    while let Some(&at) = below.get(next).filter(|_| below.len() < PROCESSES_MAX) {
        below.extend(children(at));
        next += 1;
    }
    below
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn how_long_a_stage_takes_to_be_ended_is_not_its_time() {
        let arguments = ["/bin/sh", "-c", "exec sleep 60"];
        let mut child = Command::new(arguments[0]).args(&arguments[1..]).spawn().unwrap();
        let arguments: Vec<String> = arguments.map(str::to_owned).into();
        let mut sampler = Sampler::of_shell(&arguments);
        let begin = Instant::now();
        while begin.elapsed() < 10 * STEP {
            sampler.look(child.id());
            std::thread::sleep(STEP);
        }
        sampler.stop();
        let stopped_seconds = sampler.start.elapsed().as_secs_f64();
        std::thread::sleep(20 * STEP);
        child.kill().unwrap();
        child.wait().unwrap();
        sampler.look(child.id());
        let look = sampler.finish();
        assert_eq!(look.stages.len(), 1, "{look:?}");
        assert!(look.seconds <= stopped_seconds, "{look:?}");
        assert!(look.stages[0].lifetime_seconds <= stopped_seconds, "{look:?}");
    }

    #[test]
    fn what_a_stage_does_behind_its_input_is_seen_however_rare_looks_are() {
        let arguments = ["/bin/sh", "-c", "sleep 0.3 | (cat; exec sleep 0.4)"];
        let mut shell = Command::new(arguments[0]);
        shell.args(&arguments[1..]).stdout(Stdio::null());
        let arguments: Vec<String> = arguments.map(str::to_owned).into();
        let mut child = shell.spawn().unwrap();
        let mut sampler = Sampler::of_shell(&arguments);
        while child.try_wait().unwrap().is_none() {
            sampler.look(child.id());
            if sampler.looks == 5 {
                // As if five looks had taken a core for days.
                sampler.cost_seconds = 1e6;
            }
            std::thread::sleep(STEP);
        }
        let look = sampler.finish();
        assert_eq!(look.stages.len(), 2, "{look:?}");
        let tail = look.stages[1].tail_seconds;
        assert!((0.3..0.6).contains(&tail), "{look:?}");
        assert!(look.piped_seconds > 0.6, "{look:?}");
    }
}
