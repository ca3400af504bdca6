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
    CatalogDiff, CatalogFound, CatalogLoaded, CatalogWhy, CaughtUp, DifferingKind,
    ExistingCatalogue, RestoreFrom, because,
};
use service::journal::CarriedJournal;

/// Sources of a set that are listed.
const SOURCES_MAX: usize = 4;
/// What takes less time is not told of the sets that a catalogue took in.
const NOTICEABLE_SECONDS: f64 = 0.5;
/// Archives that are named which the catalogue could not take in.
const LEFT_OUT_MAX: usize = 5;

/// What a catalogue took in before it was asked: nothing where that was not noticed.
pub fn caught_up(it: &CaughtUp) -> String {
    let mut text = String::new();
    if it.seconds >= NOTICEABLE_SECONDS && it.added + it.left > 0 {
        let (sets, seconds) = (counted(it.added, "set", "sets"), duration(it.seconds));
        let left = match it.left {
            0 => String::new(),
            left => format!(", and {} left it", counted(left, "set", "sets")),
        };
        text.push_str(&format!("takeup: {sets} came into the catalogue{left}, in {seconds}\n"));
    }
    for absent in &it.absent {
        let sets = match absent.sets {
            1 => "its set is as it was".to_owned(),
            sets => format!("its {} are as they were", counted(sets, "set", "sets")),
        };
        let (folder, day) = (escape_path(&absent.folder), date_text(absent.newest_seconds));
        text.push_str(&format!(
            "takeup: note: {folder}: its archives are not there now; {sets}, up to {day}\n"
        ));
    }
    for archive in it.left_out.iter().take(LEFT_OUT_MAX) {
        let (path, why) = (&archive.path, escape(archive.why.as_bytes()));
        text.push_str(&format!("takeup: warning: {path}: not in the catalogue: {why}\n"));
    }
    let more = it.left_out.len().saturating_sub(LEFT_OUT_MAX) as u64;
    if more > 0 {
        let more = counted(more, "further archive", "further archives");
        text.push_str(&format!("takeup: warning: {more}: --json lists them\n"));
    }
    if let Some(not_done) = &it.not_done {
        let why = escape(not_done.why.as_bytes());
        text.push_str(&format!("takeup: warning: the catalogue is not up to date: {why}\n"));
        if let Some(hint) = &not_done.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
    }
    text
}

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
    if loaded.read_through > 0 {
        let archives = counted(loaded.read_through, "archive has", "archives have");
        text.push_str(&format!("{archives} no index: read as a whole\n"));
    }
    if loaded.without_index > 0 {
        let files = counted(loaded.without_index, "file has", "files have");
        text.push_str(&format!("{files} no index of takeup: passed over\n"));
    }
    for CarriedJournal { job, set, lines } in &loaded.journals {
        let (lines, set) = (counted(*lines, "line", "lines"), escape(set.as_bytes()));
        text.push_str(&format!(
            "the journal of {job} was lost: {lines} of it are back from {set}\n"
        ));
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
        let slash = match file.versions.last().map(|version| version.object.kind) {
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
    let bytes = match version.object.kind {
        CataloguedKind::File => size(version.object.size_bytes),
        CataloguedKind::Directory => "folder".to_owned(),
        CataloguedKind::SymbolicLink | CataloguedKind::HardLink => "link".to_owned(),
        CataloguedKind::Fifo => "pipe".to_owned(),
        CataloguedKind::CharacterDevice | CataloguedKind::BlockDevice => "device".to_owned(),
    };
    format!(
        "  changed {}  {bytes:>8}  in {}{place}\n",
        time_text(version.object.modified_seconds),
        counted(version.sets.len() as u64, "set", "sets"),
    )
}

/// What to type to have the newest version back.
fn command(file: &FileVersions, sets: &HashMap<i64, &KnownSet>) -> String {
    let last = file.versions.last().and_then(|version| version.sets.last());
    let Some(set) = last.and_then(|number| sets.get(number)) else { return String::new() };
    restore_command(set, &file.path)
        .map_or_else(String::new, |command| format!("restore the newest: {command}\n"))
}

/// What to type to have a path back as a set has it. Names that are shown in another form than
/// they have cannot be typed.
pub(crate) fn restore_command(set: &KnownSet, path: &[u8]) -> Option<String> {
    let place = RestoreFrom::of(set)?;
    let (from, shown) = (escape_path(&place.from), escape(path));
    if from.as_bytes() != place.from.as_os_str().as_bytes() || shown.as_bytes() != path {
        return None;
    }
    let set = place.set.map_or_else(String::new, |set| format!(" --set {set}"));
    let path = if path.is_empty() { String::new() } else { format!(" {}", quoted(&shown)) };
    Some(format!("takeup restore {}{set}{path} --into DIR", quoted(&from)))
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
