//! What is gathered of one file while operations come in, and the profile that it makes.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use super::super::operation::{
    Asked, Engine, FileKind, FileOperation, Known, OpenedFile, SyncCall, Unknown,
};
use super::class::{self, Behaviour};
use super::known_words::{FEW, NONE};
use super::order::{Mixing, Sequence, Spread, Touched};
use super::tally::{Histogram, Numbers, Untold};
use super::time::{Bursts, Series};
use super::{BlockSizes, FileProfile, Sync};

/// Sizes of reads and of writes that a profile lists.
const SIZES_TOLD: usize = 32;
/// Numbers of operations in flight, or between two syncs, that are counted exactly.
const SMALL_NUMBERS: usize = 256;
/// What share of operations has to tell something for it to be told of all.
const NEARLY_ALL: f64 = 0.9;
/// Parts of a recording that a series has.
const PARTS: usize = 100;

/// What of a file's opening its operations are counted by.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    direct: Known<bool>,
    synchronous: Known<bool>,
    append: Known<bool>,
}

impl Opening {
    /// Of a file.
    pub fn of(file: &OpenedFile) -> Opening {
        let OpenedFile { direct, synchronous, append, .. } = *file;
        Opening { direct, synchronous, append }
    }
}

/// Yes or no, of how many operations.
#[derive(Clone, Debug, Default)]
struct Votes {
    counts: [u64; 2],
    untold: Untold,
}

impl Votes {
    fn add(&mut self, known: Known<bool>) {
        if let Some(is) = self.untold.or_count(known) {
            self.counts[usize::from(is)] += 1;
        }
    }
}

/// Times in ns, or what they were not told for.
#[derive(Clone, Debug, Default)]
struct Times {
    histogram: Histogram,
    untold: Untold,
}

impl Times {
    fn add(&mut self, known: Known<u64>) {
        if let Some(ns) = self.untold.or_count(known) {
            self.histogram.add(ns);
        }
    }
}

/// One direction: reads or writes.
#[derive(Clone, Debug)]
struct Direction {
    count: u64,
    bytes: u64,
    bytes_untold: Untold,
    sizes: Numbers,
    sequence: Sequence,
}

impl Direction {
    fn new(sizes: usize) -> Direction {
        Direction {
            count: 0,
            bytes: 0,
            bytes_untold: Untold::default(),
            sizes: Numbers::new(sizes),
            sequence: Sequence::default(),
        }
    }
}

/// All of one file.
#[derive(Clone, Debug)]
pub struct Gathered {
    path: Known<String>,
    kind: FileKind,
    deleted: bool,
    size_bytes: Known<u64>,
    calls: u64,
    errors: u64,
    engines: BTreeMap<Engine, u64>,
    /// The one of the last operation that is neither read nor write.
    other_engine: Option<Engine>,
    /// Reads, and writes.
    directions: [Direction; 2],
    sizes_untold: Untold,
    places_untold: Untold,
    /// Where the last write began and ended, and how many began within the one before.
    last_write: Option<(u64, u64)>,
    rewrites: u64,
    writes_placed: u64,
    touched: Touched,
    spread: Spread,
    direct: Votes,
    synchronous: Votes,
    append: Votes,
    syncs: BTreeMap<SyncCall, u64>,
    writes_since_sync: Option<u64>,
    between_syncs: Numbers,
    sync_times: Times,
    in_flight: Numbers,
    in_flight_untold: Untold,
    /// When each thread last had an answer here; `None` where that is not known.
    threads: HashMap<u32, Option<u64>, BuildHasherDefault<Mixing>>,
    threads_limit: usize,
    think: Histogram,
    latency: Times,
    bursts: Bursts,
    series: Series,
}

impl Gathered {
    /// Nothing yet of `file`, with a count for each of `sizes` sizes and a pause for each of
    /// `threads_limit` threads.
    pub fn new(file: &OpenedFile, sizes: usize, threads_limit: usize) -> Gathered {
        Gathered {
            path: file.path.clone(),
            kind: file.kind,
            deleted: file.deleted,
            size_bytes: file.size_bytes,
            calls: 0,
            errors: 0,
            engines: BTreeMap::new(),
            other_engine: None,
            directions: [Direction::new(sizes), Direction::new(sizes)],
            sizes_untold: Untold::default(),
            places_untold: Untold::default(),
            last_write: None,
            rewrites: 0,
            writes_placed: 0,
            touched: Touched::default(),
            spread: Spread::default(),
            direct: Votes::default(),
            synchronous: Votes::default(),
            append: Votes::default(),
            syncs: BTreeMap::new(),
            writes_since_sync: None,
            between_syncs: Numbers::new(SMALL_NUMBERS),
            sync_times: Times::default(),
            in_flight: Numbers::new(SMALL_NUMBERS),
            in_flight_untold: Untold::default(),
            threads: HashMap::default(),
            threads_limit,
            think: Histogram::default(),
            latency: Times::default(),
            bursts: Bursts::default(),
            series: Series::default(),
        }
    }

