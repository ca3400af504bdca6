//! `takeup bench disk --job` with published jobs: run on another file, or refused as a whole.

use std::fs;

use crate::{run, succeeds};

/// The job of the fourth account, shortened so that it takes no minutes.
const ACCOUNTS: &str = "[global]\nioengine=libaio\ninvalidate=1\nramp_time=5\nruntime=180\n\
    time_based\ndirect=1\ngroup_reporting=1\nper_job_logs=0\nbs=8k\nreadwrite=randrw\nsize=40g\n\
    iodepth=8\nend_fsync=1\n# gtod_reduce=1\n  \n[test1-subtest1-blocksize32k]\n\
    filename=/mnt/no-such-disk/fio.img\nnumjobs=4\n";

const ONCE: [&str; 4] = ["--repeats", "1", "--repeats-max", "1"];

#[test]
fn the_job_of_an_account_runs_on_another_file_with_another_size() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("job.fio"), ACCOUNTS).unwrap();
    let command = ["bench", "disk", "mine.img", "--job", "job.fio", "--length", "4M"];
    let short = ["--job-set", "ramp_time=0", "--job-set", "time_based=0", "--job-set", "direct=0"];
    let arguments = [&command[..], &short, &ONCE].concat();
    let output = run(directory.path(), &arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    let place = directory.path().canonicalize().unwrap().join("mine.img");
    let words = format!("works on {}, not on /mnt/no-such-disk/fio.img\n", "mine.img");
    assert!(told.contains(&words), "{told}");
    assert!(!place.exists(), "what was made for it is gone");
    let runs = fs::read_to_string(directory.path().join("takeup-bench-disk.ndjson")).unwrap();
    let run: serde_json::Value = serde_json::from_str(runs.lines().nth(1).unwrap()).unwrap();
    assert_eq!(run["run"]["bytes"], 4 * (4 << 20), "{run}");
}

#[test]
fn all_that_is_refused_is_told_in_one_answer() {
    let directory = tempfile::tempdir().unwrap();
    let job = "[global]\nexec_prerun=touch made\n[a]\nrw=write\nunlink=1\nioengine=rbd\n\
               write_bw_log=made\nfilename=x\n";
    fs::write(directory.path().join("other.fio"), job).unwrap();
    let output = run(directory.path(), &["bench", "disk", "--job", "other.fio"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.starts_with("takeup: job other.fio: 3 lines are refused\n"), "{told}");
    for line in ["line 2: \"exec_prerun=touch made\" is refused: it runs a program: ", "line 5: "] {
        assert!(told.contains(&format!("\n  {line}")), "{told}");
    }
    assert!(told.contains("\n  line 6: \"ioengine=rbd\" is refused: takeup runs sync, "), "{told}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was run");
    let arguments = ["bench", "disk", "--job", "other.fio", "--json"];
    let output = run(directory.path(), &arguments);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["details"].as_array().unwrap().len(), 3, "{document}");
}

#[test]
fn what_is_left_out_is_told_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let logs = "write_bw_log=made\nwrite_lat_log=made\nunified_rw_reporting=1\n";
    let job = format!("[a]\nrw=write\nsize=1m\nfilename=x\n{logs}");
    fs::write(directory.path().join("logs.fio"), job).unwrap();
    let arguments = ["bench", "disk", "--job", "logs.fio", "--print-plan"];
    let output = run(directory.path(), &arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    let told_of = "takeup: job logs.fio: ignores ";
    let lines: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix(told_of)).collect();
    assert!(
        lines[0].starts_with("write_bw_log, write_lat_log: no log files are written"),
        "{told}"
    );
    assert_eq!(lines[1], "unified_rw_reporting: takeup reports each run itself", "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    succeeds(directory.path(), &arguments);
}
