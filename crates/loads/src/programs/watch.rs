//! Samples the programs of a running command: processor time and bytes of each, and how full the
//! pipes between them are.
//!
//! The kernel shows only running processes: one that lives for less than a sample or two is not
//! among the programs, though all of its time is in that of the command.

use std::collections::{BTreeMap, BTreeSet};

use machine::pipes::{Holders, Number, Pipe, ends};
use machine::processes::{ProcessBytes, ProcessTimes, children, name};

use experiment::record::{PipeUse, ProgramUse};

/// Looks from one search for new programs to the next, once the first have passed.
const SEARCH_EVERY: u64 = 5;
/// Looks at the beginning that are searches, too: a pipeline has begun by then.
const SEARCHES_AT_FIRST: u64 = 10;
/// More processes at once, programs and pipes are not followed.
const PROCESSES_MAX: usize = 256;
const PROGRAMS_MAX: usize = 32;
const PIPES_MAX: usize = 64;
/// Searches that a program has to be seen in, unless it has used a processor.
const SEEN_MIN: u64 = 2;
const USED_SECONDS_MIN: f64 = 0.02;
/// A pipe that is so full, or so empty, has one side waiting: what a program writes at once may not
/// fit into the rest.
const FULL_SHARE: f64 = 7.0 / 8.0;

#[derive(Default)]
struct Program {
    name: String,
    processes: u64,
    seen: u64,
    used_seconds: f64,
    bytes: Option<ProcessBytes>,
    is_shell: bool,
}

/// A process that runs a program.
struct Live {
    program: usize,
    name: String,
    start_ticks: u64,
    /// What it had used when it began to run this program, and has used.
    before: (f64, Option<ProcessBytes>),
    now: (f64, Option<ProcessBytes>),
}

struct Between {
    pipe: Option<Pipe>,
    number: Number,
    /// Programs that write and that read, as last seen.
    sides: Option<(usize, usize)>,
    is_open: bool,
    sums: Sums,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    looks: u64,
    fill: f64,
    full: u64,
    empty: u64,
    capacity_bytes: u64,
}

/// Samples of a command.
#[derive(Default)]
pub struct CommandWatch {
    looks: u64,
    programs: Vec<Program>,
    live: BTreeMap<u32, Live>,
    pipes: Vec<Between>,
}

impl CommandWatch {
    /// Samples the command whose shell has this process number.
    pub fn look(&mut self, shell: u32) {
        if self.looks < SEARCHES_AT_FIRST || self.looks.is_multiple_of(SEARCH_EVERY) {
            self.search(shell);
        }
        self.looks += 1;
        for between in self.pipes.iter_mut().filter(|between| between.is_open) {
            let Some(Ok(fill)) = between.pipe.as_ref().map(Pipe::look) else { continue };
            let share = fill.bytes as f64 / fill.capacity_bytes.max(1) as f64;
            let sums = &mut between.sums;
            sums.looks += 1;
            sums.fill += share;
            sums.full += u64::from(share >= FULL_SHARE);
            sums.empty += u64::from(share <= 1.0 - FULL_SHARE);
            sums.capacity_bytes = fill.capacity_bytes;
        }
    }

    fn search(&mut self, shell: u32) {
        let mut there = vec![shell];
        let mut next = 0;
        while let Some(&process) = there.get(next).filter(|_| there.len() < PROCESSES_MAX) {
            there.extend(children(process));
            next += 1;
        }
        let known: BTreeSet<u32> = there.iter().copied().collect();
        let gone: Vec<u32> =
            self.live.keys().copied().filter(|process| !known.contains(process)).collect();
        gone.iter().for_each(|process| self.close(*process));
        for &process in &there {
            self.see(process, shell);
        }
        self.see_pipes(&there);
    }

    fn see(&mut self, process: u32, shell: u32) {
        let (Some(times), Some(name)) = (ProcessTimes::of(process), name(process)) else { return };
        let now = (times.used_seconds(), ProcessBytes::of(process));
        let is_same = |live: &Live| live.start_ticks == times.start_ticks && live.name == name;
        if !self.live.get(&process).is_some_and(is_same) {
            // What it used so far was used by what it was.
            let was = self.live.get(&process).filter(|live| live.start_ticks == times.start_ticks);
            let before = was.map_or((0.0, None), |live| live.now);
            self.close(process);
            let Some(program) = self.place(&name, process == shell) else { return };
            self.programs[program].processes += 1;
            let start_ticks = times.start_ticks;
            self.live.insert(process, Live { program, name, start_ticks, before, now });
        }
        let Some(live) = self.live.get_mut(&process) else { return };
        live.now = (now.0.max(live.now.0), now.1.or(live.now.1));
        self.programs[live.program].seen += 1;
    }

    /// The first program of that name that no process runs, or a new one.
    fn place(&mut self, name: &str, is_shell: bool) -> Option<usize> {
        let is_free = |at: &usize| !self.live.values().any(|live| live.program == *at);
        let known = (0..self.programs.len())
            .filter(|&at| self.programs[at].name == name && self.programs[at].is_shell == is_shell)
            .find(is_free);
        if known.is_none() && self.programs.len() < PROGRAMS_MAX {
            self.programs.push(Program { name: name.to_owned(), is_shell, ..Program::default() });
            return Some(self.programs.len() - 1);
        }
        known
    }

