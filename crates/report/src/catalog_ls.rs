//! A folder as a set has it, for people.

use base::calendar::time_text;
use base::escape::{escape, escape_path};
use base::format::{counted, size};
use catalogue::{CataloguedKind, CataloguedObject, FolderEntry};
use service::catalog::{CatalogLs, FolderOfSet};

use crate::catalog::restore_command;
use crate::list::mode_letters;

/// The folder in each series that has it.
pub fn ls(found: &CatalogLs) -> String {
    found.folders.iter().map(folder).collect::<Vec<String>>().join("\n")
}

fn folder(found: &FolderOfSet) -> String {
    let set = &found.set;
    let path = match &found.path[..] {
        [] => "the top".to_owned(),
        path => escape(path),
    };
    let mut text = format!(
        "{path}: {} in set {} of {} UTC, in {}\n",
        counted(found.entries.len() as u64, "object", "objects"),
        set.number,
        time_text(set.time_seconds),
        set.place.parent().map(escape_path).unwrap_or_default(),
    );
    for entry in &found.entries {
        text.push_str(&format!("{}\n", entry_line(entry)));
    }
    if let Some(command) = restore_command(set, &found.path) {
        text.push_str(&format!("restore: {command}\n"));
    }
    text
}

/// `-rw-r--r-- 1000/1000   25.5 kB 2026-11-24 16:20:11 thesis.odt`, the time in UTC.
pub fn entry_line(entry: &FolderEntry) -> String {
    let slash = if entry.is_folder() { "/" } else { "" };
    format!("{} {}{slash}", entry_columns(entry.object.as_ref()), escape(&entry.name))
}

/// Mode, owner, size and time, as wide for every object.
fn entry_columns(object: Option<&CataloguedObject>) -> String {
    let Some(object) = object else { return format!("{:<51}", "d") };
    let letter = match object.kind {
        CataloguedKind::File => '-',
        CataloguedKind::Directory => 'd',
        CataloguedKind::SymbolicLink => 'l',
        CataloguedKind::HardLink => 'h',
        CataloguedKind::Fifo => 'p',
        CataloguedKind::CharacterDevice => 'c',
        CataloguedKind::BlockDevice => 'b',
    };
    let bytes = match object.kind {
        CataloguedKind::File => size(object.size_bytes),
        _ => String::new(),
    };
    format!(
        "{} {:<11} {bytes:>8} {}",
        mode_letters(letter, object.mode),
        format!("{}/{}", object.uid, object.gid),
        time_text(object.modified_seconds)
    )
}
