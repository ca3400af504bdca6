//! Where bytes are, against sums over the trees.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Of each set, what its day has; also where other sets have left.
    #[test]
    fn folders_have_the_bytes_of_their_files(
        days in proptest::collection::vec(trees(), 1..5),
        leaving in any::<[bool; 5]>(),
    ) {
        with_catalogue(|catalogue| {
            for (day, tree) in days.iter().enumerate() {
                add(catalogue, day as u32, tree);
            }
            let is_kept = |day: &usize| !leaving[*day] || *day + 1 == days.len();
            for day in (0..days.len()).filter(|day| !is_kept(day)) {
                let number = catalogue.number_of(&description(day as u32)).unwrap();
                catalogue.leave(&Vec::from_iter(number)).unwrap();
            }
            let kept: Vec<&Tree> = (0..days.len()).filter(is_kept).map(|day| &days[day]).collect();
            let found = catalogue.usage(b"srv/top").unwrap();
            for usage in found.iter().flat_map(|series| &series.below) {
                let path = std::str::from_utf8(&usage.path).unwrap();
                let below = format!("{path}/");
                let bytes = |tree: &&Tree| -> u64 {
                    let files = tree.iter().map(|(at, object)| match object {
                        Object::File { size } if at == path || at.starts_with(&below) => *size,
                        _ => 0,
                    });
                    files.sum()
                };
                let expected: Vec<u64> = kept.iter().map(bytes).collect();
                prop_assert_eq!(&usage.bytes, &expected, "{}", path);
            }
            let all = |tree: &&Tree| -> u64 {
                let sizes = tree.values().map(|object| match object {
                    Object::File { size } => *size,
                    Object::Folder => 0,
                });
                sizes.sum()
            };
            let newest: u64 = found
                .iter()
                .flat_map(|series| &series.below)
                .map(|usage| usage.bytes.last().copied().unwrap_or(0))
                .sum();
            prop_assert_eq!(newest, kept.last().map_or(0, all));
            Ok(())
        })?;
    }
}

/// The only thing in a folder was a folder, and is a file now.
#[test]
fn what_was_a_folder_and_is_a_file_has_its_bytes() {
    with_catalogue(|catalogue| {
        add(catalogue, 0, &tree(&[("a", Object::Folder), ("a/x", file(5))]));
        add(catalogue, 1, &tree(&[("a", file(7))]));
        let usage = |path: &[u8]| -> Vec<(String, Vec<u64>)> {
            let below = catalogue.usage(path).unwrap().remove(0).below.into_iter();
            below.map(|it| (String::from_utf8(it.path).unwrap(), it.bytes)).collect()
        };
        assert_eq!(usage(b"srv"), [("srv/top/a".to_owned(), vec![5, 7])]);
        let both = [("srv/top/a".to_owned(), vec![0, 7]), ("srv/top/a/x".to_owned(), vec![5, 0])];
        assert_eq!(usage(b"srv/top/a"), both);
    });
}

#[test]
fn the_largest_comes_first_and_each_version_counts_once() {
    with_catalogue(|catalogue| {
        let paths = |size| [("a", Object::Folder), ("a/x", file(size)), ("b", file(30))];
        for (day, size) in [(0, 50), (1, 50), (2, 20)] {
            add(catalogue, day, &tree(&paths(size)));
        }
        let [series] = &catalogue.usage(b"").unwrap()[..] else { panic!("one series") };
        assert_eq!(series.path, b"srv/top", "what is alone is passed");
        let [b, a] = &series.below[..] else { panic!("{series:?}") };
        assert_eq!(
            (&b.path[..], b.is_folder, &b.bytes[..]),
            (&b"srv/top/b"[..], false, &[30; 3][..])
        );
        assert_eq!((a.is_folder, &a.bytes[..], a.versions_bytes), (true, &[50, 50, 20][..], 70));
        let [file] = &catalogue.usage(b"/srv/top/b/").unwrap()[0].below[..] else { panic!() };
        assert_eq!((&file.path[..], file.bytes[2]), (&b"srv/top/b"[..], 30));
        assert!(catalogue.usage(b"srv/nowhere").unwrap().is_empty());
    });
}
