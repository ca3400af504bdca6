//! Reads that wait for the heads, in the order in which these come past.
//!
//! On each device the reads are taken from the lowest address to the highest, then again from the
//! lowest (C-LOOK): a read that comes in behind the heads waits for their next sweep, and none
//! waits longer than one. Devices take turns.

use std::collections::BTreeMap;

use tree::Entry;

use super::look::JUMP_BYTES;

/// A stretch of a file to be read.
#[derive(Debug)]
pub(super) struct WaitingRead {
    pub(super) entry: Entry,
    /// Number of its batch.
    pub(super) ticket: u64,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u64,
}

/// The waiting reads of all devices.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    /// The lane that is next.
    turn: usize,
    /// Reads so far: tells those of one address apart.
    numbered: u64,
    waiting: usize,
    jumps: u64,
}

#[derive(Debug)]
struct Lane<T> {
    device: u64,
    /// By address and number, with their lengths.
    reads: BTreeMap<(u64, u64), (u64, T)>,
    /// Where the heads are: behind the read that was taken last.
    heads_at: (u64, u64),
    /// Where that read ends.
    ended_at: u64,
}

impl<T> Default for Lanes<T> {
    fn default() -> Lanes<T> {
        Lanes { lanes: Vec::new(), turn: 0, numbered: 0, waiting: 0, jumps: 0 }
    }
}

impl<T> Lanes<T> {
    /// Adds a read of so many bytes at an address of a device.
    pub(super) fn insert(&mut self, device: u64, address: u64, bytes: u64, read: T) {
        let known = self.lanes.iter().position(|lane| lane.device == device);
        let place = known.unwrap_or_else(|| {
            let reads = BTreeMap::new();
            self.lanes.push(Lane { device, reads, heads_at: (0, 0), ended_at: 0 });
            self.lanes.len() - 1
        });
        self.numbered += 1;
        self.waiting += 1;
        self.lanes[place].reads.insert((address, self.numbered), (bytes, read));
    }

    /// The read that the heads come to next.
    pub(super) fn take(&mut self) -> Option<T> {
        for _ in 0..self.lanes.len() {
            let place = self.turn % self.lanes.len();
            self.turn = place + 1;
            let Lane { reads, heads_at, ended_at, .. } = &mut self.lanes[place];
            let ahead = reads.range(*heads_at..).next().or_else(|| reads.iter().next());
            if let Some((&at, (bytes, _))) = ahead {
                self.jumps += u64::from(at.0.abs_diff(*ended_at) > JUMP_BYTES);
                (*heads_at, *ended_at) = (at, at.0 + bytes);
                self.waiting -= 1;
                return reads.remove(&at).map(|(_, read)| read);
            }
        }
        None
    }

    /// How often the way to the next read was a jump.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lanes: &mut Lanes<u64>, count: usize) -> Vec<u64> {
        (0..count).map_while(|_| lanes.take()).collect()
    }

    #[test]
    fn reads_are_taken_as_the_heads_come_past() {
        let mut lanes = Lanes::default();
        for address in [50, 20, 90, 20] {
            lanes.insert(1, address, 1, address);
        }
        assert_eq!(taken(&mut lanes, 3), [20, 20, 50]);
        // Behind the heads: their next sweep has it. In front of them: this one.
        lanes.insert(1, 10, 1, 10);
        lanes.insert(1, 60, 1, 60);
        assert_eq!(lanes.len(), 3);
        assert_eq!(taken(&mut lanes, 9), [60, 90, 10]);
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn devices_take_turns() {
        let mut lanes = Lanes::default();
        for address in [3, 1, 2] {
            lanes.insert(1, address, 1, address);
            lanes.insert(2, address, 1, 10 * address);
        }
        lanes.insert(2, 7, 1, 70);
        assert_eq!(taken(&mut lanes, 9), [1, 10, 2, 20, 3, 30, 70]);
    }

    #[test]
    fn a_way_of_more_than_a_mebibyte_is_a_jump() {
        let mut lanes = Lanes::default();
        for address in [0, 1 << 20, (3 << 20) + 1, (3 << 20) + 101] {
            lanes.insert(1, address, 100, address);
        }
        assert_eq!(taken(&mut lanes, 9).len(), 4);
        assert_eq!(lanes.jumps(), 1, "from the second to the third");
    }
}
