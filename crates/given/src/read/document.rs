//! JSON of iostat and of fio: a document becomes the pieces that the text of the same program has.
//! What is not closed, or lacks a value, is refused as a whole.

use serde_json::{Map, Value};

use super::number::is_usual;
use super::{Before, Line, TEXT_BYTES_MAX, fio};
use crate::piece::{DeviceRow, DirectionRate, Job, Program, Requests, Switch, What};

/// Most bytes in which ends of documents are looked for: brackets that are not closed make each
/// search go to the end of the text.
const SEARCHED_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;
/// Lines that show which program has printed a document.
const HEAD_LINES: usize = 3;

/// What begins at a line.
pub(super) struct Found {
    /// Lines that it takes.
    pub(super) lines: usize,
    pub(super) what: Result<What, String>,
}

/// The document that begins at the first of these lines.
pub(super) fn at(lines: &[Line], before: &mut Before) -> Option<Found> {
    lines[0].text.trim_start().starts_with('{').then_some(())?;
    let head: Vec<&str> = lines.iter().take(HEAD_LINES).map(|line| line.text.as_str()).collect();
    let head = head.join(" ");
    let is_named = |name: &str| head.split_once(name).is_some_and(|(it, _)| !it.contains('}'));
    let program = if is_named("\"sysstat\"") {
        Program::Iostat
    } else if is_named("\"fio version\"") {
        Program::Fio
    } else {
        return None;
    };
    let refused = |why: &str| Err(format!("JSON of {} {why}", program_name(program)));
    let Some(count) = end(lines, before) else {
        return Some(Found { lines: 1, what: refused("without its end") });
    };
    let text: Vec<&str> = lines[..count].iter().map(|line| line.text.trim()).collect();
    let what = match serde_json::from_str::<Value>(&text.join(" ")) {
        Err(_) => refused("that is not whole"),
        Ok(value) => {
            let pieces = match program {
                Program::Iostat => of_iostat(&value),
                Program::Fio => of_fio(&value),
            };
            let lacking = refused("without the numbers that are read of it (iostat needs -x)");
            pieces.map_or(lacking, |pieces| Ok(What::Document { program, pieces }))
        }
    };
    Some(Found { lines: count, what })
}

fn program_name(program: Program) -> &'static str {
    match program {
        Program::Iostat => "iostat",
        Program::Fio => "fio",
    }
}

