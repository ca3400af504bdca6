//! Gaps of a stream: unreadable parts of the source, and chunks that do not decompress.
//!
//! If the length of a gap is known, zeros replace it, so that everything behind it keeps its
//! offset. If not, the stream continues without it, and the place is a *seam*. The list travels
//! beside the ring as [`Marks`]: a gap is entered before its block is complete.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use base::failures::lock;
use base::offset::Offset;

use crate::ring::Marks;

/// A place of the stream `In` without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap<In> {
    /// Where it starts.
    pub start_bytes: Offset<In>,
    /// Zeros that replace it; 0 for a seam.
    pub length_bytes: u64,
    /// The cause: a lowercase fragment.
    pub why: String,
}

impl<In> Gap<In> {
    /// End of the gap.
    pub fn end_bytes(&self) -> Offset<In> {
        self.start_bytes + self.length_bytes
    }

    fn same_in<Other>(self) -> Gap<Other> {
        let Gap { start_bytes, length_bytes, why } = self;
        Gap { start_bytes: start_bytes.same_in(), length_bytes, why }
    }

    fn is_before(&self, other: &Gap<In>) -> bool {
        self.end_bytes() <= other.start_bytes
    }
}

/// The gaps that the reader has not reached, in ascending order; shared by reference.
///
/// Capacity: `WAITING_MAX` and one. Gaps that touch are merged, and the thread that enters them
/// waits for room in the ring. But between two seams there may be a single byte, and a ring has
/// millions. Further gaps are merged with the last one; the data between are given up.
#[derive(Debug)]
pub struct Gaps<In> {
    entered: Arc<Entered>,
    stream: PhantomData<fn() -> In>,
}

impl<In> Clone for Gaps<In> {
    fn clone(&self) -> Gaps<In> {
        self.same_in()
    }
}

impl<In> Default for Gaps<In> {
    fn default() -> Gaps<In> {
        Gaps { entered: Arc::default(), stream: PhantomData }
    }
}

/// Most gaps that wait for the reader: about 10 MB with their texts.
const WAITING_MAX: usize = 1 << 16;
/// Most gaps that are kept to the end of the run.
const REMEMBERED_MAX: usize = 10_000;

/// Any stream.
#[derive(Clone, Debug)]
enum Any {}

#[derive(Debug, Default)]
struct Entered {
    /// Gaps that the reader has not reached.
    waiting: Marks<Offset<Any>, Gap<Any>>,
    /// All gaps with a length, ascending except for reads that overtook others.
    all: Mutex<Vec<Range<Offset<Any>>>>,
}

impl<In> Gaps<In> {
    /// The same gaps for another stream, which the caller knows to have the same bytes.
    pub fn same_in<Other>(&self) -> Gaps<Other> {
        Gaps { entered: Arc::clone(&self.entered), stream: PhantomData }
    }

