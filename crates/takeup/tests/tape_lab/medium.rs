//! Media that are missing, protected, blank or exchanged, and drives in use.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::trees::{assert_same, tree};
use crate::{backup, cartridge, device, fresh, list, restore, rewind, shell, takeup, verify};

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn what_others_wrote_is_not_overwritten() {
    let tree = tree(40, 4, 10_000);
    fresh("foreign", 16);
    let write = "head -c 300000 /dev/urandom >data; dd if=data of=$TAPE bs=10k status=none";
    shell(tree.folder(), write).with_code(0);
    backup(&tree.path(), &[]).with_code(1).complains(&["--overwrite"]);
    let same = "mt rewind; dd if=$TAPE bs=10k status=none | cmp - data";
    shell(tree.folder(), same).with_code(0);
    backup(&tree.path(), &["--overwrite"]).with_code(0);
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(0);
    assert_same(&tree.path(), &tree.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn our_own_sets_are_overwritten_only_when_asked() {
    let (first, second) = (tree(41, 4, 10_000), tree(42, 4, 10_000));
    fresh("own", 16);
    backup(&first.path(), &[]).with_code(0);
    backup(&second.path(), &["--overwrite"]).with_code(0);
    let sets = list(&["--sets", "--json"]).with_code(0).json();
    assert_eq!(sets["sets"].as_array().map(Vec::len), Some(1), "{sets:#}");
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(0);
    assert_same(&second.path(), &second.restored(into.path()));
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_write_protected_medium() {
    let tree = tree(43, 4, 10_000);
    fresh("switch", 16);
    backup(&tree.path(), &[]).with_code(0);
    cartridge(&["protect", "switch"]);
    cartridge(&["load", "switch"]);
    backup(&tree.path(), &[]).with_code(1).complains(&["write-protected"]);
    backup(&tree.path(), &["--overwrite"]).with_code(1).complains(&["write-protected"]);
    cartridge(&["unprotect", "switch"]);
    cartridge(&["load", "switch"]);
    verify(&[]).with_code(0);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn no_medium() {
    let tree = tree(44, 1, 1000);
    fresh("gone", 16);
    cartridge(&["eject"]);
    let start = std::time::Instant::now();
    let into = tempfile::tempdir().unwrap();
    backup(&tree.path(), &[]).with_code(1).complains(&["no medium"]);
    restore(into.path(), &[]).with_code(1).complains(&["no medium"]);
    list(&[]).with_code(1).complains(&["no medium"]);
    // The driver waits two minutes for a medium in open(2); this must not.
    assert!(start.elapsed().as_secs() < 100, "waited for a medium");
    cartridge(&["load", "gone"]);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_blank_medium_has_nothing_to_restore() {
    fresh("blank", 16);
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(1).complains(&["blank"]);
    list(&[]).with_code(1).complains(&["blank"]);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_drive_that_another_process_holds() {
    let tree = tree(45, 1, 1000);
    fresh("held", 16);
    let holder = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(device())
        .unwrap();
    let into = tempfile::tempdir().unwrap();
    backup(&tree.path(), &[]).with_code(1).complains(&["in use"]);
    restore(into.path(), &[]).with_code(1).complains(&["in use"]);
    drop(holder);
    backup(&tree.path(), &[]).with_code(0);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_medium_that_is_changed_behind_our_back() {
    let tree = tree(46, 16, 500_000);
    cartridge(&["new", "other", "64"]);
    fresh("victim", 64);
    let (source, device) = (tree.path(), device());
    let source = source.to_str().unwrap();
    let child = takeup(&["backup", source, "--to", &device, "--rate-limit", "2M", "--ring", "8M"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    cartridge(&["load", "other"]);
    let said = crate::Said::from(child.wait_with_output().unwrap());
    // The run does not go on as if nothing had happened, and does not report success.
    let said = said.with_code(1);
    assert!(!said.errors.contains("panicked"), "{}", said.errors);
    // Nothing was written to the other medium.
    cartridge(&["load", "other"]);
    rewind();
    let spaced = shell(Path::new("/"), "mt fsf 1");
    assert_ne!(spaced.code, Some(0), "something was written to the wrong medium");
}
