//! In which order the places of media are visited, so that the tape is wound least.
//!
//! A medium is written to and fro in many wraps. So two places with far numbers may lie side by
//! side, and the order of numbers is not the quickest. The medium in the drive comes first: a
//! change of volume takes longer than any winding.
//!
//! Some drives sort places themselves: they know where these are on the tape, so theirs is the
//! order that counts. Otherwise few places are ordered exactly (Held and Karp 1962, dynamic
//! programming over subsets); more by the best of three orders, improved by moving short runs (Or
//! 1976) as long as that helps.

use device::tape::scsi::access_order::Segment;
use model::tape::parameters::TapeParameters;

use super::place::TapeStands;
use super::wanted_blocks::WantedBlocks;

/// Most places that are ordered exactly.
const EXACT_MAX: usize = 12;
/// Most places whose order is improved step by step: a pass compares three times their square.
const IMPROVED_MAX: usize = 256;
/// Most times that all of them are gone through.
const PASSES_MAX: usize = 30;
/// Most places of which the nearest is looked for each time.
const NEAREST_MAX: usize = 4096;

/// The order in which blocks are read: numbers in `wanted`. Without the motions of the drive, or if
/// more than `ahead_bytes_max` would be read before their turn, it is that of `wanted`.
///
/// `recommended` is the drive: it sorts places on the medium in it.
pub fn reading_order(
    wanted: &[WantedBlocks],
    stands: Option<TapeStands>,
    motion: Option<&TapeParameters>,
    ahead_bytes_max: u64,
    mut recommended: impl FnMut(&[Segment]) -> Option<Vec<usize>>,
) -> Vec<usize> {
    let by_medium = by_medium(wanted, stands);
    if let Some(motion) = motion {
        let mut order = Vec::with_capacity(wanted.len());
        for numbers in &by_medium {
            let at = stands.filter(|stands| {
                numbers.first().is_some_and(|number| wanted[*number].medium == stands.medium)
            });
            let stops = stops(wanted, numbers, motion);
            let told = at.filter(|_| stops.len() > 1).and_then(|_| recommended(&segments(&stops)));
            let sorted = told.unwrap_or_else(|| {
                let block_bytes = numbers.first().map_or(0, |number| wanted[*number].block_bytes);
                let object = at.and_then(|at| at.object).unwrap_or(0);
                quickest(object.saturating_mul(block_bytes), &stops, motion)
            });
            order.extend(sorted.iter().flat_map(|stop| stops[*stop].numbers.iter().copied()));
        }
        if ahead_bytes(wanted, &order) <= ahead_bytes_max {
            return order;
        }
    }
    let order = by_medium.concat();
    if ahead_bytes(wanted, &order) <= ahead_bytes_max {
        return order;
    }
    (0..wanted.len()).collect()
}

/// The numbers of the blocks of each medium, that in the drive first.
fn by_medium(wanted: &[WantedBlocks], stands: Option<TapeStands>) -> Vec<Vec<usize>> {
    let mut media: Vec<([u8; 16], Vec<usize>)> = Vec::new();
    for (number, blocks) in wanted.iter().enumerate() {
        match media.iter_mut().rev().find(|(medium, _)| *medium == blocks.medium) {
            Some((_, numbers)) => numbers.push(number),
            None => media.push((blocks.medium, vec![number])),
        }
    }
    let is_here = |medium: &[u8; 16]| stands.is_some_and(|stands| stands.medium == *medium);
    media.sort_by_key(|(medium, _)| !is_here(medium));
    media.into_iter().map(|(_, numbers)| numbers).collect()
}

/// Most bytes that wait for others that come before them.
pub(crate) fn ahead_bytes(wanted: &[WantedBlocks], order: &[usize]) -> u64 {
    let bytes = |number: usize| wanted[number].blocks.saturating_mul(wanted[number].block_bytes);
    let mut is_read = vec![false; wanted.len()];
    let (mut next, mut waiting, mut most) = (0, 0_u64, 0);
    for number in order.iter().copied() {
        is_read[number] = true;
        waiting = waiting.saturating_add(bytes(number));
        if number == next {
            while is_read.get(next) == Some(&true) {
                waiting = waiting.saturating_sub(bytes(next));
                next += 1;
            }
        }
        most = most.max(waiting);
    }
    most
}

