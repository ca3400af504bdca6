//! Archives of our own, with their index: there and back, damaged, and compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use runs::backup::{BackupOptions, backup};
use runs::list::{Detail, ListOptions, ListWay};
use runs::restore::Checksums;

use crate::harness::{
    Harness, Kept, Times, assert_same_tree, list_with, shell, verify_archive, write,
};

/// Backs `tree` up to `a` in the harness's folder. Paths in the archive are absolute ones without
/// the slash, so the tree is found below the root.
fn archive_of(harness: &Harness, tree: &Path, compression: &str) -> PathBuf {
    let target = harness.path("a");
    let _ = fs::remove_file(&target);
    let options = BackupOptions {
        sources: vec![tree.to_path_buf()],
        target: target.clone().into(),
        compression: compression.parse::<Compression>().unwrap(),
        ..Default::default()
    };
    backup(&options, &Kept::default(), &Cancel::new()).unwrap();
    target
}

const COMPRESSIONS: [&str; 3] = ["none", "zstd:3", "gzip:6"];

#[test]
fn there_and_back() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = harness.tree("tree");
        let archive = archive_of(&harness, &tree, compression);
        let (report, kept) = harness.restore(&archive, "out");
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        assert!(matches!(report.checksums, Checksums::Hold { blocks: 1.. }), "{report:?}");
        let restored = harness.path("out").join(tree.strip_prefix("/").unwrap());
        assert_same_tree(&tree, &restored, Times::Exact);
    }
}

#[test]
fn a_sound_archive_verifies_and_is_like_the_live_tree() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = harness.tree("tree");
        let archive = archive_of(&harness, &tree, compression);
        let (report, kept) = verify_archive(&archive, Some(Path::new("/")));
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        assert!(report.is_sound());
        assert!(report.checked.index);
        // A second name of a file has no content of its own.
        assert_eq!(report.checked.content_hashes, report.run.files);
        assert!(report.checked.blocks.is_some_and(|blocks| blocks > 0));
        assert_eq!(report.checked.compared, report.run.members);
    }
}

#[test]
fn a_pipe_is_verified_as_well() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = harness.tree("tree");
        archive_of(&harness, &tree, compression);
        shell("mkfifo fifo", harness.folder.path());
        let folder = harness.folder.path().to_path_buf();
        let writer = std::thread::spawn(move || shell("cat a > fifo", &folder));
        let (report, kept) = verify_archive(&harness.path("fifo"), None);
        writer.join().unwrap();
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert!(report.checked.index);
        assert_eq!(report.checked.content_hashes, report.run.files);
        assert!(matches!(report.checked.blocks, Some(3..)), "{:?}", report.checked.blocks);
    }
}

#[test]
fn a_pipe_is_held_against_the_checksums_that_come_last() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let archive = archive_of(&harness, &tree, "none");
    let sound = fs::read(&archive).unwrap();
    // Padding follows the 1233 bytes of a file; no hash covers it.
    let content = testkit::samples::noise(9, 1233);
    let at = sound.windows(1233).position(|window| window == content).unwrap() + 1233;
    for (place, blocks) in [(at, 1), (at + 100, 1)] {
        let mut damaged = sound.clone();
        damaged[place] ^= 1;
        write(&archive, &damaged);
        shell("rm -f fifo; mkfifo fifo", harness.folder.path());
        let folder = harness.folder.path().to_path_buf();
        let writer = std::thread::spawn(move || shell("cat a > fifo", &folder));
        let (report, kept) = verify_archive(&harness.path("fifo"), None);
        writer.join().unwrap();
        assert_eq!(report.damaged.total, blocks, "{:?}", kept.warnings());
        kept.expect_warning("the checksum of the 1048576 bytes at byte");
    }
}

#[test]
fn the_index_lists_what_the_headers_list() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = harness.tree("tree");
        let archive = archive_of(&harness, &tree, compression);
        let listing = |detail| {
            let (paths, report, kept) = list_with(ListOptions {
                from: archive.clone().into(),
                detail,
                ..Default::default()
            });
            assert_eq!(kept.warnings(), Vec::<String>::new());
            (paths, report.way)
        };
        let (from_headers, way) = listing(Detail::Everything);
        assert_eq!(way, ListWay::Headers);
        let (from_index, way) = listing(Detail::Index);
        assert_eq!(
            way,
            ListWay::Index { headers_checked: if compression == "none" { 32 } else { 3 } },
            "{compression}"
        );
        assert_eq!(from_headers, from_index);
    }
}

