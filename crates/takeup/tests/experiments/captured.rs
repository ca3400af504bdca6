//! Jobs of the real fio, captured, come back as the jobs that made them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use report::table::{Align, Emphasis, Style, Table};
use serde_json::Value;

use crate::{run, succeeds};

/// Tolerance of a property.
const TOLERANCE: f64 = 0.05;
/// Reads and writes of each job.
const OPERATIONS: u64 = 200;

/// A job as passed to fio.
struct Told {
    name: String,
    engine: &'static str,
    block_bytes: u64,
    read_share: f64,
    direct: bool,
    depth: u64,
}

/// Each engine in each of its modes, with all sizes and mixes.
fn all() -> Vec<Told> {
    let ways = [
        ("psync", false, 1),
        ("psync", true, 1),
        ("sync", false, 1),
        ("sync", true, 1),
        ("libaio", true, 1),
        ("libaio", true, 8),
        ("libaio", false, 8),
        ("io_uring", true, 1),
        ("io_uring", true, 8),
        ("io_uring", false, 8),
    ];
    let loads = [(4u64 << 10, 1.0), (16 << 10, 0.0), (128 << 10, 0.7), (4 << 10, 0.7)];
    let mut all = Vec::new();
    for (engine, direct, depth) in ways {
        for (block_bytes, read_share) in loads {
            // A fast disk answers small requests before the ring is full, and memory answers even
            // larger ones.
            let least_bytes = match direct {
                _ if engine != "io_uring" || depth == 1 => 0,
                true => 128 << 10,
                false => 1 << 20,
            };
            let block_bytes = block_bytes.max(least_bytes);
            let name = format!("job{}", all.len());
            all.push(Told { name, engine, block_bytes, read_share, direct, depth });
        }
    }
    all
}

/// One after the other, each on its own file, so that one recording has all of them. Pauses keep a
/// file open long enough to look up its name: 200 reads from memory take a millisecond.
fn job_file(all: &[Told]) -> String {
    let mut text = String::from("[global]\nthread\nfallocate=none\noverwrite=1\n");
    for told in all {
        let rw = match told.read_share {
            1.0 => "randread",
            0.0 => "randwrite",
            _ => "randrw",
        };
        let Told { name, engine, block_bytes, read_share, direct, depth } = told;
        let _ = writeln!(
            text,
            "[{name}]\nstonewall\nfilename={name}\nfilesize={}\nioengine={engine}\n\
             bs={block_bytes}\nrw={rw}\nrwmixread={:.0}\ndirect={}\niodepth={depth}\n\
             number_ios={OPERATIONS}\nio_size=1g\nnorandommap=1\n\
             thinktime=40ms\nthinktime_blocks=50",
            (2 << 20).max(16 * block_bytes),
            read_share * 100.0,
            u8::from(*direct),
        );
    }
    text
}

/// A property of the job: how far off it is, or why it cannot be seen.
fn off(file: &Value, field: &str, told: f64) -> Result<f64, String> {
    match file[field].as_f64() {
        Some(found) => Ok((found - told).abs() / told.max(1.0)),
        None => Err(file["unknown"][field].as_str().unwrap_or("no reason").to_owned()),
    }
}

/// Whether it is equal, or why that cannot be seen.
fn same(file: &Value, field: &str, told: &Value) -> Result<f64, String> {
    match &file[field] {
        Value::Null => Err(file["unknown"][field].as_str().unwrap_or("no reason").to_owned()),
        found => Ok(if found == told { 0.0 } else { 1.0 }),
    }
}

/// `mix` is fio's report of the share of reads, compared with the requested one.
fn score(told: &Told, mix: f64, file: &Value) -> [Result<f64, String>; 5] {
    [
        same(file, "engine", &told.engine.into()),
        off(file, "block_bytes", told.block_bytes as f64),
        off(file, "read_share", mix),
        off(file, "depth", told.depth as f64),
        same(file, "direct", &told.direct.into()),
    ]
}

/// The file of a job; files of buffered libaio requests cannot be seen.
fn file_of<'a>(files: &'a [Value], name: &str) -> Option<&'a Value> {
    let is_it =
        |path: &Value| path.as_str().is_some_and(|path| path.ends_with(&format!("/{name}")));
    files.iter().find(|file| is_it(&file["path"]))
}

