//! Restores of intact archives, of any origin and from any source.

use flow::run::Endpoint;
use std::fs;
use std::num::NonZero;
use std::path::Path;

use flow::backend::Engine;
use flow::cancel::Cancel;
use runs::restore::{Checksums, RestoreError, RestoreOptions};
use runs::selection::{NotFound, Selection};
use testkit::samples::noise;
use tree::Overwrite;

use crate::harness::{Harness, Kept, Times, assert_same_tree, exists, run, shell, write};

/// Archives a tree with a shell command that writes `a.tar`, restores it, compares.
#[track_caller]
fn check(command: &str, times: Times) {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    shell(command, harness.folder.path());
    let (report, kept) = harness.restore(&harness.path("a.tar"), "out");
    assert_eq!(kept.warnings(), Vec::<String>::new(), "{command}");
    assert_eq!(report.warnings, 0);
    assert_same_tree(&tree, &harness.path("out/tree"), times);
}

#[test]
fn gnu_tar_formats() {
    for format in ["gnu", "oldgnu", "posix"] {
        let times = if format == "posix" { Times::Exact } else { Times::Seconds };
        check(&format!("tar --format={format} -cf a.tar tree"), times);
        check(&format!("tar --format={format} --sparse -cf a.tar tree"), times);
    }
    for version in ["0.0", "0.1", "1.0"] {
        let sparse = format!("--sparse --sparse-version={version}");
        check(&format!("tar --format=posix {sparse} -cf a.tar tree"), Times::Exact);
    }
}

#[test]
fn old_formats_hold_what_they_can() {
    let harness = Harness::new();
    let tree = harness.path("tree");
    fs::create_dir_all(tree.join("folder")).unwrap();
    fs::write(tree.join("folder/file"), noise(1, 5000)).unwrap();
    fs::write(tree.join("other"), b"other").unwrap();
    for format in ["v7", "ustar"] {
        let out = format!("out-{format}");
        shell(&format!("tar --format={format} -cf a.tar tree"), harness.folder.path());
        let (_, kept) = harness.restore(&harness.path("a.tar"), &out);
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_same_tree(&tree, &harness.path(&out).join("tree"), Times::Seconds);
    }
}

#[test]
fn bsdtar_formats() {
    // bsdtar 3.6 writes fractions of seconds before 1970 with the wrong sign.
    let touch = "touch -d 1980-01-01 tree/empty";
    check(&format!("{touch} && bsdtar --format=pax -cf a.tar tree"), Times::Exact);
    check(&format!("{touch} && bsdtar --format=gnutar -cf a.tar tree"), Times::Seconds);
}

/// A program that makes such a frame can also open it. A short one is decompressed in one piece,
/// whatever its window.
#[test]
fn a_window_that_others_refuse_too_is_named() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    let zeros = fs::File::create(tree.join("zeros")).unwrap();
    zeros.set_len(64 << 20).unwrap();
    let command = "tar --format=posix -cf - tree | zstd -q --ultra --long=28 > a.tar";
    shell(command, harness.folder.path());
    let options = RestoreOptions { from: harness.path("a.tar").into(), ..Default::default() };
    let error = harness.try_restore(options, "out", &Kept::default()).unwrap_err();
    let window = "a zstd window of 268435456 bytes; takeup allows at most 134217728";
    assert!(error.to_string().contains(window), "{error}");
    shell("zstd -dqc --long=28 a.tar > plain.tar", harness.folder.path());
    harness.restore(&harness.path("plain.tar"), "again");
    assert_same_tree(&tree, &harness.path("again/tree"), Times::Exact);
}

#[test]
fn compressions_single_and_many() {
    check("tar --format=posix -cf - tree | zstd -q > a.tar", Times::Exact);
    check("tar --format=posix -cf - tree | zstd -q -19 --long=27 > a.tar", Times::Exact);
    check("tar --format=posix -cf - tree | zstd -q --no-check > a.tar", Times::Exact);
    check("tar --format=posix -cf - tree | gzip > a.tar", Times::Exact);
    check("tar --format=posix -cf - tree | pigz -b 128 > a.tar", Times::Exact);
    check("tar --format=posix -cf - tree | pigz -i > a.tar", Times::Exact);
    let pieces = "tar --format=posix -cf b.tar tree && split -b 300000 b.tar piece.";
    check(&format!("{pieces} && for p in piece.*; do zstd -qc $p; done > a.tar"), Times::Exact);
    check(&format!("{pieces} && for p in piece.*; do gzip -c $p; done > a.tar"), Times::Exact);
}