/// Some bits of compressed data change nothing: a match may begin a byte earlier in a run of zeros.
/// No checksum of the format covers them, and the content is restored as written.
#[test]
fn every_flipped_byte_is_found_or_changes_nothing() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = harness.path("t");
        fs::create_dir(&tree).unwrap();
        for number in 0..6usize {
            let content = testkit::samples::noise(number as u64 + 1, number * 900);
            fs::write(tree.join(format!("file{number}")), content).unwrap();
        }
        let archive = fs::read(archive_of(&harness, &tree, compression)).unwrap();
        for at in (0..archive.len()).step_by(101) {
            let mut damaged = archive.clone();
            damaged[at] ^= 0x10;
            let path = write(&harness.path("damaged"), &damaged);
            let options = runs::verify::VerifyOptions { from: path.into(), ..Default::default() };
            let kept = Kept::default();
            match runs::verify::verify(options, &kept, &Cancel::new()) {
                Ok(report) if report.is_sound() => {
                    assert_ne!(compression, "none", "byte {at} {report:?}");
                    eprintln!("{compression}: byte {at} of {}", archive.len());
                    let (tool, _) = compression.split_once(':').unwrap();
                    let decompress = format!("{tool} -dc <damaged >d && {tool} -dc <a >c");
                    shell(&format!("{decompress} && cmp c d"), harness.folder.path());
                }
                Ok(report) => assert!(report.warnings > 0),
                Err(error) => assert!(at < 512, "{compression} {at}: {error}"),
            }
        }
    }
}

/// The header of a gzip member has a time, a system and a field that every reader ignores; one bit
/// of a zstd frame has no meaning. The content is intact and is restored, but the medium is
/// damaged.
#[test]
fn every_flipped_bit_of_a_header_is_found() {
    for compression in ["zstd:3", "gzip:6"] {
        let harness = Harness::new();
        let tree = harness.path("t");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("file"), testkit::samples::noise(1, 3000)).unwrap();
        let archive = fs::read(archive_of(&harness, &tree, compression)).unwrap();
        // Headers of the index and the trailer, too.
        let magics = [&b"\x1f\x8b\x08\x04"[..], b"\x28\xb5\x2f\xfd"];
        let begins = |&at: &usize| magics.iter().any(|magic| archive[at..].starts_with(magic));
        let starts: Vec<usize> = (0..archive.len()).filter(begins).collect();
        assert_eq!(starts.len(), 3, "content, index and trailer");
        let header_bytes = if compression == "zstd:3" { 7 } else { 28 };
        let of_chunks = starts.iter().flat_map(|at| at * 8..(at + header_bytes) * 8);
        let bits: BTreeSet<usize> = (0..512).chain(of_chunks).collect();
        for bit in bits {
            let mut damaged = archive.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let path = write(&harness.path("damaged"), &damaged);
            let options = runs::verify::VerifyOptions { from: path.into(), ..Default::default() };
            if let Ok(report) = runs::verify::verify(options, &Kept::default(), &Cancel::new()) {
                assert!(!report.is_sound(), "{compression}: bit {bit} {report:?}");
            }
        }
    }
}

/// A changed header does not affect the content.
#[test]
fn a_changed_header_of_a_chunk_restores() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let mut archive = fs::read(archive_of(&harness, &tree, "gzip:6")).unwrap();
    archive[4] ^= 1;
    let path = write(&harness.path("damaged"), &archive);
    let (report, kept) = verify_archive(&path, None);
    assert!(!report.is_sound());
    let told = "the header of the compressed chunk at byte 0 of the source was changed";
    assert!(kept.warnings().iter().any(|line| line.contains(told)), "{:?}", kept.warnings());
    let (_, kept) = harness.restore(&path, "into");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    let below = tree.strip_prefix("/").unwrap();
    assert_same_tree(&tree, &harness.path("into").join(below), Times::Exact);
}

/// Foreign members before an archive, after it and among the remains of an older one are no damage.
#[test]
fn members_of_others_beside_an_archive_are_no_damage() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    archive_of(&harness, &tree, "gzip:6");
    let folder = harness.folder.path();
    shell(
        "tar -czf foreign tree && echo text | gzip >text && printf '\\037\\213\\010junk' >junk",
        folder,
    );
    for parts in ["foreign a", "a foreign", "a text", "a foreign a", "a text a", "a junk text a"] {
        shell(&format!("cat {parts} >several"), folder);
        let (_, kept) = verify_archive(&harness.path("several"), None);
        let told = kept.warnings().iter().any(|line| line.contains("header of the compressed"));
        assert!(!told, "{parts}: {:?}", kept.warnings());
    }
}

