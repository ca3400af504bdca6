//! From events to operations.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::trace::Event;
use rustix::fs::OFlags;

use super::calls::{CALLS, Call, EventKind};
use super::descriptors::{Descriptors, OpenNumber};
use super::files::{Files, Looked, OnExec, opened};
use super::lookups::{CLONE_THREAD, Lookups};
use super::mapped::Mappings;
use super::requests::{Block, Contexts, Rings};
use super::threads::Threads;
use crate::operation::{
    Asked, Engine, FileKind, FileNumber, FileOperation, Known, Recording, SyncCall, Unknown,
};

/// A call that has begun.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) row: usize,
    pub(super) start_ns: u64,
    pub(super) values: [u64; 5],
    pub(super) open: Known<OpenNumber>,
    /// The file of its first argument, and how many of its operations were in flight.
    pub(super) file: Option<(FileNumber, u32)>,
    /// What a block device was given meanwhile, of a call that submits requests.
    pub(super) blocks: Vec<Block>,
}

/// Requests to block devices that are kept of one submission.
const BLOCKS_MAX: usize = 1024;

/// Makes operations of events.
#[derive(Debug, Default)]
pub struct Follower {
    pub(super) threads: Threads,
    pub(super) files: Files,
    pub(super) descriptors: Descriptors,
    pub(super) lookups: Lookups,
    pub(super) begun: HashMap<u32, Begun>,
    pub(super) in_flight: HashMap<FileNumber, u32>,
    pub(super) rings: Rings,
    pub(super) contexts: Contexts,
    pub(super) ours: HashSet<u32>,
    pub(super) mappings: Mappings,
    /// Processes of which everything was recorded that they did to contexts of libaio.
    pub(super) whole: HashSet<u32>,
    /// What each thread has submitted last to a ring.
    pub(super) last_of_ring: HashMap<u32, (u64, u64)>,
    waiting: Vec<Event>,
    /// Events of before that moment were lost, and their turn has not come.
    gap_ns: Option<u64>,
    /// Threads that have ended since the last query.
    ended: Vec<u32>,
    /// Requests of libaio of which nothing was seen but that they were submitted.
    pub(super) requests_unseen: u64,
    /// Splices between descriptors of which at least one may have been that of a file.
    pub(super) splices_unseen: u64,
}

impl Follower {
    /// Nothing is known yet.
    pub fn new() -> Follower {
        Follower::default()
    }

    /// Looks at the open files of processes that run already.
    pub fn meet(&mut self, processes: &BTreeSet<u32>, to: &mut dyn Recording) {
        for process in processes {
            if !self.ours.insert(*process) {
                continue;
            }
            // It may end before the process of its first thread is looked up.
            self.threads.started(*process, *process);
            let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { continue };
            for entry in entries.flatten() {
                let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
                let Some(descriptor) = number else { continue };
                let _ = self.descriptors.get(*process, descriptor, &mut self.files, to);
            }
        }
    }

    /// Looks up what an urgent event leads to, before its turn comes: to be called for each, in
    /// the order of the times.
    pub fn look_ahead(&mut self, event: &Event) {
        self.lookups.look(event, &mut self.threads);
    }

    /// Events were lost somewhere before that moment: once it has come, whatever had begun until
    /// then is forgotten, too.
    pub fn lost_before(&mut self, time_ns: u64) {
        self.gap_ns = Some(time_ns);
    }

    /// Takes what was recorded since the last time, in the order of the times, and hands out the
    /// operations of the batch before it: what was looked up for those is in no doubt any more.
    pub fn take(&mut self, batch: Vec<Event>, to: &mut dyn Recording) {
        batch.iter().for_each(|event| self.mappings.look(event, &mut self.threads));
        let before = std::mem::replace(&mut self.waiting, batch);
        let horizon_ns = before.last().map_or(0, |event| event.time_ns);
        for event in &before {
            self.event(event, to);
        }
        if self.gap_ns.is_some_and(|gap_ns| horizon_ns >= gap_ns) {
            self.gap_ns = None;
            self.lose(0, to);
        }
        self.lookups.forget_until(horizon_ns);
    }

    /// Threads that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Events were lost: whatever had begun may have ended.
    pub fn lose(&mut self, events: u64, to: &mut dyn Recording) {
        to.lost(events);
        self.begun.clear();
        self.in_flight.clear();
        self.rings.drain();
        self.contexts.drain();
        self.whole.clear();
        self.last_of_ring.clear();
        self.descriptors.lose();
    }

    /// Hands out the rest; calls that have not ended are marked as such.
    pub fn finish(&mut self, to: &mut dyn Recording) {
        self.take(Vec::new(), to);
        let mut left: Vec<FileOperation> = Vec::new();
        for (thread, begun) in std::mem::take(&mut self.begun) {
            left.extend(self.unended(thread, &begun));
        }
        left.extend(self.unended_requests(to));
        left.sort_by_key(|operation| operation.start_ns);
        left.iter().for_each(|operation| to.operation(operation));
    }

