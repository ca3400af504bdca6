//! The progress line on a real terminal, by `script` of util-linux, and how it gives way.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::small_tree;

/// Back to the start of the line, and clear to its end: a drawing begins so.
const CLEAR: &str = "\r\x1b[K";

/// A terminal of 80 columns with the program in it.
struct Session {
    script: Child,
    output: ChildStdout,
    shown: Vec<u8>,
}

impl Session {
    fn start(directory: &Path, arguments: &str) -> Session {
        let program = env!("CARGO_BIN_EXE_takeup");
        let line = format!("stty rows 24 cols 80 -echo; exec {program} {arguments}");
        let mut script = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
            .current_dir(directory)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux, is there");
        let output = script.stdout.take().unwrap();
        Session { script, output, shown: Vec::new() }
    }

    /// Reads until the terminal has shown this text.
    fn wait_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.text().contains(text) {
            let bytes = self.output.read(&mut buffer).unwrap();
            assert!(bytes > 0, "no {text:?} in {:?}", self.text());
            self.shown.extend_from_slice(&buffer[..bytes]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.script.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// All that was shown, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        self.output.read_to_end(&mut self.shown).unwrap();
        (self.text(), self.script.wait().unwrap().code())
    }
}

/// The drawings of the progress line.
fn drawings(shown: &str) -> Vec<&str> {
    let drawn = shown.split(CLEAR).skip(1).map(|it| it.lines().next().unwrap_or_default());
    drawn.filter(|line| !line.is_empty() && !line.starts_with("takeup:")).collect()
}

#[test]
fn the_line_says_how_much_is_left_and_where_the_run_is() {
    let directory = small_tree();
    let backup = "backup tree --to x.tar --rate-limit 100kB --block-size 4k --ring 32k";
    let mut session = Session::start(directory.path(), backup);
    session.wait_for(" left (from the scan ahead)");
    session.wait_for("  tree/b/c");
    let (shown, code) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    for line in drawings(&shown) {
        assert!(line.chars().count() < 80, "{line:?}");
    }
    let (_, answer) = shown.rsplit_once(CLEAR).unwrap();
    assert!(answer.starts_with("wrote x.tar: 3 files, "), "{shown:?}");
    let file = "pipe --from tree/b/c --to copy --rate-limit 50kB --block-size 4k --ring 32k";
    let mut session = Session::start(directory.path(), file);
    session.wait_for(" left (from the size of the file)");
    assert_eq!(session.end().1, Some(0));
    let again = format!("{backup} --overwrite");
    let mut session = Session::start(directory.path(), &again);
    session.wait_for(" left (from the last archive)");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn an_interrupt_takes_the_line_away_and_says_what_is_left() {
    let directory = small_tree();
    let backup = "backup tree --to x.tar --rate-limit 10kB --block-size 4k --ring 32k";
    let mut session = Session::start(directory.path(), backup);
    session.wait_for(" MB/s");
    session.press("\x03");
    let (shown, code) = session.end();
    assert_eq!(code, Some(1), "{shown:?}");
    let (_, end) = shown.rsplit_once(CLEAR).unwrap();
    let expected = "takeup: stopping at the next block; interrupt again to stop at once\r\n\
                    takeup: cancelled: nothing is left at x.tar\r\n";
    assert_eq!(end, expected, "{shown:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn there_is_no_line_with_quiet_and_none_without_a_terminal() {
    let directory = small_tree();
    let quiet = "backup tree --to x.tar --rate-limit 200kB --block-size 4k --ring 32k -q";
    let (shown, code) = Session::start(directory.path(), quiet).end();
    assert_eq!((&*shown, code), ("", Some(0)));
    let arguments = ["backup", "tree", "--to", "y.tar", "--rate-limit", "200kB"];
    let output = crate::run(directory.path(), &arguments);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

/// A verdict is coloured on a terminal, unless the user refuses colour.
#[test]
fn a_verdict_has_the_colour_of_its_state() {
    let directory = small_tree();
    let made = crate::run(directory.path(), &["backup", "tree", "--to", "x.tar", "-q"]);
    assert!(made.status.success());
    let sound = "\x1b[1;32mthe archive is sound";
    let (shown, code) = Session::start(directory.path(), "verify x.tar").end();
    assert!(code == Some(0) && shown.contains(sound), "{shown:?}");
    let mut bytes = fs::read(directory.path().join("x.tar")).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(directory.path().join("bad.tar"), bytes).unwrap();
    let (shown, code) = Session::start(directory.path(), "verify bad.tar").end();
    assert!(code == Some(1) && shown.contains("\x1b[1;31mDAMAGED"), "{shown:?}");
    let plain = crate::run(directory.path(), &["verify", "x.tar"]);
    assert!(!plain.stdout.contains(&0x1b));
}
