//! Finds the bottleneck of a pipeline of other programs.
//!
//! The shell runs the pipeline in its own process group ([`loads::programs::group`]). [`Sampler`]
//! samples it meanwhile, and [`judge`] judges the samples; `drive` finds the tape drive that the
//! pipeline writes to.

mod answer;
mod drive;

use std::path::Path;
use std::time::{Duration, Instant};

use experiment::plan::commands::Failing;
use flow::cancel::Cancel;
use loads::programs::group::{self, CommandEnd, GroupedCommand};
use loads::programs::shell::Shell;
use loads::programs::{CommandOutput, ProgramsError};
use pipeline::judge::{Judgement, PROPOSED, judge};
use pipeline::{Look, Sampler, joined, line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outcome::Outcome;

pub use answer::{ExplainAnswer, PipelineRunAnswer};

/// What to explain, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainRequest {
    /// The pipeline or the process.
    pub target: ExplainTarget,
    /// The shell that runs the pipeline; without it `$SHELL`, or `/bin/sh`.
    #[serde(default)]
    pub shell: Option<String>,
    /// Takeup ends the pipeline, or stops looking at a process, after this time.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Run the pipeline first without its last stage.
    #[serde(default)]
    pub baseline: bool,
    /// Run the pipeline again with the proposed change.
    #[serde(default)]
    pub tries: bool,
    /// Print the output of the programs on standard error.
    #[serde(default)]
    pub shows_output: bool,
}

/// What is sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplainTarget {
    /// A line for the shell, which Takeup runs.
    Pipeline(String),
    /// A running process, with all processes that pipes join it to.
    Process(u32),
}

/// Follows the samples of a run.
pub trait SampleObserver {
    /// Another sample was taken.
    fn sampled(&mut self, sampler: &Sampler);
    /// The run is over; another one may follow.
    fn ended(&mut self);
}

/// An observer that shows nothing.
pub(crate) struct Quiet;

impl SampleObserver for Quiet {
    fn sampled(&mut self, _: &Sampler) {}

    fn ended(&mut self) {}
}

/// The runs, and what they mean.
#[derive(Debug)]
pub struct Explained {
    /// The line; none for processes that ran already.
    pub pipeline: Option<String>,
    /// The run of that line.
    pub run: PipelineRun,
    /// The run without the last stage.
    pub baseline: Option<OtherRun>,
    /// The run with the proposed change.
    pub tried: Option<OtherRun>,
    /// How it ended.
    pub end: ExplainEnd,
}

impl Explained {
    /// The line, where it says which files it reads and no change was found for it: then
    /// `takeup diagnose` knows more.
    pub fn readable_line(&self) -> Option<&str> {
        let line = self.pipeline.as_deref().filter(|_| self.end == ExplainEnd::Done)?;
        let reads = diagnosis::line::typed(line).is_some_and(|it| !it.sources.is_empty());
        (reads && self.run.judgement.predicted.is_none()).then_some(line)
    }
}

/// How the runs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainEnd {
    /// All runs were whole.
    Done,
    /// The pipeline failed, with its exit status in words.
    Failed(String),
    /// A signal stopped it.
    Stopped,
    /// The proposed change could not be inserted into the line, and was not tried.
    NotInserted,
    /// There was no change to try.
    NothingProposed,
}

impl ExplainEnd {
    /// The outcome of the command.
    pub fn outcome(&self) -> Outcome {
        match self {
            ExplainEnd::Done => Outcome::Done,
            ExplainEnd::Failed(_) | ExplainEnd::Stopped => Outcome::Bad,
            ExplainEnd::NotInserted | ExplainEnd::NothingProposed => Outcome::Warned,
        }
    }
}

/// A run of a changed line.
#[derive(Debug)]
pub struct OtherRun {
    pub line: String,
    pub run: PipelineRun,
}

/// The result of one run.
#[derive(Debug)]
pub struct PipelineRun {
    /// The samples.
    pub look: Look,
    /// What they mean.
    pub judgement: Judgement,
    /// User and system time of all programs.
    pub processor_seconds: Option<[f64; 2]>,
    /// How the pipeline failed, if it did.
    pub failed: Option<String>,
    /// Takeup ended it after the requested time.
    pub is_ended: bool,
    /// A signal stopped it.
    pub is_stopped: bool,
}

