//! `takeup bench import`: the published tables, and errors of tables that cannot be read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{document, run};

fn published(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/published");
    root.join(format!("{name}.csv"))
}

/// Imports a table with the options that its comment names; returns the document of its report.
fn reported(directory: &Path, name: &str) -> Value {
    let path = published(name);
    let table = fs::read_to_string(&path).unwrap();
    let line = table.lines().find(|line| line.contains("takeup bench import")).unwrap();
    let options = line.split_once(".csv").unwrap().1;
    let script = format!("\"$0\" bench import \"$1\" {options} --output {name}.ndjson");
    let status = std::process::Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_takeup")])
        .arg(&path)
        .current_dir(directory)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{name}: {script}");
    document(directory, &["report", &format!("{name}.ndjson"), "--json"])
}

fn told(document: &Value) -> String {
    let sentences = document["judgement"]["sentences"].as_array().unwrap().iter();
    sentences.map(|one| format!("{}\n", one["text"].as_str().unwrap())).collect()
}

#[test]
fn published_tables_become_runs_that_are_judged() {
    let directory = tempfile::tempdir().unwrap();
    let report = |name: &str| reported(directory.path(), name);
    let tape = report("tape-block-size");
    assert_eq!(tape["runs"], 16);
    let text = told(&tape);
    assert!(text.contains("every combination ran once"), "{text}");
    let text = told(&report("read-ahead"));
    assert!(
        text.contains("163 MB/s was printed, but size / time is 159 MB/s")
            || text.contains("72.0 MB/s was printed, but size / time is 49.0 MB/s"),
        "{text}"
    );
    assert_eq!(report("block-device")["runs"], 5);
    let dd = report("double-buffer");
    let rate = |pipeline: &str| {
        let cells = dd["judgement"]["cells"].as_array().unwrap().iter();
        let mut own = cells.filter(|cell| cell["cell"]["pipeline"] == pipeline);
        own.next().unwrap()["bytes_per_second"].as_f64().unwrap()
    };
    let ratio = rate("tar | gzip | dd | dd > tape") / rate("tar | gzip > tape");
    assert!((ratio - 619.96 / 563.22).abs() < 1e-6, "{ratio}");
    let files = fs::read_dir(published("x").parent().unwrap()).unwrap();
    let tables = files
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "csv"));
    assert_eq!(tables.count(), 4, "each of them is tried here");
}

/// For two experiments without a common combination, the factor that separates them is named.
#[test]
fn what_keeps_two_experiments_apart_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for (name, blocks) in [("a", ["64k", "128k"]), ("b", ["1M", "2M"])] {
        let row = |block: &str| format!("LTO-7,{block},1000000,1\n");
        let table = format!("device,block_bytes,bytes,seconds\n{}", blocks.map(row).concat());
        fs::write(directory.path().join(format!("{name}.csv")), table).unwrap();
        let (table, output) = (format!("{name}.csv"), format!("{name}.ndjson"));
        let made = run(directory.path(), &["bench", "import", &table, "-o", &output]);
        assert!(made.status.success(), "{made:?}");
    }
    let output = run(directory.path(), &["compare", "a.ndjson", "b.ndjson"]);
    let text = String::from_utf8(output.stderr).unwrap();
    let apart = "in common: block size is 64 KiB, 128 KiB in A and 1 MiB, 2 MiB in B";
    assert!(output.status.code() == Some(1) && text.contains(apart), "{text}");
}

/// The user's own runs against a published table, by their common factors.
#[test]
fn an_imported_table_is_compared_like_any_runs() {
    let directory = tempfile::tempdir().unwrap();
    reported(directory.path(), "tape-block-size");
    let mine = "device;tool;data;block_bytes;bytes;seconds\n\
                LTO-7;dd;an image that does not compress;64k;10619977728;35,9\n\
                LTO-7;dd;an image that does not compress;128k;10619977728;35,7\n";
    fs::write(directory.path().join("mine.csv"), mine).unwrap();
    let import = ["bench", "import", "mine.csv", "-o", "mine.ndjson", "--load", "device"];
    let loads = ["--load", "tool", "--load", "data"];
    let output = run(directory.path(), &[&import[..], &loads].concat());
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!("imported", String::from_utf8(output.stdout).unwrap());
    let output = run(directory.path(), &["compare", "mine.ndjson", "tape-block-size.ndjson"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("64 KiB") && text.contains("128 KiB"), "{text}");
    let page = ["report", "mine.ndjson", "--html", "mine.html", "--quiet"];
    assert!(run(directory.path(), &page).status.success());
    assert!(fs::read_to_string(directory.path().join("mine.html")).unwrap().contains("LTO-7"));
}

#[test]
fn a_table_that_cannot_be_read_leaves_no_file_and_says_where() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("t.csv");
    let refused = |arguments: &[&str]| {
        let output = run(directory.path(), &[&["bench", "import"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    fs::write(&table, "depth,bytes,seconds\n1,1000,0.5\n2,1000,half\n").unwrap();
    let text = refused(&["t.csv"]);
    assert!(text.contains("t.csv: line 3, column 3 (seconds): \"half\" is not a number"), "{text}");
    assert!(text.contains("hint: use these columns for the numbers of a run"), "{text}");
    assert!(!directory.path().join("takeup-bench-import.ndjson").exists());
    assert!(refused(&["no.csv"]).contains("read no.csv"));
    fs::write(&table, "depth,bytes,seconds\n1,1000,0.5\n").unwrap();
    assert!(run(directory.path(), &["bench", "import", "t.csv"]).status.success());
    // No file is overwritten.
    assert!(refused(&["t.csv"]).contains("name another file with --output"));
}
