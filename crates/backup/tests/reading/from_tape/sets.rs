//! Whole sets on one volume.

use std::path::Path;

use backup::list::ListWay;
use backup::restore::Checksums;

use super::harness::TapeHarness;
use crate::harness::{Times, assert_same_tree};

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
        let restored = harness.plain.path("out").join(tree.strip_prefix("/").unwrap());
        assert_same_tree(&tree, &restored, Times::Exact);
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
