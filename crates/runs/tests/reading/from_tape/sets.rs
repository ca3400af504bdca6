//! Whole sets on one volume.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use archive::label::{Continuation, Found, Label};
use runs::list::ListWay;
use runs::origin::Origin;
use runs::restore::{Checksums, RestoreOptions};

use catalogue::IndexFile;
use sim::tape::Object;

use super::harness::{BLOCK_BYTES, TapeHarness};
use crate::harness::{Kept, Times, assert_same_tree};

const COMPRESSIONS: [&str; 3] = ["none", "zstd:3", "gzip:1"];

#[test]
fn there_and_back() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        let tree = harness.plain.tree("tree");
        harness.write(&tree, compression, 400 << 10);
        let (report, kept) = harness.restore("out");
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        assert!(matches!(report.checksums, Checksums::Hold { blocks: 1.. }), "{report:?}");
        let tape = report.tape.unwrap();
        assert_eq!((tape.volumes, tape.lost_blocks), (vec![1], 0));
        assert_eq!((&*tape.device, tape.changes, tape.change_seconds), ("/dev/nst0", 0, 0.0));
        let restored = harness.plain.path("out").join(tree.strip_prefix("/").unwrap());
        assert_same_tree(&tree, &restored, Times::Exact);
    }
}

/// A plain set needs one ring, another one two.
#[test]
fn rings_take_what_they_may() {
    const RING_BYTES: u64 = 32 << 20;
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        harness.small_tree(3, 9000);
        harness.write(&harness.plain.path("t"), compression, 100 << 10);
        let options = RestoreOptions {
            from: Origin::Tape(harness.origin()),
            ring_bytes: RING_BYTES as usize,
            ..Default::default()
        };
        let report = harness.plain.try_restore(options, "out", &Kept::default()).unwrap();
        let taken = report.run.ring_bytes;
        assert!((RING_BYTES * 3 / 4..=RING_BYTES).contains(&taken), "{compression}: {taken}");
    }
}

#[test]
fn a_set_is_listed_from_its_index() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        let expected = harness.small_tree(30, 9000);
        harness.write(&harness.plain.path("t"), compression, 100 << 10);
        let (paths, report, kept) = harness.list();
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_eq!(report.way, ListWay::Index { headers_checked: 0 });
        assert!(expected.keys().all(|path| paths.contains(path)), "{paths:?}");
    }
}

/// The index says at its end where it begins, and something else is there.
#[test]
fn an_index_without_its_beginning_is_none() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        let expected = harness.small_tree(60, 9000);
        harness.write(&harness.plain.path("t"), compression, 100 << 10);
        let cartridge = &harness.library.cartridges()[0];
        let mut objects = cartridge.objects().unwrap();
        let marks = (0..objects.len()).filter(|number| objects[*number] == Object::Filemark);
        let marks: Vec<usize> = marks.collect();
        // Behind its label.
        let first = marks[marks.len() - 2] + 2;
        assert!(first + 2 < objects.len() - 1, "an index of several blocks");
        let blocks = objects[first..objects.len() - 1].iter().map(|object| match object {
            Object::Block(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        });
        check_alone(&blocks.collect::<Vec<_>>().concat());
        objects[first] = Object::Block(vec![0; BLOCK_BYTES]);
        cartridge.record(&objects).unwrap();
        harness.library.load(0);
        let (paths, report, _) = harness.list();
        assert_eq!(report.way, ListWay::Headers, "{compression}");
        assert!(expected.keys().all(|path| paths.contains(path)), "{paths:?}");
        let sets = tapeset::sets_on_volume(&harness.origin(), &harness.cancel).unwrap();
        assert_eq!(sets[0].contents, None);
    }
}

/// Only an index that is all of a file is one.
fn check_alone(index: &[u8]) {
    let is_one = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        IndexFile::alone(Arc::new(file.into()), bytes.len() as u64).is_some()
    };
    assert!(is_one(index));
    assert!(!is_one(&[&[0; 512], index].concat()), "something is in front");
    assert!(!is_one(&[&[0; 512], &index[512..]].concat()), "its beginning is lost");
}

#[test]
fn a_sound_set_verifies_and_is_like_the_live_tree() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        let tree = harness.plain.tree("tree");
        harness.write(&tree, compression, 400 << 10);
        let (report, kept) = harness.verify(Some(Path::new("/")));
        let report = report.unwrap();
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        assert!(report.is_sound() && report.checked.index);
        assert_eq!(report.checked.content_hashes, report.run.files);
        assert!(report.checked.blocks.is_some_and(|blocks| blocks > 0));
        assert_eq!(report.checked.compared, report.run.members);
    }
}

/// The second volume of a set after another set: Takeup no longer writes that, but finds it.
#[test]
fn a_later_volume_behind_another_set() {
    let harness = TapeHarness::new(4, 180 << 10);
    harness.small_tree(12, 30_000);
    harness.write(&harness.plain.path("t"), "none", 50 << 10);
    let mut second = harness.library.cartridges()[1].objects().unwrap();
    let mark = second.iter().position(|object| *object == Object::Filemark).unwrap();
    second.truncate(mark + 1);
    let other = TapeHarness::new(1, 64 << 20);
    other.small_tree(3, 5000);
    other.write(&other.plain.path("t"), "none", 10 << 10);
    let cartridge = other.library.cartridges()[0].clone();
    let before = cartridge.objects().unwrap();
    let files = before.iter().filter(|object| **object == Object::Filemark).count();
    let mut label = label_of(&second[0]);
    assert_eq!(label.volume, 2);
    (label.part, label.medium) = (1, label_of(&before[0]).medium);
    let mut begun = label.encode(Continuation::None).unwrap();
    begun.resize(BLOCK_BYTES, 0);
    second[0] = Object::Block(begun);
    cartridge.record(&before.into_iter().chain(second).collect::<Vec<_>>()).unwrap();
    other.library.load(0);
    let sets = tapeset::sets_on_volume(&other.origin(), &other.cancel).unwrap();
    let found: Vec<_> = sets.iter().map(|set| (set.volume, set.first_file)).collect();
    assert_eq!(found, [(1, 0), (2, files as u32)]);
}

fn label_of(object: &Object) -> Label {
    let Object::Block(bytes) = object else { panic!("{object:?}") };
    let Ok(Found::Label(label)) = Label::find(bytes) else { panic!("no label") };
    label
}
