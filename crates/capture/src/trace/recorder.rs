//! Recording: from what is wanted to events in order.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use rustix::time::{ClockId, clock_gettime};

use crate::trace::error::TraceError;
use crate::trace::format::Field;
use crate::trace::instance::Instance;
use crate::trace::merge::{self, Queue};
use crate::trace::page::{Entries, Layout};
use crate::trace::tracefs::Tracefs;
use crate::trace::{Event, FIELDS_MAX, WantedEvent};

/// An event has its time before it has its place in the buffer; nobody takes longer in between.
const WRITING_NS: u64 = 500_000;
/// Pages that are read of one buffer before others have their turn.
const PAGES_AT_ONCE: usize = 16;
/// A page is read at most this large (`buffer_subbuf_size_kb`).
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Of the whole buffer space, what those events have that are recorded of everybody, and those
/// that are told ahead.
const SMALL_SHARE: u64 = 8;
/// As many events that were told ahead wait for their turn, of all processors, and of each at
/// least; more wait in the kernel's buffers.
const AHEAD_MAX: usize = 1 << 16;
const AHEAD_OF_EACH: usize = 1 << 10;

/// What is recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecorderOptions<'a> {
    /// Of these threads and all that they start, these events.
    pub events: &'a [WantedEvent],
    /// Of everybody, these: what kernel threads do that belong to nobody. Their numbers go on
    /// behind those of the others.
    pub everywhere: &'a [WantedEvent],
    /// Threads to begin with.
    pub threads: &'a [u32],
    /// All buffers together, in bytes; no processor has less than 256 KiB, unless that is more
    /// than all of it.
    pub buffer_bytes: u64,
}

/// How an event of this kernel becomes one of ours.
#[derive(Clone, Debug)]
struct Binding {
    kind: u16,
    fields: Vec<Option<Field>>,
}

/// One processor's buffer of one instance.
#[derive(Debug)]
struct Buffer {
    pages: File,
    instance: usize,
    processor: u32,
    /// Events lost, as it was last told.
    lost: u64,
    has_missed: bool,
}

/// A recording under way. Its buffers are removed with it.
#[derive(Debug)]
pub struct Recorder {
    // Files are closed before the instances go.
    buffers: Vec<Buffer>,
    queues: Vec<Queue>,
    instances: Vec<Instance>,
    layout: Layout,
    thread: Field,
    by_number: Vec<Option<Binding>>,
    page: Vec<u8>,
    missing: Vec<String>,
    /// The first so many instances record certain threads, the others everybody.
    of_threads: usize,
    /// The buffers of events that are told ahead come first, and are so many.
    urgent: usize,
    /// Whatever is urgent and older was told.
    told_ns: u64,
    /// Threads that are recorded by our own will.
    followed: BTreeSet<u32>,
    broken_pages: u64,
}

impl Recorder {
    /// Sets everything up; nothing is recorded before [`Recorder::start`].
    ///
    /// # Errors
    /// When tracefs refuses, or the kernel has none of the events.
    pub fn new(tracefs: &Tracefs, options: &RecorderOptions<'_>) -> Result<Recorder, TraceError> {
        let layout = tracefs.layout()?;
        let page = vec![0; layout.page_bytes.clamp(1 << 16, PAGE_BYTES_MAX)];
        let thread = Field { name: "common_pid".to_owned(), offset: 4, size: 4, is_signed: true };
        let mut recorder = Recorder {
            buffers: Vec::new(),
            queues: Vec::new(),
            instances: Vec::new(),
            layout,
            thread,
            by_number: Vec::new(),
            page,
            missing: Vec::new(),
            of_threads: 0,
            urgent: 0,
            told_ns: 0,
            followed: BTreeSet::new(),
            broken_pages: 0,
        };
        let numbered = || (0_u16..).zip(options.events.iter().chain(options.everywhere));
        let (own, everywhere) = (options.events.len(), options.everywhere.len());
        let of_threads = numbered().take(own);
        let (urgent, in_turn): (Vec<_>, Vec<_>) = of_threads.partition(|(_, it)| it.is_urgent);
        let everywhere: Vec<_> = numbered().skip(own).take(everywhere).collect();
        let small_bytes = options.buffer_bytes / SMALL_SHARE;
        let share = |events: &[_]| if events.is_empty() { 0 } else { small_bytes };
        let left_bytes = options.buffer_bytes - share(&urgent) - share(&everywhere);
        let mut found = 0;
        for (events, bytes) in [(&urgent, share(&urgent)), (&in_turn, left_bytes)] {
            if events.is_empty() {
                continue;
            }
            let instance = Instance::make(tracefs, bytes)?;
            instance.follow_forks()?;
            found += recorder.bind(tracefs, &instance, events)?;
            recorder.add(instance)?;
            recorder.of_threads += 1;
            if events.iter().any(|(_, wanted)| wanted.is_urgent) {
                recorder.urgent = recorder.buffers.len();
            }
        }
        recorder.follow(options.threads)?;
        if found == 0 {
            return Err(TraceError::NoEvents);
        }
        if !everywhere.is_empty() {
            let all = Instance::make(tracefs, small_bytes)?;
            recorder.bind(tracefs, &all, &everywhere)?;
            recorder.add(all)?;
        }
        Ok(recorder)
    }

