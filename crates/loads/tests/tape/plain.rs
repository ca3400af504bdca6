//! Targets that are no tape.

use std::fs;
use std::path::Path;

use experiment::run::Executor;
use flow::sink::WriteError;
use loads::tape::{Occupied, TapeBenchError, TapeExecutor, TapeOptions};

use crate::{MIB, plan, runs};

fn open(path: &Path, factors: &[(&str, &[&str])]) -> Result<TapeExecutor, TapeBenchError> {
    TapeExecutor::new(&plan(path.to_str().unwrap(), factors), TapeOptions::default())
}

#[test]
fn a_file_is_made_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    for operation in ["write", "read"] {
        let factors: &[(&str, &[&str])] = &[("operation", &[operation]), ("framing", &["bacula"])];
        let mut on_it = open(&path, factors).unwrap();
        for run in runs(&mut on_it, factors, 2) {
            let run = run.unwrap();
            assert_eq!(run.bytes, 3 * MIB);
            assert!(run.notes[0].contains("the target is a file"), "{:?}", run.notes);
            assert_eq!(fs::metadata(&path).unwrap().len(), 3 * MIB, "each run begins anew");
        }
        on_it.finish().unwrap();
        assert!(!path.exists());
    }
    // Also on the way out through an error.
    drop(open(&path, &[]).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_file_with_data_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter");
    fs::write(&path, "dear reader").unwrap();
    assert!(matches!(open(&path, &[]), Err(TapeBenchError::HoldsData { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"dear reader");
    let options = TapeOptions { occupied: Occupied::Overwrite, ..TapeOptions::default() };
    let mut on_it = TapeExecutor::new(&plan(path.to_str().unwrap(), &[]), options).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    on_it.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "a file of somebody else stays");
}

#[test]
fn nothing_is_told_to_be_nothing() {
    let mut on_it = open(Path::new("/dev/null"), &[]).unwrap();
    let run = runs(&mut on_it, &[], 1).remove(0).unwrap();
    assert_eq!(run.notes, ["nothing is stored there: this measures the generator"]);
}

#[test]
fn what_cannot_be_is_said() {
    let check = |path: &Path, factors: &[(&str, &[&str])], expected: &str| {
        let error = open(path, factors).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let null = Path::new("/dev/null");
    check(null, &[("operation", &["read"])], "nothing that gives back");
    check(null, &[("drive_compression", &["on"])], "only a tape drive has compression");
    check(null, &[("block_bytes", &["100"])], "in steps of 512");
    check(Path::new("/dev/zero"), &[], "data cannot be read back");
    check(Path::new("/dev/nst31"), &[], "no such tape drive");
    check(tempfile::tempdir().unwrap().path(), &[], "a directory");
    check(Path::new("/nowhere/target"), &[], "cannot use /nowhere/target");
}

#[test]
fn a_reader_that_goes_away_ends_a_run() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut reader =
        Command::new("head").args(["-c", "4M"]).arg(&path).stdout(Stdio::null()).spawn().unwrap();
    // Without a reader there is nothing to open.
    let mut on_it = loop {
        match open(&path, &[]) {
            Err(error) if error.to_string().contains("no program") => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    let results = runs(&mut on_it, &[], 2);
    assert_eq!(results[0].as_ref().unwrap().bytes, 3 * MIB);
    let failed = matches!(results[1], Err(TapeBenchError::Write(WriteError::Write { .. })));
    assert!(failed, "{results:?}");
    reader.wait().unwrap();
}