/// Runs a pipeline and judges it, or samples processes that run already. `cancel` ends the run.
///
/// # Errors
/// When the pipeline cannot be run, the baseline fails, or there is no such process.
pub fn explain(
    request: &ExplainRequest,
    cancel: &Cancel,
    observer: &mut dyn SampleObserver,
) -> Result<Explained, Failure> {
    if (request.baseline || request.tries) && request.seconds.is_some() {
        let message = "runs that are cut off after the same time cannot be compared";
        return Err(Failure::of(message, Some("omit --for, or --baseline and --try")));
    }
    let typed = match &request.target {
        ExplainTarget::Pipeline(typed) => typed,
        ExplainTarget::Process(_) if request.baseline || request.tries => {
            return Err(Failure::of("a running process cannot be run again", None));
        }
        ExplainTarget::Process(pid) => {
            let run = attach(*pid, request.seconds, cancel, observer)?;
            let end = end(request, &run, None);
            return Ok(Explained { pipeline: None, run, baseline: None, tried: None, end });
        }
    };
    if typed.trim().is_empty() {
        return Err(Failure::of("the pipeline is empty", None));
    }
    let mut runner = Runner::new(request, typed, cancel, observer)?;
    let baseline = if request.baseline { Some(runner.baseline(typed)?) } else { None };
    let run = runner.run(typed)?;
    let change = run.judgement.predicted.as_ref().and_then(|it| it.command.clone());
    let may_try = request.tries && run.failed.is_none() && !run.is_stopped;
    let tried = match change.filter(|_| may_try) {
        Some(line) => {
            let run = runner.run(&with_own_path(&line))?;
            Some(OtherRun { line, run })
        }
        None => None,
    };
    let end = end(request, &run, tried.as_ref());
    Ok(Explained { pipeline: Some(typed.clone()), run, baseline, tried, end })
}

fn end(request: &ExplainRequest, run: &PipelineRun, tried: Option<&OtherRun>) -> ExplainEnd {
    let all = [Some(run), tried.map(|tried| &tried.run)];
    if let Some(how) = all.into_iter().flatten().find_map(|run| run.failed.clone()) {
        return ExplainEnd::Failed(how);
    }
    if run.is_stopped {
        return ExplainEnd::Stopped;
    }
    match &run.judgement.predicted {
        _ if !request.tries || tried.is_some() => ExplainEnd::Done,
        Some(_) => ExplainEnd::NotInserted,
        None => ExplainEnd::NothingProposed,
    }
}

/// Programs that could be proposed but are not installed.
pub(crate) fn absent() -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    let is_absent = |program: &&&str| !folders.iter().any(|it| it.join(program).is_file());
    PROPOSED.iter().filter(is_absent).copied().collect()
}

/// The line with the path of this program instead of `takeup`, which may not be on the PATH.
fn with_own_path(line: &str) -> String {
    let own = std::env::current_exe().unwrap_or_else(|_| Path::new("takeup").to_owned());
    let own = own.to_string_lossy().replace('\'', "'\\''");
    line.replace("| takeup pipe ", &format!("| '{own}' pipe "))
}

/// Runs pipelines.
struct Runner<'a> {
    shell: Shell,
    output: CommandOutput,
    span: Option<Duration>,
    cancel: &'a Cancel,
    observer: &'a mut dyn SampleObserver,
}