/// How many lines it has: the bracket that opens it is closed at the end of the last one.
fn end(lines: &[Line], before: &mut Before) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0_u32, false, false);
    for (at, line) in lines.iter().enumerate() {
        before.searched_bytes += line.text.len() + 1;
        if line.quoted != lines[0].quoted || before.searched_bytes > SEARCHED_BYTES_MAX {
            return None;
        }
        for letter in line.text.bytes() {
            match letter {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn number(values: &Map<String, Value>, name: &str) -> Option<f64> {
    values.get(name)?.as_f64().filter(|it| is_usual(*it))
}

fn of_iostat(document: &Value) -> Option<Vec<What>> {
    let hosts = document.get("sysstat")?.get("hosts")?.as_array()?;
    let mut pieces = vec![What::Columns];
    for host in hosts {
        for report in host.get("statistics")?.as_array()? {
            for disk in report.get("disk")?.as_array()? {
                pieces.push(What::Device(Box::new(device(disk.as_object()?)?)));
            }
        }
    }
    (pieces.len() > 1).then_some(pieces)
}

fn device(disk: &Map<String, Value>) -> Option<DeviceRow> {
    let in_flight = number(disk, "aqu-sz").or_else(|| number(disk, "avgqu-sz"));
    Some(DeviceRow {
        device: disk.get("disk_device")?.as_str()?.to_owned(),
        reads: requests(disk, 'r')?,
        writes: requests(disk, 'w')?,
        in_flight: Some(in_flight?),
        busy_percent: number(disk, "util")?,
    })
}

fn requests(disk: &Map<String, Value>, letter: char) -> Option<Requests> {
    let of = |name: &str| number(disk, &format!("{letter}{name}"));
    let kib = of("kB/s").map(|it| it * 1024.0);
    let bytes_per_second = kib.or_else(|| of("MB/s").map(|it| it * 1024.0 * 1024.0))?;
    Some(Requests { per_second: of("/s")?, bytes_per_second, merged_percent: of("rqm")? })
}

/// All jobs first, and then what was measured, as fio's text has it.
fn of_fio(document: &Value) -> Option<Vec<What>> {
    let none = Map::new();
    let options = |value: &Value, name: &str| value.get(name).and_then(Value::as_object).cloned();
    let global = options(document, "global options").unwrap_or_default();
    let entries = document.get("jobs")?.as_array()?;
    let mut jobs: Vec<Job> = Vec::new();
    for entry in entries {
        let options = options(entry, "job options");
        // Without them nobody knows how many requests it has in flight.
        let is_told = options.is_some() || !global.is_empty();
        let own = job(&global, &options.unwrap_or_else(|| none.clone()));
        jobs.push(Job { is_unsure: own.is_unsure || !is_told, ..own });
    }
    // Without group_reporting each process has an entry.
    let first = jobs.first()?.clone();
    let processes = u64::try_from(entries.len()).ok()?;
    let is_one = processes == 1 || (first.jobs == Some(processes) && same_name(entries));
    let mut pieces: Vec<What> = Vec::new();
    if is_one {
        pieces.push(What::Job(Job { jobs: None, ..first.clone() }));
        pieces.push(What::Processes(first.jobs.unwrap_or(1)));
    } else {
        pieces.extend(jobs.into_iter().map(What::Job));
    }
    for entry in entries {
        for direction in ["read", "write"] {
            pieces.extend(measured(entry.get(direction)?.as_object()?, direction)?);
        }
    }
    Some(pieces)
}

fn same_name(entries: &[Value]) -> bool {
    let name = |entry: &Value| entry.get("jobname").and_then(Value::as_str).map(str::to_owned);
    let first = entries.first().and_then(name);
    first.is_some() && entries.iter().all(|entry| name(entry) == first)
}

fn job(global: &Map<String, Value>, own: &Map<String, Value>) -> Job {
    let of = |names: [&str; 2]| {
        let found = |map: &Map<String, Value>| {
            let value = names.iter().find_map(|name| map.get(*name));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        found(own).or_else(|| found(global))
    };
    let has = |name: &str| own.contains_key(name) || global.contains_key(name);
    let block = of(["bs", "blocksize"]);
    let count = |name: &str| of([name, name]).map(|it| it.parse::<u64>().ok());
    let (depth, jobs) = (count("iodepth"), count("numjobs"));
    let block_bytes = block.as_deref().and_then(fio::binary);
    let is_unsure = ["bssplit", "bsrange", "blocksize_range"].iter().any(|name| has(name))
        || (block.is_some() && block_bytes.is_none())
        || depth == Some(None)
        || jobs == Some(None);
    let is_direct = |name: &str| fio::direct(name, &of([name, name])?);
    let direct = is_direct("direct").or_else(|| is_direct("buffered"));
    Job {
        pattern: of(["rw", "readwrite"]),
        block_bytes,
        engine: of(["ioengine", "ioengine"]),
        depth: depth.flatten(),
        jobs: jobs.flatten(),
        // All options are there.
        direct: direct.or(Some(Switch::Off)),
        is_unsure,
    }
}

/// Rate and latency of a direction; nothing where nothing was moved.
fn measured(values: &Map<String, Value>, direction: &str) -> Option<Vec<What>> {
    let per_second = number(values, "iops")?;
    let bytes = number(values, "bw_bytes").or_else(|| Some(number(values, "bw")? * 1024.0))?;
    if per_second <= 0.0 {
        return Some(Vec::new());
    }
    // fio 2 has microseconds, and another name.
    let mean = |name: &str, unit: f64| Some(number(values.get(name)?.as_object()?, "mean")? * unit);
    let latency = mean("lat_ns", 1e-9).or_else(|| mean("lat", 1e-6))?;
    let is_read = direction == "read";
    let rate = DirectionRate { is_read, per_second, bytes_per_second: bytes };
    Some(vec![What::Direction(rate), What::MeanLatency(latency)])
}
