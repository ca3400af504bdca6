//! Sets that leave, come back, and come in any order, against a naive model.

use super::*;
use crate::{Held, SetRecord};

/// How the days of a tree are stored.
#[derive(Clone, Copy, Debug)]
enum Stored {
    /// Each day as a whole.
    Whole,
    /// As a chain: what is as on the day before is in an earlier set.
    Chain,
}

/// What happens to a catalogue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(usize),
    Leave(usize),
}

fn set_records(days: &[Tree], day: usize, stored: Stored) -> Vec<SetRecord> {
    let before = day.checked_sub(1).map(|before| &days[before]);
    let of = |record: FileRecord| {
        let path = std::str::from_utf8(&record.path).unwrap();
        let same = before.is_some_and(|before| before.get(path) == days[day].get(path));
        match (stored, same) {
            (Stored::Chain, true) => {
                let mut record = record;
                if let RecordKind::File { content_hash, .. } = &mut record.kind {
                    *content_hash = None;
                }
                SetRecord { record, held: Held::Earlier }
            }
            _ => SetRecord { record, held: Held::Here },
        }
    };
    records(&days[day]).into_iter().map(of).collect()
}

/// The versions as the days have them that are there.
fn versions_of_some(days: &[Tree], there: &BTreeSet<usize>) -> Versions {
    let numbers: Vec<u32> = there.iter().map(|day| *day as u32).collect();
    let trees: Vec<Tree> = there.iter().map(|day| days[*day].clone()).collect();
    let mut all = versions_of(&trees);
    for versions in all.values_mut() {
        for (_, days) in versions {
            days.iter_mut().for_each(|day| *day = numbers[*day as usize]);
        }
    }
    all
}

fn steps(days: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..days).prop_map(Step::Add),
        2 => (0..days).prop_map(Step::Leave),
    ];
    proptest::collection::vec(step, 1..14)
}

fn count(catalogue: &Catalogue, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {table}");
    catalogue.connection.query_row(&query, [], |row| row.get(0)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever came and left, in any order, the sets that are there have what they had, and
    /// nothing is kept of the others.
    #[test]
    fn the_sets_that_are_there_have_what_they_had(
        days in proptest::collection::vec(trees(), 5),
        steps in steps(5),
        is_chain in any::<bool>(),
    ) {
        let stored = if is_chain { Stored::Chain } else { Stored::Whole };
        with_catalogue(|catalogue| {
            let mut there = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Add(day) => {
                        let records = set_records(&days, day, stored).into_iter();
                        let records = records.map(Ok::<_, CatalogueError>);
                        let loaded = catalogue.add(&description(day as u32), records).unwrap();
                        prop_assert_eq!(there.insert(day), loaded != Loaded::Known);
                    }
                    Step::Leave(day) => {
                        let number = catalogue.number_of(&description(day as u32)).unwrap();
                        prop_assert_eq!(number.is_some(), there.remove(&day));
                        catalogue.leave(&Vec::from_iter(number)).unwrap();
                    }
                }
                prop_assert_eq!(versions_in(catalogue), versions_of_some(&days, &there));
            }
            let all: Vec<i64> = catalogue.sets().unwrap().iter().map(|set| set.number).collect();
            catalogue.leave(&all).unwrap();
            for table in ["sets", "series", "versions", "nodes", "looks"] {
                prop_assert_eq!(count(catalogue, table), 0, "{}", table);
            }
            Ok(())
        })?;
    }
}

/// The set in which a folder became a file may be lost: a later one of the chain says only that
/// the file is as it was.
#[test]
fn a_folder_that_became_a_file_in_a_set_that_is_not_there_has_nothing_below_it() {
    with_catalogue(|catalogue| {
        let folder = tree(&[("a", Object::Folder), ("a/b", file(1))]);
        let days = [folder, tree(&[("a", file(2))]), tree(&[("a", file(2))])];
        for day in [0, 2] {
            let records = set_records(&days, day, Stored::Chain).into_iter();
            let records = records.map(Ok::<_, CatalogueError>);
            catalogue.add(&description(day as u32), records).unwrap();
        }
        assert_eq!(versions_in(catalogue), versions_of_some(&days, &BTreeSet::from([0, 2])));
    });
}

/// Two sets of different series may have begun in the same second.
#[test]
fn what_another_series_has_stays_when_a_set_leaves() {
    with_catalogue(|catalogue| {
        for (folder, day, size) in [("web1", 0, 1), ("web2", 0, 2), ("web1", 1, 3), ("web2", 1, 4)]
        {
            let mut set = SetDescription {
                place: format!("/backups/{folder}/{day}.tar").into(),
                ..description(day)
            };
            set.content[31] = folder.as_bytes()[3];
            let records = records(&tree(&[("a", file(size))])).into_iter();
            catalogue.add(&set, records.map(Ok::<_, CatalogueError>)).unwrap();
        }
        let first = catalogue.sets().unwrap()[0].clone();
        catalogue.leave(&[first.number]).unwrap();
        let found = find(catalogue, "a").files;
        let sizes: Vec<Vec<u64>> = found
            .iter()
            .map(|file| file.versions.iter().map(|version| version.object.size_bytes).collect())
            .collect();
        assert_eq!(sizes, [vec![3], vec![2, 4]]);
    });
}

/// A catalogue of an earlier version goes on: it gets the tables that it lacks.
#[test]
fn a_catalogue_of_version_1_becomes_one_of_this_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    let mut catalogue = Catalogue::open_or_create(&path).unwrap();
    add(&mut catalogue, 1, &tree(&[("a", file(1))]));
    let back = "DROP TABLE looks; DROP TABLE name_blocks; ALTER TABLE sets DROP COLUMN gone; \
                PRAGMA user_version = 1;";
    catalogue.connection.execute_batch(back).unwrap();
    drop(catalogue);
    let mut catalogue = Catalogue::open(&path).unwrap();
    assert_eq!(find(&catalogue, "a").total, 1);
    let number = catalogue.number_of(&description(1)).unwrap();
    catalogue.leave(&Vec::from_iter(number)).unwrap();
    assert_eq!(find(&catalogue, "a").total, 0);
}
