//! Whole sets on one volume.

use std::path::Path;

use backup::list::ListWay;
use backup::origin::Origin;
use backup::restore::{Checksums, RestoreOptions};

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
        objects[first] = Object::Block(vec![0; BLOCK_BYTES]);
        cartridge.record(&objects).unwrap();
        harness.library.load(0);
        let (paths, report, _) = harness.list();
        assert_eq!(report.way, ListWay::Headers, "{compression}");
        assert!(expected.keys().all(|path| paths.contains(path)), "{paths:?}");
        let sets = sets::sets_on_volume(&harness.origin(), &harness.cancel).unwrap();
        assert_eq!(sets[0].contents, None);
    }
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
