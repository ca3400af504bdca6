//! The operations of a run: reads, writes, discards and synchronising calls, of each section of a
//! job.
//!
//! A single rate for all of them hides what matters, such as reads that wait for writes, or one
//! fsync in a hundred that takes a second. So each kind has its own row and its own latencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use statistics::histogram::Histogram;

/// A kind of operation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    #[default]
    Read,
    Write,
    /// Discards.
    Trim,
    /// fsync(2) and similar calls.
    Fsync,
}

impl OperationKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Write => "write",
            OperationKind::Trim => "trim",
            OperationKind::Fsync => "fsync",
        }
    }

    /// The prefix of the device's counters of this kind in the measures of a run.
    pub fn device_prefix(self) -> &'static str {
        match self {
            OperationKind::Read => "device_read_",
            OperationKind::Write => "device_write_",
            OperationKind::Trim => "device_discard_",
            OperationKind::Fsync => "device_flush_",
        }
    }
}

/// Operations of one kind, of one section of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operations {
    /// Section of the job file, if it has several; otherwise empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub section: String,
    pub operation: OperationKind,
    /// Bytes moved; 0 for synchronising calls.
    pub bytes: u64,
    /// Number of operations.
    pub requests: u64,
    /// Time of these operations.
    pub seconds: f64,
    /// Time from submission to completion; for synchronising calls the whole call.
    pub latency: Histogram,
    /// Mean time until a request was accepted, for asynchronous engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_mean_ns: Option<f64>,
    /// 99 % quantile of these times, if fio reports their distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_p99_ns: Option<u64>,
}
