//! Samples of `/proc` as text and as JSON with the fields of a recording.

use crate::findings::list;
use crate::table::{Align, Colour, Emphasis, Table};
use base::escape::escape_controls;
use base::finding::{Certainty, Finding, Severity, Unit};
use base::format::{binary_size, count, counted, duration, percent, size};
use serde_json::{Map, Value, json};

use crate::captures::{class_name, shortened};
use capture::operation::{FileKind, OpenedFile, Unknown};
use capture::profile::{Profile, ProfileLimits, Profiler};
use capture::rules;
use capture::sampled::{Position, Sampled, SampledFile, Totals};

#[cfg(test)]
mod tests;

/// The most files in the table.
const FILES: usize = 30;
/// The most files with a finding.
const SENTENCES: usize = 12;
/// From this share on there is a finding.
const MUCH: f64 = 0.1;
/// Fewer bytes than this are not reported.
const MUCH_BYTES: u64 = 1 << 20;

const OF_CALLS: &str = "calls were not recorded: /proc shows only positions of files and counters \
                        of the process";
const OF_POSITION: &str = "/proc does not show whether a position moved by reads, writes or seeks";
const OF_NAME: &str = "its name does not show it, and its use was not recorded";
const OF_BOTH: &str = "it was opened with and without, or /proc does not show it";
const OF_SIZE: &str = "only regular files have a size here";
const OF_EVENTS: &str = "no events were recorded";

/// The JSON document: the fields of a recording, `null` with a reason where `/proc` does not show
/// them, and `looks`, `totals`, `fallback`. `why` is the reason why calls were not recorded.
pub fn document(sampled: &Sampled, why: &str) -> Value {
    let mut unknown = Map::new();
    let profile = Profile { seconds: sampled.seconds, ..Profile::default() };
    let mut document = nulls(&json!(profile), OF_EVENTS, &mut unknown);
    let known = json!({
        "seconds": sampled.seconds,
        "files": sampled.files.iter().map(file_document).collect::<Vec<_>>(),
        "files_left_out": sampled.files_left_out,
        "unseen": unseen(sampled),
        "looks": sampled.looks,
        "processes": sampled.processes,
        "totals": sampled.totals,
        "findings": findings(sampled, why),
        "fallback": why,
    });
    fill(&mut document, &mut unknown, known);
    document.insert("events".to_owned(), Value::Null);
    unknown.insert("events".to_owned(), json!(OF_EVENTS));
    document.insert("unknown".to_owned(), Value::Object(unknown));
    Value::Object(document)
}

/// The fields of a recording, all `null` with the reason `why`.
fn nulls(recorded: &Value, why: &str, unknown: &mut Map<String, Value>) -> Map<String, Value> {
    let names = recorded.as_object().into_iter().flat_map(Map::keys);
    let names: Vec<&String> = names.filter(|name| *name != "unknown").collect();
    unknown.extend(names.iter().map(|name| ((*name).clone(), json!(why))));
    names.into_iter().map(|name| (name.clone(), Value::Null)).collect()
}

/// Sets known values; a `null` keeps its reason.
fn fill(document: &mut Map<String, Value>, unknown: &mut Map<String, Value>, known: Value) {
    let Value::Object(known) = known else { return };
    for (name, value) in known {
        if !value.is_null() {
            unknown.remove(&name);
        }
        document.insert(name, value);
    }
}

fn file_document(file: &SampledFile) -> Value {
    let mut unknown = Map::new();
    let mut document = nulls(&a_recorded_file(), OF_CALLS, &mut unknown);
    for (name, why) in [
        ("read_bytes", OF_POSITION),
        ("written_bytes", OF_POSITION),
        ("class", OF_NAME),
        ("direct", OF_BOTH),
        ("synchronous", OF_BOTH),
        ("append", OF_BOTH),
        ("size_bytes", OF_SIZE),
        ("grown_bytes", OF_SIZE),
        ("position", "this file has no position"),
    ] {
        unknown.insert(name.to_owned(), json!(why));
    }
    let known = json!({
        "path": file.path,
        "class": file.class,
        "kind": file.kind,
        "direct": file.direct,
        "synchronous": file.synchronous,
        "append": file.append,
        "size_bytes": file.size_bytes,
        "grown_bytes": file.grown_bytes,
        "position": file.position,
        "opened_for": opened_for(file),
        "processes": file.processes,
        // Nothing here is known for only a part of the calls.
        "known_share": {},
    });
    fill(&mut document, &mut unknown, known);
    document.insert("unknown".to_owned(), Value::Object(unknown));
    Value::Object(document)
}

