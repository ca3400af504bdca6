//! Runs that look only where a list of changes leads: what a right list misses nothing of, what
//! lists get wrong all the same, and audits, which find what they miss.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use testkit::samples::Random;

use crate::changes::World;
use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, archive, backup, gnu_tar, run, stored, stored_in_all, text};
use testkit::mounted::Mounted;

/// What a change of an object leaves a trace in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    is_folder: bool,
    inode: u64,
    links: u64,
    numbers: [i64; 6],
}

type States = BTreeMap<PathBuf, State>;

fn states(root: &Path) -> States {
    let (mut found, mut waiting) = (States::new(), vec![root.to_owned()]);
    while let Some(path) = waiting.pop() {
        let it = fs::symlink_metadata(&path).unwrap();
        if it.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let times = [it.ctime(), it.ctime_nsec(), it.mtime(), it.mtime_nsec()];
        let numbers = [times[0], times[1], times[2], times[3], it.mode().into(), it.size() as i64];
        let (is_folder, inode, links) = (it.is_dir(), it.ino(), it.nlink());
        found.insert(path, State { is_folder, inode, links, numbers });
    }
    found
}

/// What has changed, as a program may list it that knows no more than it must: of a file with
/// several names one, of a new folder not what is in it, in the place of a name perhaps its folder.
fn right_list(before: &States, now: &States, random: &mut Random) -> BTreeSet<PathBuf> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(now.keys()).collect();
    let mut changed: BTreeSet<PathBuf> =
        paths.into_iter().filter(|path| before.get(*path) != now.get(*path)).cloned().collect();
    let is_new_folder = |path: &Path| {
        let now = now.get(path).filter(|now| now.is_folder);
        now.is_some_and(|now| before.get(path).is_none_or(|it| it.inode != now.inode))
    };
    if random.below(2) == 0 {
        changed.retain(|path| !path.ancestors().skip(1).any(is_new_folder));
    }
    let mut files = BTreeSet::new();
    if random.below(3) > 0 {
        changed.retain(|path| match (before.get(path), now.get(path)) {
            (Some(was), Some(is)) if !is.is_folder && is.links > 1 && was.inode == is.inode => {
                files.insert(is.inode)
            }
            _ => true,
        });
    }
    if random.below(2) == 0 {
        let all = changed.clone();
        let has_listed = |path: &Path| all.iter().any(|it| it.parent() == Some(path));
        changed.retain(|path| {
            let is_folder = now.get(path).is_some_and(|it| it.is_folder);
            !is_folder || is_new_folder(path) || !has_listed(path)
        });
    }
    if random.below(2) == 0 {
        let folder_of = |path: PathBuf| match random.below(3) {
            0 if !now.get(&path).is_some_and(|it| it.is_folder) => path.parent().unwrap().into(),
            _ => path,
        };
        changed = changed.into_iter().map(folder_of).collect();
    }
    changed
}

/// Writes a list, by paths that are relative to `here` or not.
fn write_list(here: &Path, paths: &BTreeSet<PathBuf>, random: &mut Random) {
    let mut bytes = Vec::new();
    for path in paths {
        let path = match random.below(3) {
            0 => path.strip_prefix(here).unwrap(),
            _ => path,
        };
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        let is_folder = path.is_dir();
        bytes.extend_from_slice(if is_folder && random.below(4) == 0 { b"/\0" } else { b"\0" });
    }
    fs::write(here.join("list"), bytes).unwrap();
}

struct Day {
    was: Snapshot,
    set: String,
    chain: Vec<PathBuf>,
}