#[test]
fn from_a_pipe() {
    for command in ["cat", "zstd -qc", "gzip -c"] {
        let harness = Harness::new();
        let tree = harness.tree("tree");
        let folder = harness.folder.path();
        shell("tar --format=posix -cf a.tar tree && mkfifo fifo", folder);
        let writer = std::thread::spawn({
            let folder = folder.to_path_buf();
            move || shell(&format!("{command} < a.tar > fifo"), &folder)
        });
        let (report, kept) = harness.restore(&harness.path("fifo"), "out");
        writer.join().unwrap();
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_eq!(report.run.source, Endpoint::Pipe);
        assert_same_tree(&tree, &harness.path("out/tree"), Times::Exact);
    }
}

#[test]
fn threads_and_engines_make_no_difference() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    shell("tar --format=posix -cf a.tar tree", harness.folder.path());
    for (number, (threads, engine)) in
        [(1, Engine::Threads), (1, Engine::Auto), (2, Engine::Threads), (7, Engine::Auto)]
            .into_iter()
            .enumerate()
    {
        let options = RestoreOptions {
            from: harness.path("a.tar").into(),
            threads: NonZero::new(threads),
            engine,
            ring_bytes: 4 << 20,
            ..Default::default()
        };
        let out = format!("out{number}");
        let (_, kept) = harness.restore_with(options, &out);
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_same_tree(&tree, &harness.path(&out).join("tree"), Times::Exact);
    }
}

#[test]
fn paths_are_selected_and_components_stripped() {
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let options = RestoreOptions {
        from: harness.path("a.tar").into(),
        selection: Selection::new([b"./tree/folder1/".to_vec(), b"nothing/here".to_vec()]),
        strip_components: 1,
        ..Default::default()
    };
    let (report, kept) = harness.restore_with(options, "out");
    let path = b"nothing/here".to_vec();
    assert_eq!(report.not_found, [NotFound { path, near: None }]);
    assert_eq!(kept.warnings(), ["nothing/here: not found in the archive"]);
    assert_same_tree(&harness.path("tree/folder1"), &harness.path("out/folder1"), Times::Seconds);
    assert_eq!(fs::read_dir(harness.path("out")).unwrap().count(), 1);
}

/// If no path has components left, the restore reports an error instead of doing nothing.
#[test]
fn more_components_than_paths_have() {
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let options = RestoreOptions {
        from: harness.path("a.tar").into(),
        strip_components: 99,
        ..Default::default()
    };
    let error = harness.try_restore(options, "out", &Kept::default()).unwrap_err();
    let is_told = matches!(error, RestoreError::NothingLeft { strip_components: 99 });
    assert!(is_told, "{error:?}");
}

/// Restores `a.tar` to `out`, with this many threads and without warnings.
fn restore_well(harness: &Harness, threads: usize) {
    let options = RestoreOptions {
        from: harness.path("a.tar").into(),
        threads: NonZero::new(threads),
        ..Default::default()
    };
    let (_, kept) = harness.restore_with(options, "out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
}

#[test]
fn a_member_that_comes_twice_is_the_later_one() {
    for threads in [1, 4] {
        let harness = Harness::new();
        let folder = harness.folder.path();
        shell("mkdir tree && echo first > tree/file && tar cf a.tar tree", folder);
        shell("for i in $(seq 50); do echo $i > tree/file; tar rf a.tar tree/file; done", folder);
        shell("ln tree/file tree/again && tar rf a.tar tree/file tree/again", folder);
        restore_well(&harness, threads);
        assert_eq!(fs::read(harness.path("out/tree/file")).unwrap(), b"50\n");
        assert_eq!(fs::read(harness.path("out/tree/again")).unwrap(), b"50\n");
    }
}

/// The same where every name counts as one that may exist. Batches are full between the two.
#[test]
fn the_later_of_two_members_replaces_what_was_there() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell("mkdir tree out && for i in $(seq 70); do echo first > tree/$i; done", folder);
    shell(
        "tar cf a.tar tree && cp -r tree out && for i in $(seq 70); do echo $i > tree/$i; done \
         && tar rf a.tar tree",
        folder,
    );
    for _ in 0..5 {
        let options = RestoreOptions {
            from: harness.path("a.tar").into(),
            threads: NonZero::new(4),
            overwrite: Overwrite::Replace,
            ..Default::default()
        };
        let (_, kept) = harness.restore_with(options, "out");
        assert_eq!(kept.warnings(), Vec::<String>::new());
        shell("diff -r tree out/tree", folder);
    }
}

