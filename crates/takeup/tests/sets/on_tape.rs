//! Chains on tape: on one volume and on several, with what is known of them and without, and after
//! a medium was written over.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::changes::World;
use crate::drive::Drive;
use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, stored, stored_in_all};

/// A folder with a drive, `drive/nst0`, and a state of its own.
struct Site {
    drive: Drive,
}

impl Site {
    fn with(capacity: &str) -> Site {
        Site { drive: Drive::with(&["--time", "none", "--capacity", capacity]) }
    }

    fn new() -> Site {
        Site::with("64M")
    }

    fn here(&self) -> &Path {
        self.drive.folder()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = crate::takeup();
        command.env("XDG_STATE_HOME", self.here().join("state")).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.here()).args(arguments).output().unwrap()
    }

    /// What the program prints on both streams; it ends with this code.
    #[track_caller]
    fn text(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    #[track_caller]
    fn answer(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {shown}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Backs up `tree`.
    #[track_caller]
    fn backup(&self, more: &[&str]) -> Value {
        let to = ["backup", "tree", "--to", "drive/nst0", "--incremental", "--block-size", "64k"];
        self.answer(&[&to[..], more].concat())
    }

    fn forget_all(&self) {
        fs::remove_dir_all(self.here().join("state")).unwrap();
    }

    fn load(&self, medium: &str) {
        let new: &[&str] = if self.here().join(medium).exists() { &[] } else { &["--new"] };
        let medium = self.here().join(medium);
        let arguments = ["sim", "load", "drive", medium.to_str().unwrap()];
        self.text(&[&arguments[..], new].concat(), 0);
    }

    /// A command that loads one medium after the other, from `first` on, and notes what was wanted.
    fn changer(&self, first: u32) -> String {
        let script = self.here().join("next");
        let takeup = env!("CARGO_BIN_EXE_takeup");
        let text = format!(
            "#!/bin/sh -e\ncd {here}\nnumber=$(cat number)\necho $((number % 4 + 1)) >number\n\
             [ -e m$number ] || new=--new\n{takeup} sim load drive {here}/m$number $new\n\
             echo $TAKEUP_ACTION $TAKEUP_VOLUME m$number >>asked\n",
            here = self.here().display(),
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(self.here().join("number"), first.to_string()).unwrap();
        let _ = fs::remove_file(self.here().join("asked"));
        script.to_str().unwrap().to_owned()
    }

    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.here().join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Extracts all archives of the tape in the drive, as GNU tar does with incremental dumps.
    fn gnu_tar(&self, files: &[u64], into: &Path) {
        fs::create_dir(into).unwrap();
        for file in files {
            self.drive.mt(&["rewind"]);
            if *file > 0 {
                self.drive.mt(&["fsf", &file.to_string()]);
            }
            let output = Command::new("tar")
                .args(["--listed-incremental=/dev/null", "--numeric-owner", "-b", "128", "-xpf"])
                .arg(self.drive.tape())
                .arg("-C")
                .arg(into)
                .env("LC_ALL", "C")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "file {file}: {text}");
        }
    }
}

fn noise(path: PathBuf, seed: u8, bytes: usize) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[seed]);
    let mut content = vec![0; bytes];
    hasher.finalize_xof().fill(&mut content);
    fs::write(path, content).unwrap();
}

/// The volume's files that begin with a segment of data, from `list --sets`.
fn data_files(sets: &Value) -> Vec<u64> {
    let sets = sets["sets"].as_array().unwrap();
    let files = |set: &Value| {
        let first = set["first_file"].as_u64().unwrap();
        let last = set["last_segment"].as_u64().unwrap() - set["first_segment"].as_u64().unwrap();
        first..first + last
    };
    sets.iter().flat_map(files).collect()
}

#[test]
fn every_day_of_a_tape_comes_back() {
    testkit::require!(Fuse);
    for seed in 900..904 {
        let site = Site::new();
        let mut world = World::new(site.here().join("tree"), seed);
        let mut days: Vec<(Snapshot, String)> = Vec::new();
        for _ in 0..4 {
            (0..world.random.index(8)).for_each(|_| _ = world.change());
            std::thread::sleep(TICK);
            let was = snapshot(&site.here().join("tree"));
            let done = site.backup(&[]);
            days.push((was, done["set"]["set"].as_str().unwrap().to_owned()));
        }
        for (number, (was, set)) in days.iter().enumerate() {
            let into = format!("out-{number}");
            let restored = site.answer(&["restore", "drive/nst0", "--set", set, "--into", &into]);
            let chain = restored["set"]["chain"].as_array().unwrap();
            assert_eq!(chain.len(), number + 1, "{restored:#}");
            let what = format!("seed {seed}, day {number}");
            assert_same(was, &snapshot(&site.here().join(into).join("tree")), &what);
        }
        // Without what is known, and by other means.
        site.forget_all();
        site.text(&["restore", "drive/nst0", "--into", "last"], 0);
        let was = &days.last().unwrap().0;
        assert_same(was, &snapshot(&site.here().join("last/tree")), "the last day");
        let into = site.here().join("tar");
        let sets = site.answer(&["list", "drive/nst0", "--sets"]);
        site.gnu_tar(&data_files(&sets), &into);
        assert_same(was, &snapshot(&into.join("tree")), &format!("seed {seed}, GNU tar"));
    }
}

