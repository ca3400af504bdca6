//! Successful runs: what is printed where, and the form of the JSON documents.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use serde_json::Value;

use crate::{document, redacted, run, shown, small_tree};

#[test]
fn documents() {
    let directory = small_tree();
    let path = directory.path();
    let back_up = ["backup", "tree", "--to", "x.tar.zst", "--compress", "zstd", "--json"];
    insta::assert_snapshot!("backup_json", redacted(document(path, &back_up)));
    let verify = ["verify", "x.tar.zst", "--against", ".", "--json"];
    insta::assert_snapshot!("verify_json", redacted(document(path, &verify)));
    // `--to` is an alias of `--into`, as in a backup.
    let restore = ["restore", "x.tar.zst", "--to", "restored", "--json"];
    insta::assert_snapshot!("restore_json", redacted(document(path, &restore)));
    let pipe = ["pipe", "--from", "tree/b/c", "--to", "copy", "--json"];
    insta::assert_snapshot!("pipe_json", redacted(document(path, &pipe)));
    assert_eq!(fs::read(path.join("copy")).unwrap(), fs::read(path.join("tree/b/c")).unwrap());
    let listed = run(path, &["list", "--json", "x.tar.zst"]);
    let lines: Vec<Value> = listed
        .stdout
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let paths: Vec<_> = lines.iter().filter_map(|line| line["path"].as_str()).collect();
    assert_eq!(paths, ["tree", "tree/a", "tree/b", "tree/b/c", "tree/empty", "tree/link"]);
    assert!(lines.last().unwrap()["summary"].is_object());
}