fn history(seed: u64) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let here = &folder.path().canonicalize().unwrap();
    let root = here.join("tree");
    let mut world = World::new(root.clone(), seed);
    let mut random = Random::new(seed + 1_000_000);
    let (mut days, mut told): (Vec<Day>, Vec<String>) = (Vec::new(), Vec::new());
    let mut counts = [0, 0];
    let mut before = States::new();
    for day in 0..2 + world.random.index(4) {
        for _ in 0..if day > 0 { world.random.index(8) } else { 0 } {
            told.push(format!("{day}: {}", world.change()));
        }
        if world.random.below(4) > 0 {
            std::thread::sleep(TICK);
        }
        let now = states(&root);
        let list = right_list(&before, &now, &mut random);
        write_list(here, &list, &mut random);
        told.push(format!("{day}: {list:?}"));
        let was = snapshot(&root);
        let more: &[&str] = match (day, world.random.below(4)) {
            (0, _) => &[],
            (_, 0) => &["-i", "--changed-from", "list", "--audit-every", "1"],
            _ => &["-i", "--changed-from", "list"],
        };
        let done = backup(here, more);
        if day > 0 {
            assert_eq!(done["changed_from"]["missed"], 0, "seed {seed}: {told:?}\n{done}");
            counts[0] += done["changed_from"]["folders_read"].as_u64().unwrap();
            counts[1] += now.values().filter(|it| it.is_folder).count() as u64;
        }
        before = now;
        if world.random.below(2) == 0 {
            world.edit();
        }
        let mut chain = days.last().map(|day| day.chain.clone()).unwrap_or_default();
        chain.push(archive(here, &done));
        days.push(Day { was, set: done["set"]["set"].as_str().unwrap().to_owned(), chain });
    }
    for (number, day) in days.iter().enumerate() {
        let what = format!("seed {seed}, day {number} of {} ({told:#?})", days.len());
        let into = format!("takeup-{number}");
        answer(here, &["restore", "sets/", "--set", &day.set, "--into", &into]);
        assert_same(&day.was, &snapshot(&here.join(into).join("tree")), &format!("{what}, takeup"));
        let into = here.join(format!("tar-{number}"));
        gnu_tar(&day.chain, &into);
        assert_same(&day.was, &snapshot(&into.join("tree")), &format!("{what}, GNU tar"));
        fs::remove_dir_all(into).unwrap();
    }
    counts
}

#[test]
fn every_day_comes_back_by_a_right_list() {
    let seeds = if std::env::var_os("TAKEUP_LONG").is_some() { 500 } else { 20 };
    let mut sums = [0, 0];
    for seed in 0..seeds {
        let counts = history(seed);
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    // The runs are no full looks in disguise, though much in these trees is doubtful.
    assert!(sums[0] < sums[1], "{sums:?}");
}

/// A list of paths below `tree`, each with a NUL behind it.
fn list(here: &Path, paths: &[&str]) {
    let text: String = paths.iter().map(|path| format!("tree/{path}\0")).collect();
    fs::write(here.join("list"), text).unwrap();
}

/// A file with several names is doubtful for this long after a change.
const LINKS_SETTLE: Duration = Duration::from_millis(1200);
const BY_LIST: [&str; 3] = ["-i", "--changed-from", "list"];

/// Ten folders of five files, one of them a level deeper, that are not doubtful.
fn planted() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10 {
        let path = folder.path().join(format!("tree/{number}/deep"));
        fs::create_dir_all(&path).unwrap();
        for name in ["a", "b", "c", "d", "deep/e"] {
            fs::write(path.join("..").join(name), format!("{name} of {number}")).unwrap();
        }
    }
    std::thread::sleep(TICK);
    folder
}

#[track_caller]
fn comes_back(here: &Path, was: &Snapshot) {
    answer(here, &["restore", "sets/", "--into", "back", "--no-sync"]);
    assert_same(was, &snapshot(&here.join("back/tree")), "back");
    fs::remove_dir_all(here.join("back")).unwrap();
}

#[test]
fn only_where_the_list_leads_folders_are_read() {
    let folder = planted();
    let here = folder.path();
    let first = backup(here, &[]);
    assert_eq!((stored_in_all(&first), &first["changed_from"]), (71, &Value::Null));
    list(here, &[]);
    let done = backup(here, &BY_LIST);
    assert_eq!(done["changed_from"]["folders_read"], 0, "{done}");
    assert_eq!((done["set"]["unchanged"].as_u64(), stored_in_all(&done)), (Some(71), 0));

    fs::write(here.join("tree/3/b"), "another content").unwrap();
    fs::write(here.join("tree/7/deep/new"), "new").unwrap();
    fs::remove_file(here.join("tree/7/deep/e")).unwrap();
    // Not in the list, and so not seen.
    fs::write(here.join("tree/4/b"), "not in the list").unwrap();
    std::thread::sleep(TICK);
    list(here, &["3/b", "7/deep/new", "7/deep/e", "8/nothing", "9/deep"]);
    let done = backup(here, &BY_LIST);
    // 3, 7/deep, 8 and 9/deep, and not 7 and 9 on the way to them.
    assert_eq!(done["changed_from"]["folders_read"], 5, "{done}");
    assert_eq!((stored(&done, "size"), stored(&done, "new")), (1, 1), "{done}");
    assert_eq!(done["set"]["deleted"], 1);
    let shown = run(here, &["restore", "sets/", "--into", "old", "--no-sync", "tree/4/b"]);
    assert!(shown.status.success());
    assert_eq!(fs::read(here.join("old/tree/4/b")).unwrap(), b"b of 4");
    list(here, &["4/b"]);
    backup(here, &BY_LIST);
    comes_back(here, &snapshot(&here.join("tree")));
}

