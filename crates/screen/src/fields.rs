//! The columns of the screen: as many as fit.

use watch::intervals::DeviceInterval;

use self::Value::{Count, Real};
use crate::timeline::await_ms;

/// The value of a column.
pub(crate) enum Value {
    /// A rate, a mean or a share.
    Real(f64),
    Count(u64),
}

/// A column.
pub(crate) struct Field {
    /// Its heading, as in `iostat -x` where that has the same column.
    pub(crate) head: &'static str,
    /// Its width in characters, including one before it.
    pub(crate) width: usize,
    pub(crate) value: fn(&DeviceInterval) -> Value,
    /// Priority: columns with a lower number are shown first.
    order: u8,
}

/// In the order from left to right.
const FIELDS: [Field; 18] = [
    Field {
        head: "r/s",
        width: 8,
        order: 0,
        value: |it| Real(it.columns.read.requests_per_second),
    },
    Field {
        head: "w/s",
        width: 8,
        order: 0,
        value: |it| Real(it.columns.write.requests_per_second),
    },
    Field {
        head: "d/s",
        width: 8,
        order: 7,
        value: |it| Real(it.columns.discard.requests_per_second),
    },
    Field { head: "f/s", width: 8, order: 3, value: |it| Real(it.columns.flushes_per_second) },
    Field { head: "rkB/s", width: 9, order: 0, value: |it| Real(it.columns.read.kib_per_second) },
    Field { head: "wkB/s", width: 9, order: 0, value: |it| Real(it.columns.write.kib_per_second) },
    Field {
        head: "dkB/s",
        width: 9,
        order: 7,
        value: |it| Real(it.columns.discard.kib_per_second),
    },
    Field { head: "%rrqm", width: 7, order: 6, value: |it| Real(it.columns.read.merged_percent) },
    Field { head: "%wrqm", width: 7, order: 6, value: |it| Real(it.columns.write.merged_percent) },
    Field { head: "r_await", width: 8, order: 4, value: |it| Real(it.columns.read.await_ms) },
    Field { head: "w_await", width: 8, order: 4, value: |it| Real(it.columns.write.await_ms) },
    Field { head: "f_await", width: 8, order: 8, value: |it| Real(it.columns.flush_await_ms) },
    Field { head: "await", width: 7, order: 1, value: |it| Real(await_ms(it)) },
    Field { head: "rareq-sz", width: 9, order: 5, value: |it| Real(it.columns.read.request_kib) },
    Field { head: "wareq-sz", width: 9, order: 5, value: |it| Real(it.columns.write.request_kib) },
    Field { head: "aqu-sz", width: 7, order: 1, value: |it| Real(it.columns.queue_length) },
    Field { head: "now", width: 6, order: 2, value: |it| Count(it.in_flight.now.into()) },
    Field { head: "%util", width: 7, order: 1, value: |it| Real(it.columns.busy_percent) },
];

/// Minimum width of a graph, and maximum useful width.
const GRAPH: std::ops::RangeInclusive<usize> = 10..=60;

/// The division of a line.
pub(crate) struct Division {
    /// Characters of the name.
    pub(crate) name: usize,
    /// The columns.
    pub(crate) fields: Vec<&'static Field>,
    /// Width of the graph in characters, including one before it; 0 if there is none.
    pub(crate) graph: usize,
}

/// Divides a line of this width, with names up to this length.
pub(crate) fn division(width: usize, longest_name: usize) -> Division {
    let name = longest_name.clamp(8, (width / 4).max(13));
    let mut left = width.saturating_sub(name);
    let mut orders: Vec<u8> = FIELDS.iter().map(|field| field.order).collect();
    orders.sort_unstable();
    orders.dedup();
    let mut taken = Vec::new();
    for order in orders {
        let group = FIELDS.iter().filter(|field| field.order == order);
        let needed: usize = group.map(|field| field.width).sum();
        // Drop the graph if even the first columns do not fit.
        let kept = if taken.is_empty() { 0 } else { GRAPH.start() + 1 };
        if needed + kept > left {
            break;
        }
        left -= needed;
        taken.push(order);
    }
    let fields = FIELDS.iter().filter(|field| taken.contains(&field.order)).collect();
    let graph = if left > *GRAPH.start() { left.min(*GRAPH.end()) } else { 0 };
    Division { name, fields, graph }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_divided_and_never_longer_than_it_is() {
        for width in 20..300 {
            for name in [3, 12, 80] {
                let it = division(width, name);
                let fields: usize = it.fields.iter().map(|field| field.width).sum();
                assert!(it.name + fields + it.graph <= width.max(13), "{width} {name}");
            }
        }
        let heads = |width| -> Vec<&str> {
            division(width, 8).fields.iter().map(|field| field.head).collect()
        };
        let some = ["r/s", "w/s", "rkB/s", "wkB/s", "await", "aqu-sz", "%util"];
        assert_eq!(heads(76), some);
        assert_eq!(heads(200).len(), FIELDS.len());
        assert!(division(80, 13).graph >= 10);
    }
}
