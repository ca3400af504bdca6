//! Restores of some paths from an archive with an index: the result equals a restore from a pipe,
//! which is read to its end, and hardly more than these paths is read.

use std::fs;
use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use proptest::prelude::*;
use runs::backup::{BackupOptions, backup};
use runs::restore::{Checksums, RestoreOptions, RestoreReport};
use runs::selection::Selection;
use testkit::samples::noise;

use crate::harness::{Harness, Kept, Times, assert_same_tree, describe, shell};

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];
const FOLDERS: usize = 8;

/// Folders `f0` to `f7` below `tree`, each with a large file and many small ones.
fn big_tree(harness: &Harness, large_bytes: usize) -> PathBuf {
    let root = harness.path("tree");
    for folder in 0..FOLDERS {
        let path = root.join(format!("f{folder}"));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("large"), noise(folder as u64 + 1, large_bytes + folder)).unwrap();
        for file in 0..30usize {
            let content = noise((folder * 100 + file) as u64, file * 97);
            fs::write(path.join(format!("small{file:02}")), content).unwrap();
        }
    }
    fs::hard_link(root.join("f1/small07"), root.join("f5/link")).unwrap();
    fs::hard_link(root.join("f1/small07"), root.join("f6/link")).unwrap();
    shell("touch -d @1700000000 f*", &root);
    root
}

fn archive_of(harness: &Harness, tree: &Path, compression: &str) -> PathBuf {
    let target = harness.path("a");
    let options = BackupOptions {
        sources: vec![tree.to_path_buf()],
        target: target.clone().into(),
        compression: compression.parse::<Compression>().unwrap(),
        ..Default::default()
    };
    backup(&options, &Kept::default(), &Cancel::new()).unwrap();
    target
}

/// Restores the paths below the tree, from `from`, to `into`.
fn restore(harness: &Harness, from: &Path, paths: &[&str], into: &str) -> (RestoreReport, Kept) {
    let tree = harness.path("tree");
    let below = |path: &&str| tree.join(path).as_os_str().as_encoded_bytes().to_vec();
    let selection = Selection::new(paths.iter().map(below));
    let options = RestoreOptions {
        from: from.into(),
        selection,
        strip_components: tree.components().count() - 1,
        ..Default::default()
    };
    harness.restore_with(options, into)
}

/// The same through a pipe.
fn restore_piped(harness: &Harness, paths: &[&str], into: &str) -> Kept {
    let folder = harness.folder.path().to_path_buf();
    shell("rm -f fifo; mkfifo fifo", &folder);
    let writer = std::thread::spawn(move || shell("cat a > fifo", &folder));
    let (_, kept) = restore(harness, &harness.path("fifo"), paths, into);
    writer.join().unwrap();
    kept
}

#[test]
fn only_what_is_selected_is_read() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = big_tree(&harness, 5_000_000);
        let archive = archive_of(&harness, &tree, compression);
        let length_bytes = fs::metadata(&archive).unwrap().len();
        for (paths, parts) in [(&["f3/small04"][..], 4), (&["f2"], 3), (&["f0", "f7/large"], 2)] {
            let _ = fs::remove_dir_all(harness.path("out"));
            let (report, kept) = restore(&harness, &archive, paths, "out");
            assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
            assert!(matches!(report.checksums, Checksums::Hold { blocks: 1.. }), "{report:?}");
            let read_bytes = report.run.target_bytes;
            // Of a compressed archive whole chunks are read, of eight megabytes each.
            let most_bytes = match compression {
                "none" => length_bytes / parts,
                _ => length_bytes * 3 / 4,
            };
            assert!(read_bytes <= most_bytes, "{compression} {paths:?}: {read_bytes}");
            for path in paths {
                let (from, to) = (tree.join(path), harness.path("out").join(path));
                if from.is_dir() {
                    assert_same_tree(&from, &to, Times::Exact);
                } else {
                    assert!(fs::read(from).unwrap() == fs::read(to).unwrap(), "{path}");
                }
            }
        }
    }
}

