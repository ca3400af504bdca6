//! The catalogue against naive models, and what it does when something fails.

use std::collections::{BTreeMap, BTreeSet};

use archive::index::{FileLayout, FileRecord, RecordKind};
use archive::member::Timestamp;
use archive::stream::ArchiveOffset;
use proptest::prelude::*;

use super::*;
use crate::{CataloguedKind, FolderEntry, Found, Loaded, SetDescription};

mod folder;
mod leaving;
mod usage;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Folder,
    File { size: u64 },
}

/// The versions of each path: size (of a file) and the days that have it.
type Versions = BTreeMap<String, Vec<(Option<u64>, Vec<u32>)>>;

/// A tree by its paths, in the order of an archive: no name here sorts before a slash.
type Tree = BTreeMap<String, Object>;

fn records(tree: &Tree) -> Vec<FileRecord> {
    let record = |(at, (path, object)): (usize, (&String, &Object))| FileRecord {
        path: path.clone().into_bytes(),
        kind: match object {
            Object::Folder => RecordKind::Directory,
            Object::File { size } => RecordKind::File {
                size_bytes: *size,
                stored_bytes: *size,
                layout: FileLayout::Whole,
                content_hash: Some([*size as u8; 32]),
            },
        },
        header_offset_bytes: ArchiveOffset::new(at as u64 * 1024),
        content_offset_bytes: ArchiveOffset::new(at as u64 * 1024 + 512),
        mode: 0o644,
        uid: 0,
        gid: 0,
        modified: Timestamp { seconds: 7, nanoseconds: 8 },
        changed: Timestamp { seconds: 9, nanoseconds: 0 },
    };
    tree.iter().enumerate().map(record).collect()
}

fn description(day: u32) -> SetDescription {
    let mut content = [0; 32];
    content[..4].copy_from_slice(&day.to_le_bytes());
    SetDescription {
        content,
        time_seconds: 1_700_000_000 + i64::from(day) * 86_400,
        order_seconds: 1_700_000_000 + i64::from(day) * 86_400,
        place: format!("/backups/{day}.tar").into(),
        compression: "none".to_owned(),
        archive_bytes: 10_240,
        sources: vec![b"srv/top".to_vec()],
    }
}

fn add(catalogue: &mut Catalogue, day: u32, tree: &Tree) -> Loaded {
    let records = records(tree).into_iter().map(Ok::<_, CatalogueError>);
    catalogue.add(&description(day), records).unwrap()
}

fn find(catalogue: &Catalogue, glob: &str) -> Found {
    catalogue.find(glob, usize::MAX / 4).unwrap().unwrap()
}

fn tree(paths: &[(&str, Object)]) -> Tree {
    let top = ("srv/top".to_owned(), Object::Folder);
    let below = paths.iter().map(|(path, object)| (format!("srv/top/{path}"), *object));
    std::iter::once(top).chain(below).collect()
}

fn file(size: u64) -> Object {
    Object::File { size }
}

/// The sets of each version, by path and size (folders have none), as the trees have it: runs of
/// neighbouring days.
fn versions_of(days: &[Tree]) -> Versions {
    let mut all = Versions::new();
    let paths: BTreeSet<&String> = days.iter().flat_map(Tree::keys).collect();
    for path in paths {
        let versions = all.entry(path.clone()).or_default();
        let mut before = None;
        for (day, tree) in days.iter().enumerate() {
            let now = tree.get(path).copied();
            if let Some(object) = now {
                if before != now {
                    let size = match object {
                        Object::Folder => None,
                        Object::File { size } => Some(size),
                    };
                    versions.push((size, Vec::new()));
                }
                versions.last_mut().unwrap().1.push(day as u32);
            }
            before = now;
        }
    }
    all
}

/// The same from a catalogue.
fn versions_in(catalogue: &Catalogue) -> Versions {
    let day_of: BTreeMap<i64, u32> = catalogue
        .sets()
        .unwrap()
        .iter()
        .map(|set| (set.number, ((set.time_seconds - 1_700_000_000) / 86_400) as u32))
        .collect();
    let newest = day_of.values().max().copied();
    let found = find(catalogue, "*");
    assert_eq!(found.total, found.files.len() as u64);
    found
        .files
        .into_iter()
        .map(|found| {
            let of = |version: &crate::FoundVersion| {
                let object = &version.object;
                let size = (object.kind == CataloguedKind::File).then_some(object.size_bytes);
                let days: Vec<u32> = version.sets.iter().map(|set| day_of[set]).collect();
                assert_eq!(version.is_newest, days.last().copied() == newest, "{days:?}");
                (size, days)
            };
            let versions = found.versions.iter().map(of).collect();
            (String::from_utf8(found.path).unwrap(), versions)
        })
        .collect()
}