    /// Adds what a process has used to its program.
    fn close(&mut self, process: u32) {
        let Some(live) = self.live.remove(&process) else { return };
        let program = &mut self.programs[live.program];
        program.used_seconds += (live.now.0 - live.before.0).max(0.0);
        if let Some(now) = live.now.1 {
            let before = live.before.1.unwrap_or_default();
            let sum = program.bytes.get_or_insert_default();
            sum.read_bytes += now.read_bytes.saturating_sub(before.read_bytes);
            sum.written_bytes += now.written_bytes.saturating_sub(before.written_bytes);
        }
    }

    fn see_pipes(&mut self, there: &[u32]) {
        let mut found: BTreeMap<Number, Holders<usize>> = BTreeMap::new();
        for &process in there {
            let Some(live) = self.live.get(&process) else { continue };
            for end in ends(process) {
                found.entry(end.pipe).or_default().add(live.program, process, end);
            }
        }
        for between in &mut self.pipes {
            between.is_open = false;
        }
        for (number, ends) in found {
            let Some((sides, process, end)) = ends.sides() else { continue };
            let known = self.pipes.iter().position(|between| between.number == number);
            let at = match known {
                Some(at) => at,
                None if self.pipes.len() < PIPES_MAX => {
                    let (sides, sums) = (None, Sums::default());
                    self.pipes.push(Between { pipe: None, number, sides, is_open: true, sums });
                    self.pipes.len() - 1
                }
                None => continue,
            };
            let between = &mut self.pipes[at];
            (between.sides, between.is_open) = (Some(sides), true);
            // The process through which it was to be opened may have ended before that.
            between.pipe = between.pipe.take().or_else(|| Pipe::of(process, end).ok());
        }
    }

    /// What was seen: programs in the order in which they began, and the pipes between them.
    pub fn finish(mut self) -> (Vec<ProgramUse>, Vec<PipeUse>) {
        let all: Vec<u32> = self.live.keys().copied().collect();
        all.iter().for_each(|process| self.close(*process));
        let mut names: Vec<String> = Vec::new();
        for program in &self.programs {
            let same = |known: &&String| {
                **known == program.name || known.starts_with(&format!("{} ", program.name))
            };
            let before = names.iter().filter(same).count();
            names.push(match before {
                0 => program.name.clone(),
                before => format!("{} {}", program.name, before + 1),
            });
        }
        let at_pipe = |at: usize| {
            let sides = self.pipes.iter().filter_map(|between| between.sides);
            sides.into_iter().any(|(from, to)| from == at || to == at)
        };
        let is_told = |at: usize, program: &Program| match program.used_seconds {
            used if used >= USED_SECONDS_MIN => true,
            _ if program.is_shell => false,
            _ => program.seen >= SEEN_MIN || at_pipe(at),
        };
        let told = self.programs.iter().enumerate().filter(|(at, program)| is_told(*at, program));
        let programs = told.map(|(at, program)| ProgramUse {
            name: names[at].clone(),
            processes: program.processes,
            processor_seconds: program.used_seconds,
            read_bytes: program.bytes.map(|bytes| bytes.read_bytes),
            written_bytes: program.bytes.map(|bytes| bytes.written_bytes),
        });
        (programs.collect(), self.pipe_uses(&names))
    }

    fn pipe_uses(&self, names: &[String]) -> Vec<PipeUse> {
        let mut by_sides: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
        for between in &self.pipes {
            let Some(sides) = between.sides else { continue };
            let sums = by_sides.entry(sides).or_default();
            let own = between.sums;
            sums.looks += own.looks;
            sums.fill += own.fill;
            sums.full += own.full;
            sums.empty += own.empty;
            sums.capacity_bytes = sums.capacity_bytes.max(own.capacity_bytes);
        }
        let one = |((from, to), sums): ((usize, usize), Sums)| {
            let share = |part: f64| (sums.looks > 0).then(|| 100.0 * part / sums.looks as f64);
            PipeUse {
                from: names[from].clone(),
                to: names[to].clone(),
                capacity_bytes: sums.capacity_bytes,
                looks: sums.looks,
                fill_percent: share(sums.fill),
                full_percent: share(sums.full as f64),
                empty_percent: share(sums.empty as f64),
            }
        };
        by_sides.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The process through which it is opened may end just then, as a loop of short programs does.
    #[test]
    fn a_pipe_that_could_not_be_opened_is_tried_again() {
        let command = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = command.unwrap();
        let both = [std::process::id(), child.id()];
        let mut watch = CommandWatch::default();
        both.iter().for_each(|process| watch.see(*process, 0));
        let reader = watch.live[&child.id()].program;
        let is_open = |watch: &CommandWatch| {
            let mut own = watch.pipes.iter().filter(|it| it.sides.is_some_and(|it| it.1 == reader));
            own.any(|between| between.pipe.is_some())
        };
        watch.see_pipes(&both);
        assert!(is_open(&watch));
        watch.pipes.iter_mut().for_each(|between| between.pipe = None);
        watch.see_pipes(&both);
        assert!(is_open(&watch));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