/// A file of a recording, for the names of its fields.
fn a_recorded_file() -> Value {
    use capture::operation::{Asked, Engine, FileOperation, Recording};
    let known = Err(Unknown::NotRecorded);
    let file = OpenedFile {
        path: Err(Unknown::NotRecorded),
        kind: FileKind::Other,
        deleted: false,
        direct: known,
        synchronous: known,
        append: known,
        size_bytes: Err(Unknown::NotRecorded),
    };
    let mut profiler = Profiler::new(ProfileLimits { files: 1, ..ProfileLimits::default() });
    profiler.file(0, &file);
    profiler.operation(&FileOperation {
        start_ns: 0,
        duration_ns: Ok(0),
        process: 0,
        thread: 0,
        file: 0,
        engine: Engine::Unknown,
        asked: Asked::Allocate,
        offset_bytes: Ok(0),
        asked_bytes: Ok(0),
        done_bytes: Ok(0),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    });
    json!(profiler.profile().files.first())
}

fn opened_for(file: &SampledFile) -> Option<&'static str> {
    match (file.reads, file.writes) {
        (true, true) => Some("both"),
        (true, false) => Some("reading"),
        (false, true) => Some("writing"),
        (false, false) => None,
    }
}

/// The reason for sampling, the two tables, and the findings.
pub fn text(sampled: &Sampled, why: &str, colour: Colour) -> String {
    let mut text = format!("No calls were recorded: {}.\n", escape_controls(why));
    let apart = sampled.seconds / sampled.looks.saturating_sub(1).max(1) as f64;
    text += &format!(
        "Takeup sampled /proc instead: {}, {} in {}, one every {}.\n",
        counted(sampled.processes, "process", "processes"),
        counted(sampled.looks, "sample", "samples"),
        duration(sampled.seconds),
        duration(apart),
    );
    text += &format!("\n{}", totals_table(&sampled.totals, colour));
    let places: Vec<&SampledFile> = sampled.files.iter().filter(|it| is_place(it)).collect();
    let shown = &places[..places.len().min(FILES)];
    if !shown.is_empty() {
        text += &format!("\n{}", files_table(shown, colour));
    }
    if places.len() > FILES {
        let more = counted((places.len() - FILES) as u64, "more file", "more files");
        text += &format!("{more}, in --json\n");
    }
    let others = sampled.files.len() - places.len();
    if others > 0 {
        let what = counted(others as u64, "other descriptor", "other descriptors");
        let rest = "pipes, sockets, terminals and the like (--json lists them)";
        text += &format!("{what}: {rest}\n");
    }
    text + &format!("\n{}", list(&findings(sampled, why)))
}

fn is_place(file: &SampledFile) -> bool {
    matches!(file.kind, FileKind::Regular | FileKind::BlockDevice)
}