fn with_catalogue<T>(act: impl FnOnce(&mut Catalogue) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let mut catalogue = Catalogue::open_or_create(&folder.path().join("catalog.sqlite")).unwrap();
    act(&mut catalogue)
}

fn node(depth: u32) -> BoxedStrategy<Vec<(String, Object)>> {
    let file = (0u64..3).prop_map(|size| vec![(String::new(), Object::File { size })]);
    if depth == 0 {
        return file.boxed();
    }
    let folder = proptest::collection::btree_map("[abc]", node(depth - 1), 0..3);
    let folder = folder.prop_map(|below| {
        let mut all = vec![(String::new(), Object::Folder)];
        for (name, objects) in below {
            let inside = |(path, object): (String, Object)| (format!("/{name}{path}"), object);
            all.extend(objects.into_iter().map(inside));
        }
        all
    });
    prop_oneof![1 => file, 3 => folder].boxed()
}

/// A tree below `srv/top`, which is always a folder.
fn trees() -> impl Strategy<Value = Tree> {
    let below = proptest::collection::btree_map("[abc]", node(2), 0..4);
    below.prop_map(|below| {
        let mut all = Tree::from([("srv/top".to_owned(), Object::Folder)]);
        for (name, objects) in below {
            let inside =
                |(path, object): (String, Object)| (format!("srv/top/{name}{path}"), object);
            all.extend(objects.into_iter().map(inside));
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happened to a tree and in whichever order its sets are found, each set has what it
    /// had, in as few versions as there are changes.
    #[test]
    fn every_set_has_what_it_had(
        days in proptest::collection::vec(trees(), 1..6),
        order in proptest::collection::vec(any::<u32>(), 6),
    ) {
        let mut found: Vec<usize> = (0..days.len()).collect();
        found.sort_by_key(|&day| order[day]);
        with_catalogue(|catalogue| {
            for day in found {
                let loaded = add(catalogue, day as u32, &days[day]);
                let members = days[day].len() as u64;
                let Loaded::Added { members: added, .. } = loaded else {
                    return Err(TestCaseError::fail("it is new"));
                };
                prop_assert_eq!(added, members);
            }
            prop_assert_eq!(versions_in(catalogue), versions_of(&days));
            Ok(())
        })?;
    }
}

#[test]
fn a_set_is_added_once_and_may_move() {
    with_catalogue(|catalogue| {
        let day = tree(&[("a", file(1))]);
        assert_eq!(add(catalogue, 1, &day), Loaded::Added { members: 2, files: 1, elsewhere: 0 });
        let moved = SetDescription { place: "/elsewhere/1.tar".into(), ..description(1) };
        let nothing = std::iter::empty::<Result<FileRecord, CatalogueError>>();
        assert_eq!(catalogue.add(&moved, nothing).unwrap(), Loaded::Known);
        let sets = catalogue.sets().unwrap();
        assert_eq!(sets.len(), 1);
        assert_eq!(sets[0].place, Path::new("/elsewhere/1.tar"));
        assert_eq!((sets[0].members, sets[0].files, sets[0].source_bytes), (2, 1, 1));
    });
}

#[test]
fn a_folder_that_becomes_a_file_takes_all_below_it_along() {
    with_catalogue(|catalogue| {
        let folders = [("a", Object::Folder), ("a/b", Object::Folder), ("a/b/c", file(1))];
        let days = [tree(&folders), tree(&[("a", file(2))]), tree(&folders)];
        for (day, tree) in (0..).zip(&days) {
            add(catalogue, day, tree);
        }
        assert_eq!(versions_in(catalogue), versions_of(&days));
        assert_eq!(
            versions_in(catalogue)["srv/top/a/b/c"],
            [(Some(1), vec![0]), (Some(1), vec![2])]
        );
    });
}

/// Nothing of what an archive has below a folder without a record was deleted.
#[test]
fn a_folder_without_a_record_is_not_deleted() {
    with_catalogue(|catalogue| {
        let whole = tree(&[("a", Object::Folder), ("a/b", file(1))]);
        let mut without = whole.clone();
        without.remove("srv/top/a");
        add(catalogue, 0, &whole);
        add(catalogue, 1, &without);
        let b = &find(catalogue, "b").files[0].versions;
        assert_eq!((b.len(), b[0].sets.len(), b[0].is_newest), (1, 2, true));
    });
}

/// What fails half-way leaves nothing: neither a set nor a version.
#[test]
fn a_set_that_cannot_be_read_to_its_end_is_not_there() {
    with_catalogue(|catalogue| {
        add(catalogue, 1, &tree(&[("a", file(1))]));
        let half = records(&tree(&[("a", file(2)), ("b", file(3))])).into_iter().map(Ok);
        let bad = CatalogueError::Missing { path: "index".into() };
        let records = half.chain(std::iter::once(Err(bad)));
        let error = catalogue.add(&description(2), records).unwrap_err();
        assert!(matches!(error, CatalogueError::Missing { .. }), "{error}");
        assert_eq!(catalogue.sets().unwrap().len(), 1);
        assert_eq!(find(catalogue, "b").total, 0);
        assert_eq!(find(catalogue, "a").files[0].versions.len(), 1);
    });
}

/// An index does not say of which machine it is: what lies apart is kept apart.
#[test]
fn archives_of_the_same_sources_in_two_folders_are_two_series() {
    with_catalogue(|catalogue| {
        for (day, folder, size) in [(0, "web1", 1), (1, "web2", 2), (2, "web1", 1), (3, "web2", 2)]
        {
            let place = format!("/backups/{folder}/{day}.tar").into();
            let set = SetDescription { place, ..description(day) };
            let records = records(&tree(&[("a", file(size))])).into_iter();
            catalogue.add(&set, records.map(Ok::<_, CatalogueError>)).unwrap();
        }
        let found = find(catalogue, "a").files;
        let versions = |at: usize| (found[at].versions.len(), found[at].versions[0].is_newest);
        assert_eq!((found.len(), versions(0), versions(1)), (2, (1, true), (1, true)));
    });
}

/// SQLite would apply the log of the old file to the new one.
#[test]
fn a_log_of_the_catalogue_that_is_replaced_is_ended_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    let fill = |new: &mut Catalogue| {
        add(new, 2, &tree(&[("b", file(1))]));
        Ok::<_, CatalogueError>(())
    };
    let mut used = Catalogue::open_or_create(&path).unwrap();
    add(&mut used, 1, &tree(&[("a", file(1))]));
    assert!(folder.path().join("catalog.sqlite-wal").exists());
    used.connection.execute_batch("BEGIN; SELECT * FROM sets").unwrap();
    let busy = Catalogue::rebuild(&path, fill).unwrap_err();
    assert!(matches!(busy, CatalogueError::Busy { .. }), "{busy}");
    assert_eq!(find(&used, "a").total, 1);
    drop(used);
    Catalogue::rebuild(&path, fill).unwrap();
    let new = Catalogue::open(&path).unwrap();
    assert_eq!((find(&new, "a").total, find(&new, "b").total), (0, 1));
}

#[test]
fn two_do_not_make_the_same_catalogue_anew_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    Catalogue::rebuild(&path, |_| {
        let second = Catalogue::rebuild(&path, |_| Ok::<_, CatalogueError>(())).unwrap_err();
        assert!(matches!(second, CatalogueError::Busy { .. }), "{second}");
        Ok::<_, CatalogueError>(())
    })
    .unwrap();
    assert!(Catalogue::open(&path).is_ok());
}

#[test]
fn globs_are_of_names_or_of_paths() {
    with_catalogue(|catalogue| {
        let paths = [
            ("etc", Object::Folder),
            ("etc/a.conf", file(1)),
            ("etc/b.conf.d", Object::Folder),
            ("etc/b.conf.d/a.conf", file(1)),
            ("tilde\u{ff5e}", file(1)),
        ];
        add(catalogue, 1, &tree(&paths));
        let found = |glob: &str| -> Vec<String> {
            let files = find(catalogue, glob).files.into_iter();
            let path = |path: Vec<u8>| String::from_utf8(path).unwrap();
            files.map(|file| path(file.path).replace("srv/top/", "")).collect()
        };
        let both = ["etc/a.conf", "etc/b.conf.d/a.conf"];
        assert_eq!(found("a.conf"), both);
        assert_eq!(found("*.conf"), both);
        assert_eq!(found("[ab].conf"), both);
        assert_eq!(found("srv/top/etc/*.conf"), [both[0]]);
        assert_eq!(found("/srv/top/etc/*.conf"), [both[0]]);
        assert_eq!(found("srv/**/a.conf"), both);
        assert_eq!(found("srv/top/etc/**"), ["etc/a.conf", "etc/b.conf.d", "etc/b.conf.d/a.conf"]);
        assert_eq!(found("srv/top/{etc/a.conf,tilde*}"), ["etc/a.conf", "tilde\u{ff5e}"]);
        assert_eq!(found("tilde*"), ["tilde\u{ff5e}"]);
        // What is above the sources is in no archive.
        assert_eq!(found("srv"), Vec::<String>::new());
        let some = catalogue.find("*", 2).unwrap().unwrap();
        assert_eq!((some.files.len(), some.total), (2, 6));
        assert!(catalogue.find("[", 1).is_err());
    });
}

#[test]
fn other_files_later_versions_and_damage_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let missing = Catalogue::open(&at("none")).unwrap_err();
    assert!(matches!(missing, CatalogueError::Missing { .. }), "{missing}");
    std::fs::write(at("text"), "a text that is longer than the header of a database\n".repeat(99))
        .unwrap();
    let other = Catalogue::open(&at("text")).unwrap_err();
    assert!(matches!(other, CatalogueError::Other { .. }), "{other}");
    let path = at("catalog.sqlite");
    let mut catalogue = Catalogue::open_or_create(&path).unwrap();
    add(&mut catalogue, 1, &tree(&[("a", file(1))]));
    catalogue.connection.pragma_update(None, "user_version", CATALOGUE_VERSION + 1).unwrap();
    drop(catalogue);
    let later = Catalogue::open_or_create(&path).unwrap_err();
    assert!(matches!(later, CatalogueError::Later { version: 3, .. }), "{later}");
    let fill = |new: &mut Catalogue| {
        add(new, 1, &tree(&[("a", file(1))]));
        Ok::<_, CatalogueError>(())
    };
    // It may have what this version cannot make again.
    let later = Catalogue::rebuild(&path, fill).unwrap_err();
    assert!(matches!(later, CatalogueError::Later { version: 3, .. }), "{later}");
    let other = Catalogue::rebuild(&at("text"), fill).unwrap_err();
    assert!(matches!(other, CatalogueError::Other { .. }), "{other}");
    assert!(std::fs::read(at("text")).unwrap().starts_with(b"a text"));
    let path = at("new.sqlite");
    Catalogue::rebuild(&path, fill).unwrap();
    assert_eq!(find(&Catalogue::open(&path).unwrap(), "a").total, 1);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = Catalogue::open(&path).and_then(|half| half.find("*", 10).unwrap());
    assert!(matches!(damaged.unwrap_err(), CatalogueError::Damaged { .. }));
    Catalogue::rebuild(&path, fill).unwrap();
    assert_eq!(find(&Catalogue::open(&path).unwrap(), "a").total, 1);
}

