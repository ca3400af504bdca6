//! One disk with heads at work: requests that wait, the arm, and the read-on cache.
//!
//! The drive handles commands one after the other, while the arm works on an earlier request. When
//! the arm is free, the drive takes the request whose first byte it reaches first (shortest
//! positioning time first), among as many as its queue holds, and none is passed over for long.
//!
//! After a read the heads follow the tracks on into the cache, up to a limit. A read of bytes that
//! passed meanwhile costs no positioning. A read that begins a little further waits until the heads
//! get there, which costs the gap's bytes, unless a jump is shorter: a gap of more than a turn is
//! never read through.
//!
//! Simplified: the cache holds one stretch, so a second stream ends the first one. Writes go to the
//! platters before they are complete: the write cache of a drive is not modelled.

use super::heads::{Heads, Platters};
use super::request::Ticket;

/// What a piece of a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    /// A command only.
    Discard,
}

/// A part of a request, on one disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) ticket: Ticket,
    pub(super) action: Action,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    piece: Piece,
    arrived_ns: u64,
    /// When the drive has handled its command. In the order of arrival.
    ready_ns: u64,
}

/// The way of the heads: from a position at a time along the tracks, and then they stand.
#[derive(Clone, Copy, Debug)]
struct Way {
    since_ns: u64,
    from_turns: f64,
    /// The cache has the bytes from here on that have passed.
    begin: u64,
    /// The heads read on until here.
    limit: u64,
}

/// What serving a piece would take.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// When its first byte passes, or it begins to come from the cache.
    first_ns: u64,
    /// When its last byte has passed.
    done_ns: u64,
    /// Whether the arm moved, or a turn was waited for.
    is_positioned: bool,
    way: Way,
}

/// What a piece took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) piece: Piece,
    pub(super) began_ns: u64,
    pub(super) first_ns: u64,
    pub(super) done_ns: u64,
    pub(super) busy_ns: u64,
    pub(super) is_positioned: bool,
}

/// The state of a disk with heads.
#[derive(Clone, Debug)]
pub(super) struct Spindle {
    platters: Platters,
    command_ns: u64,
    /// When all commands so far are handled.
    commands_done_ns: u64,
    /// When the arm has served all pieces so far.
    free_at_ns: u64,
    way: Way,
    waiting: Vec<Waiting>,
}

/// A request that waits for longer than this goes before all younger ones. Assumed: makers do not
/// publish their rule.
const PASSED_OVER_NS_MAX: u64 = 1_000_000_000;

impl Spindle {
    pub(super) fn new(heads: Heads, outer_bytes_per_second: u64, command_ns: u64) -> Spindle {
        Spindle {
            platters: Platters::new(heads, outer_bytes_per_second),
            command_ns,
            commands_done_ns: 0,
            free_at_ns: 0,
            way: Way { since_ns: 0, from_turns: 0.0, begin: 0, limit: 0 },
            waiting: Vec::new(),
        }
    }

    pub(super) fn arrive(&mut self, now_ns: u64, piece: Piece) {
        self.commands_done_ns = self.commands_done_ns.max(now_ns) + self.command_ns;
        let ready_ns = self.commands_done_ns;
        self.waiting.push(Waiting { piece, arrived_ns: now_ns, ready_ns });
    }

    /// Pieces that wait, and when the arm is free: the least busy disk has the least.
    pub(super) fn load(&self) -> (usize, u64) {
        (self.waiting.len(), self.free_at_ns)
    }

    /// From when on the next choice is certain: what arrives later is not ready in time for it.
    pub(super) fn next_ns(&self) -> Option<u64> {
        Some(self.begin_ns()?.saturating_sub(self.command_ns))
    }

    fn begin_ns(&self) -> Option<u64> {
        Some(self.waiting.first()?.ready_ns.max(self.free_at_ns))
    }

    /// Serves the next piece.
    pub(super) fn serve(&mut self) -> Option<Served> {
        let began_ns = self.begin_ns()?;
        let (number, service) = self.choose(began_ns)?;
        let Waiting { piece, arrived_ns, .. } = self.waiting.remove(number);
        let busy_ns = service.done_ns - arrived_ns.max(self.free_at_ns);
        self.way = service.way;
        self.free_at_ns = service.done_ns;
        let Service { first_ns, done_ns, is_positioned, .. } = service;
        Some(Served { piece, began_ns, first_ns, done_ns, busy_ns, is_positioned })
    }

