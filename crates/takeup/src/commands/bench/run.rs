//! `takeup bench run`: commands and whole pipelines side by side.

use std::fs;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use experiment::plan::Plan;
use experiment::plan::commands::{COMMAND, Command, CommandError, Commands, Failing};
use experiment::quantities;
use experiment::record::{Factor, Level};
use loads::programs::{CommandOutput, ProgramsError, ProgramsExecutor};

use super::options::ExperimentArgs;
use crate::outcome::end;
use arguments::quantity::Size;
use service::failure::Failure;
use service::outcome::Outcome;

/// Compare commands and whole pipelines, with what their programs and the device do meanwhile
///
/// Each --command is a level of one factor and runs in the shell. --before runs before every run,
/// and --after checks its result; neither is timed. If a command or its check fails, the run has
/// failed. With --bytes or --bytes-of Takeup compares rates, otherwise times. It records processor
/// time and bytes of each program, and how full the pipes between them are. It discards what the
/// commands print, unless --show-output is given. A command has no terminal and no input; Takeup
/// kills it with all its programs when its time is over.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench run --bytes-of /srv --before 'echo 3 >/proc/sys/vm/drop_caches' --watch /srv \\
      --command tar='tar -cf - /srv | cat >/dev/null' \\
      --command takeup='takeup backup /srv --to - | cat >/dev/null'
  takeup bench run --bytes 4G --vary block=10k,64k,256k --watch /dev/nst0 \\
      --before 'mt -f /dev/nst0 rewind' --after 'mt -f /dev/nst0 status' \\
      --command tar='tar -b {block/512} -cf /dev/nst0 /srv'
  takeup bench run --bytes-of big.tar --after 'cmp big.tar /mnt/out' \\
      --command dd='dd if=big.tar bs=1M of=/mnt/out conv=fsync' \\
      --command mbuffer='mbuffer -q -i big.tar -o /mnt/out; sync /mnt/out' \\
      --each-before mbuffer='rm -f /mnt/out'
  takeup report takeup-bench-run.ndjson --html report.html

GNU tar whose archive is /dev/null does not read the files: put a pipe in between.")]
pub struct RunArgs {
    /// A command and its name; may be given again. The first is what is in force today
    #[arg(long = "command", value_name = "NAME=LINE", required_unless_present = "plan")]
    commands: Vec<Named>,
    /// A factor with its levels; commands use it as {NAME}, or as {NAME/512} for a part of a
    /// number; may be given again. Sizes become bytes
    #[arg(long, value_name = "NAME=LIST")]
    vary: Vec<Named>,
    /// Runs before every run, not timed; may be given again
    #[arg(long, value_name = "LINE")]
    before: Vec<String>,
    /// Runs before every run of one command, after --before
    #[arg(long, value_name = "NAME=LINE")]
    each_before: Vec<Named>,
    /// Runs after every run, not timed; if it fails, the run has failed. May be given again
    #[arg(long, value_name = "LINE")]
    after: Vec<String>,
    /// Bytes that every run moves
    #[arg(long, value_name = "SIZE", conflicts_with = "bytes_of")]
    bytes: Option<Size>,
    /// Bytes that every run moves: what this file, device or tree of files holds now
    #[arg(long, value_name = "PATH")]
    bytes_of: Option<PathBuf>,
    /// Read the counters of the device behind this path, or of a tape drive; may be given again
    #[arg(long, value_name = "PATH")]
    watch: Vec<PathBuf>,
    /// The shell [default: $SHELL, or /bin/sh]
    #[arg(long, value_name = "SHELL")]
    shell: Option<String>,
    /// Only the last program of a pipeline has to succeed
    #[arg(long)]
    last_program_only: bool,
    /// Show what the commands print, on standard error
    #[arg(long)]
    show_output: bool,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// `NAME=TEXT` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    text: String,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let is_word = |name: &&str| !name.is_empty() && !name.contains(char::is_whitespace);
        let parts = text.split_once('=').filter(|(name, _)| is_word(name));
        let (name, text) = parts.ok_or("expected a name and =, for example tar='tar -cf x y'")?;
        Ok(Named { name: name.to_owned(), text: text.to_owned() })
    }
}

/// Runs the command.
pub fn run(arguments: &RunArgs) -> ExitCode {
    end(measure(arguments), "bench run", arguments.experiment.form())
}