    /// What of this recording could not be seen, in sentences.
    pub fn unseen(&self) -> Vec<String> {
        let count = self.requests_unseen;
        let buffered = format!(
            "{count} requests of libaio went past the block layer (buffered, or held by another \
             layer): neither their file nor their size nor their direction can be seen"
        );
        let mut unseen = Vec::from_iter((count > 0).then_some(buffered));
        if self.splices_unseen > 0 {
            unseen.push(format!(
                "{} calls of splice or sendfile are left out: what they moved data between was \
                 closed before Takeup could look at it",
                self.splices_unseen
            ));
        }
        unseen.extend(self.mappings.unseen());
        unseen
    }

    fn event(&mut self, event: &Event, to: &mut dyn Recording) {
        match EventKind::of(event.kind) {
            EventKind::Enter(row) => self.enter(row, event, to),
            EventKind::Exit(row) => self.exit(row, event, to),
            EventKind::New => self.started(event),
            EventKind::Ended => self.ended(event),
            EventKind::Exec => self.exec(event),
            EventKind::Block => self.block(event),
            EventKind::Fault => self.fetched(event, to),
            EventKind::Submitted => self.submitted(event, to),
            EventKind::FileOf => self.file_of(event, to),
            EventKind::Handed => self.handed(event),
            EventKind::Completed => self.completed(event, to),
            EventKind::Unknown => {}
        }
    }

    fn started(&mut self, event: &Event) {
        let Some(new) = event.value(0).and_then(|it| u32::try_from(it).ok()) else { return };
        if event.value(1).is_some_and(|flags| flags & CLONE_THREAD != 0) {
            return;
        }
        self.ours.insert(new);
        self.whole.insert(new);
        if let Some(process) = self.threads.process(event.thread) {
            self.descriptors.fork(process, new);
        }
    }

    fn ended(&mut self, event: &Event) {
        if let Some(begun) = self.begun.remove(&event.thread) {
            self.release(begun.file);
        }
        let process = self.threads.process(event.thread);
        let is_last = event.value(1).map(|it| it & 1 == 1);
        if is_last.unwrap_or(process == Some(event.thread))
            && let Some(process) = process
        {
            self.descriptors.forget(process);
            self.ours.remove(&process);
            self.whole.remove(&process);
        }
        self.last_of_ring.remove(&event.thread);
        self.mappings.ended(event.thread);
        self.threads.ended(event.thread);
        self.ended.push(event.thread);
    }

    fn exec(&mut self, event: &Event) {
        let Some(process) = self.threads.process(event.thread) else { return };
        self.whole.insert(process);
        self.descriptors.exec(process);
    }

    fn block(&mut self, event: &Event) {
        let value = |at: usize| event.value(at).unwrap_or(0);
        let Some(block) = Block::of(value(0), value(1), event.value(3), value(2)) else { return };
        let Some(begun) = self.begun.get_mut(&event.thread) else {
            return self.block_of_ring(event.thread, block);
        };
        if CALLS[begun.row].call == Call::Submit && begun.blocks.len() < BLOCKS_MAX {
            begun.blocks.push(block);
        }
    }

    fn enter(&mut self, row: usize, event: &Event, to: &mut dyn Recording) {
        let call = CALLS[row].call;
        self.last_of_ring.remove(&event.thread);
        let mut values = [0; 5];
        for (at, value) in values.iter_mut().enumerate() {
            *value = event.value(at).unwrap_or(0);
        }
        let mut begun = Begun {
            row,
            start_ns: event.time_ns,
            values,
            open: Err(Unknown::NotRecorded),
            file: None,
            blocks: Vec::new(),
        };
        if call.is_of_file()
            && let Some(process) = self.threads.process(event.thread)
        {
            let descriptor = u32::try_from(values[0] & 0xFFFF_FFFF).unwrap_or(u32::MAX);
            begun.open = self.descriptors.get(process, descriptor, &mut self.files, to);
            if call.is_operation() {
                let file = match begun.open {
                    Ok(open) => self.descriptors.file(open),
                    Err(why) => self.unnamed(why, to),
                };
                begun.file = Some((file, self.hold(file)));
            }
        }
        if call == Call::Exit
            && let Some(process) = self.threads.process(event.thread)
        {
            self.aio_ended(process, None, to);
        }
        if let Some(before) = self.begun.insert(event.thread, begun) {
            self.release(before.file);
        }
    }

    /// The file of all whose name is not known for that reason.
    pub(super) fn unnamed(&mut self, why: Unknown, to: &mut dyn Recording) -> FileNumber {
        let mut file = opened(None);
        file.path = Err(why);
        self.files.unnamed(file, to)
    }

