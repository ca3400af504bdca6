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

/// Hands out what is certain to be the oldest; the number of a queue that has to be looked at again
/// before more is, and whether there is one.
pub(crate) fn oldest(queues: &mut [Queue], out: &mut impl FnMut(Event)) -> Option<usize> {
    loop {
        let head = |queue: &Queue| queue.events.front().map(|event| event.time_ns);
        let bound = |queue: &Queue| head(queue).unwrap_or(queue.horizon_ns);
        let (at, first) = queues.iter().enumerate().min_by_key(|(_, queue)| bound(queue))?;
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
        let wanted = oldest(queues, &mut |event| out.push(event.time_ns));
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
