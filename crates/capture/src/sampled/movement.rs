//! How far positions moved between two looks.
//!
//! A descriptor that was copied or inherited has the position of the one that it came from, and
//! looks at both of them are some moments apart. So what is counted is the part of the file that
//! was passed: by several at once it counts once, and what was passed at the look before does not
//! count again. Several that read the same part side by side are counted as one.

use super::Position;

/// Where positions of one file's openings stood, and stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Movement {
    /// Parts that were passed at the look before, and at this one.
    before: Vec<(u64, u64)>,
    now: Vec<(u64, u64)>,
    is_back: bool,
}

impl Movement {
    /// One moved.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        match from.cmp(&to) {
            std::cmp::Ordering::Less => self.now.push((from, to)),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.is_back = true,
        }
    }

    /// The look is over: adds it to what there was before.
    pub(super) fn end_look(&mut self, position: &mut Position) {
        let now = joined(std::mem::take(&mut self.now));
        position.forward += u64::from(!now.is_empty());
        position.backward += u64::from(std::mem::take(&mut self.is_back));
        let passed = length(&now) - common(&now, &self.before);
        position.forward_bytes = position.forward_bytes.saturating_add(passed);
        self.before = now;
    }
}

/// Parts that do not touch each other, in order.
fn joined(mut parts: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    parts.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(parts.len());
    for (from, to) in parts {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn length(parts: &[(u64, u64)]) -> u64 {
    parts.iter().fold(0, |sum, (from, to)| sum.saturating_add(to - from))
}

/// How much is in both; each of them is joined.
fn common(some: &[(u64, u64)], others: &[(u64, u64)]) -> u64 {
    let (mut at, mut other, mut sum) = (0, 0, 0_u64);
    while let (Some(a), Some(b)) = (some.get(at), others.get(other)) {
        sum = sum.saturating_add(a.1.min(b.1).saturating_sub(a.0.max(b.0)));
        if a.1 < b.1 { at += 1 } else { other += 1 }
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of places.
        #[test]
        fn what_was_passed_is_counted_once(
            looks in prop::collection::vec(
                prop::collection::vec((0_u64..60, 0_u64..60), 0..6), 1..6),
        ) {
            let (mut movement, mut position) = (Movement::default(), Position::default());
            let (mut before, mut expected) = (std::collections::BTreeSet::new(), 0);
            for look in &looks {
                look.iter().for_each(|(from, to)| movement.add(*from, *to));
                movement.end_look(&mut position);
                let now: std::collections::BTreeSet<u64> =
                    look.iter().flat_map(|(from, to)| *from..*to).collect();
                expected += now.difference(&before).count() as u64;
                before = now;
            }
            prop_assert_eq!(position.forward_bytes, expected);
            let has = |wanted: fn(&(u64, u64)) -> bool| {
                looks.iter().filter(|look| look.iter().any(wanted)).count() as u64
            };
            prop_assert_eq!(position.forward, has(|(from, to)| from < to));
            prop_assert_eq!(position.backward, has(|(from, to)| from > to));
        }
    }
}
