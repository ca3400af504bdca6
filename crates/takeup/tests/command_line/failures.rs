//! Bad input and misuse: a line, a hint where the user can do something, and exit code 1.

use std::fs;

use crate::{run, shown, small_tree, takeup};

#[track_caller]
fn check(name: &str, arguments: &[&str]) {
    let directory = small_tree();
    fs::write(directory.path().join("garbage"), vec![b'x'; 5000]).unwrap();
    fs::write(directory.path().join("nothing"), "").unwrap();
    let output = run(directory.path(), arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() || arguments.contains(&"--json"));
    insta::assert_snapshot!(name, shown(&output, directory.path()));
    let mut left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["garbage", "nothing", "tree"], "a run that failed leaves nothing behind");
}

#[test]
fn misuse() {
    check("no_arguments", &[]);
    check("no_target", &["backup", "tree"]);
    check("unknown_option", &["pipe", "--bogus"]);
    check("an_option_like_none", &["bench", "read", "tree/a", "--tree"]);
    check("a_misspelt_option", &["backup", "tree", "--to", "x", "--exlude", "a"]);
    check("unknown_suffix", &["pipe", "--block-size", "12x"]);
    check("size_of_zero", &["pipe", "--rate-limit", "0"]);
    check("odd_block_size", &["pipe", "--from", "tree/a", "--to", "x", "--block-size", "1000"]);
    check("unknown_compression", &["backup", "tree", "--to", "x", "--compress", "lzma"]);
    check("level_out_of_range", &["backup", "tree", "--to", "x", "--compress", "zstd:99"]);
    check("ring_too_small", &["backup", "tree", "--to", "x", "--ring", "1M"]);
}

/// A missing path is reported as missing, not as something other than a tape.
#[test]
fn options_of_tapes() {
    check("sets_of_what_is_not_there", &["list", "missing", "--sets"]);
    check("sets_of_a_file", &["list", "garbage", "--sets"]);
    check("a_set_of_what_is_not_there", &["verify", "missing", "--set", "2"]);
    check("a_set_of_a_file", &["verify", "garbage", "--set", "2"]);
}

/// A mistyped name is reported with the similar name that exists.
#[test]
fn what_was_meant() {
    check("number_below_zero", &["bench", "disk", "tree/a", "--depth", "-1"]);
    check("rate_below_zero", &["plan", "--drive", "lto8", "--source-rate", "-5MB", "--size", "1T"]);
    check("nearly_zeros", &["bench", "tape", "/dev/null", "--data", "zeroes"]);
    check("disk_without_path", &["bench", "disk"]);
    check("target_among_sources", &["backup", "tree", "x.tar"]);
    check("settings_of_a_path", &["tune", "show", "tree"]);
    check("target_beside_options", &["backup", "--force", "tree", "x.tar"]);
}

/// Words of tar, fio, dd, restic and others lead to the command that does it here.
#[test]
fn habits_of_other_programs() {
    check("habit_tar_list", &["-tvf", "x.tar"]);
    check("habit_tar_create", &["backup", "-czf", "x.tar.gz", "tree"]);
    check("no_archive", &["list"]);
    check("habit_tar_restore", &["restore", "x.tar", "-C", "tree"]);
    check("habit_fio", &["bench", "disk", "tree", "--bs=4k"]);
    check("habit_dd", &["pipe", "if=tree/a", "of=x", "bs=1M"]);
    check("habit_iostat", &["watch", "-x", "1"]);
    check("habit_restic", &["snapshots"]);
    check("path_as_command", &["tree"]);
    check("path_behind_bench", &["bench", "tree"]);
}

/// A time without a unit is refused: 8 for eight hours must not become 8 seconds.
#[test]
fn a_time_has_its_unit() {
    let plan = ["plan", "--drive", "lto8", "--source-rate", "5MB", "--size", "1T", "--window", "8"];
    check("window_without_unit", &plan);
    check("budget_without_unit", &["bench", "read", "tree/a", "--budget", "20"]);
    check("runtime_without_unit", &["bench", "disk", "tree/a", "--runtime", "5"]);
}

/// Two numbers of repeats that contradict each other; a single one moves the default of the other.
#[test]
fn repeats_at_least_and_at_most() {
    let plan = ["bench", "read", "tree/a", "--print-plan", "--repeats"];
    check("repeats_that_exclude", &[&plan[..], &["2", "--repeats-max", "1"]].concat());
    let directory = small_tree();
    let few = ["bench", "read", "tree/a", "--print-plan", "--repeats-max", "3"];
    let text = String::from_utf8(run(directory.path(), &few).stdout).unwrap();
    assert!(text.contains("repeats_min = 3\nrepeats_max = 3\n"), "{text}");
}

