//! A run with its source and target, and the single changes that a user could make to it.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;
use testkit::samples::Random;

use super::super::Ground;

/// Bytes of a stream, and of a tree of large files.
const MEGABYTES: u64 = 40;
/// A tree of large files.
const LARGE_FILES: u64 = 5;
/// A tree of small files.
const SMALL_FILES: u64 = 3000;
/// A run without a slow part has this many times the files: 20 ms would show nothing.
const TIMES_UNPACED: u64 = 10;
/// The same for a run that only compression slows.
const TIMES_COMPRESSED: u64 = 4;

/// The source of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A file in the page cache, read by Takeup itself.
    File,
    /// A program with a fixed rate, in MB/s.
    Paced(u64),
    /// A program that sends this many MB and then pauses.
    Bursts { megabytes: u64, pause_ms: u64 },
    /// A tree of small files in memory.
    SmallFiles,
    /// A tree of large files in memory.
    LargeFiles,
    /// An uncached tree on a separate disk: small or large files.
    Disk { small: bool, service_us: u64, megabytes_per_second: u64 },
}

/// The target of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// `/dev/null`.
    Nothing,
    /// A program with a fixed rate, in MB/s.
    Paced(u64),
    /// A program that reads this many MB and then pauses.
    Bursts { megabytes: u64, pause_ms: u64 },
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub source: Source,
    pub target: Target,
    pub ring: Option<String>,
    pub rate_limit: Option<u64>,
    pub compress: String,
    pub compress_threads: u64,
    pub read_threads: Option<u64>,
    pub load: bool,
    /// Files of its tree, in multiples of the smallest tree.
    pub times: u64,
}

/// One change of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    FreeSource,
    FreeTarget,
    LargeRing,
    Ring(u64),
    NoRateLimit,
    NoCompression,
    LowerLevel,
    Zstd,
    CompressThreads(u64),
    ReadThreads(u64),
    NoLoad,
}

fn one_of<T: Clone>(random: &mut Random, all: &[T]) -> T {
    all[random.index(all.len())].clone()
}

impl Scene {
    /// Draws a scene.
    pub fn random(random: &mut Random) -> Scene {
        if random.index(2) == 0 { Scene::pipe(random) } else { Scene::backup(random) }
    }

    fn pipe(random: &mut Random) -> Scene {
        let (megabytes, pause_ms) =
            (one_of(random, &[4, 5, 8, 10]), one_of(random, &[150, 250, 400]));
        let source = match random.index(5) {
            0 => Source::File,
            1 | 2 => Source::Paced(one_of(random, &[12, 16, 20, 25, 30])),
            _ => Source::Bursts { megabytes, pause_ms },
        };
        let (megabytes, pause_ms) = (one_of(random, &[4, 8]), one_of(random, &[200, 300]));
        let target = match random.index(5) {
            0 if source != Source::File => Target::Nothing,
            4 => Target::Bursts { megabytes, pause_ms },
            _ => Target::Paced(one_of(random, &[12, 15, 20, 24, 32])),
        };
        let ring = one_of(random, &[None, Some("2M"), Some("2M"), Some("4M"), Some("16M")]);
        let rate_limit = (random.index(6) == 0).then(|| one_of(random, &[10, 15, 20]));
        Scene { ring: ring.map(str::to_owned), rate_limit, ..Scene::plain(random, source, target) }
    }

    fn backup(random: &mut Random) -> Scene {
        let source = match random.index(4) {
            0 => Source::SmallFiles,
            1 => Source::LargeFiles,
            which => Source::Disk {
                small: which == 2,
                service_us: one_of(random, &[200, 500, 1000]),
                megabytes_per_second: one_of(random, &[20, 30, 45]),
            },
        };
        let target = match random.index(3) {
            0 => Target::Paced(one_of(random, &[8, 12, 20])),
            _ => Target::Nothing,
        };
        let compress = one_of(random, &["none", "none", "zstd:3", "zstd:12", "zstd:15", "gzip:6"]);
        let rate_limit = (random.index(8) == 0).then(|| one_of(random, &[10, 20]));
        let is_paced = matches!(source, Source::Disk { .. })
            || target != Target::Nothing
            || rate_limit.is_some();
        let times = match compress {
            _ if is_paced => 1,
            "none" | "zstd:3" => TIMES_UNPACED,
            _ => TIMES_COMPRESSED,
        };
        Scene {
            times,
            compress: compress.to_owned(),
            compress_threads: 1 + random.below(2),
            rate_limit,
            ..Scene::plain(random, source, target)
        }
    }

    fn plain(random: &mut Random, source: Source, target: Target) -> Scene {
        Scene {
            source,
            target,
            ring: None,
            rate_limit: None,
            compress: "none".to_owned(),
            compress_threads: 1,
            read_threads: None,
            times: 1,
            load: random.index(6) == 0,
        }
    }