#[test]
fn the_documents_hold_what_they_promise() {
    let directory = small_tree();
    let back_up = ["backup", "tree", "--to", "x.tar", "--json"];
    let document = document(directory.path(), &back_up);
    assert_eq!(document["files"], 3);
    assert_eq!(document["source_bytes"], 100_013);
    assert!(document["archive_bytes"].as_u64().unwrap() >= 100_013);
    for name in ["seconds", "bytes_per_second"] {
        assert!(document[name].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(document["warnings"], serde_json::json!([]));
    for stage in document["stages"].as_array().unwrap() {
        let states = ["working_seconds", "starved_seconds", "blocked_seconds"];
        let sum: f64 = states.iter().map(|state| stage[state].as_f64().unwrap()).sum();
        assert!(sum <= document["seconds"].as_f64().unwrap(), "{stage}");
        assert!(stage["name"].is_string() && stage["bytes"].is_u64());
    }
    assert!(document["bottleneck"].is_string() && document["explanation"].is_string());
}

#[test]
fn standard_output_carries_the_archive_and_nothing_else() {
    let directory = small_tree();
    for more in [&["--json"][..], &["-v"], &[]] {
        let mut arguments = vec!["backup", "tree", "--to", "-"];
        arguments.extend(more);
        let output = run(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(!output.stderr.is_empty());
        fs::write(directory.path().join("x.tar"), &output.stdout).unwrap();
        let verified = run(directory.path(), &["verify", "x.tar", "--quiet"]);
        assert_eq!(shown(&verified, directory.path()), NOTHING);
        if more == ["--json"] {
            let document: Value = serde_json::from_slice(&output.stderr).unwrap();
            assert_eq!(document["command"], "backup");
        }
    }
}

#[test]
fn a_pipe_changes_nothing_with_any_engine_and_ring() {
    let directory = small_tree();
    let path = directory.path();
    let content: Vec<u8> = (0..3_000_001u32).map(|number| (number ^ (number >> 9)) as u8).collect();
    fs::write(path.join("source"), &content).unwrap();
    for engine in ["io_uring", "pread"] {
        for shape in [
            &["--block-size", "512", "--ring", "1k"][..],
            &["--block-size", "64k", "--ring", "256k", "--start-fill", "100"],
            &["--block-size", "1M", "--start-fill", "50"],
        ] {
            let mut arguments = vec!["pipe", "--from", "source", "--to", "copy", "--overwrite"];
            arguments.extend(["--quiet", "--engine", engine]);
            arguments.extend(shape);
            let output = run(path, &arguments);
            assert_eq!(shown(&output, path), NOTHING, "{arguments:?}");
            assert!(fs::read(path.join("copy")).unwrap() == content, "{arguments:?}");
        }
    }
    let padded = ["pipe", "--from", "source", "--pad", "--block-size", "64k", "--quiet"];
    let output = run(path, &padded);
    let mut expected = content;
    expected.resize(expected.len().next_multiple_of(64 << 10), 0);
    assert!(output.stdout == expected);
}

const NOTHING: &str = "exit code 0\n--- standard output\n--- standard error\n";

#[test]
fn lists() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let listed = run(path, &["list", "x.tar"]);
    insta::assert_snapshot!("list", shown(&listed, path));
    let listed = run(path, &["list", "x.tar", "tree/b", "no/such"]);
    assert_eq!(listed.status.code(), Some(2));
    insta::assert_snapshot!("list_of_some", shown(&listed, path));
    let listed = run(path, &["list", "-0", "x.tar", "tree/b"]);
    assert_eq!(listed.stdout, b"tree/b\0tree/b/c\0");
}

/// A folder that is one level too deep or too high gives one sentence, not a line for each file.
#[test]
fn a_comparison_with_the_wrong_folder_names_the_right_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir_all(path.join("here/tree/deep")).unwrap();
    for number in 0..300 {
        fs::write(path.join(format!("here/tree/deep/file{number}")), b"x").unwrap();
    }
    let at = path.join("here");
    run(&at, &["backup", "tree", "--to", "../x.tar", "--quiet"]);
    let verified = |against: &str| {
        let output = run(path, &["verify", "x.tar", "--against", against]);
        let text = shown(&output, path);
        let probably = text.lines().find(|line| line.starts_with("nothing of the archive"));
        (output.status.code(), probably.map(str::to_owned), text.lines().count())
    };
    for wrong in ["here/tree", "here/tree/deep", "."] {
        let (code, probably, lines) = verified(wrong);
        let probably = probably.unwrap_or_else(|| panic!("nothing is said of {wrong}"));
        assert!(probably.contains(&format!("below {wrong}: try --against ")), "{probably}");
        assert!(probably.ends_with("/here"), "{probably}");
        assert!(code == Some(2) && lines < 50, "{lines} lines");
    }
    assert_eq!((verified("here").0, verified("here").1), (Some(0), None));
    let document = run(path, &["verify", "x.tar", "--against", "here/tree", "--json"]);
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert!(document["elsewhere"]["probably"].as_str().unwrap().ends_with("/here"), "{document}");
}

/// A run that cannot succeed fails and leaves nothing: a failed restore creates no folder, whatever
/// the reason.
#[test]
fn a_restore_of_nothing_leaves_nothing() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    fs::create_dir(path.join("there")).unwrap();
    let fails = |arguments: &[&str], expected: &str| {
        let output = run(path, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{said}");
        assert!(!path.join("out").exists(), "{arguments:?}");
    };
    let nothing = "takeup: nothing was restored: the archive has none of the paths\n";
    fails(&["restore", "x.tar", "--into", "out/deep", "no/such", "nor/that"], nothing);
    fails(&["restore", "x.tar", "--into", "out", "b/c"], "hint: try tree/b/c: the archive");
    fails(&["restore", "no.tar", "--into", "out/deep"], "cannot open no.tar");
    fails(&["restore", "x.tar", "--into", "there", "no/such"], nothing);
    assert!(path.join("there").exists(), "it was there before");
    let stripped = ["restore", "x.tar", "--into", "out", "--strip-components", "9"];
    fails(&stripped, "nothing was restored: no path in the archive has more than 9 components");
    fails(&["list", "x.tar", "no/such"], "takeup: none of the requested paths is in the archive");
    // Some of the paths are there: the others are warnings.
    let output = run(path, &["restore", "x.tar", "--into", "out", "no/such", "tree/b", "--quiet"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(path.join("out/tree/b/c").exists());
}

#[test]
fn names_can_not_command_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("tree")).unwrap();
    let name = OsString::from_vec(b"\x1b[2Jnew\nline\xff".to_vec());
    fs::write(path.join("tree").join(&name), "x").unwrap();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let listed = run(path, &["list", "x.tar"]);
    insta::assert_snapshot!("list_of_odd_names", shown(&listed, path));
    // Existing files give warnings.
    let restored = run(path, &["restore", "x.tar", "--into", ".", "--quiet"]);
    assert_eq!(restored.status.code(), Some(2));
    insta::assert_snapshot!("warning_of_odd_names", shown(&restored, path));
}

#[test]
fn what_exists_is_told_a_few_times_and_then_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("tree")).unwrap();
    for number in 0..3000 {
        fs::write(path.join(format!("tree/{number:04}")), "x").unwrap();
    }
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let again = ["restore", "x.tar", "--into", ".", "--no-sync"];
    let refused = run(path, &[&again[..], &["--quiet"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 23, "{text}");
    assert!(lines[..20].iter().all(|line| line.ends_with(": already exists")), "{text}");
    assert_eq!(lines[20], "takeup: warning: 2 980 more, -v lists the first 1 000: already exists");
    assert!(lines[21].starts_with("hint: add --overwrite "), "{text}");
    let verdict = "takeup: INCOMPLETE: 3 000 files exist already and stay (tree/";
    assert!(lines[22].starts_with(verdict), "{text}");
    let told = run(path, &[&again[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&document["existing"], &document["warnings_total"]), (&3000.into(), &3000.into()));
    assert_eq!(document["warnings"].as_array().unwrap().len(), 1000);
    for way in ["--overwrite", "--overwrite=replace", "--overwrite=keep-newer"] {
        let replaced = run(path, &[&again[..], &[way]].concat());
        assert_eq!((replaced.status.code(), &*replaced.stderr), (Some(0), &b""[..]), "{way}");
    }
}

#[test]
fn lost_files_are_named_a_few_times_and_then_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("tree")).unwrap();
    for number in 0..200 {
        fs::write(path.join(format!("tree/{number:04}")), "x").unwrap();
    }
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let mut archive = fs::read(path.join("x.tar")).unwrap();
    // A member takes 2 KiB: a pax header with its record, its own header and its content.
    archive[20 << 10..220 << 10].fill(b'#');
    fs::write(path.join("bad.tar"), archive).unwrap();
    let lost = |options: &[&str]| {
        let verified = run(path, &[&["verify", "bad.tar"], options].concat());
        assert_eq!(verified.status.code(), Some(1));
        let text = String::from_utf8(verified.stderr).unwrap();
        let named = text.lines().filter(|line| line.ends_with("archive: it is lost")).count();
        (named, text)
    };
    let (all, text) = lost(&["-v"]);
    assert!(all > 80, "{text}");
    let (few, text) = lost(&[]);
    // And the line that counts the others.
    assert_eq!(few, 21, "{text}");
    assert!(text.contains(&format!("{} more, -v lists them: is in", all - 20)), "{text}");
    assert!(text.contains("more, -v lists them: N bytes at byte N belong to no member"), "{text}");
}

