//! What belongs to a place of a stream and is no byte of it, carried beside the ring.
//!
//! A mark is put at its place before the bytes in front of that place are committed. The ring hands
//! a block on under its own lock, so whoever holds the block that reaches the place finds the mark
//! here. One stage takes the marks off, in the order of their places.
//!
//! Capacity: nobody puts a mark without having reserved bytes for it, so their number is bounded by
//! the ring and by what the bytes of one mark are at the least; who has marks without bytes bounds
//! them (see `gaps`).

use std::collections::VecDeque;
use std::sync::Mutex;

use base::failures::lock;

/// Marks of one kind, ascending by their places, which are offsets in one stream; shared by
/// reference.
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
    /// Puts a mark at a place, which is mostly behind all others; behind those of the same place.
    pub fn put(&self, place: At, mark: T) {
        self.change(|marks| Self::sort_in(marks, place, mark));
    }

    /// What [`Marks::put`] does, for a list that is held already.
    pub fn sort_in(marks: &mut VecDeque<(At, T)>, place: At, mark: T) {
        let at = match marks.back() {
            Some((last, _)) if *last > place => marks.partition_point(|(other, _)| *other <= place),
            _ => marks.len(),
        };
        marks.insert(at, (place, mark));
    }

    /// Takes the first mark, if it is in front of `end`.
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

    /// For whoever puts marks by rules of its own: they must stay ascending.
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
