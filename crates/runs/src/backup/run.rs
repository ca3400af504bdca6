//! A backup in progress: its stages are set up and taken down here.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use archive::index::About;
use archive::member::Timestamp;
use base::failures::lock;
use flow::account::{Account, Stage, ThreadState};
use flow::backend::Choice;
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, cores};
use flow::monitor::{Counter, Monitor};
use flow::neighbour::NeighbourWatch;
use flow::queue::Queue;
use flow::rate::RateLimit;
use flow::restart::Restart;
use flow::ring::{Consumer, LastBlock, Producer, RingOptions, ring};
use flow::run::{DiskOrder, StageKind, StageReport};
use flow::sink::{Sink, WriteError, WriteOptions, write_all};
use flow::steps::Step;
use flow::turnstile::Turnstile;
use tapeset::{Chunks, Segments, TapeSetError};
use tree::{Accounts, CaptureOptions, Capturer, Progress, Scan};

use super::decide::{Counts, Decider};
use super::descriptors::InHand;
use super::entries::TreeSection;
use super::error::BackupError;
use super::groups::Groups;
use super::hasher::{Gathered, Hasher};
use super::index::SetSections;
use super::options::{BackupOptions, Refill};
use super::pace::Pace;
use super::placed;
use super::reader::{self, Reader};
use super::room::Room;
use super::sizes::RingSizes;
use super::work::{Batch, Work};
use super::{ArchiveSize, compressor, index};
use crate::destination::{DestinationError, Output};
use crate::expected;
use crate::report::ListReport;
use crate::sweep::{Limits, SWEEP_THREADS, Sweep};

/// Objects of a batch while readers wait for the disk.
const BATCH_ITEMS_WHEN_WAITING: usize = 16;
/// Most bytes of one reservation, unless the ring is small.
pub(super) const GROUP_BYTES_MAX: usize = 8 << 20;
/// Hashing threads: each hashes several gigabytes per second, more than memory delivers to this
/// many.
const HASH_THREADS_MAX: usize = 16;
/// Blocks of the ring that the index goes through.
const INDEX_BLOCKS: usize = 4;

/// The accounts of all stages.
pub(super) struct Stages {
    scan: Arc<Stage>,
    read: Arc<Stage>,
    hash: Arc<Stage>,
    compress: Arc<Stage>,
    write: Arc<Stage>,
}

impl Stages {
    pub(super) fn new() -> Stages {
        let stages = Stages {
            scan: Stage::new(StageKind::Scan),
            read: Stage::new(StageKind::Read),
            hash: Stage::new(StageKind::Hash),
            compress: Stage::new(StageKind::Compress),
            write: Stage::new(StageKind::Write),
        };
        stages.write.keep_steps(ThreadState::Starved);
        stages
    }

    /// The cost of each block for the writer.
    pub(super) fn write_steps(&self) -> Vec<Step> {
        self.write.steps()
    }

    pub(super) fn tell(&self, monitor: &dyn Monitor) {
        monitor.stages(&[&self.scan, &self.read, &self.hash, &self.compress, &self.write]);
    }
}

/// A run in progress.
pub(super) struct Run<'a> {
    pub(super) options: &'a BackupOptions,
    pub(super) monitor: &'a dyn Monitor,
    pub(super) cancel: &'a Cancel,
    pub(super) engine: Choice,
    pub(super) sizes: RingSizes,
    pub(super) in_hand: InHand,
    pub(super) stop_scan: Arc<AtomicBool>,
    pub(super) excludes: tree::Excludes,
    pub(super) stages: Stages,
    pub(super) crew: Crew<'a, BackupError>,
    /// What was read in the order of the disk.
    pub(super) disk_order: Mutex<Option<DiskOrder>>,
    pub(super) replaced: Option<tree::Identity>,
    pub(super) output: Option<tree::Identity>,
    /// On tape: where segments end.
    pub(super) segments: Option<Arc<Segments>>,
    pub(super) room: Room,
}

/// The result when everything was passed to the target.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) members: u64,
    pub(super) files: u64,
    pub(super) source_bytes: u64,
    pub(super) archive_bytes: u64,
    pub(super) index_bytes: u64,
    pub(super) target_bytes: u64,
    pub(super) times_ran_empty: u64,
    /// The set of a chain.
    pub(super) set: Option<About>,
    /// What a list of changes did.
    pub(super) list: Option<ListReport>,
}

