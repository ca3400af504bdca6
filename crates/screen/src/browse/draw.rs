//! The picture of a [`BrowseView`], for the size of the terminal.

use base::calendar::{date_text, time_text};
use base::escape::{escape, escape_path};
use base::format::{counted, size};
use catalogue::{CataloguedKind, FoundVersion, KnownSet};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use report::catalog_ls::entry_line;

use super::keys::KEYS;
use super::{BrowseView, Cursor, Page, Typing};
use crate::draw::{Look, between, put, too_small};

/// Draws the picture.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &mut BrowseView<'_>, look: &Look) {
    let area = frame.area();
    if too_small(frame) {
        return;
    }
    let width = usize::from(area.width);
    view.height = usize::from(area.height) - 3;
    let (left, right) = head(view);
    put(frame, 0, Line::styled(between(&left, &right, width), look.strong()));
    let (left, rows, cursor) = body(view);
    put(frame, 1, Line::raw(between(&left, &counted_rows(view, rows.len()), width)));
    let mut cursor = cursor;
    cursor.fit(rows.len(), view.height);
    match view.page {
        Page::Folder => view.in_folder.scrolled = cursor.scrolled,
        _ => view.in_list.scrolled = cursor.scrolled,
    }
    let has_cursor = view.page != Page::Help;
    let shown = rows.into_iter().enumerate().skip(cursor.scrolled).take(view.height);
    for ((number, row), y) in shown.zip(2..) {
        let is_chosen = has_cursor && number == cursor.chosen;
        let sign = if is_chosen { ">" } else { " " };
        let row: String = format!("{sign}{row}").chars().take(width).collect();
        let chosen = look.style(Style::new().add_modifier(Modifier::REVERSED));
        let style = if is_chosen { chosen } else { Style::new() };
        let area = Rect { y, height: 1, ..area };
        frame.render_widget(Line::styled(format!("{row:<width$}"), style), area);
    }
    let dim = look.style(Style::new().add_modifier(Modifier::DIM));
    put(frame, area.height - 1, Line::styled(foot(view, width), dim));
}

fn head(view: &BrowseView<'_>) -> (String, String) {
    let title = format!("takeup browse  {}", sources(view.shown_set()));
    if view.page == Page::Series {
        return ("takeup browse".to_owned(), String::new());
    }
    let set = view.shown_set();
    let number = format!("set {} of {}", view.set + 1, view.sets().len());
    let marked = match view.marks.len() {
        0 => String::new(),
        marks => format!("{marks} marked"),
    };
    (format!("{title}  {number}: {} UTC", time_text(set.time_seconds)), marked)
}

fn sources(set: &KnownSet) -> String {
    let sources: Vec<String> = set.sources.iter().map(|source| escape(source)).collect();
    sources.join(" ")
}

fn counted_rows(view: &BrowseView<'_>, rows: usize) -> String {
    let rows = rows as u64;
    match view.page {
        Page::Series => counted(rows, "source", "sources"),
        Page::Folder => counted(rows, "object", "objects"),
        Page::Days => counted(rows, "set", "sets"),
        Page::Versions => counted(rows, "version", "versions"),
        Page::Help => String::new(),
    }
}

