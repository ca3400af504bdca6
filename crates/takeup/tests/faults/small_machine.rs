//! A machine with one core and 512 MiB, by the processor that a process may use and by a control
//! group: full and incremental backups of more than fits into memory come back.

use std::fs;
use std::process::Command;

use testkit::needs::ControlGroup;

use crate::command::{Done, run, takeup};

const MEMORY_BYTES: u64 = 512 << 20;

/// More bytes than there is memory, in a few large files and many small ones: made within the
/// group, whose memory the pages of these files take.
const MAKE_TREE: &str = "mkdir tree; cd tree
    for number in 1 2 3 4; do head -c 167772160 /dev/urandom >large$number; done
    number=0
    while [ $number -lt 20000 ]; do
        [ $((number % 500)) -ne 0 ] || mkdir $((number / 500))
        echo text $number >$((number / 500))/$number
        number=$((number + 1))
    done";

/// A processor that this process may use.
fn a_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn a_full_and_an_incremental_backup_come_back() {
    testkit::require!(MemoryLimit);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (tree, sets) = (folder.path().join("tree"), folder.path().join("sets"));
    fs::create_dir(&sets).unwrap();
    let group = ControlGroup::with_memory(MEMORY_BYTES).unwrap();
    let mut make = Command::new("sh");
    make.args(["-euc", MAKE_TREE]).current_dir(folder.path());
    assert!(group.around(&make).status().unwrap().success());
    let processor = a_processor();
    let types = |arguments: &[&str]| -> Done {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &processor]).arg(takeup().get_program()).args(arguments);
        command.env("XDG_STATE_HOME", folder.path().join("state")).current_dir(folder.path());
        let done = run(&mut group.around(&command));
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.errors);
        done
    };
    let same = |other: &str| {
        let mut diff = Command::new("diff");
        diff.args(["-r", "tree", other]).current_dir(folder.path());
        assert!(diff.status().unwrap().success(), "{other} differs");
        fs::remove_dir_all(folder.path().join(other.split('/').next().unwrap())).unwrap();
    };
    types(&["backup", "tree", "--to", "tree.tar.zst", "--compress", "zstd", "--quiet"]);
    types(&["verify", "tree.tar.zst", "--quiet"]);
    types(&["restore", "tree.tar.zst", "--into", "back", "--quiet"]);
    same("back/tree");
    types(&["backup", "tree", "--to", "sets/", "--incremental", "--quiet"]);
    fs::write(tree.join("new"), b"new").unwrap();
    types(&["backup", "tree", "--to", "sets/", "--incremental", "--quiet"]);
    types(&["verify", "sets/", "--quiet"]);
    types(&["restore", "sets/", "--into", "again", "--quiet"]);
    same("again/tree");
    // All of it was in use.
    let most = group.most_memory().unwrap_or(MEMORY_BYTES);
    assert!((MEMORY_BYTES / 10 * 9..=MEMORY_BYTES).contains(&most), "{most}");
}
