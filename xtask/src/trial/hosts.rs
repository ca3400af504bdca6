//! The trial `hosts`: four ranks under `mpirun`, each on a virtual disk of its own or all on one.
//!
//! A case draws a rate, and whether one disk is slower, whether all share one disk, both or
//! neither. The truth is that of the case: a disk moves no more than its bandwidth, and one stream
//! of direct requests gets nearly all of it. The program has to name the slow rank and no other,
//! and to say whether what the ranks use is shared. Rates are far below what this machine can do.
//!
//! A slow rank beside a shared disk reads through a disk of its own whose backing file lies on the
//! shared one, so that it has both limits.
//!
//! `takeup-mpi` is looked for beside the binary of `--takeup`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::samples::Random;

use super::mounted::Mounted;
use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Hosts;

const RANKS: usize = 4;
/// Bytes that a rank reads in one run take about this long, alone.
const RUN_SECONDS: f64 = 0.4;

impl Trial for Hosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn cases(&self) -> u64 {
        100
    }

    fn asked(&self) -> &'static [Asked] {
        &[Asked { property: "verdict right", share: 0.95 }]
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let mut random = ground.random(number);
        let case = Case::drawn(&mut random);
        let mut outcome =
            Outcome { number, case: case.shown(), truth: case.truth(), ..Outcome::default() };
        let disks = case.mount(&ground.takeup, &ground.folder)?;
        let answer = measured(&ground.takeup, &ground.folder, &case)?;
        drop(disks);
        if ground.loud {
            println!("{answer:#}");
        }
        let verdict = &answer["verdict"];
        let slow: Vec<u64> = verdict["slow"]
            .as_array()
            .context("a verdict without slow hosts")?
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        let expected: Vec<u64> = case.slow.iter().map(|(rank, _)| *rank as u64).collect();
        let is_right = slow == expected && verdict["is_shared"] == Value::Bool(case.is_shared);
        outcome.said = verdict.to_string();
        outcome.check("verdict right", is_right, verdict.to_string());
        Ok(outcome)
    }
}

/// What the ranks read from.
struct Case {
    megabytes_per_second: u64,
    /// A rank whose disk is slower, and how many percent it gives.
    slow: Option<(usize, u64)>,
    is_shared: bool,
    service_microseconds: u64,
}

impl Case {
    fn drawn(random: &mut Random) -> Case {
        let is_slow = random.below(2) == 0;
        Case {
            megabytes_per_second: 20 + random.below(60),
            slow: is_slow.then(|| (random.index(RANKS), 15 + random.below(46))),
            is_shared: random.below(2) == 0,
            service_microseconds: 50 + random.below(400),
        }
    }

    fn shown(&self) -> String {
        let place = if self.is_shared { "one disk of" } else { "disks of" };
        let slow = self.slow.map_or(String::new(), |(rank, percent)| {
            format!(", that of rank {rank} with {percent} % of it")
        });
        format!("{RANKS} ranks, {place} {} MB/s{slow}", self.megabytes_per_second)
    }

    fn truth(&self) -> String {
        let slow =
            self.slow.map_or("none is slow".to_owned(), |(rank, _)| format!("rank {rank} is slow"));
        format!("{slow}, {}", if self.is_shared { "shared" } else { "not shared" })
    }

    /// Bytes that each rank reads in a run.
    fn bytes(&self) -> u64 {
        let whole = self.megabytes_per_second as f64 * 1e6 * RUN_SECONDS;
        (whole as u64).next_multiple_of(1 << 20)
    }

    /// Mounts the disks, and makes `rank.N` in the folder, which that rank reads.
    fn mount(&self, takeup: &Path, folder: &Path) -> anyhow::Result<Vec<Mounted>> {
        let mut disks = Vec::new();
        let size = self.bytes().to_string();
        let service = format!("{}us", self.service_microseconds);
        let mut disk = |name: &str, backing: &str, percent: u64| -> anyhow::Result<()> {
            let rate = self.megabytes_per_second * 10 * percent;
            let bandwidth = format!("{rate}kB");
            let options = [
                "--backing",
                backing,
                "--size",
                &size,
                "--service-time",
                &service,
                "--bandwidth",
                &bandwidth,
                "--parallel",
                "16",
            ];
            disks.push(Mounted::start(takeup, folder, "disk", name, &options)?.0);
            Ok(())
        };
        if self.is_shared {
            disk("shared", "shared.image", 100)?;
        }
        for rank in 0..RANKS {
            let percent = self.slow.filter(|(slow, _)| *slow == rank).map_or(100, |(_, it)| it);
            let name = format!("own{rank}");
            let read = match (self.is_shared, percent) {
                (true, 100) => "shared/disk".to_owned(),
                (true, percent) => {
                    disk(&name, "shared/disk", percent)?;
                    format!("{name}/disk")
                }
                (false, percent) => {
                    disk(&name, &format!("{name}.image"), percent)?;
                    format!("{name}/disk")
                }
            };
            std::os::unix::fs::symlink(folder.join(read), folder.join(format!("rank.{rank}")))
                .context("name the disk of a rank")?;
        }
        Ok(disks)
    }
}

/// The program's answer.
fn measured(takeup: &Path, folder: &Path, case: &Case) -> anyhow::Result<Value> {
    let program = takeup.with_file_name("takeup-mpi");
    ensure!(program.exists(), "{} is not there", program.display());
    let ranks = RANKS.to_string();
    let length = case.bytes().to_string();
    let output = Command::new("mpirun")
        .args(["--oversubscribe", "-np", &ranks])
        .arg(program)
        .args(["bench", "read", "rank.{rank}", "--block-size", "256k", "--cache", "direct"])
        .args(["--hosts", "1,4", "--repeats", "5", "--repeats-max", "5", "--length", &length])
        .args(["--random-reads", "0", "--budget", "120s", "--json", "--output", "runs"])
        .current_dir(folder)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Paths of sockets are short.
        .env("TMPDIR", "/tmp")
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(Stdio::null())
        .output()
        .context("run mpirun")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.stdout.is_empty(), "mpirun: {}: {}", output.status, said.trim());
    // What the disks leave must not be read by the next case.
    fs::remove_file(folder.join("runs")).context("remove the runs")?;
    serde_json::from_slice(&output.stdout).context("read the answer")
}