/// Blocks that are read in one go: where there are many, the gaps that take less to read than to
/// wind over belong to them.
#[derive(Clone, Debug)]
struct Stop {
    numbers: Vec<usize>,
    /// The first object, and the one behind the last.
    first: u64,
    end: u64,
    /// In bytes from the beginning of the medium.
    from: u64,
    to: u64,
}

/// Where the tape stops on one medium. Blocks whose place is not known are one stop with all
/// others, in their order.
fn stops(wanted: &[WantedBlocks], numbers: &[usize], motion: &TapeParameters) -> Vec<Stop> {
    let mut stops: Vec<Stop> = Vec::new();
    for number in numbers.iter().copied() {
        let blocks = &wanted[number];
        let Some(first) = blocks.first else {
            return vec![Stop { numbers: numbers.to_vec(), first: 0, end: 0, from: 0, to: 0 }];
        };
        let from = first.saturating_mul(blocks.block_bytes);
        let to = from.saturating_add(blocks.blocks.saturating_mul(blocks.block_bytes));
        let end = first.saturating_add(blocks.blocks);
        if numbers.len() > EXACT_MAX
            && let Some(last) = stops.last_mut()
            && from >= last.from
            && is_read_through(motion, last.to, from)
        {
            last.numbers.push(number);
            last.end = last.end.max(end);
            last.to = last.to.max(to);
            continue;
        }
        stops.push(Stop { numbers: vec![number], first, end, from, to });
    }
    stops
}

fn segments(stops: &[Stop]) -> Vec<Segment> {
    stops.iter().map(|stop| Segment::of(stop.first, stop.end - stop.first)).collect()
}

/// Whether reading on is not slower than winding there. Places are bytes from the beginning of the
/// medium.
pub fn is_read_through(motion: &TapeParameters, from: u64, to: u64) -> bool {
    let between = to.saturating_sub(from);
    motion.reading_ns(between) <= motion.winding_ns(from.min(to), to)
}

/// Most blocks that are read and dropped instead of located where it is not known how the drive
/// moves, and in any case: a locate may stop the tape.
pub(super) const READ_THROUGH_BLOCKS: u64 = 8;

/// Most blocks that are read and dropped on the way from one object to another: as many as lie
/// between, if winding over them takes longer.
pub fn blocks_read_through(motion: &TapeParameters, from: u64, to: u64, block_bytes: u64) -> u64 {
    let bytes = |object: u64| object.saturating_mul(block_bytes);
    let between = to.saturating_sub(from);
    let is_sooner = between > 0 && is_read_through(motion, bytes(from), bytes(to));
    if is_sooner { between.max(READ_THROUGH_BLOCKS) } else { READ_THROUGH_BLOCKS }
}

/// A quick order of these stops.
fn quickest(start: u64, stops: &[Stop], motion: &TapeParameters) -> Vec<usize> {
    let ascending: Vec<usize> = (0..stops.len()).collect();
    if stops.len() < 2 {
        return ascending;
    }
    let hop = |from: Option<usize>, to: usize| {
        motion.reaching_ns(from.map_or(start, |from| stops[from].to), stops[to].from)
    };
    if stops.len() <= EXACT_MAX {
        return exact(stops.len(), &hop);
    }
    let mut outward = ascending.clone();
    outward.sort_by_key(|stop| motion.along_ns(stops[*stop].from));
    let mut orders = vec![outward.iter().rev().copied().collect(), outward, ascending];
    if stops.len() <= NEAREST_MAX {
        orders.push(nearest(stops.len(), &hop));
    }
    let cost = |order: &Vec<usize>| cost(order, &hop);
    let best = orders.into_iter().min_by_key(cost).unwrap_or_default();
    if stops.len() <= IMPROVED_MAX { improved(best, &hop) } else { best }
}

fn cost(order: &[usize], hop: &impl Fn(Option<usize>, usize) -> u64) -> u64 {
    let mut before = None;
    order.iter().map(|stop| hop(before.replace(*stop), *stop)).sum()
}

