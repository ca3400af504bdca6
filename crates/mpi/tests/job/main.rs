//! Jobs of real ranks under `mpirun`, all on this machine.

#![allow(clippy::unwrap_used, reason = "a test says why it failed or was left out")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use testkit::samples::Random;

/// `mpirun` with these words, in a folder.
fn mpirun(folder: &Path, words: &[&str]) -> Output {
    Command::new("mpirun")
        .args(["--oversubscribe", "--mca", "btl", "self,vader,tcp"])
        .args(words)
        .current_dir(folder)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Paths of sockets are short.
        .env("TMPDIR", "/tmp")
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .unwrap()
}

const TAKEUP: &str = env!("CARGO_BIN_EXE_takeup-mpi");

/// Four ranks with the same arguments.
fn four(folder: &Path, arguments: &[&str]) -> Output {
    let mut words = vec!["-np", "4", TAKEUP];
    words.extend(arguments);
    mpirun(folder, &words)
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", told(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A tree with links and odd names, large enough for several shards.
fn make(root: &Path) {
    let mut random = Random::numbered(39);
    fs::create_dir(root).unwrap();
    for at in 0..6 {
        let folder = root.join(format!("folder {at}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..10 {
            let bytes = random.bytes(200_000 + file * 1000);
            fs::write(folder.join(format!("file {file}")), bytes).unwrap();
        }
        symlink("file 1", folder.join("ü\nlink")).unwrap();
        if at > 0 {
            let other = root.join("folder 0/file 0");
            fs::hard_link(other, folder.join("further name")).unwrap();
        }
    }
}

/// Differences that GNU tar finds between the shards and the tree below `root`.
fn extracted(shards: &Path, into: &Path) {
    fs::create_dir(into).unwrap();
    let line = format!(
        "for s in '{}'/shard-*.tar; do tar xpf \"$s\" -C '{}' || exit 1; done",
        shards.display(),
        into.display()
    );
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

fn same(left: &Path, right: &Path) {
    let tar = |root: &Path| {
        let output = Command::new("tar")
            .args(["--sort=name", "--format=posix", "--pax-option=delete=atime,delete=ctime"])
            .args(["-cf", "-", "-C"])
            .arg(root)
            .arg(".")
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    };
    assert!(tar(left) == tar(right), "{} and {} differ", left.display(), right.display());
}

#[test]
fn hosts_are_measured_together_and_merged() {
    testkit::require!(Mpirun);
    let home = tempfile::tempdir().unwrap();
    for rank in 0..4 {
        fs::write(home.path().join(format!("f.{rank}")), vec![rank as u8; 8 << 20]).unwrap();
    }
    let arguments = [
        "bench",
        "read",
        "f.{rank}",
        "--block-size",
        "256k",
        "--cache",
        "buffered",
        "--length",
        "8M",
        "--random-reads",
        "0",
        "--repeats",
        "4",
        "--repeats-max",
        "4",
        "--budget",
        "60s",
        "--hosts",
        "1,4",
        "--json",
        "--output",
        "runs",
    ];
    let answer = document(&four(home.path(), &arguments));
    assert_eq!(answer["command"], "many bench read");
    assert_eq!(answer["verdict"]["hosts"].as_array().unwrap().len(), 4);
    assert!(answer["run"]["bytes_per_second"].as_f64().unwrap() > 0.0, "{answer:#}");
    // Each host has run alone once in four rounds.
    for host in answer["verdict"]["hosts"].as_array().unwrap() {
        assert!(host["alone_bytes_per_second"].is_number(), "{host}");
    }
    let runs = fs::read_to_string(home.path().join("runs")).unwrap();
    let run = |line: &str| serde_json::from_str::<Value>(line).unwrap()["run"].clone();
    let runs: Vec<Value> = runs.lines().skip(1).map(run).collect();
    assert_eq!(runs.len(), 8);
    for run in &runs {
        let hosts = run["hosts"].as_array().unwrap();
        assert_eq!(hosts.len() as u64, run["cell"]["hosts"].as_u64().unwrap());
        // All latencies of all hosts, and no others: 32 blocks each.
        let counted: u64 = run["latency"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bucket| bucket[1].as_u64().unwrap())
            .sum();
        assert_eq!(counted, 32 * hosts.len() as u64, "{run}");
    }
}

#[test]
fn what_one_rank_cannot_do_is_said_before_anything_starts() {
    testkit::require!(Mpirun);
    let home = tempfile::tempdir().unwrap();
    for rank in 0..3 {
        fs::write(home.path().join(format!("f.{rank}")), "content").unwrap();
    }
    let missing = four(home.path(), &["bench", "read", "f.{rank}", "--output", "runs"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(told(&missing).contains("(rank 3): read f.3: no such file"), "{}", told(&missing));
    assert!(!home.path().join("runs").exists());
    // One rank with other arguments.
    let other = ["-np", "1", TAKEUP, "verify", "a", ":", "-np", "1", TAKEUP, "verify", "b"];
    let other = mpirun(home.path(), &other);
    assert!(told(&other).contains("give all ranks the same arguments"), "{}", told(&other));
    let wrong = four(home.path(), &["backup", "--nonsense"]);
    assert_eq!(told(&wrong).matches("unexpected argument").count(), 1, "{}", told(&wrong));
}

/// Steps of the journal at which rank 0 breaks down in the short form.
const SOME_STEPS: [u64; 4] = [1, 5, 9, 14];

// The trap is there with debug assertions alone.
#[cfg(debug_assertions)]
#[test]
fn a_rank_that_is_killed_at_a_step_of_the_journal_costs_only_what_was_in_hand() {
    testkit::require!(Mpirun, GnuTar);
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    make(&at("tree"));
    let backup = |folder: &str, trap: &str| {
        let setting = format!("TAKEUP_TRAP={trap}");
        mpirun(
            home.path(),
            &[
                "-np",
                "4",
                "-x",
                &setting,
                TAKEUP,
                "backup",
                "tree",
                "--to",
                folder,
                "--shard-size",
                "1M",
                "--json",
            ],
        )
    };
    let whole = document(&backup("whole", "none:1"));
    let shards = whole["set"]["shards"].as_u64().unwrap();
    assert!(shards > 4, "{whole:#}");
    // Two steps for each time that something is appended: the first line, the plan, each shard and
    // the end.
    let all = 2 * (shards + 3);
    let long = std::env::var_os("TAKEUP_LONG").is_some();
    let steps: Vec<u64> =
        if long { (1..=all).collect() } else { SOME_STEPS.into_iter().chain([all]).collect() };
    for step in steps {
        let folder = format!("shards {step}");
        let broken = backup(&folder, &format!("journal:{step}"));
        assert!(!broken.status.success(), "step {step}");
        let again = backup(&folder, "none:1");
        // Behind the last line nothing is left to do, which is no success of a backup.
        let is_over = step == all;
        assert_eq!(again.status.code(), Some(if is_over { 2 } else { 0 }), "{}", told(&again));
        let answer: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(answer["set"]["was_complete"], is_over);
        assert_eq!(answer["set"]["shards"], whole["set"]["shards"], "step {step}");
        assert_eq!(answer["set"]["members"], whole["set"]["members"], "step {step}");
        let files: BTreeSet<String> = fs::read_dir(at(&folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".tar"))
            .collect();
        assert_eq!(files.len() as u64, shards, "step {step}: {files:?}");
        extracted(&at(&folder), &at(&format!("out {step}")));
        let tree = at("tree");
        same(&at(&format!("out {step}")).join(tree.strip_prefix("/").unwrap()), &tree);
    }
}

#[cfg(debug_assertions)]
#[test]
fn any_other_rank_that_is_killed_in_the_middle_of_a_shard_costs_no_more() {
    testkit::require!(Mpirun, GnuTar);
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    make(&at("tree"));
    let words = [
        "-np",
        "2",
        TAKEUP,
        "backup",
        "tree",
        "--to",
        "lost",
        "--shard-size",
        "1M",
        ":",
        "-np",
        "2",
        "-x",
        "TAKEUP_TRAP=read:3",
        TAKEUP,
        "backup",
        "tree",
        "--to",
        "lost",
        "--shard-size",
        "1M",
    ];
    assert!(!mpirun(home.path(), &words).status.success());
    let again = ["backup", "tree", "--to", "lost", "--shard-size", "1M"];
    assert!(four(home.path(), &again).status.success());
    let verified = document(&four(home.path(), &["verify", "lost", "--json"]));
    assert_eq!(verified["set"]["warnings"], 0);
    assert!(four(home.path(), &["restore", "lost", "--into", "back"]).status.success());
    let tree = at("tree");
    same(&at("back").join(tree.strip_prefix("/").unwrap()), &tree);
}

#[test]
fn a_damaged_shard_is_found_by_whoever_reads_it() {
    testkit::require!(Mpirun);
    let home = tempfile::tempdir().unwrap();
    make(&home.path().join("tree"));
    let arguments = ["backup", "tree", "--to", "shards", "--shard-size", "1M"];
    assert!(four(home.path(), &arguments).status.success());
    let path = home.path().join("shards/shard-000002.tar");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let verified = four(home.path(), &["verify", "shards"]);
    assert_eq!(verified.status.code(), Some(1), "{}", told(&verified));
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(text.contains("folder"), "{text}");
}
