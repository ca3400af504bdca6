//! The damage matrix: what is reported and restored if data are cut off, flipped, preceded by
//! others, or missing in the middle.

use std::collections::BTreeMap;
use std::fs;

use runs::restore::RestoreOptions;
use testkit::samples::noise;

use crate::harness::{Harness, Kept, files, list_paths, shell, verify_archive, write};

struct Outcome {
    files: BTreeMap<String, Vec<u8>>,
    warnings: Vec<String>,
    failed: Option<String>,
}

/// Restores bytes as an archive.
fn restore(harness: &Harness, archive: &[u8]) -> Outcome {
    let path = write(&harness.path("damaged"), archive);
    let _ = fs::remove_dir_all(harness.path("out"));
    let kept = Kept::default();
    let options = RestoreOptions { from: path.into(), ring_bytes: 4 << 20, ..Default::default() };
    let result = harness.try_restore(options, "out", &kept);
    let failed = result.err().map(|error| error.to_string());
    Outcome { files: files(&harness.path("out")), warnings: kept.warnings(), failed }
}

/// A tree of eight files and its archive.
fn small(harness: &Harness, command: &str) -> (BTreeMap<String, Vec<u8>>, Vec<u8>) {
    let root = harness.path("t");
    fs::create_dir_all(root.join("folder")).unwrap();
    for number in 0..8usize {
        let name = format!("folder/file{number}");
        fs::write(root.join(name), noise(number as u64 + 1, number * 700)).unwrap();
    }
    shell(command, harness.folder.path());
    let archive = fs::read(harness.path("a")).unwrap();
    let expected =
        files(&root).into_iter().map(|(name, content)| (format!("t/{name}"), content)).collect();
    (expected, archive)
}

#[test]
fn cut_off_at_every_place() {
    for command in [
        "tar --format=posix -cf a t",
        "tar --format=gnu -cf a t",
        "tar -cf - t | zstd -qc > a",
        "tar -cf - t | gzip -c > a",
    ] {
        let harness = Harness::new();
        let (expected, archive) = small(&harness, command);
        let step = if command.contains('|') { 487 } else { 256 };
        for length in (1..archive.len()).step_by(step) {
            let outcome = restore(&harness, &archive[..length]);
            let mut whole = 0;
            for (name, content) in &outcome.files {
                if let Some(original) = expected.get(name) {
                    assert!(original == content, "{command} cut at {length}: {name} is not whole");
                    whole += 1;
                } else {
                    assert!(name.ends_with(".incomplete"), "{name}");
                }
            }
            if whole < expected.len() {
                let told = outcome.failed.is_some() || !outcome.warnings.is_empty();
                assert!(told, "{command} cut at {length}: nothing was said");
            }
        }
    }
}

#[test]
fn a_flipped_byte_anywhere() {
    for command in
        ["tar --format=posix -cf a t", "tar -cf - t | zstd -qc > a", "tar -cf - t | gzip -c > a"]
    {
        let harness = Harness::new();
        let (expected, archive) = small(&harness, command);
        let compressed = command.contains('|');
        for at in (0..archive.len()).step_by(193) {
            let mut damaged = archive.clone();
            damaged[at] ^= 0x55;
            let outcome = restore(&harness, &damaged);
            let told = outcome.failed.is_some() || !outcome.warnings.is_empty();
            let sound = outcome.files == expected;
            if compressed {
                let own_names =
                    outcome.files.iter().all(|(name, content)| match expected.get(name) {
                        Some(original) => original == content,
                        None => name.ends_with(".incomplete"),
                    });
                assert!(
                    sound || (told && (own_names || outcome.failed.is_some())),
                    "{command} {at}"
                );
            } else if !sound && !told {
                // A plain archive of another tool has no checksum over contents: the file has its
                // length and one wrong byte, which is undetectable.
                let differing: Vec<_> = expected
                    .iter()
                    .filter(|(name, content)| outcome.files.get(*name) != Some(content))
                    .collect();
                assert_eq!(differing.len(), 1, "{command} {at}");
                let (name, content) = differing[0];
                let found = &outcome.files[name];
                assert_eq!(found.len(), content.len());
                let bytes = found.iter().zip(content).filter(|(a, b)| a != b).count();
                assert_eq!(bytes, 1);
            }
        }
    }
}

