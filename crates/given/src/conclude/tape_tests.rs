//! What `btape speed` measured: block sizes, and whether the drive compresses.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::changes::is_change;
use super::tape_rates::NEAR;
use super::tapes::{Drives, range};
use super::{COMPARED_MAX, Conclusions, span};
use crate::piece::{Framing, Piece, Switch, TapeTest, TestData, What};
use crate::rules;

/// Zeros are faster by this: the drive compresses.
const COMPRESSED: f64 = 1.5;
/// Up to here they are equally fast.
const EQUAL: f64 = 1.1;
/// Bytes for each second: no drive is slower.
const RATE_MIN: f64 = 1.0;
/// A size is enough if no other is faster by this.
const ENOUGH: f64 = 1.05;
/// Most drives of which something is said.
const SAID_MAX: usize = 20;

/// The files of one size, in blocks of one size.
struct Test {
    /// Empty where no line names it.
    drive: String,
    machine: String,
    /// So many times a medium or a setting was changed before.
    change: usize,
    data: TestData,
    framing: Framing,
    block_bytes: u64,
    file_bytes: f64,
    bytes: f64,
    seconds: f64,
    lines: (u32, u32),
}

impl Test {
    fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }

    fn of_drive(&self) -> (&str, &str) {
        (&self.drive, &self.machine)
    }

    /// Whether both are of one drive, as it was set.
    fn is_with(&self, other: &Test) -> bool {
        self.of_drive() == other.of_drive() && self.change == other.change
    }

    /// Whether the other differs by nothing but its data or its blocks.
    fn is_like(&self, other: &Test) -> bool {
        let is_same = (self.file_bytes - other.file_bytes).abs() < 1.0;
        self.is_with(other) && self.framing == other.framing && is_same
    }
}

pub(super) fn conclude(pieces: &[Piece], drives: &Drives<'_>, found: &mut Conclusions) {
    let mut tests = tests(pieces);
    name_drives(&mut tests);
    let mut groups: Vec<Vec<Test>> = Vec::new();
    for test in tests {
        match groups.iter_mut().find(|group| group[0].is_with(&test)) {
            Some(group) => group.push(test),
            None => groups.push(vec![test]),
        }
    }
    for group in groups.iter().take(SAID_MAX) {
        at_highest(group, drives, found);
        compression(group, drives, found);
        for data in [TestData::Zeros, TestData::Random] {
            block_sizes(data, group, found);
        }
    }
}

/// A test whose filemark was not sent is one of the drive that the others of its machine name. Of
/// two drives it may be either, and nothing is said of it.
fn name_drives(tests: &mut Vec<Test>) {
    let mut named: Vec<(String, String)> = Vec::new();
    for test in tests.iter().filter(|test| !test.drive.is_empty()) {
        let drive = (test.machine.clone(), test.drive.clone());
        if !named.contains(&drive) {
            named.push(drive);
        }
    }
    tests.retain_mut(|test| {
        let mut of_machine = named.iter().filter(|(machine, _)| *machine == test.machine);
        let (first, second) = (of_machine.next(), of_machine.next());
        let only = first.filter(|_| second.is_none() && test.drive.is_empty());
        if let Some((_, drive)) = only {
            test.drive.clone_from(drive);
        }
        !test.drive.is_empty() || second.is_none()
    });
}

