//! `btape speed` of Bacula and Bareos: rates of a tape drive with zeros and with random data.
//!
//! Sizes and rates count in powers of 1000 (`edit_uint64_with_suffix`), although a file of 1 GB has
//! 2^30 bytes.

use super::number::{leading, unit};
use super::{Before, Met};
use crate::piece::{Framing, TapeTest, TestData, What};

pub(super) fn speed(text: &str, _: &mut Before) -> Met {
    let Some(line) = behind_name(text.trim()) else { return Met::Nothing };
    let whole = |test| Met::Whole(What::TapeTest(test));
    if line.starts_with("Test with zero data") {
        return whole(TapeTest::Data(TestData::Zeros));
    }
    if line.starts_with("Test with random data") {
        return whole(TapeTest::Data(TestData::Random));
    }
    if let Some(rest) = line.strip_prefix("Begin writing ") {
        return begin(rest)
            .map_or_else(|| Met::begun("a test of btape without its block size"), whole);
    }
    if line.starts_with("Wrote ") && line.contains(" EOF to \"") {
        // `Wrote 1 EOF to "Drive-0" (/dev/nst0)`
        let device = line.rsplit_once("\" (").and_then(|(_, it)| it.strip_suffix(')'));
        return device.map_or_else(
            || Met::begun("a filemark of btape without its drive"),
            |device| whole(TapeTest::Drive(device.to_owned())),
        );
    }
    let rest = line.strip_prefix("Total Volume bytes=");
    let is_total = rest.is_some();
    let Some(rest) = rest.or_else(|| line.strip_prefix("Volume bytes=")) else {
        // The others are of its other commands.
        return Met::Whole(What::Passed);
    };
    let Some((bytes, bytes_per_second)) = sizes(rest) else {
        return Met::begun("a rate of btape without its end");
    };
    whole(if is_total {
        TapeTest::Total { bytes, bytes_per_second }
    } else {
        TapeTest::File { bytes, bytes_per_second }
    })
}

/// What stands behind `btape: btape.c:406-0 `.
fn behind_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("btape: ").unwrap_or(line);
    let (place, rest) = rest.split_once(' ')?;
    let (file, number) = place.rsplit_once(':')?;
    let is_number = number.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let name = file.rsplit('/').next()?;
    (matches!(name, "btape.c" | "btape.cc") && is_number).then_some(rest.trim())
}

/// `3 files of 3.221 GB with raw blocks of 129024 bytes.`
fn begin(rest: &str) -> Option<TapeTest> {
    let (files, rest) = rest.split_once(" files of ")?;
    let (size, rest) = rest.split_once(" with ")?;
    let (framing, rest) = match rest.strip_prefix("raw ") {
        Some(rest) => (Framing::Raw, rest),
        None => (Framing::Blocks, rest),
    };
    let block = rest.strip_prefix("blocks of ")?.strip_suffix(" bytes.")?;
    Some(TapeTest::Begin {
        files: files.parse().ok()?,
        file_bytes: decimal_size(size)?,
        block_bytes: block.parse().ok().filter(|bytes| *bytes > 0)?,
        framing,
    })
}

/// `3.221 GB. Write rate = 44.128 MB/s`
fn sizes(rest: &str) -> Option<(f64, f64)> {
    let (bytes, rate) = rest.split_once("rite rate = ")?;
    let bytes = bytes.trim_end().strip_suffix(". W").or_else(|| bytes.strip_suffix(". Total W"))?;
    Some((decimal_size(bytes)?, decimal_size(rate.strip_suffix("/s")?)?))
}

/// `3.221 GB`, `812 B`.
fn decimal_size(text: &str) -> Option<f64> {
    let (number, name) = leading(text)?;
    let (factor, _) = unit(name.trim().strip_suffix('B')?)?;
    Some(number * factor)
}
