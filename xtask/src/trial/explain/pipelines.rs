//! Pipelines of a trial: ten kinds in turn, with random numbers, and the single changes to measure
//! for each.

use testkit::samples::Random;

/// A pipeline, its needs, and its changes.
pub(super) struct Pipeline {
    /// The command line.
    pub(super) line: String,
    /// Size of the files that it reads.
    pub(super) bytes: u64,
    /// Its other needs.
    pub(super) scenery: Scenery,
    /// Single changes.
    pub(super) changes: Vec<Change>,
}

/// Needs of a pipeline beside files.
pub(super) enum Scenery {
    /// Nothing.
    Files,
    /// A virtual tape drive, with these options.
    Drive(Vec<String>),
    /// A virtual disk, with these options.
    Disk(Vec<String>),
}

/// A single change.
pub(super) struct Change {
    pub(super) name: &'static str,
    /// The line with it.
    pub(super) line: String,
    /// The subject of the change.
    pub(super) acts_on: ActsOn,
    /// Whether it does the same with the same parts. Without a drive there is no backup.
    pub(super) is_remedy: bool,
}

/// What a change makes faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActsOn {
    /// A stage, from 1.
    Stage(u64),
    /// Nothing but the waiting of stages for each other.
    Waiting,
}

impl std::fmt::Display for ActsOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ActsOn::Stage(stage) => write!(f, "stage {stage}"),
            ActsOn::Waiting => f.write_str("waiting"),
        }
    }
}

const MB: u64 = 1 << 20;
/// A buffer that holds all data of a case.
const BUFFER: &str = "mbuffer -q -m 448M";

/// The same work done faster.
fn on(name: &'static str, stage: u64, line: impl Into<String>) -> Change {
    Change { name, line: line.into(), acts_on: ActsOn::Stage(stage), is_remedy: true }
}

/// The work of a stage is left out: this shows its time, but no user can do it.
fn without(name: &'static str, stage: u64, line: impl Into<String>) -> Change {
    Change { is_remedy: false, ..on(name, stage, line) }
}

fn buffer(line: impl Into<String>) -> Change {
    Change { name: "buffer", line: line.into(), acts_on: ActsOn::Waiting, is_remedy: true }
}

fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

fn one_of<'a>(random: &mut Random, all: &[&'a str]) -> &'a str {
    all[random.index(all.len())]
}

impl Pipeline {
    /// The kind with this number.
    pub(super) fn of(number: u64, random: &mut Random) -> Pipeline {
        match number % 10 {
            0 => paced(random),
            1 => subshell(random),
            2 => compressor(random),
            3 => two_stages(random),
            4 => tee(random),
            5 => tar_to_tape(random),
            6 => small_blocks(random),
            7 => compressed_to_tape(random),
            8 => bursts(random),
            _ => disk_or_target(random),
        }
    }

    /// With these needs.
    pub(super) fn shown(&self) -> String {
        match &self.scenery {
            Scenery::Files => self.line.clone(),
            Scenery::Drive(options) | Scenery::Disk(options) => {
                format!("{}   [{}]", self.line, options.join(" "))
            }
        }
    }

    fn of_files(line: String, bytes: u64, changes: Vec<Change>) -> Pipeline {
        Pipeline { line, bytes, scenery: Scenery::Files, changes }
    }
}

/// A source with a fixed rate, below, near and above that of the compressor.
fn paced(random: &mut Random) -> Pipeline {
    let rate = between(random, 8, 56);
    let bytes = 5 * rate.min(36) * MB / 2;
    let (with, pace) = (format!("pv -qL {rate}m"), one_of(random, &["gzip -1", "zstd -9"]));
    let shared = if pace == "gzip -1" { "pigz -1" } else { "zstd -9 -T0" };
    let line = |pv: &str, compress: &str| format!("cat noise | {pv} | {compress} >/dev/null");
    let changes = vec![
        on("no rate", 2, line("pv -q", pace)),
        on("all cores", 3, line(&with, shared)),
        buffer(line(&format!("{with} | {BUFFER}"), pace)),
    ];
    Pipeline::of_files(line(&with, pace), bytes, changes)
}

/// The same in a separate shell, which waits at another pipe.
fn subshell(random: &mut Random) -> Pipeline {
    let rate = between(random, 8, 50);
    let bytes = 5 * rate.min(36) * MB / 2;
    let line = |pv: &str, buffer: &str, compress: &str| {
        format!("(cat noise | pv {pv}) | {buffer}{compress} | cat >/dev/null")
    };
    let with = format!("-qL {rate}m");
    let buffered = format!("{BUFFER} | ");
    let changes = vec![
        on("no rate", 1, line("-q", "", "gzip -1")),
        on("all cores", 2, line(&with, "", "pigz -1")),
        buffer(line(&with, &buffered, "gzip -1")),
    ];
    Pipeline::of_files(line(&with, "", "gzip -1"), bytes, changes)
}

