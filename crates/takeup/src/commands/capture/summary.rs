//! What was done to each file, counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use observe::capture::operation::{Asked, Engine, FileNumber, OpenedFile, Operation, Recording};
use report::escape::escape_controls;
use serde_json::{Value, json};

use super::Recorded;

/// Counts of one file and engine.
#[derive(Clone, Debug, Default)]
struct Counts {
    reads: u64,
    writes: u64,
    syncs: u64,
    others: u64,
    read_bytes: u64,
    written_bytes: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Summary {
    files: Vec<OpenedFile>,
    counts: BTreeMap<(FileNumber, Engine), Counts>,
}

impl Recording for Summary {
    fn file(&mut self, _: FileNumber, file: &OpenedFile) {
        self.files.push(file.clone());
    }

    fn file_again(&mut self, number: FileNumber, file: &OpenedFile) {
        if let Some(known) = self.files.get_mut(number as usize) {
            *known = file.clone();
        }
    }

    fn operation(&mut self, operation: &Operation) {
        let counts = self.counts.entry((operation.file, operation.engine)).or_default();
        let bytes = operation.done_bytes.or(operation.asked_bytes).unwrap_or(0);
        match operation.asked {
            Asked::Read => {
                counts.reads += 1;
                counts.read_bytes += bytes;
            }
            Asked::Write => {
                counts.writes += 1;
                counts.written_bytes += bytes;
            }
            Asked::Sync(_) => counts.syncs += 1,
            Asked::Allocate | Asked::Discard => counts.others += 1,
        }
    }

    fn lost(&mut self, _: u64) {}
}

impl Summary {
    fn name(&self, number: FileNumber) -> String {
        let file = self.files.get(number as usize);
        match file.map(|file| &file.path) {
            Some(Ok(path)) => escape_controls(path),
            Some(Err(why)) => format!("(unknown: {why})"),
            None => "(unknown)".to_owned(),
        }
    }

    /// The files, for a program.
    pub fn document(&self) -> Value {
        let one = |((number, engine), counts): (&(FileNumber, Engine), &Counts)| {
            let file = self.files.get(*number as usize);
            json!({
                "path": file.and_then(|file| file.path.clone().ok()),
                "engine": engine,
                "direct": file.and_then(|file| file.direct.ok()),
                "calls": counts.reads + counts.writes + counts.syncs + counts.others,
                "reads": counts.reads,
                "writes": counts.writes,
                "read_bytes": counts.read_bytes,
                "written_bytes": counts.written_bytes,
                "syncs": counts.syncs,
            })
        };
        self.counts.iter().map(one).collect()
    }

    /// The files, for a person.
    pub fn text(&self, recorded: &Recorded) -> String {
        let mut text = format!("{} recorded\n", report::format::duration(recorded.seconds));
        for ((number, engine), counts) in &self.counts {
            let _ = writeln!(
                text,
                "{}  {engine:?}: {} reads {}, {} writes {}, {} syncs",
                self.name(*number),
                counts.reads,
                report::format::size(counts.read_bytes),
                counts.writes,
                report::format::size(counts.written_bytes),
                counts.syncs
            );
        }
        if recorded.ended.lost_events > 0 {
            let _ = writeln!(text, "{} events were lost", recorded.ended.lost_events);
        }
        for sentence in &recorded.ended.unseen {
            let _ = writeln!(text, "{sentence}");
        }
        text
    }
}
