//! `takeup capture` where the kernel cannot record: samples of `/proc` instead.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use service::capture::CaptureAnswer;

use crate::answers::check;
use crate::{run, shown, takeup};

/// A user who is not root.
const NOBODY: u32 = 65_534;
const NO_ROOT: &str = "tracing needs root (CAP_SYS_ADMIN)";
const NO_EVENTS: &str = "this kernel has no system call events (CONFIG_FTRACE_SYSCALLS)";

/// A folder like tracefs of a kernel that records scheduling but no system calls.
fn tracefs_without_calls(at: &Path) {
    for folder in ["instances", "events/sched/sched_process_exit"] {
        fs::create_dir_all(at.join("tracing").join(folder)).unwrap();
    }
    let format = "name: sched_process_exit\nID: 300\nformat:\n\
                  \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    fs::write(at.join("tracing/events/sched/sched_process_exit/format"), format).unwrap();
}

/// Whether another user can run the program, which fails in root's own folder.
fn others_can_run_it() -> bool {
    let mut probe = takeup();
    probe.arg("--version").uid(NOBODY).output().is_ok_and(|it| it.status.success())
}

/// 500 blocks of 4 KiB, which the kernel counts exactly.
const LOAD: [&str; 6] = ["dd", "if=/dev/zero", "of=out", "bs=4096", "count=500", "status=none"];

/// The fallback is reported first. Its counts match the load, and values that it cannot know are
/// `null` with a reason.
#[track_caller]
fn check_load(output: &Output, why: &str, at: &Path) {
    let said = shown(output, at);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with(&format!("takeup: {why}\nhint: ")), "{said}");
    assert!(errors.contains("cannot record system calls; sampling /proc instead"), "{said}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answer: CaptureAnswer = check(&seen);
    assert!(matches!(answer, CaptureAnswer::Sampled(_)), "{answer:?}");
    assert_eq!(seen["fallback"], why);
    let totals = &seen["totals"];
    assert_eq!(
        (&totals["write_calls"], &totals["written_bytes"]),
        (&500.into(), &2_048_000.into())
    );
    assert!(totals["read_bytes"].as_u64().unwrap() >= 2_048_000, "{totals}");
    for name in ["events", "lost_events"] {
        assert!(seen[name].is_null() && seen["unknown"][name].is_string(), "{name}");
    }
    assert_eq!(seen["findings"][0]["severity"], "warning");
    for file in seen["files"].as_array().unwrap() {
        assert!(file["calls"].is_null() && file["unknown"]["calls"].is_string(), "{file:#}");
    }
}

#[test]
fn without_roots_rights_proc_is_looked_at() {
    testkit::require!(Tracefs);
    if !others_can_run_it() {
        testkit::does_not_apply!("the program is where only root can run it");
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    chown(at, Some(NOBODY), Some(NOBODY)).unwrap();
    let of_nobody = |arguments: &[&str]| {
        let mut command = takeup();
        command.current_dir(at).args(arguments).uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    check_load(&of_nobody(&[&["capture", "--json", "--"], &LOAD[..]].concat()), NO_ROOT, at);
    // A running process of the same user.
    let mut sleeper = Command::new("sleep").arg("600").uid(NOBODY).gid(NOBODY).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let output = of_nobody(&["capture", "--pid", &pid, "--for", "100ms"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output, at));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with(&format!("No calls were recorded: {NO_ROOT}.\n")), "{text}");
    assert!(text.contains("Takeup sampled /proc instead: 1 process, "), "{text}");
    // A process of another user.
    let own = std::process::id().to_string();
    let output = of_nobody(&["capture", "--pid", &own]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output, at));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!("takeup: process {own} belongs to another user\nhint: run it as root");
    assert!(said.starts_with(&expected), "{said}");
}

/// No job is made from missing recordings, and no file is written.
#[test]
fn a_kernel_without_events_of_calls_is_told_from_one_with() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    tracefs_without_calls(at);
    let without = ["capture", "--tracefs", "tracing", "--json"];
    check_load(&run(at, &[&without[..], &["--"], &LOAD].concat()), NO_EVENTS, at);
    let job = ["--fio", "job", "--", "touch", "begun"];
    let output = run(at, &[&without[..], &job].concat());
    let said = shown(&output, at);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the job: calls cannot be recorded"), "{said}");
    assert!(!at.join("job").exists() && !at.join("begun").exists(), "{said}");
    // The end of the command is reported as usual.
    let output = run(at, &[&without[..], &["--", "sh", "-c", "exit 3"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output, at));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["failed"], "status 3");
    // A folder that is not tracefs.
    let output = run(at, &["capture", "--tracefs", "nothing", "--", "true"]);
    let said = shown(&output, at);
    assert!(said.contains("tracefs is not mounted and cannot be mounted"), "{said}");
}

/// A name space in which processes have other numbers than in the kernel's records.
#[test]
fn within_a_container_proc_is_looked_at() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_takeup")]);
    inside.args(["capture", "--json", "--"]).args(LOAD).current_dir(directory.path());
    let why = "this container has its own process numbers, and the kernel records those of the \
               host";
    check_load(&inside.output().unwrap(), why, directory.path());
}
