//! The trial `capture`: fio jobs with known properties are captured, converted to jobs by `takeup
//! capture --fio`, and run again by fio.
//!
//! The truth of both runs is fio's log of requests (`write_iolog`): sizes, order, places and syncs.
//! Depth, engine and `O_DIRECT` are the options of the jobs. A case succeeds if every property of
//! every file is the same. Further statements of the capture (block, order, depth, syncs) are
//! compared with the first run, as sentences.
//!
//! Not among the cases: buffered requests of libaio and io_uring, whose places are not visible, and
//! several direct files of one process with libaio, whose requests cannot be assigned to a file
//! (`docs/capture.md`). An attached capture lasts until fio ends.

mod job;
mod log;
mod made;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use self::job::Sections;
use self::log::Run;
use self::made::{Case, Told};
use super::{Asked, Ground, Outcome, Trial};

/// The requirement: 55 of 60.
const ASKED: &[Asked] = &[Asked { property: "comes back", share: 0.916 }];
/// How long fio runs before a capture is attached.
const BEFORE: Duration = Duration::from_millis(400);

/// The trial.
pub struct Capture;

impl Trial for Capture {
    fn name(&self) -> &'static str {
        "capture"
    }

    fn cases(&self) -> u64 {
        60
    }

    fn asked(&self) -> &'static [Asked] {
        ASKED
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let case = Case::of(&mut ground.random(number));
        let folder = &ground.folder;
        case.make_files(folder)?;
        let first = folder.join("first.fio");
        std::fs::write(&first, case.text(folder)).context("write the job")?;
        let written = folder.join("written.fio");
        let captured = captured(ground, &case, &first, &written)?;
        let text = std::fs::read_to_string(&written).context("read the job that was written")?;
        if ground.loud {
            println!("{}\n{text}\n{captured:#}", case.text(folder));
        }
        let sections = Sections::of(&text)?;
        let again = run_again(folder, &sections)?;
        let mut outcome = Outcome {
            number,
            case: case.to_string(),
            truth: format!("{:?}", case.jobs),
            said: text,
            ..Outcome::default()
        };
        judge(&case, folder, &captured, &sections, &again, &mut outcome)?;
        Ok(outcome)
    }
}

/// Runs the first job under a capture, or attaches one to it; returns the document that it prints.
fn captured(ground: &Ground, case: &Case, job: &Path, written: &Path) -> anyhow::Result<Value> {
    let mut fio = Command::new("fio");
    fio.arg("--output=/dev/null").arg(job);
    let mut takeup = Command::new(&ground.takeup);
    takeup.args(["capture", "--json", "--fio"]).arg(written).current_dir(&ground.folder);
    let output = if case.is_attached {
        let mut running = fio.stdin(Stdio::null()).spawn().context("start fio")?;
        std::thread::sleep(BEFORE);
        takeup.args(["--pid", &running.id().to_string()]);
        let output = takeup.output();
        let status = running.wait().context("wait for fio")?;
        ensure!(status.success(), "fio ended with {status}");
        output
    } else {
        takeup.arg("--").arg("fio").args(fio.get_args()).output()
    };
    let output = output.context("run takeup capture")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "capture ended with {}: {said}", output.status);
    serde_json::from_slice(&output.stdout).context("read what capture printed")
}

/// Runs the written job, each of its jobs with a log; returns the work of each.
fn run_again(folder: &Path, sections: &Sections) -> anyhow::Result<Vec<Run>> {
    let own = folder.join("again");
    std::fs::create_dir(&own).context("create a folder")?;
    let (text, logs) = sections.with_logs(folder);
    let job = folder.join("again.fio");
    std::fs::write(&job, &text).context("write the job")?;
    let output = Command::new("fio")
        .args(["--output=/dev/null"])
        .arg(&job)
        .env("TAKEUP_JOB_DIR", &own)
        .output()
        .context("run fio")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("fio ended with {} of the job that was written: {said}\n{text}", output.status);
    }
    logs.iter().map(|log| Run::read(log)).collect()
}

