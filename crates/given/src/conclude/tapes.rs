//! What a tape drive says of itself: `mt status`, `tapeinfo`, `sg_logs`.

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format;
use model::tape::generation::{Certainty as Sure, Generation};

use super::changes::{Changed, Changes, is_one_drive};
use super::{COMPARED_MAX, Conclusions, span};
use crate::piece::{Piece, Switch, TapeStatus, What};
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
/// Flags that TapeAlert has.
const FLAGS_MAX: usize = 64;
/// LTO-1 shares its density code with tapes of DLT1.
const SHARED_DENSITY: u8 = 0x40;

/// One output of these programs.
#[derive(Default)]
pub(super) struct Status<'a> {
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
    is_not_ready: bool,
    pub(super) lines: (u32, u32),
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
            TapeStatus::NotReady => self.is_not_ready,
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
            TapeStatus::NotReady => self.is_not_ready = true,
        }
    }

    fn name(&self) -> &str {
        self.device.unwrap_or("the drive")
    }

    /// A command for the drive.
    fn mt(&self, operation: &str) -> String {
        // mt works on the devices of st alone.
        let device = self.device.filter(|it| !it.starts_with("/dev/sg"));
        format!("mt -f {} {operation}", device.unwrap_or("DEVICE"))
    }

    /// Of other programs a line may say that something is not ready.
    fn is_of_drive(&self) -> bool {
        self.density.is_some() || self.block_bytes.is_some() || self.buffer.is_some()
    }

    fn has_no_tape(&self) -> bool {
        self.is_not_ready || (self.has(NO_TAPE) && !self.has(ONLINE))
    }

    fn generation(&self) -> Option<&'static Generation> {
        if self.has_no_tape() {
            return None;
        }
        Generation::of_density(self.density.filter(|code| *code != SHARED_DENSITY)?)
    }

    fn is_of(&self, (device, machine): (&str, &str)) -> bool {
        self.machine == machine && self.device.is_some_and(|it| is_one_drive(it, device))
    }
}

/// What a text says of drives, and what it changes at them.
pub(super) struct Drives<'a> {
    statuses: Vec<Status<'a>>,
    changes: Changes<'a>,
}

impl<'a> Drives<'a> {
    pub(super) fn of(pieces: &'a [Piece]) -> Drives<'a> {
        Drives { statuses: statuses(pieces), changes: Changes::of(pieces) }
    }

    /// The medium in a drive, as the last output above these lines has it.
    pub(super) fn medium_before(
        &self,
        drive: (&str, &str),
        lines: (u32, u32),
    ) -> Option<(&Status<'a>, &'static Generation)> {
        let is_above = |it: &&Status<'_>| it.lines.0 < lines.0;
        let says = |it: &Status<'_>| it.density.is_some() || it.has_no_tape();
        let mut all = self.statuses.iter().filter(is_above);
        let status = all.rfind(|it| it.is_of(drive) && says(it))?;
        let is_another = self.changed(Changed::Medium, drive, span([status.lines, lines]));
        status.generation().filter(|_| !is_another).map(|it| (status, it))
    }

    /// The same, of any output with no other medium in between.
    pub(super) fn medium(
        &self,
        drive: (&str, &str),
        lines: (u32, u32),
    ) -> Option<(&Status<'a>, &'static Generation)> {
        let is_its = |it: &&Status<'_>| {
            it.is_of(drive) && !self.changed(Changed::Medium, drive, span([it.lines, lines]))
        };
        let mut all = self.statuses.iter().filter(is_its);
        let behind = || all.find_map(|it| Some((it, it.generation()?)));
        self.medium_before(drive, lines).or_else(behind)
    }

    /// Whether a drive compresses at these lines, if an output says so.
    pub(super) fn compression(&self, drive: (&str, &str), lines: (u32, u32)) -> Option<Switch> {
        let is_its = |it: &&Status<'_>| {
            it.is_of(drive)
                && it.compression.is_some()
                && !self.changed(Changed::Compression, drive, span([it.lines, lines]))
        };
        self.statuses.iter().rfind(is_its)?.compression
    }

    /// What a drive made of the data of this medium: bytes of the host for each on the tape.
    pub(super) fn ratio(&self, drive: (&str, &str), lines: (u32, u32)) -> Option<f64> {
        let is_its = |it: &&Status<'_>| {
            let lines = span([it.lines, lines]);
            let is_other = [Changed::Medium, Changed::Compression]
                .iter()
                .any(|changed| self.changed(*changed, drive, lines));
            it.is_of(drive) && it.write_ratio.is_some() && !is_other
        };
        let ratio = self.statuses.iter().rfind(is_its)?.write_ratio;
        ratio.filter(|_| self.compression(drive, lines) != Some(Switch::Off))
    }

    fn changed(
        &self,
        changed: Changed,
        (device, machine): (&str, &str),
        lines: (u32, u32),
    ) -> bool {
        self.changes.between(changed, (Some(device), machine), lines)
    }

    /// Whether a setting was another below an output.
    fn is_past(&self, changed: Changed, status: &Status<'_>) -> bool {
        let lines = (status.lines.1, u32::MAX);
        self.changes.between(changed, (status.device, status.machine), lines)
    }
}

