//! What many hosts found or did together, as answers: of `takeup-mpi`.

use many::set::{SetAnswer, SetRead};
use many::verdict::{HostsVerdict, of_the_fastest, verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::bench::{ExperimentAnswer, ExperimentDone};

/// An experiment on many hosts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ManyBenchAnswer {
    /// `many bench read`, `many bench disk` or `many bench run`.
    pub command: String,
    /// Which host is slow, and whether what they use is shared.
    pub verdict: HostsVerdict,
    /// What differs between the hosts and may matter.
    pub differences: Vec<String>,
    /// The latest run of all hosts of the fastest combination.
    pub run: Option<TogetherRun>,
    /// What was measured, with the number of hosts as a factor.
    pub experiment: ExperimentAnswer,
}

/// How a run of all hosts went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TogetherRun {
    /// Bytes per second in the window in which all were active.
    pub bytes_per_second: f64,
    /// Length of that window.
    pub window_seconds: f64,
    /// From the first start to the last end.
    pub whole_seconds: f64,
    /// Rate from the first start to the last end.
    pub whole_bytes_per_second: f64,
    /// Rate from the first start until the first host was done.
    pub first_done_bytes_per_second: f64,
    /// How far the last start was behind the agreed instant.
    pub start_skew_seconds: f64,
    /// How well the clocks of the hosts are known.
    pub clock_doubt_seconds: f64,
}

impl Answer for ManyBenchAnswer {
    const COMMAND: &'static str = "many bench";

    fn command(&self) -> &str {
        &self.command
    }
}

impl ManyBenchAnswer {
    /// Of an experiment that has ended, on so many ranks.
    pub fn of(done: &ExperimentDone, ranks: usize, differences: Vec<String>) -> ManyBenchAnswer {
        let runs = &done.experiment.runs;
        let experiment = done.answer();
        ManyBenchAnswer {
            command: format!("many {}", experiment.command),
            verdict: verdict(runs, ranks),
            differences,
            run: fastest(done, ranks),
            experiment,
        }
    }
}

/// The latest run of all hosts, of the combination with the highest rate.
fn fastest(done: &ExperimentDone, ranks: usize) -> Option<TogetherRun> {
    let runs = of_the_fastest(&done.experiment.runs, ranks);
    let run = runs.into_iter().rev().find(|run| run.hosts.len() == ranks)?;
    let measure = |name: &str| run.measures.get(name).copied().unwrap_or_default();
    Some(TogetherRun {
        bytes_per_second: run.bytes_per_second()?,
        window_seconds: measure("hosts_window_seconds"),
        whole_seconds: measure("hosts_whole_seconds"),
        whole_bytes_per_second: measure("hosts_whole_bytes_per_second"),
        first_done_bytes_per_second: measure("hosts_first_done_bytes_per_second"),
        start_skew_seconds: measure("hosts_start_skew_seconds"),
        clock_doubt_seconds: measure("hosts_clock_doubt_seconds"),
    })
}

/// A tree backed up, verified or restored by many hosts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ManySetAnswer {
    /// `many backup`, `many verify` or `many restore`.
    pub command: String,
    /// What was done.
    pub set: SetAnswer,
    /// Shards that are damaged or could not be read, in words.
    pub damaged: Vec<String>,
}

impl Answer for ManySetAnswer {
    const COMMAND: &'static str = "many backup";

    fn command(&self) -> &str {
        &self.command
    }
}

impl ManySetAnswer {
    /// Of a set that was written.
    pub fn written(set: SetAnswer) -> ManySetAnswer {
        ManySetAnswer { command: "many backup".to_owned(), set, damaged: Vec::new() }
    }

    /// Of a set that was read; `command` is `verify` or `restore`.
    pub fn read(command: &str, read: SetRead) -> ManySetAnswer {
        let command = format!("many {command}");
        ManySetAnswer { command, set: read.answer, damaged: read.damaged }
    }
}
