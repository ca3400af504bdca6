//! Kernels and sandboxes that refuse calls which came after Linux 4.18: a backup, its verification
//! and a restore do without them. strace answers in the kernel's place: `ENOSYS` as an old kernel,
//! `EPERM` as the seccomp filter of a container.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use testkit::samples::noise;

/// Calls that came later, or that filters of containers refuse. `clone3` answered with EPERM ends
/// every threaded program of the C library, so that filters answer ENOSYS there.
const LATER: [&str; 12] = [
    "io_uring_setup",
    "openat2",
    "statx",
    "faccessat2",
    "close_range",
    "copy_file_range",
    "preadv2",
    "pwritev2",
    "memfd_create",
    "rseq",
    "fchmodat2",
    "membarrier",
];

/// Of these each program makes some, so that a backup without them is one that was refused.
const MADE: [&str; 3] = ["io_uring_setup", "openat2", "statx"];

fn refused(calls: &[&str], error: &str, folder: &Path, arguments: &[&str]) -> Output {
    let calls = calls.join(",");
    Command::new("strace")
        .args(["-f", "-qqq", "--seccomp-bpf", "--output-append-mode", "-o", "trace"])
        .args(["-e", &format!("trace=?{}", calls.replace(',', ",?"))])
        .args(["-e", &format!("inject=?{}:error={error}", calls.replace(',', ",?"))])
        .arg(env!("CARGO_BIN_EXE_takeup"))
        .args(arguments)
        .env("XDG_STATE_HOME", folder.join("state"))
        .current_dir(folder)
        .output()
        .unwrap()
}

/// A backup, its verification and a restore, each without these calls.
fn there_and_back(calls: &[&str], error: &str) {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree/deep/er");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("small"), b"small").unwrap();
    fs::write(tree.join("large"), noise(3, 3 << 20)).unwrap();
    std::os::unix::fs::symlink("small", tree.join("link")).unwrap();
    let typed = [
        &["backup", "tree", "--to", "tree.tar.zst", "-v"][..],
        &["verify", "tree.tar.zst", "--against", "."],
        &["restore", "tree.tar.zst", "--into", "back"],
    ];
    for arguments in typed {
        let output = refused(calls, error, folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{calls:?} {error} {arguments:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        if calls.contains(&"io_uring_setup") && arguments.contains(&"-v") {
            assert!(said.contains("pread and pwrite, since io_uring cannot be set up"), "{said}");
        }
    }
    let differences = Command::new("diff")
        .args(["-r", "--no-dereference", "tree", "back/tree"])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(differences.success(), "{calls:?} {error}");
    let trace = fs::read_to_string(folder.path().join("trace")).unwrap();
    for call in calls.iter().filter(|call| MADE.contains(call)) {
        let is_refused =
            |line: &&str| line.contains(&format!(" {call}(")) && line.contains("(INJECTED)");
        assert!(trace.lines().any(|line| is_refused(&line)), "{call} was never refused");
    }
}

#[test]
fn without_all_later_calls_at_once() {
    testkit::require!(Strace);
    there_and_back(&[&LATER[..], &["clone3"]].concat(), "ENOSYS");
    there_and_back(&LATER, "EPERM");
}

#[test]
fn without_each_later_call_by_itself() {
    testkit::require!(Strace);
    testkit::long_run!();
    there_and_back(&["clone3"], "ENOSYS");
    for call in LATER {
        there_and_back(&[call], "ENOSYS");
        there_and_back(&[call], "EPERM");
    }
}

/// The doctor says what is refused, and why.
#[test]
fn the_doctor_names_what_is_refused() {
    testkit::require!(Strace);
    let folder = tempfile::tempdir().unwrap();
    let calls = ["io_uring_setup", "openat2", "statx"];
    let output = refused(&calls, "EPERM", folder.path(), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = answer["stands_out"].as_array().unwrap().iter();
    let rules: Vec<&str> = rules.filter_map(|found| found["rule"].as_str()).collect();
    assert!(rules.contains(&"doctor.io-uring-refused"), "{rules:?}");
    let refused = answer["kernel"].as_array().unwrap().iter();
    let refused = refused.filter(|facility| facility["refused"].is_string());
    let names: Vec<&str> = refused.filter_map(|facility| facility["name"].as_str()).collect();
    for call in ["io_uring", "openat2", "statx"] {
        assert!(names.contains(&call), "{answer:#}");
    }
}
