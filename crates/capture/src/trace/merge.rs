//! Events of several buffers in the order of their times.
//!
//! A buffer's own events are in order. One that is empty might still get an event that is older
//! than those of the others: up to the moment at which it was found empty, less what an event takes
//! to be written, it will not.

use std::collections::VecDeque;

use crate::trace::Event;

/// One buffer's events that were read and not handed out.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) events: VecDeque<Event>,
    /// Nothing older than this comes any more, once the queue is empty.
    pub(crate) horizon_ns: u64,
}

impl Queue {
    /// Whatever is older was read.
    pub(crate) fn complete_until_ns(&self) -> u64 {
        self.events.back().map_or(self.horizon_ns, |last| last.time_ns.max(self.horizon_ns))
    }

    /// The events of some time, without taking them.
    pub(crate) fn between(&self, start_ns: u64, end_ns: u64) -> impl Iterator<Item = &Event> {
        let place = |time_ns| self.events.partition_point(|event| event.time_ns < time_ns);
        self.events.range(place(start_ns)..place(end_ns))
    }
}

/// Hands out what is certain to be the oldest and older than that moment; the number of a queue
/// that has to be looked at again before more is, if there is one.
pub(crate) fn oldest(
    queues: &mut [Queue],
    end_ns: u64,
    out: &mut impl FnMut(Event),
) -> Option<usize> {
    loop {
        let head = |queue: &Queue| queue.events.front().map(|event| event.time_ns);
        let bound = |queue: &Queue| head(queue).unwrap_or(queue.horizon_ns);
        let (at, first) = queues.iter().enumerate().min_by_key(|(_, queue)| bound(queue))?;
        if bound(first) >= end_ns {
            return None;
        }
        if first.events.is_empty() {
            return Some(at);
        }
        if let Some(event) = queues[at].events.pop_front() {
            out(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn queue(times: &[u64], horizon_ns: u64) -> Queue {
        let events = times.iter().map(|time| Event::made(*time, 1, 0, &[])).collect();
        Queue { events, horizon_ns }
    }

    fn times(queues: &mut [Queue]) -> (Vec<u64>, Option<usize>) {
        let mut out = Vec::new();
        let wanted = oldest(queues, u64::MAX, &mut |event| out.push(event.time_ns));
        (out, wanted)
    }

    #[test]
    fn nothing_is_handed_out_beyond_what_an_empty_buffer_allows() {
        let mut queues = [queue(&[1, 4, 9], 0), queue(&[], 5)];
        assert_eq!(times(&mut queues), (vec![1, 4], Some(1)));
        queues[1].horizon_ns = 20;
        assert_eq!(times(&mut queues), (vec![9], Some(0)));
        assert_eq!(times(&mut []), (vec![], None));
    }

    #[test]
    fn what_is_not_wanted_yet_stays() {
        let mut queues = [queue(&[1, 4, 9], 0), queue(&[2, 11], 0)];
        let mut out = Vec::new();
        assert_eq!(oldest(&mut queues, 9, &mut |event| out.push(event.time_ns)), None);
        assert_eq!(out, [1, 2, 4]);
        assert_eq!(times(&mut queues), (vec![9], Some(0)));
    }

    #[test]
    fn a_queue_shows_what_it_has() {
        let queue = queue(&[1, 4, 4, 9], 6);
        let between = |start_ns, end_ns| -> Vec<u64> {
            queue.between(start_ns, end_ns).map(|event| event.time_ns).collect()
        };
        assert_eq!(between(0, 4), [1]);
        assert_eq!(between(4, 9), [4, 4]);
        assert_eq!(between(9, u64::MAX), [9]);
        assert_eq!(queue.complete_until_ns(), 9);
        assert_eq!(Queue { horizon_ns: 12, ..queue }.complete_until_ns(), 12);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_times(
            mut all in prop::collection::vec(prop::collection::vec(0_u64..1000, 0..20), 1..5),
        ) {
            for times in &mut all {
                times.sort_unstable();
            }
            let mut expected = all.concat();
            expected.sort_unstable();
            let mut queues: Vec<Queue> = all.iter().map(|it| queue(it, 1000)).collect();
            prop_assert_eq!(times(&mut queues).0, expected);
        }
    }
}
