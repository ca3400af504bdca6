//! Commands and whole pipelines side by side.

use std::fs;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use base::quantity::Size;
use experiment::plan::PlanError;
use experiment::plan::commands::{COMMAND, Command, Commands};
use experiment::plan::{Plan, Stop};
use experiment::quantities;
use experiment::record::{Factor, Level};
use loads::programs::{CommandOutput, ProgramsError, ProgramsExecutor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BegunExperiment, ExperimentDone, ExperimentRequest, ExperimentSurroundings, SHOW_PLAN,
    absolute, factor, numbers,
};
use crate::failure::Failure;

pub use experiment::plan::commands::Failing;

/// Which commands to compare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BenchRunRequest {
    /// The commands by name. The first is what is in force today.
    pub commands: Vec<NamedText>,
    /// Factors with their levels, separated by commas; commands use them as `{NAME}`.
    pub vary: Vec<NamedText>,
    /// Run before every run, not timed.
    pub before: Vec<String>,
    /// Run before every run of the command of this name.
    pub each_before: Vec<NamedText>,
    /// Run after every run, not timed: the check of its result.
    pub after: Vec<String>,
    /// Bytes that every run moves.
    pub bytes: Option<u64>,
    /// The same, as what this file, device or tree of files holds now.
    pub bytes_of: Option<PathBuf>,
    /// Paths of devices whose counters are read.
    pub watch: Vec<PathBuf>,
    /// The shell; the default is `$SHELL`, or `/bin/sh`.
    pub shell: Option<String>,
    /// Which program of a pipeline makes a run fail.
    pub failing: Failing,
    /// Whether the output of the commands is shown on standard error.
    pub show_output: bool,
    /// Repeats, time limits, files.
    pub experiment: ExperimentRequest,
}

/// A text and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedText {
    pub name: String,
    pub text: String,
}

/// The plan: from its file, or of the request.
///
/// # Errors
/// When the plan cannot be read or run, or a factor or a number of bytes is not known.
pub fn plan(request: &BenchRunRequest) -> Result<Plan, Failure> {
    request.experiment.plan_or("run", || made(request))
}

/// Runs the experiment to its end.
///
/// # Errors
/// When it cannot begin or be recorded, or no run succeeded.
pub fn run(
    begun: BegunExperiment,
    request: &BenchRunRequest,
    surroundings: &ExperimentSurroundings<'_>,
) -> Result<ExperimentDone, Failure> {
    begun.run(surroundings, |plan, _| executor(plan, request))
}

/// What runs the cells of a plan.
///
/// # Errors
/// When a command cannot run.
pub fn executor(plan: &Plan, request: &BenchRunRequest) -> Result<ProgramsExecutor, Failure> {
    let output = if request.show_output { CommandOutput::Shown } else { CommandOutput::Discarded };
    ProgramsExecutor::new(plan, output).map_err(failure)
}

fn failure(error: ProgramsError) -> Failure {
    let hint = match &error {
        ProgramsError::Command(PlanError::UnknownPlaceholder { .. }) => {
            "define it with --vary; write {{ for a brace of the program itself"
        }
        ProgramsError::Command(PlanError::NotVaried { .. }) => {
            "put {NAME} into the command, --before or --each-before: in --after alone it changes \
             nothing in a run. Commands that do not use it need an experiment of their own, or one \
             --command for each level"
        }
        ProgramsError::NoCommands => SHOW_PLAN,
        _ => return Failure::new(&error, None),
    };
    Failure::new(&error, Some(hint.to_owned()))
}

fn made(request: &BenchRunRequest) -> Result<Plan, Failure> {
    let commands = commands(request)?;
    let mut factors = vec![commands.factor()];
    for vary in &request.vary {
        factors.push(varied(vary)?);
    }
    let length_bytes = match (request.bytes, &request.bytes_of) {
        (Some(bytes), _) => bytes,
        (None, Some(path)) => bytes_of(path)?,
        (None, None) => 0,
    };
    Ok(Plan {
        paths: request.watch.iter().map(|path| absolute(path)).collect(),
        length_bytes,
        commands: Some(commands),
        factors,
        ..request.experiment.empty_plan("run", Stop::default())
    })
}