    /// One more of a file is in flight; how many there are now.
    pub(super) fn hold(&mut self, file: FileNumber) -> u32 {
        let count = self.in_flight.entry(file).or_insert(0);
        *count += 1;
        *count
    }

    /// One less.
    pub(super) fn release(&mut self, file: Option<(FileNumber, u32)>) {
        if let Some(count) = file.and_then(|(file, _)| self.in_flight.get_mut(&file)) {
            *count = count.saturating_sub(1);
        }
    }

    fn exit(&mut self, row: usize, event: &Event, to: &mut dyn Recording) {
        // Without its beginning nothing is known of it.
        let Some(begun) = self.begun.remove(&event.thread) else { return };
        self.release(begun.file);
        if begun.row != row {
            return;
        }
        let answer = event.value(0).unwrap_or(0).cast_signed();
        // The kernel begins it again by itself (ERESTARTSYS and the like).
        if (-516..=-512).contains(&answer) {
            return;
        }
        let Some(process) = self.threads.process(event.thread) else { return };
        let end = End { event, process, answer, begun: &begun };
        let call = CALLS[row].call;
        match call {
            Call::Open | Call::Create | Call::OpenBySettings => self.opened(call, &end, to),
            Call::Submit => self.aio_submitted(&end),
            Call::Reap => self.aio_fetched(&end, to),
            Call::Destroy => self.aio_ended(process, Some(begun.values[0]), to),
            Call::Splice | Call::Send | Call::Copy => self.spliced(call, &end, to),
            _ if call.is_operation() => self.operation(call, &end, to),
            _ => self.descriptor(call, &end, to),
        }
    }

    fn opened(&mut self, call: Call, end: &End<'_>, to: &mut dyn Recording) {
        let Ok(descriptor) = u32::try_from(end.answer) else { return };
        let argument = u32::try_from(end.begun.values[0] & 0xFFFF_FFFF).unwrap_or(0);
        let flags = match call {
            Call::Open => Some(OFlags::from_bits_retain(argument)),
            Call::Create => Some(OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC),
            _ => None,
        };
        let looked = self.lookups.take(end.event.thread, end.event.time_ns).ok();
        // Of what is not known, the next program is asked again.
        let on_exec = match (flags, &looked) {
            (Some(flags), _) => OnExec::of(flags),
            (None, Some(looked)) => looked.on_exec,
            (None, None) => OnExec::Closes,
        };
        let file = match looked.filter(|looked| is_same(flags, looked)) {
            Some(looked) => self.files.number(&looked, to),
            None => self.files.unnamed(opened(flags), to),
        };
        self.descriptors.put((end.process, descriptor), file, on_exec, end.event.time_ns);
    }

    /// What changes descriptors and is no operation.
    fn descriptor(&mut self, call: Call, end: &End<'_>, to: &mut dyn Recording) {
        let [first, second, third, ..] = end.begun.values.map(number);
        let answer = u32::try_from(end.answer).ok();
        match (call, answer) {
            // Whatever it answers, it is closed (close(2)), but for a bad number.
            (Call::Close, _) if end.answer != -9 => self.descriptors.close(end.process, first),
            (Call::CloseRange, Some(_)) if third & CLOSE_RANGE_CLOEXEC == 0 => {
                self.descriptors.close_range(end.process, first, second);
            }
            (Call::CloseRange, Some(_)) => {
                self.descriptors.set_on_exec(end.process, first, second, OnExec::Closes);
            }
            (Call::Duplicate | Call::DuplicateTo, Some(new)) => {
                // dup(2) and dup2(2) have no third argument.
                let on_exec = OnExec::of(OFlags::from_bits_retain(third));
                self.descriptors.duplicate(end.process, first, new, on_exec);
                self.name_again(end, new, to);
            }
            (Call::Control, Some(new)) if DUPLICATES.contains(&second) => {
                let is_closed = second == DUPLICATE_TO_BE_CLOSED;
                let on_exec = if is_closed { OnExec::Closes } else { OnExec::Stays };
                self.descriptors.duplicate(end.process, first, new, on_exec);
            }
            (Call::Control, Some(_)) if second == SET_DESCRIPTOR_FLAGS => {
                let is_closed = third & CLOSES_ON_EXEC != 0;
                let on_exec = if is_closed { OnExec::Closes } else { OnExec::Stays };
                self.descriptors.set_on_exec(end.process, first, first, on_exec);
            }
            (Call::Control, Some(_)) if second == SET_FLAGS => {
                self.changed_flags(end, third, to);
            }
            (Call::Seek, Some(_)) => {
                if let Ok(open) = end.begun.open {
                    let position = end.answer.cast_unsigned();
                    self.descriptors.seek(open, end.event.time_ns, position);
                }
            }
            (Call::SyncAll, Some(_)) => self.synced_all(end, to),
            (Call::SyncMapped, Some(_)) => self.synced_mapped(end, to),
            _ => {}
        }
    }

