//! A restore by root into a folder of a user who changes names in it, at every system call of the
//! restore about names or metadata.
//!
//! Before the n-th such call the program is stopped, and a thread of user 65534 acts once in his
//! folder: he exchanges the newest object for one of root's that is there or for a decoy of his
//! own, places a decoy where an object will be created, unlinks, or swaps. Then the program
//! continues. Whatever it reports: nothing outside has changed, root's objects in the folder are
//! still root's, and only the user's archived program has a set-ID bit or capability.
//!
//! `TAKEUP_CAMPAIGN_BINARY` names another binary to compare with.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod attack;
mod interrupted;
mod scene;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::stepper::{Call, CallVerdict, Step, Stepped};

use attack::{ATTACKS, Attack};
use scene::Scene;

/// Calls between which an attack is possible: all that name or change an object.
const CALLS: &[&str] = &[
    "openat",
    "openat2",
    "newfstatat",
    "fstat",
    "statx",
    "fstatfs",
    "mkdirat",
    "mkdir",
    "mknodat",
    "linkat",
    "symlinkat",
    "renameat",
    "renameat2",
    "unlinkat",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "utimensat",
    "fsetxattr",
    "setxattr",
    "getxattr",
    "fremovexattr",
    "pwrite64",
    "ftruncate",
    "fsync",
];

/// Counts the calls that concern the scene, and attacks before one of them.
struct Hostile<'a> {
    scene: &'a Scene,
    calls: usize,
    /// The attacked call, and the attack.
    act: Option<(usize, Attack)>,
}

impl Hostile<'_> {
    fn is_of_scene(&self, call: &Call) -> bool {
        if !call.name().is_some_and(|name| CALLS.contains(&name)) {
            return false;
        }
        let in_scene =
            |path: &Path| path.starts_with(self.scene.home()) || path.starts_with("/proc/self/fd");
        call.file().is_some_and(|path| in_scene(&path))
            || call.path().is_some_and(|path| in_scene(&path))
            || call.name() == Some("symlinkat")
    }
}

impl Step for Hostile<'_> {
    fn before(&mut self, call: &Call) -> CallVerdict {
        if self.is_of_scene(call) {
            if let Some((_, attack)) = self.act.filter(|(at, _)| *at == self.calls) {
                self.scene.as_the_user(move |folder| attack.act(folder));
            }
            self.calls += 1;
        }
        CallVerdict::Pass
    }
}

/// Restores with one attack before one call; returns the number of calls.
fn run(archive: &Path, act: Option<(usize, Attack)>, options: &[&str]) -> (usize, Vec<String>) {
    let scene = Scene::new();
    let binary = std::env::var_os("TAKEUP_CAMPAIGN_BINARY")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_takeup").into());
    let mut command = Command::new(binary);
    command.arg("restore").arg(archive).arg("--into").arg(scene.destination());
    command.args(["--owners", "numbers", "--threads", "1", "--quiet"]).args(options);
    let mut hostile = Hostile { scene: &scene, calls: 0, act };
    let stepped = Stepped::new(&command, "/dev/null", Duration::from_secs(60));
    let ended = stepped.run(&mut hostile).unwrap();
    let calls = hostile.calls;
    let mut found = scene.violations();
    if ended.hung || !matches!(ended.code, Some(0..=2)) {
        found.push(format!("ended with {:?}, hung: {}", ended.code, ended.hung));
    }
    if act.is_none() {
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        scene.assert_restored();
    }
    (calls, found)
}

fn campaign(archive: &Path, options: &[&str], is_due: impl Fn(usize, usize) -> bool) {
    let (calls, found) = run(archive, None, options);
    assert!(found.is_empty(), "{found:?}");
    let (mut runs, mut wrong) = (0, Vec::new());
    for call in 0..calls {
        for (number, attack) in ATTACKS.iter().enumerate() {
            if !is_due(call, number) {
                continue;
            }
            runs += 1;
            let (_, found) = run(archive, Some((call, *attack)), options);
            wrong.extend(found.iter().map(|it| format!("call {call}, {attack:?}: {it}")));
        }
    }
    eprintln!("hostile folder: {runs} runs, {calls} calls, {} attacks", ATTACKS.len());
    assert!(wrong.is_empty(), "{} of {runs}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every call with one attack, which varies from call to call.
#[test]
fn nothing_of_roots_is_given_away() {
    testkit::require!(Root, Attributes, GnuTar);
    let folder = tempfile::tempdir().unwrap();
    let archive = scene::archive(folder.path());
    campaign(&archive, &["--overwrite"], |call, attack| call % ATTACKS.len() == attack);
}

/// Every call with every attack, with existing objects replaced, and with existing objects kept.
#[test]
fn nothing_of_roots_is_given_away_long() {
    testkit::long_run!();
    testkit::require!(Root, Attributes, GnuTar);
    let folder = tempfile::tempdir().unwrap();
    let archive = scene::archive(folder.path());
    campaign(&archive, &["--overwrite"], |_, _| true);
    campaign(&archive, &["--overwrite=keep-newer", "--no-sync"], |_, _| true);
}
