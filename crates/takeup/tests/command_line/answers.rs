//! What `--json` prints is an answer of `service`: read as its type and written again, it is the
//! same document, so that the schemas in `docs/schema/` describe it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use service::Answer;

use crate::{document, run, small_tree};

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
fn probe_of_a_path() {
    let directory = small_tree();
    let printed = document(directory.path(), &["probe", "tree", "--json"]);
    let answer: service::probe::ProbeAnswer = check(&printed);
    assert!(matches!(answer, service::probe::ProbeAnswer::Layers(_)), "{answer:?}");
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
    let printed = document(path, &[&commands[..], &repeats].concat());
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
