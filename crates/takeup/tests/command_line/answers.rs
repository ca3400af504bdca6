//! What `--json` prints is an answer of `service`: read as its type and written again, it is the
//! same document, so that the schemas in `docs/schema/` describe it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use service::Answer;
use service::tune::persist::TunePersistAnswer;

use crate::{document, run, small_tree, takeup};

/// Reads a document as an answer and writes it again.
pub fn check<A: Answer + DeserializeOwned>(printed: &Value) -> A {
    let answer: A = serde_json::from_value(printed.clone())
        .unwrap_or_else(|error| panic!("no answer of {}: {error}: {printed:#}", A::COMMAND));
    assert_eq!(&service::document(&answer), printed);
    answer
}

#[test]
fn rules() {
    let directory = small_tree();
    let answer: service::rules::RulesAnswer =
        check(&document(directory.path(), &["rules", "--json"]));
    assert_eq!(answer, service::rules::rules());
}

#[test]
fn explanation_of_a_pipeline() {
    let directory = small_tree();
    let arguments = ["explain", "--shell", "/bin/sh", "true | sleep 0.5", "--baseline", "--json"];
    let answer: service::explain::ExplainAnswer = check(&document(directory.path(), &arguments));
    assert_eq!(answer.run.pipeline.as_deref(), Some("true | sleep 0.5"), "{answer:?}");
    assert!(answer.baseline.is_some() && answer.tried.is_none(), "{answer:?}");
}

#[test]
fn probe_of_a_path() {
    let directory = small_tree();
    let printed = document(directory.path(), &["probe", "tree", "--json"]);
    let answer: service::probe::ProbeAnswer = check(&printed);
    assert!(matches!(answer, service::probe::ProbeAnswer::Layers(_)), "{answer:?}");
}

