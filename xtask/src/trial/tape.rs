//! The trial `tape`: virtual drives with a known knee, measured by `takeup bench tape`.
//!
//! A case draws a generation, the time of a command beside its data, a ratio of compression, and
//! the block sizes to try. The rate of each size follows from the drive's own model: a command and
//! its transfer, or the medium, whichever is slower. Drives without a clear knee, with a rate just
//! below the best, are drawn again. So are drives whose runs of seconds have another knee than runs
//! of hours, since filling the buffer is part of them. The buffer is small, and a filemark, winding
//! and a stop take almost no time, so that most short runs agree with long ones. In some cases
//! other programs use the cores for a while.
//!
//! Not here: drives with the full times of their generation, which are tried by hand
//! (`docs/bench.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use testkit::samples::Random;

use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Tape;

/// Rates this near count as equal, as in the program.
const BAND: f64 = 0.02;
/// No drive has a level that is nearer to the best than this and outside the band.
const CLEAR: f64 = 0.07;
/// Approximate time of a run at the fastest level.
const RUN_SECONDS: f64 = 4.0;
/// Most time that the machine adds to a command of a virtual drive.
const WAY_SECONDS: f64 = 0.4e-3;
/// Time limit of a case.
const CASE_SECONDS: u64 = 600;

impl Trial for Tape {
    fn name(&self) -> &'static str {
        "tape"
    }

    fn cases(&self) -> u64 {
        20
    }

    fn asked(&self) -> &'static [Asked] {
        &[Asked { property: "knee", share: 0.95 }]
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let mut random = ground.random(number);
        let generation = GENERATIONS[random.index(GENERATIONS.len())];
        let native = fastest(&ground.takeup, generation)?;
        let case = Case::drawn(&mut random, generation, native);
        let mut outcome = Outcome {
            number,
            case: case.shown(),
            truth: format!("knee at {} KiB", case.levels[case.knee()] >> 10),
            ..Outcome::default()
        };
        let drive = Drive::mount(&ground.takeup, &ground.folder, &case)?;
        let load = case.is_loaded.then(Load::begin);
        let document = asked(&ground.takeup, &drive, &case)?;
        drop(load);
        drop(drive);
        let judgement = &document["judgement"];
        if ground.loud {
            println!("{judgement:#}");
        }
        knee(&mut outcome, &case, judgement)?;
        claims(&mut outcome, &case, judgement)?;
        Ok(outcome)
    }
}

/// A drive and its block sizes.
struct Case {
    generation: &'static str,
    /// Rate of the medium, for data that the drive cannot compress.
    native_bytes_per_second: f64,
    compression: u64,
    command_seconds: f64,
    /// Bytes of blocks, ascending.
    levels: Vec<u64>,
    is_loaded: bool,
}

/// Generations to draw from.
const GENERATIONS: [&str; 3] = ["lto1", "lto2", "lto3"];

/// The highest rate of the medium, as in the program.
fn fastest(takeup: &Path, generation: &str) -> anyhow::Result<f64> {
    let output = Command::new(takeup)
        .args(["plan", "--parameters", "--json", "--size", "1G", "--source-rate", "1GB"])
        .args(["--drive", generation])
        .output()
        .context("run takeup plan")?;
    let document: Value = serde_json::from_slice(&output.stdout).context("read a plan")?;
    let parameters = document["parameters"].as_array().context("a plan without parameters")?;
    let speeds = parameters.iter().find(|one| one["name"] == "speeds_bytes_per_second");
    let speeds = speeds.and_then(|one| one["value"].as_array()).context("no speeds")?;
    let fastest = speeds.iter().filter_map(Value::as_f64).reduce(f64::max);
    fastest.context("a drive without a speed")
}

/// Highest rate of the host interface, as it is set for these drives.
const HOST_BYTES_PER_SECOND: u64 = 400_000_000;