/// Who makes a catalogue may be stopped, and two may make it at once.
#[test]
fn a_catalogue_that_was_begun_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    let begun = Connection::open(&path).unwrap();
    begun.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(begun);
    assert!(path.metadata().unwrap().len() > 0);
    let read = Catalogue::open(&path).unwrap_err();
    assert!(matches!(read, CatalogueError::Missing { .. }), "{read}");
    let makers: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Catalogue::open_or_create(&path).map(drop))
        })
        .collect();
    for maker in makers {
        maker.join().unwrap().unwrap();
    }
    assert_eq!(find(&Catalogue::open(&path).unwrap(), "*").total, 0);
}

#[test]
fn a_rebuild_that_fails_leaves_the_catalogue_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    let mut catalogue = Catalogue::open_or_create(&path).unwrap();
    add(&mut catalogue, 1, &tree(&[("a", file(1))]));
    drop(catalogue);
    let failed = Catalogue::rebuild(&path, |new| {
        add(new, 2, &tree(&[("b", file(1))]));
        Err::<(), _>(CatalogueError::Missing { path: "media".into() })
    });
    assert!(failed.is_err());
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["catalog.sqlite"]);
    assert_eq!(find(&Catalogue::open(&path).unwrap(), "a").total, 1);
}

/// The log of a catalogue in use wants files beside it; a copy on a read-only disk has none.
#[test]
fn a_catalogue_is_read_where_nothing_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog ?#%.sqlite");
    let mut catalogue = Catalogue::open_or_create(&path).unwrap();
    add(&mut catalogue, 1, &tree(&[("a", file(1))]));
    drop(catalogue);
    let name = immutable(&path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let fixed = Catalogue::connect_as(Path::new(&name), &path, flags).unwrap();
    assert_eq!(find(&fixed, "a").total, 1);
}
