//! Verification of archives without an index, and against live trees.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use flow::cancel::Cancel;
use runs::verify::{PageCache, ReadFrom, VerifyOptions};

use crate::harness::{Harness, Kept, run, shell, verify_archive};

#[test]
fn a_foreign_archive_is_sound_and_has_no_hashes() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    shell("tar --format=posix -cf a.tar tree && zstd -qk a.tar", harness.folder.path());
    for archive in ["a.tar", "a.tar.zst"] {
        let (report, kept) = verify_archive(&harness.path(archive), Some(harness.folder.path()));
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert!(report.is_sound());
        assert!(!report.checked.index);
        assert_eq!(report.checked.content_hashes, 0);
        assert_eq!(report.checked.compared, report.run.members);
        assert!(report.run.files > 120);
    }
    drop(tree);
}

#[test]
fn what_differs_is_sorted() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    let tree = harness.tree("tree");
    shell("tar --format=posix -cf a.tar tree", folder);
    // Changed: written to, with a new time.
    fs::write(tree.join("folder0/file07"), b"changed").unwrap();
    // Differs although it did not change: another byte, the same size and time.
    shell(
        "touch -r large stamp && printf X | dd of=large bs=1 seek=1234567 conv=notrunc 2>&1 \
           && touch -r stamp large && rm stamp",
        &tree,
    );
    fs::remove_file(tree.join("folder1/file02")).unwrap();
    fs::write(tree.join("folder1/new"), b"new").unwrap();
    fs::set_permissions(tree.join("script"), fs::Permissions::from_mode(0o600)).unwrap();
    run("touch", &["-r", "unit", "folder1"], &tree);
    let (report, _) = verify_archive(&harness.path("a.tar"), Some(folder));
    assert!(report.is_sound());
    let names = |list: &[runs::verify::Differing]| -> Vec<String> {
        list.iter().map(|differing| String::from_utf8_lossy(&differing.path).into()).collect()
    };
    let differs = names(&report.differs.items);
    assert!(differs.contains(&"tree/large".to_owned()), "{differs:?}");
    assert!(differs.contains(&"tree/script".to_owned()), "{differs:?}");
    let large = report.differs.items.iter().find(|item| item.path == b"tree/large").unwrap();
    assert_eq!(large.content_differs_at_bytes, Some(1_234_567));
    let changed = names(&report.changed.items);
    assert!(changed.contains(&"tree/folder0/file07".to_owned()), "{changed:?}");
    assert_eq!(report.missing.items, [b"tree/folder1/file02".to_vec()]);
    assert_eq!(report.extra.items, [b"tree/folder1/new".to_vec()]);
}

#[test]
fn data_in_the_hole_of_a_sparse_file_differs() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell(
        "mkdir t && truncate -s 8M t/sparse &&
         echo x | dd of=t/sparse bs=1 seek=3M conv=notrunc 2>&1",
        folder,
    );
    shell("tar --format=posix --sparse -cf a.tar t && touch -r t/sparse stamp", folder);
    shell(
        "printf Y | dd of=t/sparse bs=1 seek=6M conv=notrunc 2>&1 && touch -r stamp t/sparse",
        folder,
    );
    let (report, _) = verify_archive(&harness.path("a.tar"), Some(folder));
    assert_eq!(report.differs.total, 1, "{report:?}");
    assert_eq!(report.differs.items[0].content_differs_at_bytes, Some(6 << 20));
}

/// The cached data of a file are dropped, unless they may be used; a stream has none.
#[test]
fn where_an_archive_was_read_from_is_said() {
    let harness = Harness::new();
    let tree = harness.tree("tree");
    shell("tar --format=posix -cf a.tar tree", tree.parent().unwrap());
    let verify = |from: &str, cache: PageCache| {
        let options =
            VerifyOptions { from: harness.path(from).into(), cache, ..Default::default() };
        runs::verify::verify(options, &Kept::default(), &Cancel::new()).unwrap().read_from
    };
    assert_eq!(verify("a.tar", PageCache::Used), ReadFrom::Cache);
    let dropped = verify("a.tar", PageCache::Dropped);
    assert!(!matches!(dropped, ReadFrom::Stream | ReadFrom::Cache), "{dropped:?}");
    shell("mkfifo fifo", harness.folder.path());
    std::thread::scope(|scope| {
        scope.spawn(|| shell("cat a.tar >fifo", harness.folder.path()));
        assert_eq!(verify("fifo", PageCache::Used), ReadFrom::Stream);
    });
}