    /// Looks up these events and turns them on; how many of them there are.
    fn bind(
        &mut self,
        tracefs: &Tracefs,
        instance: &Instance,
        wanted: &[(u16, &WantedEvent)],
    ) -> Result<usize, TraceError> {
        let mut found = 0;
        for (kind, wanted) in wanted {
            let Some(format) = tracefs.format(wanted.system, wanted.name)? else {
                self.missing.push(format!("{}:{}", wanted.system, wanted.name));
                continue;
            };
            let fields = wanted.fields.iter().take(FIELDS_MAX);
            let fields = fields.map(|name| format.field(name).cloned()).collect();
            if let Some(thread) = format.field("common_pid") {
                self.thread = thread.clone();
            }
            let number = usize::from(format.number);
            if self.by_number.len() <= number {
                self.by_number.resize(number + 1, None);
            }
            self.by_number[number] = Some(Binding { kind: *kind, fields });
            instance.enable(wanted.system, wanted.name)?;
            found += 1;
        }
        Ok(found)
    }

    fn add(&mut self, instance: Instance) -> Result<(), TraceError> {
        for processor in instance.processors()? {
            let pages = instance.pages(processor)?;
            let instance = self.instances.len();
            self.buffers.push(Buffer { pages, instance, processor, lost: 0, has_missed: false });
            self.queues.push(Queue::default());
        }
        self.instances.push(instance);
        Ok(())
    }

    /// WantedEvent events that this kernel does not have, as `group:name`.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// How many buffers there are to look at.
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Pages that made no sense, of which what came before that was taken.
    pub fn broken_pages(&self) -> u64 {
        self.broken_pages
    }

