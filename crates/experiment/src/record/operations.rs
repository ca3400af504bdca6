//! What was done in a run, apart: reads, writes, discards and synchronising calls, of each section
//! of a job.
//!
//! One rate for all of them hides what matters: that reads wait behind writes, or that a hundredth
//! of the fsyncs takes a second. So each has its own row, with its own latencies.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use statistics::histogram::Histogram;

/// A kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
    /// fsync(2) and its kin.
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

    /// What the device's counters of it begin with in the measures of a run.
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
    /// Section of the job file, where that has several; empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// What was done.
    pub operation: OperationKind,
    /// Bytes moved; 0 of synchronising calls.
    pub bytes: u64,
    /// How many there were.
    pub requests: u64,
    /// For how long.
    pub seconds: f64,
    /// From submission to completion; of synchronising calls all of their time.
    pub latency: Histogram,
    /// Mean of the time until a request was accepted, of engines that do not wait there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_mean_ns: Option<f64>,
    /// What 99 % of these times did not exceed, where fio tells their distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_p99_ns: Option<u64>,
}

impl Operations {
    /// Its numbers as an object, the latencies as quantiles.
    pub fn document(&self) -> Value {
        let seconds = self.seconds.max(1e-9);
        json!({
            "section": self.section,
            "operation": self.operation,
            "bytes": self.bytes,
            "requests": self.requests,
            "seconds": self.seconds,
            "bytes_per_second": self.bytes as f64 / seconds,
            "requests_per_second": self.requests as f64 / seconds,
            "latency_p50_ns": self.latency.quantile_ns(0.5),
            "latency_p99_ns": self.latency.quantile_ns(0.99),
            "latency_p99_9_ns": self.latency.quantile_ns(0.999),
            "submission_mean_ns": self.submission_mean_ns,
            "submission_p99_ns": self.submission_p99_ns,
        })
    }
}
