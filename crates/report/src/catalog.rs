//! What a catalogue has, for people.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use archive::index::{About, EntryState};
use base::calendar::{date_text, time_text};
use base::escape::{escape, escape_path};
use base::format::{counted, duration, size};
use catalogue::{CataloguedKind, FileVersions, FoundVersion, KnownSet};
use experiment::judgement::quoted;
use service::catalog::{
    CatalogDiff, CatalogFound, CatalogLoaded, CatalogWhy, DifferingKind, ExistingCatalogue, because,
};

/// Sources of a set that are listed.
const SOURCES_MAX: usize = 4;

/// How archives came into the catalogue.
pub fn loaded(loaded: &CatalogLoaded) -> String {
    let sets = counted(loaded.added, "set", "sets");
    let files = counted(loaded.files, "file", "files");
    let path = escape_path(&loaded.path);
    let (bytes, seconds) = (size(loaded.bytes), duration(loaded.seconds));
    let mut text = match loaded.existing {
        ExistingCatalogue::Kept => {
            format!("added {sets} with {files} to {path} ({bytes}) in {seconds}\n")
        }
        ExistingCatalogue::Replaced => {
            format!("made {path} again: {sets} with {files} ({bytes}), {seconds}\n")
        }
    };
    if loaded.known > 0 {
        let known = counted(loaded.known, "set was", "sets were");
        text.push_str(&format!("{known} in it already\n"));
    }
    if loaded.elsewhere > 0 {
        let objects = counted(loaded.elsewhere, "object is", "objects are");
        text.push_str(&format!(
            "{objects} in sets that are not in the catalogue: add the whole chain\n"
        ));
    }
    if loaded.without_index > 0 {
        let files = counted(loaded.without_index, "file has", "files have");
        text.push_str(&format!("{files} no index of takeup: passed over\n"));
    }
    for archive in &loaded.left_out {
        let (path, why) = (&archive.path, escape(archive.why.as_bytes()));
        text.push_str(&format!("left out: {path}: {why}\n"));
    }
    text
}

/// The sets of the catalogue, a line each.
pub fn sets(sets: &[KnownSet]) -> String {
    if sets.is_empty() {
        return "the catalogue has no set\n".to_owned();
    }
    let line = |set: &KnownSet| {
        let shown = set.sources.iter().take(SOURCES_MAX).map(|source| escape(source));
        let sources: Vec<String> = shown.collect();
        let more = match set.sources.len().saturating_sub(SOURCES_MAX) as u64 {
            0 => String::new(),
            more => format!(" and {}", counted(more, "more", "more")),
        };
        format!(
            "{:>3} {} {}, {}: {}{more}, in {}\n",
            set.number,
            time_text(set.time_seconds),
            counted(set.files, "file", "files"),
            size(set.source_bytes),
            sources.join(" "),
            escape_path(&set.place),
        )
    };
    sets.iter().map(line).collect()
}

/// The files that were found, each with its versions, the newest first.
pub fn found(found: &CatalogFound) -> String {
    let sets: HashMap<i64, &KnownSet> = found.sets.iter().map(|set| (set.number, set)).collect();
    let mut text = String::new();
    for file in &found.found.files {
        let slash = match file.versions.last().map(|version| version.kind) {
            Some(CataloguedKind::Directory) => "/",
            _ => "",
        };
        text.push_str(&format!("{}{slash}\n", escape(&file.path)));
        for (at, version) in file.versions.iter().enumerate().rev() {
            text.push_str(&version_line(file, at, version, &sets));
        }
    }
    let shown = found.found.files.len() as u64;
    if shown < found.found.total {
        let total = counted(found.found.total, "path", "paths");
        text.push_str(&format!("{shown} of {total}: --most lists more\n"));
    }
    if let [file] = &found.found.files[..] {
        text.push_str(&command(file, &sets));
    }
    text
}

