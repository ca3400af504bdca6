//! Commands as an executor runs them: real shells, GNU tar, dd, and programs that fail or hang.

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use experiment::plan::commands::Command;
use experiment::record::{Factor, Level, cell};

fn plan(lines: &[(&str, &str)]) -> Plan {
    let command = |(name, line): &(&str, &str)| Command {
        name: (*name).to_owned(),
        line: (*line).to_owned(),
        before: Vec::new(),
    };
    let commands = Commands {
        shell: "bash".into(),
        failing: Failing::AnyProgram,
        before: Vec::new(),
        after: Vec::new(),
        commands: lines.iter().map(command).collect(),
    };
    Plan {
        kind: "run".into(),
        title: String::new(),
        paths: Vec::new(),
        length_bytes: 0,
        seed: 1,
        stop: Stop::default(),
        random_reads: 0,
        run_seconds: 0.0,
        factors: vec![commands.factor()],
        commands: Some(commands),
    }
}

fn execute(plan: &Plan, name: &str) -> Result<RunRecord, ProgramsError> {
    let mut executor = ProgramsExecutor::new(plan, CommandOutput::Discarded)?;
    executor.execute(&cell(&[("command", name)]), &Cancel::new())
}

/// The slow program is known: what is before it waits for it, what is behind it waits, too.
#[test]
fn the_pipes_of_a_pipeline_show_its_slow_program() {
    let slow = "while head -c 65536 | grep -c x; do sleep 0.02; done";
    let line = format!("head -c 4M /dev/zero | tr '\\0' x | ({slow}) | cat >/dev/null");
    let run = execute(&plan(&[("a", &line)]), "a").unwrap();
    let pipe = |from: &str| {
        let found = run.pipes.iter().find(|pipe| pipe.from == from);
        found.unwrap_or_else(|| panic!("{from} in {:?}", run.pipes))
    };
    assert!(pipe("tr").full_percent.unwrap() > 60.0, "{:?}", run.pipes);
    let behind = run.pipes.iter().find(|pipe| pipe.to == "cat").unwrap();
    assert!(behind.empty_percent.unwrap() > 90.0, "{:?}", run.pipes);
    let names: Vec<&str> = run.programs.iter().map(|program| &program.name[..]).collect();
    assert!(names.contains(&"tr") && names.contains(&"cat"), "{names:?}");
    let written = |name: &str| {
        run.programs.iter().find(|program| program.name == name).unwrap().written_bytes
    };
    assert!(written("tr").unwrap() > 3 << 20, "{:?}", run.programs);
}

#[test]
fn a_program_that_uses_a_core_is_told_with_its_time() {
    let count = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let line = format!("sh -c '{count}'; head -c 2G /dev/zero | cat >/dev/null; :");
    let run = execute(&plan(&[("a", &line)]), "a").unwrap();
    let used = |name: &str| {
        let own = run.programs.iter().filter(|program| program.name == name);
        own.map(|program| program.processor_seconds).sum::<f64>()
    };
    assert!(used("sh") > 0.02 && used("cat") > 0.02, "{:?}", run.programs);
    assert!(run.measures["processor_seconds"] >= used("sh") + used("cat") - 0.05);
    assert_eq!((run.value, run.bytes), (Value::Time, 0));
    assert!(run.speed().unwrap() > 0.0 && run.bytes_per_second().is_none());
}

/// A program of several threads, of which each moves bytes.
#[test]
fn mbuffer_is_one_program_between_two_pipes() {
    testkit::require!(Mbuffer);
    let line = "head -c 300M /dev/zero | mbuffer -q -m 16M | cat >/dev/null";
    let run = execute(&plan(&[("a", line)]), "a").unwrap();
    let of = |name: &str| run.programs.iter().filter(|program| program.name == name).count();
    assert_eq!(["head", "mbuffer", "cat"].map(of), [1, 1, 1], "{:?}", run.programs);
    let ends: Vec<(&str, &str)> =
        run.pipes.iter().map(|pipe| (&pipe.from[..], &pipe.to[..])).collect();
    assert!(ends.contains(&("head", "mbuffer")) && ends.contains(&("mbuffer", "cat")), "{ends:?}");
}

