//! What `btape speed` measured: block sizes, and whether the drive compresses.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{COMPARED_MAX, Conclusions, span};
use crate::piece::{Framing, Piece, TapeTest, TestData, What};
use crate::rules;

/// Zeros are faster by this: the drive compresses.
const COMPRESSED: f64 = 1.5;
/// Up to here they are equally fast.
const EQUAL: f64 = 1.1;
/// Bytes for each second: no drive is slower.
const RATE_MIN: f64 = 1.0;
/// A size is enough if no other is faster by this.
const ENOUGH: f64 = 1.05;

/// The files of one size, in blocks of one size.
pub(super) struct Test {
    /// Empty where no filemark was sent.
    pub(super) drive: String,
    pub(super) machine: String,
    data: TestData,
    framing: Framing,
    block_bytes: u64,
    file_bytes: f64,
    bytes: f64,
    seconds: f64,
    pub(super) lines: (u32, u32),
}

impl Test {
    pub(super) fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }

    /// Whether the other differs by nothing but its data or its blocks.
    fn is_like(&self, other: &Test) -> bool {
        self.framing == other.framing && (self.file_bytes - other.file_bytes).abs() < 1.0
    }
}

/// The fastest test with data that no drive compresses, of each drive.
pub(super) fn fastest_random(pieces: &[Piece]) -> Vec<Test> {
    let mut all: Vec<Test> = tests(pieces);
    all.retain(|test| test.data == TestData::Random && !test.drive.is_empty());
    let drive = |test: &Test| (test.drive.clone(), test.machine.clone());
    all.sort_by(|a, b| drive(a).cmp(&drive(b)).then(b.rate().total_cmp(&a.rate())));
    all.dedup_by_key(|test| drive(test));
    all
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let tests = tests(pieces);
    compression(&tests, found);
    for data in [TestData::Zeros, TestData::Random] {
        block_sizes(data, &tests, found);
    }
}

/// Of a test that says nothing of its data, nothing is known.
fn tests(pieces: &[Piece]) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    let (mut data, mut is_open, mut machine) = (None, false, "");
    for piece in pieces {
        let What::TapeTest(line) = &piece.what else {
            if let What::Command(command) = &piece.what {
                (data, is_open, machine) = (None, false, command.machine.as_str());
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
                    drive: String::new(),
                    machine: machine.to_owned(),
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

fn compression(tests: &[Test], found: &mut Conclusions) {
    let of = |data: TestData| tests.iter().filter(move |test| test.data == data);
    let pairs = of(TestData::Zeros).filter_map(|zeros| {
        let is_its = |it: &&Test| it.is_like(zeros) && it.block_bytes == zeros.block_bytes;
        of(TestData::Random).find(is_its).map(|random| (zeros, random))
    });
    // Small blocks and short files hide what the drive does.
    let order = |pair: &(&Test, &Test)| (pair.0.block_bytes, pair.0.file_bytes as u64);
    let Some((zeros, random)) = pairs.max_by_key(order) else { return };
    let times = zeros.rate() / random.rate();
    let (what, certainty) = if times >= COMPRESSED {
        ("the drive compresses", Certainty::Inferred)
    } else if (1.0 / EQUAL..=EQUAL).contains(&times) {
        ("zeros are as fast as random data", Certainty::Measured)
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
    finding.caveat = Some(if times >= COMPRESSED {
        "zeros show what the host and the block size allow, random data what the tape takes; \
         data of yours lie in between"
            .to_owned()
    } else {
        "the drive does not compress, or the host limits both".to_owned()
    });
    found.add(span([zeros.lines, random.lines]), finding);
    if times < COMPRESSED {
        found.lacks("whether the drive compresses", "tapeinfo -f /dev/nst0".to_owned());
    }
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