impl Case {
    /// Draws the next drive with a clear knee.
    fn drawn(random: &mut Random, generation: &'static str, native_bytes_per_second: f64) -> Case {
        loop {
            let first = 8 << random.index(3);
            let case = Case {
                generation,
                native_bytes_per_second,
                compression: [1, 1, 2][random.index(3)],
                command_seconds: 0.5e-3 + 1e-6 * random.below(2500) as f64,
                levels: (0..4).map(|step| (first << 10) << (2 * step)).collect(),
                is_loaded: random.below(4) == 0,
            };
            if case.is_clear() {
                return case;
            }
        }
    }

    /// Rate of an endless run, with the machine's own time for a command added.
    fn rate(&self, block_bytes: u64, way_seconds: f64) -> f64 {
        self.host_rate(block_bytes, way_seconds).min(self.medium_bytes_per_second())
    }

    fn host_rate(&self, block_bytes: u64, way_seconds: f64) -> f64 {
        let bytes = block_bytes as f64;
        let transfer = bytes / HOST_BYTES_PER_SECOND as f64;
        bytes / (self.command_seconds + way_seconds + transfer)
    }

    /// Size of the drive's buffer: one of the largest blocks and some more. The tape starts when it
    /// is full.
    fn buffer_bytes(&self) -> u64 {
        self.levels.iter().max().map_or(0, |largest| largest / 4 * 5)
    }

    /// Rate of a real run: the tape starts once the buffer is full.
    fn rate_of_run(&self, block_bytes: u64, way_seconds: f64) -> f64 {
        let (length, buffer) = (self.length() as f64, self.buffer_bytes() as f64);
        let filling = buffer * self.compression as f64 / self.host_rate(block_bytes, way_seconds);
        length / (filling + length / self.rate(block_bytes, way_seconds))
    }

    fn medium_bytes_per_second(&self) -> f64 {
        self.native_bytes_per_second * self.compression as f64
    }

    fn rates(&self, way_seconds: f64) -> Vec<f64> {
        self.levels.iter().map(|&level| self.rate(level, way_seconds)).collect()
    }

    /// How far a level is below the best.
    fn missing(rates: &[f64]) -> Vec<f64> {
        let best = rates.iter().copied().fold(0.0, f64::max);
        rates.iter().map(|rate| 1.0 - rate / best).collect()
    }

    fn knee(&self) -> usize {
        Case::missing(&self.rates(0.0)).iter().position(|missing| *missing < BAND).unwrap_or(0)
    }

    /// Whether no level is near the border, whatever the machine adds to a command.
    fn is_clear(&self) -> bool {
        let of_runs = |way: f64| -> Vec<f64> {
            self.levels.iter().map(|&level| self.rate_of_run(level, way)).collect()
        };
        let all = [0.0, WAY_SECONDS].map(|way| [self.rates(way), of_runs(way)]).concat();
        let all: Vec<Vec<f64>> = all.iter().map(|rates| Case::missing(rates)).collect();
        let fastest = |missing: &Vec<f64>| -> Vec<bool> {
            missing.iter().map(|one| *one < BAND / 2.0).collect()
        };
        let is_near =
            |missing: &Vec<f64>| missing.iter().any(|one| (BAND / 2.0..CLEAR).contains(one));
        // Smaller blocks would take too long.
        let slowest = self.rates(0.0)[0];
        let is_short = slowest > self.native_bytes_per_second / 6.0;
        let is_one_answer = all.windows(2).all(|two| fastest(&two[0]) == fastest(&two[1]));
        is_short && is_one_answer && !all.iter().any(is_near)
    }

    fn length(&self) -> u64 {
        ((self.medium_bytes_per_second() * RUN_SECONDS) as u64).next_multiple_of(1 << 20)
    }

    fn shown(&self) -> String {
        let levels: Vec<String> =
            self.levels.iter().map(|bytes| format!("{}k", bytes >> 10)).collect();
        format!(
            "{}, {:.0} us a command, compression {}, blocks {}{}",
            self.generation,
            1e6 * self.command_seconds,
            self.compression,
            levels.join(","),
            if self.is_loaded { ", others use the cores" } else { "" },
        )
    }
}