#[test]
fn what_fails_is_no_number_and_says_why() {
    let check = |line: &str, expected: &str| {
        let error = execute(&plan(&[("a", line)]), "a").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("dd if=/no/such of=/dev/null", "the command failed: status 1: dd: failed to open");
    // Also in the middle of a pipeline.
    check("cat /no/such | cat", "status 1: cat: /no/such");
    check("true; no-such-program", "status 127, a program was not found");
    let mut checked = plan(&[("a", "true")]);
    checked.commands.as_mut().unwrap().after = vec!["echo wrong sum >&2; false".into()];
    let error = execute(&checked, "a").unwrap_err().to_string();
    assert!(error.starts_with("the check after the run, ") && error.ends_with(": wrong sum"));
    let mut first = plan(&[("a", "touch made")]);
    first.commands.as_mut().unwrap().before = vec!["exit 7".into()];
    let error = execute(&first, "a").unwrap_err().to_string();
    assert!(error.contains("before the run, \"exit 7\" failed: status 7"), "{error}");
    assert!(!Path::new("made").exists());
    let mut last = plan(&[("a", "cat /no/such | cat")]);
    last.commands.as_mut().unwrap().failing = Failing::LastProgram;
    execute(&last, "a").unwrap();
}

#[test]
fn what_comes_before_a_run_is_not_timed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    let mut plan = plan(&[("a", &format!("cat {}", file.display()))]);
    let commands = plan.commands.as_mut().unwrap();
    commands.before = vec![format!("sleep 1; echo {{command}} >{}", file.display())];
    commands.after = vec![format!("grep -q a {}; sleep 1", file.display())];
    let run = execute(&plan, "a").unwrap();
    assert!(run.seconds < 1.0, "{}", run.seconds);
}

/// A run that is stopped leaves its bound and no process.
#[test]
fn a_run_that_hangs_is_stopped_with_all_of_it() {
    let plan = plan(&[("a", "sleep 2468101 | cat")]);
    let mut executor = ProgramsExecutor::new(&plan, CommandOutput::Discarded).unwrap();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.cancel();
    });
    let begun = Instant::now();
    let error = executor.execute(&cell(&[("command", "a")]), &cancel).unwrap_err();
    assert!(matches!(error, ProgramsError::Stopped(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(executor.unfinished().unwrap().seconds >= 0.3);
    let left = std::process::Command::new("pgrep").args(["-f", "sleep 2468101"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
}

#[test]
fn with_bytes_it_is_a_rate_and_tar_that_reads_nothing_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data"), vec![7u8; 8 << 20]).unwrap();
    let from = directory.path().display();
    let through = format!("tar -b 20 -cf - -C {from} data | cat >/dev/null");
    let lines = [("null", &*format!("tar -cf /dev/null -C {from} data")), ("cat", &*through)];
    let mut plan = plan(&lines);
    plan.length_bytes = 8 << 20;
    plan.paths = vec![directory.path().display().to_string()];
    let run = |name: &str| execute(&plan, name).unwrap();
    let (null, cat) = (run("null"), run("cat"));
    assert!(null.notes.iter().any(|note| note.contains("tar into /dev/null reads nothing")));
    assert!(!cat.notes.iter().any(|note| note.contains("/dev/null")), "{:?}", cat.notes);
    assert_eq!((cat.value, cat.bytes), (Value::Rate, 8 << 20));
    assert!(cat.measures["processor_ns_per_byte"] > 0.0);
    assert!(cat.environment.contains_key("shell"), "{:?}", cat.environment);
}

#[test]
fn all_is_checked_before_the_first_run() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made");
    let touch = format!("touch {}", made.display());
    let check = |change: &dyn Fn(&mut Plan), expected: &str| {
        let mut plan = plan(&[("a", &touch), ("b", "true")]);
        change(&mut plan);
        let error = ProgramsExecutor::new(&plan, CommandOutput::Discarded).map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!made.exists());
    };
    let commands = |plan: &mut Plan| plan.commands.clone().unwrap();
    let with = |change: fn(&mut Commands)| {
        move |plan: &mut Plan| {
            let mut own = commands(plan);
            change(&mut own);
            plan.commands = Some(own);
        }
    };
    check(&with(|all| all.shell = "/no/shell".into()), "shell /no/shell: No such file");
    check(&with(|all| all.commands[1].line = "if".into()), "syntax error");
    check(&with(|all| all.commands[1].line = "tra x".into()), "no program tra");
    check(&with(|all| all.after = vec!["cmp {it}".into()]), "unknown placeholder {it}");
    check(&with(|all| all.before = vec![" ".into()]), "before a run is empty");
    check(&|plan| plan.paths = vec!["/no/such".into()], "/no/such");
    check(&|plan| plan.commands = None, "needs [commands]");
    let numbers = vec![Level::Number(1), Level::Number(2)];
    check(
        &|plan| plan.factors.push(Factor::new("depth", numbers.clone())),
        "nor the lines before it use {depth}",
    );
}
