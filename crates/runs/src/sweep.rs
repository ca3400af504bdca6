//! Files of a disk with heads are fetched in the order in which they lie there.
//!
//! A run needs files in the order of their names. A disk with heads reads them in that order with a
//! seek for each: twelve milliseconds for one that takes a fraction of one to pass under the heads.
//! So, on such a disk, batches on their way to those who read them stay here until their files are
//! in the page cache: a window of them, as large as the memory that it may take. The files of the
//! window are read by address, from the lowest to the highest and again from the start; what comes
//! in while the heads are on their way joins them. A batch goes on when it and all before it are
//! complete, and its room is free when its files are done with; then its pages are dropped. So what
//! is made of the files is the same to the byte, whatever the order.
//!
//! Opening files is reading, too: their inodes are read in the order of their numbers, which on
//! most file systems is the order of the disk.
//!
//! Not fetched are files that the page cache holds already, and those that are large enough to be
//! read in one stream. While one of these is read, the sweep waits: its heads have one place.

mod batch;
mod found;
mod in_order;
mod judge;
mod lanes;
mod limits;
mod look;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base::failures::lock;
use device::btrfs::places::Places;
use flow::account::{Account, Stage, ThreadState};
use flow::budget::{Budget, Loan};
use flow::cancel::{Cancel, Stopped};
use flow::monitor::{FetchedAhead, Level, Monitor, Notice};
use flow::queue::Queue;
use flow::run::DiskOrder;

pub(crate) use batch::{Batch, Fetchable, Held};
use batch::{Folders, LastFolder};
use found::{Candidate, Found};
use in_order::InOrder;
use judge::{Judge, Verdict};
use lanes::{Lanes, WaitingRead};
pub use limits::ReadOrder;
pub(crate) use limits::{Limits, WINDOW_FOLDERS, descriptors, halved};
use look::{JUMP_BYTES, Looked, SAMPLE_FILES, Sample};

/// Threads that fetch: requests that the disk can choose from. A drive's own queue holds 32.
pub(crate) const SWEEP_THREADS: usize = 32;
/// Entries whose inodes are read together.
const CHUNK_ENTRIES: usize = 2048;
/// Entries that are waited for, and for how long: of a few files no look says anything.
const GATHER_ENTRIES: usize = 256;
const GATHER_WAIT: Duration = Duration::from_millis(200);
/// The heads set out when so many reads wait, or when no more can: a sweep through few is mostly
/// seeking, and takes the heads from the inodes that are read meanwhile.
const SET_OUT_READS: usize = 8192;
/// They set out with fewer after this time.
const SET_OUT_WAIT: Duration = Duration::from_secs(2);
/// What an entry takes of the window where nothing is fetched: a shorter queue keeps readers busy.
const WEIGHT_AS_THEY_COME: usize = 8;
/// One read.
const READ_BYTES: usize = 256 << 10;
/// Files of a chunk for which it is worth judging how many of them the page cache holds.
const CACHED_FILES_MIN: usize = 64;

/// The window of files that are fetched.
pub(crate) struct Sweep<'a, W> {
    /// Batches from the walk.
    pub(crate) incoming: Queue<Batch<W>>,
    /// Batches for the readers. It holds as many as can be under way.
    outgoing: &'a Queue<Batch<W>>,
    order: ReadOrder,
    limits: Limits,
    bytes: Budget,
    entries: Budget,
    folders: Budget,
    state: Mutex<State<W>>,
    changed: Condvar,
    monitor: &'a dyn Monitor,
    cancel: &'a Cancel,
    is_sweeping: AtomicBool,
}

#[derive(Debug)]
struct State<W> {
    batches: InOrder<W>,
    reads: Lanes<WaitingRead>,
    /// Since when reads wait for the heads to set out, once there are some; `None`: they are on
    /// their way.
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
pub(crate) struct StreamGuard<'a, W> {
    state: &'a Mutex<State<W>>,
    changed: &'a Condvar,
}

