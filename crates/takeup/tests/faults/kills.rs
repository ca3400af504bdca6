//! kill -9 at any moment: the file with the target's name is always complete.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::command::{Case, Running, names_in, run};

/// Kills in the short form; `TAKEUP_LONG=1` makes several hundred, `TAKEUP_KILLS=N` makes N.
fn kills() -> u64 {
    let asked = std::env::var("TAKEUP_KILLS").ok().and_then(|number| number.parse().ok());
    let short = if std::env::var_os("TAKEUP_LONG").is_some() { 400 } else { 20 };
    asked.unwrap_or(short)
}

fn campaign(options: &[&str]) {
    let case = Case::new(200, 40_000);
    let reference = case.reference(options);
    let target = case.target();
    let started = Instant::now();
    assert_eq!(run(case.backup(&target).args(options)).code, Some(0));
    // About as long as a run takes. The loop measures it, since other tests run meanwhile.
    let mut span = started.elapsed();
    let (mut killed, mut finished) = (0, 0);
    let kills = kills();
    for round in 0..kills {
        let replaces = round % 2 == 0;
        if replaces {
            std::fs::write(&target, b"what was there before").unwrap()
        } else {
            std::fs::remove_file(&target).unwrap_or_default()
        }
        let mut command = case.backup(&target);
        command.args(options);
        if replaces {
            command.arg("--overwrite");
        }
        let running = Running::start(&mut command);
        // Evenly spread, in an order that jumps.
        let share = (round * 7919 % kills) as f64 / kills as f64;
        std::thread::sleep(Duration::from_secs_f64(span.as_secs_f64() * share));
        running.signal(Signal::KILL);
        let done = running.wait();
        let there = std::fs::read(&target).ok();
        match (&there, done.code) {
            (Some(bytes), _) if *bytes == reference => {
                finished += 1;
                span = span * 9 / 10;
            }
            (_, Some(code)) => panic!("ended with {code} and no archive: {}", done.errors),
            (Some(bytes), None) => {
                assert!(replaces, "round {round}: {} bytes, not the archive", bytes.len());
                assert_eq!(bytes, b"what was there before", "round {round}");
                killed += 1;
                span = span * 21 / 20;
            }
            (None, None) => {
                assert!(!replaces, "round {round}: what was there before is gone");
                killed += 1;
                span = span * 21 / 20;
            }
        }
        if round % 10 == 9 {
            // The partial file does not disturb the next run.
            let done = run(case.backup(&target).args(options).arg("--overwrite"));
            assert_eq!(done.code, Some(0), "{}", done.errors);
            assert!(std::fs::read(&target).unwrap() == reference);
            assert_eq!(names_in(&case.targets()), ["set.tar"]);
        }
    }
    eprintln!("{options:?}: {killed} killed in time, {finished} had finished, span {span:?}");
    assert!(killed > 0, "no kill came in time");
}

#[test]
fn a_plain_archive() {
    campaign(&[]);
}

#[test]
fn a_compressed_archive() {
    campaign(&["--compress", "zstd:1", "--engine", "pread"]);
}