/// Of a test that says nothing of its data, nothing is known.
fn tests(pieces: &[Piece]) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    let (mut data, mut is_open, mut machine) = (None, false, "");
    let (mut drive, mut change) = ("", 0);
    for piece in pieces {
        change += usize::from(is_change(&piece.what));
        let What::TapeTest(line) = &piece.what else {
            if let What::Command(command) = &piece.what {
                (data, is_open, machine) = (None, false, command.machine.as_str());
                drive = device_of(&command.line).unwrap_or_default();
            }
            continue;
        };
        match *line {
            TapeTest::Drive(ref device) => {
                if let Some(test) = tests.last_mut().filter(|_| is_open) {
                    test.drive.clone_from(device);
                }
            }
            TapeTest::Data(it) => (data, is_open) = (Some(it), false),
            TapeTest::Begin { file_bytes, block_bytes, framing, .. } => {
                is_open = data.is_some() && tests.len() < COMPARED_MAX;
                let Some(data) = data.filter(|_| is_open) else { continue };
                tests.push(Test {
                    drive: drive.to_owned(),
                    machine: machine.to_owned(),
                    change,
                    data,
                    framing,
                    block_bytes,
                    file_bytes,
                    bytes: 0.0,
                    seconds: 0.0,
                    lines: piece.lines,
                });
            }
            TapeTest::File { bytes, bytes_per_second } if bytes_per_second >= RATE_MIN => {
                let Some(test) = tests.last_mut().filter(|_| is_open) else { continue };
                test.bytes += bytes;
                test.seconds += bytes / bytes_per_second;
                test.lines = span([test.lines, piece.lines]);
            }
            // The files are the same bytes again, and not all of them may have been sent.
            TapeTest::Total { bytes, bytes_per_second } if bytes_per_second >= RATE_MIN => {
                let Some(test) = tests.last_mut().filter(|_| is_open) else { continue };
                (test.bytes, test.seconds) = (bytes, bytes / bytes_per_second);
                test.lines = span([test.lines, piece.lines]);
                is_open = false;
            }
            TapeTest::File { .. } | TapeTest::Total { .. } => {}
        }
    }
    tests.retain(|test| test.seconds > 0.0);
    tests
}

/// The device of `btape -c FILE DEVICE`.
fn device_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    (words.next()?.rsplit('/').next()? == "btape").then_some(())?;
    words.find(|word| word.starts_with("/dev/"))
}

/// Tests with zeros and with random data that differ by nothing else. Small blocks and short files
/// hide what the drive does, so those with the largest are taken.
fn pair(tests: &[Test]) -> Option<(&Test, &Test)> {
    let of = |data: TestData| tests.iter().filter(move |test| test.data == data);
    let pairs = of(TestData::Zeros).filter_map(|zeros| {
        let is_its = |it: &&Test| it.is_like(zeros) && it.block_bytes == zeros.block_bytes;
        of(TestData::Random).find(is_its).map(|random| (zeros, random))
    });
    pairs.max_by_key(|pair| (pair.0.block_bytes, pair.0.file_bytes as u64))
}

fn is_equal(zeros: &Test, random: &Test) -> bool {
    (1.0 / EQUAL..=EQUAL).contains(&(zeros.rate() / random.rate()))
}

fn compression(tests: &[Test], drives: &Drives<'_>, found: &mut Conclusions) {
    let Some((zeros, random)) = pair(tests) else { return };
    let lines = span([zeros.lines, random.lines]);
    let times = zeros.rate() / random.rate();
    let switch = drives.compression(zeros.of_drive(), lines);
    let (what, certainty, caveat) = if times >= COMPRESSED {
        ("the drive compresses", Certainty::Inferred, what_differs(random, drives))
    } else if is_equal(zeros, random) {
        let (what, caveat) = match switch {
            Some(Switch::On) => (
                "zeros are as fast as random data, though the drive compresses",
                Some("the host, its path to the drive, or the blocks limit both".to_owned()),
            ),
            Some(Switch::Off) => {
                ("zeros are as fast as random data: the compression of the drive is off", None)
            }
            None => (
                "zeros are as fast as random data",
                Some("the drive does not compress, or the host limits both".to_owned()),
            ),
        };
        (what, Certainty::Measured, caveat)
    } else {
        return;
    };
    let why = format!(
        "zeros at {}, random data at {}, in blocks of {}",
        format::rate(zeros.rate()),
        format::rate(random.rate()),
        format::binary_size(zeros.block_bytes)
    );
    let mut finding = Finding::new(&rules::ZEROS, certainty, what)
        .because(why)
        .with_number("rate of zeros", zeros.rate(), Unit::BytesPerSecond)
        .with_number("rate of random data", random.rate(), Unit::BytesPerSecond)
        .with_number("times as fast", times, Unit::Ratio);
    finding.caveat = caveat;
    found.add(lines, finding);
    if times < COMPRESSED && switch.is_none() {
        let drive = Some(zeros.drive.as_str()).filter(|it| !it.is_empty()).unwrap_or("/dev/nst0");
        found.lacks("whether the drive compresses", format!("tapeinfo -f {drive}"));
    }
}

