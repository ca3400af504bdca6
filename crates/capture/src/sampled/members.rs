//! The sampled processes, and the sum of their counters.
//!
//! When a parent waits for a child, the kernel adds the child's counters to the parent's
//! (`wait4(2)`, kernel/exit.c), so that the sum loses nothing. A process that ends without that
//! keeps the counters of its last sample.

use std::collections::{BTreeMap, BTreeSet};

use machine::processes::{Process, ProcessBytes, ProcessTimes, children};

use super::Totals;

/// More processes are not gone through.
const PROCESSES_MAX: usize = 4096;

impl Totals {
    /// Of a process, if this one may look.
    fn of(process: u32, times: &ProcessTimes) -> Option<Totals> {
        let bytes = ProcessBytes::of(process)?;
        Some(Totals {
            read_calls: bytes.read_calls,
            read_bytes: bytes.read_bytes,
            write_calls: bytes.write_calls,
            written_bytes: bytes.written_bytes,
            device_read_bytes: bytes.device_read_bytes,
            device_written_bytes: bytes.device_written_bytes,
            cancelled_bytes: bytes.cancelled_bytes,
            major_faults: times.major_faults,
        })
    }

    fn each(self, other: Totals, of: impl Fn(u64, u64) -> u64) -> Totals {
        Totals {
            read_calls: of(self.read_calls, other.read_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            write_calls: of(self.write_calls, other.write_calls),
            written_bytes: of(self.written_bytes, other.written_bytes),
            device_read_bytes: of(self.device_read_bytes, other.device_read_bytes),
            device_written_bytes: of(self.device_written_bytes, other.device_written_bytes),
            cancelled_bytes: of(self.cancelled_bytes, other.cancelled_bytes),
            major_faults: of(self.major_faults, other.major_faults),
        }
    }

    /// Both together.
    pub(super) fn and(self, other: Totals) -> Totals {
        self.each(other, u64::saturating_add)
    }

    /// Without the other.
    pub(super) fn less(self, other: Totals) -> Totals {
        self.each(other, u64::saturating_sub)
    }

    fn holds(self, other: Totals) -> bool {
        self.and(Totals::default()).each(other, u64::max) == self
    }
}

/// A process as it was at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) start_ticks: u64,
    /// Whose child it was when it was met.
    pub(super) parent: Option<u32>,
    pub(super) totals: Totals,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<u32, Member>,
    /// Counters of ended processes that no parent waited for.
    ended: Totals,
    /// Counters of the first processes at the first sample.
    before: Totals,
    has_begun: bool,
    /// A process that this one waited for, and what became known of it then.
    waited_for: Option<(u32, Totals)>,
    /// How many were met.
    pub(super) met: u64,
    /// Processes of other users.
    pub(super) refused: BTreeSet<u32>,
}

impl Members {
    /// Looks at these processes, all that they have started, and all that were met before; the
    /// numbers of those that run.
    pub(super) fn look(&mut self, roots: &[u32]) -> Vec<u32> {
        let mut now = BTreeMap::new();
        let mut running = Vec::new();
        // Of what was met before and is no child of these any more it has to be the same process.
        let known = self.all.iter().map(|(pid, it)| (*pid, it.parent, Some(it.start_ticks)));
        let mut left: Vec<(u32, Option<u32>, Option<u64>)> = known.collect();
        left.extend(roots.iter().map(|pid| (*pid, None, None)));
        while let Some((pid, parent, expected)) = left.pop() {
            if now.contains_key(&pid) || now.len() >= PROCESSES_MAX {
                continue;
            }
            let Some(times) = ProcessTimes::of(pid) else { continue };
            let start_ticks = times.start_ticks;
            if expected.is_some_and(|expected| expected != start_ticks) {
                continue;
            }
            left.extend(children(pid).into_iter().map(|child| (child, Some(pid), None)));
            let is_same = |it: &&Member| it.start_ticks == start_ticks;
            let last = self.all.get(&pid).filter(is_same).map(|it| it.totals);
            // Of one that has ended and was not waited for only root may see the counts.
            let totals = Totals::of(pid, &times).or(last.filter(|_| times.has_ended));
            let Some(totals) = totals else {
                if (Process { pid, start_ticks }).runs() {
                    self.refused.insert(pid);
                }
                continue;
            };
            if !times.has_ended {
                running.push(pid);
            }
            now.insert(pid, Member { start_ticks, parent, totals });
        }
        self.take(now);
        running
    }

    /// Waits for a child of this process by `wait`: what it and those that it waited for have done
    /// up to their ends is added to the counts of this process then, and is in no doubt.
    pub(super) fn wait_for<T>(&mut self, child: u32, wait: impl FnOnce() -> T) -> T {
        let own = || {
            let process = std::process::id();
            Totals::of(process, &ProcessTimes::of(process)?)
        };
        // Asking is read as well.
        let (first, before) = (own(), own());
        let answer = wait();
        if let (Some(first), Some(before), Some(after)) = (first, before, own())
            && let Some(member) = self.all.get_mut(&child)
        {
            let counted = after.less(before).less(before.less(first));
            self.waited_for = Some((child, counted.less(member.totals)));
            member.totals = counted;
        }
        answer
    }

    /// What was found at a look.
    pub(super) fn take(&mut self, now: BTreeMap<u32, Member>) {
        let mut room: BTreeMap<u32, Totals> = BTreeMap::new();
        for (pid, member) in &now {
            match self.all.get(pid).filter(|it| it.start_ticks == member.start_ticks) {
                Some(before) => drop(room.insert(*pid, member.totals.less(before.totals))),
                None => self.met += 1,
            }
        }
        room.extend(self.waited_for.take());
        if !self.has_begun {
            self.has_begun = true;
            self.before = now.values().map(|it| it.totals).fold(Totals::default(), Totals::and);
        }
        for (pid, member) in &self.all {
            if now.get(pid).is_some_and(|it| it.start_ticks == member.start_ticks) {
                continue;
            }
            match member.parent.and_then(|parent| room.get_mut(&parent)) {
                // The parent that waited for it has its counters.
                Some(room) if room.holds(member.totals) => *room = room.less(member.totals),
                _ => self.ended = self.ended.and(member.totals),
            }
        }
        self.all = now;
    }

    /// What all of them have done since the first look.
    pub(super) fn totals(&self) -> Totals {
        let now = self.all.values().map(|it| it.totals).fold(self.ended, Totals::and);
        now.less(self.before)
    }
}
