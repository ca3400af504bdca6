//! Clocks that are wrong between two runs: a month back, a year ahead, and right again. Every day
//! comes back, and the newest set is the one that was made last.
//!
//! On the host only the program's clock is another, through a library that is loaded into it: the
//! kernel goes on to stamp files with the right time. In the lab's guest it is the machine's clock
//! (`cargo xtask lab -- clock`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, stored, stored_in_all, takeup, text};

const MONTH_SECONDS: i64 = 30 * 86_400;
const YEAR_SECONDS: i64 = 365 * 86_400;

/// Adds `$SHIFT` seconds to the time of day that the C library gives.
const LIBRARY: &str = r#"
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += atol(getenv("SHIFT"));
    return (int)result;
}
"#;

fn library(here: &Path) -> PathBuf {
    let (source, library) = (here.join("clock.c"), here.join("clock.so"));
    fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-D_GNU_SOURCE", "-o"]).arg(&library).arg(&source);
    assert!(compiler.stdin(Stdio::null()).status().unwrap().success());
    library
}

fn plant(here: &Path) {
    fs::create_dir_all(here.join("tree/a")).unwrap();
    for name in ["one", "two", "a/three", "a/four"] {
        fs::write(here.join("tree").join(name), format!("content of {name}")).unwrap();
    }
    fs::hard_link(here.join("tree/two"), here.join("tree/a/zwei")).unwrap();
}

fn now(shift_seconds: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs() as i64 + shift_seconds
}

