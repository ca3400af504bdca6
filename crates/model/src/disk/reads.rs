//! How long a list of reads takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::DiskModel;
use super::parameters::DiskParameters;
use super::request::Operation;

/// Time in ns of the reads `(offset, bytes)`, in the order of the list with up to `depth` in
/// flight, from an idle disk whose arm is at its first byte. The next read is sent when one is
/// complete.
pub fn time_of_reads(disk: &DiskParameters, reads: &[(u64, u64)], depth: usize) -> u64 {
    let mut model = DiskModel::new(disk.clone());
    let mut ends = BinaryHeap::new();
    let (mut in_flight, mut last_ns) = (0, 0);
    for (offset, bytes) in reads.iter().copied() {
        let mut now_ns = 0;
        if in_flight == depth.max(1) {
            now_ns = first_end_ns(&mut model, &mut ends).unwrap_or(last_ns);
            in_flight -= 1;
        }
        last_ns = last_ns.max(now_ns);
        model.arrive(last_ns, Operation::Read { offset, bytes });
        in_flight += 1;
    }
    let rest = model.advance(u64::MAX).into_iter().map(|completion| completion.done_ns);
    rest.chain(ends.into_iter().map(|Reverse(end_ns)| end_ns)).fold(last_ns, u64::max)
}

/// The first end of a request, which leaves those that are known.
fn first_end_ns(model: &mut DiskModel, ends: &mut BinaryHeap<Reverse<u64>>) -> Option<u64> {
    loop {
        let known_ns = ends.peek().map(|Reverse(end_ns)| *end_ns);
        let next_ns = model.next_ns();
        if known_ns.is_some() && next_ns.is_none_or(|next_ns| known_ns <= Some(next_ns)) {
            return ends.pop().map(|Reverse(end_ns)| end_ns);
        }
        let found = model.advance(next_ns?);
        ends.extend(found.iter().map(|completion| Reverse(completion.done_ns)));
    }
}
