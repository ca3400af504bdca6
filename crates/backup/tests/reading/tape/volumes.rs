//! Sets over several volumes, in whatever order they come, and sets whose run died.

use std::path::Path;

use backup::list::ListWay;
use backup::read::ReadFailure;
use backup::read::tape::TapeReadFailure;
use backup::restore::RestoreError;
use backup::tape::{Refused, VolumePurpose};

use super::studio::{Clerk, Studio};

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];

/// A set over at least three volumes, and how many they are.
fn over_volumes(compression: &str, block_bytes: usize) -> (Studio, usize) {
    let studio = Studio::new(12, 700 << 10);
    studio.small_tree(90, 60_000);
    let tree = studio.bench.path("t");
    let report = studio.write_blocks(&tree, compression, 300 << 10, block_bytes);
    let volumes = report.tape.unwrap().volumes as usize;
    assert!(volumes >= 3, "{volumes}");
    (studio, volumes)
}

fn volumes_asked_for(studio: &Studio) -> Vec<u32> {
    let requests = studio.requests.lock().unwrap();
    let volume = |purpose: &VolumePurpose| match purpose {
        VolumePurpose::Read { volume, .. } | VolumePurpose::Write { volume, .. } => *volume,
    };
    requests.iter().map(|request| volume(&request.purpose)).collect()
}

#[test]
fn a_set_over_several_volumes_comes_back_whichever_is_in_the_drive() {
    for compression in COMPRESSIONS {
        for block_bytes in [512, 10_240] {
            let (studio, volumes) = over_volumes(compression, block_bytes);
            let expected = studio.small_tree(90, 60_000);
            for first in [0, 1, volumes - 1] {
                studio.library.load(first);
                let into = format!("out{first}");
                let (report, kept) = studio.restore(&into);
                let what = format!("{compression}, {block_bytes}, from {first}");
                assert_eq!(kept.warnings(), Vec::<String>::new(), "{what}");
                assert!(studio.restored(&into) == expected, "{what}");
                // The last volumes may hold the index alone.
                let read: Vec<u32> = (1..=volumes as u32).collect();
                let found = report.tape.unwrap().volumes;
                assert!(found.len() >= 3 && read.starts_with(&found), "{what}: {found:?}");
            }
        }
    }
}

#[test]
fn volumes_are_asked_for_in_the_order_of_the_data() {
    let (studio, volumes) = over_volumes("none", 4096);
    studio.library.load(0);
    studio.restore("out");
    assert_eq!(volumes_asked_for(&studio), (2..=volumes as u32).collect::<Vec<_>>());
}

#[test]
fn a_set_over_several_volumes_verifies() {
    for compression in COMPRESSIONS {
        let (studio, volumes) = over_volumes(compression, 4096);
        for first in [0, volumes - 1] {
            studio.library.load(first);
            let (report, kept) = studio.verify(Some(Path::new("/")));
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
    let (studio, volumes) = over_volumes("zstd:1", 4096);
    let expected = studio.small_tree(90, 60_000);
    studio.library.load(0);
    // Who is asked for the next one may give the last one at once.
    let studio = Studio { clerk: Clerk::Follows(vec![volumes - 1]), ..studio };
    let (paths, report, kept) = studio.list();
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert_eq!(report.way, ListWay::Index { headers_checked: 0 });
    assert!(expected.keys().all(|path| paths.contains(path)));
    assert_eq!(volumes_asked_for(&studio), [2]);
}

#[test]
fn wrong_volumes_are_refused_and_asked_for_again() {
    let (studio, volumes) = over_volumes("none", 4096);
    let expected = studio.small_tree(90, 60_000);
    studio.library.load(0);
    let blank = 11;
    let mut slots = vec![0, 2, blank, 1];
    slots.extend(2..volumes);
    let studio = Studio { clerk: Clerk::Follows(slots), ..studio };
    let (_, kept) = studio.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(studio.restored("out") == expected);
    let requests = studio.requests.lock().unwrap();
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
    let (studio, volumes) = over_volumes("none", 4096);
    studio.library.load(volumes - 1);
    let studio = Studio { clerk: Clerk::HasNone, ..studio };
    let (result, _) = studio.try_restore("out", &[]);
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
        let (studio, volumes) = over_volumes(compression, 4096);
        let expected = studio.small_tree(90, 60_000);
        let mut studio = Studio { clerk: Clerk::Has(volumes), ..studio };
        for missing in 1..=volumes {
            let others: Vec<usize> = (0..volumes).filter(|slot| slot + 1 != missing).collect();
            // The index is at hand first, or met at the end.
            for first in [others[others.len() - 1], others[0]] {
                studio.library.load(first);
                studio.requests.lock().unwrap().clear();
                studio.without_volumes = vec![missing as u32];
                let what = format!("{compression}, without {missing} of {volumes}, from {first}");
                let into = format!("out{missing}-{first}");
                let (result, kept) = studio.try_restore(&into, &[]);
                result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                assert!(!volumes_asked_for(&studio).contains(&(missing as u32)), "{what}");
                // The last ones may hold nothing but the index, which may be at hand twice.
                if missing + 1 < volumes {
                    kept.expect_warning(&format!("volume {missing} was"));
                }
                let restored = studio.restored(&into);
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
fn a_clerk_may_say_to_go_on_without_a_volume() {
    let (studio, volumes) = over_volumes("none", 4096);
    let expected = studio.small_tree(90, 60_000);
    studio.library.load(volumes - 1);
    let studio = Studio { clerk: Clerk::DoesWithout(2), ..studio };
    let (_, kept) = studio.restore("out");
    kept.expect_warning("volume 2 was left out");
    let restored = studio.restored("out");
    assert!(restored.len() < expected.len() && restored.len() * 2 > expected.len());
    assert_eq!(volumes_asked_for(&studio).iter().filter(|volume| **volume == 2).count(), 1);
}

#[test]
fn without_the_later_volumes_what_is_there_comes_back() {
    for compression in COMPRESSIONS {
        let (studio, _) = over_volumes(compression, 4096);
        let expected = studio.small_tree(90, 60_000);
        studio.library.load(0);
        let studio = Studio { clerk: Clerk::HasNone, ..studio };
        let (_, kept) = studio.restore("out");
        kept.expect_warning("unless it goes on on volume 2");
        let restored = studio.restored("out");
        assert!(restored.len() >= 10, "{}", restored.len());
        for (path, content) in &restored {
            assert!(path.ends_with(".incomplete") || expected[path] == *content, "{path}");
        }
    }
}

#[test]
fn every_run_that_died_leaves_its_segments() {
    for compression in COMPRESSIONS {
        let studio = Studio { clerk: Clerk::HasNone, ..Studio::new(1, 64 << 20) };
        let expected = studio.small_tree(24, 12_000);
        studio.write(&studio.bench.path("t"), compression, 40 << 10);
        let whole = studio.library.cartridges()[0].duplicate().unwrap();
        let objects = whole.len();
        let mut most = 0;
        for length in 1..objects {
            let cut = whole.duplicate().unwrap();
            cut.cut(length).unwrap();
            studio.library.drive().insert(cut);
            let into = format!("out{length}");
            let (result, kept) = studio.try_restore(&into, &[]);
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
            let restored = studio.restored(&into);
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
