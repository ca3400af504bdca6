//! Units against plain walks of random trees.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use tree::{EntryKind, Item, Progress, Scan, ScanOptions};

/// Folders, files in them and sizes; a file may be a further name of an earlier one.
fn trees() -> impl Strategy<Value = Vec<(Vec<u8>, usize, u16, Option<usize>)>> {
    let path = prop::collection::vec(0u8..3, 0..4);
    prop::collection::vec((path, 0usize..12, any::<u16>(), prop::option::of(0usize..20)), 1..30)
}

fn make(root: &Path, tree: &[(Vec<u8>, usize, u16, Option<usize>)]) {
    let mut made: Vec<std::path::PathBuf> = Vec::new();
    for (at, (path, files, bytes, link)) in tree.iter().enumerate() {
        let mut folder = root.to_owned();
        path.iter().for_each(|part| folder.push(format!("d{part}")));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..*files {
            let name = folder.join(format!("f{at}-{file}"));
            fs::write(&name, vec![1; usize::from(*bytes) / 16]).unwrap();
            made.push(name);
        }
        if let Some(of) = link.and_then(|link| made.get(link)) {
            fs::hard_link(of, folder.join(format!("l{at}"))).unwrap();
            symlink("f", folder.join(format!("s{at}"))).unwrap();
        }
    }
}

fn walked(units: &[Unit]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let sources: Vec<_> = units.iter().map(|unit| unit.path.to_path()).collect();
    let parts = units.iter().map(Unit::source_part).collect::<Vec<_>>().into();
    let options = ScanOptions { parts, ..ScanOptions::default() };
    let mut scan = Scan::start(&sources, options).unwrap();
    let (mut items, mut folders, mut files) = (Vec::new(), Vec::new(), Vec::new());
    while scan.next_batch(&mut items) == Progress::More {}
    for item in items {
        let Item::Entry(entry) = item else { panic!("{item:?}") };
        let mut path = Vec::new();
        entry.append_path(&mut path);
        match entry.kind() {
            EntryKind::Directory => folders.push(path),
            _ => files.push(path),
        }
    }
    (folders, files)
}

fn listed(root: &Name) -> ListedTree {
    let mut tree = ListedTree::default();
    let mut waiting = vec![root.clone()];
    while let Some(path) = waiting.pop() {
        let listing = list(&path, Mounts::Enter);
        assert_eq!(listing.failed, None);
        listing.folders.into_iter().for_each(|folder| tree.add(folder));
        waiting.extend(listing.left);
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every object lies in one unit, all folders in the last shard, and files that are links of
    /// each other in one unit or all in the last shard.
    #[test]
    fn units_cover_a_tree_once(tree in trees(), unit_bytes in 1u64..2_000_000) {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &tree);
        let root = Name::from(folder.path().as_os_str());
        let tree = listed(&root);
        let units = tree.units(&root, unit_bytes);
        prop_assert_eq!(tree.uncovered(&units), None);
        let last = tree.last(std::slice::from_ref(&root), &units);
        let whole = Unit { path: root.clone(), part: UnitPart::Whole, files: 0, bytes: 0 };
        let (all_folders, all_files) = walked(std::slice::from_ref(&whole));
        let (_, mut files) = walked(&units);
        files.sort();
        let mut expected = all_files;
        expected.sort();
        prop_assert_eq!(&files, &expected);
        let (folders, again) = walked(&last);
        prop_assert_eq!(
            folders.iter().collect::<BTreeSet<_>>(), all_folders.iter().collect::<BTreeSet<_>>()
        );
        let unit_of: Vec<(usize, Vec<u8>)> = units.iter().enumerate().flat_map(|(at, unit)| {
            walked(std::slice::from_ref(unit)).1.into_iter().map(move |path| (at, path))
        }).collect();
        for (at, path) in &unit_of {
            let inode = |path: &[u8]| {
                let path = Path::new("/").join(Name(path.to_vec()).to_path());
                fs::symlink_metadata(path).unwrap().ino()
            };
            let own = inode(path);
            let apart = unit_of.iter().any(|(other, link)| other != at && inode(link) == own);
            prop_assert_eq!(apart, again.contains(path), "{:?}", Name(path.clone()));
        }
    }

    /// No shard but the last is smaller than asked, and the units stay in their order.
    #[test]
    fn shards_are_filled(costs in prop::collection::vec(0u64..100, 0..200), most in 1u64..500) {
        let unit = |bytes: &u64| Unit {
            path: Name::default(), part: UnitPart::Whole, files: 0, bytes: *bytes,
        };
        let units: Vec<Unit> = costs.iter().map(unit).collect();
        let shards = gather(units.clone(), Sizes { shard_bytes: most, unit_bytes: 1 });
        let all: Vec<Unit> = shards.iter().flatten().cloned().collect();
        prop_assert_eq!(all, units);
        for shard in shards.iter().rev().skip(1) {
            let cost: u64 = shard.iter().map(|unit| unit.bytes).sum();
            prop_assert!(cost >= most || shard.len() == UNITS_MAX);
        }
    }
}

#[test]
fn a_large_folder_is_cut_by_names() {
    let mut folder = ListedFolder { path: Name(b"/srv".to_vec()), ..ListedFolder::default() };
    let found: Vec<(Name, u64)> =
        (0..20_000).map(|at| (Name(format!("{at:05}").into_bytes()), 1)).collect();
    add_cuts(&mut folder, &found);
    let units = contents(&folder, 6000 * FILE_COST_BYTES);
    assert_eq!(units.len(), 4);
    assert_eq!(units.iter().map(|unit| unit.files).sum::<u64>(), 20_000);
    let edges = |unit: &Unit| match &unit.part {
        UnitPart::Contents { from, before } => (from.clone(), before.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!((edges(&units[0]).0, edges(&units[3]).1), (None, None));
    for pair in units.windows(2) {
        assert_eq!(edges(&pair[0]).1, edges(&pair[1]).0);
        assert!(edges(&pair[0]).1.is_some());
    }
}
