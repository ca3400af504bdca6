//! Runs of `dd` and `tar` in blocks of several sizes.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{Conclusions, Run, runs, span};
use crate::piece::Piece;
use crate::rules;

/// A size is enough if no other is faster by this.
const ENOUGH: f64 = 1.05;
/// Rates of a drive with different sources that differ by this are not chance.
const OTHER_SOURCE: f64 = 1.2;
/// Blocks of tar's own, and of dd's.
const TAR_BYTES: u64 = 10_240;
const DD_BYTES: u64 = 512;

/// A run in blocks of a size.
struct Trial<'a> {
    run: Run<'a>,
    program: &'static str,
    source: String,
    target: String,
    block_bytes: u64,
}

impl Trial<'_> {
    fn rate(&self) -> Option<f64> {
        self.run.bytes.map(|bytes| bytes as f64 / self.run.seconds)
    }

    /// How fast it is: `287 MB/s`, or how long it takes.
    fn speed(&self) -> String {
        self.rate().map_or_else(|| format::duration(self.run.seconds), format::rate)
    }

    fn option(&self) -> String {
        match self.program {
            "tar" => format!("-b {}", self.block_bytes / 512),
            _ => format!("bs={}k", self.block_bytes / 1024),
        }
    }

    fn is_comparable(&self, other: &Trial<'_>) -> bool {
        self.program == other.program
            && self.source == other.source
            && self.target == other.target
            && self.run.drive == other.run.drive
            && self.run.bytes == other.run.bytes
    }
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let runs = runs(pieces);
    let mut groups: Vec<Vec<Trial<'_>>> = Vec::new();
    for trial in runs.iter().filter_map(trial) {
        match groups.iter_mut().find(|group| group[0].is_comparable(&trial)) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    for group in &groups {
        of_group(group, found);
    }
    of_sources(&groups, found);
}

/// The only stage of a run, where it is `dd` or a `tar` that writes.
fn trial<'a>(run: &Run<'a>) -> Option<Trial<'a>> {
    let [stage] = &run.command.stages[..] else { return None };
    let words: Vec<&str> = stage.split_whitespace().collect();
    let (program, (block_bytes, source, target)) = match words.first()?.rsplit('/').next()? {
        "dd" => ("dd", of_dd(&words[1..])?),
        "tar" => ("tar", of_tar(&words[1..])?),
        _ => return None,
    };
    Some(Trial { run: *run, program, source, target, block_bytes })
}

fn of_dd(words: &[&str]) -> Option<(u64, String, String)> {
    let of = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    let block = match of("obs=").or_else(|| of("bs=")) {
        Some(text) => bytes_of(text)?,
        None => DD_BYTES,
    };
    Some((block, of("if=")?.to_owned(), of("of=")?.to_owned()))
}

/// `cf TARGET SOURCE... -b 128`, in any order.
fn of_tar(words: &[&str]) -> Option<(u64, String, String)> {
    let (mut block, mut target, mut rest) = (TAR_BYTES, None, Vec::new());
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let letters = word.strip_prefix('-').or((at == 1).then_some(*word));
        match letters {
            Some(letters) if letters.ends_with('f') && !letters.starts_with('-') => {
                target = Some((*words.get(at)?).to_owned());
                at += 1;
                rest.push(*word);
            }
            Some("b") => {
                block = words.get(at)?.parse::<u64>().ok()?.checked_mul(512)?;
                at += 1;
            }
            _ => rest.push(*word),
        }
    }
    let makes = rest.iter().any(|it| it.trim_start_matches('-').starts_with('c'));
    makes.then_some((block, rest.join(" "), target?))
}

/// A size as dd has it.
fn bytes_of(text: &str) -> Option<u64> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "b" => 512,
        _ => return None,
    };
    number.checked_mul(factor).filter(|bytes| *bytes > 0)
}