/// Compares each file with the sections that stand for it.
fn judge(
    case: &Case,
    folder: &Path,
    captured: &Value,
    sections: &Sections,
    again: &[Run],
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let mut wrong: Vec<String> = Vec::new();
    for (told, path) in case.jobs.iter().zip(case.paths(folder)) {
        let seen = captured["files"].as_array().into_iter().flatten().find(|file| {
            file["path"].as_str().map(PathBuf::from).as_deref() == Some(path.as_path())
        });
        let Some(seen) = seen else {
            wrong.push(format!("{}: not in the capture", path.display()));
            continue;
        };
        let whole = Run::read(&Case::log(folder, told.number))?;
        let first = if case.is_attached { whole.last(operations(seen)) } else { whole };
        claims(told, seen, &first, outcome);
        let own = sections.of_file(&path);
        if own.is_empty() {
            wrong.push(format!("{}: not in the job", told.name()));
            continue;
        }
        let second =
            Run::joined(own.iter().flat_map(|section| &section.jobs).map(|at| &again[*at]));
        wrong.extend(differences(told, &first, &second, sections, &own));
    }
    outcome.check("comes back", wrong.is_empty(), wrong.join("; "));
    Ok(())
}

fn operations(seen: &Value) -> usize {
    let count = |field: &str| seen[field].as_u64().unwrap_or(0);
    usize::try_from(count("reads") + count("writes")).unwrap_or(usize::MAX)
}

/// The properties of a file that differ.
fn differences(
    told: &Told,
    first: &Run,
    second: &Run,
    sections: &Sections,
    own: &[&job::Section],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = told.name();
    let mut differs = |what: &str, is_alike: bool, was: String, is: String| {
        if !is_alike {
            wrong.push(format!("{name}: {what} {was}, again {is}"));
        }
    };
    let main: Vec<&&job::Section> = own.iter().filter(|it| !it.is_of_syncs()).collect();
    let engines: Vec<&str> =
        main.iter().map(|it| it.option("ioengine").unwrap_or("none")).collect();
    let same_engine = engines.iter().all(|engine| *engine == told.engine);
    differs("engine", same_engine, told.engine.to_owned(), engines.join(", "));
    let direct = main.iter().all(|it| (it.option("direct") == Some("1")) == told.is_direct);
    differs("direct", direct, told.is_direct.to_string(), (!told.is_direct).to_string());
    let depth = sections.depth(own);
    differs("depth", depth == told.depth, told.depth.to_string(), depth.to_string());
    let some = (first.operations() as f64).min(second.operations() as f64).max(1.0).sqrt();
    let sizes = first.sizes_apart(second);
    let shown = |run: &Run| format!("{:?}", run.sizes());
    differs("sizes", sizes <= 0.08 + 0.8 / some, shown(first), shown(second));
    let (was, is) = (first.read_share(), second.read_share());
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    differs("mix", (was - is).abs() <= 0.05 + 0.5 / some, percent(was), percent(is));
    let (was, is) = (first.syncs as f64, second.syncs as f64);
    let near = (was - is).abs() <= (0.1 * was).max(2.0);
    differs("syncs", near, format!("{was}"), format!("{is}"));
    let (was, is) = (first.reuse(), second.reuse());
    differs("reuse", (was - is).abs() <= 0.1, percent(was), percent(is));
    let (was, is) = (first.in_order(), second.in_order());
    differs("order", (was - is).abs() <= 0.1, percent(was), percent(is));
    if told.has_hot_parts() {
        let apart = first.parts_apart(second);
        differs("hot parts", apart <= 0.15, String::new(), format!("{} elsewhere", percent(apart)));
    }
    wrong
}

/// Statements of the capture about a file that are true or false.
fn claims(told: &Told, seen: &Value, first: &Run, outcome: &mut Outcome) {
    let name = told.name();
    let mut claim = |sentence: &str, field: &Value, truth: f64, within: f64| {
        let Some(said) = field.as_f64() else { return };
        let is_true = (said - truth).abs() <= within;
        outcome.claim(sentence, is_true, format!("{name}: {sentence} {said:.2}; {truth:.2}"));
    };
    let depth = told.depth as f64;
    claim("depth is", &seen["depth"], depth, 0.05 * depth);
    claim("reads are", &seen["reads"], first.reads() as f64, 0.02 * first.reads() as f64 + 2.0);
    claim("writes are", &seen["writes"], first.writes() as f64, 0.02 * first.writes() as f64 + 2.0);
    claim("share in order is", &seen["sequential_share"], first.in_order(), 0.1);
    claim("share of places used again is", &seen["reuse_share"], first.reuse(), 0.05);
    let syncs = first.syncs as f64;
    claim("syncs are", &seen["sync"]["calls"], syncs, 0.02 * syncs + 2.0);
    if let Some(engine) = seen["engine"].as_str() {
        let because = format!("{name}: engine is {engine}");
        outcome.claim("engine is", engine == told.engine, because);
    }
    if let Some(direct) = seen["direct"].as_bool() {
        let because = format!("{name}: direct is {direct}");
        outcome.claim("direct is", direct == told.is_direct, because);
    }
}