/// Recompressing an archive leaves no Takeup header, and no damage.
#[test]
fn an_archive_that_gzip_has_packed_anew_is_sound() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    archive_of(&harness, &tree, "gzip:6");
    shell("gzip -dc a | gzip -1 >b", harness.folder.path());
    let (report, kept) = verify_archive(&harness.path("b"), None);
    assert!(report.is_sound(), "{:?}", kept.warnings());
    assert!(report.checked.index);
}

#[test]
fn damage_is_named_by_file() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let archive = archive_of(&harness, &tree, "none");
    let mut bytes = fs::read(&archive).unwrap();
    let content = fs::read(tree.join("large")).unwrap();
    let at = bytes.windows(64).position(|window| window == &content[1_000_000..1_000_064]).unwrap();
    bytes[at + 3] ^= 1;
    let damaged = write(&harness.path("damaged"), &bytes);
    let (report, _) = verify_archive(&damaged, None);
    let large = format!("{}/large", tree.strip_prefix("/").unwrap().display());
    let named: Vec<_> =
        report.damaged.items.iter().filter(|item| item.path == large.as_bytes()).collect();
    assert_eq!(named.len(), 1, "{:?}", report.damaged);
    assert!(named[0].what.contains("hash differs"), "{}", named[0].what);
    let (report, kept) = harness.restore(&damaged, "out");
    assert_eq!(report.checksums, Checksums::Damaged { blocks: 1 });
    kept.expect_warning("1 of");
    let named = format!("{large}: its content in the archive is not what was backed up");
    kept.expect_warning(&named);
    assert_eq!(kept.warnings().len(), 2, "{:?}", kept.warnings());
}

#[test]
fn a_member_that_is_lost_is_named_by_the_index() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let archive = archive_of(&harness, &tree, "none");
    let mut bytes = fs::read(&archive).unwrap();
    let (mut place, wanted) = (0, "folder2/file07");
    let options = ListOptions { from: archive.clone().into(), ..Default::default() };
    runs::list::list(options, &Kept::default(), &Cancel::new(), |listed| {
        if listed.member.path.ends_with(wanted.as_bytes()) {
            place = listed.header_offset_bytes.bytes() as usize;
        }
    })
    .unwrap();
    // The pax header and the header proper.
    for unit in 0..3 {
        bytes[place + unit * 512 + 150] ^= 0x77;
    }
    let (report, _) = verify_archive(&write(&harness.path("damaged"), &bytes), None);
    let lost = report.damaged.items.iter().find(|item| item.what.contains("it is lost"));
    let lost = lost.unwrap_or_else(|| panic!("{:?}", report.damaged));
    assert!(lost.path.ends_with(wanted.as_bytes()), "{:?}", String::from_utf8_lossy(&lost.path));
}

#[test]
fn touched_and_untouched_files_are_told_apart_by_the_index() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let archive = archive_of(&harness, &tree, "none");
    // Same size, same time of modification; the time of change gives it away.
    shell(
        "touch -r unit stamp && printf X | dd of=unit bs=1 seek=9 conv=notrunc 2>&1 \
         && touch -r stamp unit && rm stamp",
        &tree,
    );
    let (report, _) = verify_archive(&archive, Some(Path::new("/")));
    let unit = format!("{}/unit", tree.strip_prefix("/").unwrap().display());
    let changed: Vec<_> = report.changed.items.iter().map(|item| item.path.clone()).collect();
    assert!(changed.contains(&unit.into_bytes()), "{report:?}");
    assert_eq!(report.differs.total, 0);
}

#[test]
fn the_index_is_found_behind_a_concatenation_but_not_trusted() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    archive_of(&harness, &tree, "none");
    shell("cat a a > twice", harness.folder.path());
    let (report, kept) = verify_archive(&harness.path("twice"), None);
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(report.checked.index);
    assert_eq!(report.checked.content_hashes, report.run.files);
    // Blocks of the first archive, which start where the file does.
    assert!(matches!(report.checked.blocks, Some(1..)));
}