#[test]
fn a_restore_is_done_when_it_is_on_the_disk() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let restore = ["restore", "x.tar", "--into", "restored", "--overwrite"];
    let cases = [(None, true, "everything is on"), (Some("--no-sync"), false, "still writes to")];
    for (option, synchronised, words) in cases {
        let arguments: Vec<&str> = restore.into_iter().chain(option).collect();
        let text = String::from_utf8(run(path, &arguments).stdout).unwrap();
        assert!(text.contains(words) && text.contains(" the disk"), "{text}");
        let told = run(path, &[&arguments[..], &["--json"]].concat());
        let document: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(document["synchronised"], synchronised);
        let seconds = document["synchronise_seconds"].as_f64().unwrap();
        assert_eq!(seconds > 0.0, synchronised, "{seconds}");
    }
}

#[test]
fn a_damaged_archive_is_told_and_fails() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let mut archive = fs::read(path.join("x.tar")).unwrap();
    let place = archive.windows(4).position(|bytes| bytes == b"cccc").unwrap();
    archive[place + 500] = b'C';
    fs::write(path.join("bad.tar"), archive).unwrap();
    let verified = run(path, &["verify", "bad.tar", "--quiet"]);
    assert_eq!(verified.status.code(), Some(1));
    let text = shown(&verified, path);
    assert!(text.contains("tree/b/c"), "{text}");
}

#[test]
fn changes_since_the_backup_are_told() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    fs::write(path.join("tree/a"), "another content\n").unwrap();
    fs::write(path.join("tree/new"), "").unwrap();
    fs::remove_file(path.join("tree/empty")).unwrap();
    let verified = run(path, &["verify", "x.tar", "--against", ".", "--json"]);
    assert_eq!(verified.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(document["sound"], true);
    assert_eq!(document["missing"]["items"], serde_json::json!(["tree/empty"]));
    assert_eq!(document["extra"]["items"], serde_json::json!(["tree/new"]));
    let changed = document["changed"]["items"].as_array().unwrap();
    assert!(changed.iter().any(|item| item["path"] == "tree/a"), "{document}");
    assert_eq!(document["differs"]["total"], 0);
}