    /// More became known of it, or it was opened once more.
    pub fn again(&mut self, file: &OpenedFile) {
        if self.path.is_err() {
            self.path.clone_from(&file.path);
        }
        if self.kind == FileKind::Other {
            self.kind = file.kind;
        }
        self.deleted |= file.deleted;
        if file.size_bytes.is_ok() || self.size_bytes.is_err() {
            self.size_bytes = file.size_bytes;
        }
    }

    /// Words of the sample of its places.
    pub fn words(&self) -> usize {
        self.touched.words()
    }

    /// Keeps half of that sample.
    pub fn halve(&mut self) {
        self.touched.halve();
    }

    /// Whether any operation came.
    pub fn is_used(&self) -> bool {
        self.calls > 0
    }

    /// One operation, that began `at_ns` behind the beginning; returns how many words came anew.
    pub fn operation(&mut self, operation: &FileOperation, opening: &Opening, at_ns: u64) -> usize {
        self.calls += 1;
        if FileProfile::counts(operation.asked) {
            *self.engines.entry(operation.engine).or_default() += 1;
        } else {
            self.other_engine = Some(operation.engine);
        }
        if operation.error != 0 {
            self.errors += 1;
            self.answered(operation);
            return 0;
        }
        let words = match operation.asked {
            Asked::Read => self.data(operation, opening, 0, at_ns),
            Asked::Write => self.data(operation, opening, 1, at_ns),
            Asked::Sync(call) => {
                *self.syncs.entry(call).or_default() += 1;
                self.sync_times.add(operation.duration_ns);
                self.series.sync(at_ns);
                if let Some(writes) = self.writes_since_sync.replace(0) {
                    self.between_syncs.add(writes);
                }
                0
            }
            Asked::Allocate | Asked::Discard => 0,
        };
        self.answered(operation);
        words
    }

    /// A read (0) or write (1).
    fn data(
        &mut self,
        operation: &FileOperation,
        opening: &Opening,
        which: usize,
        at_ns: u64,
    ) -> usize {
        self.thought(operation);
        self.bursts.add(at_ns);
        self.latency.add(operation.duration_ns);
        self.direct.add(opening.direct);
        self.append.add(opening.append);
        let direction = &mut self.directions[which];
        direction.count += 1;
        if let Some(bytes) = direction.bytes_untold.or_count(operation.done_bytes) {
            direction.bytes = direction.bytes.saturating_add(bytes);
        }
        let size = operation.request_bytes();
        if let Some(bytes) = size.and_then(|size| self.sizes_untold.or_count(size)) {
            direction.sizes.add(bytes);
        }
        let in_flight = self.in_flight_untold.or_count(operation.in_flight);
        if let Some(in_flight) = in_flight {
            self.in_flight.add(u64::from(in_flight));
        }
        self.series.add(at_ns, which, operation.done_bytes.unwrap_or(0), in_flight);
        if which == 1 {
            let asks = if operation.synchronous { Ok(true) } else { opening.synchronous };
            self.synchronous.add(asks);
            self.writes_since_sync = self.writes_since_sync.map(|writes| writes + 1);
        }
        // Files that were closed before their names were looked up are one here: where one of them
        // was read says nothing about the next.
        let offset = match self.path {
            Err(Unknown::Closed) => Err(Unknown::Closed),
            _ => operation.offset_bytes,
        };
        // Where it ended: without an answer, where it would have.
        let place = offset.and_then(|offset| {
            let bytes = operation.done_bytes.or(operation.asked_bytes)?;
            Ok((offset, bytes))
        });
        let Some((offset, bytes)) = self.places_untold.or_count(place) else { return 0 };
        let in_flight = in_flight.unwrap_or(16);
        let sequence = &mut self.directions[which].sequence;
        let followed = sequence.sequential;
        sequence.add(at_ns, offset, bytes, in_flight);
        if which == 1 {
            self.writes_placed += 1;
            let within = self.last_write.is_some_and(|(from, to)| (from..to).contains(&offset));
            if within {
                // Back into the last write is not on, wherever one before that has ended.
                sequence.sequential = followed;
                self.rewrites += 1;
            }
            self.last_write = Some((offset, offset.saturating_add(bytes)));
        }
        self.spread.add(offset);
        self.touched.add(offset, bytes)
    }