/// What two rates show of a drive that compresses.
fn what_differs(random: &Test, drives: &Drives<'_>) -> Option<String> {
    let medium = drives.medium(random.of_drive(), random.lines);
    let too_slow = medium.map(|(_, it)| (it.name, range(it).0 as f64));
    if let Some((name, lowest)) = too_slow.filter(|(_, lowest)| random.rate() < *lowest) {
        return Some(format!(
            "the tape cannot be as slow as with random data by itself, since {name} runs at {} or \
             more: look for errors, a drive to be cleaned, or a host that makes random data slowly",
            format::rate(lowest)
        ));
    }
    let text = "zeros show what the host and the block size allow, random data what the tape \
                takes; data of yours lie in between";
    Some(text.to_owned())
}

/// Random data at the highest speed of the medium: nothing in front of the tape is the limit.
fn at_highest(tests: &[Test], drives: &Drives<'_>, found: &mut Conclusions) {
    let of_random = tests.iter().filter(|it| it.data == TestData::Random && !it.drive.is_empty());
    let Some(test) = of_random.max_by(|a, b| a.rate().total_cmp(&b.rate())) else { return };
    let Some((status, generation)) = drives.medium(test.of_drive(), test.lines) else { return };
    let highest = range(generation).1 as f64;
    let share = test.rate() / highest;
    // A rate above it is that of a newer drive, or of another medium.
    if !(NEAR..=1.0 / NEAR).contains(&share) {
        return;
    }
    // Zeros that are no faster show another limit, unless nothing makes them faster.
    let is_off = drives.compression(test.of_drive(), test.lines) == Some(Switch::Off);
    if pair(tests).is_some_and(|(zeros, random)| is_equal(zeros, random)) && !is_off {
        return;
    }
    let what = format!("{} is the limit for random data", test.drive);
    let why = format!(
        "{} of {}, the highest speed of {}",
        format::rate(test.rate()),
        format::rate(highest),
        generation.name
    );
    let finding = Finding::new(&rules::AT_HIGHEST, Certainty::Inferred, what)
        .because(why)
        .with_number("share of the highest speed", share, Unit::Share);
    found.add(span([status.lines, test.lines]), finding);
}

/// The largest files with these data, in blocks of several sizes.
fn block_sizes(data: TestData, tests: &[Test], found: &mut Conclusions) {
    let of_data: Vec<&Test> = tests.iter().filter(|test| test.data == data).collect();
    let sizes_like = |one: &Test| {
        let mut all: Vec<&Test> = of_data.iter().copied().filter(|it| it.is_like(one)).collect();
        // Of several runs of a size the fastest is least disturbed.
        all.sort_by(|a, b| a.block_bytes.cmp(&b.block_bytes).then(b.rate().total_cmp(&a.rate())));
        all.dedup_by_key(|it| it.block_bytes);
        all
    };
    let largest = of_data.iter().max_by(|a, b| a.file_bytes.total_cmp(&b.file_bytes));
    let Some(sizes) = largest.map(|one| sizes_like(one)) else { return };
    let [slow, .., most] = sizes[..] else { return };
    let best = sizes.iter().map(|it| it.rate()).fold(0.0, f64::max);
    let Some(enough) = sizes.iter().find(|it| it.rate() * ENOUGH >= best) else { return };
    let size = format::binary_size(enough.block_bytes);
    let name = match data {
        TestData::Zeros => "zeros",
        TestData::Random => "random data",
    };
    let is_last = enough.block_bytes == most.block_bytes;
    let are = if is_last { "were the fastest" } else { "are enough" };
    let what = format!("blocks of {size} {are} for {name}: {}", format::rate(enough.rate()));
    let why =
        format!("{} gives {}", format::binary_size(slow.block_bytes), format::rate(slow.rate()));
    let gain = enough.rate() / slow.rate();
    let mut finding = Finding::new(&rules::BLOCK_SIZE, Certainty::Measured, what)
        .because(why)
        .with_number("block size", enough.block_bytes as f64, Unit::Bytes)
        .with_number("times as fast as the smallest", gain, Unit::Ratio);
    finding.caveat = Some(if is_last {
        "larger blocks were not tried".to_owned()
    } else {
        format!("up to {} no other was 5 % faster", format::binary_size(most.block_bytes))
    });
    if enough.block_bytes > slow.block_bytes {
        let action = format!("Maximum Block Size = {} in the Device resource", enough.block_bytes);
        finding = finding.with_action(action);
    }
    found.add(span(sizes.iter().map(|it| it.lines)), finding);
}