fn totals_table(totals: &Totals, colour: Colour) -> String {
    let columns = [
        ("", Align::Left),
        ("calls", Align::Right),
        ("bytes", Align::Right),
        ("a call", Align::Right),
        ("devices", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for (name, calls, bytes, devices) in [
        ("read", totals.read_calls, totals.read_bytes, totals.device_read_bytes),
        ("written", totals.write_calls, totals.written_bytes, totals.device_written_bytes),
    ] {
        let each = bytes.checked_div(calls).map_or("-".to_owned(), binary_size_of_mean);
        let cells = vec![name.to_owned(), count(calls), size(bytes), each, size(devices)];
        table.row(cells, Emphasis::None);
    }
    table.render(colour)
}

fn binary_size_of_mean(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) { binary_size(bytes) } else { size(bytes) }
}

fn files_table(files: &[&SampledFile], colour: Colour) -> String {
    let columns = [
        ("file", Align::Left),
        ("class", Align::Left),
        ("opened for", Align::Left),
        ("moved", Align::Right),
        ("forward", Align::Right),
        ("back", Align::Right),
        ("grown", Align::Right),
        ("direct", Align::Right),
        ("synchronous", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let or_unknown = |it: Option<&str>| it.unwrap_or("?").to_owned();
    let is = |it: Option<bool>| or_unknown(it.map(|it| if it { "yes" } else { "no" }));
    for file in files {
        let Position { forward_bytes, forward, backward } = file.position.unwrap_or_default();
        let cells = vec![
            shortened(Some(&file.path)),
            or_unknown(file.class.map(class_name)),
            or_unknown(opened_for(file)),
            size(forward_bytes),
            count(forward),
            count(backward),
            file.grown_bytes.map_or("?".to_owned(), size),
            is(file.direct),
            is(file.synchronous),
        ];
        table.row(cells, Emphasis::None);
    }
    table.render(colour)
}

/// What samples of `/proc` cannot show, in sentences.
pub fn unseen(sampled: &Sampled) -> Vec<String> {
    let apart = sampled.seconds / sampled.looks.saturating_sub(1).max(1) as f64;
    let mut unseen = vec![
        "not known: the calls, their sizes, order and depth, pauses and syncs".to_owned(),
        "pread, pwrite, mapped files, io_uring and libaio move no position: at most the counters \
         of the process include them"
            .to_owned(),
        format!("files that are open for less than {} may be missing", duration(apart)),
    ];
    if sampled.has_rings {
        unseen.push("a process uses io_uring: its requests are not in the counted calls".into());
    }
    if sampled.files_left_out > 0 {
        let files = counted(sampled.files_left_out, "file is", "files are");
        unseen.push(format!("{files} left out, because there are too many"));
    }
    if sampled.refused > 0 {
        let others = counted(sampled.refused, "child process belongs", "child processes belong");
        unseen.push(format!("{others} to another user, and these numbers leave it out"));
    }
    unseen
}

/// The findings; the first says that nothing was recorded.
pub fn findings(sampled: &Sampled, why: &str) -> Vec<Finding> {
    let what = format!("no calls were recorded: {why}");
    let fallback = Finding::new(&rules::UNSEEN, Certainty::Told, what)
        .severe(Severity::Warning)
        .because("these are samples of /proc");
    let mut found = vec![fallback];
    found.extend(of_totals(&sampled.totals));
    let moved = sampled.files.iter().filter(|it| is_place(it)).filter_map(of_file);
    found.extend(moved.take(SENTENCES));
    found.extend(beside(sampled));
    let unseen = unseen(sampled).into_iter();
    found.extend(unseen.map(|it| Finding::new(&rules::UNSEEN, Certainty::Unknown, it)));
    found
}

fn of_totals(totals: &Totals) -> Option<Finding> {
    let part = |calls: u64, bytes: u64, done: &str| {
        let calls = counted(calls, "call has", "calls have");
        format!("{calls} {done} {}", size(bytes))
    };
    let parts: Vec<String> = [
        (totals.read_calls, totals.read_bytes, "read"),
        (totals.write_calls, totals.written_bytes, "written"),
    ]
    .into_iter()
    .filter(|(calls, _, _)| *calls > 0)
    .map(|(calls, bytes, done)| part(calls, bytes, done))
    .collect();
    if parts.is_empty() {
        return None;
    }
    let what = format!("{}, pipes and sockets included", parts.join(", "));
    let finding = Finding::new(&rules::TOTALS, Certainty::Measured, what);
    Some(
        finding
            .with_number("calls that read", totals.read_calls as f64, Unit::Count)
            .with_number("read", totals.read_bytes as f64, Unit::Bytes)
            .with_number("calls that write", totals.write_calls as f64, Unit::Count)
            .with_number("written", totals.written_bytes as f64, Unit::Bytes),
    )
}

fn of_file(file: &SampledFile) -> Option<Finding> {
    let Position { forward_bytes, forward, backward } = file.position?;
    let looks = forward + backward;
    if looks == 0 {
        return None;
    }
    let way = match (file.reads, file.writes) {
        (true, false) => "open for reading: ",
        (false, true) => "open for writing: ",
        _ => "",
    };
    let name = capture::words::short_path(&file.path);
    let order = match backward {
        0 if looks == 1 => "in one sample".to_owned(),
        0 => format!("never back in {} samples: in order, as far as samples show", count(looks)),
        _ => format!("back in {} of {} samples: not in order", count(backward), count(looks)),
    };
    let what =
        format!("{name}: {way}its position moved forward by {}, {order}", size(forward_bytes));
    let finding = Finding::new(&rules::POSITION, Certainty::Measured, what);
    Some(
        finding
            .with_number("moved on", forward_bytes as f64, Unit::Bytes)
            .with_number("looks with a move on", forward as f64, Unit::Count)
            .with_number("looks with a move back", backward as f64, Unit::Count),
    )
}

/// Bytes that one of the three sources counts and the others do not.
fn beside(sampled: &Sampled) -> Vec<Finding> {
    let totals = &sampled.totals;
    let called = totals.read_bytes.saturating_add(totals.written_bytes);
    let moved = sampled.files.iter().fold(0, |sum: u64, it| sum.saturating_add(it.forward_bytes()));
    let mut found = Vec::new();
    let mut tell = |rest: u64, of: u64, what: &str| {
        let share = rest as f64 / of.max(1) as f64;
        if rest >= MUCH_BYTES && share >= MUCH {
            let what = format!("{} ({}) {what}", size(rest), percent(share));
            let finding = Finding::new(&rules::BESIDE, Certainty::Inferred, what);
            let finding = finding.with_number("in no other source", rest as f64, Unit::Bytes);
            found.push(finding.with_number("of", of as f64, Unit::Bytes));
        }
    };
    tell(
        called.saturating_sub(moved),
        called,
        "of the bytes of calls moved no sampled position: they went through pread and pwrite, \
         pipes and sockets, or files that no sample found open",
    );
    tell(
        moved.saturating_sub(called),
        moved,
        "of the movement of positions came from no read or write call: it was skipped or \
         spliced",
    );
    tell(
        totals.device_read_bytes.saturating_sub(totals.read_bytes),
        totals.device_read_bytes,
        "of the reads from devices came from no read call: they are read-ahead, or of mapped \
         files, io_uring or libaio",
    );
    tell(
        totals.device_written_bytes.saturating_sub(totals.written_bytes),
        totals.device_written_bytes,
        "of the writes to devices came from no write call: they are of mapped files, io_uring or \
         libaio",
    );
    found
}
