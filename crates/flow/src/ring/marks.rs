//! Data that belong to a place of a stream but are no bytes of it, carried beside the ring.
//!
//! A mark is put at its place before the bytes before that place are committed. The ring passes a
//! block on under its own lock, so a thread with the block that reaches the place finds the mark
//! here. One stage removes the marks, in the order of their places.
//!
//! Capacity: a mark is put only after bytes were reserved for it, so the ring, and the least bytes
//! for each mark, bound their number. Marks without bytes must be bounded by their user (see
//! `gaps`).

use std::collections::VecDeque;
use std::sync::Mutex;

use base::failures::lock;

/// Marks of one kind, ascending by place, which is an offset in one stream; shared by reference.
#[derive(Debug)]
pub struct Marks<At, T> {
    inner: Mutex<VecDeque<(At, T)>>,
}

impl<At, T> Default for Marks<At, T> {
    fn default() -> Marks<At, T> {
        Marks { inner: Mutex::default() }
    }
}

impl<At: Copy + Ord, T> Marks<At, T> {
    /// Puts a mark at a place, mostly after all others; after those of the same place.
    pub fn put(&self, place: At, mark: T) {
        self.change(|marks| Self::sort_in(marks, place, mark));
    }

    /// Like [`Marks::put`], for a list that is already locked.
    pub fn sort_in(marks: &mut VecDeque<(At, T)>, place: At, mark: T) {
        let at = match marks.back() {
            Some((last, _)) if *last > place => marks.partition_point(|(other, _)| *other <= place),
            _ => marks.len(),
        };
        marks.insert(at, (place, mark));
    }

    /// Takes the first mark, if it is before `end`.
    pub fn take_before(&self, end: At) -> Option<(At, T)> {
        self.change(|marks| marks.pop_front_if(|(place, _)| *place < end))
    }

    /// Takes the first mark, if it is at this place.
    pub fn take_at(&self, place: At) -> Option<T> {
        let (_, mark) = self.change(|marks| marks.pop_front_if(|(at, _)| *at == place))?;
        Some(mark)
    }

    /// A copy of the first mark, and its place.
    pub fn first(&self) -> Option<(At, T)>
    where
        T: Clone,
    {
        self.change(|marks| marks.front().cloned())
    }

    /// For users with their own rules: marks must stay ascending.
    pub fn change<R>(&self, act: impl FnOnce(&mut VecDeque<(At, T)>) -> R) -> R {
        act(&mut lock(&self.inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_off_in_the_order_of_their_places() {
        let marks = Marks::default();
        for (place, mark) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            marks.put(place, mark);
        }
        assert_eq!(marks.first(), Some((10, 'a')));
        assert_eq!(marks.take_before(10), None);
        assert_eq!(marks.take_before(11), Some((10, 'a')));
        assert_eq!(marks.take_at(30), None, "another one is in front of it");
        assert_eq!(marks.take_at(20), Some('b'));
        assert_eq!((marks.take_at(30), marks.take_at(30)), (Some('c'), Some('d')));
        assert_eq!((marks.first(), marks.take_before(u64::MAX)), (None, None));
    }
}