#[test]
fn a_set_counts_on_the_tape_where_nothing_else_is_known() {
    testkit::require!(Fuse);
    let site = Site::new();
    let tree = site.here().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..20).for_each(|number| noise(tree.join(format!("f{number}")), number, 1000));
    std::thread::sleep(TICK);
    let full = site.backup(&[]);
    assert_eq!((&full["set"]["level"], stored(&full, "full")), (&0.into(), 21), "{full:#}");
    let names = site.answer(&["list", "drive/nst0", "--sets"]);
    let named = &names["sets"][0]["chain"];
    assert_eq!((&named["job"], &named["level"]), (&"backup".into(), &0.into()), "{names:#}");
    site.forget_all();
    fs::write(tree.join("new"), "new").unwrap();
    std::thread::sleep(TICK);
    let next = site.backup(&[]);
    assert_eq!(next["set"]["level"], 1, "{next:#}");
    let set = &next["set"]["set"].as_str().unwrap()[..8];
    let found = site.text(&["catalog", "find", "tree/new"], 0);
    let command = format!("takeup restore /dev/nst0 --set {set} tree/new --into DIR");
    assert!(found.contains(&command), "{found}");
    assert_eq!((stored(&next, "new"), stored_in_all(&next)), (1, 2), "{next:#}");
    assert_eq!(next["set"]["chain"].as_array().unwrap().len(), 2);
    // Of another machine's sets nothing is known here.
    let other =
        site.text(&["backup", "tree", "--to", "drive/nst0", "--incremental", "--job", "other"], 0);
    let why = "a full set is written: there is none of the job other to begin from";
    assert!(other.contains(why), "{other}");
    // By its job, though another job's is the last on the tape, and though it is not known here.
    site.forget_all();
    let restore = ["restore", "drive/nst0", "--job", "backup", "--into", "out"];
    let done = site.answer(&restore);
    assert_eq!((&done["set"]["job"], &done["set"]["number"]), (&"backup".into(), &2.into()));
    assert_same(&snapshot(&tree), &snapshot(&site.here().join("out/tree")), "the day");
    assert!(!site.here().join("state/takeup/tape-sets").exists(), "a restore keeps nothing");
    let none = site.text(&["restore", "drive/nst0", "--job", "homes", "--into", "out2"], 1);
    assert!(
        none.contains("there is no set of the job homes; the jobs are backup, other"),
        "{none}"
    );
}

/// Three media: the full set on the first two, later sets behind it.
fn three_media(site: &Site) -> Vec<(Snapshot, String)> {
    let tree = site.here().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..30).for_each(|number| noise(tree.join(format!("f{number}")), number, 200_000));
    let changer = site.changer(2);
    site.load("m1");
    let mut days = Vec::new();
    for day in 0..4_u8 {
        noise(tree.join(format!("day{day}")), 100 + day, 1_200_000);
        noise(tree.join("f3"), 200 + day, 200_000);
        let _ = fs::remove_file(tree.join(format!("f{}", 10 + day)));
        std::thread::sleep(TICK);
        let was = snapshot(&tree);
        let done = site.backup(&["--change-command", &changer]);
        days.push((was, done["set"]["set"].as_str().unwrap().to_owned()));
    }
    assert_eq!(site.asked(), ["write 2 m2", "write 2 m3"]);
    days
}

#[test]
fn a_chain_over_several_media_asks_for_each_once() {
    testkit::require!(Fuse);
    let site = Site::with("5M");
    let days = three_media(&site);
    let (was, set) = days.last().unwrap();
    // The last is in the drive; the first is wanted first.
    let changer = site.changer(1);
    let restore = ["restore", "drive/nst0", "--set", set, "--change-command", &changer];
    site.text(&[&restore[..], &["--into", "out"]].concat(), 0);
    assert_eq!(site.asked(), ["read 1 m1", "read 2 m2", "read 2 m3"]);
    assert_same(was, &snapshot(&site.here().join("out/tree")), "the last day");
    // One file needs one medium.
    let changer = site.changer(1);
    let restore = ["restore", "drive/nst0", "--set", set, "--change-command", &changer];
    site.text(&[&restore[..], &["tree/f0", "--into", "one"]].concat(), 0);
    assert_eq!(site.asked(), ["read 1 m1"]);
    assert!(site.here().join("one/tree/f0").exists());
    // An earlier day, by a drive that has a medium of no use, and by one that nothing is known of.
    site.forget_all();
    site.load("m3");
    let changer = site.changer(1);
    let restore = ["restore", "drive/nst0", "--change-command", &changer, "--into", "again"];
    site.text(&restore, 0);
    assert_same(was, &snapshot(&site.here().join("again/tree")), "the last day, from the tapes");
}

