//! Folders as sets have them, against the trees.

use super::*;

/// What is in a folder of a tree, by names; `None` if it has no such folder.
fn children(tree: &Tree, folder: &str) -> Option<Vec<(String, Option<u64>)>> {
    if tree.get(folder) != Some(&Object::Folder) {
        return None;
    }
    let below = format!("{folder}/");
    let child = |(path, object): (&String, &Object)| {
        let name = path.strip_prefix(&below).filter(|name| !name.contains('/'))?;
        let size = match object {
            Object::Folder => None,
            Object::File { size } => Some(*size),
        };
        Some((name.to_owned(), size))
    };
    Some(tree.iter().filter_map(child).collect())
}

fn listed(entries: &[FolderEntry]) -> Vec<(String, Option<u64>)> {
    let entry = |entry: &FolderEntry| {
        let size = (!entry.is_folder()).then(|| entry.object.as_ref().unwrap().size_bytes);
        (String::from_utf8(entry.name.clone()).unwrap(), size)
    };
    entries.iter().map(entry).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Of each day, what its tree has in each folder that any day has.
    #[test]
    fn a_folder_has_what_the_tree_of_its_day_has(
        days in proptest::collection::vec(trees(), 1..5),
        order in proptest::collection::vec(any::<u32>(), 5),
    ) {
        let mut found: Vec<usize> = (0..days.len()).collect();
        found.sort_by_key(|&day| order[day]);
        with_catalogue(|catalogue| {
            for day in found {
                add(catalogue, day as u32, &days[day]);
            }
            let sets = catalogue.series().unwrap().pop().unwrap();
            prop_assert_eq!(sets.len(), days.len());
            let paths: BTreeSet<&String> = days.iter().flat_map(|tree| tree.keys()).collect();
            for (set, tree) in sets.iter().zip(&days) {
                for path in &paths {
                    let entries = catalogue.folder(set, path.as_bytes()).unwrap();
                    let has = catalogue.has(set, path.as_bytes()).unwrap();
                    prop_assert_eq!(has, tree.contains_key(*path));
                    match tree.get(*path) {
                        None => prop_assert_eq!(entries, None),
                        Some(Object::Folder) => {
                            prop_assert_eq!(entries.map(|it| listed(&it)), children(tree, path));
                        }
                        Some(Object::File { size }) => {
                            let entries = listed(&entries.unwrap());
                            let name = path.rsplit('/').next().unwrap().to_owned();
                            prop_assert_eq!(entries, [(name, Some(*size))]);
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn folders_above_the_sources_lead_to_what_the_set_has() {
    with_catalogue(|catalogue| {
        add(catalogue, 0, &tree(&[("a", file(1))]));
        let set = catalogue.sets().unwrap().pop().unwrap();
        for (path, name) in [("", "srv"), ("srv", "top"), ("/srv/", "top")] {
            let entries = catalogue.folder(&set, path.as_bytes()).unwrap().unwrap();
            let names: Vec<&[u8]> = entries.iter().map(|entry| &entry.name[..]).collect();
            assert_eq!(names, [name.as_bytes()], "{path}");
            assert!(entries[0].is_folder());
        }
        assert_eq!(catalogue.folder(&set, b"srv/none").unwrap(), None);
        assert_eq!(catalogue.folder(&set, b"srv/top/a/none").unwrap(), None);
        let versions = catalogue.versions_at(set.series, b"srv/top/a").unwrap();
        assert_eq!((versions.len(), versions[0].object.size_bytes), (1, 1));
        assert_eq!(catalogue.versions_at(set.series, b"srv/none").unwrap(), []);
    });
}