/// The kernel counts, not the program.
#[test]
fn an_empty_list_has_no_folder_read() {
    testkit::require!(Strace);
    let folder = planted();
    let here = folder.path();
    backup(here, &[]);
    list(here, &[]);
    let calls = |more: &[&str]| -> (usize, usize) {
        let output = std::process::Command::new("strace")
            .args(["-f", "-qq", "-o", "calls", "-e", "trace=getdents64,newfstatat,statx,openat"])
            .arg(env!("CARGO_BIN_EXE_takeup"))
            .args(["backup", "tree", "--to", "sets/", "-i", "-q"])
            .args(more)
            .current_dir(here)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls = fs::read_to_string(here.join("calls")).unwrap();
        let of = |call: &str, in_tree: fn(&str) -> bool| {
            calls.lines().filter(|line| line.contains(call) && in_tree(line)).count()
        };
        let names: fn(&str) -> bool =
            |line| ["\"a\"", "\"b\"", "\"e\""].iter().any(|it| line.contains(it));
        (of("getdents64(", |_| true), of("newfstatat(", names))
    };
    let (all, all_looks) = calls(&[]);
    let (listed, looks) = calls(&["--changed-from", "list"]);
    // Each folder takes two calls, and there are 21: of the tree, and of it the source's own names,
    // which say whether it is empty, remain.
    assert_eq!((all - listed, all_looks, looks), (2 * 21, 3 * 10, 0));
}

#[test]
fn other_names_of_a_listed_file_are_decided_alike() {
    let folder = planted();
    let here = folder.path();
    let tree = here.join("tree");
    // Before and behind the listed name, and in a folder that is moved.
    fs::hard_link(tree.join("5/a"), tree.join("1/link")).unwrap();
    fs::hard_link(tree.join("5/a"), tree.join("9/deep/link")).unwrap();
    fs::hard_link(tree.join("6/deep/e"), tree.join("2/deep/link")).unwrap();
    std::thread::sleep(LINKS_SETTLE);
    backup(here, &[]);
    fs::write(tree.join("5/a"), "changed by one of its names").unwrap();
    fs::rename(tree.join("6/deep"), tree.join("6/moved")).unwrap();
    std::thread::sleep(TICK);
    list(here, &["5/a", "6"]);
    let done = backup(here, &BY_LIST);
    assert_eq!((stored(&done, "size"), stored(&done, "new")), (1, 2), "{done}");
    let was = snapshot(&tree);
    comes_back(here, &was);
    // What the set says holds for the next one.
    std::thread::sleep(LINKS_SETTLE);
    backup(here, &["-i"]);
    list(here, &[]);
    let done = backup(here, &BY_LIST);
    assert_eq!(stored_in_all(&done), 0, "{done}");
    comes_back(here, &was);
}

/// Inode numbers are those of one file system.
#[test]
fn a_file_of_the_same_number_elsewhere_is_another() {
    testkit::require!(Mounts);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let tree = here.join("tree");
    let mut mounted = Vec::new();
    for name in ["a", "b"] {
        let place = tree.join(name);
        fs::create_dir_all(&place).unwrap();
        mounted.push(Mounted::new(&["-t", "tmpfs", "tmpfs"], &place));
        fs::write(place.join("file"), format!("content of {name}")).unwrap();
        fs::hard_link(place.join("file"), place.join("link")).unwrap();
    }
    let inode = |path: &str| fs::metadata(tree.join(path)).unwrap().ino();
    assert_eq!(inode("a/file"), inode("b/file"));
    std::thread::sleep(LINKS_SETTLE);
    backup(here, &[]);
    fs::write(tree.join("a/file"), "another content").unwrap();
    std::thread::sleep(TICK);
    list(here, &["a/file"]);
    let done = backup(here, &BY_LIST);
    assert_eq!(stored(&done, "size"), 2, "{done}");
    comes_back(here, &snapshot(&tree));
}

#[test]
fn doubtful_objects_are_looked_at_whatever_the_list_says() {
    let folder = planted();
    let here = folder.path();
    fs::write(here.join("tree/2/b"), "within a tick").unwrap();
    backup(here, &[]);
    // Of the same size; that its times differ plays no part.
    fs::write(here.join("tree/2/b"), "wiTHIN a tick").unwrap();
    std::thread::sleep(TICK);
    list(here, &[]);
    let done = backup(here, &BY_LIST);
    assert!(stored(&done, "doubtful") >= 1, "{done}");
    comes_back(here, &snapshot(&here.join("tree")));
}