/// One compressor of one thread.
fn compressor(random: &mut Random) -> Pipeline {
    let (with, shared, bytes) = match random.below(5) {
        0 => ("gzip -6", "pigz -6", 90 * MB),
        1 => ("gzip -1", "pigz -1", 90 * MB),
        2 => ("zstd -15", "zstd -15 -T2", 90 * MB),
        3 => ("zstd -12", "zstd -12 -T2", 120 * MB),
        _ => ("xz -0", "xz -0 -T2", 12 * MB),
    };
    let source = one_of(random, &["cat noise", "tar cf - noise", "head -c 999M noise"]);
    let line =
        |buffer: &str, compress: &str| format!("{source} | {buffer}{compress} | cat >/dev/null");
    let changes = vec![
        on("all cores", 2, line("", shared)),
        without("no compressor", 2, line("", "cat")),
        buffer(line(&format!("{BUFFER} | "), with)),
    ];
    Pipeline::of_files(line("", with), bytes, changes)
}

/// Two stages with about the same work.
fn two_stages(random: &mut Random) -> Pipeline {
    let all = ["gzip -1", "zstd -9", "zstd -6", "sha512sum - noise", "gzip -2"];
    let (first, second) = (one_of(random, &all[..3]), one_of(random, &all));
    let line = |first: &str, buffer: &str, second: &str| {
        format!("cat noise | {first} | {buffer}{second} >/dev/null")
    };
    let changes = vec![
        without("first costs nothing", 2, line("cat", "", second)),
        without("second costs nothing", 3, line(first, "", "cat")),
        buffer(line(first, &format!("{BUFFER} | "), second)),
    ];
    Pipeline::of_files(line(first, "", second), 200 * MB, changes)
}

/// Data that go two ways.
fn tee(random: &mut Random) -> Pipeline {
    let inner = one_of(random, &["copy", ">(sha256sum >/dev/null)", ">(gzip -1 >/dev/null)"]);
    let compress = one_of(random, &["gzip -1", "zstd -9", "cat"]);
    let line = |tee: &str, buffer: &str, compress: &str| {
        format!("cat noise | {tee} | {buffer}{compress} >/dev/null")
    };
    let with = format!("tee {inner}");
    let changes = vec![
        without("one way", 2, line("cat", "", compress)),
        without("compressor costs nothing", 3, line(&with, "", "cat")),
        buffer(line(&with, &format!("{BUFFER} | "), compress)),
    ];
    // Without a compressor, 140 MB pass too fast to be sampled.
    let works = compress != "cat" || inner.contains("gzip");
    Pipeline::of_files(line(&with, "", compress), if works { 140 } else { 400 } * MB, changes)
}

/// A drive with short motions, so that cases are short.
fn drive(random: &mut Random, rate_mb: (u64, u64)) -> Vec<String> {
    let rate = between(random, rate_mb.0, rate_mb.1) * 1_000_000;
    let buffer = 1 << between(random, 19, 24);
    let (stop, overhead) = (between(random, 50, 400), between(random, 20, 400));
    let mut options: Vec<String> =
        ["--drive", "lto1", "--compression", "off"].map(str::to_owned).into();
    let set = [
        format!("speeds_bytes_per_second={rate}"),
        format!("buffer_bytes={buffer}"),
        format!("back_hitch_ns={stop}ms"),
        format!("synchronise_ns={stop}ms"),
        format!("command_overhead_ns={overhead}us"),
        format!("host_bytes_per_second={}", 4 * rate),
        "wraps=1".to_owned(),
        "wind_ns=100ms".to_owned(),
        "settle_ns=10ms".to_owned(),
    ];
    options.extend(set.into_iter().flat_map(|it| ["--set".to_owned(), it]));
    options
}

/// tar that writes to a drive directly, in records of several sizes.
fn tar_to_tape(random: &mut Random) -> Pipeline {
    let factor = one_of(random, &["2", "10", "20", "20", "40", "128", "512"]);
    let line = |factor: &str| format!("tar -b {factor} -cf drive/nst0 files");
    let changes = vec![
        on("64 KiB", 1, line("128")),
        on("256 KiB", 1, line("512")),
        buffer(format!("tar -b {factor} -cf - files | {BUFFER} -s 256k -f -o drive/nst0")),
        without("no drive", 1, format!("tar -b {factor} -cf - files | cat >/dev/null")),
    ];
    let bytes = if factor == "2" { 24 * MB } else { 96 * MB };
    let scenery = Scenery::Drive(drive(random, (30, 120)));
    Pipeline { line: line(factor), bytes, scenery, changes }
}

