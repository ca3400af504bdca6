//! Objects that change their kind, and directories that move, at the worst moment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use archive::member::MemberKind;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tree::*;

use crate::fixture::{capturer, object, paths, walk};

fn no_look_ahead() -> ScanOptions {
    let look_ahead = LookAheadLimits { threads: 0, ..LookAheadLimits::default() };
    ScanOptions { look_ahead, ..ScanOptions::default() }
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Lists `x` as made by `before`, replaces it by what `after` makes, captures.
fn turn(before: &dyn Fn(&Path), after: &dyn Fn(&Path)) -> Result<Capture, CaptureError> {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("secret"), "secret").unwrap();
    let source = home.path().join("source");
    fs::create_dir(&source).unwrap();
    let x = source.join("x");
    before(&x);
    let (entries, _) = walk(&[source], no_look_ahead());
    let _ = fs::remove_file(&x);
    let _ = fs::remove_dir(&x);
    after(&x);
    capturer().capture(&entries[1], None)
}

type Make<'a> = (&'a dyn Fn(&Path), EntryKind);

#[test]
fn what_is_there_now_is_archived() {
    let socket = |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    let kinds: [Make<'_>; 5] = [
        (&|path| fs::write(path, "content").unwrap(), EntryKind::File),
        (&|path| symlink("../secret", path).unwrap(), EntryKind::SymbolicLink),
        (&|path| fifo(path), EntryKind::Fifo),
        (&|path| fs::create_dir(path).unwrap(), EntryKind::Directory),
        (&socket, EntryKind::Socket),
    ];
    for (before, was) in kinds {
        for (after, is) in kinds {
            let capture = turn(before, after);
            if was == EntryKind::Socket || is == EntryKind::Socket {
                assert!(matches!(capture, Ok(Capture::Skipped(Skip::Socket))), "{was:?} {is:?}");
                continue;
            }
            let captured = object(capture.unwrap());
            assert_eq!(captured.turned_from, (was != is).then_some(was));
            assert_eq!(captured.file.is_some(), is == EntryKind::File);
            match captured.member.kind {
                MemberKind::File => assert_eq!(captured.member.size_bytes, 7),
                MemberKind::SymbolicLink { target } => assert_eq!(target, b"../secret"),
                MemberKind::Fifo => assert_eq!(is, EntryKind::Fifo),
                MemberKind::Directory => assert_eq!(is, EntryKind::Directory),
                kind => panic!("{kind:?}"),
            }
        }
        assert!(
            matches!(turn(before, &|_| ()), Err(CaptureError::Vanished))
                || was == EntryKind::Socket
        );
    }
}

/// Listed entries stay those of the directory that was listed.
#[test]
fn a_renamed_directory_is_still_read() {
    let home = tempfile::tempdir().unwrap();
    let source = home.path().join("source");
    fs::create_dir_all(source.join("a")).unwrap();
    fs::write(source.join("a/file"), "right").unwrap();
    let (entries, _) = walk(std::slice::from_ref(&source), no_look_ahead());
    fs::rename(source.join("a"), home.path().join("moved")).unwrap();
    fs::create_dir(home.path().join("wrong")).unwrap();
    fs::write(home.path().join("wrong/file"), "wrong content").unwrap();
    symlink("../wrong", source.join("a")).unwrap();
    let captured = object(capturer().capture(&entries[2], None).unwrap());
    assert_eq!(captured.member.size_bytes, 5);
}

/// Reads a scan without look-ahead until `path` was returned; its contents are not listed yet.
fn draw_until(scan: &mut Scan, path: &str, entries: &mut Vec<Entry>) {
    let mut items = Vec::new();
    loop {
        assert_eq!(scan.next_batch(&mut items), Progress::More);
        for item in items.drain(..) {
            let Item::Entry(entry) = item else { panic!("{item:?}") };
            entries.push(entry);
        }
        if entries.last().is_some_and(|entry| entry.path().ends_with(path.as_bytes())) {
            return;
        }
    }
}

fn draw_rest(scan: &mut Scan, entries: &mut Vec<Entry>) -> Vec<ScanProblem> {
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    while scan.next_batch(&mut items) == Progress::More {}
    for item in items {
        match item {
            Item::Entry(entry) => entries.push(entry),
            Item::Folder(folder) => entries.push(folder.entry),
            Item::Problem(problem) => problems.push(*problem),
        }
    }
    problems
}

#[test]
fn a_directory_swapped_for_a_link_is_not_entered() {
    let home = tempfile::tempdir().unwrap();
    let source = home.path().join("source");
    fs::create_dir_all(source.join("a")).unwrap();
    fs::create_dir(home.path().join("outside")).unwrap();
    fs::write(home.path().join("outside/secret"), "").unwrap();
    fs::write(source.join("b"), "").unwrap();
    let mut scan = Scan::start(std::slice::from_ref(&source), no_look_ahead()).unwrap();
    let mut entries = Vec::new();
    draw_until(&mut scan, "/a", &mut entries);
    fs::remove_dir(source.join("a")).unwrap();
    symlink("../outside", source.join("a")).unwrap();
    let problems = draw_rest(&mut scan, &mut entries);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].what, ScanProblemKind::OpenDirectory);
    assert!(problems[0].path.ends_with(b"source/a"));
    assert_eq!(paths(&entries).len(), 3);
}

/// So deep that the levels above are closed. One of them moves away while the walk is below it: its
/// remaining contents are reported missing, and the walk continues above.
#[test]
fn a_level_that_moved_away_is_told() {
    check_moved_away(5, false);
    check_moved_away(5, true);
}

/// Level `five` moves away. If `is_done`, none of its contents were still to come: then nothing is
/// missing.
fn check_moved_away(five: usize, is_done: bool) {
    let home = tempfile::tempdir().unwrap();
    let source = home.path().join("source");
    let down = |levels: usize| -> PathBuf {
        let below: PathBuf = std::iter::repeat_n("d", levels).collect();
        source.join(below)
    };
    let levels = OPEN_LEVELS_MAX + 20;
    fs::create_dir_all(down(levels)).unwrap();
    for level in 1..levels {
        if !(is_done && level == five) {
            fs::write(down(level).join("e-after"), "").unwrap();
        }
    }
    let mut scan = Scan::start(std::slice::from_ref(&source), no_look_ahead()).unwrap();
    let mut entries = Vec::new();
    let bottom = down(levels).to_str().unwrap()[1..].to_string();
    draw_until(&mut scan, &bottom, &mut entries);
    // The level below is moved elsewhere, so the way up from it leads to another directory that is
    // also called level 5.
    fs::rename(down(five + 1), home.path().join("moved")).unwrap();
    fs::rename(down(five), home.path().join("old-five")).unwrap();
    fs::create_dir(down(five)).unwrap();
    let problems = draw_rest(&mut scan, &mut entries);
    let moved: Vec<_> = problems
        .iter()
        .map(|problem| (problem.what, String::from_utf8_lossy(&problem.path).into_owned()))
        .collect();
    let path = down(five).to_str().unwrap()[1..].to_string();
    let expected = if is_done { vec![] } else { vec![(ScanProblemKind::Moved, path)] };
    assert_eq!(moved, expected);
    let after = paths(&entries).iter().filter(|path| path.ends_with("e-after")).count();
    assert_eq!(after, levels - 1 - 1, "all but that of level 5");
}
