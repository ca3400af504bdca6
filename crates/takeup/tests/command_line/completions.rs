//! What bash proposes, by the real bash.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

/// What bash proposes for the last word of a line.
fn proposed(line: &[&str]) -> Vec<String> {
    let output = run(Path::new("/"), &["completions", "bash"]);
    let completion = String::from_utf8(output.stdout).unwrap();
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    let (last, before) = (words.len() - 1, words.len() - 2);
    let script = format!(
        "{completion}\nCOMP_WORDS=({}); COMP_CWORD={last}\n\
         _takeup takeup {} {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        words[last],
        words[before]
    );
    // Longer than an argument may be.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let mut bash = Command::new("bash");
    let output = bash.arg("--norc").arg(file.path()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn values_are_proposed_where_their_option_stands() {
    let check = |line: &[&str], expected: &[&str]| {
        let proposed = proposed(line);
        for value in expected {
            assert!(proposed.iter().any(|it| it == value), "{line:?}: {value} in {proposed:?}");
        }
    };
    check(&["takeup", ""], &["backup", "restore", "bench", "sim"]);
    check(&["takeup", "bench", ""], &["read", "disk", "tape"]);
    check(&["takeup", "bench", "disk", "--load", ""], &["randread", "writefiles"]);
    check(&["takeup", "bench", "disk", "--load", "rand"], &["randread", "randwrite"]);
    check(&["takeup", "bench", "disk", "--engines", ""], &["psync", "libaio", "io_uring"]);
    check(&["takeup", "bench", "disk", "--scheduler", ""], &["current", "none", "mq-deadline"]);
    check(&["takeup", "bench", "read", "--read-ahead", ""], &["current"]);
    check(&["takeup", "bench", "tape", "--framing", ""], &["raw", "tar", "bacula"]);
    check(&["takeup", "bench", "tape", "--data", ""], &["zeros", "random"]);
    check(&["takeup", "sim", "tape", "--drive", "lto1"], &["lto1", "lto10"]);
    check(&["takeup", "sim", "disk", "--preset", ""], &["sas15k", "nvme", "array"]);
    check(&["takeup", "plan", "--drive", ""], &["lto8", "hp-lto3"]);
    check(&["takeup", "backup", "--compress", ""], &["zstd", "gzip", "none"]);
    check(&["takeup", "tune", "queue", "--settings", ""], &["scheduler", "nomerges"]);
    check(&["takeup", "tune", "set", "/srv", "read"], &["readahead=", "read_ahead_kb="]);
}