/// A file that is not an experiment cannot be compared, nor one with itself.
#[test]
fn records() {
    check("record_of_nothing", &["report", "garbage"]);
    check(
        "record_is_empty",
        &["plan", "--from", "nothing", "--source-rate", "5MB", "--size", "1T"],
    );
    check("same_record_twice", &["compare", "garbage", "./garbage"]);
    check("program_missing", &["bench", "run", "--shell", "sh", "--command", "a=nosuchprog x"]);
}

/// fio counts in milliseconds.
#[test]
fn a_run_of_half_a_second_is_a_run() {
    let directory = small_tree();
    let plan = ["bench", "disk", "tree/a", "--runtime", "500ms", "--print-plan"];
    let output = run(directory.path(), &plan);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line == "run_seconds = 0.5"), "{text}");
}

#[test]
fn sources() {
    check("source_missing", &["backup", "no-such", "--to", "x"]);
    check("stream_missing", &["pipe", "--from", "no-such", "--to", "x"]);
    check("stream_missing_json", &["pipe", "--from", "no-such", "--to", "x", "--json"]);
    check("directory_as_stream", &["pipe", "--from", "tree", "--to", "x"]);
    check("archive_missing", &["list", "no-such"]);
    check("archive_is_garbage", &["list", "garbage"]);
    check("archive_is_empty", &["verify", "nothing"]);
    check("restore_into_a_file", &["restore", "nothing", "--into", "garbage"]);
    check("restore_of_garbage", &["restore", "garbage", "--into", "tree"]);
}

#[test]
fn targets() {
    check("target_no_device", &["backup", "tree", "--to", "/dev/takeup-none"]);
    check("target_no_device_bench", &["bench", "tape", "/dev/takeup-none"]);
    assert!(!std::path::Path::new("/dev/takeup-none").exists());
    check("target_exists", &["pipe", "--from", "tree/a", "--to", "garbage"]);
    check("target_is_directory", &["pipe", "--from", "tree/a", "--to", "tree"]);
    check("target_without_folder", &["pipe", "--from", "tree/a", "--to", "no/such"]);
    check("target_is_full", &["pipe", "--from", "tree/b/c", "--to", "/dev/full"]);
    check("target_is_source", &["backup", "tree/a", "--to", "tree/a", "--overwrite"]);
    check("backup_to_full", &["backup", "tree", "--to", "/dev/full"]);
}

#[test]
fn tapes() {
    check("backup_to_a_drive_that_is_not_there", &["backup", "tree", "--to", "/dev/nst31"]);
    check("backup_to_a_virtual_drive_that_is_not_there", &["backup", "tree", "--to", "nst0"]);
    check("backup_to_a_device_that_is_no_tape", &["backup", "tree", "--to", "/dev/zero"]);
    check("pipe_to_a_drive_that_is_not_there", &["pipe", "--from", "tree/a", "--to", "/dev/nst31"]);
}

/// /dev/null is allowed: it is not used to get the data back.
#[test]
fn the_null_device_takes_a_stream() {
    let directory = small_tree();
    let backup = ["backup", "tree", "--to", "/dev/null", "--json"];
    let output = takeup().current_dir(directory.path()).args(backup).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["endpoint"], "character device");
    assert_eq!(document.get("tape"), None);
    assert!(output.status.success());
}

#[test]
fn probes() {
    check("probe_missing", &["probe", "no-such"]);
    check("probe_missing_json", &["probe", "no/such", "--json"]);
    check("probe_with_a_bad_request", &["probe", "tree", "--request", "many"]);
    check("probe_of_no_tape", &["probe", "/dev/null"]);
    check("probe_of_a_drive_that_is_not_there", &["probe", "/dev/nst31"]);
}

#[test]
fn a_reader_that_goes_away_is_no_success() {
    let directory = small_tree();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--from", "tree/b/c"])
        .stdout(writer)
        .output()
        .unwrap();
    insta::assert_snapshot!("closed_pipe", shown(&output, directory.path()));
}

#[test]
fn a_summary_that_nobody_takes_is_no_success() {
    let directory = small_tree();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--from", "tree/a", "--to", "x", "--json"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!("summary_to_full", shown(&output, directory.path()));
}
