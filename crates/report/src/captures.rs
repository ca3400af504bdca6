//! A profile as text, the same for recordings and imports.

use base::escape::escape_controls;
use base::format::{binary_size, count, counted, duration, percent, size};
use capture::job::{PROPERTIES, Validation};
use capture::profile::{Class, FileProfile, Profile};
use capture::words;
use experiment::judgement::quoted;
use service::capture::{CaptureEnd, MadeJob};

use crate::findings::list;
use crate::next::next;
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};

/// The most files in the table.
const FILES: usize = 30;
/// The most letters of a path in the table.
const LETTERS: usize = 44;

/// The table, the reasons for its gaps, and the findings.
pub fn text(profile: &Profile, style: Style) -> String {
    let calls: u64 = profile.files.iter().map(|it| it.calls).sum();
    let of_many = profile.files.iter().filter(|it| words::are_many(it)).count();
    let mut files = counted((profile.files.len() - of_many) as u64, "file", "files");
    if of_many > 0 {
        files.push_str(", and of others that were closed before their names were seen");
    }
    let mut text = format!(
        "{} recorded, {} of {files}\n",
        duration(profile.seconds),
        counted(calls, "operation", "operations")
    );
    let places: Vec<&FileProfile> = profile.files.iter().filter(|it| words::is_place(it)).collect();
    let shown = &places[..places.len().min(FILES)];
    if !shown.is_empty() {
        text.push_str(&format!("\n{}", table(shown, style)));
    }
    if places.len() > FILES {
        let more = counted((places.len() - FILES) as u64, "more file", "more files");
        text.push_str(&format!("{more} with fewer bytes, in --json\n"));
    }
    let others = profile.files.len() - places.len();
    if others > 0 {
        let what = counted(others as u64, "other descriptor", "other descriptors");
        let rest = "pipes, sockets, terminals and the like (--json lists them)";
        text.push_str(&format!("{what}: {rest}\n"));
    }
    text.push_str(&gaps(shown));
    let mut text = fitted(&text, style);
    let findings = words::findings(profile);
    if !findings.is_empty() {
        text.push_str(&format!("\n{}", list(&findings, style)));
    }
    text
}

/// Columns of the table, and their alignment.
pub const COLUMNS: [(&str, Align); 13] = [
    ("file", Align::Left),
    ("class", Align::Left),
    ("engine", Align::Left),
    ("reads", Align::Right),
    ("writes", Align::Right),
    ("read", Align::Right),
    ("written", Align::Right),
    ("block", Align::Right),
    ("in order", Align::Right),
    ("again", Align::Right),
    ("direct", Align::Right),
    ("depth", Align::Right),
    ("sync", Align::Left),
];

fn table(files: &[&FileProfile], style: Style) -> String {
    let mut table = Table::new(&COLUMNS);
    for file in files {
        let mut row = cells(file);
        row[0] = shortened(file.path.as_deref());
        table.row(row, Emphasis::None);
    }
    table.render(style)
}

/// The row of a file: a cell for each of [`COLUMNS`], `?` for unknown values, the path in full.
pub fn cells(file: &FileProfile) -> Vec<String> {
    let or_unknown = |it: Option<String>| it.unwrap_or_else(|| "?".to_owned());
    let of_writes = |it: Option<f64>| match file.writes {
        0 => "-".to_owned(),
        _ => or_unknown(it.map(percent)),
    };
    let of_data = |it: Option<String>| match file.reads + file.writes {
        0 => "-".to_owned(),
        _ => or_unknown(it),
    };
    vec![
        or_unknown(file.path.clone()),
        class_name(file.class).to_owned(),
        file.engine.name().to_owned(),
        count(file.reads),
        count(file.writes),
        or_unknown(file.read_bytes.map(size)),
        or_unknown(file.written_bytes.map(size)),
        of_data(file.block_bytes.map(binary_size)),
        of_data(file.sequential_share.map(|share| {
            words::share_in_order(file, share).map_or_else(|| "-".to_owned(), percent)
        })),
        of_writes(file.rewrite_share),
        of_data(file.direct.map(|it| if it { "yes" } else { "no" }.to_owned())),
        of_data(file.depth.map(|it| format!("{it:.0}"))),
        sync(file),
    ]
}