    /// The piece to serve next, by its number among the waiting ones.
    fn choose(&self, began_ns: u64) -> Option<(usize, Service)> {
        let ready = self.waiting.iter().take_while(|waiting| waiting.ready_ns <= began_ns);
        let queue = ready.take(self.platters.heads().queue.max(1)).enumerate();
        let waits = queue.map(|(number, waiting)| {
            let service = self.service(&waiting.piece, began_ns);
            let is_old = began_ns.saturating_sub(waiting.arrived_ns) > PASSED_OVER_NS_MAX;
            let rank = if is_old { (0, 0) } else { (1, service.first_ns) };
            (rank, number, service)
        });
        waits.min_by_key(|(rank, number, _)| (*rank, *number)).map(|(_, it, service)| (it, service))
    }

    fn service(&self, piece: &Piece, now_ns: u64) -> Service {
        let goes_on = match piece.action {
            Action::Read => self.read_on(piece, now_ns),
            Action::Write => self.write_on(piece, now_ns),
            Action::Discard => Some(Service {
                first_ns: now_ns,
                done_ns: now_ns,
                is_positioned: false,
                way: self.way,
            }),
        };
        match goes_on {
            Some(service) if service.first_ns <= now_ns => service,
            Some(service) => {
                let jump = self.jump(piece, now_ns);
                if service.first_ns <= jump.first_ns { service } else { jump }
            }
            None => self.jump(piece, now_ns),
        }
    }

    /// When the heads get to a position on their way; 0 for what is behind its beginning.
    fn passes_ns(&self, turns: f64) -> u64 {
        if turns < self.way.from_turns {
            return 0;
        }
        self.way.since_ns + self.platters.pass_ns(turns - self.way.from_turns)
    }

    /// A read that begins in the cache or ahead of the heads.
    fn read_on(&self, piece: &Piece, now_ns: u64) -> Option<Service> {
        let way = self.way;
        if !(way.begin..=way.limit).contains(&piece.offset) {
            return None;
        }
        let end = piece.offset.saturating_add(piece.bytes);
        let read_on_bytes = self.platters.heads().read_on_bytes;
        let [first, last, stop] =
            [piece.offset, end, way.limit].map(|byte| self.platters.turns(byte));
        let begin = way.begin.max(end.saturating_sub(read_on_bytes)).min(way.limit);
        let mut next =
            Way { begin, limit: way.limit.max(end.saturating_add(read_on_bytes)), ..way };
        if now_ns > self.passes_ns(stop) && next.limit > way.limit {
            // The heads have stopped, so that a turn brings them to where they go on.
            next.since_ns = self.platters.under_head_ns(stop, now_ns);
            next.from_turns = stop;
        }
        if end > way.limit && next.since_ns > now_ns {
            let first_ns = next.since_ns;
            let done_ns = first_ns + self.platters.pass_ns(last - stop);
            return Some(Service { first_ns, done_ns, is_positioned: true, way: next });
        }
        let [first_ns, done_ns] = [first, last].map(|turns| self.passes_ns(turns).max(now_ns));
        Some(Service { first_ns, done_ns, is_positioned: false, way: next })
    }

    /// A write that the heads come to on their way.
    fn write_on(&self, piece: &Piece, now_ns: u64) -> Option<Service> {
        let way = self.way;
        let first_ns = self.passes_ns(self.platters.turns(piece.offset));
        let is_ahead = (way.begin..=way.limit).contains(&piece.offset) && first_ns >= now_ns;
        is_ahead.then(|| self.pass(piece, first_ns, false))
    }

    /// The arm goes to another track, and the platters turn to the first byte.
    fn jump(&self, piece: &Piece, now_ns: u64) -> Service {
        let stop = self.platters.turns(self.way.limit);
        let gone = self.platters.turns_in(now_ns.saturating_sub(self.way.since_ns));
        let at = (self.way.from_turns + gone).min(stop);
        let target = self.platters.turns(piece.offset);
        let there_ns = now_ns + self.platters.seek_ns(at, target);
        self.pass(piece, self.platters.under_head_ns(target, there_ns), true)
    }

    /// All bytes of a piece pass under the heads, from `first_ns` on.
    fn pass(&self, piece: &Piece, first_ns: u64, is_positioned: bool) -> Service {
        let end = piece.offset.saturating_add(piece.bytes);
        let [from_turns, last] = [piece.offset, end].map(|byte| self.platters.turns(byte));
        let done_ns = first_ns + self.platters.pass_ns(last - from_turns);
        let way = if piece.action == Action::Read {
            let limit = end.saturating_add(self.platters.heads().read_on_bytes);
            Way { since_ns: first_ns, from_turns, begin: piece.offset, limit }
        } else {
            Way { since_ns: done_ns, from_turns: last, begin: end, limit: end }
        };
        Service { first_ns, done_ns, is_positioned, way }
    }
}
