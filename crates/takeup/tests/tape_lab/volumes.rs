//! Sets over several volumes.

use std::path::Path;

use crate::trees::{Tree, assert_same, tree};
use crate::{backup, cartridge, device, fresh, list, restore, run, shell, verify};

/// Blank cartridges `NAME1` to `NAME4`, the first of them loaded.
pub fn rack(name: &str, mib: u32) {
    for number in (1..=4).rev() {
        cartridge(&["new", &format!("{name}{number}"), &mib.to_string()]);
    }
    cartridge(&["load", &format!("{name}1")]);
}

/// The option with which the operator loads `NAME` with the number of the volume.
pub fn changer(name: &str) -> [String; 2] {
    ["--change-command".to_owned(), format!("cartridge load {name}$TAKEUP_VOLUME")]
}

/// 24 files of 500 kB over cartridges of 6 MiB.
fn spread(name: &str, options: &[&str]) -> Tree {
    let tree = tree(20, 24, 500_000);
    rack(name, 6);
    let [flag, command] = changer(name);
    let mut all = vec![flag.as_str(), command.as_str()];
    all.extend(options);
    let done = backup(&tree.path(), &[&all[..], &["--json"]].concat()).with_code(0).json();
    let volumes = done["tape"]["volumes"].as_u64().unwrap();
    assert!((2..=4).contains(&volumes), "{volumes} volumes");
    tree
}

