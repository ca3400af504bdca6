//! `takeup explain`: finds the bottleneck of a pipeline of other programs.
//!
//! The shell runs the pipeline in its own process group ([`loads::programs::group`]). [`Sampler`]
//! samples it meanwhile, [`judge`] judges the samples, and [`text`] prints the result; [`live`]
//! prints the samples so far, [`drive`] finds the tape drive that the pipeline writes to.

mod drive;
mod live;
mod text;

use crate::exit_code::FailureExitCode as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use experiment::plan::commands::Failing;
use flow::cancel::Cancel;
use loads::programs::group::{self, CommandEnd, GroupedCommand};
use loads::programs::shell::Shell;
use loads::programs::{CommandOutput, ProgramsError};
use pipeline::judge::{Judgement, PROPOSED, judge};
use pipeline::{Look, Sampler, joined, line};
use serde_json::{Value, json};

use self::live::Live;
use crate::exit_code::{FAILED, WARNED};
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use arguments::quantity::Span;
use service::failure::Failure;

/// Find the bottleneck of a pipeline, and what would help
///
/// Runs a pipeline of other programs through the shell and samples what each stage does: it works,
/// or waits for its input, for the next stage, for a file or device, or for something else. At the
/// end Takeup names the bottleneck, the change that helps most, and how long the pipeline would
/// then take. The programs have no terminal and no input; their output is discarded without
/// --show-output.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup explain 'tar cf - /srv | gzip -c | dd obs=512k of=/dev/nst0'
  takeup explain --baseline 'tar cf - /srv | zstd -c > /mnt/srv.tar.zst'
  takeup explain --try 'tar cf - /srv | gzip -c > /dev/nst0'
  takeup explain tar cf /dev/nst0 /srv
  takeup explain --try -- tar -b 20 -cf /dev/nst0 /srv
  takeup explain --pid $(pgrep -x gzip) --for 10s
  takeup explain 'pg_dump shop | gzip > shop.gz' --json | jq '.limit, .findings[].sentence'

The pipeline really runs and writes its output. --baseline and --try run it again.")]
pub struct ExplainArgs {
    /// The pipeline in quotes, or the words of a single program, after `--` if it has options
    #[arg(value_name = "PIPELINE", required_unless_present = "pid", conflicts_with = "pid")]
    pipeline: Vec<String>,
    /// Look at a running process, and at all processes that pipes join it to
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// End the pipeline, or stop looking at --pid, after this time, such as 30s, 10m
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Run the pipeline first without its last stage, to measure the rest alone; not with --for:
    /// runs that are cut off after the same time cannot be compared
    #[arg(long, conflicts_with_all = ["pid", "span"])]
    baseline: bool,
    /// Run the pipeline again with the proposed change; not with --for
    #[arg(long = "try", conflicts_with_all = ["pid", "span"])]
    tries: bool,
    /// The shell [default: $SHELL, or /bin/sh]
    #[arg(long, value_name = "SHELL", conflicts_with = "pid")]
    shell: Option<String>,
    /// Print the output of the programs on standard error
    #[arg(long, conflicts_with = "pid")]
    show_output: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// The result of one run.
struct Seen {
    look: Look,
    judgement: Judgement,
    /// User and system time of all programs.
    processor_seconds: Option<[f64; 2]>,
    /// How the pipeline failed, if it did.
    failed: Option<String>,
    /// Takeup ended it after the time of `--for`.
    is_ended: bool,
    /// A signal stopped it.
    is_stopped: bool,
}

/// Runs the command.
pub fn run(arguments: &ExplainArgs) -> ExitCode {
    let failure = match explain(arguments) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    if arguments.json {
        // The message on standard error repeats it if this write fails.
        let _ = to_standard_output(failure.to_json("explain").as_bytes());
    }
    to_standard_error(&failure.to_text());
    failure.exit_code()
}

fn explain(arguments: &ExplainArgs) -> Result<ExitCode, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    if let Some(pid) = arguments.pid {
        let seen = attach(pid, arguments.span, &cancel)?;
        return print(arguments, None, &seen, None, None);
    }
    let typed = &typed(&arguments.pipeline)?;
    let runner = Runner::new(arguments, typed)?;
    let baseline = if arguments.baseline {
        let stages = line::stages(typed).unwrap_or_default();
        let line = line::without_last(&stages).ok_or_else(|| {
            let hint = "use --baseline only with one pipeline of two stages or more";
            Failure::of("--baseline: the pipeline has no last stage to remove", Some(hint))
        })?;
        let seen = runner.run(&line, &cancel)?;
        succeeded(&seen, &line)?;
        if seen.is_stopped {
            return Err(Failure::of("stopped before the pipeline ran", None));
        }
        Some((line, seen))
    } else {
        None
    };
    let seen = runner.run(typed, &cancel)?;
    let change = seen.judgement.predicted.as_ref().and_then(|it| it.command.clone());
    let may_try = arguments.tries && seen.failed.is_none() && !seen.is_stopped;
    let tried = match change.filter(|_| may_try) {
        Some(line) => {
            let tried = runner.run(&with_own_path(&line), &cancel)?;
            Some((line, tried))
        }
        None => None,
    };
    print(arguments, Some(typed), &seen, baseline.as_ref(), tried.as_ref())
}