/// A folder that was replaced by another is walked whole, though the list has only its name.
#[test]
fn new_and_replaced_folders_are_walked_whole() {
    let folder = planted();
    let here = folder.path();
    let tree = here.join("tree");
    backup(here, &[]);
    fs::rename(tree.join("1"), tree.join("new")).unwrap();
    fs::rename(tree.join("2"), tree.join("1")).unwrap();
    fs::remove_dir_all(tree.join("3")).unwrap();
    fs::write(tree.join("3"), "is a file now").unwrap();
    fs::remove_file(tree.join("4/a")).unwrap();
    fs::create_dir(tree.join("4/a")).unwrap();
    fs::write(tree.join("4/a/inside"), "was a file").unwrap();
    std::thread::sleep(TICK);
    for paths in [&["1", "3", "4/a"][..], &["new/deep/e", "1/deep/e", "3/deep", "4/a/inside"]] {
        list(here, paths);
        let all = [&["backup", "tree", "--to", "sets/", "-n"], &BY_LIST[..]].concat();
        let dry = answer(here, &all);
        // new with what is in it, 3, 4/a with what is in it; 1 with what is in it, tree and 4.
        let expected = (7 + 3, 7 + 3 + 7 + 2);
        assert_eq!((stored(&dry, "new"), stored_in_all(&dry)), expected, "{paths:?}: {dry}");
    }
    backup(here, &BY_LIST);
    comes_back(here, &snapshot(&tree));
}

/// A list that misses things: runs by it do not see them, and each third run names just these.
#[test]
fn an_audit_names_what_the_list_missed_and_nothing_else() {
    let folder = planted();
    let here = folder.path();
    let tree = here.join("tree");
    backup(here, &[]);
    fs::write(tree.join("0/a"), "missed: an edit").unwrap();
    fs::write(tree.join("1/deep/new"), "missed: a file, and the time of its folder").unwrap();
    fs::remove_file(tree.join("2/deep/e")).unwrap();
    fs::set_permissions(tree.join("3/d"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(tree.join("4/deep/folder")).unwrap();
    fs::write(tree.join("4/deep/folder/inside"), "missed, too").unwrap();
    // In the list, or beside what is: the times of 5 show that it has to be read.
    fs::remove_dir_all(tree.join("5/deep")).unwrap();
    fs::write(tree.join("6/a"), "in the list").unwrap();
    fs::write(tree.join("6/b"), "beside what is in the list").unwrap();
    fs::rename(tree.join("7"), tree.join("new")).unwrap();
    std::thread::sleep(TICK);
    let audited = [&BY_LIST[..], &["--audit-every", "3"]].concat();
    for looked in ["list", "list", "audit", "list", "list", "audit"] {
        list(here, &["6/a", "new", "7", "8/nothing"]);
        let arguments = [&["backup", "tree", "--to", "sets/", "--json"], &audited[..]].concat();
        let output = run(here, &arguments);
        let done: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(done["changed_from"]["looked"], looked, "{done}");
        let missed: Vec<&str> = done["changed_from"]["missed_first"]
            .as_array()
            .unwrap()
            .iter()
            .map(|path| path.as_str().unwrap().strip_prefix("tree/").unwrap())
            .collect();
        let is_first_audit = done["set"]["number"] == 4;
        let expected = [
            "0/a",
            "1/deep",
            "1/deep/new",
            "2/deep",
            "2/deep/e",
            "3/d",
            "4/deep",
            "4/deep/folder",
            "4/deep/folder/inside",
        ];
        let expected = if is_first_audit { &expected[..] } else { &[] };
        let mut sorted = missed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{done}");
        assert_eq!(done["changed_from"]["missed"], expected.len() as u64);
        assert_eq!(output.status.code(), Some(if is_first_audit { 2 } else { 0 }), "{done}");
        if is_first_audit {
            let warning = "the list of changes missed 9 changes: tree/";
            assert!(done["warnings"][0]["text"].as_str().unwrap().starts_with(warning), "{done}");
        }
        if done["set"]["number"].as_u64() >= Some(4) {
            comes_back(here, &snapshot(&tree));
        }
    }
    // What changes after the list was written is in the next one.
    std::thread::sleep(TICK);
    fs::write(tree.join("9/a"), "later than the list").unwrap();
    let done = backup(here, &[&BY_LIST[..], &["--audit-every", "1"]].concat());
    assert_eq!((stored(&done, "size"), &done["changed_from"]["missed"]), (1, &0.into()), "{done}");
}

#[test]
fn lists_that_cannot_be_used() {
    let folder = planted();
    let here = folder.path();
    list(here, &["1/a"]);
    fn backup<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["backup", "tree", "--to", "sets/"], more].concat()
    }
    let said = text(here, &backup(&["--changed-from", "list"]), 1);
    assert!(said.contains("stores everything, whatever a list"), "{said}");
    // No set to begin from.
    let said = text(here, &backup(&BY_LIST), 0);
    assert!(said.contains("a full set is written: there is none of the job backup"), "{said}");
    assert!(said.contains("the list of changes was not used"), "{said}");
    let sets = || fs::read_dir(here.join("sets")).unwrap().count();
    let before = sets();
    for (bytes, expected) in [
        (&b"tree/1/a\ntree/2/b\n"[..], "does not end with a NUL"),
        (b"tree/1/a\0tree/2", "does not end with a NUL"),
        (&b"tree/a\0".repeat((1 << 20) + 1), "is too long: more than 1048576 paths"),
    ] {
        fs::write(here.join("list"), bytes).unwrap();
        let said = text(here, &backup(&BY_LIST), 1);
        assert!(said.contains(expected), "{said}");
    }
    let said = text(here, &backup(&["-i", "--changed-from", "missing"]), 1);
    assert!(said.contains("cannot read the list missing: no such file"), "{said}");
    let said = text(here, &backup(&["-i", "--audit-every", "3"]), 1);
    assert!(said.contains("--changed-from"), "{said}");
    assert_eq!(sets(), before);
}