/// Other programs that write to a drive in their own block sizes.
fn small_blocks(random: &mut Random) -> Pipeline {
    let size = one_of(random, &["4k", "10k", "16k", "64k", "256k"]);
    let (line, last, larger) = match random.below(3) {
        0 => {
            let line = |size: &str| format!("cat noise | dd ibs={size} obs={size} of=drive/nst0");
            (line(size), 2, line("64k"))
        }
        1 => {
            let line = |option: &str| {
                format!("find files -type f | cpio -o -H newc {option} -F drive/nst0")
            };
            (line("-B"), 2, line("-C 65536"))
        }
        _ => {
            let line = |size: &str| format!("dd if=noise of=drive/nst0 bs={size}");
            (line(size), 1, line("64k"))
        }
    };
    let null = line.replace("drive/nst0", "/dev/null");
    let through = if line.starts_with("find") {
        "find files -type f | cpio -o -H newc -B".to_owned()
    } else {
        "cat noise".to_owned()
    };
    let changes = vec![
        on("64 KiB", last, larger),
        buffer(format!("{through} | {BUFFER} -s 256k -f -o drive/nst0")),
        without("no drive", last, null),
    ];
    let scenery = Scenery::Drive(drive(random, (20, 100)));
    let bytes = if size == "4k" { 40 * MB } else { 80 * MB };
    let bytes = if line.contains("files") { 60 * MB } else { bytes };
    Pipeline {
        line: line.replace("-F drive", "-O drive"),
        bytes,
        scenery,
        changes: renamed(changes),
    }
}

/// cpio writes with -O.
fn renamed(mut changes: Vec<Change>) -> Vec<Change> {
    for change in &mut changes {
        change.line = change.line.replace("-F ", "-O ");
    }
    changes
}

/// A compressor before a drive that is slower, as fast, or faster.
fn compressed_to_tape(random: &mut Random) -> Pipeline {
    let target = one_of(random, &["dd obs=64k of=drive/nst0", "dd obs=256k of=drive/nst0"]);
    let source = one_of(random, &["cat noise", "tar cf - noise"]);
    let direct = random.below(3) == 0;
    let line = |compress: &str, target: &str| {
        if direct {
            format!("{source} | {compress} >drive/nst0")
        } else {
            format!("{source} | {compress} | {target}")
        }
    };
    let last = if direct { 2 } else { 3 };
    let mut changes = vec![
        on("all cores", 2, line("pigz -1", target)),
        buffer(format!("{source} | gzip -1 | {BUFFER} -s 256k -f -o drive/nst0")),
        without("no drive", last, line("gzip -1", target).replace("drive/nst0", "/dev/null")),
    ];
    if direct {
        changes.push(on("64 KiB", 2, format!("{source} | gzip -1 | dd obs=64k of=drive/nst0")));
    }
    let scenery = Scenery::Drive(drive(random, (12, 70)));
    Pipeline { line: line("gzip -1", target), bytes: 88 * MB, scenery, changes }
}

/// A source with bursts and pauses.
fn bursts(random: &mut Random) -> Pipeline {
    let (count, size, pause) =
        (between(random, 3, 6), between(random, 10, 40), between(random, 1, 9));
    let compress = one_of(random, &["gzip -1", "zstd -9"]);
    let shared = if compress == "gzip -1" { "pigz -1" } else { "zstd -9 -T0" };
    let line = |pause: &str, buffer: &str, compress: &str| {
        format!(
            "(for i in $(seq {count}); do head -c {size}M noise; {pause}done) | \
             {buffer}{compress} >/dev/null"
        )
    };
    let sleep = format!("sleep 0.{pause}; ");
    let changes = vec![
        without("no pauses", 1, line("", "", compress)),
        on("all cores", 2, line(&sleep, "", shared)),
        buffer(line(&sleep, &format!("{BUFFER} | "), compress)),
    ];
    Pipeline::of_files(line(&sleep, "", compress), 40 * MB, changes)
}

/// A slow disk as the source, or a target with a fixed rate.
fn disk_or_target(random: &mut Random) -> Pipeline {
    let rate = between(random, 8, 60);
    let bytes = 5 * rate.min(36) * MB / 2;
    let changes = |line: &dyn Fn(bool, &str, &str) -> String, stage: u64| {
        vec![
            without("no limit at the end", stage, line(false, "", "gzip -1")),
            on("all cores", 2, line(true, "", "pigz -1")),
            buffer(line(true, &format!("{BUFFER} | "), "gzip -1")),
        ]
    };
    if random.below(2) == 0 {
        let line = |is_slow: bool, buffer: &str, compress: &str| {
            let source = if is_slow { "slow/disk" } else { "noise" };
            format!("cat {source} | {buffer}{compress} | cat >/dev/null")
        };
        let options = ["--service-time", "1us", "--bandwidth", &(rate * MB).to_string()];
        let mut options: Vec<String> = options.iter().map(|&it| it.to_owned()).collect();
        options.extend(["--backing".to_owned(), "noise".to_owned()]);
        let scenery = Scenery::Disk(options);
        let changes = changes(&line, 1);
        return Pipeline { line: line(true, "", "gzip -1"), bytes, scenery, changes };
    }
    let line = |is_slow: bool, buffer: &str, compress: &str| {
        let target = if is_slow { format!("pv -qL {rate}m") } else { "pv -q".to_owned() };
        format!("cat noise | {compress} | {buffer}{target} >/dev/null")
    };
    Pipeline::of_files(line(true, "", "gzip -1"), bytes, changes(&line, 3))
}