fn back_from(tree: &Tree, name: &str) {
    let [flag, command] = changer(name);
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[&flag, &command]).with_code(0);
    assert_same(&tree.path(), &tree.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_hundred_megabytes_over_three_volumes() {
    let tree = tree(21, 25, 4_000_000);
    rack("big", 32);
    let [flag, command] = changer("big");
    let options = [&flag, &command, "--compress", "zstd:1", "--segment-size", "24M", "--json"];
    let done = backup(&tree.path(), &options).with_code(0).json();
    assert_eq!(done["tape"]["volumes"].as_u64(), Some(3), "{done:#}");
    let bytes = done["source_bytes"].as_u64().unwrap();
    assert!((90_000_000..120_000_000).contains(&bytes), "{bytes} bytes");
    verify(&[&flag, &command]).with_code(0);
    back_from(&tree, "big");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn plain_volumes_come_back() {
    let tree = spread("plain", &[]);
    back_from(&tree, "plain");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn small_segments_and_small_blocks_come_back() {
    let tree = spread("small", &["--segment-size", "700k", "--block-size", "10k"]);
    back_from(&tree, "small");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn fixed_blocks_come_back() {
    let tree = spread("fixed", &["--block-mode", "fixed", "--block-size", "32k"]);
    back_from(&tree, "fixed");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn tar_lists_and_extracts_the_volumes() {
    let tree = spread("tar", &["--block-size", "64k"]);
    let into = tempfile::tempdir().unwrap();
    cartridge(&["load", "tar1"]);
    let script = "tar --extract --multi-volume -b 128 --warning=no-unknown-keyword \
                  --new-volume-script='cartridge load tar$TAR_VOLUME'";
    let said = shell(into.path(), script).with_code(0);
    assert!(!said.errors.contains("rror"), "{}", said.errors);
    assert_same(&tree.path(), &tree.restored(into.path()));
    cartridge(&["load", "tar1"]);
    let listed = shell(into.path(), &script.replace("--extract", "--list")).with_code(0);
    assert!(listed.output.contains("folder6/file 0020"), "{}", listed.output);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_wrong_volume_is_refused_and_asked_for_again() {
    let tree = spread("wrong", &[]);
    fresh("stranger", 4);
    // First a blank cartridge, then the volume before, then the right one.
    let command = "case $TAKEUP_ATTEMPT in
        1) cartridge load stranger ;;
        2) cartridge load wrong$(( TAKEUP_VOLUME == 1 ? 2 : TAKEUP_VOLUME - 1 )) ;;
        *) cartridge load wrong$TAKEUP_VOLUME ;;
        esac";
    let into = tempfile::tempdir().unwrap();
    cartridge(&["load", "wrong1"]);
    restore(into.path(), &["--change-command", command]).with_code(0);
    assert_same(&tree.path(), &tree.restored(into.path()));
    // Never the right one: the run ends with an error.
    let other = tempfile::tempdir().unwrap();
    cartridge(&["load", "wrong1"]);
    restore(other.path(), &["--change-command", "cartridge load stranger"])
        .with_code(1)
        .complains(&["volume"]);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn the_volume_that_is_full_is_refused_as_the_next() {
    let tree = tree(22, 12, 500_000);
    rack("same", 4);
    let command = "if [ $TAKEUP_ATTEMPT = 1 ]; then cartridge load same1; else \
                   cartridge load same$TAKEUP_VOLUME; fi";
    backup(&tree.path(), &["--change-command", command]).with_code(0);
    back_from(&tree, "same");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn without_a_second_volume_it_is_said_what_is_safe() {
    let tree = tree(23, 12, 500_000);
    fresh("only", 4);
    let said = backup(&tree.path(), &["--segment-size", "1M"]).with_code(1);
    assert!(said.errors.contains("segment"), "{}", said.errors);
    // The finished segments can be restored.
    let into = tempfile::tempdir().unwrap();
    let said = restore(into.path(), &[]);
    assert_ne!(said.code, Some(0), "a set without its end is no success: {}", said.errors);
    let intact = crate::trees::intact_files(&tree.path(), &tree.restored(into.path()));
    assert!(intact.len() >= 4, "only {intact:?}: {}", said.errors);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn killed_in_the_second_volume() {
    let tree = tree(24, 24, 500_000);
    rack("killed", 4);
    let device = device();
    let [flag, command] = changer("killed");
    let source = tree.path();
    let mut child = crate::takeup(&[
        "backup",
        source.to_str().unwrap(),
        "--to",
        &device,
        "--segment-size",
        "800k",
        "--block-size",
        "64k",
        "--rate-limit",
        "1M",
        "--ring",
        "8M",
        &flag,
        &command,
    ])
    .stdout(std::process::Stdio::null())
    .stderr(std::process::Stdio::null())
    .spawn()
    .unwrap();
    wait_until("the second volume", || cartridge(&["loaded"]) == "killed2");
    let written = written_bytes();
    wait_until("a megabyte on it", || written_bytes() > written + 1_000_000);
    // The program, not the `timeout` around it.
    shell(Path::new("/"), &format!("kill -9 $(cat /proc/{0}/task/{0}/children)", child.id()))
        .with_code(0);
    child.wait().unwrap();

    // Finished segments are restored, and missing ones reported.
    cartridge(&["load", "killed1"]);
    let into = tempfile::tempdir().unwrap();
    let said = restore(into.path(), &[&flag, &command]);
    assert_ne!(said.code, Some(0), "a set without its end is no success: {}", said.errors);
    let intact = crate::trees::intact_files(&tree.path(), &tree.restored(into.path()));
    assert!(intact.len() >= 8, "only {intact:?}: {}", said.errors);
    cartridge(&["load", "killed1"]);
    let listed = list(&[&flag, &command]);
    assert_ne!(listed.code, Some(0), "{}", listed.output);
    // The index, or the volume on which it would be.
    let told = listed.errors.contains("index") || listed.errors.contains("volume");
    assert!(told, "{}", listed.errors);

    // The next backup is appended, and can be restored completely.
    cartridge(&["load", "killed2"]);
    let next = crate::trees::tree(25, 4, 50_000);
    // With blocks that leave room for the labels in the rest of the volume. How much is left
    // depends on the time of the kill: the set may end on another volume, or be complete.
    let another = ["--block-size", "64k", &flag, "cartridge load killed4"];
    backup(&next.path(), &another).with_code(0);
    let either = "if [ $TAKEUP_VOLUME = 1 ]; then cartridge load killed2; \
                  else cartridge load killed4; fi";
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[&flag, either]).with_code(0);
    assert_same(&next.path(), &next.restored(into.path()));
}

fn written_bytes() -> u64 {
    let name = device().replace("/dev/n", "");
    let path = Path::new("/sys/class/scsi_tape").join(name).join("stats/write_byte_cnt");
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Polls ten times a second, for half a minute.
#[track_caller]
fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
    for _ in 0..300 {
        if there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{what} did not come");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_change_command_that_fails_ends_the_run() {
    let tree = tree(26, 12, 500_000);
    fresh("fails", 4);
    backup(&tree.path(), &["--change-command", "exit 3"]).with_code(1).complains(&["change"]);
    // The drive can be used again at once.
    run(&["list", &device(), "--sets"]).with_code(0);
}

/// `--overwrite` only covers the medium in the drive.
#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn later_volumes_are_written_over_only_when_asked() {
    let tree = tree(27, 12, 500_000);
    rack("given", 4);
    let fill = "head -c 307200 /dev/urandom | dd of=$TAPE bs=10k iflag=fullblock status=none";
    for name in ["given1", "given2"] {
        cartridge(&["load", name]);
        shell(tree.folder(), fill).with_code(0);
    }
    cartridge(&["load", "given1"]);
    let [flag, command] = changer("given");
    backup(&tree.path(), &["--overwrite", &flag, &command])
        .with_code(1)
        .complains(&["--overwrite-volumes"]);
    cartridge(&["load", "given2"]);
    let whole = "mt rewind; dd if=$TAPE bs=10k status=none | wc -c";
    assert_eq!(shell(tree.folder(), whole).with_code(0).output.trim(), "307200");
    cartridge(&["load", "given1"]);
    backup(&tree.path(), &["--overwrite", "--overwrite-volumes", &flag, &command]).with_code(0);
    back_from(&tree, "given");
}
