//! `takeup bench tape` on a virtual drive: its output, and what it leaves on the medium and in the
//! drive's settings. `crates/loads/tests/tape` tests the runs.

use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::drive::{Drive, LIMIT, takeup};

/// Twelve runs of 1 MiB each.
const SMALL: [&str; 11] = [
    "--block-size",
    "64k,256k",
    "--data",
    "zeros,random",
    "--length",
    "1M",
    "--repeats",
    "3",
    "--repeats-max",
    "3",
    "--no-progress",
];

fn file(drive: &Drive) -> PathBuf {
    drive.folder().join("runs.ndjson")
}

fn bench(drive: &Drive, options: &[&str]) -> Output {
    let mut command = takeup();
    command.args(["bench", "tape"]).arg(drive.tape()).args(options);
    command.arg("-o").arg(file(drive)).current_dir(drive.folder()).output().unwrap()
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn lines(drive: &Drive) -> Vec<Value> {
    let text = fs::read_to_string(file(drive)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_experiment_with_tape_goes_on_where_it_was_stopped() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let options = [&SMALL[..], &["--drive-compression", "off", "--seed", "7"]].concat();
    let text = succeeds(&bench(&drive, &options));
    // No setting is better, so the first line says why none is recommended.
    assert!(text.starts_with("not known  no setting is recommended: "), "{text}");
    assert!(text.contains("\n\ndata    block size  runs"), "{text}");
    assert!(
        text.contains("every combination has as many repeats as --repeats-max allows; 12 runs in"),
        "{text}"
    );
    let whole = lines(&drive);
    assert_eq!(whole.len(), 13);
    for run in whole[1..].iter().map(|line| &line["run"]) {
        assert_eq!(run["bytes"], 1 << 20);
        assert_eq!(run["cell"]["drive_compression"], "off");
        assert!(run["measures"]["filemark_seconds"].as_f64().unwrap() > 0.0, "{run}");
        assert_eq!(run["environment"]["drive"], "virtual LTO-7");
        assert_eq!(run["environment"]["drive buffer bytes"], "1000000000");
        assert!(run["latency"].is_array() && run["series"]["bytes"].is_array(), "{run}");
    }
    let status = drive.status();
    assert_eq!(status["compression"], true, "it is as it was");
    assert_eq!(status["block_bytes"], 0);
    // Killed while it writes its sixth run; the medium has Takeup's label.
    let text = fs::read_to_string(file(&drive)).unwrap();
    let kept: Vec<&str> = text.lines().take(6).collect();
    fs::write(file(&drive), kept.join("\n") + "\n{\"run\":{\"cell\":{\"dat").unwrap();
    succeeds(&bench(&drive, &options));
    let cells = |lines: &[Value]| -> Vec<Value> {
        lines[1..].iter().map(|line| line["run"]["cell"].clone()).collect()
    };
    assert_eq!(cells(&lines(&drive)), cells(&whole));
}

#[test]
fn a_medium_with_data_is_left_to_its_owner() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let data: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
    drive.dd_in(&data, "bs=10k");
    let refused = bench(&drive, &SMALL);
    assert_eq!(refused.status.code(), Some(1));
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(errors.contains("nst0 holds data\nhint: add --overwrite to destroy"), "{errors}");
    assert!(!file(&drive).exists(), "an experiment that cannot begin leaves no file");
    assert_eq!(drive.dd_out("bs=10k"), data);
    succeeds(&bench(&drive, &[&SMALL[..], &["--append"]].concat()));
    assert_eq!(drive.dd_out("bs=10k"), data);
    fs::remove_file(file(&drive)).unwrap();
    succeeds(&bench(&drive, &[&SMALL[..], &["--overwrite"]].concat()));
    let first = drive.dd_out("bs=1k");
    assert!(first.starts_with(b"takeup bench tape: what follows is test data"));
}

/// A backup reports such a medium as a test area.
#[test]
fn a_backup_knows_a_test_area() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    succeeds(&bench(&drive, &SMALL));
    let backup = |more: &[&str]| {
        let mut command = takeup();
        command.arg("backup").arg(file(&drive)).arg("--to").arg(drive.tape()).args(more);
        command.output().unwrap()
    };
    let refused = backup(&[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(errors.contains("a test area of `takeup bench tape`\nhint: add --over"), "{errors}");
    succeeds(&backup(&["--overwrite"]));
}

/// A run that does not fit on the medium is refused at once, also on a drive that takes no time.
#[test]
fn a_run_that_cannot_fit_is_refused_before_anything_is_written() {
    testkit::require!(Fuse);
    for options in [["--time", "none"], ["--speed-up", "1000"]] {
        let drive = Drive::with(&options);
        let status = drive.status();
        if let Some(rows) = status["time"]["parameters"].as_array() {
            let row = rows.iter().find(|row| row["name"] == "early_warning_bytes").unwrap();
            assert_eq!(row["value"], (64 << 20) / 50, "two percent of a small cartridge");
        }
        let length = ["--length", "1M,80M", "--block-size", "64k"];
        let output = bench(&drive, &length);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let expected = "a run of 83.9 MB does not fit on the medium in ";
        assert!(errors.contains(expected), "{errors}");
        assert!(errors.contains(", which takes 67.0 MB\nhint: use shorter runs: --l"), "{errors}");
        assert_eq!(drive.status()["position"], 0);
        let medium = std::fs::metadata(drive.medium()).unwrap().len();
        assert!(medium < 64 << 10, "nothing was written: {medium}");
    }
}

#[test]
fn the_design_of_btape() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let preset = ["--preset", "btape", "--block-size", "64k,128k"];
    let plan = succeeds(&bench(&drive, &[&preset[..], &["--print-plan"]].concat()));
    assert!(plan.contains("levels = [1073741824, 2147483648, 4294967296]"), "{plan}");
    let plan = succeeds(&bench(&drive, &[&preset[..], &["--scale", "0.0001", "--json"]].concat()));
    let document: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(document["command"], "bench tape");
    assert_eq!(document["runs"], 2 * 36);
    assert_eq!(document["judgement"]["cells"].as_array().unwrap().len(), 2 * 12);
    // The printed plan is the one that is run, in Bacula's blocks.
    let run = &lines(&drive)[1]["run"];
    assert!(run["cell"]["framing"].is_string(), "{run}");
}

#[test]
fn a_virtual_drive_tells_what_it_did() {
    testkit::require!(Fuse);
    let drive = Drive::with(&["--speed-up", "1000"]);
    let options = ["--block-size", "64k", "--length", "8M", "--repeats", "1", "--repeats-max", "1"];
    succeeds(&bench(&drive, &[&options[..], &["--data", "zeros", "--no-progress"]].concat()));
    let measures = lines(&drive)[1]["run"]["measures"].clone();
    let measure = |name: &str| measures[name].as_f64().unwrap_or_else(|| panic!("{measures}"));
    assert!(measure("drive_streaming_seconds") > 0.0);
    assert!(measure("drive_compression_ratio") > 10.0);
    assert!(measure("drive_native_bytes") < 1e6);
    // The times of the run are the drive's, too: its flush alone takes more than a second.
    assert!(measure("drive_clock_ratio") > 1.0, "{measures}");
    assert!(lines(&drive)[1]["run"]["seconds"].as_f64().unwrap() > 1.0);
    assert!(measure("filemark_seconds") > 1.0, "{measures}");
}

#[test]
fn what_was_written_is_read_back() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let options = ["--operation", "write,read", "--framing", "raw,tar,bacula", "--data", "text:2"];
    let small = ["--block-size", "64k", "--length", "1M", "--repeats", "1", "--repeats-max", "1"];
    succeeds(&bench(&drive, &[&options[..], &small[..]].concat()));
    let lines = lines(&drive);
    assert_eq!(lines.len(), 7);
    assert!(lines[1..].iter().all(|line| line["run"]["bytes"] == 1 << 20), "{lines:?}");
}