    /// Whether the command writes an archive.
    pub fn is_backup(&self) -> bool {
        matches!(self.source, Source::SmallFiles | Source::LargeFiles | Source::Disk { .. })
    }

    /// The single changes whose gain is measured.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = vec![Change::LargeRing];
        if !matches!(self.source, Source::File | Source::SmallFiles | Source::LargeFiles) {
            changes.push(Change::FreeSource);
        }
        if self.target != Target::Nothing {
            changes.push(Change::FreeTarget);
        }
        if self.rate_limit.is_some() {
            changes.push(Change::NoRateLimit);
        }
        if self.compress != "none" {
            changes.extend([Change::NoCompression, Change::LowerLevel]);
        }
        if self.load {
            changes.push(Change::NoLoad);
        }
        changes
    }

    /// The same run with this change.
    #[must_use]
    pub fn changed(&self, change: Change) -> Scene {
        let mut scene = self.clone();
        match change {
            Change::FreeSource => {
                scene.source = match self.source {
                    Source::Disk { small: true, .. } => Source::SmallFiles,
                    Source::Disk { small: false, .. } => Source::LargeFiles,
                    Source::Paced(_) | Source::Bursts { .. } => Source::File,
                    free => free,
                }
            }
            Change::FreeTarget => scene.target = Target::Nothing,
            Change::LargeRing => scene.ring = Some("256M".to_owned()),
            Change::Ring(bytes) => scene.ring = Some(bytes.to_string()),
            Change::NoRateLimit => scene.rate_limit = None,
            Change::NoCompression => scene.compress = "none".to_owned(),
            Change::LowerLevel => scene.compress = "zstd:1".to_owned(),
            Change::Zstd => scene.compress = "zstd".to_owned(),
            Change::CompressThreads(threads) => scene.compress_threads = threads,
            Change::ReadThreads(threads) => scene.read_threads = Some(threads),
            Change::NoLoad => scene.load = false,
        }
        scene
    }

    /// The shell command; its output goes to the file `said`.
    fn line(&self, takeup: &str, place: &Place) -> String {
        let folder = place.folder.display();
        let mut words = match self.source {
            Source::File => format!("{takeup} pipe --from {folder}/stream"),
            Source::Paced(rate) => {
                format!("pv -qL {}k {folder}/stream | {takeup} pipe", rate * 1000)
            }
            Source::Bursts { megabytes, pause_ms } => format!(
                "for part in $(seq 0 {}); do tail -c +$((part * {megabytes}000000 + 1)) \
                 {folder}/stream | head -c {megabytes}000000; sleep {}; done | {takeup} pipe",
                MEGABYTES / megabytes - 1,
                pause_ms as f64 / 1e3
            ),
            Source::SmallFiles => format!("{takeup} backup {folder}/small"),
            Source::LargeFiles => format!("{takeup} backup {folder}/large"),
            Source::Disk { .. } => format!("{takeup} backup {folder}/mounted/tree"),
        };
        words.push_str(" --json --no-progress");
        if let Some(ring) = &self.ring {
            words.push_str(&format!(" --ring {ring}"));
        }
        if let Some(rate) = self.rate_limit {
            words.push_str(&format!(" --rate-limit {rate}MB"));
        }
        if self.compress != "none" {
            words.push_str(&format!(" --compress {}", self.compress));
            words.push_str(&format!(" --compress-threads {}", self.compress_threads));
        }
        if let Some(threads) = self.read_threads {
            words.push_str(&format!(" --read-threads {threads}"));
        }
        let rest = match self.target {
            Target::Nothing => format!(" --to /dev/null > {folder}/said"),
            Target::Paced(rate) => {
                format!(" --to - 2> {folder}/said | pv -qL {}k > /dev/null", rate * 1000)
            }
            Target::Bursts { megabytes, pause_ms } => format!(
                " --to - 2> {folder}/said | (for part in $(seq {}); do head -c {megabytes}000000 \
                 > /dev/null; sleep {}; done; cat > /dev/null)",
                MEGABYTES / megabytes,
                pause_ms as f64 / 1e3
            ),
        };
        words + &rest
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scene { source, target, compress, compress_threads, .. } = self;
        write!(f, "{source:?} to {target:?}")?;
        if let Some(ring) = &self.ring {
            write!(f, ", ring {ring}")?;
        }
        if let Some(rate) = self.rate_limit {
            write!(f, ", at most {rate} MB/s")?;
        }
        if compress != "none" {
            write!(f, ", {compress} on {compress_threads} threads")?;
        }
        f.write_str(if self.load { ", other load on all cores" } else { "" })
    }
}

/// The files of a case, and its disk.
pub struct Place {
    takeup: PathBuf,
    folder: PathBuf,
    disk: Option<(Child, String)>,
}