#[test]
fn garbage_in_front_at_any_alignment() {
    let harness = Harness::new();
    let (expected, archive) = small(&harness, "tar --format=posix -cf a t");
    for length in [1, 511, 512, 1000, 1024, 65_536, 3_000_003] {
        let mut shifted = noise(99, length);
        shifted.extend_from_slice(&archive);
        let outcome = restore(&harness, &shifted);
        assert_eq!(outcome.failed, None);
        assert_eq!(outcome.files, expected, "{length}");
        let expected_warning =
            format!(": the archive starts at byte {length}, after bytes that are not tar");
        assert_eq!(outcome.warnings, [expected_warning]);
        let (paths, _, kept) = list_paths(&harness.path("damaged"));
        assert_eq!(paths.len(), expected.len() + 2);
        assert_eq!(kept.warnings().len(), 1);
    }
}

#[test]
fn a_lost_header_costs_its_member_only() {
    let harness = Harness::new();
    let (expected, mut archive) = small(&harness, "tar --format=ustar -cf a t");
    // The header of file4: its name starts its unit.
    let at = archive.windows(14).position(|window| window == b"t/folder/file4").unwrap();
    assert_eq!(at % 512, 0);
    archive[at + 120] ^= 0xff;
    let outcome = restore(&harness, &archive);
    assert_eq!(outcome.files.len(), expected.len() - 1);
    assert!(!outcome.files.contains_key("t/folder/file4"));
    assert_eq!(outcome.warnings.len(), 1);
    assert!(outcome.warnings[0].contains("belong to no member"), "{:?}", outcome.warnings);
    let (report, _) = verify_archive(&harness.path("damaged"), None);
    assert_eq!(report.damaged.total, 1);
}

/// Frames of 20,000 bytes of archive each; one of them is damaged.
#[test]
fn a_lost_chunk_costs_what_is_in_it() {
    for (compress, coding) in [("zstd -qc", "zstd"), ("gzip -c", "gzip")] {
        let harness = Harness::new();
        let root = harness.path("t");
        fs::create_dir_all(&root).unwrap();
        for number in 0..60 {
            fs::write(root.join(format!("file{number:02}")), noise(number + 1, 4000)).unwrap();
        }
        let command = format!(
            "tar -cf a t && split -b 20000 a p. && for p in p.*; do {compress} $p > $p.c; done"
        );
        shell(&command, harness.folder.path());
        let mut pieces: Vec<_> = fs::read_dir(harness.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
            .collect();
        pieces.sort();
        let mut archive = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let mut bytes = fs::read(piece).unwrap();
            if number == 5 {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0xff;
                bytes[middle + 1] ^= 0xff;
            }
            archive.extend_from_slice(&bytes);
        }
        let outcome = restore(&harness, &archive);
        assert_eq!(outcome.failed, None);
        let names: Vec<_> =
            outcome.files.keys().filter(|name| !name.ends_with(".incomplete")).collect();
        for name in &names {
            let original = fs::read(harness.path(name)).unwrap();
            // gzip decodes as a stream, and data before the failed checksum are not known to be
            // wrong: only the file with the damage may differ.
            if coding == "zstd" {
                assert!(outcome.files[*name] == original, "{name}");
            }
        }
        assert!(names.len() >= 50, "{coding}: {} of 60 files came back", names.len());
        assert!(!outcome.warnings.is_empty());
    }
}

#[test]
fn a_file_without_all_its_content_has_another_name() {
    let harness = Harness::new();
    fs::create_dir(harness.path("t")).unwrap();
    let content = noise(5, 2_000_000);
    fs::write(harness.path("t/large"), &content).unwrap();
    fs::write(harness.path("t/small"), noise(6, 9000)).unwrap();
    shell("tar -cf a t/small t/large", harness.folder.path());
    let archive = fs::read(harness.path("a")).unwrap();
    let outcome = restore(&harness, &archive[..1_000_000]);
    assert_eq!(outcome.files.len(), 2, "{:?}", outcome.files.keys());
    assert!(outcome.files.contains_key("t/small"));
    let kept = &outcome.files["t/large.incomplete"];
    assert!(kept.len() > 900_000 && content.starts_with(kept), "{}", kept.len());
    let warnings = outcome.warnings.join("\n");
    assert!(warnings.contains("t/large: the archive is cut off at byte 1000000"), "{warnings}");
    assert!(warnings.contains("the available data were kept as large.incomplete"), "{warnings}");
}

