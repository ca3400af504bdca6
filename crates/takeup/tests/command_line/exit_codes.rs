//! One table of exit codes for all commands: 0 done, 1 failed or damage found, 2 done but
//! incomplete, 3 written by a later version.

use std::fs;
use std::path::Path;

use crate::{run, shown, small_tree};

/// The last line of every command's help.
const LINE: &str = "Exit codes: 0 done, 1 failed or damage found, 2 done but incomplete, 3 \
                    written by a later version.";

/// Commands and their exit codes, in a folder that [`scene`] makes. The order matters: some
/// commands leave files that others need.
const TABLE: [(&str, i32); 50] = [
    ("backup tree --to new.tar", 0),
    ("backup no-such --to none.tar", 1),
    ("backup tree --to new.tar", 1),
    ("backup tree --exclude * --to empty.tar", 2),
    ("verify x.tar", 0),
    ("verify bad.tar", 1),
    ("verify cut.tar", 1),
    ("verify no-such", 1),
    ("verify x.tar --against elsewhere", 2),
    ("verify later.tar", 3),
    ("restore x.tar --into out", 0),
    ("restore bad.tar --into out-bad", 1),
    ("restore garbage --into out-garbage", 1),
    ("restore x.tar --into out", 2),
    ("restore x.tar --into out --overwrite tree/a no-such", 2),
    ("restore x.tar --into out no-such", 1),
    ("restore later.tar --into out-later", 3),
    ("list x.tar", 0),
    ("list cut.tar", 1),
    ("list x.tar tree/a no-such", 2),
    ("list x.tar no-such", 1),
    ("list -l later.tar", 3),
    ("pipe --from x.tar --to copy.tar", 0),
    ("pipe --from x.tar --to copy.tar", 1),
    ("pipe --bogus", 1),
    ("plan --drive lto8 --source-rate 60MB --size 1TB", 0),
    ("plan --drive lto8 --source-rate 60MB --size 100TB --window 1h", 2),
    ("plan --drive lto99 --source-rate 60MB --size 1TB", 1),
    ("plan --from later.ndjson --source-rate 60MB --size 1TB", 3),
    ("probe tree", 0),
    ("probe no-such", 1),
    ("report record.ndjson", 0),
    ("report garbage", 1),
    ("report later.ndjson", 3),
    ("report later.watch", 3),
    ("report later.capture", 3),
    ("report later.run", 3),
    ("compare record.ndjson other.ndjson", 0),
    ("compare record.ndjson later.ndjson", 3),
    ("compare record.ndjson record.ndjson", 1),
    ("watch --from garbage", 1),
    ("watch --from later.watch", 3),
    ("capture --from garbage", 1),
    ("capture --from later.capture", 3),
    ("bench read x.tar --print-plan --engines psync", 0),
    ("bench read no-such --engines psync --repeats 3", 1),
    ("sim status tree", 1),
    ("rules", 0),
    ("completions bash", 0),
    ("completions cmd", 1),
];

fn scene(path: &Path) {
    run(path, &["backup", "tree", "--to", "x.tar", "--quiet"]);
    let archive = fs::read(path.join("x.tar")).unwrap();
    let mut bad = archive.clone();
    let place = bad.windows(4).position(|bytes| bytes == b"cccc").unwrap();
    bad[place] ^= 1;
    fs::write(path.join("bad.tar"), bad).unwrap();
    fs::write(path.join("cut.tar"), &archive[..archive.len() / 2]).unwrap();
    fs::write(path.join("later.tar"), later(archive)).unwrap();
    fs::write(path.join("garbage"), vec![b'x'; 5000]).unwrap();
    fs::create_dir(path.join("elsewhere")).unwrap();
    for name in ["record", "other"] {
        let options = "--cache buffered --block-size 4k --length 4k --repeats 3";
        let file = format!("{name}.ndjson");
        let bench = format!("bench read x.tar {options} -o {file}");
        let output = run(path, &bench.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{}", shown(&output, path));
    }
    let record = fs::read_to_string(path.join("record.ndjson")).unwrap();
    let later = record.replacen("\"format\":1", "\"format\":2", 1);
    assert_ne!(record, later);
    fs::write(path.join("later.ndjson"), later).unwrap();
    fs::write(path.join("later.watch"), "{\"takeup_watch\":2}\n").unwrap();
    fs::write(path.join("later.capture"), "{\"takeup_capture\":2}\n").unwrap();
    fs::write(path.join("later.run"), "{\"takeup_run\":2}\n").unwrap();
}

/// An archive with an index of version 2.
fn later(mut archive: Vec<u8>) -> Vec<u8> {
    const COMMENT: &[u8] = b"comment=takeup index 1";
    let mut places = archive.windows(COMMENT.len()).enumerate();
    let place = places.find(|(_, bytes)| *bytes == COMMENT).map(|(place, _)| place).unwrap();
    archive[place + COMMENT.len() - 1] = b'2';
    archive
}

#[test]
fn every_command_keeps_to_the_table() {
    let directory = small_tree();
    let path = directory.path();
    scene(path);
    let mut wrong = Vec::new();
    for (words, code) in TABLE {
        let output = run(path, &words.split(' ').collect::<Vec<_>>());
        if output.status.code() != Some(code) {
            wrong.push(format!("{words}: {code} expected, {}", shown(&output, path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_help_of_every_command_has_the_table() {
    let help = |arguments: &[&str]| {
        let output = run(Path::new("/"), arguments);
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = help(&["--help"]);
    for row in ["0 done", "1 failed, or damage was found", "2 done, but something ", "3 the data "]
    {
        assert!(whole.contains(row), "{row}: {whole}");
    }
    for command in ["backup", "verify", "bench tape", "sim disk", "tune show", "rules", "plan"] {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        assert!(help(&arguments).ends_with(LINE), "{command}");
    }
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), &["man", "."]);
    let page = fs::read_to_string(directory.path().join("takeup-verify.1")).unwrap();
    for row in ["\\fB0\\fR\nDone.", "\\fB1\\fR\nFailed, or damage was found."] {
        assert!(page.contains(row), "{row}: {page}");
    }
}
