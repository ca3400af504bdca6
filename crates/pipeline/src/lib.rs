//! A pipeline of other programs: what each of its stages does, and which is the bottleneck.
//!
//! [`Sampler`] samples the processes while they run, [`Look`] holds the result, and [`judge`] names
//! the bottleneck. A stage is what the shell started between two pipes: a program with all programs
//! that it starts itself. Its time has the same kinds as the time of Takeup's own stages: the stage
//! works, is starved (its input pipe is empty) or blocked (its output pipe is full). Since other
//! programs read and write disks and tapes themselves, it can also wait for a device, or for
//! anything else.
//!
//! The kinds come from samples; the time on a core and the wait for one come from the kernel's
//! counters. Sampling takes less than a hundredth of a core ([`COST_SHARE`], plus [`COST_SECONDS`]
//! at the start): samples that cost more are taken less often.
//!
//! The command runs the programs, not this crate.
//!
//! # Map
//!
//! - `sampler`: samples all stages while they run.
//! - `followed`: one stage.
//! - `doing`: what a thread waits for, by its system call.
//! - `missed`: stages that ended before the first look.
//! - [`pace`]: rate limits among the options of programs.
//! - [`judge`]: which stage is the bottleneck, what to change, what that saves.
//! - [`line`](mod@line): reads and changes a command line as you type it.
//! - [`rules`]: the rules of the judgement.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod doing;
mod followed;
pub mod judge;
pub mod line;
mod missed;
pub mod pace;
pub mod rules;
mod sampler;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use sampler::{COST_SECONDS, COST_SHARE, Sampler, joined};

/// A measured pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// From the start of the first stage to the end of the last one, as far as it was sampled.
    pub seconds: f64,
    /// Stages in the order of the data.
    pub stages: Vec<Stage>,
    /// The pipes between them.
    pub pipes: Vec<Pipe>,
    /// From the start of the first of these stages to the end of the last, without other commands
    /// of the line before and after the pipeline.
    pub piped_seconds: f64,
    /// Number of samples.
    pub looks: u64,
    /// Processor time that sampling took.
    pub looking_seconds: f64,
    /// Cores of the machine.
    pub cores: usize,
    /// Cores that other programs used on average.
    pub others_cores: f64,
    /// The tape drive that the last stage writes to, where its rate is known.
    pub drive: Option<Drive>,
    /// Programs of [`judge::PROPOSED`] that are not installed.
    pub absent: Vec<&'static str>,
}

/// The drive that a pipeline writes to. Its own buffer hides from programs how long it is busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drive {
    /// The name that the programs use.
    pub name: String,
    /// Highest rate of the medium, in bytes per second.
    pub highest_bytes_per_second: f64,
    /// Lowest rate at which the tape keeps moving; `None` where not known.
    pub lowest_bytes_per_second: Option<f64>,
    /// Time to wind back after a stop and to start again, in seconds.
    pub stop_seconds: Option<f64>,
    /// Bytes in its buffer when it starts; `None` where not known.
    pub start_bytes: Option<f64>,
    /// Whether it compresses its data, as far as is known.
    pub compresses: bool,
    /// Time of a write beside its bytes, in seconds; `None` where that is not known.
    pub command_seconds: Option<f64>,
    /// Highest rate of its interface, in bytes per second.
    pub interface_bytes_per_second: Option<f64>,
    /// Time of a filemark once all data are on the medium, in seconds.
    pub synchronise_seconds: Option<f64>,
}

/// A stage. Times are in seconds; working, starved, blocked, device and other add up to its
/// lifetime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its command line.
    pub command: String,
    /// Its first process.
    pub pid: u32,
    /// The most threads that it had at once.
    pub threads: usize,
    /// Processor time of all its threads.
    pub processor_seconds: f64,
    /// The part of it that the kernel used for system calls.
    pub system_seconds: f64,
    /// The longest time of one thread on a core or waiting for one; `None` with one thread.
    pub busiest_thread_seconds: Option<f64>,
    /// Any of its threads was on a core or waited for one.
    pub working_seconds: f64,
    /// Its input was empty.
    pub starved_seconds: f64,
    /// Its output was full.
    pub blocked_seconds: f64,
    /// It waited for a file or a device.
    pub device_seconds: f64,
    /// The part of it that was writing.
    pub device_write_seconds: f64,
    /// The part of it that was waiting until a file had everything: fsync(2), close(2), exit.
    pub flush_seconds: f64,
    /// The part of its working, device and other time after every stage that writes its input had
    /// ended. It overlaps with nothing that those stages do.
    pub tail_seconds: f64,
    /// It waited for anything else.
    pub other_seconds: f64,
    /// The part of it that was waiting for the clock, where other waits may shorten it.
    pub clock_seconds: f64,
    /// The rate limit among the options of one of its programs, in bytes per second.
    pub declared_bytes_per_second: Option<f64>,
    /// The program with that rate limit.
    pub declared_by: Option<String>,
    /// Time from its start to its end.
    pub lifetime_seconds: f64,
    /// The part of its working time in which it waited for a core that another program had.
    pub core_wait_seconds: f64,
    /// The part of its working time in which a CPU quota held it back.
    pub throttled_seconds: f64,
    /// Bytes that its calls read; `None` where some of them may not be counted.
    pub bytes_in: Option<u64>,
    /// Bytes that its calls wrote.
    pub bytes_out: Option<u64>,
    /// Why its bytes are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_unknown_because: Option<Cow<'static, str>>,
    /// Mean bytes of a read call.
    pub read_bytes_mean: Option<f64>,
    pub write_calls: u64,
    /// Mean bytes of a write call.
    pub write_bytes_mean: Option<f64>,
    /// What it waited for other than pipes: the longest wait first, three at most.
    pub waits_for: Vec<Wait>,
    /// The started program that worked for half of the working time or more, if there is one.
    pub works_most: Option<String>,
    /// Its command line, word by word.
    #[serde(skip)]
    pub arguments: Vec<String>,
    /// Whether only its pipes could be sampled.
    pub is_hidden: bool,
    /// Whether it ended before the first sample: only its command line is known.
    pub is_missed: bool,
}

/// A wait of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The file, device or other reason that it waited for.
    pub what: String,
    /// How long it waited.
    pub seconds: f64,
}

impl Stage {
    /// Time in which it was neither starved nor blocked: the others may have waited for it.
    pub fn busy_seconds(&self) -> f64 {
        self.working_seconds + self.device_seconds + self.other_seconds
    }

    /// [`Stage::busy_seconds`] without the flush at its end, which overlaps with nothing.
    pub fn before_end_seconds(&self) -> f64 {
        (self.busy_seconds() - self.flush_seconds).max(0.0)
    }

    /// The program's name, without its folder.
    pub fn program(&self) -> &str {
        let first = self.arguments.first().map_or(self.command.as_str(), String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }
}

/// A pipe between two stages, which are numbers in [`Look::stages`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pipe {
    /// The stage that writes.
    pub from: usize,
    /// The stage that reads.
    pub to: usize,
    pub capacity_bytes: u64,
    /// Share of the time in which it was full; `None` where Takeup may not open it.
    pub full_share: Option<f64>,
    /// Share of the time in which it was empty.
    pub empty_share: Option<f64>,
}