/// A mounted drive, unmounted when it goes.
struct Drive {
    folder: PathBuf,
    process: Child,
}

impl Drive {
    fn mount(takeup: &Path, folder: &Path, case: &Case) -> anyhow::Result<Drive> {
        let place = folder.join("drive");
        fs::create_dir(&place).context("create the folder of the drive")?;
        let compression = match case.compression {
            1 => "off".to_owned(),
            ratio => ratio.to_string(),
        };
        let mut command = crate::trial::sim(takeup);
        command.arg("tape").arg(&place).args(["--drive", case.generation]);
        command.args(["--compression", &compression, "--capacity", "2G"]);
        let set = [
            ("command_overhead_ns", (1e9 * case.command_seconds) as u64),
            ("host_bytes_per_second", HOST_BYTES_PER_SECOND),
            ("buffer_bytes", case.buffer_bytes()),
            ("back_hitch_ns", 0),
            ("synchronise_ns", 0),
            ("wrap_turn_ns", 0),
            ("wind_ns", 0),
            ("settle_ns", 0),
            ("load_ns", 0),
        ];
        for (name, value) in set {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        let process = command
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("drive.log")).context("create a log")?)
            .spawn()
            .context("start takeup sim tape")?;
        let mut drive = Drive { folder: place, process };
        let begun = Instant::now();
        while !drive.tape().exists() {
            if let Some(status) = drive.process.try_wait().context("wait for the drive")? {
                let said = fs::read_to_string(folder.join("drive.log")).unwrap_or_default();
                bail!("the drive ended with {status}: {said}");
            }
            ensure!(begun.elapsed() < Duration::from_secs(20), "no drive after 20 s");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(drive)
    }

    fn tape(&self) -> PathBuf {
        self.folder.join("nst0")
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        // Errors can be ignored: the folder is a temporary one.
        Command::new("fusermount3").arg("-u").arg(&self.folder).status().ok();
        self.process.wait().ok();
    }
}

/// Programs that use all cores for a while.
struct Load {
    spinning: Vec<Child>,
}

impl Load {
    fn begin() -> Load {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Not all the time: affected runs must be repeated.
        let line = "sleep 2; timeout 2 sh -c 'while :; do :; done'";
        let spin = |_| Command::new("sh").args(["-c", line]).stdout(Stdio::null()).spawn().ok();
        Load { spinning: (0..cores).filter_map(spin).collect() }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.spinning {
            // Each ends by itself after four seconds.
            child.wait().ok();
        }
    }
}

/// The output of the program.
fn asked(takeup: &Path, drive: &Drive, case: &Case) -> anyhow::Result<Value> {
    let levels: Vec<String> = case.levels.iter().map(u64::to_string).collect();
    let output = Command::new("timeout")
        .arg(CASE_SECONDS.to_string())
        .arg(takeup)
        .args(["bench", "tape"])
        .arg(drive.tape())
        .args(["--block-size", &levels.join(","), "--length", &case.length().to_string()])
        .args(["--repeats", "3", "--repeats-max", "3", "--json", "--no-progress"])
        .args(["--seed", "1", "-o"])
        .arg(drive.folder.with_file_name("runs.ndjson"))
        .output()
        .context("run takeup bench tape")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "bench tape: {}: {said}", output.status);
    serde_json::from_slice(&output.stdout).context("read what bench tape printed")
}

/// The block size that is recommended.
fn knee(outcome: &mut Outcome, case: &Case, judgement: &Value) -> anyhow::Result<()> {
    let found = &judgement["recommended"][0];
    let index = found["cell"].as_u64().context("no recommendation")? as usize;
    let level = judgement["cells"][index]["cell"]["block_bytes"].as_u64().context("no level")?;
    let wanted = case.levels[case.knee()];
    let verdict = found["verdict"].as_str().unwrap_or_default();
    let rates: Vec<String> = judgement["cells"].as_array().map_or_else(Vec::new, |cells| {
        let rate = |cell: &Value| cell["bytes_per_second"].as_f64().unwrap_or_default() / 1e6;
        cells.iter().map(|cell| format!("{:.1}", rate(cell))).collect()
    });
    outcome.said = format!("{} KiB, {verdict}; MB/s {}", level >> 10, rates.join(" "));
    let right = level == wanted && verdict != "not_settled";
    outcome.check("knee", right, format!("{}, knee {} KiB", outcome.said, wanted >> 10));
    Ok(())
}

