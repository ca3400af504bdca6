//! A pipeline of other programs: what each of its stages does, and which of them is the limit.
//!
//! [`Sampler`] looks at the processes while they run, [`Look`] is what it saw, and [`judge`] says
//! what that means. A stage is what the shell started between two pipes: a program with all that
//! it starts itself. Its time is divided as that of our own stages is: it works, it is starved
//! (its pipe is empty), it is blocked (the next one is full), and, since other programs read and
//! write disks and tapes by themselves, it waits for a device, or for anything else.
//!
//! Looks are samples; how long a program was on a core and waited for one is what the kernel
//! counted. Looking takes less than a hundredth of a core ([`COST_SHARE`], and [`COST_SECONDS`] to
//! begin with): what takes longer is done less often.
//!
//! Not here: running the programs, which is the command's.
//!
//! # Map
//!
//! - `sampler`: looks at all stages while they run.
//! - `followed`: one stage.
//! - `doing`: what a thread waits for, by its system call.
//! - `missed`: stages that ended before the first look.
//! - [`pace`]: rates that programs were told to hold.
//! - [`judge`]: which stage is the limit, what to change, what it brings.
//! - [`line`](mod@line): a command line, changed as it is typed.
//! - [`rules`]: the rules of the judge.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod doing;
mod followed;
pub mod judge;
pub mod line;
mod missed;
pub mod pace;
pub mod rules;
mod sampler;

use serde::Serialize;

pub use sampler::{COST_SECONDS, COST_SHARE, Sampler, joined};

/// What was seen of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// From the start of the first stage to the end of the last one, as far as it was looked at.
    pub seconds: f64,
    /// Stages in the order of the data.
    pub stages: Vec<Stage>,
    /// The pipes between them.
    pub pipes: Vec<Pipe>,
    /// From the beginning of the first of these stages to the end of the last: what else the line
    /// does before and behind the pipeline is not in it.
    pub piped_seconds: f64,
    /// How often it was looked at.
    pub looks: u64,
    /// Processor time that looking took.
    pub looking_seconds: f64,
    /// Cores that there were.
    pub cores: usize,
    /// How many of them other programs had on average.
    pub others_cores: f64,
    /// The tape drive that the last stage writes to, where its rate is known.
    pub drive: Option<Drive>,
    /// Programs of [`judge::PROPOSED`] that are not installed here.
    pub absent: Vec<&'static str>,
}

/// A drive that a pipeline ends in. Its own buffer hides from programs how long it is busy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drive {
    /// As the programs name it.
    pub name: String,
    /// What it puts on its medium at most, in bytes per second.
    pub highest_bytes_per_second: f64,
    /// Least rate at which it writes and keeps moving; with less it stops. `None` where not known.
    pub lowest_bytes_per_second: Option<f64>,
    /// What it takes to go back behind a stop and to start again, in seconds.
    pub stop_seconds: Option<f64>,
    /// What its buffer holds when it starts, in bytes; `None` where not known.
    pub start_bytes: Option<f64>,
    /// Whether it compresses what it is given, by what is known of it.
    pub compresses: bool,
    /// What a write costs beside its bytes, in seconds; `None` where that is not known.
    pub command_seconds: Option<f64>,
    /// What its interface takes at most, in bytes per second.
    pub interface_bytes_per_second: Option<f64>,
    /// What a filemark takes once everything is on the medium, in seconds.
    pub synchronise_seconds: Option<f64>,
}

/// A stage. Times are in seconds; those of the first five kinds add up to how long it was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stage {
    /// As it was started.
    pub command: String,
    /// Its first process.
    pub pid: u32,
    /// Most threads of it at once.
    pub threads: usize,
    /// Processor time of all its threads.
    pub processor_seconds: f64,
    /// What of that the kernel used for its calls.
    pub system_seconds: f64,
    /// What one of its threads was on a core and waited for one at most, of several; `None` of one.
    pub busiest_thread_seconds: Option<f64>,
    /// On a core or waiting for one, with any of its threads.
    pub working_seconds: f64,
    /// Its input was empty.
    pub starved_seconds: f64,
    /// Its output was full.
    pub blocked_seconds: f64,
    /// It waited for a file or a device.
    pub device_seconds: f64,
    /// What of that was writing.
    pub device_write_seconds: f64,
    /// What of that it waited until a file had everything: in fsync(2), close(2) and its end.
    pub flush_seconds: f64,
    /// What of its work and its waiting for devices and anything else came after every stage that
    /// writes its input had ended. It overlaps with nothing that those stages do.
    pub tail_seconds: f64,
    /// It waited for anything else.
    pub other_seconds: f64,
    /// What of that it waited for a time to come, in a way that may make up for other waiting.
    pub clock_seconds: f64,
    /// The rate that a program of it was told to hold, in bytes per second.
    pub declared_bytes_per_second: Option<f64>,
    /// That program.
    pub declared_by: Option<String>,
    /// How long it was there.
    pub lifetime_seconds: f64,
    /// What of its work was waiting for a core that another program had.
    pub core_wait_seconds: f64,
    /// What of its work was waiting because a quota kept it from the cores.
    pub throttled_seconds: f64,
    /// Bytes that its calls read; `None` where they may have moved some that are not counted.
    pub bytes_in: Option<u64>,
    /// Bytes that its calls wrote.
    pub bytes_out: Option<u64>,
    /// Why there are no bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_unknown_because: Option<&'static str>,
    /// Mean size of a call that reads.
    pub read_bytes_mean: Option<f64>,
    /// Calls that write.
    pub write_calls: u64,
    /// Mean size of a call that writes.
    pub write_bytes_mean: Option<f64>,
    /// What it waited for, but for pipes: the most first, three at most.
    pub waits_for: Vec<Wait>,
    /// The program among those that it has started that worked most, if it was not the stage's own.
    pub works_most: Option<String>,
    /// What it was started with, word by word.
    #[serde(skip)]
    pub arguments: Vec<String>,
    /// Whether it could only be seen from its pipes.
    pub is_hidden: bool,
    /// Whether it had ended before it could be looked at: nothing is known of it but its words.
    pub is_missed: bool,
}

/// For how long a stage waited for something.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wait {
    /// What.
    pub what: String,
    /// How long.
    pub seconds: f64,
}

impl Stage {
    /// How long it was what the others waited for, if they waited: neither starved nor blocked.
    pub fn busy_seconds(&self) -> f64 {
        self.working_seconds + self.device_seconds + self.other_seconds
    }

    /// The same without what it does at its end, which overlaps with nothing.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pipe {
    /// Who writes.
    pub from: usize,
    /// Who reads.
    pub to: usize,
    /// What it holds.
    pub capacity_bytes: u64,
    /// Share of the time in which it was full; `None` where it may not be looked at.
    pub full_share: Option<f64>,
    /// Share of the time in which it was empty.
    pub empty_share: Option<f64>,
}