/// The second line, the rows below it, and the cursor in them.
fn body(view: &BrowseView<'_>) -> (String, Vec<String>, Cursor) {
    match view.page {
        Page::Series => {
            let series = view.browser().series().iter();
            let rows = series.filter_map(|series| {
                let set = series.sets.last()?;
                let days = counted(series.sets.len() as u64, "set", "sets");
                let folder = set.place.parent().map(escape_path).unwrap_or_default();
                let day = date_text(set.time_seconds);
                Some(format!("{}  {days}, last {day}, in {folder}", sources(set)))
            });
            ("What do you want to look at?".to_owned(), rows.collect(), view.in_list)
        }
        Page::Folder => folder(view),
        Page::Days => {
            let rows = view.sets().iter().rev().map(|set| {
                let (files, bytes) = (counted(set.files, "file", "files"), size(set.source_bytes));
                let time = time_text(set.time_seconds);
                format!("{time}  {files}, {bytes}: {}", escape_path(&set.place))
            });
            ("Sets, times in UTC".to_owned(), rows.collect(), view.in_list)
        }
        Page::Versions => {
            let name = view.chosen_path().map(|path| escape(&path)).unwrap_or_default();
            let rows = view.versions().iter().map(|version| version_row(view, version));
            (format!("Versions of {name}"), rows.collect(), view.in_list)
        }
        Page::Help => {
            let rows = KEYS.iter().map(|(key, what)| format!(" {key:<30}{what}"));
            ("Keys".to_owned(), rows.collect(), Cursor::default())
        }
    }
}

fn folder(view: &BrowseView<'_>) -> (String, Vec<String>, Cursor) {
    let path = format!("{}/", escape(&view.path));
    let Some(entries) = view.shown() else {
        let text = format!("{path}: this set does not have it; [ ] other sets");
        return (text, Vec::new(), view.in_folder);
    };
    let rows = entries.iter().map(|entry| {
        let at = view.path_of(&entry.name);
        let below = [&at[..], b"/"].concat();
        let has_mark = || view.marks.range(below.clone()..).next();
        let mark = if view.marks.contains(&at) {
            '*'
        } else if has_mark().is_some_and(|path| path.starts_with(&below)) {
            // Something in it is marked.
            '+'
        } else {
            ' '
        };
        format!("{mark}{}", entry_line(entry))
    });
    (path, rows.collect(), view.in_folder)
}

/// ` changed 2026-11-24 09:34:24   215 B  in 3 sets, 2026-11-25 to 2026-11-27 (the newest)`.
fn version_row(view: &BrowseView<'_>, version: &FoundVersion) -> String {
    let day = |number: Option<&i64>| {
        let set = view.sets().iter().find(|set| Some(&set.number) == number);
        set.map(|set| date_text(set.time_seconds)).unwrap_or_default()
    };
    let days = counted(version.sets.len() as u64, "set", "sets");
    let (first, last) = (day(version.sets.first()), day(version.sets.last()));
    let of = if first == last { last } else { format!("{first} to {last}") };
    let newest = if version.is_newest { " (the newest)" } else { "" };
    let object = &version.object;
    let bytes = match object.kind {
        CataloguedKind::File => size(object.size_bytes),
        CataloguedKind::Directory => "folder".to_owned(),
        _ => "no file".to_owned(),
    };
    let changed = time_text(object.modified_seconds);
    format!(" changed {changed} {bytes:>8}  in {days}, {of}{newest}")
}

fn foot(view: &BrowseView<'_>, width: usize) -> String {
    let text = match (view.typing, view.page) {
        _ if !view.note.is_empty() => escape(view.note.as_bytes()),
        (Typing::Filter, _) => format!("/{}_", escape(view.filter.as_bytes())),
        (Typing::Into, _) => escape(view.question().as_bytes()),
        (Typing::Nothing, Page::Folder) if !view.filter.is_empty() => {
            format!("names with {}; Esc shows all", escape(view.filter.as_bytes()))
        }
        (Typing::Nothing, Page::Folder) => {
            "q end  ? keys  Enter open  [ ] other sets  v versions  space mark  r restore"
                .to_owned()
        }
        (Typing::Nothing, Page::Series) => "Enter open  ? keys  q end".to_owned(),
        (Typing::Nothing, Page::Days | Page::Versions) => {
            "Enter that set  Esc back  q end".to_owned()
        }
        (Typing::Nothing, Page::Help) => "any key back  q end".to_owned(),
    };
    // What is typed ends at the right.
    let length = text.chars().count();
    match view.typing {
        Typing::Nothing => text.chars().take(width).collect(),
        Typing::Filter | Typing::Into => text.chars().skip(length.saturating_sub(width)).collect(),
    }
}