/// The sync call, and the writes per call: `fdatasync / 1`.
fn sync(file: &FileProfile) -> String {
    match (file.sync.call, file.sync.operations_between) {
        ("none", _) if file.synchronous == Some(true) => "each write".to_owned(),
        ("none", _) => "-".to_owned(),
        (call, Some(_)) => {
            let mean = file.writes as f64 / file.sync.calls.max(1) as f64;
            format!("{call} / {}", words::short_number(mean))
        }
        (call, None) => format!("{call}, once"),
    }
}

/// The reasons for question marks: a line for each reason, with its columns.
pub fn gaps(files: &[&FileProfile]) -> String {
    const SHOWN: [(&str, &str); 7] = [
        ("read_bytes", "bytes read"),
        ("written_bytes", "bytes written"),
        ("block_bytes", "block"),
        ("sequential_share", "in order"),
        ("rewrite_share", "again"),
        ("direct", "direct"),
        ("depth", "depth"),
    ];
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in files {
        for (field, shown) in SHOWN {
            let Some(reason) = file.unknown.get(field) else { continue };
            let is_asked = match field {
                "read_bytes" => file.reads > 0,
                "written_bytes" | "rewrite_share" => file.writes > 0,
                _ => file.reads + file.writes > 0,
            };
            if !is_asked {
                continue;
            }
            match reasons.iter_mut().find(|(it, _)| it == reason) {
                Some((_, fields)) if !fields.contains(&shown) => fields.push(shown),
                Some(_) => {}
                None => reasons.push((reason, vec![shown])),
            }
        }
    }
    let line =
        |(reason, fields): &(&str, Vec<&str>)| format!("? {}: {reason}\n", fields.join(", "));
    reasons.iter().map(line).collect()
}

/// A path, shortened to its end.
pub(super) fn shortened(path: Option<&str>) -> String {
    let shown = escape_controls(path.unwrap_or("?"));
    let letters = shown.chars().count();
    if letters <= LETTERS {
        return shown;
    }
    let rest: String = shown.chars().skip(letters - (LETTERS - 3)).collect();
    format!("...{rest}")
}

/// The name of a class.
pub fn class_name(class: Class) -> &'static str {
    match class {
        Class::WriteAheadLog => "log",
        Class::Data => "data",
        Class::Temporary => "temporary",
        Class::Stream => "stream",
        Class::Messages => "messages",
        Class::Device => "device",
        Class::Other => "other",
    }
}

