//! What fio prints: its JSON+ (fio(1), `--output-format=json+`), as far as it is used here.
//!
//! fio's own traps: intervals without bytes are left out of its statistics of the bandwidth, merged
//! standard deviations are not those of the sum, and percentiles end at 17 s. So only totals are
//! taken, and latencies from its bins.

use super::DiskError;
use serde::Deserialize;
use std::collections::BTreeMap;

use statistics::histogram::Histogram;

/// One run of fio, all jobs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioRun {
    /// Version of fio.
    pub version: String,
    pub read: FioDirection,
    /// What was written.
    pub write: FioDirection,
    /// What was discarded.
    pub trim: FioDirection,
    /// What was synchronised: requests and their latencies, no bytes.
    pub sync: FioDirection,
    /// The same of each section, jobs of one name together, in the order in which fio tells them.
    pub sections: Vec<FioSection>,
    /// Time of the longest job, or of those that run in turn one after the other (`stonewall`).
    pub seconds: f64,
    /// Processor time by time, all jobs together, in per cent of a core.
    pub processor_percent: f64,
}

/// What the jobs of one section did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioSection {
    /// As in the job file.
    pub name: String,
    pub read: FioDirection,
    /// What was written.
    pub write: FioDirection,
    /// What was discarded.
    pub trim: FioDirection,
    /// What was synchronised.
    pub sync: FioDirection,
}

/// One direction of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioDirection {
    pub bytes: u64,
    pub requests: u64,
    /// Time of the longest job.
    pub seconds: f64,
    /// From submission to completion; of synchronising calls their whole time.
    pub latency: Histogram,
    /// Sum of these times over all requests.
    pub latency_sum_ns: f64,
    /// From preparing a request to its being accepted, of engines that do not wait there for its
    /// end; empty where fio was not asked for its distribution.
    pub submission: Histogram,
    /// Sum of these times.
    pub submission_sum_ns: f64,
    /// How many of these times there are.
    pub submissions: f64,
}

impl FioRun {
    /// Reads what `fio --output-format=json+` printed, with whatever it says before.
    pub fn parse(output: &[u8]) -> Result<FioRun, DiskError> {
        // Notes and warnings of fio precede the document.
        let start = output
            .windows(2)
            .position(|pair| pair[0] == b'{' && pair[1].is_ascii_whitespace() || pair == b"{\"")
            .ok_or(DiskError::FioNoDocument)?;
        let mut documents = serde_json::Deserializer::from_slice(&output[start..]).into_iter();
        let document: Document = documents.next().ok_or(DiskError::FioNoJob)??;
        if document.jobs.is_empty() {
            return Err(DiskError::FioNoJob);
        }
        let mut run = FioRun { version: document.version, ..FioRun::default() };
        let mut groups: BTreeMap<i64, f64> = BTreeMap::new();
        for job in &document.jobs {
            if job.error != 0 {
                return Err(DiskError::FioJob { job: job.jobname.clone(), code: job.error });
            }
            let index = run.section(&job.jobname);
            job.add_to(&mut run.sections[index])?;
            run.processor_percent += job.usr_cpu + job.sys_cpu;
            let seconds = groups.entry(job.groupid).or_default();
            *seconds = seconds.max(job.seconds());
        }
        run.seconds = groups.values().sum();
        for section in &run.sections {
            run.read.merge(&section.read);
            run.write.merge(&section.write);
            run.trim.merge(&section.trim);
            run.sync.merge(&section.sync);
        }
        Ok(run)
    }

    /// Where the section of that name is; a new one behind the others if there is none.
    fn section(&mut self, name: &str) -> usize {
        let found = self.sections.iter().position(|section| section.name == name);
        found.unwrap_or_else(|| {
            self.sections.push(FioSection { name: name.to_owned(), ..FioSection::default() });
            self.sections.len() - 1
        })
    }

    /// All that was done.
    pub fn directions(&self) -> [&FioDirection; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// Bytes of all directions.
    pub fn bytes(&self) -> u64 {
        self.directions().iter().fold(0, |sum, one| sum.saturating_add(one.bytes))
    }
}

impl FioDirection {
    /// Adds what another one did beside it.
    pub fn merge(&mut self, other: &FioDirection) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
        self.seconds = self.seconds.max(other.seconds);
        self.latency.merge(&other.latency);
        self.latency_sum_ns += other.latency_sum_ns;
        self.submission.merge(&other.submission);
        self.submission_sum_ns += other.submission_sum_ns;
        self.submissions += other.submissions;
    }

    /// Mean time from submission to completion, of at least one request.
    pub fn latency_mean_ns(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.latency_sum_ns / self.requests as f64)
    }

    /// Mean time until a request was accepted, where that is a time of its own.
    pub fn submission_mean_ns(&self) -> Option<f64> {
        (self.submissions > 0.0).then(|| self.submission_sum_ns / self.submissions)
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version", default)]
    version: String,
    #[serde(default)]
    jobs: Vec<FioOutputJob>,
}

