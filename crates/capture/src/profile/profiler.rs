//! Builds a profile from operations as they come: its memory depends on its limits, not on the
//! length of the recording.

use std::collections::HashMap;

use super::super::operation::{FileNumber, FileOperation, OpenedFile, Recording};
use super::gathered::{Gathered, Opening};
use super::timeline::Timeline;
use super::{Cost, Profile};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileLimits {
    /// Files with a profile; operations of others are counted.
    pub files: usize,
    /// Openings with their own entry; operations of others count as of files left out.
    pub openings: usize,
    /// Sizes of reads, and as many of writes, with a count of their own in each file.
    pub sizes: usize,
    /// Threads of each file whose pauses are seen.
    pub threads: usize,
    /// Words of 64 sectors, of all files, that say what was touched before; beyond it, places are
    /// sampled.
    pub words: usize,
}

impl Default for ProfileLimits {
    /// For a machine with a few gigabytes of memory: some 40 MB for the places, and up to 25 KB for
    /// each file.
    fn default() -> ProfileLimits {
        ProfileLimits { files: 4096, openings: 1 << 20, sizes: 256, threads: 512, words: 1 << 20 }
    }
}

/// An opening, and which of the gathered files its operations belong to.
#[derive(Clone, Copy, Debug)]
struct Opened {
    gathered: Option<usize>,
    opening: Opening,
}

/// Makes the profile of a recording while it is recorded.
#[derive(Debug)]
pub struct Profiler {
    limits: ProfileLimits,
    begin_ns: Option<u64>,
    end_ns: u64,
    opened: Vec<Opened>,
    gathered: Vec<Gathered>,
    by_path: HashMap<String, usize>,
    words: usize,
    lost_events: u64,
    files_left_out: u64,
    operations_left_out: u64,
    unseen: Vec<String>,
    cost: Option<Cost>,
}

impl Profiler {
    /// A profiler without operations.
    pub fn new(limits: ProfileLimits) -> Profiler {
        Profiler {
            limits,
            begin_ns: None,
            end_ns: 0,
            opened: Vec::new(),
            gathered: Vec::new(),
            by_path: HashMap::new(),
            words: 0,
            lost_events: 0,
            files_left_out: 0,
            operations_left_out: 0,
            unseen: Vec::new(),
            cost: None,
        }
    }

    /// When the recording began, by the clock of its operations; otherwise that is when the first
    /// of them began that was handed over.
    pub fn begin(&mut self, ns: u64) {
        self.begin_ns = Some(ns);
        self.end_ns = self.end_ns.max(ns);
    }

    /// When it ended; otherwise that is when the last of its operations did.
    pub fn end(&mut self, ns: u64) {
        self.end_ns = self.end_ns.max(ns);
    }

    /// Adds what this recording cannot show, as a sentence without a full stop.
    pub fn cannot_see(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.unseen.contains(&what) {
            self.unseen.push(what);
        }
    }

    /// What it cost to record.
    pub fn cost(&mut self, cost: Cost) {
        self.cost = Some(cost);
    }

    /// The profile so far.
    pub fn profile(&self) -> Profile {
        let recorded_ns = self.end_ns.saturating_sub(self.begin_ns.unwrap_or(self.end_ns));
        let used = self.gathered.iter().filter(|it| it.is_used());
        let mut timeline = Timeline::gather(recorded_ns);
        let profiled = used.map(|it| {
            let file = it.profile(recorded_ns);
            timeline.add(&file, it.series());
            file
        });
        let mut files: Vec<_> = profiled.collect();
        files.sort_by(|a, b| {
            let bytes = |it: &super::FileProfile| {
                it.read_bytes.unwrap_or(0).saturating_add(it.written_bytes.unwrap_or(0))
            };
            (bytes(b), b.calls).cmp(&(bytes(a), a.calls)).then_with(|| a.path.cmp(&b.path))
        });
        Profile {
            seconds: recorded_ns as f64 / 1e9,
            files,
            lost_events: self.lost_events,
            files_left_out: self.files_left_out,
            operations_left_out: self.operations_left_out,
            unseen: self.unseen.clone(),
            timeline: timeline.finish(),
            cost: self.cost,
        }
    }

    /// The gathered file that an opening belongs to; `None` beyond the limit.
    fn place_of(&mut self, file: &OpenedFile) -> Option<usize> {
        let known = file.path.as_ref().ok().and_then(|path| self.by_path.get(path).copied());
        if let Some(at) = known {
            self.gathered[at].again(file);
            return Some(at);
        }
        if self.gathered.len() >= self.limits.files {
            self.files_left_out += 1;
            return None;
        }
        let at = self.gathered.len();
        self.gathered.push(Gathered::new(file, self.limits.sizes, self.limits.threads));
        if let Ok(path) = &file.path {
            self.by_path.insert(path.clone(), at);
        }
        Some(at)
    }

    /// Halves the samples of places of the files that have the largest.
    fn halve(&mut self) {
        while self.words > self.limits.words {
            let largest = self.gathered.iter().map(Gathered::words).max().unwrap_or(0);
            for file in self.gathered.iter_mut().filter(|it| it.words() > largest / 2) {
                file.halve();
            }
            self.words = self.gathered.iter().map(Gathered::words).sum();
        }
    }
}

impl Recording for Profiler {
    fn file(&mut self, _number: FileNumber, file: &OpenedFile) {
        if self.opened.len() < self.limits.openings {
            let opening = Opening::of(file);
            let gathered = self.place_of(file);
            self.opened.push(Opened { gathered, opening });
        } else {
            self.files_left_out += 1;
        }
    }

    fn file_again(&mut self, number: FileNumber, file: &OpenedFile) {
        let Some(opened) = self.opened.get_mut(number as usize) else { return };
        opened.opening = Opening::of(file);
        let Some(at) = opened.gathered else { return };
        self.gathered[at].again(file);
        let Ok(path) = &file.path else { return };
        match self.by_path.get(path).copied() {
            // What was done before it had a name stays apart.
            Some(named) => self.opened[number as usize].gathered = Some(named),
            None => drop(self.by_path.insert(path.clone(), at)),
        }
    }

    fn operation(&mut self, operation: &FileOperation) {
        let begin_ns = *self.begin_ns.get_or_insert(operation.start_ns);
        let end_ns = operation.start_ns.saturating_add(operation.duration_ns.unwrap_or(0));
        self.end_ns = self.end_ns.max(end_ns);
        let opened = self.opened.get(operation.file as usize);
        let Some(Opened { gathered: Some(at), opening }) = opened else {
            self.operations_left_out += 1;
            return;
        };
        let at_ns = operation.start_ns.saturating_sub(begin_ns);
        self.words += self.gathered[*at].operation(operation, opening, at_ns);
        if self.words > self.limits.words {
            self.halve();
        }
    }

    fn depths(&mut self, number: FileNumber, counts: &[(u32, u64)]) {
        let opened = self.opened.get(number as usize);
        if let Some(at) = opened.and_then(|it| it.gathered) {
            self.gathered[at].depths(counts);
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost_events += events;
    }
}
