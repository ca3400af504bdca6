//! SIGINT, SIGTERM and SIGHUP end a run in good order at any moment, SIGSTOP does nothing to it.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::stepper::{Call, CallVerdict, ProgramEnd, Stepped};

use crate::command::{Case, Done, Running, names_in};

/// Backs up with a signal before call number `at`; returns the result and the number of calls.
fn interrupted_at(case: &Case, options: &[&str], at: usize, signal: Signal) -> (ProgramEnd, usize) {
    let mut command = case.backup(&case.target());
    command.args(options);
    let mut calls = 0;
    let mut step = |call: &Call| {
        if calls == at {
            kill_process(Pid::from_raw(call.thread).unwrap(), signal).unwrap();
        }
        calls += 1;
        CallVerdict::Pass
    };
    let stepped = Stepped::new(&command, "/dev/null", Duration::from_secs(60));
    let ended = stepped.run(&mut step).unwrap();
    assert!(!ended.hung, "{signal:?} before call {at}");
    (ended, calls)
}

#[test]
fn an_interrupt_at_any_moment_leaves_nothing_behind() {
    hear_hangups();
    let case = Case::new(20, 40_000);
    let reference = case.reference(&[]);
    let target = case.target();
    let mut interrupted = 0;
    let rounds = if std::env::var_os("TAKEUP_LONG").is_some() { 400 } else { 16 };
    for options in [&["--compress", "zstd:1"][..], &["--engine", "pread"]] {
        let (_, calls) = interrupted_at(&case, options, usize::MAX, Signal::INT);
        std::fs::remove_file(&target).unwrap();
        for round in 0..rounds {
            let signal = [Signal::INT, Signal::TERM, Signal::HUP][round % 3];
            let (ended, _) = interrupted_at(&case, options, calls * round / rounds, signal);
            match ended.code {
                Some(0) => {
                    let is_plain = options[0] == "--engine";
                    assert!(!is_plain || std::fs::read(&target).unwrap() == reference);
                    std::fs::remove_file(&target).unwrap();
                }
                Some(1) => {
                    let left =
                        format!("takeup: cancelled: nothing is left at {}\n", target.display());
                    assert!(ended.errors.ends_with(&left), "{}", ended.errors);
                    interrupted += 1;
                }
                // The signal came before the program handled signals, and before it wrote anything.
                None => assert_eq!(ended.errors, ""),
                Some(code) => panic!("exit code {code}: {}", ended.errors),
            }
            let left = names_in(&case.targets());
            assert!(left.is_empty(), "round {round} with {signal:?}: {left:?}");
        }
    }
    assert!(interrupted > 0, "no signal came in time");
}

/// Signals that a process ignores stay ignored in programs that it starts, and these tests may run
/// under nohup(1). A handler of this process becomes the default in those programs.
fn hear_hangups() {
    signal_hook::flag::register(Signal::HUP.as_raw(), Arc::default()).unwrap();
}

/// rt_sigaction(2).
const ASK: i64 = 13;

/// A signal can come as soon as the program shows that it handles signals. Between the installation
/// of the handler and the registration of its action it was lost, and the run went on.
#[test]
fn a_signal_is_heard_from_the_call_on_that_asks_for_it() {
    hear_hangups();
    let case = Case::new(20, 1000);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut asked = false;
        let mut step = |call: &Call| {
            let asks = call.number == ASK && call.arguments[1] != 0;
            if !asked && asks && call.arguments[0] == signal.as_raw() as u64 {
                // The signal is delivered when the call has installed the handler.
                kill_process(Pid::from_raw(call.thread).unwrap(), signal).unwrap();
                asked = true;
            }
            CallVerdict::Pass
        };
        let command = case.backup(&case.target());
        let stepped = Stepped::new(&command, "/dev/null", Duration::from_secs(60));
        let ended = stepped.run(&mut step).unwrap();
        assert!(asked && ended.code != Some(0), "{signal:?} is lost: {}", ended.errors);
    }
}

/// The run was cancelled, and says what is left.
#[track_caller]
fn assert_cancelled(done: &Done, left: &str) {
    let last = format!("takeup: cancelled: {left}\n");
    assert!(done.code == Some(1) && done.errors.ends_with(&last), "{done:?}");
}

#[test]
fn an_interrupt_is_noticed_while_the_target_waits() {
    // A pipe without a reader, and a rate limit that lets nothing through for minutes.
    let case = Case::new(20, 1 << 20);
    let running = Running::start(&mut case.backup(std::path::Path::new("-")));
    running.until_it_heeds(Signal::INT, "SigCgt");
    running.signal(Signal::INT);
    let done = running.wait();
    assert_cancelled(&done, "the data on standard output are incomplete");
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "10kB"]));
    running.until_it_heeds(Signal::TERM, "SigCgt");
    running.signal(Signal::TERM);
    let done = running.wait();
    assert_cancelled(&done, &format!("nothing is left at {}", target.display()));
    assert!(names_in(&case.targets()).is_empty());
}

#[test]
fn an_interrupt_ends_the_wait_for_a_reader() {
    let case = Case::new(20, 1000);
    let target = case.target();
    rustix::fs::mkfifoat(rustix::fs::CWD, &target, rustix::fs::Mode::RWXU).unwrap();
    let running = Running::start(&mut case.backup(&target));
    running.until_it_heeds(Signal::INT, "SigCgt");
    running.signal(Signal::INT);
    let done = running.wait();
    assert_cancelled(&done, &format!("the data sent to {} are incomplete", target.display()));
    // The run waits for a reader that comes later.
    let running = Running::start(&mut case.backup(&target));
    running.until_it_heeds(Signal::INT, "SigCgt");
    assert!(std::fs::read(&target).unwrap() == case.reference(&[]));
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn a_second_interrupt_ends_the_run_at_once_and_never_makes_it_look_whole() {
    let case = Case::new(20, 1 << 20);
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "1MB"]));
    running.until_it_heeds(Signal::INT, "SigCgt");
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(1));
    assert!(!target.exists());
}

#[test]
fn a_run_that_is_stopped_and_continued_is_a_run() {
    let case = Case::new(200, 40_000);
    let reference = case.reference(&[]);
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "40MB"]));
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(15));
        running.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(15));
        running.signal(Signal::CONT);
    }
    let done = running.wait();
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(std::fs::read(&target).unwrap() == reference);
}

#[test]
fn under_nohup_a_hangup_is_ignored() {
    let case = Case::new(20, 100_000);
    let target = case.target();
    let command = case.backup(&target);
    let mut nohup = std::process::Command::new("nohup");
    nohup.arg(command.get_program()).args(command.get_args()).args(["--rate-limit", "4MB"]);
    let running = Running::start(&mut nohup);
    running.until_it_heeds(Signal::HUP, "SigIgn");
    running.signal(Signal::HUP);
    let done = running.wait();
    assert_eq!(done.code, Some(0), "{}", done.errors);
    assert!(std::fs::read(&target).unwrap() == case.reference(&[]));
}
