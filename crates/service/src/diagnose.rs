//! Why a backup is slow: from a source to a target, of a line as it is typed, of a job that runs,
//! or of what other programs printed.
//!
//! [`diagnosis`] tries the source, reads the line and plays the chain. Here is what it needs of
//! this machine beside that: the drive behind a name ([`mod@target`]), a running pipeline
//! ([`running`]), what could stand in the place of a compressor ([`compressor`]), and the trial of
//! a change ([`trying`]).

mod answer;
mod compressor;
pub mod given;
pub mod host;
mod running;
mod target;
mod trying;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::finding::{Certainty, Finding};
use diagnosis::chain::{Chain, Link, Reading, Source, Work};
use diagnosis::change::Ground;
use diagnosis::line::{self, PIPE_BYTES, Role, Typed, TypedProgram, TypedTarget};
use diagnosis::rank::{Ranking, rank};
use diagnosis::rules;
use diagnosis::source::{self, Found, ReadsAs};
use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explain::PipelineRunAnswer;
use crate::failure::Failure;
use crate::outcome::Outcome;

pub use answer::{
    DiagnoseAnswer, DiagnosedSource, DiagnosedStation, DiagnosedStep, RangeAnswer, TriedStep,
};

/// What to look at, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseRequest {
    pub subject: DiagnoseSubject,
    /// Most seconds of all trials.
    #[serde(default = "usual_budget")]
    pub budget_seconds: f64,
    /// Run the line, and look at its programs meanwhile.
    #[serde(default)]
    pub runs: bool,
    /// Make the first change for a moment, and measure what it brings.
    #[serde(default)]
    pub tries: bool,
    /// Write some data beside the target for a moment, to know what it takes.
    #[serde(default)]
    pub writes: bool,
}

fn usual_budget() -> f64 {
    BUDGET_SECONDS
}

/// Most seconds of all trials, unless told otherwise.
pub const BUDGET_SECONDS: f64 = 15.0;

/// What is slow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnoseSubject {
    /// `takeup backup` of these paths to a target, or nowhere.
    Backup { sources: Vec<PathBuf>, target: Option<PathBuf> },
    /// A line for the shell. It is read, and not run.
    Line(String),
    /// A process that runs, with all that pipes join it to.
    Process(u32),
}

impl DiagnoseRequest {
    /// Whether the line that is looked at writes its data to its standard output.
    pub fn writes_to_standard_output(&self) -> bool {
        let DiagnoseSubject::Line(line) = &self.subject else { return false };
        let throws_away = line.contains("/dev/null");
        line::typed(line).is_some_and(|typed| {
            let is_nowhere = matches!(typed.target, TypedTarget::Nowhere);
            is_nowhere && !throws_away && !typed.sources.is_empty()
        })
    }
}

/// What was found.
#[derive(Debug)]
pub struct Diagnosed {
    /// The line, as it was typed or as its processes were started.
    pub line: Option<String>,
    pub chain: Chain,
    pub found: Found,
    pub ranking: Ranking,
    /// What it means, the limit first.
    pub findings: Vec<Finding>,
    /// The run of the line.
    pub run: Option<PipelineRunAnswer>,
    /// What became of the first change.
    pub tried: Option<TriedStep>,
    /// How long it took.
    pub seconds: f64,
}

impl Diagnosed {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let failed = self.run.as_ref().is_some_and(|run| run.failed.is_some() || run.is_stopped);
        let source = &self.chain.source;
        let is_known = source.stream.is_some() || source.small.is_some();
        if failed || !is_known { Outcome::Warned } else { Outcome::Done }
    }
}

