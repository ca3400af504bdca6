//! One backup run, with its messages and its results, under a watchdog.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use flow::monitor::{Counter, Level, Monitor, Notice};
use flow::run::RunReport;
use runs::backup::{BackupError, BackupOptions, backup};

/// No test here takes more than a few seconds; one that takes this long hangs.
const HANG: Duration = Duration::from_secs(60);

/// Ends the whole test program when the value lives longer than [`HANG`]: nothing else can stop the
/// threads of a run that hangs.
pub struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub fn new(what: impl Into<String>) -> Watchdog {
        let (what, done) = (what.into(), Arc::new(AtomicBool::new(false)));
        let watched = Arc::clone(&done);
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        std::thread::spawn(move || {
            let started = Instant::now();
            while started.elapsed() < HANG {
                if watched.load(Ordering::Acquire) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            eprintln!("{name} hangs: {what}");
            std::process::abort();
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Keeps the messages of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    notices: Mutex<Vec<Notice>>,
    members: Mutex<u64>,
}

impl Monitor for Recorder {
    fn count(&self, counter: Counter, amount: u64) {
        if counter == Counter::Members {
            *self.members.lock().unwrap() += amount;
        }
    }

    fn notice(&self, notice: Notice) {
        self.notices.lock().unwrap().push(notice);
    }
}

impl Recorder {
    /// What was told so far.
    pub fn texts(&self) -> Vec<String> {
        self.notices.lock().unwrap().iter().map(|notice| notice.text.clone()).collect()
    }
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Finished {
    pub report: RunReport,
    pub notices: Vec<Notice>,
    pub archive: PathBuf,
}

impl Finished {
    /// Object and text of the notices of some levels, in order of the object.
    pub fn texts(&self, is_wanted: impl Fn(Level) -> bool) -> Vec<(String, String)> {
        let wanted = self.notices.iter().filter(|notice| is_wanted(notice.level));
        let mut texts: Vec<_> = wanted
            .map(|notice| (String::from_utf8_lossy(&notice.object).into(), notice.text.clone()))
            .collect();
        texts.sort();
        texts
    }

    pub fn warnings(&self) -> Vec<(String, String)> {
        self.texts(|level| matches!(level, Level::Warning(_)))
    }

    pub fn notes(&self) -> Vec<(String, String)> {
        self.texts(|level| level == Level::Note)
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.archive).unwrap()
    }
}

/// Options for a backup of `sources` to `target`.
pub fn options(sources: &[&Path], target: &Path) -> BackupOptions {
    BackupOptions {
        sources: sources.iter().map(|source| source.to_path_buf()).collect(),
        target: target.into(),
        // A reservation is an eighth of it: a file of 9 MB is streamed.
        ring_bytes: 64 << 20,
        ..BackupOptions::default()
    }
}

/// Runs a backup that may fail.
pub fn try_run(options: &BackupOptions) -> Result<Finished, BackupError> {
    let _watchdog = Watchdog::new(format!("backup with {options:?}"));
    let recorder = Recorder::default();
    let report = backup(options, &recorder, &Cancel::new())?.run;
    let archive = PathBuf::from(options.target.name());
    assert_eq!(*recorder.members.lock().unwrap(), report.members, "members counted and reported");
    Ok(Finished { report, notices: recorder.notices.into_inner().unwrap(), archive })
}

/// Runs a backup that succeeds, with warnings or without.
pub fn run(options: &BackupOptions) -> Finished {
    try_run(options).unwrap_or_else(|error| panic!("{error}: {options:?}"))
}

/// Runs a backup without anything to warn about.
pub fn run_clean(options: &BackupOptions) -> Finished {
    let finished = run(options);
    assert_eq!(finished.warnings(), [], "{options:?}");
    finished
}
