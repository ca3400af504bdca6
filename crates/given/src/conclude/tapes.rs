//! What a tape drive says of itself: `mt status`, `tapeinfo`, `sg_logs`.

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format;
use model::tape::generation::{Certainty as Sure, Generation};

use super::tape_tests::{self, Test};
use super::{COMPARED_MAX, Conclusions, Run, blocks, runs, span};
use crate::piece::{Command, Moved, Mover, Piece, Switch, TapeStatus, What};
use crate::rules;

/// Bits of `mt_gstat` (linux/mtio.h).
const WRITE_PROTECTED: u32 = 0x0400_0000;
const ONLINE: u32 = 0x0100_0000;
const NO_TAPE: u32 = 0x0004_0000;
/// The drive answers before the data are on the medium. st sets it if the drive buffers.
const BUFFERED: u32 = 0x0001_0000;
const CLEANING: u32 = 0x0000_8000;
/// Fixed blocks below this cost a rate that is worth a change.
const SMALL_BLOCK_BYTES: u32 = 65_536;
/// A shorter run may be all in the buffer of the drive.
const LONG_SECONDS: f64 = 30.0;
/// Bytes for each second: no drive is slower.
const RATE_MIN: f64 = 1.0;
/// A rate is the highest speed from this share of it on.
const NEAR: f64 = 0.9;
/// Flags that TapeAlert has.
const FLAGS_MAX: usize = 64;
/// A rate that was printed with two digits, `1.0`, may be larger by this.
const TWO_DIGITS: f64 = 1.05;

/// One output of these programs.
#[derive(Default)]
struct Status<'a> {
    /// As in `-f DEVICE`, if the command was sent.
    device: Option<&'a str>,
    machine: &'a str,
    block_bytes: Option<u32>,
    density: Option<u8>,
    soft_errors: Option<u64>,
    bits: Option<u32>,
    buffer: Option<Switch>,
    compression: Option<Switch>,
    write_ratio: Option<f64>,
    alerts: Vec<&'a str>,
    lines: (u32, u32),
}

impl<'a> Status<'a> {
    fn has(&self, bit: u32) -> bool {
        self.bits.is_some_and(|bits| bits & bit != 0)
    }

    /// Another output begins where a value comes again.
    fn has_value_of(&self, status: &TapeStatus) -> bool {
        match *status {
            TapeStatus::Drive => self.lines.0 > 0,
            TapeStatus::Position { .. } => self.block_bytes.is_some() || self.bits.is_some(),
            TapeStatus::Mode { .. } => self.block_bytes.is_some(),
            TapeStatus::SoftErrors(_) => self.soft_errors.is_some(),
            TapeStatus::Bits(_) => self.bits.is_some(),
            TapeStatus::BlockSize(_) => self.block_bytes.is_some(),
            TapeStatus::Density(_) => self.density.is_some(),
            TapeStatus::Buffer(_) => self.buffer.is_some(),
            TapeStatus::Compression(_) => self.compression.is_some(),
            TapeStatus::WriteRatio(_) => self.write_ratio.is_some(),
            TapeStatus::Alert(ref name) => self.alerts.contains(&name.as_str()),
        }
    }

    fn take(&mut self, status: &'a TapeStatus) {
        match *status {
            TapeStatus::Drive | TapeStatus::Position { .. } => {}
            TapeStatus::Mode { block_bytes, density } => {
                (self.block_bytes, self.density) = (Some(block_bytes), Some(density));
            }
            TapeStatus::SoftErrors(count) => self.soft_errors = Some(count),
            TapeStatus::Bits(bits) => self.bits = Some(bits),
            TapeStatus::BlockSize(bytes) => self.block_bytes = Some(bytes),
            TapeStatus::Density(density) => self.density = Some(density),
            TapeStatus::Buffer(switch) => self.buffer = Some(switch),
            TapeStatus::Compression(switch) => self.compression = Some(switch),
            TapeStatus::WriteRatio(ratio) => self.write_ratio = Some(ratio),
            TapeStatus::Alert(ref name) if self.alerts.len() < FLAGS_MAX => self.alerts.push(name),
            TapeStatus::Alert(_) => {}
        }
    }

    fn name(&self) -> &str {
        self.device.unwrap_or("the drive")
    }

