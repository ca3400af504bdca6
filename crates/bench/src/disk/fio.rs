//! What fio prints: its JSON+ (fio(1), `--output-format=json+`), as far as it is used here.
//!
//! fio's own traps: intervals without bytes are left out of its statistics of the bandwidth, merged
//! standard deviations are not those of the sum, and percentiles end at 17 s. So only totals are
//! taken, and latencies from its bins.

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::histogram::Histogram;

/// Why an output cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// It is no JSON at all.
    #[error("not the output of fio: there is no document in it")]
    NoDocument,
    /// It is no JSON of fio.
    #[error("not the output of fio")]
    Syntax(#[from] serde_json::Error),
    /// A latency that is no number.
    #[error("not the output of fio: bin {ns:?}")]
    Bin {
        /// As printed.
        ns: String,
    },
    /// A job failed.
    #[error("fio: job {job} failed with error {code}")]
    Job {
        /// Its name.
        job: String,
        /// An errno.
        code: i64,
    },
    /// There is no job in it.
    #[error("fio ran no job")]
    NoJob,
}

/// One run of fio, all jobs together.
#[derive(Clone, Debug, PartialEq)]
pub struct FioRun {
    /// Version of fio.
    pub version: String,
    /// What was read.
    pub read: Direction,
    /// What was written.
    pub write: Direction,
    /// What was discarded.
    pub trim: Direction,
    /// Processor time by time, all jobs together, in per cent of a core.
    pub processor_percent: f64,
}

/// One direction of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// Bytes.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Time of the longest job.
    pub seconds: f64,
    /// From submission to completion.
    pub latency: Histogram,
    /// Sum of these times over all requests.
    pub latency_sum_ns: f64,
}

impl FioRun {
    /// Reads what `fio --output-format=json+` printed, with whatever it says before.
    pub fn parse(output: &[u8]) -> Result<FioRun, FioError> {
        // Notes and warnings of fio precede the document.
        let start = output
            .windows(2)
            .position(|pair| pair[0] == b'{' && pair[1].is_ascii_whitespace() || pair == b"{\"")
            .ok_or(FioError::NoDocument)?;
        let mut documents = serde_json::Deserializer::from_slice(&output[start..]).into_iter();
        let document: Document = documents.next().ok_or(FioError::NoJob)??;
        let mut run = FioRun {
            version: document.version,
            read: Direction::default(),
            write: Direction::default(),
            trim: Direction::default(),
            processor_percent: 0.0,
        };
        if document.jobs.is_empty() {
            return Err(FioError::NoJob);
        }
        for job in document.jobs {
            if job.error != 0 {
                return Err(FioError::Job { job: job.jobname, code: job.error });
            }
            run.read.add(&job.read)?;
            run.write.add(&job.write)?;
            if let Some(trim) = &job.trim {
                run.trim.add(trim)?;
            }
            run.processor_percent += job.usr_cpu + job.sys_cpu;
        }
        Ok(run)
    }

    /// All that was done.
    pub fn directions(&self) -> [&Direction; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// Bytes of all directions.
    pub fn bytes(&self) -> u64 {
        self.directions().iter().fold(0, |sum, one| sum.saturating_add(one.bytes))
    }

    /// Time of the longest job.
    pub fn seconds(&self) -> f64 {
        self.directions().iter().fold(0.0, |longest, one| longest.max(one.seconds))
    }
}

impl Direction {
    fn add(&mut self, told: &Told) -> Result<(), FioError> {
        self.bytes = self.bytes.saturating_add(told.io_bytes);
        self.requests = self.requests.saturating_add(told.total_ios);
        self.seconds = self.seconds.max(told.runtime as f64 / 1e3);
        self.latency_sum_ns += told.clat_ns.mean * told.clat_ns.n;
        let mut bins = Vec::with_capacity(told.clat_ns.bins.len());
        for (ns, count) in &told.clat_ns.bins {
            let ns = ns.parse().map_err(|_| FioError::Bin { ns: ns.clone() })?;
            bins.push((ns, *count));
        }
        self.latency.merge(&Histogram::from(bins));
        Ok(())
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version", default)]
    version: String,
    #[serde(default)]
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    jobname: String,
    #[serde(default)]
    error: i64,
    read: Told,
    write: Told,
    trim: Option<Told>,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct Told {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds.
    runtime: u64,
    #[serde(default)]
    clat_ns: Latency,
}

#[derive(Default, Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    #[serde(rename = "N", default)]
    n: f64,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = include_bytes!("../../tests/fio/randrw-3.33.json");

    #[test]
    fn a_real_output_is_read() {
        let run = FioRun::parse(REAL).unwrap();
        assert_eq!(run.version, "fio-3.33");
        assert_eq!((run.read.bytes, run.read.requests), (342_548_480, 41_815));
        assert_eq!(run.write.requests, 17_933);
        assert!((run.seconds() - 2.001).abs() < 1e-9);
        assert_eq!(run.read.latency.count(), 41_815);
        // fio's own median is 211968 ns; bins of both are 3 % wide.
        let median = run.read.latency.quantile_ns(0.5).unwrap() as f64;
        assert!((median / 211_968.0 - 1.0).abs() < 0.05, "{median}");
        let noisy = [b"note: both iodepth >= 1 and sync engine {x}\n", REAL].concat();
        assert_eq!(FioRun::parse(&noisy).unwrap(), run);
    }

    #[test]
    fn what_is_no_output_is_said() {
        let check = |output: &[u8], expected: &str| {
            let error = FioRun::parse(output).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(b"fio: no jobs", "there is no document");
        check(b"{\"jobs\": []}", "fio ran no job");
        check(b"{\"jobs\": [", "not the output of fio");
        let text = String::from_utf8(REAL.to_vec()).unwrap();
        check(text.replace("\"error\":0", "\"error\":28").as_bytes(), "failed with error 28");
        for cut in (0..REAL.len()).step_by(997) {
            assert!(FioRun::parse(&REAL[..cut]).is_err());
        }
    }
}