impl Done {
    /// The size that archives are compared by.
    pub(super) fn size(&self) -> ArchiveSize {
        ArchiveSize { members: self.members, bytes: self.archive_bytes - self.index_bytes }
    }
}

/// Decides on a set whose index is written.
type SetDecider<'a> = Decider<'a, TreeSection>;

impl Run<'_> {
    /// Writes the archive and its index.
    pub(super) fn archive(&self, scan: Scan, output: &mut Output<'_>) -> Result<Done, BackupError> {
        let own = Mutex::default();
        let chunks = self.segments.as_deref().map_or(&own, |segments| &segments.chunks);
        let left_out = [self.output, self.replaced];
        let decider =
            self.options.set.as_ref().map(|set| {
                Decider::new(set, TreeSection::default(), left_out, now(), self.monitor)
            });
        let decider = Mutex::new(decider.transpose()?);
        let (mut gathered, written, times_ran_empty) =
            self.data_segments(scan, &decider, output, chunks)?;
        let mut set = self.set_sections(decider, &gathered)?;
        base::interruptible::check_shortage()?;
        let mut chunks = std::mem::take(&mut *lock(chunks));
        if let Some(why) = output.ends_early() {
            self.end_early(why, &mut gathered, set.as_mut(), &mut chunks, output)?;
        }
        let extents = output.begin_index();
        let mut done = Done {
            members: gathered.files.1.records,
            files: gathered.regular_files,
            source_bytes: gathered.source_bytes,
            archive_bytes: gathered.archive_bytes,
            index_bytes: 0,
            target_bytes: written,
            times_ran_empty,
            set: set.as_ref().map(|set| set.about.clone()),
            list: set.as_ref().and_then(|set| set.list.clone()),
        };
        let sections = index::Sections { gathered, chunks, extents, set };
        let (index_bytes, index_written) = self.index_segment(sections, output)?;
        done.archive_bytes += index_bytes;
        done.index_bytes = index_bytes;
        done.target_bytes += index_written;
        Ok(done)
    }

    /// What the index of a set in a chain has besides that of an archive.
    fn set_sections(
        &self,
        decider: Mutex<Option<SetDecider<'_>>>,
        gathered: &Gathered,
    ) -> Result<Option<SetSections>, BackupError> {
        let decider = decider.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (Some(decider), Some(set)) = (decider, &self.options.set) else { return Ok(None) };
        let decided = decider.finish()?;
        let about = counted_about(&set.about, &decided.counts);
        let (tree, again) = (decided.entries.finish(), gathered.again.clone());
        let list = decided.list;
        let journal = set.journal.clone();
        Ok(Some(SetSections { tree, again, about, journal, list }))
    }

    /// The stages of the archive itself, from scan to write.
    fn data_segments(
        &self,
        scan: Scan,
        decider: &Mutex<Option<SetDecider<'_>>>,
        output: &mut Output<'_>,
        chunks: &Mutex<Chunks>,
    ) -> Result<(Gathered, u64, u64), BackupError> {
        let groups = Groups::default();
        let (producer, to_hash, after_hash) = self.archive_ring()?;
        let packed = match self.sizes.output {
            Some(options) => {
                let (producer, mut consumers) =
                    ring(options, self.cancel.clone()).map_err(BackupError::Ring)?;
                Some((producer, consumers.pop().expect("a ring has a consumer")))
            }
            None => None,
        };
        let to_write = packed.as_ref().map_or(&after_hash, |(_, consumer)| consumer);
        let turnstile = Turnstile::new(self.cancel.clone());
        let target = output.target().map(|target| Arc::clone(&target.file));
        let target = target.map(|file| (Arc::clone(&self.stages.write), file));
        let _watch = NeighbourWatch::start(target.into_iter().collect());
        let hasher = Hasher::new(&to_hash, &groups, self.options.block_bytes, self.cancel);
        let (written, times_ran_empty) = self.crew.scope(StageKind::Scan, |scope| {
            let mut hash = Vec::new();
            for _ in 0..cores().min(HASH_THREADS_MAX) {
                let hasher = &hasher;
                hash.push(
                    self.crew.spawn(scope, &self.stages.hash, |account| hasher.run(account))?,
                );
            }
            let write = self.crew.spawn(scope, &self.stages.write, |account| {
                self.write(to_write, output, account)
            })?;
            let mut compress = Vec::new();
            if let Some((producer, _)) = &packed {
                let shared = compressor::Shared {
                    consumer: &after_hash,
                    producer,
                    turnstile: &turnstile,
                    compression: self.options.compression,
                    chunks,
                    segments: self.segments.as_deref(),
                };
                for _ in 0..self.compress_threads() {
                    let shared = shared.clone();
                    compress.push(self.crew.spawn(
                        scope,
                        &self.stages.compress,
                        move |account| compressor::run(&shared, account),
                    )?);
                }
            }
            self.read_tree(scan, decider, &producer, &groups, &hasher)?;
            producer.finish();
            for thread in hash.into_iter().chain(compress) {
                self.crew.join(thread)?;
            }
            if let Some((producer, _)) = &packed {
                producer.finish();
            }
            let written = self.crew.join(write)?;
            Ok((written, to_write.times_ran_empty()))
        })?;
        let gathered = self.crew.work_here(&self.stages.hash, |_| hasher.finish())?;
        Ok((gathered, written, times_ran_empty))
    }

    fn archive_ring(&self) -> Result<(Producer, Consumer, Consumer), BackupError> {
        let (producer, mut consumers) =
            ring(self.sizes.archive, self.cancel.clone()).map_err(BackupError::Ring)?;
        let (Some(second), Some(first)) = (consumers.pop(), consumers.pop()) else {
            unreachable!("the ring was made with two consumers")
        };
        Ok((producer, first, second))
    }

    /// Scan and read: fills the ring with the archive up to its end mark.
    fn read_tree(
        &self,
        scan: Scan,
        decider: &Mutex<Option<SetDecider<'_>>>,
        producer: &Producer,
        groups: &Groups,
        hasher: &Hasher<'_>,
    ) -> Result<(), BackupError> {
        self.begin_archive(producer)?;
        let read_threads = self.in_hand.read_threads;
        let group_bytes_max = group_bytes_max(producer);
        let limits = self.window_limits(group_bytes_max);
        let waiting = self.in_hand.batches_waiting + limits.as_ref().map_or(0, Limits::batches);
        let batches = Queue::new(waiting, self.cancel.clone());
        let shared = reader::Shared {
            sweep: limits.map(|limits| self.sweep(limits, &batches)),
            batches: &batches,
            placed: Queue::new(self.in_hand.placed_waiting, self.cancel.clone()),
            turnstile: Turnstile::new(self.cancel.clone()),
            producer,
            groups,
            hasher,
            links: Default::default(),
            unread: Default::default(),
            monitor: self.monitor,
            pace: Pace::new(cores(), read_threads, self.cancel.clone()),
            engine: &self.engine,
            replaced: self.replaced,
            group_bytes_max,
            segments: self.segments.as_deref(),
            room: &self.room,
            cancel: self.cancel,
        };
        let attributes = self.options.attributes;
        let capture = CaptureOptions { attributes, output: self.output, begun: now() };
        let accounts = Arc::new(Accounts::load());
        let placed_threads = self.in_hand.placed_threads;
        // These threads are named after the read stage, but their wait for work is no time of it.
        let idle = Stage::new(self.stages.read.kind());
        self.crew.scope(StageKind::Scan, |content_scope| {
            let (shared, read) = (&shared, &self.stages.read);
            self.crew.spawn_as_needed(content_scope, &idle, placed_threads, |account, next| {
                placed::run(shared, account, read, next)
            })?;
            let scanned = self.crew.scope(StageKind::Scan, |scope| {
                self.crew.spawn_as_needed(scope, read, read_threads, |account, next| {
                    let capturer = Capturer::new(capture, Arc::clone(&accounts));
                    Reader::new(shared, account, capturer).run(next)
                })?;
                if let Some(sweep) = &shared.sweep {
                    self.crew.spawn(scope, &idle, |account| Ok(sweep.run(account)?))?;
                    self.crew.spawn_as_needed(scope, &idle, SWEEP_THREADS, |account, next| {
                        sweep.fetch(account, read, next)
                    })?;
                }
                let mut account = self.stages.scan.open();
                let items_max = self.in_hand.batch_items;
                let decide = &mut *lock(decider);
                let scanned =
                    scan_all(scan, decide.as_mut(), shared, items_max, &mut account, self.cancel);
                shared.first_queue().close();
                scanned
            });
            shared.placed.close();
            scanned
        })?;
        self.cancel.check()?;
        *lock(&self.disk_order) = shared.sweep.as_ref().and_then(Sweep::done);
        self.end_archive(producer)
    }

    fn window_limits(&self, group_bytes_max: usize) -> Option<Limits> {
        let window = self.options.read_window_bytes;
        Limits::new(window, self.in_hand.window_folders, group_bytes_max)
    }

    /// The window of files that are fetched in the order of the disk.
    fn sweep<'b>(&'b self, limits: Limits, batches: &'b Queue<Batch>) -> Sweep<'b, Work> {
        let (order, waiting) = (self.options.read_order, self.in_hand.batches_waiting);
        Sweep::new(order, limits, waiting, batches, self.monitor, self.cancel)
    }

    /// The mark at the front of the archive. A segment on tape has a label instead.
    fn begin_archive(&self, producer: &Producer) -> Result<(), BackupError> {
        if self.segments.is_some() {
            return Ok(());
        }
        let mark = archive::mark::encode_mark(self.options.block_bytes as u32);
        self.crew.work_here(&self.stages.read, |account| {
            Ok(compressor::put(producer, &mark, account)?)
        })?;
        self.monitor.count(Counter::ArchiveBytes, mark.len() as u64);
        Ok(())
    }

    /// The end mark, and what a segment needs after it.
    fn end_archive(&self, producer: &Producer) -> Result<(), BackupError> {
        let bytes = self.crew.work_here(&self.stages.read, |account| match &self.segments {
            Some(segments) => Ok(segments.close_last(producer, account)?),
            None => {
                let mut mark = Vec::new();
                archive::encode::encode_end_of_archive(&mut mark);
                compressor::put(producer, &mark, account)?;
                Ok(mark.len() as u64)
            }
        })?;
        self.monitor.count(Counter::ArchiveBytes, bytes);
        Ok(())
    }

    /// The index behind the archive, through a small ring of its own.
    fn index_segment(
        &self,
        sections: index::Sections,
        output: &mut Output<'_>,
    ) -> Result<(u64, u64), BackupError> {
        let options = RingOptions {
            block_bytes: self.options.block_bytes,
            blocks: INDEX_BLOCKS,
            consumers: 1,
        };
        let (mut producer, mut consumers) =
            ring(options, self.cancel.clone()).map_err(BackupError::Ring)?;
        let consumer = consumers.pop().expect("a ring has a consumer");
        let form = index::Form {
            compression: self.options.compression,
            block_bytes: self.options.block_bytes,
            place: match self.segments {
                Some(_) => index::IndexPlace::OwnSegment,
                None => index::IndexPlace::BehindArchive,
            },
        };
        if self.segments.is_some() {
            producer.set_last_block(LastBlock::Padded);
        }
        self.crew.scope(StageKind::Index, |scope| {
            let write = self.crew.spawn(scope, &self.stages.write, |account| {
                let written = self.write(&consumer, output, account)?;
                output.finish(account).map_err(|source| self.write_error(source))?;
                Ok(written)
            })?;
            let copy = self.options.index_copy.as_ref();
            let index = self.crew.spawn(scope, &self.stages.hash, move |account| {
                index::write(sections, form, producer, copy, account)
            })?;
            Ok((self.crew.join(index)?, self.crew.join(write)?))
        })
    }

    fn write(
        &self,
        consumer: &Consumer,
        output: &mut Output<'_>,
        account: &mut Account,
    ) -> Result<u64, BackupError> {
        let blocks = |percent: u8| {
            let percent = usize::from(percent.min(100));
            (consumer.capacity_blocks() * percent / 100).max(1)
        };
        let start = self.options.start_fill_percent;
        let restart = match self.options.refill {
            Refill::AsAtTheStart => Restart::AtFill { blocks: blocks(start) },
            Refill::AsTheTargetNeeds => output.restart(consumer.capacity_blocks()),
        };
        let options = WriteOptions {
            start_fill_blocks: blocks(start),
            restart,
            rate_limit: self.options.rate_limit_bytes_per_second.map(RateLimit::new),
        };
        write_all(consumer, output, options, account, self.cancel, |block| {
            self.monitor.count(Counter::TargetBytes, block.len() as u64);
            self.monitor.fill(consumer.fill_blocks(), consumer.capacity_blocks());
        })
        .map_err(|source| self.write_error(source))
    }

    fn write_error(&self, error: DestinationError) -> BackupError {
        match error {
            DestinationError::Path(WriteError::Stopped(stopped))
            | DestinationError::Tape(TapeSetError::Stopped(stopped)) => stopped.into(),
            DestinationError::Tape(error) => BackupError::Tape(error),
            DestinationError::Path(source) => {
                BackupError::Write { target: self.options.target.shown(), source }
            }
        }
    }

    fn compress_threads(&self) -> usize {
        self.options.compress_threads.unwrap_or_else(cores).max(1)
    }

    pub(super) fn stage_reports(&self) -> Vec<StageReport> {
        let stages = &self.stages;
        let all = [&stages.scan, &stages.read, &stages.hash, &stages.compress, &stages.write];
        let reports = all.into_iter().map(|stage| stage.report());
        reports.filter(|report| report.threads > 0).collect()
    }
}