/// The best of all orders.
fn exact(count: usize, hop: &impl Fn(Option<usize>, usize) -> u64) -> Vec<usize> {
    // The least cost to visit a subset and end with one of it, and the one before that.
    let mut least = vec![(u64::MAX, usize::MAX); (1 << count) * count];
    for last in 0..count {
        least[(1 << last) * count + last] = (hop(None, last), usize::MAX);
    }
    for subset in 1..1_usize << count {
        for last in (0..count).filter(|last| subset >> last & 1 == 1) {
            let (so_far, _) = least[subset * count + last];
            for next in (0..count).filter(|next| subset >> next & 1 == 0) {
                let place = (subset | 1 << next) * count + next;
                let total = so_far.saturating_add(hop(Some(last), next));
                if total < least[place].0 {
                    least[place] = (total, last);
                }
            }
        }
    }
    let mut subset = (1 << count) - 1;
    let mut last = (0..count).min_by_key(|last| least[subset * count + last].0).unwrap_or(0);
    let mut order = Vec::with_capacity(count);
    while order.len() < count {
        order.push(last);
        let (_, before) = least[subset * count + last];
        subset &= !(1 << last);
        last = before;
    }
    order.reverse();
    order
}

/// Always to the nearest that is left.
fn nearest(count: usize, hop: &impl Fn(Option<usize>, usize) -> u64) -> Vec<usize> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut order = Vec::with_capacity(count);
    while !left.is_empty() {
        let before = order.last().copied();
        let place = (0..left.len()).min_by_key(|place| hop(before, left[*place])).unwrap_or(0);
        order.push(left.swap_remove(place));
    }
    order
}

/// Moves runs of up to three stops to where they cost less.
fn improved(mut order: Vec<usize>, hop: &impl Fn(Option<usize>, usize) -> u64) -> Vec<usize> {
    for _ in 0..PASSES_MAX {
        let mut has_moved = false;
        for length in 1..=3 {
            for from in 0..order.len().saturating_sub(length - 1) {
                if let Some(to) = better_place(&order, from, length, hop) {
                    order = moved(&order, from, length, to);
                    has_moved = true;
                }
            }
        }
        if !has_moved {
            break;
        }
    }
    order
}

/// Where `length` stops from `from` on would cost least, if that is less than where they are. Only
/// the hops at the seams differ.
fn better_place(
    order: &[usize],
    from: usize,
    length: usize,
    hop: &impl Fn(Option<usize>, usize) -> u64,
) -> Option<usize> {
    let (first, last) = (order[from], order[from + length - 1]);
    let rest = |place: usize| order.get(if place < from { place } else { place + length }).copied();
    let seam =
        |before: Option<usize>, next: Option<usize>| next.map_or(0, |next| hop(before, next));
    let with = |to: usize| {
        let before = to.checked_sub(1).and_then(rest);
        let next = rest(to);
        let detour = u128::from(hop(before, first)) + u128::from(seam(Some(last), next));
        detour as i128 - i128::from(seam(before, next))
    };
    let without_gain = with(from);
    let best = (0..=order.len() - length).min_by_key(|to| with(*to))?;
    (with(best) < without_gain).then_some(best)
}

/// The order with `length` stops from `from` on moved so that they begin at `to`.
fn moved(order: &[usize], from: usize, length: usize, to: usize) -> Vec<usize> {
    let mut rest = order.to_vec();
    let run: Vec<usize> = rest.drain(from..from + length).collect();
    rest.splice(to..to, run);
    rest
}

#[cfg(test)]
mod tests {
    use model::tape::generation::Generation;
    use proptest::prelude::*;

    use super::*;

    const BLOCK: u64 = 1 << 20;

    fn motion() -> TapeParameters {
        TapeParameters::of(Generation::of_density(0x5a).unwrap())
    }

    fn at(medium: u8, first: u64, blocks: u64) -> WantedBlocks {
        let medium = [medium; 16];
        WantedBlocks { medium, volume: 1, first: Some(first), blocks, block_bytes: BLOCK }
    }

    fn wound_ns(wanted: &[WantedBlocks], order: &[usize], start: u64) -> u64 {
        let (mut here, mut total) = (start * BLOCK, 0);
        for blocks in order.iter().map(|number| &wanted[*number]) {
            let from = blocks.first.unwrap() * BLOCK;
            total += motion().reaching_ns(here, from);
            here = from + blocks.blocks * BLOCK;
        }
        total
    }

    fn orders(count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let shorter = orders(count - 1);
        let with = |order: &Vec<usize>, place: usize| {
            let mut order = order.clone();
            order.insert(place, count - 1);
            order
        };
        let all = shorter.iter().flat_map(|order| (0..count).map(move |place| with(order, place)));
        all.collect()
    }

