//! SIGINT, SIGTERM and SIGHUP end a run in good order at any moment, SIGSTOP does nothing to it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::command::{Case, Running, names_in, run};

#[test]
fn an_interrupt_at_any_moment_leaves_nothing_behind() {
    let case = Case::new(200, 40_000);
    let reference = case.reference(&[]);
    let target = case.target();
    let started = Instant::now();
    assert_eq!(run(&mut case.backup(&target)).code, Some(0));
    let span = started.elapsed();
    std::fs::remove_file(&target).unwrap();
    let mut interrupted = 0;
    const ROUNDS: u32 = 24;
    for round in 0..ROUNDS {
        let signal = [Signal::INT, Signal::TERM, Signal::HUP][round as usize / 2 % 3];
        let options: &[&str] =
            if round % 3 == 0 { &["--compress", "zstd:1"] } else { &["--engine", "pread"] };
        let running = Running::start(case.backup(&target).args(options));
        std::thread::sleep(span * round / ROUNDS);
        running.signal(signal);
        let done = running.wait();
        match done.code {
            Some(0) => {
                if round % 3 != 0 {
                    assert!(std::fs::read(&target).unwrap() == reference);
                }
                std::fs::remove_file(&target).unwrap();
            }
            Some(1) => {
                assert!(done.errors.ends_with("takeup: cancelled\n"), "{}", done.errors);
                interrupted += 1;
            }
            // It came before the program had begun to listen, and to write.
            None => assert_eq!(done.errors, ""),
            Some(code) => panic!("exit code {code}: {}", done.errors),
        }
        assert!(names_in(&case.targets()).is_empty(), "round {round} with {signal:?}: {done:?}");
    }
    assert!(interrupted > 0, "no signal came in time");
}

#[test]
fn an_interrupt_is_noticed_while_the_target_waits() {
    // A pipe that nobody reads, and a limit that lets nothing through for minutes.
    let case = Case::new(20, 1 << 20);
    let running = Running::start(&mut case.backup(std::path::Path::new("-")));
    running.until_it_heeds(Signal::INT, "SigCgt");
    running.signal(Signal::INT);
    let done = running.wait();
    assert!(done.code == Some(1) && done.errors.ends_with("takeup: cancelled\n"), "{done:?}");
    let target = case.target();
    let running = Running::start(case.backup(&target).args(["--rate-limit", "10kB"]));
    running.until_it_heeds(Signal::TERM, "SigCgt");
    running.signal(Signal::TERM);
    let done = running.wait();
    assert!(done.code == Some(1) && done.errors.ends_with("takeup: cancelled\n"), "{done:?}");
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
    assert!(done.code == Some(1) && done.errors.ends_with("takeup: cancelled\n"), "{done:?}");
    // A reader that comes later is waited for.
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