/// Keeps the paths of files in the order in which their contents are written.
#[derive(Default)]
struct Order(std::sync::Mutex<Vec<String>>);

impl flow::monitor::Monitor for Order {
    fn count(&self, _: flow::monitor::Counter, _: u64) {}
    fn notice(&self, _: flow::monitor::Notice) {}
    fn object(&self, path: &[u8], _: u64) {
        self.0.lock().unwrap().push(String::from_utf8_lossy(path).into_owned());
    }
}

/// File systems give files their place in the order in which they were first written to.
#[test]
fn small_files_are_written_in_the_order_of_the_archive() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell(
        "for d in $(seq 20); do mkdir -p t/$d; for i in $(seq 50); do \
         head -c $((i * 300)) /dev/zero > t/$d/$i; done; done; \
         find t -type f > names; tar -cf a.tar -T names",
        folder,
    );
    let names = fs::read_to_string(harness.path("names")).unwrap();
    for threads in [1, 2, 8] {
        let options = RestoreOptions {
            from: harness.path("a.tar").into(),
            into: harness.path(&format!("out{threads}")),
            threads: NonZero::new(threads),
            ..Default::default()
        };
        let order = Order::default();
        runs::restore::restore(options, &order, &Cancel::new()).unwrap();
        assert_eq!(*order.0.lock().unwrap(), names.lines().collect::<Vec<_>>(), "{threads}");
    }
}

#[test]
fn kinds_may_change_on_the_way_through_an_archive() {
    for threads in [1, 3] {
        let harness = Harness::new();
        let folder = harness.folder.path();
        shell("mkdir -p t/a && echo 1 > t/a/x && tar cf a.tar --no-recursion t/a t/a/x", folder);
        // The directory becomes a file in another archive that is appended.
        shell("rm -r t && mkdir t && echo file > t/b && tar rf a.tar t/b", folder);
        shell("rm t/b && mkdir t/b && echo 2 > t/b/y && tar rf a.tar t/b", folder);
        restore_well(&harness, threads);
        assert_eq!(fs::read(harness.path("out/t/b/y")).unwrap(), b"2\n");
        assert_eq!(fs::read(harness.path("out/t/a/x")).unwrap(), b"1\n");
    }
}

#[test]
fn existing_objects_stay_unless_told_otherwise() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell("mkdir tree && echo new > tree/file && tar cf a.tar tree", folder);
    shell("mkdir -p out/tree && echo old > out/tree/file", folder);
    let options = RestoreOptions { from: harness.path("a.tar").into(), ..Default::default() };
    let (report, kept) = harness.restore_with(options.clone(), "out");
    assert_eq!(kept.warnings(), ["tree/file: already exists"]);
    assert_eq!(report.existing, 1);
    assert_eq!(report.warnings, 1);
    assert_eq!(fs::read(harness.path("out/tree/file")).unwrap(), b"old\n");
    let options = RestoreOptions { overwrite: Overwrite::Replace, ..options };
    let (_, kept) = harness.restore_with(options, "out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert_eq!(fs::read(harness.path("out/tree/file")).unwrap(), b"new\n");
}