/// `YYYY-MM-DD` of now and so many seconds.
fn day(shift_seconds: i64) -> String {
    let when = format!("@{}", now(shift_seconds));
    let output = Command::new("date").args(["-u", "+%F", "-d", &when]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The number of the set that a restore chose, which is compared with its day.
#[track_caller]
fn restored(here: &Path, days: &[Snapshot], choice: &[&str]) -> usize {
    let all = [&["restore", "sets/", "--into", "back", "--no-sync"], choice].concat();
    let number = answer(here, &all)["set"]["number"].as_u64().unwrap() as usize;
    let back = here.join("back");
    assert_same(&days[number - 1], &snapshot(&back.join("tree")), &format!("{choice:?}"));
    fs::remove_dir_all(back).unwrap();
    number
}

#[track_caller]
fn every_day_comes_back(here: &Path, days: &[Snapshot]) {
    for number in 1..=days.len() {
        assert_eq!(restored(here, days, &["--set", &number.to_string()]), number);
    }
    assert_eq!(restored(here, days, &[]), days.len(), "the newest is the one made last");
}

#[test]
fn the_clock_of_the_program_is_wrong_between_runs() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    plant(here);
    let library = library(here);
    let mut days = Vec::new();
    let (mut said, mut archives) = (Vec::new(), Vec::new());
    for (number, shift) in [0, YEAR_SECONDS, 0, -MONTH_SECONDS, 0].into_iter().enumerate() {
        // Of the same length, so that only times show it.
        fs::write(here.join("tree/one"), format!("content of day {number}")).unwrap();
        fs::write(here.join(format!("tree/a/new{number}")), "new").unwrap();
        std::thread::sleep(TICK);
        days.push(snapshot(&here.join("tree")));
        let mut run = takeup();
        run.current_dir(here).args(["backup", "tree", "--to", "sets/", "-i"]);
        let run = run.env("LD_PRELOAD", &library).env("SHIFT", shift.to_string());
        let output = run.output().unwrap();
        assert!(output.status.success());
        said.push(String::from_utf8([output.stdout, output.stderr].concat()).unwrap());
        let (_, name) = said[number].split_once("wrote ").unwrap();
        archives.push(name.split_once(": ").unwrap().0.to_owned());
        // As a kernel with that clock would have stamped it.
        let archive = fs::File::options().write(true).open(here.join(&archives[number])).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(now(shift) as u64);
        archive.set_modified(time).unwrap();
        assert!(number == 0 || said[number].contains(&format!("level {number}")), "{said:?}");
    }
    every_day_comes_back(here, &days);

    // The clock was set back twice.
    for (number, said) in said.iter().enumerate() {
        let is_back = number == 2 || number == 3;
        assert_eq!(said.contains("the clock was set back"), is_back, "{number}: {said}");
    }

    // The last set, as it was made, of those that say that they began by then.
    let (today, ahead, back) = (day(0), day(YEAR_SECONDS), day(-MONTH_SECONDS));
    assert_eq!(restored(here, &days, &["--at", &today]), 5);
    assert_eq!(restored(here, &days, &["--at", &ahead]), 5);
    assert_eq!(restored(here, &days, &["--at", &back]), 4);
    let told = text(here, &["restore", "sets/", "--at", &back, "--into", "back"], 0);
    assert!(told.contains("set 3 was made after set 2, and its clock says before"), "{told}");
    assert!(told.contains("set 4 was made after set 3, and its clock says before"), "{told}");
    // The catalogue goes by the chain, too, in whatever order the archives come.
    text(here, &["catalog", "add", "sets", "--catalog", "catalogue"], 0);
    let found = text(here, &["catalog", "find", "one", "--catalog", "catalogue"], 0);
    let newest = found.lines().find(|line| line.contains("(the newest)")).unwrap();
    let last = archives.last().unwrap();
    assert!(newest.ends_with(last) && found.contains("in 1 set"), "{last}: {found}");

    let number = text(here, &["restore", "sets/", "--set", "4", "--into", "number"], 0);
    assert!(!number.contains("clock"), "{number}");
}

/// The machine's clock is set, as root of a machine that nobody else uses.
mod in_the_guest {
    use std::time::{SystemTime, UNIX_EPOCH};

    use rustix::time::{ClockId, Timespec, clock_settime};

    use super::*;

    fn shift_clock(seconds: i64) {
        // Only the lab has this folder. The clock of any other machine is left alone.
        assert!(Path::new("/run/lab/exchange").is_dir(), "runs in the lab's guest only");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let tv_nsec = now.subsec_nanos().into();
        clock_settime(
            ClockId::Realtime,
            Timespec { tv_sec: now.as_secs() as i64 + seconds, tv_nsec },
        )
        .unwrap();
    }

    fn backup(here: &Path) -> Value {
        crate::backup(here, &["-i"])
    }

    /// As users do it to a file, with the same length and time of modification.
    fn edit_in_secret(here: &Path, name: &str, content: &str) {
        let path = here.join("tree").join(name);
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, content).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    }

    #[test]
    #[ignore = "sets the machine's clock: cargo xtask lab -- clock"]
    fn the_clock_of_the_machine_is_wrong_between_runs() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        plant(here);
        std::thread::sleep(TICK);
        let mut days = vec![snapshot(&here.join("tree"))];
        assert_eq!(stored(&backup(here), "full"), 7);
        let shifts = [-MONTH_SECONDS, MONTH_SECONDS + YEAR_SECONDS, -YEAR_SECONDS, 0];
        for (number, shift) in shifts.into_iter().enumerate() {
            // As shortly after the last run as a program can, by its clock.
            fs::write(here.join("tree/a/four"), format!("content of {number:04}")).unwrap();
            shift_clock(shift);
            edit_in_secret(here, "one", &format!("CONTENT of {number:03}"));
            fs::write(here.join("tree/a/zwei"), format!("content of {number:03}")).unwrap();
            fs::write(here.join(format!("tree/new{number}")), "new").unwrap();
            std::thread::sleep(TICK);
            days.push(snapshot(&here.join("tree")));
            let done = backup(here);
            assert_eq!(done["set"]["level"], number + 1);
            // The new one, `one`, both names of `two`, `four`; and the two folders.
            assert_eq!((stored(&done, "new"), stored_in_all(&done)), (1, 7), "{done}");
        }
        // What was written by a clock a year ahead is not stored again for that.
        std::thread::sleep(Duration::from_millis(1100));
        days.push(snapshot(&here.join("tree")));
        backup(here);
        days.push(snapshot(&here.join("tree")));
        let done = backup(here);
        assert_eq!(stored_in_all(&done), 0, "{done}");
        every_day_comes_back(here, &days);
    }

    /// The clock is set while a run lists folders and reads files.
    #[test]
    #[ignore = "sets the machine's clock: cargo xtask lab -- clock"]
    fn the_clock_of_the_machine_is_set_during_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        plant(here);
        for number in 0..30 {
            fs::create_dir(here.join(format!("tree/folder{number}"))).unwrap();
        }
        let mut days = Vec::new();
        for (number, shift) in [1, -60, 60, -3600, 3600 - 1].into_iter().enumerate() {
            let write = |round: usize| {
                for folder in 0..30 {
                    let path = here.join(format!("tree/folder{folder}/file"));
                    fs::write(path, format!("{number:02} {round:02}")).unwrap();
                }
            };
            write(0);
            let mut run = takeup();
            run.current_dir(here).args(["backup", "tree", "--to", "sets/", "-i", "-q"]);
            // Its notes would stand between the name of the test and its verdict.
            let mut run = run.stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(20 * number as u64));
            shift_clock(shift);
            assert!(run.wait().unwrap().success());
            // What was written in the tick of the listing is found by the next run.
            write(1);
            days.push(snapshot(&here.join("tree")));
            backup(here);
        }
        for (number, was) in days.iter().enumerate() {
            let set = (2 * number + 2).to_string();
            answer(here, &["restore", "sets/", "--set", &set, "--into", "back", "--no-sync"]);
            let back = here.join("back");
            assert_same(was, &snapshot(&back.join("tree")), &format!("set {set}"));
            fs::remove_dir_all(back).unwrap();
        }
    }
}