/// Finds the limit and what helps.
///
/// # Errors
/// When the source cannot be read, the line is not understood, or the user stopped it.
pub fn diagnose(request: &DiagnoseRequest, cancel: &Cancel) -> Result<Diagnosed, Failure> {
    let begun = Instant::now();
    let budget = Duration::try_from_secs_f64(request.budget_seconds)
        .map_err(|_| Failure::of("the budget is no time", None))?;
    let mut run = None;
    let mut folder = None;
    let line = match &request.subject {
        DiagnoseSubject::Backup { .. } => None,
        DiagnoseSubject::Line(line) => Some(line::without_times(line).to_owned()),
        DiagnoseSubject::Process(pid) => {
            let attached = running::attach(*pid, budget.mul_f64(0.5), cancel)?;
            run = Some(attached.run);
            folder = attached.folder;
            Some(attached.line)
        }
    };
    let mut typed = line.as_deref().map(read).transpose()?;
    if let (Some(typed), Some(folder)) = (&mut typed, &folder) {
        // Its paths are those of its own folder.
        typed.sources.iter_mut().for_each(|path| *path = folder.join(&*path));
        if let TypedTarget::Path(path) = &mut typed.target {
            *path = folder.join(&*path);
        }
    }
    let (sources, to) = ends(&request.subject, typed.as_ref());
    // Before anything is run.
    check_sources(&sources, &request.subject, line.as_deref())?;
    if let (true, Some(line)) = (request.runs, &line) {
        run = Some(running::run(line, cancel)?);
    }
    let mut found = source::look(&sources, reads_as(typed.as_ref()), budget, cancel)
        .map_err(|error| Failure::new(&error, source_hint(&error)))?;
    if let (DiagnoseSubject::Process(_), Some(run)) = (&request.subject, &run) {
        running::leave_out(run, &mut found);
    }
    let chain = chain(request, &sources, &to, typed.as_ref(), &found)?;
    let path = sources[0].clone();
    let read_ahead_path = settable(&path).then_some(path.as_path());
    let absent = crate::explain::absent();
    let own = typed.as_ref().and_then(|typed| compressor::own(typed, &found));
    let mut ground =
        Ground { typed: typed.as_ref(), read_ahead_path, absent: &absent, own, fastest: None };
    let failed = |error| Failure::new(&error, None);
    let mut ranking = rank(&chain, &ground).map_err(failed)?;
    let mut other = None;
    if let (Some(typed), true) = (&typed, compressor::limits(&ranking)) {
        let tried = compressor::alternatives(typed, &found, &absent);
        ground.fastest = tried.fastest;
        other = tried.other_format;
        ranking = rank(&chain, &ground).map_err(failed)?;
    }
    let mut findings = ranking.findings(&chain, Some(&found));
    findings.extend(other);
    if let Some(run) = &run {
        running::compare(run, &chain, &ranking, &mut findings);
    }
    if let (true, Some(line)) = (typed.as_ref().is_some_and(|it| it.skips_data), &line) {
        findings.insert(0, diagnosis::words::not_read(line));
    }
    let trial = trying::Trial {
        sources: &sources,
        line: line.as_deref().filter(|_| matches!(request.subject, DiagnoseSubject::Line(_))),
        chain: &chain,
        budget,
    };
    let tried = if request.tries { Some(trial.first(&ranking, &found, cancel)?) } else { None };
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Diagnosed { line, chain, found, ranking, findings, run, tried, seconds })
}

fn read(line: &str) -> Result<Typed, Failure> {
    line::typed(line).ok_or_else(|| {
        let message = format!("{line:?} is not one pipeline");
        Failure::of(message, Some("put one pipeline in quotes, without ; && and &"))
    })
}

fn source_hint(error: &source::SourceError) -> Option<String> {
    match error {
        source::SourceError::Empty { .. } => Some("name a folder or a file with data".to_owned()),
        _ => None,
    }
}

/// That there are sources, and all of them exist.
fn check_sources(
    sources: &[PathBuf],
    subject: &DiagnoseSubject,
    line: Option<&str>,
) -> Result<(), Failure> {
    if sources.is_empty() {
        return Err(no_source(subject, line));
    }
    for path in sources {
        rustix::fs::stat(path).map_err(|error| {
            let why = crate::failure::with_causes(&std::io::Error::from(error));
            let hint = match subject {
                DiagnoseSubject::Line(_) => "the line reads this path; type it where it is run",
                DiagnoseSubject::Process(_) => {
                    "the line of the process has this path: it may be gone, or a container's"
                }
                DiagnoseSubject::Backup { .. } => {
                    "name what is backed up first: takeup diagnose SOURCE TARGET"
                }
            };
            Failure::of(format!("cannot read {}: {why}", path.display()), Some(hint))
        })?;
    }
    Ok(())
}