    /// The gaps with a length, ascending, those that touch as one.
    pub fn remembered(&self) -> Vec<Range<Offset<In>>> {
        let mut all = lock(&self.entered.all).clone();
        all.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<Offset<In>>> = Vec::new();
        for range in all {
            let range = range.start.same_in()..range.end.same_in();
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Enters a gap; one before the last (reads end in any order) is sorted in.
    pub fn enter(&self, gap: Gap<In>) {
        let gap = gap.same_in();
        if gap.length_bytes > 0 {
            let mut all = lock(&self.entered.all);
            if all.len() < REMEMBERED_MAX {
                all.push(gap.start_bytes..gap.end_bytes());
            }
        }
        self.entered.waiting.change(|gaps| {
            if let Some(gap) = joined_with_last(gaps, gap) {
                Marks::sort_in(gaps, gap.start_bytes, gap);
            }
        });
    }

    /// Takes the first gap that starts before `end_bytes`.
    pub fn take_before(&self, end_bytes: Offset<In>) -> Option<Gap<In>> {
        self.entered.waiting.take_before(end_bytes.same_in()).map(|(_, gap)| gap.same_in())
    }
}

/// Merges a gap with the last one if they touch, or if there are too many; otherwise returns it.
fn joined_with_last(
    gaps: &mut VecDeque<(Offset<Any>, Gap<Any>)>,
    gap: Gap<Any>,
) -> Option<Gap<Any>> {
    let full = gaps.len() >= WAITING_MAX;
    let Some((_, last)) = gaps.back_mut() else { return Some(gap) };
    if last.end_bytes() == gap.start_bytes && (last.length_bytes == 0) == (gap.length_bytes == 0) {
        last.length_bytes += gap.length_bytes;
        return None;
    }
    if full && last.is_before(&gap) {
        join_last(gaps, &gap);
        return None;
    }
    Some(gap)
}

/// Extends the last gap to the end of another. If one of them is a seam, so is the result: its
/// length is known, but what follows is from further on.
fn join_last(gaps: &mut VecDeque<(Offset<Any>, Gap<Any>)>, gap: &Gap<Any>) {
    let Some((_, last)) = gaps.pop_back() else { return };
    let seam = last.length_bytes == 0 || gap.length_bytes == 0;
    let mut start_bytes = last.start_bytes;
    if last.length_bytes == 0
        && let Some((_, before)) =
            gaps.pop_back_if(|(_, before)| before.end_bytes() == last.start_bytes)
    {
        start_bytes = before.start_bytes;
    }
    let why =
        format!("more than {WAITING_MAX} places are unreadable; data between them are given up");
    let length_bytes = gap.end_bytes() - start_bytes;
    gaps.push_back((start_bytes, Gap { start_bytes, length_bytes, why }));
    if seam {
        let (start_bytes, why) = (gap.end_bytes(), gap.why.clone());
        gaps.push_back((start_bytes, Gap { start_bytes, length_bytes: 0, why }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    enum Here {}

    fn gap(start_bytes: u64, length_bytes: u64) -> Gap<Here> {
        let start_bytes = Offset::new(start_bytes);
        Gap { start_bytes, length_bytes, why: "test".into() }
    }

    #[test]
    fn gaps_come_back_in_order_and_touching_ones_as_one() {
        let gaps = Gaps::default();
        gaps.enter(gap(4096, 512));
        gaps.enter(gap(4608, 512));
        gaps.enter(gap(1024, 512));
        assert_eq!(gaps.take_before(Offset::new(1024)), None);
        assert_eq!(gaps.take_before(Offset::new(1025)), Some(gap(1024, 512)));
        assert_eq!(gaps.take_before(Offset::MAX), Some(gap(4096, 1024)));
        assert_eq!(gaps.take_before(Offset::MAX), None);
        assert_eq!(gaps.remembered(), [1024..1536, 4096..5120].map(Offset::range));
    }

    #[test]
    fn a_clone_is_of_the_same_gaps() {
        let gaps = Gaps::default();
        let reader = gaps.clone();
        gaps.enter(gap(512, 512));
        assert_eq!(reader.take_before(Offset::MAX), Some(gap(512, 512)));
        assert_eq!(gaps.take_before(Offset::MAX), None);
    }

    /// A frame of one byte and one that cannot be decompressed, in turns, as a ring has room for.
    #[test]
    fn seams_are_no_more_than_can_be_kept() {
        let gaps = Gaps::default();
        let (last, odd) = (300_000, 3);
        for place in 1..=last {
            // Some of them have a length.
            gaps.enter(gap(place * 8, if place % odd == 0 { 4 } else { 0 }));
            assert!(gaps.entered.waiting.change(|gaps| gaps.len()) <= WAITING_MAX + 1);
        }
        let (mut end_bytes, mut count, mut known) = (Offset::START, 0, 0);
        let mut before = gap(0, 1);
        while let Some(next) = gaps.take_before(Offset::MAX) {
            assert!(next.start_bytes >= end_bytes, "{next:?} behind {before:?}");
            (end_bytes, count, known) = (next.end_bytes(), count + 1, known + next.length_bytes);
            before = next;
        }
        assert_eq!(count, WAITING_MAX + 1);
        // What follows is at least as far on as the last of them, at an unknown place.
        assert_eq!((before.length_bytes, end_bytes), (0, Offset::new(last * 8 + 4)));
        assert!(known > (last - WAITING_MAX as u64) * 8);
        // There is room again.
        gaps.enter(gap(end_bytes.bytes() + 8, 0));
        assert_eq!(gaps.take_before(Offset::MAX), Some(gap(end_bytes.bytes() + 8, 0)));
    }
}