#[test]
fn nothing_is_written_outside() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell("mkdir -p w/in outside && cd w && echo evil > evil && echo inner > in/x", folder);
    // `..`, absolute, through a symbolic link planted before, hard link to the outside.
    shell("cd w/in && tar -P -cf ../../a.tar ../evil", folder);
    shell("cd w && tar -P -rf ../a.tar --transform='s,.*,/tmp/takeup-absolute-evil,' evil", folder);
    shell("cd w && ln -s ../outside plant && tar -rf ../a.tar plant && rm plant", folder);
    shell("cd w && mkdir plant && cp evil plant/evil && tar -rf ../a.tar plant/evil", folder);
    shell("cd w && echo good > good && tar -rf ../a.tar good", folder);
    for threads in [1, 4] {
        let out = format!("out{threads}");
        let options = RestoreOptions {
            from: harness.path("a.tar").into(),
            threads: NonZero::new(threads),
            ..Default::default()
        };
        let (report, kept) = harness.restore_with(options, &out);
        kept.expect_warning("../evil: refused");
        kept.expect_warning("plant/evil: refused");
        assert!(report.warnings >= 2, "{:?}", kept.warnings());
        assert_eq!(fs::read(harness.path(&out).join("good")).unwrap(), b"good\n");
        let absolute = harness.path(&out).join("tmp/takeup-absolute-evil");
        assert_eq!(fs::read(absolute).unwrap(), b"evil\n");
        assert_eq!(kept.notes().len(), 1, "{:?}", kept.notes());
    }
    assert_eq!(fs::read_dir(harness.path("outside")).unwrap().count(), 0);
    assert!(!exists("/tmp/takeup-absolute-evil"));
    assert!(!exists(harness.path("evil")));
}

#[test]
fn a_cancelled_restore_ends() {
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let cancel = Cancel::new();
    cancel.cancel();
    let options = RestoreOptions {
        from: harness.path("a.tar").into(),
        into: harness.path("out"),
        ..Default::default()
    };
    let result = runs::restore::restore(options, &Kept::default(), &cancel);
    assert!(matches!(result, Err(runs::restore::RestoreError::Stopped(_))), "{result:?}");
}

/// A silent pipe is where a cancel must be noticed without any data.
#[test]
fn a_restore_from_a_silent_pipe_can_be_cancelled() {
    let harness = Harness::new();
    shell("mkfifo fifo", harness.folder.path());
    let holder = fs::OpenOptions::new().read(true).write(true).open(harness.path("fifo")).unwrap();
    let cancel = Cancel::new();
    let options = RestoreOptions {
        from: harness.path("fifo").into(),
        into: harness.path("out"),
        ..Default::default()
    };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| runs::restore::restore(options, &Kept::default(), &cancel));
        std::thread::sleep(std::time::Duration::from_millis(50));
        cancel.cancel();
        let result = run.join().unwrap();
        assert!(matches!(result, Err(runs::restore::RestoreError::Stopped(_))), "{result:?}");
    });
    drop(holder);
}

#[test]
fn a_full_target_ends_the_run() {
    testkit::require!(Mounts);
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree && mkdir out", harness.folder.path());
    let out = harness.path("out");
    run("mount", &["-t", "tmpfs", "-o", "size=1M", "none", &out.to_string_lossy()], Path::new("/"));
    let options = RestoreOptions { from: harness.path("a.tar").into(), ..Default::default() };
    let result = harness.try_restore(options, "out", &Kept::default());
    // Whatever was restored is whole.
    let whole = fs::read(out.join("tree/large")).map(|content| content.len());
    run("umount", &[&out.to_string_lossy()], Path::new("/"));
    let Err(runs::restore::RestoreError::Target(error)) = result else { panic!("{result:?}") };
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("No space"), "{source}");
    assert!(whole.is_err(), "a file that did not fit must not look whole");
}

