//! Reports the tests that were left out, past the output capture of the test harness.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// How much of a test was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestExtent {
    LeftOut,
    /// Some of what it asserts.
    InPart,
}

impl TestExtent {
    fn words(self) -> &'static str {
        match self {
            TestExtent::LeftOut => "left out",
            TestExtent::InPart => "in part",
        }
    }
}

/// Appends `extent, test, need, reason`, separated by tabs, to the file of this run, and prints the
/// same to standard error. Once per test.
///
/// # Panics
/// When the file of this run cannot be written: the omission would go unnoticed.
pub fn tell(extent: TestExtent, module: &str, need: &str, why: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let current = std::thread::current();
    // The harness names a test's thread after the test; with one thread it is the main thread.
    let program = module.split("::").next().unwrap_or(module);
    let test = match current.name() {
        Some(name) if name != "main" => format!("{program}::{name}"),
        _ => module.to_owned(),
    };
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}\t{test}\t{need}\t{why}\n", extent.words());
    if !TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        return;
    }
    // Not with `eprint!`: the harness hides its output when the test passes.
    let words = format!("{}: {test}: needs {need}: {why}\n", extent.words());
    let _ = std::io::stderr().write_all(words.as_bytes());
    if let Some(path) = std::env::var_os("TAKEUP_TESTS_LEFT_OUT") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}
