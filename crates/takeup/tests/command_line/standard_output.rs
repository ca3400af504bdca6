//! A closed or full standard output loses the output, so no command may report success.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::{small_tree, takeup};

/// Every command, with arguments with which it succeeds and prints something.
const COMMANDS: [&str; 19] = [
    "--help",
    "--version",
    "list --help",
    "completions bash",
    "list set.tar",
    "list -l set.tar",
    "list -0 set.tar",
    "list --json set.tar",
    "verify set.tar",
    "verify set.tar --json",
    "restore set.tar --into out",
    "backup tree --to new.tar",
    "backup tree --to -",
    "pipe --from set.tar --to -",
    "plan --drive lto8 --source-rate 60MB --size 1TB",
    "bench read set.tar --engines psync --print-plan",
    "bench read set.tar --cache buffered --block-size 4k --length 4k --repeats 3 -o new.ndjson",
    "report record.ndjson",
    "compare record.ndjson other.ndjson",
];

/// Files that the commands leave.
const MADE: [&str; 3] = ["out", "new.tar", "new.ndjson"];

fn exit_code(directory: &Path, arguments: &str, redirection: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_takeup");
    let command = format!("exec {program} {arguments} {redirection}");
    let output = std::process::Command::new("bash")
        .args(["-c", &command])
        // Experiments that run beside the tests have their own journal.
        .env("TAKEUP_RUN_DIR", directory.join("run"))
        .current_dir(directory)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_nobody_can_read_is_no_success() {
    let directory = small_tree();
    let folder = directory.path();
    exit_code(folder, "backup tree --to set.tar", ">/dev/null");
    for record in ["record", "other"] {
        let options = "--cache buffered --block-size 4k --length 4k --repeats 3";
        exit_code(folder, &format!("bench read set.tar {options} -o {record}.ndjson"), "");
    }
    for arguments in COMMANDS {
        let (code, errors) = exit_code(folder, arguments, ">/dev/null");
        assert!(matches!(code, Some(0 | 2)), "{arguments}: {code:?}: {errors}");
        for made in MADE {
            let _ = fs::remove_dir_all(folder.join(made));
            let _ = fs::remove_file(folder.join(made));
        }
        let (code, errors) = exit_code(folder, arguments, ">&-");
        assert_eq!(code, Some(1), "{arguments} >&-: {errors}");
        assert!(errors.contains("standard output is closed"), "{arguments} >&-: {errors}");
        let (code, errors) = exit_code(folder, arguments, ">/dev/full");
        assert_eq!(code, Some(1), "{arguments} >/dev/full: {errors}");
        for made in MADE {
            let _ = fs::remove_dir_all(folder.join(made));
            let _ = fs::remove_file(folder.join(made));
        }
    }
}

/// Commands whose answers can be long.
const LONG: [&str; 15] = [
    "--help",
    "backup --help",
    "list -l set.tar",
    "list --json set.tar",
    "list sets/",
    "verify set.tar --json",
    "catalog find * --catalog c.sqlite",
    "catalog find * --catalog c.sqlite --json",
    "catalog sets --catalog c.sqlite",
    "catalog du --catalog c.sqlite",
    "catalog add sets --catalog c.sqlite",
    "catalog why sets/ tree/a",
    "catalog forget sets/ --keep-last 1",
    "rules",
    "probe . --json",
];

/// `takeup ... | head`: who reads the answer has what it wanted, and that is no failure.
#[test]
fn a_reader_that_ends_early_is_no_failure() {
    let directory = small_tree();
    let folder = directory.path();
    let run = |arguments: &str, output: Stdio| {
        let mut command = takeup();
        command.current_dir(folder).env("XDG_STATE_HOME", folder.join("state")).stdout(output);
        let ended = command.args(arguments.split(' ')).stderr(Stdio::piped()).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    for made in ["backup tree --to set.tar", "backup tree --to sets/"] {
        run(made, Stdio::null());
    }
    run("catalog add sets --catalog c.sqlite", Stdio::null());
    for arguments in LONG {
        let expected = run(arguments, Stdio::null());
        assert!(matches!(expected.0, Some(0 | 2)), "{arguments}: {expected:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, errors) = run(arguments, writer.into());
        assert_eq!(code, expected.0, "{arguments}: {errors}");
        assert!(!errors.to_lowercase().contains("pipe"), "{arguments}: {errors}");
    }
}
