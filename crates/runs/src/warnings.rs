//! Counts the warnings of a reading run on their way to the monitor.

use std::sync::atomic::{AtomicU64, Ordering};

use archive::stream::ArchiveOffset;
use flow::monitor::{Harm, Level, Monitor, Notice};

use crate::read::Damage;

/// Passes notices on and counts the warnings. Shared by the threads of a run.
pub(crate) struct Warnings<'a> {
    monitor: &'a dyn Monitor,
    count: AtomicU64,
}

impl<'a> Warnings<'a> {
    pub fn new(monitor: &'a dyn Monitor) -> Warnings<'a> {
        Warnings { monitor, count: AtomicU64::new(0) }
    }

    /// Where the warnings go.
    pub fn monitor(&self) -> &'a dyn Monitor {
        self.monitor
    }

    /// How many were given so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Warns.
    pub fn warn(&self, harm: Harm, object: &[u8], text: impl Into<String>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.tell(Level::Warning(harm), object, text);
    }

    /// Adds a note.
    pub fn note(&self, object: &[u8], text: impl Into<String>) {
        self.tell(Level::Note, object, text);
    }

    /// A second archive in the same source: its members may replace those of the first.
    pub fn next_archive(&self, offset_bytes: ArchiveOffset) {
        let text = format!("another archive follows at byte {offset_bytes}");
        self.tell(Level::Notable, b"", text);
    }

    /// Damage of the archive.
    pub fn damage(&self, damage: &Damage) {
        if damage.counts() {
            self.warn(damage.harm(), &damage.path, damage.to_string());
        } else {
            self.note(&damage.path, damage.to_string());
        }
    }

    /// A property of an object that could not be restored.
    pub fn metadata(&self, problem: &tree::MetadataProblem) {
        let text = format!("cannot restore {}: {}", problem.what, problem.source);
        self.warn(Harm::Metadata, &problem.path, text);
    }

    fn tell(&self, level: Level, object: &[u8], text: impl Into<String>) {
        self.monitor.notice(Notice { level, object: object.to_vec(), text: text.into() });
    }
}