fn commands(request: &BenchRunRequest) -> Result<Commands, Failure> {
    let one = |named: &NamedText| Command {
        name: named.name.clone(),
        line: named.text.clone(),
        before: Vec::new(),
    };
    let mut commands: Vec<Command> = request.commands.iter().map(one).collect();
    for own in &request.each_before {
        let found = commands.iter_mut().find(|command| command.name == own.name);
        let command = found.ok_or_else(|| {
            Failure::of(format!("--each-before {}: no such command", own.name), None)
        })?;
        command.before.push(own.text.clone());
    }
    let usual = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
    let shell = request.shell.clone().or_else(usual).unwrap_or_else(|| "/bin/sh".to_owned());
    Ok(Commands {
        shell,
        failing: request.failing,
        before: request.before.clone(),
        after: request.after.clone(),
        commands,
    })
}

/// The levels are numbers if all are plain numbers, bytes if all are sizes, and otherwise words.
fn varied(vary: &NamedText) -> Result<Factor, Failure> {
    let name = vary.name.clone();
    let wrong = |why: &str| Err(Failure::of(format!("--vary {name}: {why}"), None));
    let is_plain = |letter: char| letter.is_ascii_lowercase() || "_0123456789".contains(letter);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(is_plain) {
        return wrong("use only lower-case letters, digits and _ in a name");
    }
    let (in_bytes, plain) = (format!("{}_bytes", name.trim_end_matches("_bytes")), name.clone());
    if [&in_bytes, &plain].iter().any(|name| quantities::factor(name).is_condition)
        || name == COMMAND
    {
        return wrong("this name is reserved; choose another one");
    }
    let texts: Vec<&str> = vary.text.split(',').map(str::trim).collect();
    if texts.iter().any(|text| text.is_empty()) {
        return wrong("a level is empty");
    }
    let numbers: Option<Vec<u64>> = texts.iter().map(|text| text.parse().ok()).collect();
    let sizes: Option<Vec<u64>> =
        texts.iter().map(|text| Some(text.parse::<Size>().ok()?.0)).collect();
    let (name, levels) = match (numbers, sizes) {
        (Some(numbers), _) => (plain, self::numbers(&numbers)),
        (None, Some(sizes)) => (in_bytes, self::numbers(&sizes)),
        _ => (plain, texts.iter().map(|text| Level::Text((*text).to_owned())).collect()),
    };
    factor(&name, levels, None).map_or_else(|| wrong("a level is empty"), Ok)
}

/// Bytes of a file, a block device, or of all files of a tree.
fn bytes_of(path: &Path) -> Result<u64, Failure> {
    let bytes = counted_bytes(path)
        .map_err(|error| Failure::of(format!("--bytes-of {}: {error}", path.display()), None))?;
    if bytes == 0 {
        let path = path.display();
        return Err(Failure::of(format!("--bytes-of {path}: it is empty"), None));
    }
    Ok(bytes)
}

fn counted_bytes(path: &Path) -> std::io::Result<u64> {
    let status = fs::metadata(path)?;
    if status.file_type().is_block_device() {
        return fs::File::open(path)?.seek(SeekFrom::End(0));
    }
    if !status.is_dir() {
        return Ok(status.len());
    }
    let mut bytes = 0;
    let mut waiting = vec![path.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let status = entry.metadata()?;
            if status.is_dir() {
                waiting.push(entry.path());
            } else if status.is_file() {
                bytes += status.len();
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbers_bytes_or_words() {
        let made = |text: &str| {
            let (name, text) = text.split_once('=').unwrap();
            varied(&NamedText { name: name.into(), text: text.into() })
        };
        let block = made("block=64k,10k").unwrap();
        assert_eq!(block.name, "block_bytes");
        assert_eq!(block.levels, [Level::Number(10 << 10), Level::Number(64 << 10)]);
        assert_eq!(made("threads=1,4").unwrap().levels, [Level::Number(1), Level::Number(4)]);
        let words = made("way=fast,best").unwrap();
        assert_eq!(words.levels, [Level::Text("fast".into()), Level::Text("best".into())]);
        for wrong in ["Block=1", "a=", "a=1,,2", "command=a,b", "medium=a,b", "file=1M,2M"] {
            assert!(made(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tree_has_the_bytes_of_its_files() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/b"), [1; 300]).unwrap();
        fs::write(directory.path().join("c"), [1; 30]).unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("loop")).unwrap();
        assert_eq!(counted_bytes(directory.path()).unwrap(), 330);
        assert!(bytes_of(&directory.path().join("none")).is_err());
    }
}
