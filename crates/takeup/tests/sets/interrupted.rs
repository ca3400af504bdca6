//! A run that ends at any of its writes, by kill -9 or for want of space: every set that is in the
//! folder then gives back exactly its day, and the next run goes on.
//!
//! The program is the real one under ptrace (`testkit::stepper`). All calls that change something
//! are counted as one sequence, and each number is tried; `TAKEUP_LONG=1` has more data, and so
//! more calls. The engine is pread, since ptrace does not see what io_uring does; `losses` kills
//! runs with io_uring by time.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::samples::noise;
use testkit::stepper::{Call, CallVerdict, ProgramEnd, Stepped};

use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, backup, takeup, text};

/// Calls that change something. Those that open a file count where they may write to it.
const CHANGES: [&str; 16] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev2",
    "openat",
    "openat2",
    "mkdir",
    "mkdirat",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "fsync",
    "ftruncate",
    "fallocate",
    "fchmod",
];

/// A source with a chain of two sets, and the third day, which has no set yet.
struct Chain {
    folder: tempfile::TempDir,
    days: [Snapshot; 3],
    /// The sets as the second run left them: names and contents.
    sets: Vec<(String, Vec<u8>)>,
}

impl Chain {
    fn new() -> Chain {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let tree = here.join("tree");
        let times = if std::env::var_os("TAKEUP_LONG").is_some() { 8 } else { 1 };
        fs::create_dir_all(tree.join("a/deep")).unwrap();
        fs::create_dir(tree.join("b")).unwrap();
        for number in 0..12 {
            fs::write(tree.join(format!("a/{number}")), noise(number, 30_000)).unwrap();
        }
        fs::write(tree.join("a/deep/large"), noise(99, 400_000 * times)).unwrap();
        fs::hard_link(tree.join("a/1"), tree.join("b/one")).unwrap();
        std::os::unix::fs::symlink("a/2", tree.join("link")).unwrap();
        std::thread::sleep(TICK);
        let first = snapshot(&tree);
        backup(here, &[]);
        fs::write(tree.join("a/3"), "second day").unwrap();
        fs::remove_file(tree.join("a/4")).unwrap();
        std::thread::sleep(TICK);
        let second = snapshot(&tree);
        backup(here, &["-i"]);
        fs::rename(tree.join("a/deep"), tree.join("c")).unwrap();
        fs::write(tree.join("a/1"), noise(7, 50_000 * times)).unwrap();
        fs::write(tree.join("a/3"), noise(8, 500_000 * times)).unwrap();
        fs::remove_dir_all(tree.join("b")).unwrap();
        fs::write(tree.join("b"), "was a folder").unwrap();
        std::thread::sleep(TICK);
        let days = [first, second, snapshot(&tree)];
        let entries = fs::read_dir(here.join("sets")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let sets: Vec<_> = paths.map(|it| (name(&it), fs::read(&it).unwrap())).collect();
        Chain { folder, days, sets }
    }

    fn here(&self) -> &Path {
        self.folder.path()
    }

    /// Lays the two sets into a folder, and nothing else.
    fn lay(&self, place: &Path) {
        let _ = fs::remove_dir_all(place);
        fs::create_dir_all(place).unwrap();
        for (name, content) in &self.sets {
            fs::write(place.join(name), content).unwrap();
        }
    }

    /// The third run, into another folder.
    fn third(&self, place: &str) -> Command {
        let mut command = takeup();
        command.current_dir(self.here()).args(["backup", "tree", "-i", "-q", "--to", place]);
        command.args(["--engine", "pread", "--read-threads", "1", "-b", "64k"]);
        command
    }

    /// Holds a folder against the truth after the third run has ended in whatever way. Returns
    /// whether it has a third set, and how many files were left over.
    fn check(&self, place: &str, what: &str) -> (bool, usize) {
        let folder = self.here().join(place);
        let entries = fs::read_dir(&folder).unwrap();
        let names: Vec<String> = entries.map(|entry| name(&entry.unwrap().path())).collect();
        for (name, content) in &self.sets {
            assert!(fs::read(folder.join(name)).unwrap() == *content, "{what}: {name} changed");
        }
        let is_new = |name: &&String| !self.sets.iter().any(|(old, _)| old == *name);
        let (left, new): (Vec<_>, Vec<_>) =
            names.iter().filter(is_new).partition(|name| name.starts_with('.'));
        assert!(new.len() <= 1 && left.len() <= 1, "{what}: {names:?}");
        let has_third = !new.is_empty();
        for number in 1..=2 + usize::from(has_third) {
            self.check_day(place, number, what);
        }
        let newest = answer(self.here(), &["restore", place, "--into", "new", "--no-sync"]);
        assert_eq!(newest["set"]["number"], 2 + u64::from(has_third), "{what}");
        fs::remove_dir_all(self.here().join("new")).unwrap();
        (has_third, left.len())
    }

    fn check_day(&self, place: &str, number: usize, what: &str) {
        let set = number.to_string();
        let arguments = ["restore", place, "--set", &set, "--into", "back", "--no-sync", "-q"];
        text(self.here(), &arguments, 0);
        let back = self.here().join("back");
        let restored = snapshot(&back.join("tree"));
        assert_same(&self.days[number - 1], &restored, &format!("{what}, day {number}"));
        fs::remove_dir_all(back).unwrap();
    }

    /// The next run goes on from the last set, and tidies up.
    fn goes_on(&self, place: &str, (has_third, left): (bool, usize), what: &str) {
        let arguments = ["backup", "tree", "-i", "--to", place];
        let said = text(self.here(), &arguments, 0);
        let removed = said.matches("was removed: a run that was killed left it").count();
        assert_eq!(removed, left, "{what}: {said}");
        assert!(!said.contains("full set"), "{what}: {said}");
        let entries = fs::read_dir(self.here().join(place)).unwrap();
        let hidden: Vec<String> = entries.map(|entry| name(&entry.unwrap().path())).collect();
        let hidden: Vec<_> = hidden.iter().filter(|name| name.starts_with('.')).collect();
        assert_eq!(hidden, [".takeup-lock"], "{what}");
        let restored = answer(self.here(), &["restore", place, "--into", "next", "--no-sync"]);
        assert_eq!(restored["set"]["number"], 3 + u64::from(has_third), "{what}");
        assert_eq!(restored["set"]["level"], 2 + u64::from(has_third), "{what}");
        let next = self.here().join("next");
        assert_same(&self.days[2], &snapshot(&next.join("tree")), &format!("{what}, next"));
        fs::remove_dir_all(next).unwrap();
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Whether a call changes something that lasts: not what is printed.
fn changes(call: &Call) -> bool {
    match call.name() {
        Some("write") => call.arguments[0] > 2,
        Some("openat") => call.arguments[2] as i32 & (libc::O_ACCMODE | libc::O_CREAT) != 0,
        Some(name) => CHANGES.contains(&name),
        None => false,
    }
}

/// What becomes of the call.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    NoSpace,
}

/// Steps through the third run. Returns its end, and what the call was that had the fault.
fn stepped(chain: &Chain, place: &str, fault: Option<(Fault, usize)>) -> (ProgramEnd, Vec<String>) {
    let mut calls = Vec::new();
    let mut step = |call: &Call| {
        if !changes(call) {
            return CallVerdict::Pass;
        }
        calls.push(call.name().unwrap_or_default().to_owned());
        match fault {
            Some((Fault::Kill, at)) if calls.len() == at => {
                let process = Pid::from_raw(call.thread).unwrap();
                kill_process(process, Signal::KILL).unwrap();
                CallVerdict::Pass
            }
            Some((Fault::NoSpace, at)) if calls.len() == at => CallVerdict::Fail(libc::ENOSPC),
            _ => CallVerdict::Pass,
        }
    };
    let stepped = Stepped::new(&chain.third(place), "/dev/null", Duration::from_secs(60));
    let ended = stepped.run(&mut step).unwrap();
    assert!(!ended.hung, "{place} hangs");
    (ended, calls)
}

fn campaign(fault: Fault) {
    let chain = Chain::new();
    chain.lay(&chain.here().join("calm"));
    let (calm, calls) = stepped(&chain, "calm/", None);
    assert_eq!(calm.code, Some(0), "{}", calm.errors);
    assert!(calls.len() > 20, "{calls:?}");
    let (mut met, mut sets, mut left) = (0, 0, 0);
    // Behind the last call nothing happens any more.
    for at in 1..=calls.len() + 1 {
        chain.lay(&chain.here().join("at"));
        let (ended, calls) = stepped(&chain, "at/", Some((fault, at)));
        let call = calls.get(at - 1).map_or("none", String::as_str);
        let what = format!("{fault:?} at {at}, {call}");
        met += usize::from(call != "none");
        match (fault, ended.code) {
            (Fault::Kill, code) => assert_eq!(code.is_none(), call != "none", "{what}"),
            (Fault::NoSpace, Some(0)) => {}
            (Fault::NoSpace, code) => {
                assert_eq!(code, Some(1), "{what}: {}", ended.errors);
                assert!(ended.errors.contains("no space left"), "{what}: {}", ended.errors);
            }
        }
        let found = chain.check("at/", &what);
        assert!(found.0 || ended.code != Some(0), "{what}: done without a set");
        assert!(found.1 == 0 || ended.code.is_none(), "{what}: only a killed run leaves a file");
        (sets, left) = (sets + usize::from(found.0), left + found.1);
        chain.goes_on("at/", found, &what);
    }
    eprintln!(
        "{fault:?}: {met} of {} calls tried; after {sets} there was a set, after {left} a part",
        calls.len()
    );
}

#[test]
fn a_run_is_killed_at_each_of_its_writes() {
    campaign(Fault::Kill);
}

#[test]
fn no_space_at_each_of_the_writes() {
    campaign(Fault::NoSpace);
}