#[derive(Deserialize)]
struct FioOutputJob {
    #[serde(default)]
    jobname: String,
    #[serde(default)]
    error: i64,
    /// Jobs that run in turn have different ones.
    #[serde(default)]
    groupid: i64,
    read: Told,
    write: Told,
    trim: Option<Told>,
    sync: Option<ToldSync>,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
}

impl FioOutputJob {
    /// Time of its longest direction.
    fn seconds(&self) -> f64 {
        let all = [Some(&self.read), Some(&self.write), self.trim.as_ref()];
        all.into_iter().flatten().fold(0.0, |longest, told| longest.max(told.seconds()))
    }

    fn add_to(&self, section: &mut FioSection) -> Result<(), DiskError> {
        section.read.merge(&self.read.direction()?);
        section.write.merge(&self.write.direction()?);
        if let Some(trim) = &self.trim {
            section.trim.merge(&trim.direction()?);
        }
        if let Some(sync) = &self.sync {
            section.sync.merge(&FioDirection {
                requests: sync.count(),
                seconds: self.seconds(),
                latency: sync.lat_ns.histogram()?,
                latency_sum_ns: sync.lat_ns.sum_ns(),
                ..FioDirection::default()
            });
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Told {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds.
    runtime: u64,
    #[serde(default)]
    slat_ns: Latency,
    #[serde(default)]
    clat_ns: Latency,
}

impl Told {
    fn seconds(&self) -> f64 {
        self.runtime as f64 / 1e3
    }

    fn direction(&self) -> Result<FioDirection, DiskError> {
        Ok(FioDirection {
            bytes: self.io_bytes,
            requests: self.total_ios,
            seconds: self.seconds(),
            latency: self.clat_ns.histogram()?,
            latency_sum_ns: self.clat_ns.sum_ns(),
            submission: self.slat_ns.histogram()?,
            submission_sum_ns: self.slat_ns.sum_ns(),
            submissions: self.slat_ns.n,
        })
    }
}

/// Calls of fsync(2) and its kin.
#[derive(Deserialize)]
struct ToldSync {
    #[serde(default)]
    total_ios: u64,
    #[serde(default)]
    lat_ns: Latency,
}

impl ToldSync {
    /// fio 3.33 says that there were none (`total_ios`), and how long how many of them took.
    fn count(&self) -> u64 {
        self.total_ios.max(self.lat_ns.count())
    }
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

impl Latency {
    fn sum_ns(&self) -> f64 {
        self.mean * self.n
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number")]
    fn count(&self) -> u64 {
        self.n.round() as u64
    }

    fn histogram(&self) -> Result<Histogram, DiskError> {
        let mut bins = Vec::with_capacity(self.bins.len());
        for (ns, count) in &self.bins {
            let ns = ns.parse().map_err(|_| DiskError::FioBin { ns: ns.clone() })?;
            bins.push((ns, *count));
        }
        Ok(Histogram::from(bins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNCED: &[u8] = include_bytes!("../../tests/fio/write-fdatasync-3.33.json");
    const REAL: &[u8] = include_bytes!("../../tests/fio/randrw-3.33.json");

    #[test]
    fn a_real_output_is_read() {
        let run = FioRun::parse(REAL).unwrap();
        assert_eq!(run.version, "fio-3.33");
        assert_eq!((run.read.bytes, run.read.requests), (342_548_480, 41_815));
        assert_eq!(run.write.requests, 17_933);
        assert!((run.seconds - 2.001).abs() < 1e-9);
        assert_eq!(run.read.latency.count(), 41_815);
        // As fio says: 5543.148057 ns.
        let submission = run.read.submission_mean_ns().unwrap();
        assert!((submission - 5_543.148_057).abs() < 1e-3, "{submission}");
        assert_eq!((run.sections.len(), run.sync.requests), (1, 0));
        assert_eq!(run.sections[0].read, run.read);
        // fio's own median is 211968 ns; bins of both are 3 % wide.
        let median = run.read.latency.quantile_ns(0.5).unwrap() as f64;
        assert!((median / 211_968.0 - 1.0).abs() < 0.05, "{median}");
        // Of 64 writes; fio writes that `total_ios` of the syncs is 0.
        let run = FioRun::parse(SYNCED).unwrap();
        assert_eq!((run.write.requests, run.sync.requests), (64, 15));
        assert_eq!(run.sync.latency.count(), 15);
        let rate = super::super::operations::measures(&run)["fio_fsyncs_per_second"];
        assert!((rate - 15.0 / run.seconds).abs() < 1e-9, "{rate}");
        let run = FioRun::parse(REAL).unwrap();
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