/// What a group of runs says of the size of blocks.
fn of_group(group: &[Trial<'_>], found: &mut Conclusions) {
    let mut sizes: Vec<(u64, f64, &Trial<'_>)> = Vec::new();
    for trial in group {
        // Of several runs of a size the middle one would do; the fastest is least disturbed.
        match sizes.iter_mut().find(|(size, _, _)| *size == trial.block_bytes) {
            Some(best) if best.1 <= trial.run.seconds => {}
            Some(best) => *best = (trial.block_bytes, trial.run.seconds, trial),
            None => sizes.push((trial.block_bytes, trial.run.seconds, trial)),
        }
    }
    sizes.sort_by_key(|(size, _, _)| *size);
    let [(_, slow_seconds, slow), .., (most, _, _)] = sizes[..] else { return };
    let best = sizes.iter().map(|it| it.1).fold(f64::INFINITY, f64::min);
    let Some(at) = sizes.iter().position(|it| it.1 <= best * ENOUGH) else { return };
    let (enough, seconds, trial) = sizes[at];
    let size = format::binary_size(enough);
    let subject = if trial.program == "dd" { &trial.source } else { &trial.target };
    let what = if enough == most {
        format!("blocks of {size} were the fastest for {subject}: {}", trial.speed())
    } else {
        format!("blocks of {size} are enough for {subject}: {}", trial.speed())
    };
    let gain = slow_seconds / seconds;
    let why = format!("{} takes {}", named(slow), slow.speed()).replace("takes", verb(slow));
    let mut bounds = Vec::new();
    if enough == most {
        let before = at.checked_sub(1).map(|at| sizes[at]);
        if let Some((size, time, _)) = before {
            let more = (time / seconds - 1.0) * 100.0;
            bounds.push(format!("{more:.0} % faster than {}", format::binary_size(size)));
        }
        bounds.push("larger blocks were not tried".to_owned());
    } else {
        bounds.push(format!("up to {} no other was 5 % faster", format::binary_size(most)));
    }
    if group.len() == sizes.len() {
        bounds.push("one run of each, so how far runs scatter is not known".to_owned());
    }
    let mut finding = Finding::new(&rules::BLOCK_SIZE, Certainty::Measured, what)
        .because(why)
        .with_number("block size", enough as f64, Unit::Bytes)
        .with_number("times as fast as the smallest", gain, Unit::Ratio);
    finding.caveat = Some(bounds.join("; "));
    if enough > slow.block_bytes {
        finding = finding.with_action(format!("{} with {}", trial.program, trial.option()));
        finding.gain = Some(format!("{gain:.1} times as fast as {}", named(slow)));
    }
    found.add(span(group.iter().map(|trial| trial.run.lines)), finding);
}

fn named(trial: &Trial<'_>) -> String {
    let size = format::binary_size(trial.block_bytes);
    match (trial.program, trial.block_bytes) {
        ("tar", TAR_BYTES) => format!("tar's own {size}"),
        ("dd", DD_BYTES) => format!("dd's own {size}"),
        _ => size,
    }
}

fn verb(trial: &Trial<'_>) -> &'static str {
    if trial.rate().is_some() { "gives" } else { "takes" }
}

/// One drive takes some data faster than others.
fn of_sources(groups: &[Vec<Trial<'_>>], found: &mut Conclusions) {
    let of_tape = groups.iter().filter(|group| is_tape(&group[0].target));
    let mut rates: Vec<(f64, &Trial<'_>)> = of_tape
        .filter_map(|group| {
            let rates = group.iter().filter_map(|trial| Some((trial.rate()?, trial)));
            rates.max_by(|a, b| a.0.total_cmp(&b.0))
        })
        .collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [(slow_rate, slow), .., (fast_rate, fast)] = rates[..] else { return };
    let is_one_drive = slow.target == fast.target && slow.run.drive == fast.run.drive;
    if !is_one_drive || slow.source == fast.source || fast_rate < slow_rate * OTHER_SOURCE {
        return;
    }
    let what = format!("the drive most likely compresses {}", fast.source);
    let why = format!(
        "it takes it at {}, and {} at {}",
        format::rate(fast_rate),
        slow.source,
        format::rate(slow_rate)
    );
    let mut finding = Finding::new(&rules::COMPRESSES, Certainty::Inferred, what)
        .because(why)
        .with_number("times as fast", fast_rate / slow_rate, Unit::Ratio);
    finding.caveat =
        Some(format!("or {} is read more slowly: its own rate was not measured", slow.source));
    let finding = finding.with_action("choose the block size with data like those you will store");
    found.add(span([slow.run.lines, fast.run.lines]), finding);
}

fn is_tape(path: &str) -> bool {
    ["/dev/nst", "/dev/st", "/dev/tape"].iter().any(|begin| path.starts_with(begin))
}
