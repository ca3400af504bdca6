//! Any bytes as a sparse map, in each of the four places where one can stand: text of format 1.0
//! (compared with a naive reader), records of format 0.1, and headers of old GNU and star.

use crate::archives::{LIMITS, check_round_trip, header, read, repair_checksum};
use archive::header::{UNIT_BYTES, Unit};
use archive::member::Extent;
use archive::sparse::{MapReader, align_extents, check_extents};

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((size, map)) = input.split_first_chunk::<4>() else { return };
    let size_bytes = u64::from(u32::from_le_bytes(*size));
    let mut padded = map.to_vec();
    padded.resize(map.len().next_multiple_of(UNIT_BYTES), 0);
    check_against_naive_reader(&padded, size_bytes);
    read(&version_1(&padded, size_bytes), check_round_trip);
    read(&version_0_1(map, size_bytes), check_round_trip);
    read(&in_headers(&padded, size_bytes, b"ustar  \0", 386, 482, 483), check_round_trip);
    read(&in_headers(&padded, size_bytes, b"ustar\x0000", 356, 355, 452), check_round_trip);
}

fn check_against_naive_reader(padded: &[u8], size_bytes: u64) {
    let mut reader = MapReader::new(LIMITS.extents_max);
    let complete = padded
        .chunks_exact(UNIT_BYTES)
        .map(|unit| reader.push(unit.try_into().expect("a whole unit")))
        .find(|answer| !matches!(answer, Ok(false)));
    let naive = naive(padded);
    match complete {
        Some(Ok(true)) => {
            let extents = reader.into_extents();
            assert_eq!(Some(&extents), naive.as_ref());
            if check_extents(&extents, size_bytes).is_ok() {
                let aligned = align_extents(&extents, size_bytes);
                let sum = check_extents(&aligned, size_bytes).expect("still a map");
                assert!(sum >= extents.iter().map(|extent| extent.length_bytes).sum());
            }
        }
        Some(Ok(false)) | None => assert_eq!(naive, None),
        Some(Err(_)) => {
            assert!(naive.is_none_or(|extents| extents.len() > LIMITS.extents_max));
        }
    }
}

/// Format 1.0 as the manual says it: lines of numbers, the first of them the count.
fn naive(map: &[u8]) -> Option<Vec<Extent>> {
    let mut lines = map.split_inclusive(|byte| *byte == b'\n').map(|line| -> Option<u64> {
        let digits = line.strip_suffix(b"\n")?;
        let plain = digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
    });
    let count = lines.next()??;
    if count > LIMITS.extents_max as u64 {
        return None;
    }
    let mut extents = Vec::new();
    for _ in 0..count {
        extents.push(Extent { offset_bytes: lines.next()??, length_bytes: lines.next()?? });
    }
    extents.retain(|extent| extent.length_bytes > 0);
    Some(extents)
}

fn record(keyword: &str, value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let length = (rest..rest + 9).find(|length| rest + length.to_string().len() == *length);
    let length = length.expect("fewer than nine digits").to_string();
    [length.as_bytes(), b" ", keyword.as_bytes(), b"=", value, b"\n"].concat()
}

fn with_records(records: &[Vec<u8>], content: &[u8]) -> Vec<u8> {
    let records = records.concat();
    let mut archive = header(b'x', records.len() as u64).to_vec();
    archive.extend_from_slice(&records);
    archive.resize(archive.len().next_multiple_of(UNIT_BYTES), 0);
    archive.extend_from_slice(&header(b'0', content.len() as u64));
    archive.extend_from_slice(content);
    archive
}

fn version_1(map: &[u8], size_bytes: u64) -> Vec<u8> {
    let size = size_bytes.to_string();
    let records = [
        record("GNU.sparse.major", b"1"),
        record("GNU.sparse.minor", b"0"),
        record("GNU.sparse.name", b"sparse"),
        record("GNU.sparse.realsize", size.as_bytes()),
    ];
    with_records(&records, map)
}

fn version_0_1(map: &[u8], size_bytes: u64) -> Vec<u8> {
    let size = size_bytes.to_string();
    let runs: u64 = std::str::from_utf8(map).map_or(0, |text| {
        let lengths = text.split(',').skip(1).step_by(2);
        lengths.filter_map(|length| length.parse().ok()).fold(0, u64::saturating_add)
    });
    let stored = runs.to_string();
    let records = [
        record("GNU.sparse.size", size.as_bytes()),
        record("GNU.sparse.map", map),
        // The size that makes the map match, so that the fuzzer gets behind that check.
        record("size", stored.as_bytes()),
    ];
    with_records(&records, b"")
}

/// The map as entries of a header and of as many extensions as there are units.
fn in_headers(
    map: &[u8],
    size_bytes: u64,
    magic: &[u8; 8],
    entries_at: usize,
    extended_at: usize,
    real_size_at: usize,
) -> Vec<u8> {
    let mut unit: Unit = header(b'S', size_bytes);
    unit[257..265].copy_from_slice(magic);
    let (entries, rest) = map.split_at(map.len().min(96));
    unit[entries_at..entries_at + entries.len()].copy_from_slice(entries);
    unit[extended_at] = u8::from(!rest.is_empty());
    let size = format!("{size_bytes:011o} ");
    unit[real_size_at..real_size_at + 12].copy_from_slice(size.as_bytes());
    repair_checksum(&mut unit);
    let mut archive = unit.to_vec();
    archive.extend_from_slice(rest);
    archive.resize(archive.len().next_multiple_of(UNIT_BYTES), 0);
    archive
}
