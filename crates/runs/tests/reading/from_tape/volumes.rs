//! Sets over several volumes, in any order, and sets whose run died.

use std::path::Path;

use runs::list::ListWay;
use runs::read::ReadFailure;
use runs::restore::RestoreError;
use sim::tape::Faults;
use tapeset::TapeReadFailure;
use tapeset::{Refused, VolumePurpose};

use super::harness::{Clerk, TapeHarness};

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];

/// A set over at least three volumes, and how many they are.
fn over_volumes(compression: &str, block_bytes: usize) -> (TapeHarness, usize) {
    let harness = TapeHarness::new(12, 700 << 10);
    harness.small_tree(90, 60_000);
    let tree = harness.plain.path("t");
    let report = harness.write_blocks(&tree, compression, 300 << 10, block_bytes);
    let volumes = report.tape.unwrap().volumes as usize;
    assert!(volumes >= 3, "{volumes}");
    (harness, volumes)
}

fn volumes_asked_for(harness: &TapeHarness) -> Vec<u32> {
    let requests = harness.requests.lock().unwrap();
    let volume = |purpose: &VolumePurpose| match purpose {
        VolumePurpose::Read { volume, .. } | VolumePurpose::Write { volume, .. } => *volume,
    };
    requests.iter().map(|request| volume(&request.purpose)).collect()
}

#[test]
fn a_set_over_several_volumes_comes_back_whichever_is_in_the_drive() {
    for compression in COMPRESSIONS {
        for block_bytes in [512, 10_240] {
            let (harness, volumes) = over_volumes(compression, block_bytes);
            let expected = harness.small_tree(90, 60_000);
            for first in [0, 1, volumes - 1] {
                harness.library.load(first);
                let into = format!("out{first}");
                let (report, kept) = harness.restore(&into);
                let what = format!("{compression}, {block_bytes}, from {first}");
                assert_eq!(kept.warnings(), Vec::<String>::new(), "{what}");
                assert!(harness.restored(&into) == expected, "{what}");
                // The one in the drive comes first, the others in their order; the last volumes may
                // hold the index alone.
                let read: Vec<u32> = (1..=volumes as u32).collect();
                let mut found = report.tape.unwrap().volumes;
                assert!(found.iter().skip(1).is_sorted(), "{what}: {found:?}");
                found.sort_unstable();
                assert!(found.len() >= 3 && read.starts_with(&found), "{what}: {found:?}");
            }
        }
    }
}

#[test]
fn volumes_are_asked_for_in_the_order_of_the_data() {
    let (harness, volumes) = over_volumes("none", 4096);
    harness.library.load(0);
    harness.restore("out");
    assert_eq!(volumes_asked_for(&harness), (2..=volumes as u32).collect::<Vec<_>>());
}

#[test]
fn a_set_over_several_volumes_verifies() {
    for compression in COMPRESSIONS {
        let (harness, volumes) = over_volumes(compression, 4096);
        for first in [0, volumes - 1] {
            harness.library.load(first);
            let (report, kept) = harness.verify(Some(Path::new("/")));
            let report = report.unwrap();
            assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}, from {first}");
            assert!(report.is_sound() && report.checked.index, "{:?}", report.checked);
            assert_eq!(report.checked.content_hashes, report.run.files);
            assert_eq!(report.checked.compared, report.run.members);
        }
    }
}

#[test]
fn a_list_asks_for_the_volume_with_the_index() {
    let (harness, volumes) = over_volumes("zstd:1", 4096);
    let expected = harness.small_tree(90, 60_000);
    harness.library.load(0);
    // The operator may insert the last volume when asked for the next one.
    let harness = TapeHarness { clerk: Clerk::Follows(vec![volumes - 1]), ..harness };
    let (paths, report, kept) = harness.list();
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert_eq!(report.way, ListWay::Index { headers_checked: 0 });
    assert!(expected.keys().all(|path| paths.contains(path)));
    assert_eq!(volumes_asked_for(&harness), [2]);
}