#[test]
fn a_link_whose_file_is_not_selected_brings_the_content() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = big_tree(&harness, 3_000_000);
        let archive = archive_of(&harness, &tree, compression);
        let (report, kept) = restore(&harness, &archive, &["f5/link", "f6/link"], "out");
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        assert!(report.not_found.is_empty());
        let lines = describe(&harness.path("out"));
        let links = lines.iter().filter(|line| line.contains("/link|f|") && line.ends_with("|2"));
        assert_eq!(links.count(), 2, "{lines:#?}");
        let content = fs::read(harness.path("out/f6/link")).unwrap();
        assert_eq!(content, fs::read(tree.join("f1/small07")).unwrap());
    }
}

#[test]
fn what_is_not_there_is_named_and_the_archive_hardly_read() {
    let harness = Harness::new();
    let tree = big_tree(&harness, 3_000_000);
    let archive = archive_of(&harness, &tree, "none");
    let (report, kept) = restore(&harness, &archive, &["f9", "f0/small00"], "out");
    assert_eq!(report.not_found.len(), 1);
    assert_eq!(kept.warnings().len(), 1);
    // Of 24 MB.
    assert!(report.run.target_bytes <= 4 << 20, "{}", report.run.target_bytes);
}

/// Suggestions come from the index: the archive is not read for them.
#[test]
fn a_folder_that_was_left_out_and_a_typo_are_known() {
    let harness = Harness::new();
    let tree = big_tree(&harness, 3_000_000);
    let archive = archive_of(&harness, &tree, "none");
    let (report, _) = restore(&harness, &archive, &["f1/small07"], "out");
    assert_eq!(report.not_found, []);
    let asked = ["small07", "f1/smal07", "f1/small08"];
    let (report, kept) = restore(&harness, &archive, &asked, "out2");
    assert_eq!(report.not_found.len(), 2);
    for (missing, end) in report.not_found.iter().zip(["/f0/small07", "/f1/small07"]) {
        let near = missing.near.as_ref().unwrap();
        assert!(near.ends_with(end.as_bytes()), "{missing:?}");
    }
    assert_eq!(kept.warnings().len(), 2);
    assert!(report.run.target_bytes <= 4 << 20, "{}", report.run.target_bytes);
}

#[test]
fn damage_inside_is_named_and_damage_outside_is_not_met() {
    for compression in COMPRESSIONS {
        let harness = Harness::new();
        let tree = big_tree(&harness, 3_000_000);
        let archive = archive_of(&harness, &tree, compression);
        let mut bytes = fs::read(&archive).unwrap();
        // The data do not compress: the fourth folder starts after three eighths, with the large
        // file.
        let middle = bytes.len() * 7 / 16;
        bytes[middle..middle + 50_000].fill(0x55);
        fs::write(&archive, &bytes).unwrap();
        let (_, kept) = restore(&harness, &archive, &["f0", "f7"], "outside");
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        let (_, kept) = restore(&harness, &archive, &["f3", "f4"], "inside");
        kept.expect_warning(if compression == "none" { "large" } else { "are missing" });
        for folder in ["f3", "f4"] {
            for file in 0..30 {
                let path = format!("{folder}/small{file:02}");
                let restored = fs::read(harness.path("inside").join(&path)).unwrap_or_default();
                let expected = fs::read(tree.join(&path)).unwrap();
                // Files that share a lost chunk with the large file are lost as well.
                assert!(restored == expected || compression != "none", "{compression} {path}");
            }
        }
    }
}