impl Place {
    pub fn new(ground: &Ground, scene: &Scene) -> anyhow::Result<Place> {
        let mut place =
            Place { takeup: ground.takeup.clone(), folder: ground.folder.clone(), disk: None };
        let seed = ground.seed;
        if scene.is_backup() {
            let small =
                matches!(scene.source, Source::SmallFiles | Source::Disk { small: true, .. });
            let name = if small { "small" } else { "large" };
            make_tree(&place.folder.join(name), seed, small, scene.times)?;
            if let Source::Disk { service_us, megabytes_per_second, .. } = scene.source {
                place.attach(service_us, megabytes_per_second)?;
                let from = place.folder.join(name).display().to_string();
                let to = place.mounted().join("tree").display().to_string();
                run("cp", &["-r", &from, &to])?;
                run("umount", &[&place.mounted().display().to_string()])?;
            }
        } else {
            let bytes = compressible(seed, (MEGABYTES * 1_000_000) as usize);
            fs::write(place.folder.join("stream"), bytes).context("write the stream")?;
        }
        Ok(place)
    }

    fn mounted(&self) -> PathBuf {
        self.folder.join("mounted")
    }

    /// A virtual disk with a file system, mounted.
    fn attach(&mut self, service_us: u64, megabytes_per_second: u64) -> anyhow::Result<()> {
        let point = self.folder.join("disk");
        fs::create_dir(&point).context("create a folder")?;
        fs::create_dir(self.mounted()).context("create a folder")?;
        let mut child = crate::trial::sim(&self.takeup)
            .args(["disk", "--size", "160M", "--loop", "--parallel", "4"])
            .args(["--service-time", &format!("{service_us}us")])
            .args(["--bandwidth", &format!("{megabytes_per_second}MB"), "--backing"])
            .arg(self.folder.join("backing"))
            .arg(&point)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start takeup sim disk")?;
        let output = child.stdout.take().context("the disk has no output")?;
        self.disk = Some((child, String::new()));
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let Some(device) = lines.find(|line| line.starts_with("/dev/loop")) else {
            bail!("the virtual disk has no loop device")
        };
        run("mkfs.ext4", &["-q", "-F", &device])?;
        run("mount", &[&device, &self.mounted().display().to_string()])?;
        if let Some((_, kept)) = &mut self.disk {
            *kept = device;
        }
        Ok(())
    }

    /// Runs the command; returns the document that it prints.
    pub fn run(&self, scene: &Scene) -> anyhow::Result<Value> {
        let on_disk = matches!(scene.source, Source::Disk { .. });
        let mounted = self.mounted().display().to_string();
        if let (true, Some((_, device))) = (on_disk, &self.disk) {
            // A new mount has no cached pages.
            run("mount", &[device, &mounted])?;
        }
        let mut load = Vec::new();
        if scene.load {
            let cores = std::thread::available_parallelism().map_or(2, usize::from);
            for _ in 0..cores {
                load.push(Command::new("sh").args(["-c", "while :; do :; done"]).spawn());
            }
        }
        let line = scene.line(&self.takeup.display().to_string(), self);
        let done = Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).status();
        for mut child in load.into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if on_disk {
            run("umount", &[&mounted])?;
        }
        done.context("run sh")?;
        let said = fs::read_to_string(self.folder.join("said")).context("read what was said")?;
        let start = said.find('{').with_context(|| format!("{line}: no document: {said}"))?;
        serde_json::from_str(&said[start..]).with_context(|| format!("{line}: {said}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mounted()).stderr(Stdio::null()).status();
        if let Some((mut child, _)) = self.disk.take() {
            let _ = Command::new("umount").arg(self.folder.join("disk")).status();
            let _ = child.wait();
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    let status = command.status().with_context(|| format!("run {program}"))?;
    if !status.success() {
        bail!("{program} {}: {status}", arguments.join(" "));
    }
    Ok(())
}

/// Half noise, half one byte, in pieces: it compresses to about half.
fn compressible(seed: u64, bytes: usize) -> Vec<u8> {
    let mut data = testkit::samples::noise(seed, bytes);
    for piece in data.chunks_mut(512) {
        let half = piece.len() / 2;
        piece[..half].fill(7);
    }
    data
}

/// No two files are equal: a program could treat a repeated one specially.
fn make_tree(folder: &Path, seed: u64, small: bool, times: u64) -> anyhow::Result<()> {
    let (files, bytes) = if small { (SMALL_FILES, 4096) } else { (LARGE_FILES, 8_000_000) };
    for number in 0..files * times {
        let inside = folder.join((number / 100).to_string());
        fs::create_dir_all(&inside).context("create a folder")?;
        let data = compressible(seed.wrapping_add(number), bytes);
        fs::write(inside.join(number.to_string()), &data).context("write a file")?;
    }
    Ok(())
}
