//! Pictures of a catalogue with three days, and what keys do.

use std::path::Path;

use archive::index::{FileLayout, FileRecord, RecordKind};
use archive::member::Timestamp;
use archive::stream::ArchiveOffset;
use catalogue::{Catalogue, CatalogueError, SetDescription};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyModifiers;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use report::table::Colour;

use super::*;
use crate::draw::Look;

/// A path with the size of a file; `None` of a folder.
type Object = (&'static str, Option<u64>);

fn record((path, size): &Object) -> FileRecord {
    FileRecord {
        path: path.as_bytes().to_vec(),
        kind: match size {
            None => RecordKind::Directory,
            Some(size) => RecordKind::File {
                size_bytes: *size,
                stored_bytes: *size,
                layout: FileLayout::Whole,
                content_hash: Some([*size as u8; 32]),
            },
        },
        header_offset_bytes: ArchiveOffset::new(0),
        content_offset_bytes: ArchiveOffset::new(512),
        mode: if size.is_some() { 0o640 } else { 0o755 },
        uid: 1000,
        gid: 100,
        modified: Timestamp { seconds: 1_790_000_000 + size.unwrap_or(0) as i64, nanoseconds: 0 },
        changed: Timestamp { seconds: 9, nanoseconds: 0 },
    }
}

/// The days of a source, a set of a chain each.
fn add(catalogue: &mut Catalogue, source: &str, days: &[&[Object]]) {
    for (day, objects) in (0u8..).zip(days) {
        let mut content = [0; 32];
        content[..2].copy_from_slice(&[source.as_bytes()[0], day]);
        let time_seconds = 1_795_000_000 + i64::from(day) * 86_400;
        let set = SetDescription {
            content,
            time_seconds,
            order_seconds: time_seconds,
            place: format!("/backups/{source}/{day}.tar").into(),
            compression: "none".to_owned(),
            archive_bytes: 10_240,
            sources: vec![source.as_bytes().to_vec()],
        };
        let records = objects.iter().map(|object| Ok::<_, CatalogueError>(record(object)));
        catalogue.add(&set, records).unwrap();
    }
}

const HOMES: [&[Object]; 3] = [
    &[("home", None), ("home/eva", None), ("home/eva/a.txt", Some(10)), ("home/tom", None)],
    &[
        ("home", None),
        ("home/eva", None),
        ("home/eva/a.txt", Some(20)),
        ("home/eva/b \u{1b}[31m.txt", Some(7)),
        ("home/tom", None),
        ("home/tom/letter", Some(5)),
    ],
    &[
        ("home", None),
        ("home/eva", None),
        ("home/eva/b \u{1b}[31m.txt", Some(7)),
        ("home/tom", None),
        ("home/tom/letter", Some(5)),
    ],
];

fn with_browser(sources: &[&str], act: impl FnOnce(&Browser)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    let mut catalogue = Catalogue::open_or_create(&path).unwrap();
    for source in sources {
        let days: &[&[Object]] = match *source {
            "home" => &HOMES,
            _ => &[&[("mail", None), ("mail/box", Some(1))]],
        };
        add(&mut catalogue, source, days);
    }
    drop(catalogue);
    let (browser, _) = Browser::open(Some(&path), None, |_| {}).unwrap();
    act(&browser);
}

fn picture(width: u16, height: u16, view: &mut BrowseView<'_>) -> String {
    let look = Look { title: String::new(), colour: Colour::Plain };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, view, &look)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

fn press(view: &mut BrowseView<'_>, code: KeyCode) -> BrowseWish {
    view.press(KeyEvent::new(code, KeyModifiers::NONE)).unwrap()
}

fn type_keys(view: &mut BrowseView<'_>, keys: &[KeyCode]) {
    for key in keys {
        assert_eq!(press(view, *key), BrowseWish::None, "{key:?}");
    }
}

const UP: KeyCode = KeyCode::Backspace;
const DOWN: KeyCode = KeyCode::Down;
const ENTER: KeyCode = KeyCode::Enter;
const MARK: KeyCode = KeyCode::Char(' ');
const DAY_BEFORE: KeyCode = KeyCode::Char('[');
const DAY_AFTER: KeyCode = KeyCode::Char(']');

#[test]
fn a_folder_its_days_and_its_versions() {
    with_browser(&["home"], |browser| {
        let mut view = BrowseView::new(browser).unwrap();
        assert_eq!((&view.path[..], view.set), (&b"home"[..], 2));
        type_keys(&mut view, &[ENTER]);
        assert_eq!(view.path, b"home/eva");
        type_keys(&mut view, &[DAY_BEFORE]);
        insta::assert_snapshot!("folder", picture(80, 8, &mut view));
        type_keys(&mut view, &[KeyCode::Up, KeyCode::Char('v')]);
        insta::assert_snapshot!("versions", picture(80, 6, &mut view));
        // The older version leads to the first day.
        type_keys(&mut view, &[DOWN, ENTER]);
        assert_eq!((view.page, view.set), (Page::Folder, 0));
        type_keys(&mut view, &[KeyCode::Char('d')]);
        insta::assert_snapshot!("days", picture(80, 7, &mut view));
        type_keys(&mut view, &[KeyCode::Home, ENTER]);
        assert_eq!((view.page, view.set), (Page::Folder, 2));
        type_keys(&mut view, &[DAY_AFTER]);
        assert_eq!(view.note, "there is no set after");
        type_keys(&mut view, &[KeyCode::Char('?')]);
        insta::assert_snapshot!("help", picture(80, 18, &mut view));
    });
}

#[test]
fn what_is_marked_is_restored_as_of_the_shown_day() {
    with_browser(&["home"], |browser| {
        let mut view = BrowseView::new(browser).unwrap();
        // eva/a.txt of the day before, and all of tom.
        type_keys(&mut view, &[DAY_BEFORE, ENTER, MARK, UP]);
        let chosen = view.chosen_path().unwrap();
        assert_eq!(chosen, b"home/eva", "the cursor is on the folder that was left");
        type_keys(&mut view, &[DOWN, MARK]);
        insta::assert_snapshot!("marks", picture(80, 6, &mut view));
        type_keys(&mut view, &[KeyCode::Char('r'), UP, KeyCode::Char('X')]);
        insta::assert_snapshot!("question", picture(80, 6, &mut view));
        let BrowseWish::Restore(wanted) = press(&mut view, ENTER) else { panic!("no restore") };
        assert_eq!(wanted.from.from, Path::new("/backups/home/"));
        assert_eq!(wanted.from.set.as_deref(), Some("68010000"));
        assert_eq!(wanted.into, Path::new("restoreX"));
        assert_eq!(wanted.paths, [Path::new("home/eva/a.txt"), Path::new("home/tom")]);
        // The newest day does not have the file any more.
        type_keys(&mut view, &[KeyCode::Esc, DAY_AFTER, KeyCode::Char('r')]);
        assert!(view.question().contains("1 object (this set has only these of 2 marked)"));
        let BrowseWish::Restore(wanted) = press(&mut view, ENTER) else { panic!("no restore") };
        assert_eq!(wanted.paths, [Path::new("home/tom")]);
        // Nothing is restored into a folder without a name.
        type_keys(&mut view, &[KeyCode::Esc, KeyCode::Char('u'), KeyCode::Char('r')]);
        view.into.clear();
        assert_eq!(press(&mut view, ENTER), BrowseWish::None);
        assert!(view.note.starts_with("type the name"));
    });
}

#[test]
fn a_day_without_the_folder_says_so_and_names_are_filtered() {
    with_browser(&["home"], |browser| {
        let mut view = BrowseView::new(browser).unwrap();
        type_keys(&mut view, &[ENTER, DAY_BEFORE, KeyCode::Char('/'), KeyCode::Char('B'), ENTER]);
        assert_eq!(view.shown().unwrap().len(), 1);
        // On another day the filter stays.
        type_keys(&mut view, &[DAY_BEFORE]);
        assert_eq!((view.shown().unwrap().len(), &*view.filter), (0, "B"));
        type_keys(&mut view, &[KeyCode::Char('r')]);
        assert_eq!(view.note, "nothing is chosen");
        type_keys(&mut view, &[KeyCode::Esc, KeyCode::Char(' ')]);
        assert_eq!(view.marks.len(), 1);
        view.path = b"home/none".to_vec();
        type_keys(&mut view, &[DAY_AFTER]);
        assert!(picture(80, 8, &mut view).contains("home/none/: this set does not have it"));
        type_keys(&mut view, &[ENTER, MARK, KeyCode::Char('v'), KeyCode::Char('r')]);
        assert_eq!(view.typing, Typing::Into, "what was marked elsewhere is there");
    });
}

#[test]
fn several_sources_are_chosen_from_first() {
    with_browser(&["home", "mail"], |browser| {
        let mut view = BrowseView::new(browser).unwrap();
        insta::assert_snapshot!("sources", picture(80, 6, &mut view));
        type_keys(&mut view, &[DOWN, ENTER]);
        assert_eq!((&view.path[..], view.series), (&b""[..], 1));
        type_keys(&mut view, &[ENTER, UP, UP]);
        assert_eq!((view.page, view.in_list.chosen), (Page::Series, 1));
        assert_eq!(press(&mut view, KeyCode::Char('q')), BrowseWish::Quit);
    });
}

#[test]
fn rows_that_do_not_fit_are_scrolled_to() {
    let mut cursor = Cursor::default();
    for (step, rows, height, expected) in
        [(4, 10, 5, (4, 0)), (1, 10, 5, (5, 1)), (99, 10, 5, (9, 5)), (-9, 10, 5, (0, 0))]
    {
        cursor.step(step, rows);
        cursor.fit(rows, height);
        assert_eq!((cursor.chosen, cursor.scrolled), expected, "{step}");
    }
    cursor.step(1, 0);
    cursor.fit(0, 5);
    assert_eq!(cursor, Cursor::default());
    with_browser(&["home"], |browser| {
        let mut view = BrowseView::new(browser).unwrap();
        for (width, height) in [(40, 6), (39, 6), (200, 60), (1, 1)] {
            assert_eq!(picture(width, height, &mut view).lines().count(), usize::from(height));
        }
    });
}
