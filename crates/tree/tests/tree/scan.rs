//! Order, paths, limits and excludes of the walk.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::interruptible::openat;
use rustix::fs::{Mode, OFlags, mkdirat};
use tree::*;

use crate::fixture::{capturer, object, paths, walk};

fn with_threads(threads: usize) -> ScanOptions {
    let look_ahead = LookAheadLimits { threads, ..LookAheadLimits::default() };
    ScanOptions { look_ahead, ..ScanOptions::default() }
}

/// Every kind of look-ahead: none, usual, hardly any room, no room for names at all.
fn look_aheads() -> Vec<ScanOptions> {
    let options = |threads, directories, names_bytes| ScanOptions {
        look_ahead: LookAheadLimits {
            threads,
            directories,
            names_bytes,
            ..LookAheadLimits::default()
        },
        ..ScanOptions::default()
    };
    vec![
        options(0, 64, 8 << 20),
        options(8, 64, 8 << 20),
        options(2, 1, 1),
        options(3, 5, 200),
        options(4, 64, 0),
    ]
}

fn touch(path: PathBuf) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

fn naive(path: &Path, name: String, all: &mut Vec<String>) {
    all.push(name.clone());
    if !fs::symlink_metadata(path).unwrap().is_dir() {
        return;
    }
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for below in names {
        let below = below.into_string().unwrap();
        naive(&path.join(&below), format!("{name}/{below}"), all);
    }
}

/// A tree of 1,111 directories with a few files each; names that sort differently with a slash
/// behind them (`a`, `a-b`, `a/b`).
fn bushy(root: &Path) {
    for a in 0..10 {
        for b in 0..10 {
            for c in ["a", "a-b", "a.b", "ab", "B", "x\u{e9}", "prefix-of", "prefix-off", "z", "_"]
            {
                let directory = root.join(format!("d{a}/e-{b}/{c}"));
                fs::create_dir_all(&directory).unwrap();
                for file in 0..(a + b) % 4 {
                    fs::write(directory.join(format!("f{file}")), "").unwrap();
                }
            }
        }
    }
    symlink("d0", root.join("d0-link")).unwrap();
}

