//! A timing model of programs joined by pipes, on few processors, with a tape at the end.
//!
//! Each program reads from its pipe, at most a given amount at a time, works on it, collects its
//! output until it has a block, and writes the block: into the next pipe as room comes free, or to
//! the tape. While it waits it does nothing else, which is why pipelines have buffers. Programs
//! that compute share the processors evenly. What the kernel reads ahead, or writes behind, is a
//! program of its own that waits for its disk: its pipe holds what is under way.
//!
//! Not here: several threads in a program, and the cost of a context switch.

use super::program::Ratio;
use super::tape::{Filemark, TapeModel};
use crate::ModelError;

/// A program of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Capacity of the pipe in front of it, or of what else holds its input; the first program
    /// reads the source, which has none.
    pub input_bytes: u64,
    /// Most bytes of one read.
    pub read_bytes: u64,
    /// Bytes of one write; the program collects that many first.
    pub write_bytes: u64,
    /// Processor time for each MiB that it reads.
    pub processor_ns_per_mib: u64,
    /// Time for each MiB that it waits for something else, for example its disk.
    pub wait_ns_per_mib: u64,
    /// Its output as a function of its input.
    pub output: Output,
}

/// How a program changes its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The same number of bytes.
    Same,
    /// Less output: this many bytes for 1,000 bytes of input, in turn, like files of two kinds that
    /// alternate.
    Alternating {
        /// Bytes of one kind before the other kind follows.
        period_bytes: u64,
        /// Bytes out for 1,000 bytes in, of each kind.
        permille: [u64; 2],
    },
}

impl Output {
    /// Bytes of output for the first `input_bytes` of input.
    fn of(self, input_bytes: u64) -> u64 {
        let Output::Alternating { period_bytes, permille } = self else { return input_bytes };
        let period = period_bytes.max(1);
        let rounds = input_bytes / (2 * period);
        let rest = input_bytes % (2 * period);
        let first = u128::from(rounds * period + rest.min(period));
        let second = u128::from(rounds * period + rest.saturating_sub(period));
        let out = first * u128::from(permille[0]) + second * u128::from(permille[1]);
        u64::try_from(out / 1000).unwrap_or(u64::MAX)
    }
}

/// What all programs share.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    pub processors: u64,
    /// What the drive makes of the bytes that it gets.
    pub drive_ratio: Ratio,
}

/// The result of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineRun {
    /// From the start to the closing filemark.
    pub elapsed_ns: u64,
    /// Processor time of all programs.
    pub processor_ns: u64,
    /// Bytes that left the last program.
    pub output_bytes: u64,
}

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Reading,
    Computing { left_ns: u64, then_wait_ns: u64 },
    Waiting { until_ns: u64 },
    Writing { left_bytes: u64 },
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    program: Program,
    doing: Doing,
    read_bytes: u64,
    /// Output so far, written or not.
    made_bytes: u64,
    written_bytes: u64,
}

/// Runs `programs` over `total_bytes` of input. Without a tape the end of the pipeline accepts
/// everything at once.
pub fn run(
    programs: &[Program],
    surroundings: Surroundings,
    tape: Option<&mut TapeModel>,
    total_bytes: u64,
) -> Result<PipelineRun, ModelError> {
    let process = |program: &Program| Process {
        program: *program,
        doing: Doing::Reading,
        read_bytes: 0,
        made_bytes: 0,
        written_bytes: 0,
    };
    let now_ns = tape.as_ref().map_or(0, |tape| tape.now_ns());
    let mut chain = Chain {
        processes: programs.iter().map(process).collect(),
        pipes: vec![0; programs.len()],
        source_left: total_bytes,
        surroundings,
        tape,
        now_ns,
        processor_ns: 0,
    };
    while chain.processes.iter().any(|process| process.doing != Doing::Ended) {
        // Every program must get its turn, so this must not stop early.
        let mut moved = false;
        for at in 0..chain.processes.len() {
            moved |= chain.step(at);
        }
        if !moved {
            chain.pass_time()?;
        }
    }
    let end_ns = match chain.tape.as_mut() {
        Some(tape) => tape.filemark(chain.now_ns, Filemark::Synchronising),
        None => chain.now_ns,
    };
    let output_bytes = chain.processes.last().map_or(0, |process| process.written_bytes);
    let elapsed_ns = end_ns - now_ns;
    Ok(PipelineRun { elapsed_ns, processor_ns: chain.processor_ns, output_bytes })
}