    /// A command for the drive.
    fn mt(&self, operation: &str) -> String {
        format!("mt -f {} {operation}", self.device.unwrap_or("DEVICE"))
    }

    fn has_no_tape(&self) -> bool {
        self.has(NO_TAPE) && !self.has(ONLINE)
    }

    fn generation(&self) -> Option<&'static Generation> {
        if self.has_no_tape() {
            return None;
        }
        Generation::of_density(self.density?)
    }
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let all = statuses(pieces);
    below_lowest(&all, &written(pieces, &runs(pieces)), found);
    at_highest(&all, &tape_tests::fastest_random(pieces), found);
    for status in &all {
        no_tape(status, found);
        unbuffered(status, found);
        fixed_blocks(status, found);
        care(status, found);
        compression(status, found);
    }
    // A drive is asked several times in one mail: its medium is said once.
    let mut said: Vec<(Option<&str>, &str, u8)> = Vec::new();
    for status in &all {
        let Some(generation) = status.generation() else { continue };
        let key = (status.device, status.machine, generation.density_code);
        if !said.contains(&key) {
            said.push(key);
            speeds(status, generation, found);
        }
    }
}

fn statuses(pieces: &[Piece]) -> Vec<Status<'_>> {
    let mut all: Vec<Status<'_>> = Vec::new();
    let (mut device, mut machine, mut is_open) = (None, "", false);
    for piece in pieces {
        match &piece.what {
            What::Command(command) => {
                (device, machine, is_open) = (device_of(&command.line), &command.machine, false);
            }
            What::TapeStatus(status) => {
                let is_other = all.last().is_none_or(|last| last.has_value_of(status));
                if !is_open || is_other {
                    if all.len() == COMPARED_MAX {
                        break;
                    }
                    all.push(Status { device, machine, ..Status::default() });
                    // A second output without a command may be of any drive.
                    device = None;
                }
                is_open = true;
                let Some(last) = all.last_mut() else { continue };
                last.take(status);
                let lines = (last.lines.0 > 0).then_some(last.lines);
                last.lines = span(lines.into_iter().chain([piece.lines]));
            }
            // tapeinfo prints them in between.
            What::BlockLimits { .. } => {}
            _ => is_open = false,
        }
    }
    all
}

/// The device of `mt -f DEVICE status`, `tapeinfo -f DEVICE`, `sg_logs -a DEVICE`.
fn device_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    if program == "sg_logs" {
        return words.find(|word| word.starts_with("/dev/"));
    }
    if !matches!(program, "mt" | "mt-st" | "mt-gnu" | "tapeinfo") {
        return None;
    }
    words.find(|word| matches!(*word, "-f" | "-t"))?;
    words.next()
}

fn no_tape(status: &Status<'_>, found: &mut Conclusions) {
    if !status.has_no_tape() {
        return;
    }
    let what = format!("{} has no tape", status.name());
    let finding = Finding::new(&rules::NO_TAPE, Certainty::Told, what)
        .because("DR_OPEN is set; block size and density mean nothing without a medium");
    found.add(status.lines, finding);
    found.lacks("which medium the drive writes", status.mt("status") + " with the tape loaded");
}

fn unbuffered(status: &Status<'_>, found: &mut Conclusions) {
    let is_off_by_bits = status.has(ONLINE) && !status.has(BUFFERED);
    let mark = match status.buffer {
        Some(Switch::Off) => "BufferedMode is no",
        None if is_off_by_bits => "IM_REP_EN is not set",
        _ => return,
    };
    let what = format!("the buffer of {} is off", status.name());
    let finding = Finding::new(&rules::TAPE_UNBUFFERED, Certainty::Inferred, what)
        .because(format!("{mark}: each write waits until it is on the tape"))
        .severe(Severity::Warning)
        .with_command(status.mt("drvbuffer 1"));
    found.add(status.lines, finding);
}