    /// Records these threads as well, those among them that are new; how many they were.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn follow(&mut self, threads: &[u32]) -> Result<usize, TraceError> {
        let new: Vec<u32> =
            threads.iter().copied().filter(|it| !self.followed.contains(it)).collect();
        let of_threads = &self.instances[..self.of_threads];
        of_threads.iter().try_for_each(|instance| instance.follow(&new))?;
        self.followed.extend(&new);
        Ok(new.len())
    }

    /// Forgets threads that have ended, so that a later one of the same number is new.
    pub fn forget(&mut self, thread: u32) {
        self.followed.remove(&thread);
    }

    /// Begins.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn start(&mut self) -> Result<(), TraceError> {
        self.instances.iter().try_for_each(Instance::start)
    }

    /// Ends; what was recorded can still be read.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn stop(&mut self) -> Result<(), TraceError> {
        self.instances.iter().try_for_each(Instance::stop)
    }

    /// Tells all urgent events that were recorded up to about now, oldest first and each one once,
    /// however many others were recorded before them. [`Recorder::read`] hands them out again when
    /// their turn comes, and none that was not told here.
    ///
    /// # Errors
    /// When a buffer cannot be read.
    pub fn look_ahead(&mut self, out: &mut impl FnMut(&Event)) -> Result<(), TraceError> {
        self.look_ahead_until(now_ns().saturating_sub(WRITING_NS), out)
    }

    /// The same, once nothing is recorded any more. As the room is limited, it is to be called
    /// again after each [`Recorder::read_rest`].
    ///
    /// # Errors
    /// When a buffer cannot be read.
    pub fn look_ahead_at_rest(&mut self, out: &mut impl FnMut(&Event)) -> Result<(), TraceError> {
        self.look_ahead_until(u64::MAX, out)
    }

    fn look_ahead_until(
        &mut self,
        end_ns: u64,
        out: &mut impl FnMut(&Event),
    ) -> Result<(), TraceError> {
        let most = (AHEAD_MAX / self.urgent.max(1)).max(AHEAD_OF_EACH);
        let mut complete_ns = end_ns;
        for at in 0..self.urgent {
            while self.queues[at].complete_until_ns() < end_ns
                && self.queues[at].events.len() < most
            {
                self.fill(at, end_ns)?;
            }
            complete_ns = complete_ns.min(self.queues[at].complete_until_ns());
        }
        let urgent = &self.queues[..self.urgent];
        let new = urgent.iter().flat_map(|queue| queue.between(self.told_ns, complete_ns));
        let mut new: Vec<&Event> = new.collect();
        new.sort_by_key(|event| event.time_ns);
        new.into_iter().for_each(out);
        self.told_ns = self.told_ns.max(complete_ns);
        Ok(())
    }

    /// Until when all urgent events were told.
    pub fn told_until_ns(&self) -> u64 {
        self.told_ns
    }

    /// Hands out what was recorded, oldest first, up to about now; what is in the buffers of some
    /// milliseconds before stays until the next time. Stops early after `most` events.
    ///
    /// # Errors
    /// When a buffer cannot be read.
    pub fn read(&mut self, most: usize, out: &mut impl FnMut(Event)) -> Result<usize, TraceError> {
        self.read_until(most, now_ns().saturating_sub(WRITING_NS), out)
    }

    /// Hands out what is left once nothing is recorded any more, about `most` events of it.
    ///
    /// # Errors
    /// When a buffer cannot be read.
    pub fn read_rest(
        &mut self,
        most: usize,
        out: &mut impl FnMut(Event),
    ) -> Result<usize, TraceError> {
        self.read_until(most, u64::MAX, out)
    }

    fn read_until(
        &mut self,
        most: usize,
        end_ns: u64,
        out: &mut impl FnMut(Event),
    ) -> Result<usize, TraceError> {
        let end_ns = if self.urgent > 0 { end_ns.min(self.told_ns) } else { end_ns };
        let mut count = 0;
        loop {
            let mut counted = |event| {
                count += 1;
                out(event);
            };
            let Some(at) = merge::oldest(&mut self.queues, end_ns, &mut counted) else {
                return Ok(count);
            };
            if count >= most {
                return Ok(count);
            }
            self.fill(at, end_ns)?;
        }
    }

    /// Reads some pages of a buffer, or learns that it is empty.
    fn fill(&mut self, at: usize, end_ns: u64) -> Result<(), TraceError> {
        // Empty at this moment, if it is: whatever is older was in it.
        let looked_ns = if end_ns == u64::MAX { u64::MAX } else { now_ns() - WRITING_NS };
        if !self.take_pages(at)? {
            self.queues[at].horizon_ns = looked_ns;
        }
        Ok(())
    }

    /// Reads some pages of a buffer; whether there were any.
    fn take_pages(&mut self, at: usize) -> Result<bool, TraceError> {
        let mut has_any = false;
        for _ in 0..PAGES_AT_ONCE {
            let pages = &self.buffers[at].pages;
            let read = rustix::io::retry_on_intr(|| rustix::io::read(pages, &mut self.page[..]));
            let length = match read {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => break,
                Ok(length) => length,
                Err(error) => {
                    let path =
                        format!("trace_pipe_raw of processor {}", self.buffers[at].processor);
                    let source = io::Error::from(error);
                    return Err(TraceError::File { what: "read", path: path.into(), source });
                }
            };
            has_any = true;
            self.take_page(at, length);
        }
        Ok(has_any)
    }

    fn take_page(&mut self, at: usize, length: usize) {
        let queue = &mut self.queues[at];
        let Ok(entries) = Entries::of(&self.layout, &self.page[..length]) else {
            self.broken_pages += 1;
            return;
        };
        self.buffers[at].has_missed |= entries.missed.is_some();
        for entry in entries {
            let Ok(entry) = entry else {
                self.broken_pages += 1;
                return;
            };
            let Some(number) = crate::trace::format::place(entry.event, 0, 2) else { continue };
            let binding = usize::try_from(number).ok().and_then(|it| self.by_number.get(it));
            let Some(Some(binding)) = binding else { continue };
            let thread = self.thread.value(entry.event).unwrap_or(0);
            let mut event = Event {
                time_ns: entry.time_ns,
                thread: u32::try_from(thread & u64::from(u32::MAX)).unwrap_or(0),
                kind: binding.kind,
                known: 0,
                values: [0; FIELDS_MAX],
            };
            for (field_at, field) in binding.fields.iter().enumerate() {
                if let Some(value) = field.as_ref().and_then(|field| field.value(entry.event)) {
                    event.values[field_at] = value;
                    event.known |= 1 << field_at;
                }
            }
            queue.events.push_back(event);
        }
    }

    /// Whether a page said that something was lost in front of it, since this was last asked.
    pub fn has_missed(&mut self) -> bool {
        self.buffers.iter_mut().fold(false, |any, it| std::mem::take(&mut it.has_missed) | any)
    }

    /// Events that were lost since this was last asked.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn lost(&mut self) -> Result<u64, TraceError> {
        let mut lost = 0;
        for buffer in &mut self.buffers {
            let now = self.instances[buffer.instance].lost(buffer.processor)?;
            lost += now.saturating_sub(buffer.lost);
            buffer.lost = now;
        }
        Ok(lost)
    }
}

/// `CLOCK_MONOTONIC`, the clock of the events.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