impl<'a> Runner<'a> {
    fn new(
        request: &ExplainRequest,
        typed: &str,
        cancel: &'a Cancel,
        observer: &'a mut dyn SampleObserver,
    ) -> Result<Runner<'a>, Failure> {
        let failure = |error: ProgramsError| Failure::new(&error, None);
        let usual = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
        let shell = request.shell.clone().or_else(usual).unwrap_or_else(|| "/bin/sh".to_owned());
        let shell = Shell::new(&shell, Failing::AnyProgram).map_err(failure)?;
        shell.check("the pipeline", typed).map_err(failure)?;
        let output =
            if request.shows_output { CommandOutput::Shown } else { CommandOutput::Discarded };
        let span =
            request.seconds.map(|it| Duration::try_from_secs_f64(it).unwrap_or(Duration::MAX));
        Ok(Runner { shell, output, span, cancel, observer })
    }

    /// Runs all stages but the last one.
    fn baseline(&mut self, typed: &str) -> Result<OtherRun, Failure> {
        let stages = line::stages(typed).unwrap_or_default();
        let line = line::without_last(&stages).ok_or_else(|| {
            let hint = "use --baseline only with one pipeline of two stages or more";
            Failure::of("--baseline: the pipeline has no last stage to remove", Some(hint))
        })?;
        let run = self.run(&line)?;
        if let Some(how) = &run.failed {
            return Err(Failure::of(format!("{line:?} failed: {how}"), None));
        }
        if run.is_stopped {
            return Err(Failure::of("stopped before the pipeline ran", None));
        }
        Ok(OtherRun { line, run })
    }

    fn run(&mut self, line: &str) -> Result<PipelineRun, Failure> {
        let arguments = self.shell.arguments(line);
        let job = GroupedCommand { arguments: &arguments, output: self.output };
        let mut sampler = Sampler::of_shell(&arguments);
        let start = Instant::now();
        let over = Cancel::new();
        let mut is_ended = false;
        let ended = group::run(job, &over, &mut |shell| {
            sampler.look(shell);
            self.observer.sampled(&sampler);
            let is_over = self.span.is_some_and(|span| start.elapsed() >= span);
            is_ended |= is_over;
            if is_over || self.cancel.check().is_err() {
                sampler.stop();
                over.cancel();
            }
        });
        self.observer.ended();
        let mut look = sampler.finish();
        let (failed, processor_seconds) = match ended {
            Ok(ended) => {
                look.seconds = ended.seconds;
                (failure_of(&ended), seconds(&ended))
            }
            Err(ProgramsError::Stopped(_)) => (None, None),
            Err(error) => return Err(Failure::new(&error, None)),
        };
        look.add_missed(line);
        name_parts_of_shell(&mut look, &arguments, line);
        (look.drive, look.absent) = (drive::behind(&look), absent());
        let judgement = judge(&look, Some(line));
        let is_stopped = self.cancel.check().is_err();
        Ok(PipelineRun { look, judgement, processor_seconds, failed, is_ended, is_stopped })
    }
}

/// The shell itself runs a loop or a list of commands, and its command line is the whole line:
/// names such a stage by the words that were typed.
fn name_parts_of_shell(look: &mut Look, shell: &[String], line: &str) {
    let typed = line::stages(line).filter(|typed| typed.len() == look.stages.len());
    for (at, stage) in look.stages.iter_mut().enumerate() {
        if stage.arguments == shell {
            let typed = typed.as_ref().map(|typed| typed[at].clone());
            stage.command = typed.unwrap_or_else(|| "(the shell)".to_owned());
        }
    }
}

/// A program whose reader stopped early, such as `head`, did not fail.
const STATUS_OF_SIGPIPE: i32 = 141;

fn failure_of(ended: &CommandEnd) -> Option<String> {
    if ended.status.code() == Some(STATUS_OF_SIGPIPE) {
        return None;
    }
    let said = if ended.said.is_empty() { String::new() } else { format!(": {}", ended.said) };
    (!ended.status.success()).then(|| format!("{}{said}", ended.how()))
}

fn seconds(ended: &CommandEnd) -> Option<[f64; 2]> {
    ended.user_and_system_ns.map(|both| both.map(|ns| ns as f64 / 1e9))
}

/// Samples processes that already run.
fn attach(
    pid: u32,
    seconds: Option<f64>,
    cancel: &Cancel,
    observer: &mut dyn SampleObserver,
) -> Result<PipelineRun, Failure> {
    if machine::processes::ProcessTimes::of(pid).is_none() {
        let hint = "list the processes: ps -e; a container may hide those of other users";
        return Err(Failure::of(format!("there is no process {pid}"), Some(hint)));
    }
    let mut sampler = Sampler::of_processes(joined(pid));
    let start = Instant::now();
    let mut is_ended = false;
    sampler.look(pid);
    while sampler.is_running() && cancel.check().is_ok() {
        if seconds.is_some_and(|seconds| start.elapsed().as_secs_f64() >= seconds) {
            is_ended = true;
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        sampler.look(pid);
        observer.sampled(&sampler);
    }
    observer.ended();
    let mut look = sampler.finish();
    (look.drive, look.absent) = (drive::behind(&look), absent());
    let judgement = judge(&look, None);
    // A signal ends the sampling only, not the processes.
    let (processor_seconds, failed, is_stopped) = (None, None, false);
    Ok(PipelineRun { look, judgement, processor_seconds, failed, is_ended, is_stopped })
}
