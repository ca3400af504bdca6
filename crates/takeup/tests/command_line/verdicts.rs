//! The first line of a summary is the verdict on the user's data. It is printed with `--quiet` too,
//! and the exit code agrees.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{run, shown, small_tree, takeup};

/// A user without permissions.
const NOBODY: u32 = 65_534;

fn first_line(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

fn last_error(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

/// Runs the command three times: the verdict is the first line of the summary, the last line of
/// standard error with `--quiet`, and in the document.
#[track_caller]
fn check(directory: &Path, arguments: &[&str], state: &str, verdict: &str, code: i32) {
    let output = run(directory, arguments);
    assert_eq!(output.status.code(), Some(code), "{}", shown(&output, directory));
    assert_eq!(first_line(&output), verdict, "{}", shown(&output, directory));
    let quiet = run(directory, &[arguments, &["--quiet"]].concat());
    assert_eq!(quiet.status.code(), Some(code), "{}", shown(&quiet, directory));
    assert!(quiet.stdout.is_empty());
    assert_eq!(last_error(&quiet), format!("takeup: {verdict}"), "{}", shown(&quiet, directory));
    let document = run(directory, &[arguments, &["--json"]].concat());
    assert_eq!(document.status.code(), Some(code), "{}", shown(&document, directory));
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!((&document["verdict"], &document["verdict_text"]), (&state.into(), &verdict.into()));
}

fn flip(directory: &Path, from: &str, to: &str, what: &[u8]) {
    let mut archive = fs::read(directory.join(from)).unwrap();
    let place = archive.windows(what.len()).position(|bytes| bytes == what).unwrap();
    archive[place] ^= 1;
    fs::write(directory.join(to), archive).unwrap();
}

/// More is restored than the archive meant: this must be reported with --quiet, too.
#[test]
fn a_second_archive_is_told_with_quiet_too() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let one = fs::read(path.join("x.tar")).unwrap();
    fs::write(path.join("two.tar"), one.repeat(2)).unwrap();
    let commands = [
        &["verify", "two.tar"][..],
        &["list", "two.tar"],
        &["restore", "two.tar", "--into", "out", "--overwrite"],
    ];
    for arguments in commands {
        let quiet = run(path, &[arguments, &["--quiet"]].concat());
        assert_eq!(quiet.status.code(), Some(0), "{}", shown(&quiet, path));
        let told = String::from_utf8(quiet.stderr.clone()).unwrap();
        assert_eq!(told.matches("another archive follows at byte").count(), 1, "{told}");
    }
}

#[test]
fn one_flaw_is_one_damaged_file() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    flip(path, "x.tar", "bad.tar", b"cccc");
    let verdict = "DAMAGED: 1 of 3 files (tree/b/c); the rest is intact";
    check(path, &["verify", "bad.tar"], "damaged", verdict, 1);
    let verdict = "DAMAGED: 1 file or folder is damaged or lost (tree/b/c)";
    let restore = ["restore", "bad.tar", "--into", "out", "--overwrite"];
    check(path, &restore, "damaged", verdict, 1);
    // Damage matters more than existing files.
    let output = run(path, &["restore", "bad.tar", "--into", "out"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output, path));
    let first = first_line(&output);
    assert!(
        first.starts_with("DAMAGED: 1 file or folder is damaged or lost (tree/b/c); "),
        "{first}"
    );
    assert!(first.contains("exist already and stay"), "{first}");
}

/// Padding and headers are not content of a file.
#[test]
fn damage_outside_of_contents_is_told_as_that() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let mut archive = fs::read(path.join("x.tar")).unwrap();
    let place = archive.windows(12).position(|bytes| bytes == b"content of a").unwrap();
    archive[place + 100] = b'x';
    fs::write(path.join("bad.tar"), archive).unwrap();
    let output = run(path, &["verify", "bad.tar"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output, path));
    let first = first_line(&output);
    assert!(first.starts_with("DAMAGED: ") && first.ends_with("all files are intact"), "{first}");
    assert!(first.contains("1 block differs outside of file contents"), "{first}");
}

#[test]
fn a_sound_archive_says_so_first() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let first = first_line(&run(path, &["verify", "x.tar"]));
    let sound = "the archive is sound: checked with 3 content hashes and 1 block checksum";
    assert_eq!(first, sound);
    fs::write(path.join("tree/a"), "another content\n").unwrap();
    let against = ["verify", "x.tar", "--against", "."];
    let verdict = "DIFFERENT: the archive is sound; of 6 members compared with live files 1 \
                   changed since the backup";
    check(path, &against, "different", verdict, 2);
}