/// The properties of each group that a job is compared by.
fn validation_table(validation: &Validation, style: Style) -> String {
    let columns = [
        ("files", Align::Left),
        ("property", Align::Left),
        ("captured", Align::Left),
        ("job", Align::Left),
        ("score", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for group in &validation.groups {
        for (index, property) in PROPERTIES.iter().enumerate() {
            let Some(score) = group.properties.get(*property) else { continue };
            let name = if index == 0 { group.name.clone() } else { String::new() };
            let told = score.percent.map_or("-".to_owned(), |share| format!("{share:.0} %"));
            let cells =
                vec![name, (*property).to_owned(), score.captured.clone(), score.job.clone(), told];
            table.row(cells, Emphasis::None);
        }
    }
    table.render(style)
}

/// The file of the job, and how near a run of it comes; it follows the text of the calls.
pub fn job_text(made: &MadeJob, style: Style) -> String {
    let mut text = String::new();
    if let Some(path) = &made.path {
        text += &format!("\nTakeup wrote the load as a fio job to {}.\n", path.display());
    }
    let next = made.path.as_deref().map_or(String::new(), |path| {
        let path = quoted(&path.to_string_lossy());
        next(&format!("takeup bench disk --job {path}"), "repeats this load, and measures it")
    });
    let Some(validation) = &made.validation else { return text + &next };
    text += &format!("\nfio ran the job in {:.1} s:\n\n", validation.seconds);
    text += &validation_table(validation, style);
    text += "\n";
    for sentence in &validation.not_reproduced {
        text += &format!("{sentence}\n");
    }
    text + &next
}

/// What is said on standard error about the end, where something is wrong.
pub fn remark(end: &CaptureEnd) -> Option<String> {
    match end {
        CaptureEnd::Done => None,
        CaptureEnd::Failed(how) => Some(format!("takeup: the command ended with {how}\n")),
        CaptureEnd::Stopped => {
            Some("takeup: stopped; the report covers the time until then\n".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use capture::operation::{
        Asked, Engine, FileKind, FileOperation, OpenedFile, Recording as _, Unknown,
    };
    use capture::profile::{ProfileLimits, Profiler};

    use super::*;

    fn opened(path: &str) -> OpenedFile {
        OpenedFile {
            path: Ok(path.to_owned()),
            kind: FileKind::Regular,
            deleted: false,
            direct: Ok(false),
            synchronous: Ok(false),
            append: Ok(false),
            size_bytes: Ok(1 << 30),
        }
    }

    fn open(profiler: &mut Profiler, number: u32, path: &str, direct: bool) {
        profiler.file(number, &OpenedFile { direct: Ok(direct), ..opened(path) });
    }

    fn operation(asked: Asked, engine: Engine, at: u64, offset: u64, bytes: u64) -> FileOperation {
        FileOperation {
            start_ns: at,
            duration_ns: Ok(100_000),
            process: 1,
            thread: 1,
            file: 0,
            engine,
            asked,
            offset_bytes: Ok(offset),
            asked_bytes: Ok(bytes),
            done_bytes: Ok(bytes),
            synchronous: false,
            in_flight: Ok(1),
            error: 0,
        }
    }

    #[test]
    fn files_without_a_name_are_counted_as_several() {
        let mut profiler = Profiler::new(ProfileLimits::default());
        open(&mut profiler, 0, "/srv/a", false);
        let nameless = OpenedFile { path: Err(Unknown::Closed), ..opened("/srv/b") };
        profiler.file(1, &nameless);
        for (file, at) in [(0, 10), (1, 20), (1, 30)] {
            let read = operation(Asked::Read, Engine::Sync, at, 0, 700);
            profiler.operation(&FileOperation { file, ..read });
        }
        let text = text(&profiler.profile(), Style::PLAIN);
        let expected = "3 operations of 1 file, and of others that were closed before their names";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_not_known_is_said_and_nothing_in_its_place() {
        let mut profiler = Profiler::new(ProfileLimits { files: 2, ..ProfileLimits::default() });
        open(&mut profiler, 0, "/dev/sdb", true);
        open(&mut profiler, 1, "/srv/once", false);
        open(&mut profiler, 2, "/srv/more", false);
        for number in 0..20 {
            let unknown = operation(Asked::Read, Engine::Libaio, number, 0, 0);
            let reason = Unknown::RequestOfAio;
            profiler.operation(&FileOperation {
                offset_bytes: Err(reason),
                asked_bytes: Err(reason),
                done_bytes: Err(reason),
                in_flight: Err(reason),
                ..unknown
            });
        }
        for file in [1, 2] {
            let once = operation(Asked::Write, Engine::Sync, 30, 0, 700);
            profiler.operation(&FileOperation { file, ..once });
        }
        profiler.lost(2);
        profiler.cannot_see("pages of a mapping that are in memory are not seen");
        let profile = profiler.profile();
        let text = text(&profile, Style::PLAIN);
        let expected = "\
0 ms recorded, 21 operations of 2 files

file       class  engine  reads  writes  read  written      block  in order  again  direct  \
    depth  sync
/srv/once  other  sync        0       1   0 B    700 B  700 bytes         -    0 %      no  \
    \x20   1  -
/dev/sdb   other  libaio     20       0     ?      0 B          ?         ?      -     yes  \
    \x20   ?  -
? bytes read, block, in order, depth: io_submit shows pointers to its requests, not what they ask

- warning: 2 events were lost: counts are too low, and shares may be wrong
- 1 file has no profile, because there are too many: 1 operation left out
- /dev/sdb: read in an unknown order, in blocks of unknown size by io_submit, direct
- pages of a mapping that are in memory are not seen
";
        assert_eq!(text, expected);
        let document = serde_json::to_value(&profile).unwrap();
        let disk = &document["files"][1];
        assert_eq!(disk["sequential_share"], serde_json::Value::Null);
        let reason = "io_submit shows pointers to its requests, not what they ask";
        assert_eq!(disk["unknown"]["sequential_share"], reason);
        assert_eq!((&disk["engine"], &document["lost_events"]), (&"libaio".into(), &2.into()));
        assert_eq!(words::findings(&profile)[0].rule, "capture.lost");
    }
}