/// The line to run: one word is a line for the shell, several are the words of one program.
fn typed(words: &[String]) -> Result<String, Failure> {
    let line = match words {
        [line] => line.clone(),
        // A line in quotes contains spaces, and no other word may follow it.
        [first, other, ..] if first.trim().contains(char::is_whitespace) => {
            let hint =
                "put the whole pipeline in quotes; `takeup explain --help` lists the options";
            return Err(Failure::of(format!("unexpected argument {other:?}"), Some(hint)));
        }
        words => words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" "),
    };
    if line.trim().is_empty() {
        return Err(Failure::of("the pipeline is empty", None));
    }
    Ok(line)
}

/// A word, quoted for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Programs that could be proposed but are not installed.
fn absent() -> Vec<&'static str> {
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

fn succeeded(seen: &Seen, line: &str) -> Result<(), Failure> {
    match &seen.failed {
        Some(how) => Err(Failure::of(format!("{line:?} failed: {how}"), None)),
        None => Ok(()),
    }
}

/// Runs pipelines.
struct Runner {
    shell: Shell,
    output: CommandOutput,
    span: Option<Duration>,
}

impl Runner {
    fn new(arguments: &ExplainArgs, typed: &str) -> Result<Runner, Failure> {
        let failure = |error: ProgramsError| Failure::new(&error, None);
        let usual = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
        let shell = arguments.shell.clone().or_else(usual).unwrap_or_else(|| "/bin/sh".to_owned());
        let shell = Shell::new(&shell, Failing::AnyProgram).map_err(failure)?;
        shell.check("the pipeline", typed).map_err(failure)?;
        Ok(Runner {
            shell,
            output: if arguments.show_output {
                CommandOutput::Shown
            } else {
                CommandOutput::Discarded
            },
            span: arguments.span.map(|span| Duration::from_secs_f64(span.0)),
        })
    }