struct Chain<'a> {
    processes: Vec<Process>,
    /// Bytes in the pipe before each process; the first one is the source.
    pipes: Vec<u64>,
    source_left: u64,
    surroundings: Surroundings,
    tape: Option<&'a mut TapeModel>,
    now_ns: u64,
    processor_ns: u64,
}

impl Chain<'_> {
    /// Does everything a process can do without time passing. Returns whether it did anything.
    fn step(&mut self, at: usize) -> bool {
        match self.processes[at].doing {
            Doing::Reading => self.read(at),
            Doing::Writing { left_bytes } => self.write(at, left_bytes),
            Doing::Waiting { until_ns } if until_ns <= self.now_ns => {
                self.go_on(at);
                true
            }
            Doing::Computing { left_ns: 0, then_wait_ns } => {
                let until_ns = self.now_ns + then_wait_ns;
                self.processes[at].doing = Doing::Waiting { until_ns };
                true
            }
            _ => false,
        }
    }

    fn read(&mut self, at: usize) -> bool {
        let is_last_input = at == 0 || self.processes[at - 1].doing == Doing::Ended;
        let available = if at == 0 { self.source_left } else { self.pipes[at] };
        let process = &mut self.processes[at];
        let bytes = process.program.read_bytes.min(available);
        if bytes == 0 {
            let pending = process.made_bytes - process.written_bytes;
            if is_last_input {
                process.doing = match pending {
                    0 => Doing::Ended,
                    left_bytes => Doing::Writing { left_bytes },
                };
            }
            return is_last_input;
        }
        match at {
            0 => self.source_left -= bytes,
            _ => self.pipes[at] -= bytes,
        }
        process.read_bytes += bytes;
        process.made_bytes = process.program.output.of(process.read_bytes);
        let left_ns = scaled(bytes, process.program.processor_ns_per_mib);
        let then_wait_ns = scaled(bytes, process.program.wait_ns_per_mib);
        process.doing = Doing::Computing { left_ns, then_wait_ns };
        self.processor_ns += left_ns;
        true
    }

    /// Writes if there is a block, otherwise reads.
    fn go_on(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let pending = process.made_bytes - process.written_bytes;
        process.doing = if pending >= process.program.write_bytes.max(1) {
            Doing::Writing { left_bytes: process.program.write_bytes.max(1) }
        } else {
            Doing::Reading
        };
    }

    fn write(&mut self, at: usize, left_bytes: u64) -> bool {
        if left_bytes == 0 {
            self.go_on(at);
            return true;
        }
        if at + 1 < self.processes.len() {
            let room = self.processes[at + 1].program.input_bytes - self.pipes[at + 1];
            let bytes = left_bytes.min(room);
            self.pipes[at + 1] += bytes;
            self.processes[at].written_bytes += bytes;
            self.processes[at].doing = Doing::Writing { left_bytes: left_bytes - bytes };
            return bytes > 0;
        }
        self.processes[at].written_bytes += left_bytes;
        let medium_bytes = self.surroundings.drive_ratio.compressed(left_bytes);
        let until_ns = match self.tape.as_mut() {
            Some(tape) => tape.write(self.now_ns, left_bytes, medium_bytes).at_ns,
            None => self.now_ns,
        };
        self.processes[at].doing = Doing::Waiting { until_ns };
        true
    }

    /// Moves to the next moment at which something ends.
    fn pass_time(&mut self) -> Result<(), ModelError> {
        let computing = |process: &&mut Process| matches!(process.doing, Doing::Computing { .. });
        let sharing = self.processes.iter_mut().filter(computing).count() as u64;
        let processors = self.surroundings.processors.max(1);
        let (share, of) = (processors.min(sharing.max(1)), sharing.max(1));
        let ends = self.processes.iter().filter_map(|process| match process.doing {
            Doing::Computing { left_ns, .. } => Some((left_ns * of).div_ceil(share)),
            Doing::Waiting { until_ns } => Some(until_ns - self.now_ns),
            _ => None,
        });
        let passed_ns = ends.min().ok_or(ModelError::Stuck { at_ns: self.now_ns })?;
        self.now_ns += passed_ns;
        for process in &mut self.processes {
            if let Doing::Computing { left_ns, .. } = &mut process.doing {
                *left_ns = left_ns.saturating_sub((passed_ns * share).div_ceil(of));
            }
        }
        Ok(())
    }
}

fn scaled(bytes: u64, ns_per_mib: u64) -> u64 {
    let ns = u128::from(bytes) * u128::from(ns_per_mib) / u128::from(MIB);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