/// Unselected files are in the same block, and damaged as well.
#[test]
fn damage_is_named_of_what_is_restored_alone() {
    let harness = Harness::new();
    let tree = big_tree(&harness, 0);
    let archive = archive_of(&harness, &tree, "none");
    let mut bytes = fs::read(&archive).unwrap();
    for path in ["f3/small20", "f3/small21"] {
        let content = fs::read(tree.join(path)).unwrap();
        let at = bytes.windows(content.len()).position(|window| window == content).unwrap();
        bytes[at] ^= 1;
    }
    fs::write(&archive, &bytes).unwrap();
    let (_, kept) = restore(&harness, &archive, &["f3/small20"], "one");
    kept.expect_warning("small20");
    let named = |path: &str| kept.warnings().iter().filter(|it| it.contains(path)).count();
    assert_eq!((named("small20"), named("small21")), (1, 0), "{:?}", kept.warnings());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_and_a_file_give_the_same(
        compression in 0..COMPRESSIONS.len(),
        large_bytes in 0usize..2_000_000,
        picks in proptest::collection::vec((0..FOLDERS, 0usize..33), 0..5),
    ) {
        let harness = Harness::new();
        let tree = big_tree(&harness, large_bytes);
        let archive = archive_of(&harness, &tree, COMPRESSIONS[compression]);
        let paths: Vec<String> = picks
            .iter()
            .map(|&(folder, file)| match file {
                30 => format!("f{folder}/large"),
                31 => format!("f{folder}"),
                32 => format!("f{folder}/nothing"),
                _ => format!("f{folder}/small{file:02}"),
            })
            .collect();
        let mut paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
        // A link without its file is the one thing that a pipe does not give.
        paths.push("f1/small07");
        let (_, kept) = restore(&harness, &archive, &paths, "file");
        let piped = restore_piped(&harness, &paths, "pipe");
        prop_assert_eq!(kept.warnings(), piped.warnings());
        shell("diff -r --no-dereference pipe file", harness.folder.path());
        // Directories that were made on the way have the time of that.
        let objects = |into: &str| -> Vec<String> {
            let lines = describe(&harness.path(into)).into_iter();
            lines.filter(|line| !line.contains("|d|") || line.contains("|-|1700000000.")).collect()
        };
        prop_assert_eq!(objects("pipe"), objects("file"));
    }
}

/// An archive with a tar archive among its members, and the place of that member's header.
fn nested(harness: &Harness) -> (Vec<u8>, usize) {
    let tree = big_tree(harness, 10_000);
    shell("tar -cf f3/inner.tar f1 f2", &tree);
    let archive = archive_of(harness, &tree, "none");
    let mut place = None;
    let options = runs::list::ListOptions { from: archive.clone().into(), ..Default::default() };
    runs::list::list(options, &Kept::default(), &Cancel::new(), |listed| {
        if listed.member.path.ends_with(b"inner.tar") {
            place = Some(listed.header_offset_bytes.bytes() as usize);
        }
    })
    .unwrap();
    (fs::read(archive).unwrap(), place.unwrap())
}

#[test]
fn an_archive_inside_a_lost_member_is_not_taken_for_the_archive() {
    // A flipped bit, zeros that look like the end of the archive, and half of the archive inside.
    for (length, fill) in [(1024, 0xa5), (2048, 0), (60_000, 0)] {
        let harness = Harness::new();
        let (mut bytes, place) = nested(&harness);
        bytes[place..place + length].fill(fill);
        fs::write(harness.path("a"), bytes).unwrap();
        let options = RestoreOptions { from: harness.path("a").into(), ..Default::default() };
        let (_, kept) = harness.restore_with(options, "out");
        assert!(!kept.warnings().is_empty());
        let tree = harness.path("tree");
        let out = harness.path("out").join(tree.strip_prefix("/").unwrap());
        shell(&format!("rm {}/f3/inner.tar", tree.display()), harness.folder.path());
        let command = format!("diff -r --no-dereference {} {}", tree.display(), out.display());
        shell(&command, harness.folder.path());
        // An archive inside would have been extracted beside the tree.
        assert!(!harness.path("out/f1").exists() && !harness.path("out/f2").exists());
    }
}