impl<'a, W: Fetchable> Sweep<'a, W> {
    pub(crate) fn new(
        order: ReadOrder,
        limits: Limits,
        batches_waiting: usize,
        outgoing: &'a Queue<Batch<W>>,
        monitor: &'a dyn Monitor,
        cancel: &'a Cancel,
    ) -> Sweep<'a, W> {
        let state = State::new();
        Sweep {
            incoming: Queue::new(batches_waiting, cancel.clone()),
            outgoing,
            order,
            limits,
            bytes: Budget::new(limits.window_bytes, cancel.clone()),
            entries: Budget::new(limits.window_entries, cancel.clone()),
            folders: Budget::new(limits.window_folders, cancel.clone()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            monitor,
            cancel,
            is_sweeping: AtomicBool::new(order != ReadOrder::Auto),
        }
    }

    /// Whether files are fetched: small batches give the window back in small parts then.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.is_sweeping.load(Ordering::Relaxed)
    }

    /// Keeps the heads where a large file lies.
    pub(crate) fn stream(&self) -> StreamGuard<'_, W> {
        lock(&self.state).streams += 1;
        StreamGuard { state: &self.state, changed: &self.changed }
    }

    /// What was read in the order of the disk.
    pub(crate) fn done(&self) -> Option<DiskOrder> {
        let state = lock(&self.state);
        let done = DiskOrder { jumps: state.reads.jumps(), ..state.done };
        (done.files > 0).then_some(done)
    }

    /// Takes batches from the walk, and decides what is fetched, until all have gone on.
    pub(crate) fn run(&self, account: &mut Account) -> Result<(), Stopped> {
        let mut judge = Judge::new(self.order);
        let mut places = Places::default();
        let mut last_folder = None;
        while let Some(batches) = self.chunk(account)? {
            let found = self.look_at(&batches, &mut judge, &mut places, account)?;
            for (batch, found) in batches.into_iter().zip(found) {
                self.admit(batch, found, &mut last_folder, account)?;
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
    fn chunk(&self, account: &mut Account) -> Result<Option<Vec<Batch<W>>>, Stopped> {
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
        batches: &[Batch<W>],
        judge: &mut Judge,
        places: &mut Places,
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
            let mut of_device = Vec::new();
            for mut part in [here, rest] {
                part.sort_unstable_by_key(|it| it.order_of_inodes());
                let mut of_part = Vec::new();
                for it in part {
                    // Each may be an access to the disk.
                    self.cancel.check()?;
                    of_part.extend(it.look(self.order, self.limits.file_bytes_max, places));
                }
                self.judge(device, &mut of_part, judge, places, account)?;
                if judge.verdict(device) != Verdict::Sweep {
                    break;
                }
                of_device.append(&mut of_part);
            }
            found::load_checksums(of_device.iter(), places, self.cancel)?;
            of_device.into_iter().for_each(|it| found[it.batch].push(it));
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
        places: &mut Places,
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
        let Some(sample) = Sample::of(found) else {
            judge.pass(device);
            return Ok(());
        };
        // What readers have in hand would move the heads meanwhile.
        drop(self.entries.take(self.limits.window_entries, account)?);
        let looked = sample.look(found, places, self.cancel)?;
        match looked {
            Looked::Slow(access_time) => {
                lock(&self.state).ahead.access_time = Some(access_time);
                judge.sweep(device);
                self.is_sweeping.store(true, Ordering::Relaxed);
            }
            Looked::Fast(_) | Looked::InOrder => judge.pass(device),
        }
        self.tell(&looked);
        Ok(())
    }

    fn tell(&self, looked: &Looked) {
        let ms = |time: &Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let text = match looked {
            Looked::Slow(access_time) => {
                let window = base::format::size(self.limits.window_bytes as u64);
                format!(
                    "files are read in the order of the disk, up to {window} ahead: its access \
                     time is {}",
                    ms(access_time)
                )
            }
            Looked::Fast(access_time) => {
                format!(
                    "files are read in the order of their names: the access time of the disk is \
                     {}",
                    ms(access_time)
                )
            }
            Looked::InOrder => {
                "files are read in the order of their names, which is that of the disk".to_owned()
            }
        };
        self.monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
    }

    /// Adds a batch to the window, once it has room.
    fn admit(
        &self,
        mut batch: Batch<W>,
        found: Vec<Found>,
        last_folder: &mut LastFolder,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let bytes: u64 = found.iter().map(Found::bytes).sum();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let entries = batch.works.len();
        let mut fetched = vec![false; if found.is_empty() { 0 } else { entries }];
        found.iter().filter(|it| it.is_cold).for_each(|it| fetched[it.number] = true);
        let folders = self.folders_of(&batch, last_folder, account)?;
        let weight = if self.is_sweeping() { 1 } else { WEIGHT_AS_THEY_COME };
        let entries = self.room(&self.entries, entries * weight, account)?;
        let bytes = self.room(&self.bytes, bytes, account)?;
        let held = Held::new(bytes, entries, folders, fetched);
        batch.held = Some(Arc::new(held));
        let ticket = batch.ticket;
        let mut state = lock(&self.state);
        // Before there is a read, none waits.
        if state.reads.len() == 0 && state.gathering.is_some() {
            state.gathering = Some(Instant::now());
        }
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

    /// Room for the folders of a batch. Those of one folder share it.
    fn folders_of(
        &self,
        batch: &Batch<W>,
        last: &mut LastFolder,
        account: &mut Account,
    ) -> Result<Folders, Stopped> {
        let (count, begins_in_last) = batch.folders(last.as_ref().map(|(folder, _)| folder));
        let shared = last.as_ref().filter(|_| begins_in_last).map(|(_, loan)| Arc::clone(loan));
        if count == 0 {
            return Ok([shared, None]);
        }
        // What it is counted with goes before more is taken.
        *last = None;
        let own = Arc::new(self.room(&self.folders, count, account)?);
        *last = batch.last_folder().map(|folder| (Arc::clone(folder), Arc::clone(&own)));
        Ok([shared, Some(own)])
    }

    /// Takes room in the window. The heads go where it has to be waited for.
    fn room(&self, budget: &Budget, amount: usize, account: &mut Account) -> Result<Loan, Stopped> {
        if let Some(loan) = budget.try_take(amount) {
            return Ok(loan);
        }
        self.set_out();
        budget.take(amount, account)
    }

    /// Lets the heads go with what is there.
    fn set_out(&self) {
        lock(&self.state).gathering = None;
        self.changed.notify_all();
    }

    /// Passes on what is complete.
    fn release(&self, state: &mut MutexGuard<'_, State<W>>) {
        while let Some(batch) = state.batches.release() {
            // There is room for as many entries as can be under way.
            let pushed = self.outgoing.try_push(batch);
            // What is not passed on would be missing from the archive.
            assert!(pushed.is_ok(), "the queue of the readers has room for the whole window");
        }
    }

    /// One of the threads that fetch. It joins the stage with its first read, and starts the next.
    pub(crate) fn fetch<E: From<Stopped>>(
        &self,
        idle: &mut Account,
        stage: &Arc<Stage>,
        start_next: &dyn Fn() -> Result<(), E>,
    ) -> Result<(), E> {
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

impl<W> State<W> {
    fn new() -> State<W> {
        State {
            batches: InOrder::default(),
            reads: Lanes::default(),
            gathering: Some(Instant::now()),
            streams: 0,
            is_last: false,
            done: DiskOrder::default(),
            ahead: FetchedAhead::default(),
            by_name: (0, 0),
        }
    }

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

impl<W> Drop for StreamGuard<'_, W> {
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
