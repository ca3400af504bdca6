//! A real terminal, by `script` of util-linux: however the watch ends, the terminal is restored.
//!
//! This program starts itself in the terminal: with the argument `child` it is the watch. Nothing
//! here depends on timing.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use report::table::Colour;
use screen::draw::Look;
use screen::run::{Live, ScreenEnd, run};
use watch::intervals::Interval;

/// Timeout, far above any normal duration.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// Sequences that take the whole terminal, and restore it.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";
const CURSOR_SHOWN: &str = "\x1b[?25h";

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("child") => child(std::env::var_os("PANICS").is_some()),
        _ => parent(),
    }
}

/// The watch: an interval every few milliseconds, and a thread that panics on request.
fn child(panics: bool) {
    let (sender, receiver) = sync_channel::<Result<Interval, String>>(64);
    spawn(move || {
        for number in 0.. {
            let interval = Interval {
                seconds: 1.0,
                unix_seconds: number,
                devices: Vec::new(),
                tapes: Vec::new(),
                vanished: vec![format!("disk{number}")],
            };
            if sender.send(Ok(interval)).is_err() {
                return;
            }
            sleep(STEP);
            assert!(!panics || !Path::new("panic").exists(), "it broke down");
        }
    });
    let look = Look { title: "the watch".to_owned(), colour: Colour::Ansi };
    let ended = run(&mut Live(receiver), &look).unwrap();
    if let ScreenEnd::Signal(signal) = ended {
        signal_hook::low_level::emulate_default_handler(signal).unwrap();
    }
    std::process::exit(if ended == ScreenEnd::Quit { 0 } else { 7 });
}

/// How it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Plain,
    /// It panics on request.
    Panics,
    /// It ignores SIGHUP.
    Deaf,
}

/// A terminal with the watch in it.
struct Session {
    folder: tempfile::TempDir,
    script: Child,
    keys: ChildStdin,
}

impl Session {
    fn start(how: Start) -> Session {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        // Files hold the settings of the terminal before and after.
        let line = format!(
            "stty rows 24 cols 80; tty >tty; stty -g >before; \
             sh -c 'echo $$ >process; exec {} child'; echo $? >code; stty -g >after",
            own.display()
        );
        // With SIGHUP ignored, as by nohup: no program in the terminal gets the hangup.
        let by = if how == Start::Deaf { "trap '' HUP; exec \"$@\"" } else { "exec \"$@\"" };
        let mut command = Command::new("sh");
        command.args(["-c", by, "sh", "script", "--quiet", "--flush", "--command", &line, "log"]);
        if how == Start::Panics {
            command.env("PANICS", "1");
        }
        let mut script = command
            .current_dir(folder.path())
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("script, of util-linux, is there");
        let keys = script.stdin.take().unwrap();
        let session = Session { folder, script, keys };
        session.wait_for(&format!("{TAKEN}[...]the watch[...]is gone"));
        session
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.path(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the output to the terminal has these parts in this order.
    fn wait_for(&self, parts: &str) {
        let began = Instant::now();
        loop {
            let log = self.text("log");
            let mut rest = Some(log.as_str());
            for part in parts.split("[...]") {
                rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, behind)| behind);
            }
            if rest.is_some() {
                return;
            }
            let end: String =
                log.chars().rev().take(500).collect::<Vec<_>>().iter().rev().collect();
            assert!(began.elapsed() < PATIENCE, "no {parts:?} in what ends with {end:?}");
            sleep(STEP);
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn signal(&self, name: &str) {
        let process = self.text("process");
        let sent = Command::new("kill").args([name, process.trim()]).status().unwrap();
        assert!(sent.success(), "{name}");
    }

    /// Waits for the end, and checks that the terminal is restored.
    fn end(&mut self, how: &str) -> (String, String) {
        let began = Instant::now();
        while self.script.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "{how}: it never ended: {:?}", self.text("log"));
            sleep(STEP);
        }
        let (before, after) = (self.text("before"), self.text("after"));
        assert!(!before.is_empty() && before == after, "{how}: {before} {after}");
        let log = self.text("log");
        let (_, behind) = log.rsplit_once(GIVEN_BACK).unwrap_or_else(|| panic!("{how}: {log:?}"));
        assert!(behind.contains(CURSOR_SHOWN) && !behind.contains(TAKEN), "{how}: {behind:?}");
        assert!(!behind.contains("is gone"), "{how}: drawn behind the end: {behind:?}");
        (self.text("code").trim().to_owned(), behind.to_owned())
    }
}

impl Drop for Session {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let process = self.text("process");
            let _ = Command::new("kill").args(["-KILL", process.trim()]).status();
            let _ = self.script.kill();
        }
    }
}

fn parent() {
    for (keys, how) in [("q", "q"), ("\x03", "Ctrl-C")] {
        let mut session = Session::start(Start::Plain);
        session.press(keys);
        assert_eq!(session.end(how).0, "0", "{how}");
    }
    for (signal, code) in [("-TERM", "143"), ("-HUP", "129"), ("-INT", "130")] {
        let mut session = Session::start(Start::Plain);
        session.signal(signal);
        assert_eq!(session.end(signal).0, code, "{signal}");
    }
    // The terminal disappears, as when a window is closed.
    for how in [Start::Plain, Start::Deaf] {
        let mut session = Session::start(how);
        let process = session.text("process");
        session.script.kill().unwrap();
        session.script.wait().unwrap();
        let began = Instant::now();
        while Path::new("/proc").join(process.trim()).exists() {
            assert!(began.elapsed() < PATIENCE, "{how:?}: it goes on without a terminal");
            sleep(STEP);
        }
    }

    let mut session = Session::start(Start::Panics);
    fs::write(session.path("panic"), "").unwrap();
    let (code, behind) = session.end("a panic");
    assert_eq!(code, "7");
    assert!(behind.contains("it broke down"), "the message can be read: {behind:?}");

    let mut session = Session::start(Start::Plain);
    let tty = session.text("tty");
    let wide = ["-F", tty.trim(), "rows", "30", "cols", "150"];
    assert!(Command::new("stty").args(wide).status().unwrap().success());
    // The foot is on line 30 now.
    session.wait_for("\x1b[30;");
    session.press("?");
    session.wait_for("Ctrl-Z");
    session.press("q");
    assert_eq!(session.end("a terminal that has grown").0, "0");

    let mut session = Session::start(Start::Plain);
    session.press("?q");
    assert_eq!(session.end("keys typed ahead").0, "0");
}
