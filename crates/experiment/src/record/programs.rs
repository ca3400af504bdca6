//! Resources of the programs of a command, and how full the pipes between them were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources of a program of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramUse {
    /// Its name; a second program of that name at the same time is `dd 2`.
    pub name: String,
    /// Number of processes that ran it, one after the other.
    pub processes: u64,
    /// Processor time, user and system, in steps of 10 ms.
    pub processor_seconds: f64,
    /// Bytes that its calls read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that its calls wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// How full a pipe between two programs was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PipeUse {
    /// The program that writes.
    pub from: String,
    /// The program that reads.
    pub to: String,
    /// The size of the pipe.
    pub capacity_bytes: u64,
    /// Number of looks at it while both programs existed.
    pub looks: u64,
    /// Mean fill; `None` if Takeup may not look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<f64>,
    /// Share of the looks in which it was full: the writer waits for the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_percent: Option<f64>,
    /// Share of the looks in which it was empty: the reader waits for the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_percent: Option<f64>,
}