#[expect(clippy::print_stdout, reason = "the table that the page of the command is made of")]
#[test]
fn jobs_of_fio_come_back_as_they_were() {
    testkit::require!(Fio, Root, Tracefs, IoUring);
    // On a disk, to check direct I/O and the block layer.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let all = all();
    fs::write(folder.path().join("all.fio"), job_file(&all)).unwrap();
    fio(folder.path(), &["--create_only=1", "all.fio"]);
    let command = ["capture", "--json", "--", "fio", "--output-format=json", "--output=said"];
    let command = [&command[..], &["all.fio"]].concat();
    let document: Value = serde_json::from_str(&succeeds(folder.path(), &command)).unwrap();
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    let said: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    assert_eq!(document["lost_events"], 0, "{}", document["lost_events"]);
    let files = document["files"].as_array().unwrap();
    let columns = ["engine", "block size", "reads", "cache", "depth", "comes back"];
    let mut table = Table::new(&columns.map(|name| (name, Align::Left)));
    let (mut back, mut wrong) = (0, Vec::new());
    for (told, did) in all.iter().zip(said["jobs"].as_array().unwrap()) {
        assert_eq!(did["jobname"], told.name);
        let requests = |kind: &str| did[kind]["total_ios"].as_f64().unwrap();
        let mix = requests("read") / (requests("read") + requests("write"));
        let hidden = told.engine == "libaio" && !told.direct;
        let words = match file_of(files, &told.name) {
            // A file that was not seen is not replaced by another file.
            None if hidden => "not seen: buffered requests of libaio".to_owned(),
            None => "its file is missing".to_owned(),
            Some(file) => words(told, &score(told, mix, file)),
        };
        back += usize::from(words == "yes");
        if !words.starts_with("yes") && !hidden {
            wrong.push(format!("{}: {words}", told.name));
        }
        let cells = [
            told.engine.to_owned(),
            format!("{}k", told.block_bytes >> 10),
            format!("{:.0} %", told.read_share * 100.0),
            if told.direct { "direct" } else { "buffered" }.to_owned(),
            told.depth.to_string(),
            words,
        ];
        table.row(cells.to_vec(), Emphasis::None);
    }
    println!("{}", table.render(Style::PLAIN));
    println!("{back} of {} combinations come back within 5 %", all.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(back >= 28, "{back}");
}

/// `yes`, or the properties that differ. Buffered requests of a ring may complete at once, so their
/// number in flight cannot be seen.
fn words(told: &Told, score: &[Result<f64, String>; 5]) -> String {
    let names = ["engine", "block size", "mix", "depth", "direct"];
    let may_hide = |name: &str| name == "depth" && told.engine == "io_uring" && !told.direct;
    let (mut wrong, mut hidden) = (Vec::new(), String::new());
    for (name, result) in names.iter().zip(score) {
        match result {
            Ok(off) if *off <= TOLERANCE => {}
            Ok(off) => wrong.push(format!("{name} is {:.0} % off", off * 100.0)),
            Err(why) if may_hide(name) => hidden = format!(", depth not seen: {why}"),
            Err(why) => wrong.push(format!("{name} not seen: {why}")),
        }
    }
    if wrong.is_empty() { format!("yes{hidden}") } else { wrong.join("; ") }
}

fn fio(folder: &Path, arguments: &[&str]) {
    let mut fio = std::process::Command::new("fio");
    let output = fio.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A log whose last block is rewritten repeatedly: the written job does the same, as a recording of
/// the job shows, and it leaves no files.
#[test]
fn a_log_validates() {
    testkit::require!(Fio, Root, Tracefs);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = "[log]\nfilename=log\nioengine=psync\nbs=8k\nfilesize=4m\n\
               number_ios=400\nio_size=1g\noverwrite=1\nrw=randwrite:20\n\
               rw_sequencer=identical\npercentage_random=0\nfdatasync=1\n";
    fs::write(folder.path().join("log.fio"), log).unwrap();
    fio(folder.path(), &["--create_only=1", "log.fio"]);
    let before = names(folder.path());
    let command = ["capture", "--json", "--fio", "back.fio", "--validate", "--limit", "64M"];
    let command = [&command[..], &["--", "fio", "--thread", "--output=said", "log.fio"]].concat();
    let document: Value = serde_json::from_str(&succeeds(folder.path(), &command)).unwrap();
    for (name, property) in document["validation"]["properties"].as_object().unwrap() {
        assert!(property["percent"].as_f64().unwrap() >= 90.0, "{name}: {document:#}");
    }
    let job = fs::read_to_string(folder.path().join("back.fio")).unwrap();
    for line in ["ioengine=psync", "bs=8k", "rw=randwrite:20", "fdatasync=1", "overwrite=1"] {
        assert!(job.lines().any(|own| own == line), "{line}: {job}");
    }
    let mut wanted = [before, vec!["back.fio".to_owned(), "said".to_owned()]].concat();
    wanted.sort();
    assert_eq!(names(folder.path()), wanted);
}

#[test]
fn what_a_job_cannot_be_is_said_before_anything_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["capture", "--fio", "job", "--folder", "nowhere", "--", "touch", "ran"];
    let output = run(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("takeup: nowhere is not a folder\n"), "{said}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "run");
    names.sort();
    names
}