fn measure(arguments: &RunArgs) -> Result<Outcome, Failure> {
    let plan = match arguments.experiment.plan_from_file("run")? {
        Some(plan) => plan,
        None => plan(arguments)?,
    };
    let output =
        if arguments.show_output { CommandOutput::Shown } else { CommandOutput::Discarded };
    super::experiment(plan, &arguments.experiment, |plan, _| {
        ProgramsExecutor::new(plan, output).map_err(failure)
    })
}

fn failure(error: ProgramsError) -> Failure {
    let hint = match &error {
        ProgramsError::Command(CommandError::Unknown { .. }) => {
            "define it with --vary; write {{ for a brace of the program itself"
        }
        ProgramsError::Command(CommandError::NotVaried { .. }) => {
            "put {NAME} into the command, --before or --each-before: in --after alone it changes \
             nothing in a run. Commands that do not use it need an experiment of their own, or one \
             --command for each level"
        }
        ProgramsError::NoCommands => "use --print-plan to see how a plan is written",
        _ => return Failure::new(&error, None),
    };
    Failure::new(&error, Some(hint.to_owned()))
}

fn plan(arguments: &RunArgs) -> Result<Plan, Failure> {
    let commands = commands(arguments)?;
    let mut factors = vec![commands.factor()];
    for vary in &arguments.vary {
        factors.push(varied(vary)?);
    }
    let length_bytes = match (&arguments.bytes, &arguments.bytes_of) {
        (Some(size), _) => size.0,
        (None, Some(path)) => bytes_of(path)?,
        (None, None) => 0,
    };
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Ok(Plan {
        kind: "run".to_owned(),
        title: arguments.experiment.title.clone(),
        paths: arguments.watch.iter().map(absolute).map(|it| it.display().to_string()).collect(),
        length_bytes,
        seed: arguments.experiment.seed(),
        stop: arguments.experiment.stop(),
        random_reads: 0,
        run_seconds: 0.0,
        commands: Some(commands),
        factors,
    })
}

fn commands(arguments: &RunArgs) -> Result<Commands, Failure> {
    let one = |named: &Named| Command {
        name: named.name.clone(),
        line: named.text.clone(),
        before: Vec::new(),
    };
    let mut commands: Vec<Command> = arguments.commands.iter().map(one).collect();
    for own in &arguments.each_before {
        let found = commands.iter_mut().find(|command| command.name == own.name);
        let command = found.ok_or_else(|| {
            Failure::of(format!("--each-before {}: no such command", own.name), None)
        })?;
        command.before.push(own.text.clone());
    }
    let usual = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
    let shell = arguments.shell.clone().or_else(usual).unwrap_or_else(|| "/bin/sh".to_owned());
    Ok(Commands {
        shell,
        failing: if arguments.last_program_only {
            Failing::LastProgram
        } else {
            Failing::AnyProgram
        },
        before: arguments.before.clone(),
        after: arguments.after.clone(),
        commands,
    })
}

/// The levels are numbers if all are plain numbers, bytes if all are sizes, and otherwise words.
fn varied(vary: &Named) -> Result<Factor, Failure> {
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
        (Some(numbers), _) => (plain, super::options::numbers(numbers)),
        (None, Some(sizes)) => (in_bytes, super::options::numbers(sizes)),
        _ => (plain, texts.iter().map(|text| Level::Text((*text).to_owned())).collect()),
    };
    super::options::factor(&name, levels, None).map_or_else(|| wrong("a level is empty"), Ok)
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
        let made = |text: &str| varied(&text.parse().unwrap());
        let block = made("block=64k,10k").unwrap();
        assert_eq!(block.name, "block_bytes");
        assert_eq!(block.levels, [Level::Number(10 << 10), Level::Number(64 << 10)]);
        assert_eq!(made("threads=1,4").unwrap().levels, [Level::Number(1), Level::Number(4)]);
        let words = made("way=fast,best").unwrap();
        assert_eq!(words.levels, [Level::Text("fast".into()), Level::Text("best".into())]);
        for wrong in ["Block=1", "a=", "a=1,,2", "command=a,b", "medium=a,b", "file=1M,2M"] {
            assert!(made(wrong).is_err(), "{wrong}");
        }
        assert!("tar -cf x=y".parse::<Named>().is_err());
        assert!("tar".parse::<Named>().is_err());
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