#[test]
fn a_lost_medium_is_named_and_the_rest_comes_back() {
    testkit::require!(Fuse);
    let site = Site::with("5M");
    let days = three_media(&site);
    let (was, set) = days.last().unwrap();
    // Whoever is asked has not the medium with the beginning of the full set.
    let full = &days[0].1;
    let changer = format!("[ $TAKEUP_SET$TAKEUP_VOLUME != {full}1 ] && {}", site.changer(2));
    let restore = ["restore", "drive/nst0", "--set", set, "--change-command", &changer];
    let refused = site.text(&[&restore[..], &["--into", "out"]].concat(), 1);
    assert!(refused.contains("volume 1 of set "), "{refused}");
    let partial = site.text(&[&restore[..], &["--into", "part", "--partial"]].concat(), 2);
    assert!(partial.contains("is in the set backup-"), "{partial}");
    assert!(partial.contains("which cannot be read: volume 1 of set"), "{partial}");
    let part = snapshot(&site.here().join("part/tree"));
    let lost: Vec<_> = was.keys().filter(|path| !part.contains_key(*path)).collect();
    // What the full set had, and nothing that came later.
    assert!(lost.len() >= 20, "{lost:?}");
    assert!(part.keys().any(|path| path.ends_with("day2")), "{partial}");
    for (path, object) in &part {
        assert_eq!(was.get(path), Some(object), "{path:?}");
    }
}

#[test]
fn nothing_counts_on_what_the_run_itself_writes_over() {
    testkit::require!(Fuse);
    let site = Site::new();
    let tree = site.here().join("tree");
    fs::create_dir(&tree).unwrap();
    noise(tree.join("first"), 1, 100_000);
    std::thread::sleep(TICK);
    site.backup(&[]);
    noise(tree.join("second"), 2, 100_000);
    std::thread::sleep(TICK);
    let next = site.backup(&["--overwrite"]);
    assert_eq!((&next["set"]["level"], stored(&next, "full")), (&0.into(), 3), "{next:#}");
    site.text(&["restore", "drive/nst0", "--into", "whole"], 0);
    assert_same(&snapshot(&tree), &snapshot(&site.here().join("whole/tree")), "the last day");
}

#[test]
fn what_is_known_of_tapes_is_never_needed() {
    testkit::require!(Fuse);
    let site = Site::new();
    let tree = site.here().join("tree");
    fs::create_dir(&tree).unwrap();
    noise(tree.join("first"), 1, 100_000);
    std::thread::sleep(TICK);
    // In the place of the state there is a file.
    fs::write(site.here().join("state"), "no folder").unwrap();
    let to = ["backup", "tree", "--to", "drive/nst0", "--incremental"];
    let said = site.text(&to, 2);
    assert!(said.contains("set 1: a full set, 2 objects stored"), "{said}");
    assert!(said.contains("no copy of the index can be kept"), "{said}");
    site.text(&["restore", "drive/nst0", "--into", "out"], 0);
    assert_same(&snapshot(&tree), &snapshot(&site.here().join("out/tree")), "the day");
    let refused = site.text(&["catalog", "forget", "drive/nst0", "--keep-last", "1", "--yes"], 1);
    assert!(refused.contains("sets on tape are not removed one by one"), "{refused}");
}

#[test]
fn a_medium_that_is_written_over_takes_its_sets_with_it() {
    testkit::require!(Fuse);
    let site = Site::new();
    let tree = site.here().join("tree");
    fs::create_dir(&tree).unwrap();
    noise(tree.join("first"), 1, 100_000);
    std::thread::sleep(TICK);
    site.load("m1");
    site.backup(&[]);
    noise(tree.join("second"), 2, 100_000);
    std::thread::sleep(TICK);
    site.load("m2");
    let second = site.backup(&[]);
    assert_eq!((&second["set"]["level"], stored(&second, "new")), (&1.into(), 1), "{second:#}");
    let set = second["set"]["set"].as_str().unwrap();
    // A backup of another kind: the full set is gone, and with it the day after it.
    site.load("m1");
    site.text(&["backup", "tree", "--to", "drive/nst0", "--overwrite"], 0);
    site.load("m2");
    let refused = site.text(&["restore", "drive/nst0", "--set", set, "--into", "out"], 1);
    assert!(refused.contains("whose medium was written over"), "{refused}");
    let partial =
        site.text(&["restore", "drive/nst0", "--set", set, "--into", "part", "--partial"], 2);
    assert!(partial.contains("tree/first: is in the set backup-"), "{partial}");
    assert!(site.here().join("part/tree/second").exists());
    let next = site.text(&["backup", "tree", "--to", "drive/nst0", "--incremental"], 0);
    assert!(next.contains("a full set is written: the set backup-"), "{next}");
    site.text(&["restore", "drive/nst0", "--into", "whole"], 0);
    assert_same(&snapshot(&tree), &snapshot(&site.here().join("whole/tree")), "the last day");
}