#[test]
fn the_order_is_that_of_a_sorted_walk() {
    let home = tempfile::tempdir().unwrap();
    bushy(home.path());
    let mut expected = Vec::new();
    let name = home.path().to_str().unwrap().trim_start_matches('/').to_string();
    naive(home.path(), name, &mut expected);
    for options in look_aheads() {
        // Does not keep the entries, which would keep all directories open.
        let mut scan = Scan::start(&[home.path().into()], options).unwrap();
        let (mut found, mut items) = (Vec::new(), Vec::new());
        while scan.next_batch(&mut items) == Progress::More || !items.is_empty() {
            for item in items.drain(..) {
                let Item::Entry(entry) = item else { panic!("{item:?}") };
                found.push(String::from_utf8(entry.path()).unwrap());
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn sources_come_in_the_order_given() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    touch(at("b/file"));
    touch(at("a"));
    symlink("b", at("link")).unwrap();
    let under = |path: &str| at(path).to_str().unwrap()[1..].to_string();
    let sources = [at("link"), at("b/../a"), at("b"), at("link/")];
    let mut scan = Scan::start(&sources, with_threads(2)).unwrap();
    let stripped: Vec<_> = scan.stripped().iter().map(|one| one.prefix.clone()).collect();
    let deep = [at("b/../").into_os_string().into_encoded_bytes(), b"/".to_vec()];
    assert_eq!(stripped, [b"/".to_vec(), deep[0].clone(), deep[1].clone(), b"/".to_vec()]);
    let mut items = Vec::new();
    while scan.next_batch(&mut items) == Progress::More {}
    let entries: Vec<_> = items
        .into_iter()
        .map(|item| match item {
            Item::Entry(entry) => entry,
            Item::Folder(folder) => folder.entry,
            Item::Problem(problem) => panic!("{problem}"),
        })
        .collect();
    let expected =
        [under("link"), "a".into(), under("b"), under("b/file"), under("link"), under("link/file")];
    assert_eq!(paths(&entries), expected);
    let sources: Vec<_> = entries.iter().map(Entry::source).collect();
    assert_eq!(sources, [0, 1, 2, 2, 3, 3]);
    assert_eq!(entries[0].kind(), EntryKind::SymbolicLink);
    assert_eq!(entries[4].kind(), EntryKind::Directory);
}

/// `.` and `/` are called `.`, and their contents have no prefix.
#[test]
fn the_root_is_called_dot() {
    let mut scan = Scan::start(&[PathBuf::from("/")], with_threads(0)).unwrap();
    let mut items = Vec::new();
    while items.len() < 3 {
        scan.next_batch(&mut items);
    }
    let Item::Entry(root) = &items[0] else { panic!("{items:?}") };
    let Item::Entry(first) = &items[1] else { panic!("{items:?}") };
    assert_eq!(root.path(), b".");
    assert_eq!(first.path(), first.name().to_bytes());
}

#[test]
fn a_missing_source_is_found_before_anything_is_read() {
    let home = tempfile::tempdir().unwrap();
    for missing in ["no", "no/../x", "a/b"] {
        let missing = home.path().join(missing);
        let sources = [home.path().to_path_buf(), missing.clone()];
        let error = Scan::start(&sources, ScanOptions::default()).err().unwrap();
        assert!(matches!(&error, ScanError::Source { path, .. } if *path == missing), "{error}");
    }
    assert!(matches!(Scan::start(&[], ScanOptions::default()), Err(ScanError::NoSource)));
}

#[test]
fn excludes_leave_out_what_they_name() {
    let home = tempfile::tempdir().unwrap();
    for path in ["a/x.o", "a/keep", "a/build/out", "b/build", "tmp/f", "b/tmp/f", "c/d/e/f"] {
        touch(home.path().join(path));
    }
    let absolute = home.path().join("b/tmp").into_os_string().into_string().unwrap();
    let check = |globs: &[&str], expected: &[&str]| {
        for options in look_aheads() {
            let excludes = Excludes::new(globs).unwrap();
            let options = ScanOptions { excludes, ..options };
            let (entries, problems) = walk(&[home.path().into()], options);
            assert!(problems.is_empty());
            let prefix = format!("{}/", &home.path().to_str().unwrap()[1..]);
            let left: Vec<_> = paths(&entries[1..])
                .iter()
                .map(|path| path.strip_prefix(&prefix).unwrap().to_string())
                .filter(|path| !home.path().join(path).is_dir())
                .collect();
            assert_eq!(left, expected, "{globs:?}");
        }
    };
    let all = ["a/build/out", "a/keep", "a/x.o", "b/build", "b/tmp/f", "c/d/e/f", "tmp/f"];
    check(&[], &all);
    check(&["*.o", "build/"], &["a/keep", "b/build", "b/tmp/f", "c/d/e/f", "tmp/f"]);
    check(&["/tmp", "c/*/e"], &["a/build/out", "a/keep", "a/x.o", "b/build", "b/tmp/f"]);
    check(&[&absolute], &["a/build/out", "a/keep", "a/x.o", "b/build", "c/d/e/f", "tmp/f"]);
    check(&["*"], &[]);
    check(&["/**"], &[]);
}

/// 1,500 levels: longer than PATH_MAX and with more directories than descriptors. On the way back
/// every level is found again, including the names sorted behind the way down.
#[test]
fn a_deep_tree_needs_few_descriptors() {
    const LEVELS: usize = 1500;
    let home = tempfile::tempdir().unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here: OwnedFd = fs::File::open(home.path()).unwrap().into();
    for _ in 0..LEVELS {
        for name in ["after", "way-down"] {
            mkdirat(&here, name, Mode::from_raw_mode(0o755)).unwrap();
        }
        here = openat(&here, "way-down", flags, Mode::empty()).unwrap();
        mkdirat(&here, "z", Mode::from_raw_mode(0o755)).unwrap();
    }
    for options in look_aheads() {
        let mut scan = Scan::start(&[home.path().into()], options).unwrap();
        let (mut items, mut batches, mut open) = (Vec::new(), 0, 0);
        let (mut count, mut deepest) = (0, 0);
        loop {
            let progress = scan.next_batch(&mut items);
            batches += 1;
            if batches % 100 == 0 {
                open = open.max(open_below(home.path()));
            }
            for item in items.drain(..) {
                let Item::Entry(entry) = item else { panic!("{item:?}") };
                count += 1;
                let path = entry.path();
                deepest = deepest.max(path.iter().filter(|byte| **byte == b'/').count());
            }
            if progress == Progress::End {
                break;
            }
        }
        // The source, and three names a level.
        assert_eq!(count, 1 + 3 * LEVELS);
        let above = home.path().to_str().unwrap()[1..].matches('/').count();
        assert_eq!(deepest, above + LEVELS + 1);
        assert!(open > 0 && open < 64 + OPEN_LEVELS_MAX + 4, "{open} descriptors");
    }
    let removed = std::process::Command::new("rm").arg("-rf").arg(home.path()).status().unwrap();
    assert!(removed.success());
}

/// Descriptors of this process for objects in `directory`; other tests have theirs elsewhere.
fn open_below(directory: &Path) -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let is_below = |path: PathBuf| {
        // The kernel cannot show the path of a very deep directory in one page.
        let target = fs::read_link(path);
        target.map_or_else(
            |error| error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error()),
            |target| target.starts_with(directory),
        )
    };
    descriptors.filter(|entry| is_below(entry.as_ref().unwrap().path())).count()
}

#[test]
fn a_large_directory_is_listed_whole() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("many")).unwrap();
    let names: BTreeSet<_> =
        (0..5_000_u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    for name in &names {
        fs::write(home.path().join("many").join(name), "").unwrap();
    }
    for options in look_aheads() {
        let (entries, _) = walk(&[home.path().into()], options);
        let found: Vec<_> = paths(&entries[2..])
            .iter()
            .map(|path| path.rsplit('/').next().unwrap().to_string())
            .collect();
        assert!(found.iter().eq(names.iter()));
    }
}