fn fixed_blocks(status: &Status<'_>, found: &mut Conclusions) {
    let is_known = status.has(ONLINE) || status.bits.is_none();
    let Some(bytes) = status.block_bytes.filter(|bytes| *bytes > 0 && is_known) else { return };
    let size = format::binary_size(u64::from(bytes));
    let what = format!("{} writes fixed blocks of {size}", status.name());
    let why = "larger writes are split into such blocks, and a write that is no multiple of them \
               fails";
    let mut finding = Finding::new(&rules::FIXED_BLOCKS, Certainty::Told, what)
        .because(why)
        .with_number("block size", f64::from(bytes), Unit::Bytes);
    if bytes < SMALL_BLOCK_BYTES {
        finding = finding.severe(Severity::Warning).with_command(status.mt("setblk 0"));
        finding.caveat = Some(format!(
            "tapes that were written so are read with a block size of {size}; what larger blocks \
             bring was not measured"
        ));
    }
    found.add(status.lines, finding);
}

fn care(status: &Status<'_>, found: &mut Conclusions) {
    let mut all: Vec<String> = Vec::new();
    if status.has(CLEANING) {
        all.push("it asks for cleaning (CLN)".to_owned());
    }
    if let Some(count) = status.soft_errors.filter(|count| *count > 0) {
        let errors = format::counted(count, "error", "errors");
        all.push(format!("it recovered from {errors} since the last mt status"));
    }
    if status.has(WRITE_PROTECTED) && status.has(ONLINE) {
        all.push("its tape is write-protected (WR_PROT)".to_owned());
    }
    if !status.alerts.is_empty() {
        all.push(format!("TapeAlert: {}", status.alerts.join(", ")));
    }
    if all.is_empty() {
        return;
    }
    let finding =
        Finding::new(&rules::TAPE_CARE, Certainty::Told, format!("look at {}", status.name()))
            .because(all.join("; "))
            .severe(Severity::Warning);
    found.add(status.lines, finding);
}

fn compression(status: &Status<'_>, found: &mut Conclusions) {
    let name = status.name();
    let finding =
        match (status.write_ratio, status.compression) {
            (Some(ratio), _) => {
                let what = format!("{name} compressed what it wrote {ratio:.2} : 1");
                let why = "the host has to deliver that many times the speed of the tape";
                Finding::new(&rules::TAPE_COMPRESSION, Certainty::Told, what)
                    .because(why)
                    .with_number("compression ratio", ratio, Unit::Ratio)
            }
            (None, Some(Switch::On)) => {
                let what = format!("{name} compresses");
                Finding::new(&rules::TAPE_COMPRESSION, Certainty::Told, what)
            }
            (None, Some(Switch::Off)) => {
                let what = format!("compression of {name} is off");
                let why = "all data are written at the speed of the tape at most";
                Finding::new(&rules::TAPE_COMPRESSION, Certainty::Told, what).because(why)
            }
            (None, None) => return,
        };
    found.add(status.lines, finding);
}

/// Lowest speed of any maker's drive, and the highest.
fn range(generation: &'static Generation) -> (u64, u64) {
    let all = || generation.by_maker().chain([generation]);
    let lowest = all().map(Generation::lowest_speed).min().unwrap_or_default();
    let highest = all().map(Generation::highest_speed).max().unwrap_or_default();
    (lowest, highest)
}

/// How the speeds are known.
fn source(generation: &Generation) -> String {
    match generation.speed_certainty {
        Sure::Assumed => "the speeds are assumed".to_owned(),
        sure => format!("speeds {sure}"),
    }
}

fn speeds(status: &Status<'_>, generation: &'static Generation, found: &mut Conclusions) {
    let (lowest, highest) = range(generation);
    let (slow, fast) = (format::rate(lowest as f64), format::rate(highest as f64));
    let (name, medium) = (status.name(), generation.name);
    let what = format!("the medium in {name} is {medium}: its drives write {fast} at most");
    let why = format!(
        "by its density code 0x{:02x}; the drive's own compression makes that more; below {slow} \
         on the tape, the tape stops and starts",
        generation.density_code
    );
    let mut finding = Finding::new(&rules::TAPE_SPEED, Certainty::Told, what)
        .because(why)
        .with_number("highest speed", highest as f64, Unit::BytesPerSecond)
        .with_number("lowest speed", lowest as f64, Unit::BytesPerSecond);
    finding.caveat =
        Some(format!("{}; a newer drive may be faster with this medium", source(generation)));
    found.add(status.lines, finding);
}

