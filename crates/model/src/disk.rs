//! A timing model of a disk, or of an array of disks.
//!
//! A disk is a number of servers behind a link. A request is cut at the largest request size and at
//! the borders of stripes. Each piece goes to one server and waits until that is free. It pays for
//! the command, for getting to its first byte ([`Positioning`]), and for its bytes. Then its bytes
//! pass the link. A single spindle is one server, a flash disk has as many servers as it serves
//! requests at once, an array has one for each disk.
//!
//! A disk without heads serves in the order of arrival, so each completion is known at once. A disk
//! with heads chooses among the requests that wait: a completion is known when the arm begins with
//! it. So a caller hands over requests ([`DiskModel::arrive`]), asks again at
//! [`DiskModel::next_ns`], and takes the completions ([`DiskModel::advance`]).
//!
//! Not here: merging and scheduling, which the kernel does, and the kernel's read-ahead, which is
//! in [`read_ahead`](super::read_ahead).
//!
//! - `parameters`: presets and changes to them.
//! - `request`: what is asked for, and the answers.
//! - `servers`: disks whose requests cost the same in any place.
//! - `heads`: arm and platters; `spindle`: one such disk at work; `spindles`: several.
//! - `reads`: the time of a list of reads.

mod heads;
mod parameters;
mod reads;
mod request;
mod servers;
mod spindle;
mod spindles;

pub use heads::{Heads, SeekCurve};
pub use parameters::{DiskChanges, DiskParameters, PRESETS, Placement, Positioning, SERVERS_MAX};
pub use reads::time_of_reads;
pub use request::{Completion, DiskCounters, Operation, Ticket};
use servers::Servers;
use spindles::Spindles;

/// The state of a disk at a moment.
#[derive(Clone, Debug)]
pub struct DiskModel {
    parameters: DiskParameters,
    mechanism: Mechanism,
    tickets: u64,
    counters: DiskCounters,
    /// Known completions that the caller has not taken.
    completed: Vec<Completion>,
}

#[derive(Clone, Debug)]
enum Mechanism {
    Servers(Servers),
    Spindles(Spindles),
}

impl DiskModel {
    /// An idle disk; an arm is at the first byte.
    pub fn new(parameters: DiskParameters) -> DiskModel {
        let mechanism = match parameters.positioning {
            Positioning::Constant { ns } => Mechanism::Servers(Servers::new(&parameters, ns)),
            Positioning::Heads(heads) => Mechanism::Spindles(Spindles::new(&parameters, heads)),
        };
        let counters = DiskCounters::default();
        DiskModel { parameters, mechanism, tickets: 0, counters, completed: Vec::new() }
    }