#[test]
fn what_is_no_archive_is_an_error() {
    let harness = Harness::new();
    let check = |name: &str, bytes: &[u8], expected: &str| {
        let path = write(&harness.path(name), bytes);
        let options = RestoreOptions { from: path.into(), ..Default::default() };
        let error = harness.try_restore(options, "out", &Kept::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("noise", &noise(1, 100_000), "is not a tar archive");
    check("empty", b"", "is empty");
    check("short", b"hello", "is not a tar archive");
    check("xz", b"\xfd7zXZ\0\0\0", "is compressed with xz");
    let missing = RestoreOptions { from: harness.path("missing").into(), ..Default::default() };
    let error = harness.try_restore(missing, "out", &Kept::default()).unwrap_err().to_string();
    assert!(error.contains("cannot open"), "{error}");
}

#[test]
fn an_archive_without_index_has_no_checksums() {
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let (report, _) = harness.restore(&harness.path("a.tar"), "out");
    assert_eq!(report.checksums, Checksums::Unknown);
}

/// A device holds older data, which must not be restored as part of this archive.
#[test]
fn what_is_older_on_a_device_does_not_come_back() {
    testkit::require!(LoopDevices);
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell("mkdir t && echo old > t/file && echo old > t/other && tar cf old.tar t", folder);
    shell("echo new > t/file && rm t/other && tar -b 2 -cf new.tar t", folder);
    shell("truncate -s 1M disk && cat new.tar old.tar | dd of=disk conv=notrunc 2>&1", folder);
    shell("losetup --find --show disk > device", folder);
    let device = fs::read_to_string(harness.path("device")).unwrap();
    let (report, kept) = harness.restore(Path::new(device.trim()), "out");
    run("losetup", &["-d", device.trim()], folder);
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert_eq!(report.run.source, Endpoint::BlockDevice);
    assert_eq!(fs::read(harness.path("out/t/file")).unwrap(), b"new\n");
    assert!(!exists(harness.path("out/t/other")));
}

/// Cancels after some members.
struct CancelAfter {
    members: std::sync::atomic::AtomicU64,
    cancel: Cancel,
}

impl flow::monitor::Monitor for CancelAfter {
    fn count(&self, counter: flow::monitor::Counter, amount: u64) {
        let members = match counter {
            flow::monitor::Counter::Members => amount,
            _ => 0,
        };
        let before = self.members.fetch_add(members, std::sync::atomic::Ordering::Relaxed);
        if before + members >= 60 {
            self.cancel.cancel();
        }
    }
    fn notice(&self, _: flow::monitor::Notice) {}
}

#[test]
fn a_restore_cancelled_on_its_way_leaves_whole_files_only() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let cancel = Cancel::new();
    let monitor = CancelAfter { members: 0.into(), cancel: cancel.clone() };
    let options = RestoreOptions {
        from: harness.path("a.tar").into(),
        into: harness.path("out"),
        ..Default::default()
    };
    let result = runs::restore::restore(options, &monitor, &cancel);
    assert!(
        matches!(
            result,
            Err(runs::restore::RestoreError::Stopped(flow::cancel::Stopped::Cancelled))
        ),
        "{result:?}"
    );
    let mut waiting = vec![harness.path("out/tree")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                let original = tree.join(path.strip_prefix(harness.path("out/tree")).unwrap());
                assert_eq!(fs::read(&path).unwrap(), fs::read(original).unwrap(), "{path:?}");
            }
        }
    }
}

#[test]
fn incremental_dumps_and_volumes_of_gnu_tar() {
    check("tar --listed-incremental=snapshot -cf a.tar tree", Times::Seconds);
    let harness = Harness::new();
    let folder = harness.folder.path();
    fs::create_dir(harness.path("t")).unwrap();
    fs::write(harness.path("t/large"), noise(1, 150_000)).unwrap();
    fs::write(harness.path("t/small"), b"small").unwrap();
    shell(
        "tar -M -L 100 --label=tapes -cf one -f two -f three t/large t/small < /dev/null",
        folder,
    );
    let (_, kept) = harness.restore(&harness.path("one"), "out1");
    kept.expect_warning("t/large: not restored");
    assert!(exists(harness.path("out1/t/large.incomplete")));
    let (_, kept) = harness.restore(&harness.path("two"), "out2");
    kept.expect_warning("t/large: continues a file of an earlier volume");
    assert!(
        kept.notes().iter().any(|note| note.contains("volume label tapes")),
        "{:?}",
        kept.notes()
    );
    assert_eq!(fs::read(harness.path("out2/t/small")).unwrap(), b"small");
}

/// Links come right after the files of other directories, which other workers create.
#[test]
fn hard_links_wait_for_their_targets() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell(
        "mkdir -p t/{a,b,c,d} && for i in $(seq 300); do \
         echo $i > t/a/$i; ln t/a/$i t/b/$i; ln t/b/$i t/c/$i; echo t/a/$i >> names; \
         echo t/b/$i >> names; echo t/c/$i >> names; done && tar -cf a.tar -T names",
        folder,
    );
    for round in 0..5 {
        let options = RestoreOptions {
            from: harness.path("a.tar").into(),
            threads: NonZero::new(4),
            ..Default::default()
        };
        let out = format!("out{round}");
        let (_, kept) = harness.restore_with(options, &out);
        assert_eq!(kept.warnings(), Vec::<String>::new());
        for name in ["a/17", "b/17", "c/300"] {
            use std::os::unix::fs::MetadataExt;
            let path = harness.path(&out).join("t").join(name);
            assert_eq!(fs::metadata(path).unwrap().nlink(), 3, "{name}");
        }
    }
}
