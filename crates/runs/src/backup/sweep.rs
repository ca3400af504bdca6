//! Files of a disk with heads are fetched in the order in which they lie there.
//!
//! The archive has its members in the order of their names. A disk with heads reads files in that
//! order with a seek for each: twelve milliseconds for one that takes a fraction of one to pass
//! under the heads. So, on such a disk, batches on their way from the walk to the readers stay here
//! until their files are in the page cache: a window of them, as large as the memory that it may
//! take. The files of the window are read by address, from the lowest to the highest and again from
//! the start; what comes in while the heads are on their way joins them. A batch goes on to the
//! readers when it and all before it are complete, and its room is free when they have put its
//! bytes into the archive; then its pages are dropped. So the archive is the same to the byte,
//! whatever the order.
//!
//! Opening files is reading, too: their inodes are read in the order of their numbers, which on
//! most file systems is the order of the disk.
//!
//! Not fetched are files that the page cache holds already, and those that are large enough to be
//! read in one stream. While one of these is read, the sweep waits: its heads have one place.

mod found;
mod in_order;
mod judge;
mod lanes;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base::failures::lock;
use flow::account::{Account, Stage, ThreadState};
use flow::budget::Budget;
use flow::cancel::{Cancel, Stopped};
use flow::monitor::{FetchedAhead, Level, LookTimes, Monitor, Notice};
use flow::queue::Queue;
use flow::run::DiskOrder;

use super::error::BackupError;
use super::options::ReadOrder;
use super::work::{Batch, Held};
use found::{Candidate, Found, Sample};
use in_order::InOrder;
use judge::{JUMP_BYTES, Judge, Looked, SAMPLE_FILES, Verdict};

pub(super) use judge::LOOK_BYTES_MAX;
use lanes::{Lanes, WaitingRead};

/// Threads that fetch: requests that the disk can choose from. A drive's own queue holds 32.
pub(super) const SWEEP_THREADS: usize = 16;
/// Entries whose inodes are read together.
pub(super) const CHUNK_ENTRIES: usize = 2048;
/// Entries that are waited for, and for how long: of a few files no look says anything.
const GATHER_ENTRIES: usize = 256;
const GATHER_WAIT: Duration = Duration::from_millis(200);
/// The heads set out when so many reads wait, or when no more can: a sweep through few is mostly
/// seeking.
const SET_OUT_READS: usize = 1024;
/// They set out with fewer after this time.
const SET_OUT_WAIT: Duration = Duration::from_secs(1);
/// Bounds of the window of a run that is not told one.
const WINDOW_BYTES_MIN: usize = 32 << 20;
const WINDOW_BYTES_MAX: usize = 4 << 30;
/// Files of this size are fetched whatever the window.
const FILE_BYTES_LEAST: usize = 256 << 10;
/// One read.
const READ_BYTES: usize = 256 << 10;
/// Files of a chunk for which it is worth judging how many of them the page cache holds.
const CACHED_FILES_MIN: usize = 64;

/// The window of files that are fetched.
pub(super) struct Sweep<'a> {
    /// Batches from the walk.
    pub(super) incoming: Queue<Batch>,
    /// Batches for the readers. It holds as many as can be under way.
    outgoing: &'a Queue<Batch>,
    order: ReadOrder,
    limits: Limits,
    bytes: Budget,
    entries: Budget,
    state: Mutex<State>,
    changed: Condvar,
    monitor: &'a dyn Monitor,
    cancel: &'a Cancel,
    is_sweeping: AtomicBool,
}

/// What may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Content in the page cache that is not in the archive.
    pub(super) window_bytes: usize,
    /// Objects that wait for it.
    pub(super) window_entries: usize,
    /// Larger files are read by the readers alone.
    pub(super) file_bytes_max: u64,
}

impl Limits {
    /// A file takes at most a part of the window, so that others go on while it waits for them.
    pub(super) fn new(window_bytes: usize, window_entries: usize, file_bytes_max: usize) -> Limits {
        let part = (window_bytes / 64).max(FILE_BYTES_LEAST);
        let file_bytes_max = part.min(file_bytes_max) as u64;
        Limits { window_bytes, window_entries, file_bytes_max }
    }
}

/// The window of a run that is not told one: an eighth of the memory that programs can get.
pub(super) fn usual_window_bytes() -> usize {
    let available = machine::counters::memory::Memory::now().map_or(0, |it| it.available_bytes);
    usize::try_from(available / 8).unwrap_or(usize::MAX).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
}