pub(super) fn conclude(drives: &Drives<'_>, found: &mut Conclusions) {
    for status in &drives.statuses {
        no_tape(status, found);
        if !drives.is_past(Changed::Buffer, status) {
            unbuffered(status, found);
        }
        if !drives.is_past(Changed::BlockSize, status) {
            fixed_blocks(status, found);
        }
        care(status, found);
        if !drives.is_past(Changed::Compression, status) {
            compression(status, found);
        }
    }
    // A drive is asked several times in one mail: its medium is said once.
    let mut said: Vec<(Option<&str>, &str, u8)> = Vec::new();
    for status in &drives.statuses {
        let Some(generation) = status.generation() else { continue };
        let key = (status.device, status.machine, generation.density_code);
        if !said.contains(&key) {
            said.push(key);
            let of_others = || drives.compression((status.device?, status.machine), status.lines);
            let compression = status.compression.or_else(of_others);
            speeds(status, generation, compression, found);
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

/// The device of `mt -f DEVICE status`, `tapeinfo -f DEVICE`, `sg_logs -a DEVICE`. Of several
/// commands in a line each may be of another drive.
fn device_of(line: &str) -> Option<&str> {
    if line.contains([';', '&', '|']) {
        return None;
    }
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
    if !status.has_no_tape() || !status.is_of_drive() {
        return;
    }
    let (what, mark) = if status.is_not_ready {
        let what = format!("{} is not ready: no tape is loaded, or one is loading", status.name());
        (what, "Ready is no")
    } else {
        (format!("{} has no tape", status.name()), "DR_OPEN is set")
    };
    let finding = Finding::new(&rules::NO_TAPE, Certainty::Told, what)
        .because(format!("{mark}; block size and density mean nothing without a medium"));
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
    let is_known = status.has(ONLINE) || (status.bits.is_none() && !status.is_not_ready);
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
    let finding = |what: String| Finding::new(&rules::TAPE_COMPRESSION, Certainty::Told, what);
    let finding = match (status.compression, status.write_ratio) {
        // A ratio beside it is of data that were written before.
        (Some(Switch::Off), _) => finding(format!("compression of {name} is off"))
            .because("all data are written at the speed of the tape at most"),
        (_, Some(ratio)) => finding(format!("{name} compressed what it wrote {ratio:.2} : 1"))
            .because("the host has to deliver that many times the speed of the tape")
            .with_number("compression ratio", ratio, Unit::Ratio),
        (Some(Switch::On), None) => finding(format!("{name} compresses")),
        (None, None) => return,
    };
    found.add(status.lines, finding);
}

/// Lowest speed of any maker's drive, and the highest.
pub(super) fn range(generation: &'static Generation) -> (u64, u64) {
    let all = || generation.by_maker().chain([generation]);
    let lowest = all().map(Generation::lowest_speed).min().unwrap_or_default();
    let highest = all().map(Generation::highest_speed).max().unwrap_or_default();
    (lowest, highest)
}

/// How the speeds are known.
pub(super) fn source(generation: &Generation) -> String {
    match generation.speed_certainty {
        Sure::Assumed => "the speeds are assumed".to_owned(),
        sure => format!("speeds {sure}"),
    }
}

fn speeds(
    status: &Status<'_>,
    generation: &'static Generation,
    compression: Option<Switch>,
    found: &mut Conclusions,
) {
    let (lowest, highest) = range(generation);
    let (slow, fast) = (format::rate(lowest as f64), format::rate(highest as f64));
    let (name, medium) = (status.name(), generation.name);
    let what = format!("the medium in {name} is {medium}: its drives write {fast} at most");
    let more = match compression {
        Some(Switch::Off) => "the drive's own compression is off",
        Some(Switch::On) | None => "the drive's own compression makes that more",
    };
    let why = format!(
        "by its density code 0x{:02x}; {more}; below {slow} on the tape, the tape stops and starts",
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