    /// An open file whose first descriptor was closed too early may be known by its second one.
    fn name_again(&mut self, end: &End<'_>, descriptor: u32, to: &mut dyn Recording) {
        let looked = self.lookups.take(end.event.thread, end.event.time_ns);
        let (Ok(looked), Some(open)) = (looked, self.descriptors.known(end.process, descriptor))
        else {
            return;
        };
        let file = self.files.get(self.descriptors.file(open));
        if file.is_some_and(|file| file.path == Err(Unknown::Closed)) {
            let number = self.files.number(&looked, to);
            self.descriptors.set_file(open, number);
        }
    }

    /// With `O_DIRECT` or `O_APPEND` given or taken it is another file here.
    fn changed_flags(&mut self, end: &End<'_>, flags: u32, to: &mut dyn Recording) {
        let Ok(open) = end.begun.open else { return };
        let before = self.descriptors.file(open);
        let Some(file) = self.files.get(before).cloned() else { return };
        let flags = OFlags::from_bits_retain(flags);
        let (direct, append) = (flags.contains(OFlags::DIRECT), flags.contains(OFlags::APPEND));
        if file.direct == Ok(direct) && file.append == Ok(append) {
            return;
        }
        let number = self.files.changed(before, flags, to);
        self.descriptors.set_file(open, number);
    }

    fn synced_all(&mut self, end: &End<'_>, to: &mut dyn Recording) {
        let file = self.unnamed(Unknown::NotRecorded, to);
        let asked = Asked::Sync(SyncCall::Sync);
        to.operation(&end.operation(file, Engine::Sync, asked));
    }

    fn synced_mapped(&mut self, end: &End<'_>, to: &mut dyn Recording) {
        let looked = Looked::mapped(end.process, end.begun.values[0]);
        let file = match looked {
            Ok(looked) => self.files.number(&looked, to),
            Err(why) => self.unnamed(why, to),
        };
        to.operation(&end.operation(file, Engine::Mmap, Asked::Sync(SyncCall::Msync)));
    }

    /// Whether an offset makes sense in a file.
    pub(super) fn has_places(&self, file: FileNumber) -> bool {
        let kind = self.files.get(file).map(|file| file.kind);
        matches!(kind, Some(FileKind::Regular | FileKind::BlockDevice | FileKind::Other))
    }
}

/// fcntl(2): `F_DUPFD` and `F_DUPFD_CLOEXEC`; `F_SETFD` and its `FD_CLOEXEC`; `F_SETFL`.
const DUPLICATES: [u32; 2] = [0, DUPLICATE_TO_BE_CLOSED];
const DUPLICATE_TO_BE_CLOSED: u32 = 1030;
const SET_DESCRIPTOR_FLAGS: u32 = 2;
const CLOSES_ON_EXEC: u32 = 1;
const SET_FLAGS: u32 = 4;
/// close_range(2): nothing is closed before the next program.
const CLOSE_RANGE_CLOEXEC: u32 = 4;

fn number(value: u64) -> u32 {
    u32::try_from(value & 0xFFFF_FFFF).unwrap_or(u32::MAX)
}

/// Whether what was found may be what was opened with these flags.
fn is_same(flags: Option<OFlags>, looked: &Looked) -> bool {
    let Some(flags) = flags else { return true };
    let file = &looked.file;
    let agrees =
        |found: Known<bool>, flag: OFlags| found.is_err() || found == Ok(flags.contains(flag));
    agrees(file.direct, OFlags::DIRECT)
        && agrees(file.append, OFlags::APPEND)
        && agrees(file.synchronous, OFlags::DSYNC)
}

/// The end of a call.
pub(super) struct End<'a> {
    pub(super) event: &'a Event,
    pub(super) process: u32,
    pub(super) answer: i64,
    pub(super) begun: &'a Begun,
}

impl End<'_> {
    /// An operation without a place, to be told more of.
    pub(super) fn operation(
        &self,
        file: FileNumber,
        engine: Engine,
        asked: Asked,
    ) -> FileOperation {
        let start_ns = self.begun.start_ns;
        FileOperation {
            start_ns,
            duration_ns: Ok(self.event.time_ns.saturating_sub(start_ns)),
            process: self.process,
            thread: self.event.thread,
            file,
            engine,
            asked,
            offset_bytes: Ok(0),
            asked_bytes: Ok(0),
            done_bytes: Ok(0),
            synchronous: false,
            in_flight: Ok(1),
            error: i32::try_from(-self.answer.min(0)).unwrap_or(i32::MAX),
        }
    }
}