#[test]
fn paths_of_a_list_are_found_however_the_source_is_called() {
    let folder = planted();
    let here = folder.path();
    std::os::unix::fs::symlink(here, here.join("way")).unwrap();
    for source in ["tree", "./tree/", "way/tree", "../", "."] {
        let from = if source.starts_with('.') && source.len() < 4 {
            here.join("tree/5")
        } else {
            here.to_owned()
        };
        let from = if source == "." { here.join("tree") } else { from };
        let sets = format!("--to={}/sets-{}/", here.display(), source.len());
        text(&from, &["backup", source, &sets, "-x", "sets-*"], 0);
        let content = format!("changed for {source}");
        fs::write(here.join("tree/5/a"), &content).unwrap();
        std::thread::sleep(TICK);
        let inside = here.join("tree/5/a").canonicalize().unwrap();
        let mut list = inside.as_os_str().as_bytes().to_vec();
        list.extend_from_slice(b"\0/elsewhere/a\0\0/elsewhere/b\0");
        fs::write(here.join("list"), list).unwrap();
        let list = here.join("list");
        let list = list.to_str().unwrap();
        let more = ["backup", source, &sets, "-x", "sets-*", "-i", "--changed-from", list];
        let done = answer(&from, &more);
        assert_eq!(done["changed_from"]["paths"], 1, "{source}: {done}");
        assert_eq!(done["changed_from"]["outside"], 2, "{source}: {done}");
        assert_eq!(stored(&done, "size") + stored(&done, "mtime"), 1, "{source}: {done}");
        let said = text(&from, &[&more[..], &["-n"]].concat(), 0);
        assert!(
            said.contains("2 paths are not in the sources, and ignored: /elsewhere/a"),
            "{said}"
        );
    }
}

/// Another file system in the tree, and folders that are left out.
#[test]
fn what_is_left_out_stays_out() {
    testkit::require!(Mounts);
    let folder = planted();
    let here = folder.path();
    let place = here.join("tree/3/mounted");
    let _mounted = Mounted::new(&["-t", "tmpfs", "tmpfs"], &place);
    fs::write(place.join("inside"), "of another file system").unwrap();
    std::thread::sleep(TICK);
    for more in [&["-x", "tree/4", "-x", "deep"][..], &["--one-file-system"]] {
        let arguments = [&["backup", "tree", "--to", "sets/"], more].concat();
        let first = answer(here, &arguments);
        for path in ["4/a", "5/deep/e", "3/mounted/inside", "3/a"] {
            fs::write(here.join("tree").join(path), format!("{path} of {more:?}")).unwrap();
        }
        std::thread::sleep(TICK);
        list(here, &["4/a", "5/deep/e", "3/mounted/inside", "3/a"]);
        let all = answer(here, &[&arguments[..], &["-i", "-n"]].concat());
        let done = answer(here, &[&arguments[..], &BY_LIST].concat());
        assert_eq!(done["set"]["stored"], all["set"]["stored"], "{done}");
        let objects =
            |answer: &Value| stored_in_all(answer) + answer["set"]["unchanged"].as_u64().unwrap();
        assert_eq!(objects(&done), objects(&first), "{done}");
    }
}
