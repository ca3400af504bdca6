//! Runs of `dd` and `tar` in blocks of several sizes.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::changes::is_one_drive;
use super::targets::is_tape;
use super::{Conclusions, Run, runs, span};
use crate::piece::Piece;
use crate::rules;

/// A size is enough if no other is faster by this.
const ENOUGH: f64 = 1.05;
/// Rates of a drive with different sources that differ by this are not chance.
const OTHER_SOURCE: f64 = 1.2;
/// A shorter run may be all in the buffer of the drive.
const LONG_SECONDS: f64 = 10.0;
/// Most runs that are compared with each other.
const TRIALS_MAX: usize = 200;
/// Blocks of tar's own, and of dd's.
const TAR_BYTES: u64 = 10_240;
const DD_BYTES: u64 = 512;

/// A run in blocks of a size.
struct Trial<'a> {
    run: Run<'a>,
    program: &'static str,
    /// All words but those of the block.
    source: String,
    target: String,
    block_bytes: u64,
    /// What people call the source.
    name: String,
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
            _ => {
                let (mib, kib) = (1 << 20, 1 << 10);
                match self.block_bytes {
                    bytes if bytes.is_multiple_of(mib) => format!("bs={}M", bytes / mib),
                    bytes if bytes.is_multiple_of(kib) => format!("bs={}k", bytes / kib),
                    bytes => format!("bs={bytes}"),
                }
            }
        }
    }

    fn is_comparable(&self, other: &Trial<'_>) -> bool {
        self.program == other.program
            && self.source == other.source
            && is_one_drive(&self.target, &other.target)
            && self.run.command.machine == other.run.command.machine
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

/// What a run wrote, and how.
struct Words {
    block_bytes: u64,
    source: String,
    target: String,
    name: String,
}

/// The only stage of a run, where it is `dd` or a `tar` that writes.
fn trial<'a>(run: &Run<'a>) -> Option<Trial<'a>> {
    let [stage] = &run.command.stages[..] else { return None };
    let words: Vec<&str> = stage.split_whitespace().collect();
    let (program, words) = match words.first()?.rsplit('/').next()? {
        "dd" => ("dd", of_dd(&words[1..])?),
        "tar" | "gtar" => ("tar", of_tar(&words[1..])?),
        _ => return None,
    };
    let Words { block_bytes, source, target, name } = words;
    Some(Trial { run: *run, program, source, target, block_bytes, name })
}

/// The file that a stage of `tar` writes.
pub(super) fn tar_target(stage: &str) -> Option<String> {
    let words: Vec<&str> = stage.split_whitespace().collect();
    Some(of_tar(&words[1..])?.target)
}

fn of_dd(words: &[&str]) -> Option<Words> {
    let of = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    let block_bytes = match of("obs=").or_else(|| of("bs=")) {
        Some(text) => bytes_of(text)?,
        None => DD_BYTES,
    };
    // How many blocks, and how progress is shown, is no matter: the bytes are compared.
    let is_left = |word: &&&str| {
        !["bs=", "obs=", "ibs=", "of=", "count=", "status="].iter().any(|it| word.starts_with(it))
    };
    let mut left: Vec<&str> = words.iter().filter(is_left).copied().collect();
    left.sort_unstable();
    let (name, target) = (of("if=")?.to_owned(), of("of=")?.to_owned());
    Some(Words { block_bytes, source: left.join(" "), target, name })
}