#[test]
fn media_are_changed_once_in_a_round() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let (folder, changes) = (drive.folder().display(), drive.folder().join("changes"));
    // Changes the medium by the name on the label, as an autoloader would.
    let command = format!(
        "echo $TAKEUP_MEDIUM >>{}; printf %s {folder}/$TAKEUP_MEDIUM >{}/medium",
        changes.display(),
        drive.path().display()
    );
    let options = ["--medium-label", "old,new", "--change-command", &command, "--seed", "3"];
    succeeds(&bench(&drive, &[&SMALL[..], &options].concat()));
    let lines = lines(&drive);
    assert_eq!(lines.len(), 1 + 24);
    for run in lines[1..].iter().map(|line| &line["run"]) {
        assert_eq!(run["environment"]["medium"], run["cell"]["medium"]);
    }
    let changes = fs::read_to_string(changes).unwrap();
    let changes: Vec<&str> = changes.lines().collect();
    assert!((4..=6).contains(&changes.len()), "{changes:?}");
    assert!(changes.windows(2).all(|pair| pair[0] != pair[1]), "{changes:?}");
}

#[test]
fn a_stop_leaves_a_filemark_and_the_settings() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let options = ["--drive-compression", "off", "--block-size", "64k", "--length", "16M"];
    let long = ["--repeats", "100000", "--repeats-max", "100000", "--interval", "0.0001"];
    let start = || {
        let mut command = takeup();
        command.args(["bench", "tape"]).arg(drive.tape()).args(options).args(long);
        command.arg("-o").arg(file(&drive)).stderr(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let runs = || fs::read_to_string(file(&drive)).map_or(0, |text| text.lines().count());
    for _ in 0..2 {
        let before = runs();
        let mut program = start();
        let begun = Instant::now();
        while runs() < before + 3 {
            assert!(begun.elapsed() < LIMIT, "nothing is measured");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let id = program.id().to_string();
        std::process::Command::new("kill").args(["-s", "INT", &id]).status().unwrap();
        assert_eq!(program.wait().unwrap().code(), Some(1));
        let status = drive.status();
        assert_eq!(status["compression"], true);
        // Closing the tape adds no second filemark.
        assert_eq!(status["block_number"], 0, "{status}");
    }
}

#[test]
fn a_run_that_is_cut_leaves_a_bound() {
    testkit::require!(Fuse);
    // An LTO-1 drive writes 15 MB/s: 48 MiB beyond its buffer take seconds.
    let drive = Drive::with(&["--drive", "lto1", "--compression", "off"]);
    let options = ["--block-size", "64k", "--length", "48M", "--run-limit", "0.3s"];
    let output = bench(&drive, &[&options[..], &["--repeats", "2", "--no-progress"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("no run succeeded: slower than "), "{errors}");
    // The forecast comes before the first run.
    let told = ["a round of 1 run takes ", ", 3.00 s of it for 1 filemark (as the virtual drive"];
    assert!(told.iter().all(|words| errors.contains(words)), "{errors}");
    // The second run does not fit after the first.
    assert!(errors.contains(" for winding; 2 repeats take "), "{errors}");
    let lines = lines(&drive);
    assert_eq!(lines.len(), 2, "it is not tried again: {lines:?}");
    let run = &lines[1]["run"];
    let (cut, bound) = (&run["cut_after_seconds"], &run["slower_than_bytes_per_second"]);
    assert!(cut.as_f64().unwrap() >= 0.3, "{run}");
    assert!(bound.as_f64().unwrap() > 1e6, "{run}");
}