#[test]
fn a_stopped_scan_stops() {
    let home = tempfile::tempdir().unwrap();
    bushy(home.path());
    let stop = Arc::new(AtomicBool::new(false));
    let options = ScanOptions { stop: Arc::clone(&stop), ..with_threads(4) };
    let mut scan = Scan::start(&[home.path().into()], options).unwrap();
    let mut items = Vec::new();
    assert_eq!(scan.next_batch(&mut items), Progress::More);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(scan.next_batch(&mut items), Progress::Stopped);
}

#[test]
fn sockets_and_the_output_are_skipped() {
    let home = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(home.path().join("a-socket")).unwrap();
    touch(home.path().join("output"));
    let output = Some(identity_of_path(&home.path().join("output")).unwrap());
    let (entries, _) = walk(&[home.path().into()], ScanOptions::default());
    let options = CaptureOptions { output, ..CaptureOptions::default() };
    let mut capturer = Capturer::new(options, Arc::default());
    let skip = |capture| match capture {
        Capture::Skipped(skip) => skip,
        Capture::Object(captured) => panic!("{captured:?}"),
    };
    assert_eq!(skip(capturer.capture(&entries[1], None).unwrap()), Skip::Socket);
    assert_eq!(skip(capturer.capture(&entries[2], None).unwrap()), Skip::Output);
}

#[test]
fn holes_are_found() {
    let home = tempfile::tempdir().unwrap();
    let file = fs::File::create(home.path().join("sparse")).unwrap();
    file.set_len(10 << 20).unwrap();
    assert_eq!(sparse_map(&file, 10 << 20).unwrap(), Some(SparseMap::default()));
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], 1 << 20).unwrap();
    let run = archive::member::Extent { offset_bytes: 1 << 20, length_bytes: 4096 };
    let map = sparse_map(&file, 10 << 20).unwrap().unwrap();
    assert_eq!(map.extents, [run]);
    let (entries, _) = walk(&[home.path().into()], ScanOptions::default());
    let captured = object(capturer().capture(&entries[1], None).unwrap());
    assert!(captured.may_be_sparse());
    file.set_len(5 << 20).unwrap();
    let now_bytes = 5 << 20;
    assert_eq!(recheck(&file, &captured.version).unwrap(), FileChange::Size { now_bytes });
    fs::set_permissions(home.path().join("sparse"), PermissionsExt::from_mode(0o600)).unwrap();
    file.set_len(10 << 20).unwrap();
    assert_eq!(recheck(&file, &captured.version).unwrap(), FileChange::Content);
}

