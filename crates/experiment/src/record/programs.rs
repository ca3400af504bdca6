//! What the programs of a command used, and how full the pipes between them were.

use serde::{Deserialize, Serialize};

/// What a program of a command used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramUse {
    /// Its name; the second of that name at the same time is `dd 2`.
    pub name: String,
    /// Processes that ran it, one after the other.
    pub processes: u64,
    /// Processor time, user and system, in steps of a hundredth.
    pub processor_seconds: f64,
    /// Bytes that its calls read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that its calls wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// How full a pipe between two programs was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PipeUse {
    /// Who writes.
    pub from: String,
    /// Who reads.
    pub to: String,
    /// What it holds.
    pub capacity_bytes: u64,
    /// How often it was looked at while both were there.
    pub looks: u64,
    /// How full it was on average; `None` where it may not be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<f64>,
    /// Share of the looks in which it was full: the reader is what the writer waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_percent: Option<f64>,
    /// Share of the looks in which it was empty: the writer is what the reader waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_percent: Option<f64>,
}
