//! Requests of rings and of libaio, from one event to another.

use crate::trace::Event;

use super::follower::{End, Follower};
use super::requests::{Before, Block, Context, REGISTERED, Request, Submitted, asked_of, seen};
use crate::operation::{
    Asked, Engine, FileKind, FileNumber, FileOperation, Known, Recording, Unknown,
};

fn key(event: &Event) -> (u64, u64) {
    (event.value(0).unwrap_or(0), event.value(1).unwrap_or(0))
}

impl Follower {
    /// The process of a ring, by who uses it: a thread of ours makes it ours.
    fn ring_owner(&mut self, event: &Event) -> Option<u32> {
        let ring = event.value(0)?;
        if let Some(owner) = self.rings.owner(ring) {
            return Some(owner);
        }
        let process = self.threads.process(event.thread)?;
        if !self.ours.contains(&process) {
            return None;
        }
        self.rings.belongs(ring, process);
        Some(process)
    }

    pub(super) fn submitted(&mut self, event: &Event, to: &mut dyn Recording) {
        let Some(process) = self.ring_owner(event) else { return };
        let Some(asked) = event.value(2).and_then(asked_of) else { return };
        let is_registered = event.value(3).is_some_and(|flags| flags & REGISTERED != 0);
        let file = is_registered.then(|| {
            let file = self.unnamed(Unknown::RegisteredFile, to);
            (file, self.hold(file))
        });
        let start_ns = event.time_ns;
        let thread = event.thread;
        let place = Err(Unknown::OffsetOfRing);
        let (is_handed, is_answered_next) = (false, false);
        let request =
            Request { start_ns, process, thread, asked, file, is_handed, is_answered_next, place };
        self.last_of_ring.insert(thread, key(event));
        if let Some(before) = self.rings.submit(key(event), request) {
            self.release(before.file);
        }
    }

    /// The block layer is asked for something outside of a call that is followed: it is for the
    /// request that the thread has just submitted to a ring.
    pub(super) fn block_of_ring(&mut self, thread: u32, block: Block) {
        let Some(key) = self.last_of_ring.get(&thread) else { return };
        let Some(request) = self.rings.get(*key) else { return };
        if request.place.is_err() && request.asked == block.asked {
            request.place = block.place;
        }
    }

    pub(super) fn file_of(&mut self, event: &Event, to: &mut dyn Recording) {
        let Some(request) = self.rings.get(key(event)).copied() else { return };
        let descriptor = event.value(2).and_then(|it| u32::try_from(it.cast_signed()).ok());
        let (Some(descriptor), None) = (descriptor, request.file) else { return };
        let found = self.descriptors.get(request.process, descriptor, &mut self.files, to);
        let file = match found {
            Ok(open) => self.descriptors.file(open),
            Err(why) => self.unnamed(why, to),
        };
        let count = self.hold(file);
        if let Some(request) = self.rings.get(key(event)) {
            request.file = Some((file, count));
        }
    }

    pub(super) fn handed(&mut self, event: &Event) {
        if let Some(request) = self.rings.get(key(event)) {
            request.is_handed = true;
        }
    }

    pub(super) fn completed(&mut self, event: &Event, to: &mut dyn Recording) {
        let Some(request) = self.rings.end(key(event)) else { return };
        self.release(request.file);
        let (file, count) = match request.file {
            Some(found) => found,
            None => (self.unnamed(Unknown::NotRecorded, to), 0),
        };
        let answer = event.value(2).unwrap_or(0).cast_signed();
        let done = answer.max(0).cast_unsigned();
        let mut operation = self.of_ring(&request, file, count);
        operation.duration_ns = Ok(event.time_ns.saturating_sub(request.start_ns));
        operation.error = i32::try_from(-answer.min(0)).unwrap_or(i32::MAX);
        if matches!(request.asked, Asked::Read | Asked::Write) {
            operation.done_bytes = Ok(done);
            // Its length is nowhere; what was done of it stands for it.
            operation.asked_bytes = if done > 0 { Ok(done) } else { Err(Unknown::NotRecorded) };
        } else {
            operation.done_bytes = Ok(0);
        }
        to.operation(&operation);
    }

    fn of_ring(&self, request: &Request, file: FileNumber, count: u32) -> FileOperation {
        let is_direct = self.files.get(file).is_some_and(|file| file.direct == Ok(true));
        // What the page cache answers at once was never in flight, however many others are.
        let is_in_flight = count > 1 && !request.is_answered_next;
        let has_waited = is_direct || request.is_handed || is_in_flight;
        let is_sync = matches!(request.asked, Asked::Sync(_));
        FileOperation {
            start_ns: request.start_ns,
            duration_ns: Err(Unknown::NotEnded),
            process: request.process,
            thread: request.thread,
            file,
            engine: Engine::IoUring,
            asked: request.asked,
            // Of a buffered one what the block layer is asked for may be what is read ahead.
            offset_bytes: if is_sync {
                Ok(0)
            } else if is_direct {
                request.place
            } else {
                Err(Unknown::OffsetOfRing)
            },
            asked_bytes: if is_sync { Ok(0) } else { Err(Unknown::NotEnded) },
            done_bytes: Err(Unknown::NotEnded),
            synchronous: false,
            in_flight: if has_waited && count > 0 { Ok(count) } else { Err(Unknown::DoneAtOnce) },
            error: 0,
        }
    }

    /// What a context of a process may have in flight when it is first seen; nothing where all that
    /// the process did was recorded.
    fn before(&self, process: u32) -> Option<Before> {
        (!self.whole.contains(&process)).then(Before::default)
    }