/// Random data at the highest speed of the medium: nothing in front of the tape is the limit.
fn at_highest(all: &[Status<'_>], tests: &[Test], found: &mut Conclusions) {
    for test in tests {
        let is_its = |status: &&Status<'_>| {
            status.device == Some(test.drive.as_str()) && status.machine == test.machine
        };
        let Some(status) = all.iter().rfind(is_its) else { continue };
        let Some(generation) = status.generation() else { continue };
        let (_, highest) = range(generation);
        let share = test.rate() / highest as f64;
        // A rate above it is that of a newer drive, or of another medium.
        if !(NEAR..=1.0 / NEAR).contains(&share) {
            continue;
        }
        let what = format!("{} is the limit for random data", test.drive);
        let why = format!(
            "{} of {}, the highest speed of {}",
            format::rate(test.rate()),
            format::rate(highest as f64),
            generation.name
        );
        let finding = Finding::new(&rules::AT_HIGHEST, Certainty::Inferred, what)
            .because(why)
            .with_number("share of the highest speed", share, Unit::Share);
        found.add(span([status.lines, test.lines]), finding);
    }
}

/// How fast a command wrote to its target.
struct Written<'a> {
    command: &'a Command,
    bytes: f64,
    seconds: f64,
    lines: (u32, u32),
}

/// Runs of which bytes and time are known, and totals of tar.
fn written<'a>(pieces: &'a [Piece], runs: &[Run<'a>]) -> Vec<Written<'a>> {
    let of_run = |run: &Run<'a>| {
        let bytes = run.bytes? as f64;
        Some(Written { command: run.command, bytes, seconds: run.seconds, lines: run.lines })
    };
    let mut all: Vec<Written<'a>> = runs.iter().filter_map(of_run).collect();
    let mut open: Option<(&Command, &Piece)> = None;
    for piece in pieces {
        match &piece.what {
            What::Command(command) => open = Some((command, piece)),
            What::Moved(Moved {
                mover: Mover::Tar, bytes, bytes_per_second: Some(rate), ..
            }) if *rate >= RATE_MIN => {
                // A second one is of a command that was not sent.
                let of_it = open.take().filter(|(_, it)| it.quoted == piece.quoted);
                let Some((command, from)) = of_it.filter(|_| all.len() < COMPARED_MAX) else {
                    continue;
                };
                let lines = span([from.lines, piece.lines]);
                // Two digits were printed: at most 5 % more.
                let seconds = bytes / (rate * TWO_DIGITS);
                all.push(Written { command, bytes: *bytes, seconds, lines });
            }
            _ => {}
        }
    }
    all
}

/// What was written to a drive whose medium is known, below the lowest speed of its generation.
/// Compression by the drive makes the rate on the tape still lower.
fn below_lowest(all: &[Status<'_>], written: &[Written<'_>], found: &mut Conclusions) {
    for it in written {
        let Some(target) = blocks::target_of(it.command) else { continue };
        let is_its = |status: &&Status<'_>| {
            status.device == Some(target.as_str())
                && status.machine == it.command.machine
                && status.lines.0 < it.lines.0
        };
        let Some(status) = all.iter().rfind(is_its) else { continue };
        let Some(generation) = status.generation() else { continue };
        let (lowest, _) = range(generation);
        let rate = it.bytes / it.seconds;
        if rate >= lowest as f64 || it.seconds < LONG_SECONDS {
            continue;
        }
        let what = format!(
            "{} is less than the lowest speed of {}: the tape in {target} stops and starts",
            format::rate(rate),
            generation.name,
        );
        let why = format!(
            "{} in {}; a drive of that generation cannot write slower than {} without stops",
            format::size(it.bytes as u64),
            format::duration(it.seconds),
            format::rate(lowest as f64)
        );
        let mut finding = Finding::new(&rules::BELOW_LOWEST, Certainty::Inferred, what)
            .because(why)
            .with_number("rate", rate, Unit::BytesPerSecond)
            .with_number("lowest speed", lowest as f64, Unit::BytesPerSecond);
        let source = source(generation);
        finding.caveat =
            Some(format!("{source}; a drive that is newer than its medium may go lower"));
        found.add(span([status.lines, it.lines]), finding);
    }
}