    fn run(&self, line: &str, cancel: &Cancel) -> Result<Seen, Failure> {
        let arguments = self.shell.arguments(line);
        let job = GroupedCommand { arguments: &arguments, output: self.output };
        let mut sampler = Sampler::of_shell(&arguments);
        let start = Instant::now();
        let over = Cancel::new();
        let mut is_ended = false;
        let mut live = Live::new(self.output);
        let ended = group::run(job, &over, &mut |shell| {
            sampler.look(shell);
            live.show(&sampler);
            let is_over = self.span.is_some_and(|span| start.elapsed() >= span);
            is_ended |= is_over;
            if is_over || cancel.check().is_err() {
                sampler.stop();
                over.cancel();
            }
        });
        drop(live);
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
        let is_stopped = cancel.check().is_err();
        Ok(Seen { look, judgement, processor_seconds, failed, is_ended, is_stopped })
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
fn attach(pid: u32, span: Option<Span>, cancel: &Cancel) -> Result<Seen, Failure> {
    if machine::processes::ProcessTimes::of(pid).is_none() {
        let hint = "list the processes: ps -e; a container may hide those of other users";
        return Err(Failure::of(format!("there is no process {pid}"), Some(hint)));
    }
    let mut sampler = Sampler::of_processes(joined(pid));
    let start = Instant::now();
    let mut is_ended = false;
    let mut live = Live::new(CommandOutput::Discarded);
    sampler.look(pid);
    while sampler.is_running() && cancel.check().is_ok() {
        if span.is_some_and(|span| start.elapsed().as_secs_f64() >= span.0) {
            is_ended = true;
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        sampler.look(pid);
        live.show(&sampler);
    }
    drop(live);
    let mut look = sampler.finish();
    (look.drive, look.absent) = (drive::behind(&look), absent());
    let judgement = judge(&look, None);
    // A signal ends the sampling only, not the processes.
    Ok(Seen { look, judgement, processor_seconds: None, failed: None, is_ended, is_stopped: false })
}

fn document(seen: &Seen) -> Value {
    let (look, judgement) = (&seen.look, &seen.judgement);
    json!({
        "seconds": look.seconds,
        "user_seconds": seen.processor_seconds.map(|both| both[0]),
        "system_seconds": seen.processor_seconds.map(|both| both[1]),
        "cores": look.cores,
        "looks": look.looks,
        "looking_seconds": look.looking_seconds,
        "stages": look.stages,
        "pipes": look.pipes,
        "drive": look.drive,
        "limit": judgement.limit.map(|at| at + 1),
        "longest_stage_seconds": judgement.longest_stage_seconds,
        "sum_seconds": judgement.sum_seconds,
        "waiting_seconds": judgement.waiting_seconds,
        "findings": judgement.findings,
        "predicted": judgement.predicted,
        "failed": seen.failed,
        "is_ended": seen.is_ended,
        "is_stopped": seen.is_stopped,
    })
}

type Run = (String, Seen);

fn print(
    arguments: &ExplainArgs,
    typed: Option<&str>,
    seen: &Seen,
    baseline: Option<&Run>,
    tried: Option<&Run>,
) -> Result<ExitCode, Failure> {
    if arguments.json {
        let mut whole = document(seen);
        let other = |run: &Run| {
            let mut document = document(&run.1);
            document["pipeline"] = json!(run.0);
            document
        };
        whole["command"] = json!("explain");
        whole["pipeline"] = json!(typed);
        whole["baseline"] = json!(baseline.map(other));
        whole["tried"] = json!(tried.map(other));
        to_standard_output(format!("{whole:#}\n").as_bytes())?;
    } else {
        let text = text::text(typed, seen, baseline, tried, colour(&std::io::stdout()));
        to_standard_output(text.as_bytes())?;
    }
    let all = [Some(seen), tried.map(|run| &run.1)];
    if let Some(how) = all.into_iter().flatten().find_map(|seen| seen.failed.as_ref()) {
        to_standard_error(&Failure::of(format!("the pipeline failed: {how}"), None).to_text());
        return Ok(ExitCode::from(FAILED));
    }
    if seen.is_stopped {
        to_standard_error("takeup: stopped; the report covers the time until then\n");
        return Ok(ExitCode::from(FAILED));
    }
    if arguments.tries && tried.is_none() {
        let why = match seen.judgement.predicted {
            Some(_) => "Takeup cannot insert the proposed change into this line",
            None => "Takeup has no change to propose",
        };
        to_standard_error(&format!("takeup: nothing was tried: {why}\n"));
        return Ok(ExitCode::from(WARNED));
    }
    Ok(ExitCode::SUCCESS)
}