#[test]
fn tune_with_an_empty_list() {
    let directory = small_tree();
    let tune = |arguments: &[&str]| -> Value {
        let mut command = takeup();
        for (name, folder) in [("TAKEUP_STATE_DIR", "state"), ("TAKEUP_RUN_DIR", "run")] {
            command.env(name, directory.path().join(folder));
        }
        let output = command.arg("tune").args(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let shown: service::tune::show::TuneShowAnswer = check(&tune(&["show"]));
    assert_eq!((shown.changes, shown.experiment), (Vec::new(), None));
    let reverted: service::tune::revert::TuneRevertAnswer = check(&tune(&["revert"]));
    assert!(reverted.put_back.is_empty() && reverted.removed.is_none(), "{reverted:?}");
    let confirmed: service::tune::confirm::TuneConfirmAnswer = check(&tune(&["confirm"]));
    assert!(confirmed.confirmed.is_empty() && confirmed.put_back.is_empty(), "{confirmed:?}");
    let kept: TunePersistAnswer = check(&tune(&["persist"]));
    assert!(matches!(&kept, TunePersistAnswer::Rules(rules) if rules.rules.is_none()), "{kept:?}");
    let removed: TunePersistAnswer = check(&tune(&["persist", "--remove"]));
    assert!(matches!(&removed, TunePersistAnswer::Removed(it) if !it.removed), "{removed:?}");
}

#[test]
fn plan_of_a_path_and_of_records() {
    let directory = small_tree();
    let record = crate::made_record::text(&crate::made_record::made(3));
    std::fs::write(directory.path().join("runs.ndjson"), record).unwrap();
    let plan = |arguments: &[&str]| -> service::plan::PlanAnswer {
        check(&document(directory.path(), &[&["plan", "--json"], arguments].concat()))
    };
    let measured = plan(&["--drive", "lto3", "tree", "--window", "8h"]);
    assert!(measured.measured.is_some() && measured.window.is_some(), "{measured:?}");
    assert_eq!(measured.makers.len(), 2, "{measured:?}");
    let source = ["--source-disk", "array:12", "--size", "1TB", "--compression", "none"];
    let calibrated = plan(&[&["--from", "runs.ndjson"], &source[..]].concat());
    let from = calibrated.from.as_ref().unwrap();
    assert!(!from.told.is_empty() && !from.not_told.is_empty(), "{calibrated:?}");
    assert_eq!(calibrated.source.read_block_bytes, Some(1 << 20));
}

#[test]
fn backup_and_what_is_made_of_it() {
    let directory = small_tree();
    let at = directory.path();
    let back_up = ["backup", "tree", "--to", "x.tar.zst", "--rate-limit", "1G", "--json"];
    let backup: service::backup::BackupAnswer = check(&document(at, &back_up));
    assert_eq!((backup.run.run.files, &backup.tape), (3, &None));
    let verify = ["verify", "x.tar.zst", "--against", ".", "--json"];
    let verify: service::verify::VerifyAnswer = check(&document(at, &verify));
    assert!(verify.sound && verify.checked.compared > 0, "{verify:?}");
    let restore = ["restore", "x.tar.zst", "--into", "new", "--json"];
    let restore: service::restore::RestoreAnswer = check(&document(at, &restore));
    assert!(restore.checksums.is_some() && restore.synchronised, "{restore:?}");
    let pipe = ["pipe", "--from", "tree/a", "--to", "copy", "--json"];
    let pipe: service::pipe::PipeAnswer = check(&document(at, &pipe));
    assert_eq!(pipe.run.stages.len(), 2);
}

/// What differs has a form for each kind of difference.
#[test]
fn verify_of_a_tree_that_changed() {
    let directory = small_tree();
    let at = directory.path();
    document(at, &["backup", "tree", "--to", "x.tar", "--json"]);
    std::fs::write(at.join("tree/a"), "other, and longer\n").unwrap();
    std::fs::remove_file(at.join("tree/b/c")).unwrap();
    std::fs::write(at.join("tree/new"), "").unwrap();
    std::fs::remove_file(at.join("tree/link")).unwrap();
    std::os::unix::fs::symlink("b", at.join("tree/link")).unwrap();
    let output = run(at, &["verify", "x.tar", "--against", ".", "--json"]);
    let answer: service::verify::VerifyAnswer =
        check(&serde_json::from_slice(&output.stdout).unwrap());
    let totals = [answer.changed.total, answer.missing.total, answer.extra.total];
    assert!(totals.iter().all(|total| *total > 0), "{answer:?}");
}

#[test]
fn lines_of_a_list() {
    let directory = small_tree();
    let at = directory.path();
    document(at, &["backup", "tree", "--to", "x.tar", "--json"]);
    let output = run(at, &["list", "x.tar", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = lines.pop().unwrap();
    for line in &lines {
        let member: service::list::MemberLine = serde_json::from_str(line).unwrap();
        assert_eq!(member.to_line(), **line);
        // The keys are in the order of the alphabet, as everywhere.
        assert_eq!(serde_json::from_str::<Value>(line).unwrap().to_string() + "\n", **line);
    }
    assert_eq!(lines.len(), 6);
    let summary: service::list::ListSummary = serde_json::from_str(last).unwrap();
    assert_eq!(summary.to_line(), last);
    assert_eq!(summary.summary.run.members, 6);
}

/// Two block sizes of a tape, three runs each.
const TABLE: &str = "block_bytes,bytes,seconds\n\
                     64k,1000000000,10\n64k,1000000000,10.2\n64k,1000000000,10.1\n\
                     1M,1000000000,5\n1M,1000000000,5.1\n1M,1000000000,5.2\n";

#[test]
fn an_imported_table_its_report_and_its_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("a.csv"), TABLE).unwrap();
    let import = ["bench", "import", "a.csv", "-o", "a.ndjson", "--json"];
    let imported: service::bench::import::BenchImportAnswer = check(&document(path, &import));
    assert_eq!((imported.runs, imported.combinations), (6, 2));
    let printed = document(path, &["report", "a.ndjson", "--json"]);
    let answer: service::report::ReportAnswer = check(&printed);
    assert!(matches!(answer, service::report::ReportAnswer::Experiment(_)), "{answer:?}");
    std::fs::copy(path.join("a.ndjson"), path.join("b.ndjson")).unwrap();
    let printed = document(path, &["compare", "a.ndjson", "b.ndjson", "--json"]);
    let answer: service::compare::CompareAnswer = check(&printed);
    assert!(matches!(answer, service::compare::CompareAnswer::Experiments(_)), "{answer:?}");
    let printed = document(path, &["bench", "power", "a.ndjson", "--json"]);
    let answer: service::bench::power::BenchPowerAnswer = check(&printed);
    assert_eq!(answer.combinations, 2);
    lines(path, "a.ndjson");
}

/// Times are compared where the bytes are not known.
#[test]
fn an_experiment_with_commands() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let commands = ["bench", "run", "--command", "a=:", "--command", "b=:"];
    let repeats = ["--repeats", "3", "--repeats-max", "3", "--json"];
    // Standard error has the forecast.
    let output = run(path, &[&commands[..], &repeats].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answer: service::bench::ExperimentAnswer = check(&printed);
    assert_eq!((&*answer.command, answer.runs), ("bench run", 6));
    let cell = &printed["judgement"]["cells"][0];
    assert!(cell.get("times").is_some() && cell.get("rates").is_none(), "{cell:#}");
    lines(path, "takeup-bench-run.ndjson");
}

/// The lines of an experiment are read and written again.
fn lines(directory: &Path, file: &str) {
    let output = run(directory, &["report", file, "--ndjson", "-"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() > 6, "{text}");
    for line in text.lines() {
        let read: service::bench::ExperimentLine = serde_json::from_str(line).unwrap();
        assert_eq!(read.to_json(), line);
    }
}