/// Sentences that the drive's model shows to be true or false.
fn claims(outcome: &mut Outcome, case: &Case, judgement: &Value) -> anyhow::Result<()> {
    let sentences = judgement["sentences"].as_array().context("no sentences")?;
    let (rates, knee) = (case.rates(0.0), case.knee());
    let best = rates.iter().copied().fold(0.0, f64::max);
    for sentence in sentences {
        let text = sentence["text"].as_str().unwrap_or_default();
        let number = |name: &str| {
            let all = sentence["numbers"].as_array()?;
            all.iter().find(|one| one["name"] == name)?["value"].as_f64()
        };
        let mut claim = |words: &str, is_true: bool, so: String| {
            outcome.claim(words, is_true, format!("{text} ({so})"));
        };
        match sentence["rule"].as_str().unwrap_or_default() {
            "experiment.setting" if text.contains("the smallest that is as fast as any") => {
                let level = format!(" {} KiB ", case.levels[knee] >> 10);
                let is_true = text.contains(&level) || text.contains(&in_mebibytes(case, knee));
                claim("N, the smallest that is as fast as any", is_true, format!("knee{level}"));
            }
            "experiment.setting" if text.contains("at every level") => {
                claim("the same at every level", knee == 0, format!("knee at place {knee}"));
            }
            "experiment.plateau" => {
                let within = number("within").unwrap_or_default();
                let from = case.levels.iter().zip(&rates).find(|(level, _)| {
                    text.contains(&format!(" {} KiB on", *level >> 10))
                        || text.contains(&format!(" {} MiB on", *level >> 20))
                });
                let least = from.map_or(rates[0], |(_, rate)| *rate);
                let missing = 1.0 - least / best;
                let so = format!("{:.1} % by the model", 100.0 * missing);
                claim("does not matter from N on", missing <= within + BAND, so);
            }
            "experiment.gain" => {
                let (low, high) = (number("low").unwrap_or(0.0), number("high").unwrap_or(0.0));
                let gains = [0.0, WAY_SECONDS].map(|way| best / case.rates(way)[0]);
                let is_true = low <= gains[1] * 1.02 && high >= gains[0] * 0.98;
                claim("N times the rate", is_true, format!("{:.2} to {:.2}", gains[0], gains[1]));
            }
            "experiment.curve" if number("fixed_low").is_some() => {
                let (low, high) = (number("fixed_low").unwrap_or(0.0), number("fixed_high"));
                let most = case.command_seconds + WAY_SECONDS;
                let is_true = low <= most && high.is_some_and(|high| high >= case.command_seconds);
                let so = format!("{:.0} us", 1e6 * case.command_seconds);
                claim("each request takes N besides its data", is_true, so);
            }
            "experiment.off-the-curve" if !text.contains("other programs disturbed") => {
                claim("N is out of line", false, "the model is the curve".to_owned());
            }
            "experiment.two-kinds" => {
                claim("two groups of different speed", false, "it has one".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

fn in_mebibytes(case: &Case, place: usize) -> String {
    format!(" {} MiB ", case.levels[place] >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knees_are_clear_and_of_all_kinds() {
        let mut places = [0; 4];
        for number in 0..200 {
            let case = Case::drawn(&mut Random::numbered(number), "lto2", 35e6);
            let missing = Case::missing(&case.rates(WAY_SECONDS));
            let knee = case.knee();
            assert!(missing[knee] < BAND && missing[..knee].iter().all(|one| *one >= CLEAR));
            places[knee] += 1;
        }
        assert!(places[1] > 20 && places[2] > 20, "{places:?}");
    }
}