    /// What was in flight, of operations that did not tell it at first.
    pub fn depths(&mut self, counts: &[(u32, u64)]) {
        for (in_flight, count) in counts {
            self.in_flight_untold.told(Unknown::BegunBefore, *count);
            self.in_flight.add_often(u64::from(*in_flight), *count);
        }
    }

    fn thought(&mut self, operation: &FileOperation) {
        if let Some(Some(answer)) = self.threads.get(&operation.thread) {
            self.think.add(operation.start_ns.saturating_sub(*answer));
        }
    }

    fn answered(&mut self, operation: &FileOperation) {
        let end = operation.duration_ns.map(|ns| operation.start_ns.saturating_add(ns)).ok();
        if self.threads.len() < self.threads_limit {
            self.threads.insert(operation.thread, end);
        } else if let Some(last) = self.threads.get_mut(&operation.thread) {
            *last = end;
        }
    }

    /// What was done over time.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What it comes to after `recorded_ns`.
    pub fn profile(&self, recorded_ns: u64) -> FileProfile {
        let mut told = Told::default();
        let [reads, writes] = &self.directions;
        let both = reads.count + writes.count;
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let placed = both - self.places_untold.total();
        let sequential = reads.sequence.sequential + writes.sequence.sequential;
        let block = Numbers::quantile(&[&reads.sizes, &writes.sizes], 0.5).map(whole);
        let depth = Numbers::quantile(&[&self.in_flight], 0.9);
        let median = |times: &Times| times.histogram.quantile(0.5).map(|ns| ns / 1e9);
        let places = &self.places_untold;
        let (path, block_sizes) = (told.path(&self.path), self.block_sizes());
        let direct = told.vote("direct", &self.direct);
        let synchronous = told.vote("synchronous", &self.synchronous);
        let mut profile = FileProfile {
            path,
            class: super::Class::Other,
            kind: self.kind,
            engine: self.engine(),
            engines: self.engines.clone(),
            calls: self.calls,
            reads: reads.count,
            writes: writes.count,
            read_share: told.of_none("read_share", both, share(reads.count, both)),
            read_bytes: told.sum("read_bytes", reads.bytes, &reads.bytes_untold),
            written_bytes: told.sum("written_bytes", writes.bytes, &writes.bytes_untold),
            block_bytes: told.most("block_bytes", block, &self.sizes_untold, both),
            block_sizes,
            sequential_share: told.most(
                "sequential_share",
                share(sequential, placed),
                places,
                both,
            ),
            rewrite_share: self.rewrite_share(&mut told),
            reuse_share: told.most("reuse_share", self.touched.again_share(), places, both),
            direct,
            synchronous,
            append: told.vote("append", &self.append),
            sync: self.sync(&mut told),
            depth: told.most("depth", depth, &self.in_flight_untold, both),
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            think_seconds: told.few("think_seconds", self.think.quantile(0.5).map(|ns| ns / 1e9)),
            operations_per_second: both as f64 / (recorded_ns.max(1) as f64 / 1e9),
            burstiness: told.few("burstiness", self.bursts.clone().burstiness(recorded_ns)),
            latency_seconds: told.most(
                "latency_seconds",
                median(&self.latency),
                &self.latency.untold,
                both,
            ),
            size_bytes: told.plain("size_bytes", self.size_bytes),
            errors: self.errors,
            unknown: BTreeMap::new(),
            known_share: BTreeMap::new(),
            series: self.series.resampled(recorded_ns, PARTS),
            places: self.spread.places(),
        };
        profile.class = class::class(self.kind, profile.path.as_deref(), &self.behaviour(&profile));
        (profile.unknown, profile.known_share) = (told.unknown, told.known_share);
        profile
    }

    fn engine(&self) -> Engine {
        let most = self.engines.iter().max_by_key(|(_, count)| **count).map(|(engine, _)| *engine);
        most.or(self.other_engine).unwrap_or(Engine::Unknown)
    }

