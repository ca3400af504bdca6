//! The stepper on ordinary programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;
use std::time::Duration;

use testkit::stepper::{Call, CallVerdict, ProgramEnd, Step, Stepped};

fn run(command: &Command, step: &mut dyn Step) -> ProgramEnd {
    Stepped::new(command, "/dev/null", Duration::from_secs(30)).run(step).unwrap()
}

fn cat(path: &str) -> Command {
    let mut command = Command::new("cat");
    command.arg(path);
    command
}

#[test]
fn a_program_runs_as_it_would_without() {
    let mut calls = 0;
    let ended = run(&cat("/etc/hostname"), &mut |_: &Call| {
        calls += 1;
        CallVerdict::Pass
    });
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(ended.output, std::fs::read("/etc/hostname").unwrap());
    assert!(calls > 10, "{calls}");
}

#[test]
fn a_call_that_fails_is_not_made() {
    let ended = run(&cat("/etc/hostname"), &mut |call: &Call| {
        let path = call.path().is_some_and(|path| path.ends_with("etc/hostname"));
        match call.name() {
            Some("openat") if path => CallVerdict::Fail(nix::libc::EIO),
            _ => CallVerdict::Pass,
        }
    });
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("Input/output error"), "{}", ended.errors);
}

#[test]
fn a_read_gives_less_and_the_next_one_the_rest() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let content: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(file.path(), &content).unwrap();
    let mut reads = 0;
    let ended = run(&cat(file.path().to_str().unwrap()), &mut |call: &Call| {
        let ours = call.name() == Some("read") && call.file().is_some_and(|it| it == file.path());
        reads += u32::from(ours);
        if ours { CallVerdict::Shorten(1000) } else { CallVerdict::Pass }
    });
    assert_eq!((ended.code, reads), (Some(0), 41));
    assert_eq!(ended.output, content);
}

#[test]
fn an_error_may_come_behind_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    let mut command = Command::new("mkdir");
    command.arg(&path);
    let mut results = Vec::new();
    struct Late<'a>(&'a mut Vec<i64>);
    impl Step for Late<'_> {
        fn before(&mut self, call: &Call) -> CallVerdict {
            match call.name() {
                Some("mkdir" | "mkdirat") => CallVerdict::FailAfter(nix::libc::ENOSPC),
                _ => CallVerdict::Pass,
            }
        }
        fn after(&mut self, call: &Call, result: i64) {
            if matches!(call.name(), Some("mkdir" | "mkdirat")) {
                self.0.push(result);
            }
        }
    }
    let ended = run(&command, &mut Late(&mut results));
    assert_eq!((ended.code, path.is_dir()), (Some(1), true));
    assert_eq!(results, [-i64::from(nix::libc::ENOSPC)]);
}

#[test]
fn threads_and_children_are_followed_and_hangs_end() {
    let ended = Stepped::new(&cat("-"), "/dev/zero", Duration::from_millis(300))
        .output(std::process::Stdio::null())
        .run(&mut |_: &Call| CallVerdict::Pass)
        .unwrap();
    assert!(ended.hung);
    assert_eq!(ended.code, None);
    let script = "import threading; \
                  t = threading.Thread(target=lambda: open('/etc/hostname').read()); \
                  t.start(); t.join()";
    let mut command = Command::new("python3");
    command.args(["-c", script]);
    let mut seen = std::collections::BTreeSet::new();
    let ended = run(&command, &mut |call: &Call| {
        seen.insert(call.thread);
        CallVerdict::Pass
    });
    assert_eq!((ended.code, seen.len()), (Some(0), 2), "{}", ended.errors);
}
