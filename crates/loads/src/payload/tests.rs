//! What a drive would make of the data, by the estimate that the virtual drive uses, and what zstd
//! makes of them; and that a stream is the same however it is cut.

use std::collections::HashSet;
use std::io::Write;

use model::compressibility::Compressibility;
use proptest::prelude::*;

use super::*;

fn made(data: &Data, seed: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![1; bytes];
    Payload::open(data, seed).unwrap().fill(&mut buffer).unwrap();
    buffer
}

fn drive_ratio(data: &[u8]) -> f64 {
    let mut estimate = Compressibility::new();
    estimate.add(data);
    estimate.ratio()
}

fn zstd_ratio(data: &[u8], level: i32) -> f64 {
    let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(data).unwrap();
    data.len() as f64 / encoder.finish().unwrap().len() as f64
}

#[test]
fn random_data_are_nothing_to_a_compressor_and_never_the_same() {
    let runs = [made(&Data::Random, 1, 2 << 20), made(&Data::Random, 2, 2 << 20)];
    let all = runs.concat();
    assert!(zstd_ratio(&all, 19) < 1.0, "{}", zstd_ratio(&all, 19));
    let ratio = drive_ratio(&all);
    assert!((0.995..1.0).contains(&ratio), "{ratio}");
    let pages: HashSet<&[u8]> = all.chunks(4096).collect();
    assert_eq!(pages.len(), all.len() / 4096);
    // Nor any 8 bytes of them: 2^19 of 2^64 values.
    let words: HashSet<&[u8]> = all.chunks(8).collect();
    assert_eq!(words.len(), all.len() / 8);
    let mut counts = [0u32; 256];
    all.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let expected = all.len() as f64 / 256.0;
    let chi: f64 =
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    // 255 degrees of freedom: 99.9 % lie below 330.
    assert!(chi < 330.0, "{chi}");
}

#[test]
fn text_has_the_ratio_that_was_asked_for() {
    for ratio in [1.1, 1.5, 2.0, 3.0, 5.0, 8.0] {
        let data = made(&Data::Text { ratio }, 7, 1 << 20);
        let drive = drive_ratio(&data);
        let zstd = zstd_ratio(&data, 3);
        assert!((drive / ratio - 1.0).abs() < 0.05, "{ratio}: {drive}");
        // zstd spends other numbers of bits on a literal and on a copy, but finds the same.
        let least = if ratio <= 5.0 { 0.85 } else { 0.7 };
        assert!((least..1.15).contains(&(zstd / ratio)), "{ratio}: {zstd}");
    }
}

#[test]
fn a_longer_memory_finds_no_more_in_text() {
    let data = made(&Data::Text { ratio: 2.0 }, 3, 4 << 20);
    let (whole, part) = (zstd_ratio(&data, 3), zstd_ratio(&data[..256 << 10], 3));
    assert!((whole / part - 1.0).abs() < 0.02, "{whole} and {part}");
}

#[test]
fn every_page_of_text_has_the_ratio_about() {
    let data = made(&Data::Text { ratio: 3.0 }, 5, 4 << 20);
    for part in data.chunks(64 << 10) {
        let ratio = drive_ratio(part);
        assert!((2.5..3.5).contains(&ratio), "{ratio}");
    }
}

#[test]
fn zeros_are_zeros_and_files_come_again() {
    assert!(made(&Data::Zeros, 1, 1000).iter().all(|&byte| byte == 0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    std::fs::write(&path, b"abcde").unwrap();
    assert_eq!(made(&Data::Path(path.clone()), 1, 12), b"abcdeabcdeab");
    let payload = Payload::open(&Data::Path(path.clone()), 1).unwrap();
    assert!(payload.cautions()[0].contains("has only 5 B"), "{:?}", payload.cautions());
    std::fs::write(&path, b"").unwrap();
    let error = Payload::open(&Data::Path(path), 1).unwrap_err().to_string();
    assert!(error.contains("the file is empty"), "{error}");
    let error = Payload::open(&Data::Path("/nowhere".into()), 1).unwrap_err().to_string();
    assert_eq!(error, "read /nowhere");
}

#[test]
fn a_file_that_is_too_large_for_memory_is_read_around() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(b"begin").unwrap();
    // A hole: nothing on the disk.
    file.set_len(MEMORY_BYTES_MAX + 7).unwrap();
    let mut payload = Payload::open(&Data::Path(path.clone()), 1).unwrap();
    assert!(payload.cautions()[0].contains("may be the limit"), "{:?}", payload.cautions());
    let mut buffer = vec![1; 1 << 20];
    for number in 0..=MEMORY_BYTES_MAX >> 20 {
        payload.fill(&mut buffer).unwrap();
        let begin = if number == 0 { &b"begin"[..] } else { &[0; 5] };
        assert_eq!(&buffer[..5], begin);
    }
    // The last buffer held the end and the beginning again.
    assert_eq!(&buffer[..12], b"\0\0\0\0\0\0\0begin");
    file.set_len(0).unwrap();
    assert!(matches!(payload.fill(&mut buffer), Err(PayloadError::EmptyFile { .. })));
}

#[test]
fn data_are_typed_and_shown_alike() {
    let check = |text: &str, expected: Data| {
        assert_eq!(text.parse::<Data>().unwrap(), expected);
        assert_eq!(expected.to_string(), text);
    };
    check("zeros", Data::Zeros);
    check("random", Data::Random);
    check("text:3", Data::Text { ratio: 3.0 });
    check("text:1.25", Data::Text { ratio: 1.25 });
    check("./zeros", Data::Path("./zeros".into()));
    check("/srv/sample", Data::Path("/srv/sample".into()));
    for text in ["text:", "text:1", "text:9", "text:NaN", "text:x"] {
        let error = text.parse::<Data>().unwrap_err().to_string();
        assert_eq!(error, format!("{text}: a ratio is a number from 1.1 to 8"));
    }
    assert!("".parse::<Data>().is_err());
}

proptest! {
    #[test]
    fn a_stream_does_not_depend_on_how_it_is_cut(
        pieces in prop::collection::vec(0usize..3000, 1..20),
        which in 0usize..3,
        seed in any::<u64>(),
    ) {
        let data = [Data::Zeros, Data::Random, Data::Text { ratio: 2.5 }][which].clone();
        let whole = made(&data, seed, pieces.iter().sum());
        let mut payload = Payload::open(&data, seed).unwrap();
        let mut parts = Vec::new();
        for bytes in pieces {
            let mut piece = vec![1; bytes];
            payload.fill(&mut piece).unwrap();
            parts.extend(piece);
        }
        prop_assert_eq!(parts, whole);
    }
}