#[test]
fn bytes_behind_the_end_are_no_member() {
    let harness = Harness::new();
    let (expected, mut archive) = small(&harness, "tar -cf a t");
    archive.extend_from_slice(&noise(1, 5000));
    let outcome = restore(&harness, &archive);
    assert_eq!(outcome.files, expected);
    assert_eq!(outcome.warnings, Vec::<String>::new());
}

#[test]
fn impossible_numbers_are_no_reason_to_panic() {
    let harness = Harness::new();
    let (_, archive) = small(&harness, "tar --format=gnu -cf a t");
    for (field, width) in [(100, 8), (108, 8), (116, 8), (124, 12), (136, 12), (329, 8)] {
        for fill in [b'9', 0xff, 0x80, b'7', 0] {
            let mut damaged = archive.clone();
            let header = &mut damaged[512..1024];
            header[field..field + width].fill(fill);
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            let outcome = restore(&harness, &damaged);
            assert!(outcome.files.len() >= 6 || !outcome.warnings.is_empty(), "{field} {fill}");
        }
    }
}

/// Whatever is done to an archive, reading it ends, and ends with a word.
#[test]
fn archives_cut_up_at_random_are_read_to_an_end() {
    for command in
        ["tar --format=posix -cf a t", "tar -cf - t | zstd -qc > a", "tar -cf - t | gzip > a"]
    {
        let harness = Harness::new();
        let (_, archive) = small(&harness, command);
        for seed in 0..150u64 {
            let random = noise(seed + 1, 400);
            let number = |at: usize| {
                u32::from_le_bytes(random[at * 4..at * 4 + 4].try_into().unwrap()) as usize
            };
            let mut damaged = archive.clone();
            for change in 0..1 + number(0) % 6 {
                let at = number(3 * change + 1) % damaged.len();
                let length = (number(3 * change + 2) % 3000).min(damaged.len() - at);
                match number(3 * change + 3) % 5 {
                    0 => damaged[at] ^= 1 << (length % 8),
                    1 => drop(damaged.drain(at..at + length.min(damaged.len() - 1))),
                    2 => {
                        let part = damaged[at..at + length].to_vec();
                        damaged.splice(at..at, part);
                    }
                    3 => damaged[at..at + length].fill(0),
                    _ => damaged.truncate(at.max(1)),
                }
            }
            let path = write(&harness.path("damaged"), &damaged);
            let kept = Kept::default();
            let options = runs::verify::VerifyOptions {
                from: path.into(),
                ring_bytes: 4 << 20,
                ..Default::default()
            };
            let result = runs::verify::verify(options, &kept, &flow::cancel::Cancel::new());
            if let Ok(report) = result {
                assert_eq!(report.is_sound(), kept.warnings().is_empty(), "{command} {seed}");
            }
        }
    }
}

/// The end mark begins a block of the ring, or is within one, and the length of the last member is
/// unknown.
#[test]
fn behind_a_lost_header_the_end_mark_is_seen_wherever_blocks_are_cut() {
    for end_bytes in [1 << 20, (1 << 20) - 512, (1 << 20) + 512, 2000 * 512] {
        let harness = Harness::new();
        let folder = harness.folder.path();
        fs::write(folder.join("first"), [b'f'; 512]).unwrap();
        fs::write(folder.join("last"), vec![b'l'; end_bytes - 3 * 512]).unwrap();
        shell("tar --format=ustar -b 1 -cf a.tar first last", folder);
        let mut bytes = fs::read(harness.path("a.tar")).unwrap();
        assert_eq!(bytes.len(), end_bytes + 1024);
        bytes[1024..1536].fill(0x55);
        let (report, kept) = verify_archive(&write(&harness.path("a.tar"), &bytes), None);
        assert!(!report.is_sound());
        let told = kept.warnings();
        let of_end = told.iter().filter(|line| line.contains("end-of-archive mark"));
        assert_eq!(of_end.count(), 0, "{end_bytes}: {told:?}");
        let cut = write(&harness.path("cut.tar"), &bytes[..end_bytes]);
        let (_, kept) = verify_archive(&cut, None);
        kept.expect_warning("without an end-of-archive mark");
    }
}
