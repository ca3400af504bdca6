//! What a disk is asked for, what it answers, and what it counts.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read {
        offset: u64,
        bytes: u64,
    },
    Write {
        offset: u64,
        bytes: u64,
    },
    /// A command, after all earlier requests.
    Flush,
    /// A command, whatever its size.
    Discard {
        offset: u64,
    },
}

/// A request that a disk has accepted. Tickets are in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(super) u64);

/// When a request is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub ticket: Ticket,
    pub done_ns: u64,
}

/// Counters so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests as they came.
    pub requests: u64,
    /// Pieces into which they were cut.
    pub pieces: u64,
    /// Pieces that needed a seek, or a wait for the platters to turn.
    pub seeks: u64,
    pub bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    /// Sum of the times in which servers were busy.
    pub busy_ns: u64,
}