/// `  changed 2026-11-24 09:34:24     215 B  in 3 sets, last 2026-11-25 (the newest): /b/c.tar`
fn version_line(
    file: &FileVersions,
    at: usize,
    version: &FoundVersion,
    sets: &HashMap<i64, &KnownSet>,
) -> String {
    let until = match (version.is_newest, file.versions.get(at + 1)) {
        (true, _) => "the newest",
        (false, Some(_)) => "then replaced",
        (false, None) => "not in the next set",
    };
    let last = version.sets.last().and_then(|number| sets.get(number));
    let place = last.map_or_else(String::new, |set| {
        let day = date_text(set.time_seconds);
        format!(", last {day} ({until}): {}", escape_path(&set.place))
    });
    let bytes = match version.kind {
        CataloguedKind::File => size(version.size_bytes),
        CataloguedKind::Directory => "folder".to_owned(),
        CataloguedKind::SymbolicLink | CataloguedKind::HardLink => "link".to_owned(),
        CataloguedKind::Fifo => "pipe".to_owned(),
        CataloguedKind::CharacterDevice | CataloguedKind::BlockDevice => "device".to_owned(),
    };
    format!(
        "  changed {}  {bytes:>8}  in {}{place}\n",
        time_text(version.modified_seconds),
        counted(version.sets.len() as u64, "set", "sets"),
    )
}

/// What to type to have the newest version back. Names that are shown in another form than they
/// have cannot be typed.
fn command(file: &FileVersions, sets: &HashMap<i64, &KnownSet>) -> String {
    let last = file.versions.last().and_then(|version| version.sets.last());
    let Some(set) = last.and_then(|number| sets.get(number)) else { return String::new() };
    let (place, path) = (escape_path(&set.place), escape(&file.path));
    if place.as_bytes() != set.place.as_os_str().as_bytes() || path.as_bytes() != file.path {
        return String::new();
    }
    let (place, path) = (quoted(&place), quoted(&path));
    format!("restore the newest: takeup restore {place} {path} --into DIR\n")
}

/// What differs between two sets.
pub fn diff(found: &CatalogDiff) -> String {
    let kinds = [("added", found.added), ("gone", found.removed), ("changed", found.changed)];
    let counts = kinds.map(|(name, of)| {
        format!("{} {name} ({})", counted(of.objects, "object", "objects"), size(of.bytes))
    });
    let day = |about: &About| {
        format!("{} of {} UTC", about.number, time_text(about.begun_seconds as i64))
    };
    let (before, after) = (day(&found.before), day(&found.after));
    let mut text = format!("{}, from set {before} to set {after}\n", counts.join(", "));
    for object in &found.objects {
        let sign = match object.kind {
            DifferingKind::Added => '+',
            DifferingKind::Removed => '-',
            DifferingKind::Changed => '~',
        };
        let slash = if object.is_folder { "/" } else { "" };
        let bytes = if object.is_folder { String::new() } else { size(object.bytes) };
        let what = match &object.what[..] {
            [] => String::new(),
            what => format!("  ({})", what.join(", ")),
        };
        text.push_str(&format!("{sign} {bytes:>9}  {}{slash}{what}\n", escape(&object.path)));
    }
    let all = found.added.objects + found.removed.objects + found.changed.objects;
    let shown = found.objects.len() as u64;
    if shown < all {
        let all = counted(all, "object", "objects");
        text.push_str(&format!("{shown} of {all}: --most lists more\n"));
    }
    text
}

/// What each set of a chain did with an object, the newest first.
pub fn why(why: &CatalogWhy) -> String {
    let mut text = format!("{}\n", escape(&why.path));
    for day in why.days.iter().rev() {
        let time = time_text(day.about.begun_seconds as i64);
        let level = match day.about.level {
            0 => "full".to_owned(),
            level => format!("level {level}"),
        };
        let what = match &day.entry {
            None => "not there".to_owned(),
            Some(entry) => match entry.state {
                EntryState::Stored => format!("stored: {}", because(entry.reason)),
                EntryState::Unchanged => {
                    format!("unchanged, in {}", day.archive().unwrap_or_default())
                }
                EntryState::Unlisted => {
                    let archive = day.archive().unwrap_or_default();
                    format!("its folder could not be listed: as in {archive}")
                }
            },
        };
        text.push_str(&format!("{:>5} {time} {level}, {what}\n", day.about.number));
    }
    text
}
