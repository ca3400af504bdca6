//! Disks with heads behind one link, and the requests that are divided among them.

use std::collections::{BTreeMap, VecDeque};

use super::heads::Heads;
use super::parameters::{DiskParameters, SERVERS_MAX};
use super::request::{Completion, DiskCounters, Operation, Ticket};
use super::spindle::{Action, Piece, Served, Spindle};
use crate::transfer_ns;

/// A request whose pieces are not all served.
#[derive(Clone, Copy, Debug)]
struct Open {
    pieces_left: usize,
    /// When its pieces so far are complete.
    done_ns: u64,
}

/// A flush that waits for earlier requests.
#[derive(Clone, Copy, Debug)]
struct Flush {
    ticket: Ticket,
    /// When those that are known are complete.
    after_ns: u64,
}

/// The state of all disks and their link.
#[derive(Clone, Debug)]
pub(super) struct Spindles {
    spindles: Vec<Spindle>,
    link_free_at_ns: u64,
    open: BTreeMap<Ticket, Open>,
    flushes: VecDeque<Flush>,
    /// When all requests whose end is known are complete.
    all_done_ns: u64,
    /// Found since the last look, in the order in which they were certain.
    completed: Vec<Completion>,
}

impl Spindles {
    pub(super) fn new(disk: &DiskParameters, heads: Heads) -> Spindles {
        let one = Spindle::new(heads, disk.server_bytes_per_second, disk.command_ns);
        Spindles {
            spindles: vec![one; disk.servers.clamp(1, SERVERS_MAX)],
            link_free_at_ns: 0,
            open: BTreeMap::new(),
            flushes: VecDeque::new(),
            all_done_ns: 0,
            completed: Vec::new(),
        }
    }

    pub(super) fn arrive(
        &mut self,
        disk: &DiskParameters,
        counters: &mut DiskCounters,
        now_ns: u64,
        ticket: Ticket,
        operation: Operation,
    ) {
        let (action, offset, bytes) = match operation {
            Operation::Read { offset, bytes } => (Action::Read, offset, bytes),
            Operation::Write { offset, bytes } => (Action::Write, offset, bytes),
            Operation::Discard { offset } => {
                let offset_there = disk.place_on_server(offset);
                let piece =
                    Piece { ticket, action: Action::Discard, offset: offset_there, bytes: 0 };
                self.spindle_for(disk, offset).arrive(now_ns, piece);
                self.open.insert(ticket, Open { pieces_left: 1, done_ns: now_ns });
                return;
            }
            Operation::Flush => {
                self.flushes.push_back(Flush { ticket, after_ns: self.all_done_ns.max(now_ns) });
                return self.finish_flushes(disk);
            }
        };
        let (mut at, end, mut pieces_left) = (offset, offset.saturating_add(bytes), 0);
        while at < end {
            let bytes = disk.piece_bytes(at, end - at);
            let piece = Piece { ticket, action, offset: disk.place_on_server(at), bytes };
            self.spindle_for(disk, at).arrive(now_ns, piece);
            counters.pieces += 1;
            counters.bytes += bytes;
            pieces_left += 1;
            at += bytes;
        }
        self.open.insert(ticket, Open { pieces_left, done_ns: now_ns });
        if pieces_left == 0 {
            self.finish(disk, ticket);
        }
    }

    /// From when on [`advance`](Self::advance) finds something.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.spindles.iter().filter_map(Spindle::next_ns).min()
    }

    /// Serves all pieces whose turn is certain at `until_ns`.
    pub(super) fn advance(
        &mut self,
        disk: &DiskParameters,
        counters: &mut DiskCounters,
        until_ns: u64,
    ) {
        loop {
            let waiting = self.spindles.iter_mut().filter_map(|one| Some((one.next_ns()?, one)));
            let first = waiting.min_by_key(|(next_ns, _)| *next_ns);
            let Some((_, spindle)) = first.filter(|(next_ns, _)| *next_ns <= until_ns) else {
                return;
            };
            let Some(served) = spindle.serve() else { return };
            self.count(disk, counters, &served);
        }
    }

    /// The completions that were found since the last call.
    pub(super) fn completed(&mut self) -> Vec<Completion> {
        std::mem::take(&mut self.completed)
    }

    fn count(&mut self, disk: &DiskParameters, counters: &mut DiskCounters, served: &Served) {
        let piece = served.piece;
        counters.busy_ns += served.busy_ns;
        let mut done_ns = served.done_ns;
        if piece.action != Action::Discard {
            counters.seeks += u64::from(served.is_positioned);
            // The link carries bytes in the order in which disks begin, and only those that a disk
            // has.
            let link_ns = transfer_ns(piece.bytes, disk.link_bytes_per_second);
            self.link_free_at_ns = self.link_free_at_ns.max(served.began_ns) + link_ns;
            done_ns = done_ns.max(self.link_free_at_ns).max(served.first_ns + link_ns);
        }
        let Some(open) = self.open.get_mut(&piece.ticket) else { return };
        open.done_ns = open.done_ns.max(done_ns);
        open.pieces_left -= 1;
        if open.pieces_left == 0 {
            self.finish(disk, piece.ticket);
        }
    }

    fn finish(&mut self, disk: &DiskParameters, ticket: Ticket) {
        let Some(Open { done_ns, .. }) = self.open.remove(&ticket) else { return };
        self.completed.push(Completion { ticket, done_ns });
        self.all_done_ns = self.all_done_ns.max(done_ns);
        for flush in self.flushes.iter_mut().filter(|flush| flush.ticket > ticket) {
            flush.after_ns = flush.after_ns.max(done_ns);
        }
        self.finish_flushes(disk);
    }

    fn finish_flushes(&mut self, disk: &DiskParameters) {
        let first_open = self.open.keys().next().copied();
        let is_due = |flush: &Flush| first_open.is_none_or(|open| open > flush.ticket);
        while let Some(Flush { ticket, after_ns }) = self.flushes.pop_front_if(|it| is_due(it)) {
            self.completed.push(Completion { ticket, done_ns: after_ns + disk.command_ns });
        }
    }

    /// The disk of a byte; where any will do, the least busy one.
    fn spindle_for(&mut self, disk: &DiskParameters, at: u64) -> &mut Spindle {
        let number = disk.striped_server(at).unwrap_or_else(|| {
            let all = self.spindles.iter().enumerate();
            all.min_by_key(|(_, one)| one.load()).map_or(0, |(number, _)| number)
        });
        &mut self.spindles[number]
    }
}