    fn block_sizes(&self) -> BlockSizes {
        let [(read, others_read), (write, others_written)] =
            self.directions.each_ref().map(|it| it.sizes.most_frequent(SIZES_TOLD));
        BlockSizes { read, write, others: others_read + others_written }
    }

    fn rewrite_share(&self, told: &mut Told) -> Option<f64> {
        let writes = self.directions[1].count;
        let share = self.rewrites as f64 / self.writes_placed.max(1) as f64;
        let share = (self.writes_placed > 0).then_some(share);
        let known = self.writes_placed as f64 / writes.max(1) as f64;
        told.share("rewrite_share", share, known, writes, self.places_untold.reason())
    }

    fn sync(&self, told: &mut Told) -> Sync {
        let most = self.syncs.iter().max_by_key(|(_, count)| **count);
        let calls = self.syncs.values().sum();
        let between = |share: f64| Numbers::quantile(&[&self.between_syncs], share);
        let range = between(0.1).zip(between(0.9));
        let times = &self.sync_times;
        let median = times.histogram.quantile(0.5).map(|ns| ns / 1e9);
        Sync {
            call: most.map_or("none", |(call, _)| call.name()),
            calls,
            operations_between: told.few("sync.operations_between", between(0.5)),
            operations_range: range.map(|(low, high)| [low, high]),
            operations_mean: (calls > 0).then(|| self.directions[1].count as f64 / calls as f64),
            seconds: told.most("sync.seconds", median, &times.untold, calls),
        }
    }

    fn behaviour(&self, profile: &FileProfile) -> Behaviour {
        let [reads, writes] = &self.directions;
        Behaviour {
            reads: reads.count,
            writes: writes.count,
            bytes: reads.bytes.saturating_add(writes.bytes),
            sequential_share: profile.sequential_share,
            rewrite_share: profile.rewrite_share,
            reuse_share: profile.reuse_share,
            block_bytes: profile.block_bytes,
            syncs: profile.sync.calls,
            synchronous: profile.synchronous == Some(true),
            deleted: self.deleted,
        }
    }
}

/// Why fields are `None`, or what they rest on, while a profile is made.
#[derive(Default)]
struct Told {
    unknown: BTreeMap<&'static str, &'static str>,
    known_share: BTreeMap<&'static str, f64>,
}

impl Told {
    /// A number of those that told, if they are nearly all of `all`.
    fn most<T>(
        &mut self,
        field: &'static str,
        value: Option<T>,
        untold: &Untold,
        all: u64,
    ) -> Option<T> {
        let known = 1.0 - untold.total() as f64 / all.max(1) as f64;
        self.share(field, value, known, all, untold.reason())
    }

    fn share<T>(
        &mut self,
        field: &'static str,
        value: Option<T>,
        known: f64,
        all: u64,
        reason: Option<Unknown>,
    ) -> Option<T> {
        if all == 0 {
            self.unknown.insert(field, NONE);
            return None;
        }
        if known < NEARLY_ALL {
            let reason = reason.unwrap_or(Unknown::NotRecorded);
            self.unknown.insert(field, reason.reason());
            return None;
        }
        if known < 1.0 {
            self.known_share.insert(field, known);
        }
        if value.is_none() {
            self.unknown.insert(field, FEW);
        }
        value
    }

    fn sum(&mut self, field: &'static str, sum: u64, untold: &Untold) -> Option<u64> {
        if untold.missing() > 0 {
            let reason = untold.reason().unwrap_or(Unknown::NotRecorded);
            self.unknown.insert(field, reason.reason());
            return None;
        }
        Some(sum)
    }

    /// What most operations say.
    fn vote(&mut self, field: &'static str, votes: &Votes) -> Option<bool> {
        let [no, yes] = votes.counts;
        let all = no + yes + votes.untold.total();
        self.most(field, (no + yes > 0).then_some(yes > no), &votes.untold, all)
    }

    fn few<T>(&mut self, field: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.unknown.insert(field, FEW);
        }
        value
    }

    fn of_none<T>(&mut self, field: &'static str, all: u64, value: Option<T>) -> Option<T> {
        if all == 0 {
            self.unknown.insert(field, NONE);
        }
        value
    }

    fn plain<T>(&mut self, field: &'static str, known: Known<T>) -> Option<T> {
        if let Err(reason) = &known {
            self.unknown.insert(field, reason.reason());
        }
        known.ok()
    }

    fn path(&mut self, path: &Known<String>) -> Option<String> {
        self.plain("path", path.as_ref().map_err(|reason| *reason)).cloned()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number there is")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
