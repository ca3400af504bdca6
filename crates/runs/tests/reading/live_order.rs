//! A comparison with live files that are read in the order of the disk finds what one by name does.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use device::file::{cached_bytes, drop_cached};
use flow::cancel::Cancel;
use runs::backup::{BackupOptions, backup};
use runs::sweep::ReadOrder;
use runs::verify::{Bounded, Differing, VerifyOptions, VerifyReport, verify};
use testkit::samples::noise;

use crate::harness::{Harness, Kept, run};

/// Files of many sizes, and the archive of them.
fn archived(harness: &Harness) -> (PathBuf, PathBuf) {
    let tree = harness.tree("tree");
    for number in 0..500_usize {
        let folder = tree.join(format!("many/{:02}", number % 17));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}")), noise(number as u64, number * 90)).unwrap();
    }
    fs::write(tree.join("many/large"), noise(5, 9 << 20)).unwrap();
    let target = harness.path("a");
    let options = BackupOptions {
        sources: vec![tree.clone()],
        target: target.clone().into(),
        ..Default::default()
    };
    backup(&options, &Kept::default(), &Cancel::new()).unwrap();
    (tree, target)
}

/// Changes of all kinds: a byte without a new time, new content, a file less and one more, another
/// kind.
fn change(tree: &Path) {
    let byte_of = |name: &str| {
        let path = tree.join(name);
        let file = File::options().write(true).open(&path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(b"!", 100).unwrap();
        file.set_modified(modified).unwrap();
    };
    byte_of("many/03/190");
    byte_of("many/large");
    fs::write(tree.join("many/05/5"), b"new").unwrap();
    fs::remove_file(tree.join("many/00/17")).unwrap();
    fs::write(tree.join("many/00/more"), b"more").unwrap();
    fs::remove_file(tree.join("many/01/18")).unwrap();
    fs::create_dir(tree.join("many/01/18")).unwrap();
}

fn forget(tree: &Path) {
    run("sync", &["-f", "."], tree);
    for file in all_files(tree) {
        drop_cached(File::open(file).unwrap(), 0, 0);
    }
}

fn all_files(tree: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![tree.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            match (kind.is_dir(), kind.is_file()) {
                (true, _) => waiting.push(entry.path()),
                (_, true) => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn cached(path: &Path) -> Option<u64> {
    let file = File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    cached_bytes(file.as_fd(), 0..length)
}

fn compare(archive: &Path, order: ReadOrder, window: Option<usize>) -> VerifyReport {
    let options = VerifyOptions {
        from: archive.into(),
        against: Some("/".into()),
        read_order: order,
        read_window_bytes: window,
        ..Default::default()
    };
    verify(options, &Kept::default(), &Cancel::new()).unwrap()
}

/// What a comparison has found, in words.
fn findings(report: &VerifyReport) -> Vec<String> {
    let paths = |list: &Bounded<Differing>| -> Vec<String> {
        let line = |it: &Differing| format!("{it:?}");
        list.items.iter().map(line).collect()
    };
    let mut found = paths(&report.changed);
    found.extend(paths(&report.differs));
    found.push(format!("{:?}", (&report.missing, &report.extra, &report.not_compared)));
    found.push(format!("{:?}", (report.damaged.total, report.checked, report.run.members)));
    found
}

#[test]
fn the_order_of_reads_does_not_show_in_what_is_found() {
    let harness = Harness::new();
    let (tree, archive) = archived(&harness);
    for is_changed in [false, true] {
        if is_changed {
            change(&tree);
        }
        forget(&tree);
        let by_name = compare(&archive, ReadOrder::Name, None);
        assert_eq!(by_name.missing.total, if is_changed { 1 } else { 0 });
        assert_eq!(by_name.run.disk_order, None);
        for order in [ReadOrder::Physical, ReadOrder::Inode, ReadOrder::Auto] {
            for window in [Some(100 << 10), Some(4 << 20), None] {
                forget(&tree);
                let report = compare(&archive, order, window);
                assert_eq!(findings(&report), findings(&by_name), "{order:?} {window:?}");
                let fetched = report.run.disk_order.map_or(0, |order| order.files);
                let is_asked_for = order != ReadOrder::Auto;
                assert!(!is_asked_for || fetched > 400, "{order:?} {window:?}: {fetched}");
            }
        }
    }
}

/// What was fetched for the run goes, and what others had there stays.
#[test]
fn the_page_cache_holds_afterwards_what_it_held_before() {
    let harness = Harness::new();
    let (tree, archive) = archived(&harness);
    forget(&tree);
    let files: Vec<PathBuf> =
        all_files(&tree.join("many")).into_iter().filter(|path| !path.ends_with("large")).collect();
    files[..200].iter().for_each(|path| drop(fs::read(path).unwrap()));
    let before: Vec<Option<u64>> = files.iter().map(|path| cached(path)).collect();
    compare(&archive, ReadOrder::Physical, None);
    let after: Vec<Option<u64>> = files.iter().map(|path| cached(path)).collect();
    assert_eq!(before, after);
}

/// The index at the end is that of the second archive, and its places mean nothing in the first.
#[test]
fn an_index_of_other_members_costs_time_and_nothing_else() {
    let harness = Harness::new();
    let (tree, archive) = archived(&harness);
    let alone = fs::read(&archive).unwrap();
    let joined = [&alone[..], &alone[..]].concat();
    let both = harness.path("both");
    fs::write(&both, &joined).unwrap();
    fs::write(&archive, &alone[..alone.len() / 2]).unwrap();
    for archive in [&both, &archive] {
        forget(&tree);
        let by_name = findings(&compare(archive, ReadOrder::Name, None));
        for window in [Some(100 << 10), None] {
            let report = compare(archive, ReadOrder::Physical, window);
            assert_eq!(findings(&report), by_name, "{window:?}");
        }
    }
}
