//! Sets on one volume: block sizes, appending, parts of a set, and reading them with plain tools.

use std::path::Path;

use crate::trees::{Tree, assert_same, tree};
use crate::{backup, cartridge, check, device, fresh, list, restore, rewind, run, shell, verify};

fn round_trip(options: &[&str]) {
    round_trip_of(&tree(1, 24, 40_000), options);
}

fn round_trip_of(tree: &Tree, options: &[&str]) {
    fresh("round", 16);
    backup(&tree.path(), options).with_code(0);
    verify(&["--against", "/"]).with_code(0);
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(0);
    assert_same(&tree.path(), &tree.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn block_sizes_in_variable_mode() {
    // A block takes some milliseconds here, whatever its size.
    round_trip_of(&tree(2, 4, 10_000), &["--block-size", "512"]);
    for size in ["10k", "64k", "1M"] {
        round_trip(&["--block-size", size]);
    }
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn block_sizes_in_fixed_mode() {
    round_trip_of(&tree(2, 4, 10_000), &["--block-size", "512", "--block-mode", "fixed"]);
    for size in ["32k", "1M"] {
        round_trip(&["--block-size", size, "--block-mode", "fixed"]);
    }
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn compressed() {
    round_trip(&["--compress", "zstd", "--segment-size", "1M"]);
    round_trip(&["--compress", "gzip", "--block-size", "64k"]);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_block_that_is_too_large_is_refused_before_anything_is_written() {
    let tree = tree(2, 3, 1000);
    fresh("large", 16);
    // Above both limits: 1 MiB of tgtd's drive, 8 MiB of sim's.
    let (source, device) = (tree.path(), device());
    let source = source.to_str().unwrap();
    let said = run(&["backup", source, "--to", &device, "--block-size", "12M", "--ring", "128M"])
        .with_code(1);
    let (limit, mib) = match device.as_str() {
        "/dev/nst0" => ("1048576", "1 MiB"),
        _ => ("8388608", "8 MiB"),
    };
    let text = said.errors;
    assert!(text.contains(limit) || text.contains(mib), "the limit is not named: {text}");
    rewind();
    // A blank tape cannot be spaced over.
    let spaced = shell(Path::new("/"), "mt fsf 1");
    assert_ne!(spaced.code, Some(0), "something was written");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn sets_are_appended() {
    let (first, second) = (tree(3, 10, 30_000), tree(4, 12, 20_000));
    fresh("append", 32);
    backup(&first.path(), &[]).with_code(0);
    backup(&second.path(), &["--compress", "zstd"]).with_code(0);
    backup(&first.path(), &["--block-size", "64k", "--segment-size", "128k"]).with_code(0);
    let sets = list(&["--sets", "--json"]).with_code(0);
    let found = sets.json()["sets"].as_array().map(Vec::len);
    assert_eq!(found, Some(3), "{}", sets.output);
    let answer: service::list::SetsAnswer = check(&sets.json());
    assert_eq!(answer.sets[1].number, 2);
    for (number, tree) in [("1", &first), ("2", &second), ("3", &first)] {
        let into = tempfile::tempdir().unwrap();
        restore(into.path(), &["--set", number]).with_code(0);
        assert_same(&tree.path(), &tree.restored(into.path()));
    }
    // The last set is the default.
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(0);
    assert_same(&first.path(), &first.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn streams_follow_one_another() {
    let tree = tree(10, 4, 100_000);
    fresh("streams", 32);
    let device = device();
    for name in ["first", "second", "third"] {
        let content = vec![name.as_bytes()[0]; 200_000];
        let source = tree.folder().join(name);
        std::fs::write(&source, content).unwrap();
        let from = source.to_str().unwrap();
        run(&["pipe", "--from", from, "--to", &device, "--block-size", "10k"]).with_code(0);
    }
    // The tape is at its beginning now, and the data after it are not overwritten.
    rewind();
    let again = tree.folder().join("first");
    let again = again.to_str().unwrap();
    run(&["pipe", "--from", again, "--to", &device]).with_code(1).complains(&["--overwrite"]);
    let same = "mt rewind; for name in first second third; do
        dd if=$TAPE bs=10k status=none | cmp - $name; done";
    shell(tree.folder(), same).with_code(0);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn one_file_is_restored_without_reading_the_tape() {
    let tree = tree(5, 40, 200_000);
    fresh("one", 32);
    backup(&tree.path(), &["--segment-size", "2M", "--block-size", "64k"]).with_code(0);
    let into = tempfile::tempdir().unwrap();
    let wanted = tree.member("folder6/file 0034");
    let said = restore(into.path(), &["--json", &wanted]).with_code(0);
    let found = tree.restored(into.path()).join("folder6/file 0034");
    let content = std::fs::read(tree.path().join("folder6/file 0034")).unwrap();
    assert!(std::fs::read(found).unwrap() == content, "another content");
    // The archive has 8 MB; index and file together less than one.
    let _: service::restore::RestoreAnswer = check(&said.json());
    let read = said.json()["tape"]["bytes"].as_u64();
    assert!(read.is_some_and(|bytes| bytes < 2_000_000), "read {read:?}: {}", said.output);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn plain_tar_restores_every_segment() {
    let tree = tree(6, 30, 100_000);
    fresh("plain", 32);
    let done = backup(&tree.path(), &["--segment-size", "512k", "--json"]).with_code(0).json();
    let segments = done["tape"]["segments"].as_u64().unwrap();
    assert!(segments > 3, "{segments} segments");
    let into = tempfile::tempdir().unwrap();
    shell(
        into.path(),
        &format!(
            "mt rewind
             for file in $(seq 0 {last}); do
                 mt asf $file
                 tar --extract --warning=no-unknown-keyword -b 2048
             done",
            last = segments - 1
        ),
    )
    .with_code(0);
    assert_same(&tree.path(), &tree.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn the_report_has_what_the_drive_did() {
    let tree = tree(7, 30, 100_000);
    fresh("report", 32);
    let done = backup(&tree.path(), &["--json", "--segment-size", "1M"]).with_code(0).json();
    let _: service::backup::BackupAnswer = check(&done);
    let tape = &done["tape"];
    for name in ["bytes", "blocks", "write_seconds", "synchronise_seconds", "ring_ran_empty"] {
        assert!(tape[name].is_number(), "no {name} in {tape:#}");
    }
    let blocks = tape["blocks"].as_u64().unwrap();
    assert_eq!(tape["bytes"].as_u64(), Some(blocks << 20), "blocks of 1 MiB: {tape:#}");
    assert!(tape["volumes"] == 1, "{tape:#}");
}

mod on_sim_drive {
    use super::*;

    /// The machine died during the write: there is no filemark at the end.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_set_is_appended_to_one_that_died() {
        let (first, second) = (tree(11, 10, 60_000), tree(12, 8, 40_000));
        fresh("died", 32);
        backup(&first.path(), &["--block-size", "10k", "--segment-size", "200k"]).with_code(0);
        cartridge(&["cut", "died", "30"]);
        cartridge(&["load", "died"]);
        backup(&second.path(), &["--block-size", "10k"]).with_code(0);
        let into = tempfile::tempdir().unwrap();
        restore(into.path(), &[]).with_code(0);
        assert_same(&second.path(), &second.restored(into.path()));
        let objects = cartridge(&["objects", "died"]);
        assert!(objects.starts_with("10240x"), "{objects}");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn blocks_lie_as_the_format_says() {
        let tree = tree(8, 30, 100_000);
        fresh("format", 32);
        backup(&tree.path(), &["--segment-size", "1M", "--block-size", "128k"]).with_code(0);
        let objects = cartridge(&["objects", "format"]);
        for run in objects.split(' ') {
            assert!(run == "|" || run.starts_with("131072"), "{objects}");
        }
        assert!(objects.ends_with('|'), "{objects}");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn compression_of_the_drive_is_switched_and_left() {
        let tree = tree(9, 3, 10_000);
        fresh("compression", 16);
        let page = "sg_modes -6 -p 0x0f /dev/$(ls /sys/class/scsi_tape/${TAPE#/dev/}/device/\
                    scsi_generic) | sed -n 's/^ 00     0f 0e \\(..\\) .*/\\1/p'";
        let compression = || shell(Path::new("/"), page).with_code(0).output.trim().to_owned();
        backup(&tree.path(), &["--drive-compression", "off"]).with_code(0);
        assert_eq!(compression(), "40", "capable and off");
        backup(&tree.path(), &[]).with_code(0);
        assert_eq!(compression(), "40", "left as it was");
        backup(&tree.path(), &["--drive-compression", "on"]).with_code(0);
        assert_eq!(compression(), "c0", "capable and on");
    }
}