/// A mounted file system, and the directory bound into itself. The mounts are in a mount namespace
/// of a child that runs this very test again.
#[test]
fn mounts_are_kept_apart_and_loops_are_seen() {
    const INSIDE: &str = "TAKEUP_TEST_IN_MOUNT_NAMESPACE";
    testkit::require!(Mounts);
    if std::env::var_os(INSIDE).is_none() {
        let status = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "scan::mounts_are_kept_apart_and_loops_are_seen", "--nocapture"])
            .env(INSIDE, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let home = tempfile::tempdir().unwrap();
    touch(home.path().join("mounted/hidden"));
    touch(home.path().join("loop/below/hidden"));
    touch(home.path().join("loop/file"));
    let run = |arguments: &[&str], at: &str| {
        let mut command = std::process::Command::new("mount");
        let status = command.args(arguments).arg(home.path().join(at)).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    run(&["-t", "tmpfs", "none"], "mounted");
    touch(home.path().join("mounted/seen"));
    let bound = home.path().join("loop");
    run(&["--bind", bound.to_str().unwrap()], "loop/below");
    let with_looks = look_aheads().into_iter().flat_map(|options| {
        [Look::Names, Look::Status].map(|look| ScanOptions { look, ..options.clone() })
    });
    for options in with_looks {
        for file_systems in [FileSystems::All, FileSystems::One] {
            let options = ScanOptions { file_systems, ..options.clone() };
            let look = options.look;
            let (entries, problems) = walk(&[home.path().into()], options);
            let prefix = format!("{}/", &home.path().to_str().unwrap()[1..]);
            let found: Vec<_> = paths(&entries[1..])
                .iter()
                .map(|path| path.strip_prefix(&prefix).unwrap().to_string())
                .collect();
            // What is in the loop would come at any depth.
            let expected: &[&str] = match (look, file_systems) {
                (Look::Names, FileSystems::All) => {
                    &["loop", "loop/below", "loop/file", "mounted", "mounted/seen"]
                }
                (Look::Names, FileSystems::One) => &["loop", "loop/below", "loop/file", "mounted"],
                (Look::Status, FileSystems::All) => {
                    &["loop", "loop/file", "loop/below", "mounted", "mounted/seen"]
                }
                (Look::Status, FileSystems::One) => &["loop", "loop/file", "loop/below", "mounted"],
            };
            assert_eq!(found, expected);
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].what, ScanProblemKind::Loop);
            assert!(problems[0].path.ends_with(b"loop/below"));
        }
    }
    for at in ["loop/below", "mounted"] {
        let umounted = std::process::Command::new("umount").arg(home.path().join(at)).status();
        assert!(umounted.unwrap().success());
    }
}

/// With the states of the objects a folder comes with what is in it and is no folder; all in all
/// nothing is missing and nothing comes twice, whatever is listed ahead and by whom.
#[test]
fn a_scan_with_states_finds_what_a_scan_of_names_finds() {
    let home = tempfile::tempdir().unwrap();
    for folder in 0..150 {
        for file in 0..folder % 7 {
            touch(home.path().join(format!("{}/{folder}/{file}", folder % 3)));
        }
        std::fs::create_dir_all(home.path().join(format!("{}/{folder}/empty", folder % 3)))
            .unwrap();
    }
    let found = |look, options| {
        let (entries, problems) = walk(&[home.path().into()], ScanOptions { look, ..options });
        assert!(problems.is_empty(), "{problems:?}");
        paths(&entries)
    };
    let is_folder = |path: &String| Path::new("/").join(path).is_dir();
    let mut all = found(Look::Names, with_threads(0));
    all.sort();
    assert_eq!(all.len(), 1 + 3 + 300 + (0..150).map(|folder| folder % 7).sum::<usize>());
    for options in look_aheads() {
        let walked = found(Look::Status, options);
        for (at, path) in walked.iter().enumerate().filter(|(_, path)| !is_folder(path)) {
            // Only other objects are between it and its folder.
            let above = &path[..path.rfind('/').unwrap()];
            let before = walked[..at].iter().rposition(is_folder).unwrap();
            assert_eq!(walked[before], above, "{path}");
        }
        let mut sorted = walked;
        sorted.sort();
        assert_eq!(sorted, all);
    }
}