/// Most bytes of one reservation.
fn group_bytes_max(producer: &Producer) -> usize {
    // A reservation leaves one block of the ring free.
    let reservation_bytes_max = producer.capacity_bytes() as usize - producer.block_bytes();
    let group_limit = producer.capacity_bytes() as usize / 8;
    group_limit.clamp(4096, GROUP_BYTES_MAX).min(reservation_bytes_max)
}

/// A set with what it counts, at its end.
pub(super) fn counted_about(about: &About, counts: &Counts) -> About {
    let mut stored: Vec<_> = counts.stored.iter().map(|(reason, of)| (*reason, *of)).collect();
    stored.sort_unstable();
    About {
        ended_seconds: now().seconds as u64,
        unchanged: counts.unchanged,
        deleted: counts.deleted,
        stored,
        ..about.clone()
    }
}

/// The time of day.
pub(super) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs() as i64);
    Timestamp { seconds, nanoseconds: 0 }
}

/// Takes the entries from the scan and passes them on in numbered batches.
fn scan_all(
    mut scan: Scan,
    mut decider: Option<&mut SetDecider<'_>>,
    shared: &reader::Shared<'_>,
    batch_items: usize,
    account: &mut Account,
    cancel: &Cancel,
) -> Result<(), BackupError> {
    let (mut ticket, mut members) = (0, 0);
    loop {
        cancel.check()?;
        base::interruptible::check_shortage()?;
        let mut items = Vec::with_capacity(tree::BATCH_ITEMS_MAX);
        let progress = scan.next_batch(&mut items);
        let works = match &mut decider {
            Some(decider) => decider.decide(items, &mut scan)?,
            None => Work::all(items),
        };
        let works = shared.room.of_works(works);
        members += works.len() as u64;
        // If readers wait for the disk, smaller batches keep more of them busy.
        let size = if shared.pace.is_waiting_for_disk() || shared.is_sweeping() {
            BATCH_ITEMS_WHEN_WAITING.min(batch_items)
        } else {
            batch_items
        };
        let mut works = works.into_iter().peekable();
        while works.peek().is_some() {
            let works = works.by_ref().take(size).collect();
            shared.first_queue().push(Batch { ticket, works, held: None }, account)?;
            ticket += 1;
        }
        match progress {
            Progress::More => {}
            Progress::End => {
                if let Some(decider) = &mut decider {
                    decider.late(|works| {
                        let works = shared.room.of_works(works);
                        members += works.len() as u64;
                        let batch = Batch { ticket, works, held: None };
                        shared.first_queue().push(batch, account)?;
                        ticket += 1;
                        Ok(())
                    })?;
                }
                shared.monitor.expect(expected::of_scan(members));
                return Ok(());
            }
            Progress::Stopped => return Err(BackupError::Stopped(Stopped::Failed)),
        }
    }
}