/// What to do where no source is known. What runs already is never to be run a second time: it may
/// be a server, whose files another one must not touch.
fn no_source(subject: &DiagnoseSubject, line: Option<&str>) -> Failure {
    if let DiagnoseSubject::Process(pid) = subject {
        let message = format!("the line of process {pid} does not say which files it reads");
        let hint = format!(
            "takeup capture --pid {pid} shows what it does to its files, takeup watch what the \
             disks do meanwhile"
        );
        return Failure::of(message, Some(&hint));
    }
    let line = line.unwrap_or_default();
    let message = "the line does not say which files it reads";
    let first = line.split('|').next().unwrap_or_default();
    if first.contains("$(") || first.contains('`') {
        let hint = "nothing of the line is run: write a name in the place of $(...)";
        return Failure::of(message, Some(hint));
    }
    let line = shown(line);
    let hint = format!(
        "takeup explain {line} looks at its programs; it runs the line, which writes its target"
    );
    Failure::of(message, Some(&hint))
}

fn shown(line: &str) -> String {
    experiment::judgement::quoted(line)
}

/// What is read, and where it goes.
fn ends(subject: &DiagnoseSubject, typed: Option<&Typed>) -> (Vec<PathBuf>, TypedTarget) {
    match (subject, typed) {
        (_, Some(typed)) => (typed.sources.clone(), typed.target.clone()),
        (DiagnoseSubject::Backup { sources, target }, None) => {
            let target = target.clone().map_or(TypedTarget::Nowhere, TypedTarget::Path);
            (sources.clone(), target)
        }
        _ => (Vec::new(), TypedTarget::Nowhere),
    }
}

/// How the first program of a line reads, whatever it does then, or `takeup backup`.
fn reads_as(typed: Option<&Typed>) -> ReadsAs {
    let first = typed.and_then(|it| it.programs.first());
    first.map_or(ReadsAs::of("takeup", 1 << 20), |it| ReadsAs::of(&it.name, it.read_bytes))
}

/// Whether the kernel's read-ahead decides how files of this path are read.
fn settable(path: &Path) -> bool {
    !crate::tune::read_ahead::has_own_reader(path)
        && storage::layers::Storage::of(path).is_ok_and(|storage| storage.read_ahead.is_some())
}

fn chain(
    request: &DiagnoseRequest,
    sources: &[PathBuf],
    to: &TypedTarget,
    typed: Option<&Typed>,
    found: &Found,
) -> Result<Chain, Failure> {
    let shown: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    let tree = &found.tree;
    let is_takeup =
        typed.is_none_or(|it| it.programs.first().is_some_and(|it| it.name == "takeup"));
    let source = Source {
        shown: shown.join(", "),
        large_bytes: tree.large_bytes,
        small_bytes: tree.small_bytes,
        small_files: tree.small_files,
        is_whole: tree.is_whole,
        stream: found.stream.clone(),
        small: found.small,
        reading: if is_takeup { Reading::ManyAtOnce } else { Reading::OneByOne },
    };
    let links = match typed {
        None => vec![link(
            &TypedProgram {
                name: "takeup".to_owned(),
                stage: 0,
                words: Vec::new(),
                role: Role::Reads,
                read_bytes: 1 << 20,
                write_bytes: 1 << 20,
                buffer_bytes: line::RING_BYTES,
            },
            found,
        )],
        Some(typed) => typed.programs.iter().map(|program| link(program, found)).collect(),
    };
    let trial =
        if request.writes { target::WriteTrial::Allowed } else { target::WriteTrial::Refused };
    let target = target::of(to, sources, found, trial)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    Ok(Chain { source, links, target, processors: (cores - found.others_cores).max(1.0) })
}

/// A program with what it costs.
fn link(program: &TypedProgram, found: &Found) -> Link {
    let mut shown = program.name.clone();
    let work = match program.role {
        Role::Reads | Role::Passes => Work::Passes,
        Role::Holds(bytes_per_second) => Work::Holds { bytes_per_second },
        Role::Unknown => Work::Unknown("it was not run".to_owned()),
        Role::Compresses => {
            match diagnosis::program::try_compressor(&program.words, &found.sample) {
                Ok(tried) => Work::Compresses {
                    rate: tried.rate,
                    ratio: tried.ratio,
                    threads: compressor::threads(&program.words),
                },
                Err(why) => Work::Unknown(format!("its trial showed nothing: {why}")),
            }
        }
    };
    if shown.is_empty() {
        shown = "?".to_owned();
    }
    Link {
        shown,
        stage: program.stage,
        work,
        read_bytes: program.read_bytes,
        write_bytes: program.write_bytes,
        input_bytes: program.buffer_bytes.max(PIPE_BYTES),
    }
}

/// A finding of what is not known.
fn not_known(what: impl Into<String>) -> Finding {
    Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what)
}
