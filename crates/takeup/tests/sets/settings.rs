//! Settings that are others than those of the last set: the next one is a full one and says why,
//! it holds exactly what the new settings mean, and the sets before it still come back.

use std::fs;
use std::path::Path;

use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, run, text};
use testkit::mounted::Mounted;

struct Days<'a> {
    here: &'a Path,
    /// What each set must give back.
    expected: Vec<Snapshot>,
    level: u64,
}

impl Days<'_> {
    /// An incremental run. `why` is part of the reason for a full set; `None`: it is none.
    #[track_caller]
    fn run(&mut self, arguments: &[&str], why: Option<&str>, leaves_out: &[&str]) {
        let all = [&["backup", "--to", "sets/", "-i"], arguments].concat();
        let output = run(self.here, &all);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{said}");
        match why {
            Some(why) => {
                assert!(said.contains("a full set is written: "), "{said}");
                assert!(said.contains(why), "{said}");
                self.level = 0;
            }
            None => {
                assert!(!said.contains("a full set"), "{said}");
                self.level += 1;
            }
        }
        let mut expected = Snapshot::new();
        for (path, object) in snapshot(self.here) {
            let mut sources = arguments.iter().filter(|it| !it.starts_with('-') && **it != "*.o");
            let is_in = sources.any(|source| path.starts_with(source));
            if is_in && !leaves_out.iter().any(|it| path.starts_with(it)) {
                expected.insert(path, object);
            }
        }
        self.expected.push(expected);
        self.check(self.expected.len());
    }

    #[track_caller]
    fn check(&self, number: usize) {
        let set = number.to_string();
        let all = ["restore", "sets/", "--set", &set, "--into", "back", "--no-sync"];
        let restored = answer(self.here, &all);
        if number == self.expected.len() {
            assert_eq!(restored["set"]["level"], self.level, "set {number}");
        }
        let back = self.here.join("back");
        let mut there = snapshot(&back);
        there.remove(Path::new(""));
        assert_same(&self.expected[number - 1], &there, &format!("set {number}"));
        fs::remove_dir_all(back).unwrap();
    }
}

#[test]
fn other_settings_mean_a_full_set() {
    testkit::require!(Mounts);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for path in ["tree/mounted", "tree/a", "other"] {
        fs::create_dir_all(here.join(path)).unwrap();
    }
    for path in ["tree/one", "tree/a/x.o", "other/two"] {
        fs::write(here.join(path), format!("content of {path}")).unwrap();
    }
    let place = here.join("tree/mounted");
    let _mounted = Mounted::new(&["-t", "tmpfs", "tmpfs"], &place);
    fs::write(place.join("inside"), "of another file system").unwrap();
    std::thread::sleep(TICK);
    let mut days = Days { here, expected: Vec::new(), level: 0 };
    let inside = ["tree/mounted/inside"];
    days.run(&["tree"], Some("there is none of the job backup"), &[]);
    days.run(&["tree"], None, &[]);
    days.run(&["tree", "--one-file-system"], Some("was made with other options"), &inside);
    days.run(&["tree", "--one-file-system"], None, &inside);
    days.run(&["tree"], Some("was made with other options"), &[]);
    days.run(&["tree", "--exclude", "*.o"], Some("has other excludes"), &["tree/a/x.o"]);
    days.run(&["tree", "--exclude", "*.o"], None, &["tree/a/x.o"]);
    days.run(&["tree"], Some("has other excludes"), &[]);
    days.run(&["tree", "other"], Some("has other sources"), &[]);
    days.run(&["tree", "other"], None, &[]);
    days.run(&["other", "tree"], Some("has other sources"), &[]);
    days.run(&["other"], Some("has other sources"), &[]);
    for number in 1..=days.expected.len() {
        days.check(number);
    }
}

/// A source of the same words that is another folder.
#[test]
fn the_same_words_from_another_folder_are_another_source() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for place in ["here", "there"] {
        fs::create_dir_all(here.join(place).join("tree")).unwrap();
        fs::write(here.join(place).join("tree/file"), place).unwrap();
    }
    text(&here.join("here"), &["backup", "tree", "--to", "../sets/"], 0);
    let said = text(&here.join("there"), &["backup", "tree", "--to", "../sets/", "-i"], 0);
    assert!(said.contains("a full set is written") && said.contains("has other sources"), "{said}");
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_eq!(fs::read(here.join("back/tree/file")).unwrap(), b"there");
}