/// `cf TARGET SOURCE...`, `-b 128`, `-cbf 128 TARGET`, in any order.
fn of_tar(words: &[&str]) -> Option<Words> {
    let (mut block, mut target, mut rest, mut makes) =
        (TAR_BYTES, None, Vec::<String>::new(), false);
    let mut words = words.iter().enumerate();
    while let Some((at, word)) = words.next() {
        if let Some(factor) = word.strip_prefix("--blocking-factor=") {
            block = factor.parse::<u64>().ok()?.checked_mul(512)?;
            continue;
        }
        let letters = match word.strip_prefix('-') {
            Some(long) if long.starts_with('-') => None,
            Some(letters) => Some(letters),
            None => (at == 0).then_some(*word),
        };
        let Some(letters) = letters else {
            makes |= *word == "--create";
            target = target.or(word.strip_prefix("--file=").map(str::to_owned));
            rest.push((*word).to_owned());
            continue;
        };
        makes |= letters.starts_with('c');
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            // What is behind a letter in its word is its value, in the style with a dash.
            let mut value = || {
                let inside = letters.as_str();
                let is_inside = word.starts_with('-') && !inside.is_empty();
                if is_inside && letter == 'b' && inside.starts_with(|it: char| it.is_ascii_digit())
                {
                    letters = "".chars();
                    return Some(inside);
                }
                words.next().map(|(_, word)| *word)
            };
            match letter {
                'f' => target = Some(value()?.to_owned()),
                'b' => block = value()?.parse::<u64>().ok()?.checked_mul(512)?,
                'C' | 'T' | 'X' | 'I' | 'g' => rest.push(value()?.to_owned()),
                _ => {}
            }
        }
        // Only what says the block differs between trials.
        let without = word.trim_end_matches(|it: char| it.is_ascii_digit()).replace('b', "");
        if !matches!(without.as_str(), "" | "-") {
            rest.push(without);
        }
    }
    let source = rest.join(" ");
    let target = target.filter(|_| makes)?;
    Some(Words { block_bytes: block, source, name: target.clone(), target })
}

/// A size as dd has it.
fn bytes_of(text: &str) -> Option<u64> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
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
    let subject = &trial.name;
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
    if !is_tape(&trial.target) {
        bounds.push("what the page cache held or took is not known".to_owned());
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

/// One drive takes some data faster than others, in blocks of one size.
fn of_sources(groups: &[Vec<Trial<'_>>], found: &mut Conclusions) {
    let trials: Vec<&Trial<'_>> = groups
        .iter()
        .flatten()
        .filter(|it| is_tape(&it.target) && it.program == "dd" && it.run.seconds >= LONG_SECONDS)
        .take(TRIALS_MAX)
        .collect();
    let pairs = trials.iter().flat_map(|slow| trials.iter().map(move |fast| (*slow, *fast)));
    let is_pair = |(slow, fast): &(&Trial<'_>, &Trial<'_>)| {
        slow.name != fast.name
            && is_one_drive(&slow.target, &fast.target)
            && slow.block_bytes == fast.block_bytes
            && slow.run.drive == fast.run.drive
            && slow.run.command.machine == fast.run.command.machine
    };
    let times = |(slow, fast): &(&Trial<'_>, &Trial<'_>)| {
        fast.rate().zip(slow.rate()).map_or(0.0, |(fast, slow)| fast / slow)
    };
    let is_other = |pair: &(&Trial<'_>, &Trial<'_>)| is_pair(pair) && times(pair) >= OTHER_SOURCE;
    // In small blocks the drive waits for both.
    let Some((slow, fast)) = pairs.filter(is_other).max_by_key(|(slow, _)| slow.block_bytes) else {
        return;
    };
    let what = format!("the drive most likely compresses {}", fast.name);
    let why = format!(
        "it takes it at {}, and {} at {}, both in blocks of {}",
        fast.speed(),
        slow.name,
        slow.speed(),
        format::binary_size(fast.block_bytes)
    );
    let mut finding = Finding::new(&rules::COMPRESSES, Certainty::Inferred, what)
        .because(why)
        .with_number("times as fast", times(&(slow, fast)), Unit::Ratio);
    finding.caveat =
        Some(format!("or {} is read more slowly: its own rate was not measured", slow.name));
    let finding = finding.with_action("choose the block size with data like those you will store");
    found.add(span([slow.run.lines, fast.run.lines]), finding);
}
