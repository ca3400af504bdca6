//! Files that are opened while they are recorded: looked up as soon as their opening is read, and
//! believed once it is known that they were not closed before that.

use std::collections::HashMap;

use crate::trace::Event;

use super::calls::{CALLS, Call, EventKind};
use super::files::Looked;
use super::threads::Threads;
use crate::operation::{Known, Unknown};

/// More are not kept until their turn comes.
const LOOKUPS_MAX: usize = 1 << 14;

/// An opening, by who ended it when.
type Opening = (u32, u64);

/// What became of openings whose turn has not come, or that may still be in doubt.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    found: HashMap<Opening, Known<Looked>>,
    /// The opening that a descriptor is from.
    latest: HashMap<(u32, u32), (Opening, u64)>,
}

impl Lookups {
    /// Looks at what an event opened, closed or started, before anything is made of it.
    pub(super) fn look(&mut self, event: &Event, threads: &mut Threads) {
        match EventKind::of(event.kind) {
            EventKind::Enter(row) => self.enter(row, event, threads),
            EventKind::Exit(row) => self.exit(row, event, threads),
            EventKind::New => started(event, threads),
            _ => {}
        }
    }

    fn enter(&mut self, row: usize, event: &Event, threads: &mut Threads) {
        let first = event.value(0).unwrap_or(0);
        match CALLS[row].call {
            Call::Close => self.closed(event, first, first, threads),
            Call::CloseRange => {
                let last = event.value(1).unwrap_or(first);
                self.closed(event, first, last, threads);
            }
            Call::DuplicateTo => {
                let over = event.value(1).unwrap_or(0);
                self.closed(event, over, over, threads);
            }
            _ => {}
        }
    }

    /// What was looked up behind this moment is something else.
    fn closed(&mut self, event: &Event, first: u64, last: u64, threads: &mut Threads) {
        let Some(process) = threads.process(event.thread) else { return };
        let is_closed = |(of, descriptor): &(u32, u32)| {
            *of == process && (first..=last).contains(&u64::from(*descriptor))
        };
        let found = &mut self.found;
        let mut doubt = |(opening, looked_ns): &(Opening, u64)| {
            if event.time_ns < *looked_ns {
                found.insert(*opening, Err(Unknown::Closed));
            }
        };
        if first == last {
            let descriptor = u32::try_from(first).unwrap_or(u32::MAX);
            if let Some(one) = self.latest.remove(&(process, descriptor)) {
                doubt(&one);
            }
            return;
        }
        self.latest.retain(|descriptor, one| {
            let is_closed = is_closed(descriptor);
            if is_closed {
                doubt(one);
            }
            !is_closed
        });
    }

    fn exit(&mut self, row: usize, event: &Event, threads: &mut Threads) {
        // A shell opens a file, gives it the number that it wants, and closes the first one at
        // once: the second one is there for longer.
        let call = CALLS[row].call;
        if !call.opens() && !matches!(call, Call::Duplicate | Call::DuplicateTo) {
            return;
        }
        let descriptor = event.value(0).and_then(|it| u32::try_from(it.cast_signed()).ok());
        let process = threads.process(event.thread);
        let (Some(descriptor), Some(process)) = (descriptor, process) else { return };
        if self.found.len() >= LOOKUPS_MAX {
            return;
        }
        let opening = (event.thread, event.time_ns);
        let looked = Looked::at(process, descriptor);
        let at_ns = looked.as_ref().map_or(0, |looked| looked.at_ns);
        self.latest.insert((process, descriptor), (opening, at_ns));
        self.found.insert(opening, looked);
    }

    /// What an opening led to, once its turn has come.
    pub(super) fn take(&mut self, thread: u32, end_ns: u64) -> Known<Looked> {
        self.found.remove(&(thread, end_ns)).unwrap_or(Err(Unknown::Closed))
    }

    /// Those that can no more be in doubt need not be kept.
    pub(super) fn forget_until(&mut self, horizon_ns: u64) {
        self.latest.retain(|_, (_, looked_ns)| *looked_ns > horizon_ns);
        self.found.retain(|(_, end_ns), _| *end_ns > horizon_ns.saturating_sub(10_000_000_000));
    }
}

/// A new thread belongs to the process of whoever started it, unless it is a process itself.
fn started(event: &Event, threads: &mut Threads) {
    let Some(new) = event.value(0).and_then(|it| u32::try_from(it).ok()) else { return };
    let is_thread = event.value(1).is_some_and(|flags| flags & CLONE_THREAD != 0);
    let process = if is_thread { threads.process(event.thread) } else { Some(new) };
    if let Some(process) = process {
        threads.started(new, process);
    }
}

/// clone(2).
pub(super) const CLONE_THREAD: u64 = 0x1_0000;