#[test]
fn what_could_not_be_read_is_counted_first() {
    let directory = small_tree();
    let path = directory.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    let secrets = path.join("secrets");
    fs::create_dir(&secrets).unwrap();
    for number in 0..60 {
        let file = secrets.join(format!("{number:02}"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
    }
    let verdict = "INCOMPLETE: 60 files could not be read (secrets/00 and others); the archive \
                   holds no file";
    // The program may be where only root can run it.
    let program = path.join("program");
    fs::copy(takeup().get_program(), &program).unwrap();
    let as_nobody = |more: &[&str]| {
        let mut command = Command::new(&program);
        command.env_clear().env("LC_ALL", "C").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let backup = ["backup", "secrets", "--to", "s.tar", "--overwrite"];
        command.current_dir(path).args(backup).args(more).output().unwrap()
    };
    let output = as_nobody(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output, path));
    assert_eq!(first_line(&output), verdict);
    let quiet = as_nobody(&["--quiet"]);
    assert_eq!((quiet.status.code(), last_error(&quiet)), (Some(2), format!("takeup: {verdict}")));
}

#[test]
fn an_archive_in_which_nothing_is_is_told() {
    let directory = small_tree();
    let path = directory.path();
    let verdict = "INCOMPLETE: the archive holds no file: --exclude * left out everything";
    let backup = ["backup", "tree", "--exclude", "*", "--to", "x.tar", "--overwrite", "--force"];
    check(path, &backup, "incomplete", verdict, 2);
    // Files that were left out on purpose, beside others, give no verdict.
    let some = run(path, &["backup", "tree", "-x", "b", "--to", "y.tar", "--quiet"]);
    assert_eq!((some.status.code(), &*some.stderr), (Some(0), &b""[..]));
    // An unmounted disk looks like this: nothing was left out, and the folder is empty.
    fs::create_dir(path.join("hollow")).unwrap();
    let verdict = "EMPTY: the archive holds no file: there was none to archive";
    let backup = ["backup", "hollow", "--to", "h.tar", "--overwrite"];
    check(path, &backup, "empty", verdict, 0);
    let first = first_line(&run(path, &["verify", "h.tar"]));
    assert_eq!(first, "the archive is sound, and holds no file: checked with 1 block checksum");
    // Links count.
    fs::create_dir(path.join("links")).unwrap();
    std::os::unix::fs::symlink("elsewhere", path.join("links/one")).unwrap();
    let some = run(path, &["backup", "links", "--to", "l.tar", "--quiet"]);
    assert_eq!((some.status.code(), &*some.stderr), (Some(0), &b""[..]));
    let first = first_line(&run(path, &["verify", "l.tar"]));
    let expected = "the archive is sound, and holds no regular file: checked with 1 block checksum";
    assert_eq!(first, expected);
    // The folder behind a link was meant, as whoever else follows it would think.
    std::os::unix::fs::symlink("tree", path.join("link")).unwrap();
    let verdict = "INCOMPLETE: the archive holds no file: link is a symbolic link; link/ backs up \
                   the folder behind it";
    check(path, &["backup", "link", "--to", "s.tar", "--overwrite"], "incomplete", verdict, 2);
    let behind = run(path, &["backup", "link/", "--to", "b.tar", "--quiet"]);
    assert_eq!((behind.status.code(), &*behind.stderr), (Some(0), &b""[..]));
    fs::write(path.join("nothing"), "").unwrap();
    let pipe = ["pipe", "--from", "nothing", "--to", "p", "--overwrite"];
    check(path, &pipe, "empty", "EMPTY: the source gave no data", 0);
}

#[test]
fn what_exists_already_and_what_is_not_there() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    run(path, &["restore", "x.tar", "--into", ".", "--quiet"]);
    let output = run(path, &["restore", "x.tar", "--into", "."]);
    assert_eq!(output.status.code(), Some(2));
    let first = first_line(&output);
    // Several threads restore, so the first file varies.
    assert!(first.starts_with("INCOMPLETE: 4 files exist already and stay (tree/"), "{first}");
    let verdict = "INCOMPLETE: 1 path is not in the archive (tree/zzz)";
    let some = ["restore", "x.tar", "--into", "out", "--overwrite", "tree/a", "tree/zzz"];
    let output = run(path, &some);
    assert_eq!((output.status.code(), first_line(&output)), (Some(2), verdict.to_owned()));
}

/// A list has no summary: the verdict follows it, on standard error.
#[test]
fn a_list_of_a_damaged_archive_says_so_last() {
    let directory = small_tree();
    let path = directory.path();
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    // The end with the index is missing; the mark that announces an index is there.
    let archive = fs::read(path.join("x.tar")).unwrap();
    fs::write(path.join("cut.tar"), &archive[..archive.len() / 2]).unwrap();
    for quiet in [&["list", "cut.tar"][..], &["list", "cut.tar", "--quiet"]] {
        let output = run(path, quiet);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output, path));
        let verdict = "takeup: DAMAGED: the end of the archive is missing or was overwritten: \
                       more may be lost";
        assert_eq!(last_error(&output), verdict, "{}", shown(&output, path));
    }
}
