//! What fio did, apart: reads, writes, discards and synchronising calls, of each section of a job.
//!
//! One rate for all of them hides what matters: that reads wait behind writes, or that a hundredth
//! of the fsyncs takes a second. So each has its own row, with its own latencies.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fio::{Direction, FioRun, Section};
use crate::histogram::Histogram;
use crate::observed::Measures;

/// A kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
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

impl Operation {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
            Operation::Fsync => "fsync",
        }
    }

    /// What the device's counters of it begin with in the measures of a run.
    pub fn device_prefix(self) -> &'static str {
        match self {
            Operation::Read => "device_read_",
            Operation::Write => "device_write_",
            Operation::Trim => "device_discard_",
            Operation::Fsync => "device_flush_",
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
    pub operation: Operation,
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
    /// All that a run of fio did.
    pub fn of(run: &FioRun) -> Vec<Operations> {
        let named = run.sections.len() > 1;
        let of_section = |section: &Section| {
            let name = if named { section.name.as_str() } else { "" };
            [
                (Operation::Read, &section.read),
                (Operation::Write, &section.write),
                (Operation::Trim, &section.trim),
                (Operation::Fsync, &section.sync),
            ]
            .into_iter()
            .filter(|(_, direction)| direction.requests > 0)
            .map(|(operation, direction)| Operations::one(name, operation, direction))
            .collect::<Vec<Operations>>()
        };
        run.sections.iter().flat_map(of_section).collect()
    }

    fn one(section: &str, operation: Operation, direction: &Direction) -> Operations {
        Operations {
            section: section.to_owned(),
            operation,
            bytes: direction.bytes,
            requests: direction.requests,
            seconds: direction.seconds,
            latency: direction.latency.clone(),
            submission_mean_ns: direction.submission_mean_ns(),
            submission_p99_ns: direction.submission.quantile_ns(0.99),
        }
    }

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

/// What fio told of a run in numbers by name: all directions together, each by itself, and
/// synchronising calls. Times are those of fio(1): `clat` from submission to completion, `slat`
/// until a request was accepted.
pub fn measures(run: &FioRun) -> Measures {
    let mut measures = Measures::new();
    let seconds = run.seconds.max(1e-9);
    let mut put = |name: String, value: Option<f64>| {
        measures.extend(value.map(|value| (name, value)));
    };
    let mut all = Direction::default();
    run.directions().into_iter().for_each(|direction| all.merge(direction));
    let named = [("", &all), ("read_", &run.read), ("write_", &run.write), ("trim_", &run.trim)];
    for (prefix, direction) in named.into_iter().filter(|(_, one)| one.requests > 0) {
        put(format!("fio_{prefix}iops"), Some(direction.requests as f64 / seconds));
        put(format!("fio_{prefix}clat_mean_ns"), direction.latency_mean_ns());
        put(format!("fio_{prefix}slat_mean_ns"), direction.submission_mean_ns());
        for (name, share) in QUANTILES {
            let quantile = |times: &Histogram| times.quantile_ns(share).map(|ns| ns as f64);
            put(format!("fio_{prefix}clat_{name}_ns"), quantile(&direction.latency));
            put(format!("fio_{prefix}slat_{name}_ns"), quantile(&direction.submission));
        }
        if !prefix.is_empty() {
            let rate = direction.bytes as f64 / seconds;
            put(format!("fio_{prefix}bytes_per_second"), Some(rate));
        }
    }
    if run.sync.requests > 0 {
        put("fio_fsyncs_per_second".to_owned(), Some(run.sync.requests as f64 / seconds));
        put("fio_fsync_mean_ns".to_owned(), run.sync.latency_mean_ns());
        for (name, share) in QUANTILES {
            let quantile = run.sync.latency.quantile_ns(share).map(|ns| ns as f64);
            put(format!("fio_fsync_{name}_ns"), quantile);
        }
    }
    put("fio_processor_percent".to_owned(), Some(run.processor_percent));
    measures
}

/// Shares of requests, and what is told of them is called.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)];