    pub(super) fn aio_submitted(&mut self, end: &End<'_>) {
        let Ok(count) = usize::try_from(end.answer) else { return };
        let found = seen(count, &end.begun.blocks);
        if found.is_none() {
            self.requests_unseen += count as u64;
        }
        let before = self.before(end.process);
        let context = self.contexts.of(end.process, end.begun.values[0], before);
        for at in 0..count {
            let in_flight = u32::try_from(context.waiting.len() + 1).unwrap_or(u32::MAX);
            let level = context.before.as_mut().map(Before::submit);
            let seen = found.as_ref().and_then(|found| found.get(at));
            context.waiting.push_back(seen.map(|(block, bytes)| Submitted {
                start_ns: end.begun.start_ns,
                thread: end.event.thread,
                asked: block.asked,
                bytes: *bytes,
                place: block.place,
                device: block.device,
                in_flight: if level.is_none() { Ok(in_flight) } else { Err(Unknown::BegunBefore) },
                level: level.unwrap_or(0),
            }));
        }
    }

    /// Which of the requests it is that have ended is behind a pointer: the oldest stand for them.
    pub(super) fn aio_fetched(&mut self, end: &End<'_>, to: &mut dyn Recording) {
        let Ok(count) = usize::try_from(end.answer) else { return };
        let before = self.before(end.process);
        let key = (end.process, end.begun.values[0]);
        let context = self.contexts.of(key.0, key.1, before);
        let is_counted = context.before.is_none();
        if let Some(before) = &mut context.before {
            before.fetch(count);
        }
        let count = count.min(context.waiting.len());
        let are_all = is_counted && count == context.waiting.len();
        let fetched: Vec<Submitted> = context.waiting.drain(..count).flatten().collect();
        for submitted in fetched {
            let mut operation = self.of_aio(end.process, &submitted, to);
            if let Some(before) = &mut self.contexts.of(key.0, key.1, None).before {
                before.handed_out(operation.file, submitted.level);
            }
            if are_all {
                let end_ns = end.event.time_ns;
                operation.duration_ns = Ok(end_ns.saturating_sub(submitted.start_ns));
            }
            to.operation(&operation);
        }
    }

    /// A context ends: all was fetched, so that what was in flight when the recording began is
    /// what was fetched more than was submitted.
    pub(super) fn aio_ended(&mut self, process: u32, only: Option<u64>, to: &mut dyn Recording) {
        for context in self.contexts.end(process, only) {
            self.context_ended(process, context, to);
        }
    }

    fn context_ended(&mut self, process: u32, context: Context, to: &mut dyn Recording) {
        let mut left: Vec<FileOperation> = Vec::new();
        let mut before = context.before;
        for submitted in context.waiting.into_iter().flatten() {
            let mut operation = self.of_aio(process, &submitted, to);
            operation.duration_ns = Err(Unknown::NotEnded);
            if let Some(before) = &mut before {
                before.handed_out(operation.file, submitted.level);
            }
            left.push(operation);
        }
        left.iter().for_each(|operation| to.operation(operation));
        for (file, counts) in before.iter().flat_map(Before::depths) {
            to.depths(file, &counts);
        }
    }

    fn of_aio(
        &mut self,
        process: u32,
        submitted: &Submitted,
        to: &mut dyn Recording,
    ) -> FileOperation {
        let file = match self.direct_file(process, submitted.device) {
            Some(file) => file,
            None => self.unnamed(Unknown::RequestOfAio, to),
        };
        FileOperation {
            start_ns: submitted.start_ns,
            duration_ns: Err(Unknown::RequestOfAio),
            process,
            thread: submitted.thread,
            file,
            engine: Engine::Libaio,
            asked: submitted.asked,
            offset_bytes: submitted.place,
            asked_bytes: submitted.bytes,
            // What the device was given; whether it failed is behind a pointer.
            done_bytes: submitted.bytes,
            synchronous: false,
            in_flight: submitted.in_flight,
            error: 0,
        }
    }

    /// The file that a direct request to a device is of: the only one that this process has open
    /// for such requests there.
    fn direct_file(&self, process: u32, device: u64) -> Option<FileNumber> {
        let is_candidate = |number: &FileNumber| {
            let kind = self.files.get(*number).filter(|file| file.direct == Ok(true));
            let kind = kind.map(|file| file.kind);
            matches!(kind, Some(FileKind::Regular | FileKind::BlockDevice))
        };
        let mut all: Vec<FileNumber> =
            self.descriptors.files_of(process).filter(is_candidate).collect();
        all.sort_unstable();
        all.dedup();
        let there = all.iter().filter(|file| self.files.device(**file) == Some(device));
        let there: Vec<FileNumber> = there.copied().collect();
        // A file system over several devices has a number of its own.
        let only = |files: &[FileNumber]| (files.len() == 1).then(|| files[0]);
        if there.is_empty() { only(&all) } else { only(&there) }
    }

    /// Requests that had not ended when the recording did.
    pub(super) fn unended_requests(&mut self, to: &mut dyn Recording) -> Vec<FileOperation> {
        let mut left = Vec::new();
        for request in self.rings.drain() {
            let unnamed = (self.unnamed(Unknown::NotEnded, to), 0);
            let (file, count) = request.file.unwrap_or(unnamed);
            left.push(self.of_ring(&request, file, count));
        }
        for (process, submitted) in self.contexts.drain() {
            let mut operation = self.of_aio(process, &submitted, to);
            let not_ended: Known<u64> = Err(Unknown::NotEnded);
            (operation.duration_ns, operation.done_bytes) = (not_ended, not_ended);
            left.push(operation);
        }
        left
    }
}
