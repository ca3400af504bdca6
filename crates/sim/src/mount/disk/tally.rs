//! What is counted of a disk's requests beside the model's own counters.

use model::disk::Operation;

/// A later answer is counted as late.
pub(super) const LATE_NS: u64 = 1_000_000;

/// The counts so far. Times are the model's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Sum of the requests' times from call to completion.
    pub(super) response_ns: u64,
    /// Answers later than [`LATE_NS`], and their total delay.
    pub(super) late: u64,
    pub(super) late_ns: u64,
    first_ns: Option<u64>,
    /// Requests whose completion is not known.
    open: usize,
    /// Time with a request in flight, before the current stretch of such time.
    busy_before_ns: u64,
    busy_since_ns: u64,
    busy_until_ns: u64,
}

impl Tally {
    /// A request arrives. Requests come in the order of their arrival.
    pub(super) fn arrived(&mut self, operation: Operation, now_ns: u64) {
        match operation {
            Operation::Read { bytes, .. } => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Operation::Write { bytes, .. } => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            Operation::Flush | Operation::Discard { .. } => {}
        }
        if self.open == 0 && now_ns > self.busy_until_ns {
            self.busy_before_ns = self.busy_ns();
            (self.busy_since_ns, self.busy_until_ns) = (now_ns, now_ns);
        }
        self.first_ns.get_or_insert(now_ns);
        self.open += 1;
    }

    /// The completion of a request is known.
    pub(super) fn completed(&mut self, arrived_ns: u64, done_ns: u64) {
        self.open -= 1;
        self.response_ns += done_ns.saturating_sub(arrived_ns);
        self.busy_until_ns = self.busy_until_ns.max(done_ns);
    }

    /// An answer was sent so long after its time.
    pub(super) fn answered(&mut self, late_ns: u64) {
        if late_ns > LATE_NS {
            self.late += 1;
            self.late_ns += late_ns;
        }
    }

    /// Time with at least one request in flight, up to the last completion that is known.
    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_before_ns + (self.busy_until_ns - self.busy_since_ns)
    }

    /// From the first request to the last completion that is known.
    pub(super) fn span_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first_ns| self.busy_until_ns.saturating_sub(first_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that overlap and end out of order, a pause, and one more.
    #[test]
    fn time_in_flight_counts_once() {
        let mut tally = Tally::default();
        let read = Operation::Read { offset: 0, bytes: 10 };
        tally.arrived(read, 1000);
        tally.arrived(read, 1010);
        tally.completed(1010, 1100);
        assert_eq!(tally.busy_ns(), 100, "the other one is not known");
        tally.arrived(Operation::Flush, 1150);
        tally.completed(1000, 1200);
        tally.completed(1150, 1200);
        tally.arrived(Operation::Write { offset: 0, bytes: 3 }, 1500);
        tally.completed(1500, 1550);
        assert_eq!((tally.busy_ns(), tally.span_ns()), (250, 550));
        assert_eq!(tally.response_ns, 90 + 200 + 50 + 50);
        assert_eq!((tally.reads, tally.read_bytes), (2, 20));
        assert_eq!((tally.writes, tally.written_bytes), (1, 3));
    }
}