    #[test]
    fn the_medium_in_the_drive_comes_first() {
        let wanted = [at(1, 500, 10), at(2, 0, 10), at(2, 100, 5)];
        let stands = Some(TapeStands { medium: [2; 16], object: Some(0) });
        assert_eq!(reading_order(&wanted, stands, Some(&motion()), u64::MAX, |_| None), [1, 2, 0]);
        assert_eq!(reading_order(&wanted, stands, None, u64::MAX, |_| None), [1, 2, 0]);
        assert_eq!(reading_order(&wanted, None, Some(&motion()), u64::MAX, |_| None), [0, 1, 2]);
        // What is read ahead of its turn waits somewhere, which has a limit.
        let most = ahead_bytes(&wanted, &[1, 2, 0]);
        assert_eq!(most, 15 * BLOCK, "the second medium waits for the first");
        assert_eq!(reading_order(&wanted, stands, Some(&motion()), most - 1, |_| None), [0, 1, 2]);
        assert_eq!(ahead_bytes(&wanted, &[0, 1, 2]), 0);
    }

    #[test]
    fn the_drive_is_asked_of_the_medium_in_it_only() {
        let wanted = [at(1, 500, 10), at(2, 900, 10), at(2, 100, 5), at(2, 5000, 1), at(1, 3, 1)];
        let stands = Some(TapeStands { medium: [2; 16], object: Some(0) });
        let mut asked = Vec::new();
        let order = reading_order(&wanted, stands, Some(&motion()), u64::MAX, |segments| {
            asked.push(segments.to_vec());
            Some(vec![2, 0, 1])
        });
        let segments = [(900, 10), (100, 5), (5000, 2)];
        assert_eq!(asked, [segments.map(|(first, blocks)| Segment::of(first, blocks))]);
        assert_eq!(order[..3], [3, 1, 2], "as the drive says");
        assert_eq!(order.len(), 5);
        // One place needs no order, and where it stands is not known nobody is asked.
        let none = |_: &[Segment]| -> Option<Vec<usize>> { panic!("nothing to ask") };
        assert_eq!(reading_order(&wanted[..2], stands, Some(&motion()), u64::MAX, none), [1, 0]);
        assert_eq!(reading_order(&wanted, None, Some(&motion()), u64::MAX, none).len(), 5);
    }

    #[test]
    fn places_side_by_side_follow_each_other() {
        // LTO-6 has 136 wraps of 18.4 GB: 17,531 blocks.
        let wrap = 17_531;
        let wanted = [at(1, wrap - 500, 1), at(1, 2 * wrap - 500, 1), at(1, 3 * wrap - 480, 1)];
        let stands = Some(TapeStands { medium: [1; 16], object: Some(wrap - 600) });
        let order = reading_order(&wanted, stands, Some(&motion()), u64::MAX, |_| None);
        assert_eq!(order, [0, 2, 1]);
        // Without numbers there is nothing to go by.
        let unknown = wanted.map(|blocks| WantedBlocks { first: None, ..blocks });
        assert_eq!(reading_order(&unknown, stands, Some(&motion()), u64::MAX, |_| None), [0, 1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn few_places_are_ordered_exactly(
            firsts in prop::collection::btree_set(0..2_300_000_u64, 1..7),
            start in 0..2_300_000_u64,
        ) {
            let wanted: Vec<_> = firsts.iter().map(|first| at(1, *first, 3)).collect();
            let stands = Some(TapeStands { medium: [1; 16], object: Some(start) });
            let order = reading_order(&wanted, stands, Some(&motion()), u64::MAX, |_| None);
            let all = orders(wanted.len());
            let least = all.iter().map(|order| wound_ns(&wanted, order, start)).min();
            prop_assert_eq!(Some(wound_ns(&wanted, &order, start)), least);
        }

        #[test]
        fn many_places_are_all_visited_and_not_later_than_in_their_order(
            firsts in prop::collection::btree_set(0..2_300_000_u64, 1..60),
            start in 0..2_300_000_u64,
        ) {
            let wanted: Vec<_> = firsts.iter().map(|first| at(1, *first, 3)).collect();
            let stands = Some(TapeStands { medium: [1; 16], object: Some(start) });
            let order = reading_order(&wanted, stands, Some(&motion()), u64::MAX, |_| None);
            let ascending: Vec<usize> = (0..wanted.len()).collect();
            prop_assert!(wound_ns(&wanted, &order, start) <= wound_ns(&wanted, &ascending, start));
            let mut sorted = order;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, ascending);
        }
    }
}