    /// Accepts a request that arrives at `now_ns`. [`advance`](Self::advance) returns when it is
    /// complete. Requests have to come in the order of their arrival.
    pub fn arrive(&mut self, now_ns: u64, operation: Operation) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        match operation {
            Operation::Read { .. } | Operation::Write { .. } => self.counters.requests += 1,
            Operation::Flush => self.counters.flushes += 1,
            Operation::Discard { .. } => self.counters.discards += 1,
        }
        match &mut self.mechanism {
            Mechanism::Servers(servers) => {
                let done_ns =
                    servers.serve(&self.parameters, &mut self.counters, now_ns, operation);
                self.completed.push(Completion { ticket, done_ns });
            }
            Mechanism::Spindles(spindles) => {
                spindles.arrive(&self.parameters, &mut self.counters, now_ns, ticket, operation);
                self.completed.extend(spindles.completed());
            }
        }
        ticket
    }

    /// From when on [`advance`](Self::advance) finds more; 0 if it does at once, `None` if nothing
    /// waits.
    pub fn next_ns(&self) -> Option<u64> {
        match &self.mechanism {
            _ if !self.completed.is_empty() => Some(0),
            Mechanism::Servers(_) => None,
            Mechanism::Spindles(spindles) => spindles.next_ns(),
        }
    }

    /// Lets time pass until `until_ns`, and returns the completions that became certain. Their
    /// times may be later than `until_ns`. No later request may arrive before `until_ns`.
    pub fn advance(&mut self, until_ns: u64) -> Vec<Completion> {
        if let Mechanism::Spindles(spindles) = &mut self.mechanism {
            spindles.advance(&self.parameters, &mut self.counters, until_ns);
            self.completed.extend(spindles.completed());
        }
        std::mem::take(&mut self.completed)
    }

    /// When a read that arrives at `now_ns` is complete, if no other request follows that the disk
    /// could choose before it.
    pub fn submit(&mut self, now_ns: u64, offset: u64, bytes: u64) -> u64 {
        self.settle(now_ns, Operation::Read { offset, bytes })
    }

    /// The same for any request. Completions of others remain for [`advance`](Self::advance).
    pub fn settle(&mut self, now_ns: u64, operation: Operation) -> u64 {
        let ticket = self.arrive(now_ns, operation);
        let (own, others): (Vec<_>, Vec<_>) =
            self.advance(u64::MAX).into_iter().partition(|it| it.ticket == ticket);
        self.completed = others;
        own.first().map_or(now_ns, |completion| completion.done_ns)
    }

    /// The counters so far.
    pub fn counters(&self) -> DiskCounters {
        self.counters
    }

    /// The parameters of the disk.
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: DiskChanges) -> DiskModel {
        DiskModel::new(DiskParameters::sas15k().with(&changes))
    }

    #[test]
    fn a_given_service_time_is_all_that_a_request_takes() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(5_500_000),
            servers: Some(2),
            ..DiskChanges::default()
        });
        assert_eq!(disk.submit(0, 0, 256 << 10), 5_500_000);
        assert_eq!(disk.submit(0, 1 << 30, 4096), 5_500_000, "far away, small, at the same time");
        assert_eq!(disk.submit(0, 4096, 4096), 11_000_000, "both servers have work");
    }

    #[test]
    fn the_link_limits_what_all_requests_move() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(1000),
            servers: Some(64),
            bytes_per_second: Some(1_000_000_000),
            ..DiskChanges::default()
        });
        let ends: Vec<u64> = (0..4).map(|number| disk.submit(0, number << 20, 1_000_000)).collect();
        assert_eq!(ends, [1_000_000, 2_000_000, 3_000_000, 4_000_000]);
    }

    #[test]
    fn a_seek_is_paid_where_a_stream_breaks_off() {
        let seek_ns = Some(4_000_000);
        for servers in [1, 3] {
            let mut disk =
                changed(DiskChanges { seek_ns, servers: Some(servers), ..DiskChanges::default() });
            let mut now_ns = 0;
            for block in 0..10 {
                now_ns = disk.submit(now_ns, block << 16, 1 << 16);
            }
            assert_eq!(disk.counters().seeks, 1, "{servers} servers, one stream");
            disk.submit(now_ns, 1 << 40, 1 << 16);
            assert_eq!(disk.counters().seeks, 2);
        }
    }

    #[test]
    fn a_flush_is_complete_after_all_that_came_before() {
        let mut disk = DiskModel::new(DiskParameters::ssd_sata());
        let last_ns = (0..100).map(|block| disk.submit(0, block << 13, 8192)).max();
        let command_ns = disk.parameters().command_ns;
        assert_eq!(Some(disk.settle(1, Operation::Flush) - command_ns), last_ns);
        assert_eq!(disk.counters().flushes, 1);
    }

    #[test]
    fn a_large_request_is_cut_and_each_piece_pays() {
        let mut disk = changed(DiskChanges {
            service_ns: Some(1_000_000),
            request_bytes_max: Some(64 << 10),
            servers: Some(1),
            ..DiskChanges::default()
        });
        assert_eq!(disk.submit(0, 0, 256 << 10), 4_000_000);
        assert_eq!(disk.counters().pieces, 4);
    }
}