#[test]
fn wrong_volumes_are_refused_and_asked_for_again() {
    let (harness, volumes) = over_volumes("none", 4096);
    let expected = harness.small_tree(90, 60_000);
    harness.library.load(0);
    let blank = 11;
    let mut slots = vec![0, 2, blank, 1];
    slots.extend(2..volumes);
    let harness = TapeHarness { clerk: Clerk::Follows(slots), ..harness };
    let (_, kept) = harness.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(harness.restored("out") == expected);
    let requests = harness.requests.lock().unwrap();
    let refused: Vec<_> = requests.iter().filter_map(|request| request.refused.clone()).collect();
    let wanted = 2;
    let expected = [
        Refused::OtherVolume { found: 1, wanted },
        Refused::OtherVolume { found: 3, wanted },
        Refused::Blank,
    ];
    assert_eq!(refused, expected);
}

#[test]
fn a_volume_that_nobody_has_is_named() {
    let (harness, volumes) = over_volumes("none", 4096);
    harness.library.load(volumes - 1);
    let harness = TapeHarness { clerk: Clerk::HasNone, ..harness };
    let (result, _) = harness.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(failure))) => match failure {
            TapeReadFailure::VolumeMissing { volume: 1, .. } => {}
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_volume_what_is_on_the_others_comes_back() {
    for compression in COMPRESSIONS {
        let (harness, volumes) = over_volumes(compression, 4096);
        let expected = harness.small_tree(90, 60_000);
        let mut harness = TapeHarness { clerk: Clerk::Has(volumes), ..harness };
        for missing in 1..=volumes {
            let others: Vec<usize> = (0..volumes).filter(|slot| slot + 1 != missing).collect();
            // The index is at hand first, or met at the end.
            for first in [others[others.len() - 1], others[0]] {
                harness.library.load(first);
                harness.requests.lock().unwrap().clear();
                harness.without_volumes = vec![missing as u32];
                let what = format!("{compression}, without {missing} of {volumes}, from {first}");
                let into = format!("out{missing}-{first}");
                let (result, kept) = harness.try_restore(&into, &[]);
                result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                assert!(!volumes_asked_for(&harness).contains(&(missing as u32)), "{what}");
                // The last ones may hold only the index, which may exist twice.
                if missing + 1 < volumes {
                    kept.expect_warning(&format!("volume {missing} was"));
                }
                let restored = harness.restored(&into);
                let whole = |(path, _): &(&String, _)| !path.ends_with(".incomplete");
                let mut good = 0;
                for (path, content) in restored.iter().filter(whole) {
                    assert!(expected[path] == *content, "{what}: {path}");
                    good += 1;
                }
                assert!(good * 2 >= expected.len(), "{what}: {good} of {}", expected.len());
                assert!(good < expected.len() || missing + 1 >= volumes, "{what}");
            }
        }
    }
}

#[test]
fn what_is_behind_a_first_volume_that_is_missing_is_held_against_the_index_where_it_is() {
    for compression in COMPRESSIONS {
        let (harness, volumes) = over_volumes(compression, 4096);
        let mut harness = TapeHarness { clerk: Clerk::Has(volumes), ..harness };
        harness.without_volumes = vec![1];
        // The index comes at the end: until then the size of the gap before it is unknown.
        harness.library.load(1);
        let (_, kept) = harness.restore("out");
        let wrong = |text: &&String| text.contains("checksums do not hold");
        assert_eq!(kept.warnings().iter().find(wrong), None, "{compression}");
        let mut whole = harness.restored("out");
        whole.retain(|path, _| !path.ends_with(".incomplete"));
        harness.library.load(1);
        let report = harness.verify(None).0.unwrap();
        assert!(report.checked.index && whole.len() > 10, "{compression}");
        assert_eq!(report.checked.content_hashes, whole.len() as u64, "{compression}");
        for problem in &report.damaged.items {
            let path = String::from_utf8_lossy(&problem.path).into_owned();
            assert!(!whole.contains_key(&path), "{compression}: {path}: {}", problem.what);
            assert!(!problem.what.contains("checksum of the"), "{compression}: {}", problem.what);
        }
    }
}

/// Volumes that were left out do not count as unreadable, and unreadable data do not count as left
/// out.
#[test]
fn unreadable_blocks_are_those_of_volumes_that_are_there() {
    for compression in COMPRESSIONS {
        let (harness, volumes) = over_volumes(compression, 4096);
        let mut harness = TapeHarness { clerk: Clerk::Has(volumes), ..harness };
        harness.without_volumes = vec![2];
        for (number, faults) in [Faults::default(), Faults::unreadable([9])].into_iter().enumerate()
        {
            let unreadable = number as u64;
            harness.library.cartridges()[0].set_faults(faults);
            harness.library.load(0);
            let (report, kept) = harness.restore(&format!("out{number}"));
            kept.expect_warning("volume 2 was left out");
            assert_eq!(report.run.unreadable_blocks, unreadable, "{compression}");
            harness.library.load(0);
            let report = harness.verify(None).0.unwrap();
            assert_eq!(report.run.unreadable_blocks, unreadable, "{compression}");
        }
    }
}

#[test]
fn a_clerk_may_say_to_go_on_without_a_volume() {
    let (harness, volumes) = over_volumes("none", 4096);
    let expected = harness.small_tree(90, 60_000);
    harness.library.load(volumes - 1);
    let harness = TapeHarness { clerk: Clerk::DoesWithout(2), ..harness };
    let (_, kept) = harness.restore("out");
    kept.expect_warning("volume 2 was left out");
    let restored = harness.restored("out");
    assert!(restored.len() < expected.len() && restored.len() * 2 > expected.len());
    assert_eq!(volumes_asked_for(&harness).iter().filter(|volume| **volume == 2).count(), 1);
}

#[test]
fn without_the_later_volumes_what_is_there_comes_back() {
    for compression in COMPRESSIONS {
        let (harness, _) = over_volumes(compression, 4096);
        let expected = harness.small_tree(90, 60_000);
        harness.library.load(0);
        let harness = TapeHarness { clerk: Clerk::HasNone, ..harness };
        let (_, kept) = harness.restore("out");
        kept.expect_warning("unless the set continues on volume 2");
        let restored = harness.restored("out");
        assert!(restored.len() >= 10, "{}", restored.len());
        for (path, content) in &restored {
            assert!(path.ends_with(".incomplete") || expected[path] == *content, "{path}");
        }
    }
}

#[test]
fn every_run_that_died_leaves_its_segments() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness { clerk: Clerk::HasNone, ..TapeHarness::new(1, 64 << 20) };
        let expected = harness.small_tree(24, 12_000);
        harness.write(&harness.plain.path("t"), compression, 40 << 10);
        let whole = harness.library.cartridges()[0].duplicate().unwrap();
        let objects = whole.len();
        let mut most = 0;
        for length in 1..objects {
            let cut = whole.duplicate().unwrap();
            cut.cut(length).unwrap();
            harness.library.drive().insert(cut);
            let into = format!("out{length}");
            let (result, kept) = harness.try_restore(&into, &[]);
            let what = format!("{compression}, cut at {length} of {objects}");
            match result {
                Ok(_) => {}
                Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::NoData { .. }))) => {
                    assert_eq!(most, 0, "{what}");
                    continue;
                }
                Err(error) => panic!("{what}: {error:?}"),
            }
            if length + 1 < objects {
                assert!(!kept.warnings().is_empty(), "{what}");
            }
            let restored = harness.restored(&into);
            let good = restored.iter().filter(|(path, _)| !path.ends_with(".incomplete"));
            let mut count = 0;
            for (path, content) in good {
                assert!(expected[path] == *content, "{what}: {path}");
                count += 1;
            }
            assert!(count >= most, "{what}: {count} files after {most}");
            most = count;
        }
        assert_eq!(most, expected.len(), "{compression}");
    }
}