#[derive(Debug, Default)]
struct State {
    batches: InOrder,
    reads: Lanes<WaitingRead>,
    /// Since when reads wait for the heads to set out; `None`: they are on their way.
    gathering: Option<Instant>,
    /// Large files that are read in one stream.
    streams: usize,
    /// Nothing more comes in.
    is_last: bool,
    done: DiskOrder,
    /// The same for who watches the run.
    ahead: FetchedAhead,
    /// Where the piece before ends, in the order of names: its device and address.
    by_name: (u64, u64),
}

/// A large file is read; the sweep goes on when this is dropped.
pub(super) struct StreamGuard<'a> {
    state: &'a Mutex<State>,
    changed: &'a Condvar,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(
        order: ReadOrder,
        limits: Limits,
        batches_waiting: usize,
        outgoing: &'a Queue<Batch>,
        monitor: &'a dyn Monitor,
        cancel: &'a Cancel,
    ) -> Sweep<'a> {
        let state = State { gathering: Some(Instant::now()), ..State::default() };
        Sweep {
            incoming: Queue::new(batches_waiting, cancel.clone()),
            outgoing,
            order,
            limits,
            bytes: Budget::new(limits.window_bytes, cancel.clone()),
            entries: Budget::new(limits.window_entries, cancel.clone()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            monitor,
            cancel,
            is_sweeping: AtomicBool::new(order != ReadOrder::Auto),
        }
    }

    /// Whether files are fetched: small batches give the window back in small parts then.
    pub(super) fn is_sweeping(&self) -> bool {
        self.is_sweeping.load(Ordering::Relaxed)
    }

    /// Keeps the heads where a large file lies.
    pub(super) fn stream(&self) -> StreamGuard<'_> {
        lock(&self.state).streams += 1;
        StreamGuard { state: &self.state, changed: &self.changed }
    }

    /// What was read in the order of the disk.
    pub(super) fn done(&self) -> Option<DiskOrder> {
        let state = lock(&self.state);
        let done = DiskOrder { jumps: state.reads.jumps(), ..state.done };
        (done.files > 0).then_some(done)
    }

    /// Takes batches from the walk, and decides what is fetched, until all have gone on.
    pub(super) fn run(&self, account: &mut Account) -> Result<(), BackupError> {
        let mut judge = Judge::new(self.order);
        while let Some(batches) = self.chunk(account)? {
            let found = self.look_at(&batches, &mut judge, account)?;
            for (batch, found) in batches.into_iter().zip(found) {
                self.admit(batch, found, account)?;
            }
        }
        let mut state = lock(&self.state);
        state.is_last = true;
        state.gathering = None;
        self.changed.notify_all();
        while !state.batches.is_empty() {
            state = self.cancel.wait(&self.changed, state)?;
        }
        drop(state);
        self.outgoing.close();
        Ok(())
    }

    /// The next batches, as many as are there or come at once; `None` at the end.
    fn chunk(&self, account: &mut Account) -> Result<Option<Vec<Batch>>, Stopped> {
        let Some(first) = self.incoming.pop(account)? else { return Ok(None) };
        let end = Instant::now() + GATHER_WAIT;
        let mut entries = first.works.len();
        let mut batches = vec![first];
        while entries < CHUNK_ENTRIES && (entries < GATHER_ENTRIES || !self.incoming.is_empty()) {
            let Some(next) = self.incoming.pop_until(end, account)? else { break };
            entries += next.works.len();
            batches.push(next);
        }
        Ok(Some(batches))
    }

    /// What is to be read for each of the batches.
    fn look_at(
        &self,
        batches: &[Batch],
        judge: &mut Judge,
        account: &mut Account,
    ) -> Result<Vec<Vec<Found>>, Stopped> {
        let mut found: Vec<Vec<Found>> = batches.iter().map(|_| Vec::new()).collect();
        let mut candidates = found::candidates(batches);
        candidates.retain(|it| judge.next_file(it.device()) != Verdict::AsTheyCome);
        let mut devices: Vec<u64> = candidates.iter().map(Candidate::device).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            let mut here: Vec<_> = candidates.iter().filter(|it| it.device() == device).collect();
            let mut rest = Vec::new();
            if judge.verdict(device) == Verdict::Unknown {
                // Of a few files a look says nothing, so that none is opened for it.
                if here.len() < SAMPLE_FILES {
                    continue;
                }
                rest = here.split_off(here.len().min(GATHER_ENTRIES));
            }
            for mut part in [here, rest] {
                part.sort_unstable_by_key(|it| it.order_of_inodes());
                let look = |it: &&Candidate<'_>| it.look(self.order, self.limits.file_bytes_max);
                let mut of_part: Vec<Found> = part.iter().filter_map(look).collect();
                self.judge(device, &mut of_part, judge, account)?;
                if judge.verdict(device) != Verdict::Sweep {
                    break;
                }
                of_part.into_iter().for_each(|it| found[it.batch].push(it));
            }
        }
        for files in &mut found {
            files.sort_unstable_by_key(|it| it.place);
        }
        Ok(found)
    }

    /// Whether files of a device are worth fetching, from those of a chunk.
    fn judge(
        &self,
        device: u64,
        found: &mut Vec<Found>,
        judge: &mut Judge,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let cached = found.iter().filter(|it| it.is_cached).count();
        if found.len() >= CACHED_FILES_MIN && cached * 10 > found.len() * 9 {
            judge.pass(device);
        }
        found.retain(|it| !it.is_cached);
        if judge.verdict(device) != Verdict::Unknown {
            return Ok(());
        }
        let Some(sample) = Sample::of(found) else { return Ok(()) };
        // What readers have in hand would move the heads meanwhile.
        drop(self.entries.take(self.limits.window_entries, account)?);
        let looked = sample.look();
        let has_heads = looked.has_heads();
        if has_heads == Some(true) {
            let Looked { by_name, by_place, .. } = looked;
            lock(&self.state).ahead.look = Some(LookTimes { by_name, by_place });
            judge.sweep(device)
        } else {
            judge.pass(device)
        }
        self.is_sweeping.fetch_or(has_heads == Some(true), Ordering::Relaxed);
        self.tell(&looked);
        Ok(())
    }

    fn tell(&self, looked: &Looked) {
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let [by_name, by_place] = [looked.by_name, looked.by_place].map(ms);
        let what = match looked.has_heads() {
            Some(true) => {
                let window = base::format::size(self.limits.window_bytes as u64);
                format!("files are read in the order of the disk, up to {window} ahead")
            }
            Some(false) => {
                "files are read as they come, since their order brings little".to_owned()
            }
            None => "files are read as they come, which is the order of the disk".to_owned(),
        };
        let text = format!(
            "{what}: one took {by_name} in the order of names, {by_place} in that of the \
             disk"
        );
        self.monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
    }

    /// Adds a batch to the window, once it has room.
    fn admit(
        &self,
        mut batch: Batch,
        found: Vec<Found>,
        account: &mut Account,
    ) -> Result<(), BackupError> {
        let bytes: u64 = found.iter().map(Found::bytes).sum();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let entries = batch.works.len();
        let mut fetched = vec![false; if found.is_empty() { 0 } else { entries }];
        found.iter().filter(|it| it.is_cold).for_each(|it| fetched[it.number] = true);
        let held = match (self.bytes.try_take(bytes), self.entries.try_take(entries)) {
            (Some(bytes), Some(entries)) => Held::new(bytes, entries, fetched),
            (bytes_now, entries_now) => {
                self.set_out();
                let entries = match entries_now {
                    Some(entries) => entries,
                    None => self.entries.take(entries, account)?,
                };
                let bytes = match bytes_now {
                    Some(bytes) => bytes,
                    None => self.bytes.take(bytes, account)?,
                };
                Held::new(bytes, entries, fetched)
            }
        };
        batch.held = Some(Arc::new(held));
        let ticket = batch.ticket;
        let mut state = lock(&self.state);
        state.batches.add(batch, found.iter().map(|it| it.stretches.len()).sum());
        for it in found {
            state.count(&it);
            for stretch in it.stretches {
                let read = WaitingRead {
                    entry: it.entry.clone(),
                    ticket,
                    offset_bytes: stretch.offset_bytes,
                    length_bytes: stretch.length_bytes,
                };
                state.reads.insert(it.device, stretch.address, stretch.length_bytes, read);
            }
        }
        self.release(&mut state);
        if state.reads.len() >= SET_OUT_READS {
            state.gathering = None;
        }
        let wake = state.gathering.is_none() && state.reads.len() > 0;
        let ahead = state.ahead;
        drop(state);
        self.monitor.fetched_ahead(ahead);
        if wake {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Lets the heads go with what is there.
    fn set_out(&self) {
        lock(&self.state).gathering = None;
        self.changed.notify_all();
    }

    /// Passes on what is complete.
    fn release(&self, state: &mut MutexGuard<'_, State>) {
        while let Some(batch) = state.batches.release() {
            // There is room for as many entries as can be under way.
            let pushed = self.outgoing.try_push(batch);
            // What is not passed on would be missing from the archive.
            assert!(pushed.is_ok(), "the queue of the readers has room for the whole window");
        }
    }

    /// One of the threads that fetch. It joins the stage with its first read, and starts the next.
    pub(super) fn fetch(
        &self,
        idle: &mut Account,
        stage: &Arc<Stage>,
        start_next: &dyn Fn() -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let Some(first) = self.next(idle)? else { return Ok(()) };
        start_next()?;
        let mut account = stage.open();
        let mut memory = vec![0; READ_BYTES];
        let mut next = Some(first);
        while let Some(read) = next {
            if let Ok((file, _)) = read.entry.open_file() {
                fetch(&file, read.offset_bytes, read.length_bytes, &mut memory);
            }
            let mut state = lock(&self.state);
            state.batches.done(read.ticket);
            state.ahead.fetched_pieces += 1;
            state.ahead.fetched_bytes += read.length_bytes;
            let ahead = state.ahead;
            self.release(&mut state);
            if state.is_last && state.batches.is_empty() {
                self.changed.notify_all();
            }
            drop(state);
            self.monitor.fetched_ahead(ahead);
            next = self.next(&mut account)?;
        }
        Ok(())
    }

    /// The read that the heads come to next; `None` when there will be none.
    fn next(&self, account: &mut Account) -> Result<Option<WaitingRead>, Stopped> {
        let mut state = lock(&self.state);
        loop {
            let waits_long = |since: Instant| since.elapsed() > SET_OUT_WAIT;
            if state.gathering.is_some_and(waits_long) && state.reads.len() > 0 {
                state.gathering = None;
            }
            if state.gathering.is_none()
                && state.streams == 0
                && let Some(read) = state.reads.take()
            {
                if state.reads.len() == 0 && !state.is_last {
                    state.gathering = Some(Instant::now());
                }
                account.switch(ThreadState::Working);
                return Ok(Some(read));
            }
            if state.is_last && state.reads.len() == 0 {
                account.switch(ThreadState::Working);
                return Ok(None);
            }
            account.switch(ThreadState::Starved);
            let waited = self.cancel.wait(&self.changed, state);
            state = waited.inspect_err(|_| account.switch(ThreadState::Working))?;
        }
    }
}

impl State {
    /// Counts a file, which come in the order of names.
    fn count(&mut self, found: &Found) {
        self.done.files += 1;
        self.done.pieces += found.stretches.len() as u64;
        self.ahead.files += 1;
        self.ahead.pieces += found.stretches.len() as u64;
        for stretch in &found.stretches {
            self.ahead.bytes += stretch.length_bytes;
            let (device, ended_at) = self.by_name;
            let is_jump = device != found.device || stretch.address.abs_diff(ended_at) > JUMP_BYTES;
            self.done.jumps_by_name += u64::from(is_jump);
            self.by_name = (found.device, stretch.address + stretch.length_bytes);
        }
    }
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.streams -= 1;
        let go_on = state.streams == 0;
        drop(state);
        if go_on {
            self.changed.notify_all();
        }
    }
}

/// Reads a stretch into the page cache. What cannot be read is left to the reader of the file,
/// which tells of it.
fn fetch(file: &OwnedFd, offset_bytes: u64, length_bytes: u64, memory: &mut [u8]) {
    if length_bytes > memory.len() as u64 {
        device::file::read_ahead(file, offset_bytes, length_bytes);
    }
    let end_bytes = offset_bytes.saturating_add(length_bytes);
    let mut at_bytes = offset_bytes;
    while at_bytes < end_bytes {
        let wanted = (end_bytes - at_bytes).min(memory.len() as u64) as usize;
        match base::interruptible::read_at(file, &mut memory[..wanted], at_bytes) {
            Ok(bytes) if bytes > 0 => at_bytes += bytes as u64,
            _ => return,
        }
    }
}
