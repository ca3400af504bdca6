//! One run: the programs of a pipeline, started together, each with its own time and resources.
//!
//! Each program runs under `stage`, which reports its start, end, processor time and largest
//! resident set. The wall time of a run goes from the earliest start to the latest end, without the
//! wrappers and the polling here.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use machine::counters::processor::MachineTime;
use serde::{Deserialize, Serialize};

use crate::contenders::Clock;
use crate::programs::{FloorReport, StageReport};

/// Time limit of a run; the programs are killed then.
const LIMIT_SECONDS: u64 = 1800;

/// File in the scratch folder for the run of `takeup bench`.
pub const BENCH_RUNS: &str = "bench.ndjson";

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Wall time, or the program's own report of the work alone.
    pub seconds: f64,
    /// Each program, in the order of the pipeline.
    pub stages: Vec<StageUse>,
    /// The output of the last program, if it was kept.
    pub printed: String,
    /// Processor time of all other programs meanwhile, in seconds.
    pub other_cpu_seconds: f64,
    /// Processor time that the host of a virtual machine took meanwhile (steal).
    pub steal_seconds: f64,
}

/// Resources used by one program of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageUse {
    /// Name of the program.
    pub program: String,
    /// Processor time in user mode.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub system_seconds: f64,
    /// Largest resident set.
    pub max_rss_bytes: u64,
}

/// Where the standard output of the last program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineOutput {
    /// To /dev/null.
    Discard,
    /// Into [`Outcome::printed`].
    Keep,
}

/// Runs the programs inside `folder`, each one's standard output piped to the next; `scratch` is an
/// existing folder for the reports.
///
/// # Errors
/// When a program cannot be started, fails (its last line is quoted), or reports nothing.
pub fn run(
    stages: &[Vec<String>],
    clock: Clock,
    output: PipelineOutput,
    folder: &Path,
    scratch: &Path,
) -> anyhow::Result<Outcome> {
    let before = MachineTime::now()?;
    let wrapper = std::env::current_exe().context("own path")?;
    let printed_path = scratch.join("printed");
    let mut children = Vec::new();
    let mut input = Stdio::null();
    let _ = fs::remove_file(scratch.join(BENCH_RUNS));
    for (index, argv) in stages.iter().enumerate() {
        let last = index + 1 == stages.len();
        let keep = clock != Clock::Wall || output == PipelineOutput::Keep;
        let stdout = match (last, keep) {
            (false, _) => Stdio::piped(),
            (true, true) => File::create(&printed_path)?.into(),
            (true, false) => File::options().write(true).open("/dev/null")?.into(),
        };
        let report = scratch.join(format!("stage-{index}.json"));
        let _ = fs::remove_file(&report);
        let mut child = Command::new(&wrapper)
            .args(["stage", "--limit-seconds", &LIMIT_SECONDS.to_string(), "--report"])
            .arg(&report)
            .arg("--")
            .args(argv)
            .current_dir(folder)
            .env("LC_ALL", "C")
            .stdin(input)
            .stdout(stdout)
            .stderr(File::create(scratch.join(format!("stderr-{index}")))?)
            .spawn()
            .with_context(|| format!("start {}", argv[0]))?;
        input = child.stdout.take().map_or_else(Stdio::null, Stdio::from);
        children.push(child);
    }
    // The last reader's input must not stay open here; it was moved into the last child.
    drop(input);
    for child in &mut children {
        child.wait().context("wait for a stage")?;
    }
    let after = MachineTime::now()?;
    let reports = read_reports(stages, scratch)?;
    let printed = fs::read_to_string(&printed_path).unwrap_or_default();
    let stages = stages.iter().zip(&reports).map(|(argv, report)| stage_use(argv, report));
    let stages: Vec<_> = stages.collect();
    let own_seconds: f64 = stages.iter().map(|s| s.user_seconds + s.system_seconds).sum();
    Ok(Outcome {
        seconds: seconds(clock, &reports, &printed, scratch)?,
        stages,
        printed,
        other_cpu_seconds: (after.busy_seconds - before.busy_seconds - own_seconds).max(0.0),
        steal_seconds: after.steal_seconds - before.steal_seconds,
    })
}

fn seconds(
    clock: Clock,
    reports: &[StageReport],
    printed: &str,
    scratch: &Path,
) -> anyhow::Result<f64> {
    match clock {
        Clock::Wall => {
            let start_ns = reports.iter().map(|report| report.start_ns).min();
            let end_ns = reports.iter().map(|report| report.end_ns).max();
            let (start_ns, end_ns) = start_ns.zip(end_ns).context("no programs")?;
            Ok((end_ns - start_ns) as f64 / 1e9)
        }
        Clock::Floor => {
            let report: FloorReport = serde_json::from_str(printed).context("floor's report")?;
            Ok(report.seconds)
        }
        Clock::Fio => fio_seconds(printed),
        Clock::Bench => bench_seconds(&scratch.join(BENCH_RUNS)),
    }
}

/// The time in which fio read everything: bytes divided by bytes per second of its only job.
fn fio_seconds(printed: &str) -> anyhow::Result<f64> {
    // Notes may come before the document.
    let document = printed.find('{').map_or("", |start| &printed[start..]);
    let report: serde_json::Value = serde_json::from_str(document).context("fio's report")?;
    let read = &report["jobs"][0]["read"];
    let milliseconds = read["runtime"].as_f64().context("fio's report: no runtime")?;
    let bytes = read["io_bytes"].as_f64().context("fio's report: no io_bytes")?;
    let rate = read["bw_bytes"].as_f64().context("fio's report: no bw_bytes")?;
    if bytes < 1.0 || rate < 1.0 {
        bail!("fio read nothing");
    }
    // runtime is in whole milliseconds and the rate is computed from it, so neither is more exact.
    Ok(if milliseconds > 0.0 { milliseconds / 1000.0 } else { bytes / rate })
}

/// The time of the one run of `takeup bench`.
fn bench_seconds(runs: &Path) -> anyhow::Result<f64> {
    let experiment = experiment::record::load(runs).context("the runs of bench")?;
    let run = experiment.runs.first().context("no run of bench")?;
    match &run.error {
        Some(error) => bail!("{error}"),
        None => Ok(run.seconds),
    }
}

fn read_reports(stages: &[Vec<String>], scratch: &Path) -> anyhow::Result<Vec<StageReport>> {
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for (index, argv) in stages.iter().enumerate() {
        let said = fs::read_to_string(scratch.join(format!("stderr-{index}"))).unwrap_or_default();
        let said = said.lines().last().unwrap_or("no message").trim();
        let program = program_name(argv);
        let report = fs::read(scratch.join(format!("stage-{index}.json")))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<StageReport>(&bytes).ok());
        match report {
            Some(report) if report.exit_code == 0 => reports.push(report),
            Some(report) => failures.push(format!("{program}: exit {}: {said}", report.exit_code)),
            None => failures.push(format!("{program}: did not run: {said}")),
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("; "));
    }
    Ok(reports)
}

fn stage_use(argv: &[String], report: &StageReport) -> StageUse {
    StageUse {
        program: program_name(argv),
        user_seconds: report.user_seconds,
        system_seconds: report.system_seconds,
        max_rss_bytes: report.max_rss_bytes,
    }
}

/// File name of a program, for records that hold no paths of the machine.
fn program_name(argv: &[String]) -> String {
    let path = argv.first().map(Path::new).and_then(Path::file_name);
    path.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
