//! What was recorded, for people.

use observe::capture::operation::{Engine, FileKind};
use observe::capture::profile::{FileProfile, Profile};
use report::escape::escape_controls;
use report::format::{binary_size, count, counted, duration, percent, size};
use report::table::{Align, Colour, Emphasis, Table};

/// Files in the table; `--json` has all of them.
const FILES_MAX: usize = 40;
/// Letters of a path, its end.
const LETTERS: usize = 44;

/// All of it.
pub fn text(profile: &Profile, colour: Colour) -> String {
    let mut text = format!("{} recorded", duration(profile.seconds));
    // Clocks, events and the like have descriptors and no place.
    let is_anonymous =
        |file: &FileProfile| file.path.as_ref().is_some_and(|path| path.starts_with("anon_inode:"));
    let is_shown = |file: &&FileProfile| match file.kind {
        FileKind::Regular | FileKind::BlockDevice => true,
        FileKind::Other => !is_anonymous(file),
        FileKind::CharacterDevice | FileKind::Pipe | FileKind::Socket => false,
    };
    let shown: Vec<&FileProfile> = profile.files.iter().filter(is_shown).collect();
    let others = profile.files.len() - shown.len();
    if shown.is_empty() {
        text.push_str(", and nothing was done to a file\n");
    } else {
        text.push_str("\n\n");
        text.push_str(&table(&shown, colour));
    }
    let mut notes = Vec::new();
    if shown.len() > FILES_MAX {
        let left = (shown.len() - FILES_MAX) as u64;
        notes.push(format!("{} more, in --json", counted(left, "file", "files")));
    }
    if others > 0 {
        let what = counted(others as u64, "descriptor is", "descriptors are");
        notes.push(format!("{what} pipes, sockets, terminals and the like: --json has them"));
    }
    if profile.lost_events > 0 {
        let lost = counted(profile.lost_events, "event was", "events were");
        notes.push(format!("{lost} lost: what is missing may be in any file (--buffer)"));
    }
    if profile.files_left_out > 0 {
        let left = counted(profile.files_left_out, "file", "files");
        notes.push(format!("{left} left out: there were too many"));
    }
    notes.extend(profile.unseen.iter().cloned());
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&format!("- {}\n", escape_controls(&note)));
    }
    text
}

fn table(files: &[&FileProfile], colour: Colour) -> String {
    let mut columns = vec![("file", Align::Left), ("engine", Align::Left)];
    let numbers = [
        "reads",
        "writes",
        "read",
        "written",
        "block",
        "sequential",
        "direct",
        "syncs",
        "between",
        "depth",
    ];
    columns.extend(numbers.map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for file in files.iter().take(FILES_MAX) {
        table.row(row(file), Emphasis::None);
    }
    table.render(colour)
}

fn row(file: &FileProfile) -> Vec<String> {
    let dash = || "-".to_owned();
    let or = |value: Option<String>| value.unwrap_or_else(dash);
    let name = match &file.path {
        Some(path) => shortened(path),
        None => format!("({})", file.unknown.get("path").copied().unwrap_or("unknown")),
    };
    let sync = match file.sync.calls {
        0 => dash(),
        calls => format!("{} {}", count(calls), file.sync.call),
    };
    vec![
        name,
        engine(file.engine).to_owned(),
        count(file.reads),
        count(file.writes),
        or(file.read_bytes.map(size)),
        or(file.written_bytes.map(size)),
        or(file.block_bytes.map(binary_size)),
        or(file.sequential_share.map(percent)),
        or(file.direct.map(|direct| if direct { "yes" } else { "no" }.to_owned())),
        sync,
        or(file.sync.operations_between.map(|writes| format!("{writes:.0}"))),
        or(file.depth.map(|depth| format!("{depth:.0}"))),
    ]
}

fn engine(engine: Engine) -> &'static str {
    match engine {
        Engine::Sync => "sync",
        Engine::Psync => "psync",
        Engine::Vsync => "vsync",
        Engine::Pvsync => "pvsync",
        Engine::Pvsync2 => "pvsync2",
        Engine::Libaio => "libaio",
        Engine::IoUring => "io_uring",
        Engine::Mmap => "mmap",
        Engine::Splice => "splice",
        Engine::Unknown => "unknown",
    }
}

/// The end of a path says more than its beginning.
fn shortened(path: &str) -> String {
    let shown = escape_controls(path);
    let letters = shown.chars().count();
    if letters <= LETTERS {
        return shown;
    }
    let end: String = shown.chars().skip(letters - LETTERS + 3).collect();
    format!("...{end}")
}
