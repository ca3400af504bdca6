//! Which parts of archives were read back, and which are next.
//!
//! A part is a range of bytes of an archive before compression, whole blocks. A reading paints its
//! range: the last one of a byte counts. So parts of any size add up, also after the share of a
//! run was changed, and an archive is called sound only when its last unread byte was read.

use std::ops::Range;

/// What is known of a range of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// It was never read since the archive was written.
    Unread,
    /// It was as written when it was last read, at this time.
    Sound { seconds: u64 },
    /// It was not.
    Damaged { seconds: u64 },
}

/// What is known of an archive, by the range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// From 0 to `u64::MAX` without gaps, none empty: the begin of each, and its state.
    parts: Vec<(u64, PartState)>,
    /// Known since a part was read.
    archive_bytes: Option<u64>,
}

impl Default for Readings {
    fn default() -> Readings {
        Readings { parts: vec![(0, PartState::Unread)], archive_bytes: None }
    }
}

impl Readings {
    /// The whole archive was read.
    pub fn read_all(&mut self, state: PartState) {
        self.parts = vec![(0, state)];
    }

    /// A part of `archive_bytes` was read.
    pub fn read_part(&mut self, part: &Range<u64>, archive_bytes: u64, state: PartState) {
        self.archive_bytes = Some(archive_bytes);
        if part.is_empty() {
            return;
        }
        let behind = self.state_at(part.end);
        let has_end = self.parts.iter().any(|(begin, _)| *begin == part.end);
        self.parts.retain(|(begin, _)| !part.contains(begin));
        let at = self.parts.partition_point(|(begin, _)| *begin < part.start);
        self.parts.insert(at, (part.start, state));
        if !has_end {
            self.parts.insert(at + 1, (part.end, behind));
        }
        self.parts.dedup_by(|next, before| next.1 == before.1);
    }

    fn state_at(&self, byte: u64) -> PartState {
        let after = self.parts.partition_point(|(begin, _)| *begin <= byte);
        self.parts.get(after.wrapping_sub(1)).map_or(PartState::Unread, |(_, state)| *state)
    }

    /// The parts of an archive of this length.
    fn within(&self, archive_bytes: u64) -> impl Iterator<Item = (Range<u64>, PartState)> {
        let ends = self.parts.iter().skip(1).map(|(begin, _)| *begin).chain([u64::MAX]);
        let parts = self.parts.iter().zip(ends);
        let parts =
            parts.map(move |((begin, state), end)| (*begin..end.min(archive_bytes), *state));
        parts.filter(|(part, _)| !part.is_empty())
    }

    /// The archive as a whole: damaged where a part is, sound where every part is, since the time
    /// of the part that was read first. `None`: some of it was never read.
    pub fn whole(&self) -> Option<(u64, bool)> {
        let (mut sound_seconds, mut damaged_seconds, mut is_unread) = (u64::MAX, None, false);
        for (_, state) in self.within(self.archive_bytes.unwrap_or(u64::MAX)) {
            match state {
                PartState::Unread => is_unread = true,
                PartState::Sound { seconds } => sound_seconds = sound_seconds.min(seconds),
                PartState::Damaged { seconds } => {
                    damaged_seconds = damaged_seconds.max(Some(seconds))
                }
            }
        }
        match damaged_seconds {
            Some(seconds) => Some((seconds, false)),
            None => (!is_unread).then_some((sound_seconds, true)),
        }
    }
}

/// An archive of which parts are read in turn.
#[derive(Clone, Debug)]
pub struct RotatedArchive {
    pub readings: Readings,
    /// Its length before compression.
    pub archive_bytes: u64,
    /// Parts begin and end at multiples of it, or at the end.
    pub block_bytes: u64,
    /// When it was written: what was never read has waited since then.
    pub written_seconds: u64,
}

/// The parts that are next, with the position of their archive: those that were unread the longest,
/// until they have `permille` of the bytes of all archives. The parts of an archive ascend, and
/// neighbours are one.
pub fn next_parts(archives: &[RotatedArchive], permille: u32) -> Vec<(usize, Range<u64>)> {
    let all_bytes: u128 = archives.iter().map(|it| u128::from(it.archive_bytes)).sum();
    let mut left =
        u64::try_from((all_bytes * u128::from(permille)).div_ceil(1000)).unwrap_or(u64::MAX);
    let mut waiting: Vec<(u64, bool, usize, Range<u64>)> = Vec::new();
    for (at, archive) in archives.iter().enumerate() {
        for (part, state) in archive.readings.within(archive.archive_bytes) {
            let since_seconds = match state {
                PartState::Unread => archive.written_seconds,
                PartState::Sound { seconds } | PartState::Damaged { seconds } => seconds,
            };
            // Of the same second what was never read goes first, so that no byte is passed over.
            waiting.push((since_seconds, state != PartState::Unread, at, part));
        }
    }
    waiting.sort_by_key(|(since, is_read, at, part)| (*since, *is_read, *at, part.start));
    let mut next: Vec<(usize, Range<u64>)> = Vec::new();
    for (_, _, at, part) in waiting {
        if left == 0 {
            break;
        }
        let archive = &archives[at];
        let block_bytes = archive.block_bytes.max(1);
        let begin = part.start - part.start % block_bytes;
        let end = part.start.saturating_add(left).min(part.end);
        let end = end.div_ceil(block_bytes).saturating_mul(block_bytes).min(archive.archive_bytes);
        left = left.saturating_sub(end - part.start);
        next.push((at, begin..end));
    }
    next.sort_by_key(|(at, part)| (*at, part.start));
    next.dedup_by(|(at, part), (before_at, before)| {
        let is_next = at == before_at && part.start <= before.end;
        if is_next {
            before.end = before.end.max(part.end);
        }
        is_next
    });
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn archive(archive_bytes: u64, written_seconds: u64) -> RotatedArchive {
        let readings = Readings::default();
        RotatedArchive { readings, archive_bytes, block_bytes: 10, written_seconds }
    }

    #[test]
    fn the_last_reading_of_a_byte_counts() {
        let mut readings = Readings::default();
        let sound = |seconds| PartState::Sound { seconds };
        assert_eq!(readings.whole(), None);
        readings.read_part(&(0..60), 100, sound(5));
        assert_eq!(readings.whole(), None);
        readings.read_part(&(50..100), 100, PartState::Damaged { seconds: 7 });
        assert_eq!(readings.whole(), Some((7, false)));
        readings.read_part(&(40..90), 100, sound(9));
        assert_eq!(readings.whole(), Some((7, false)), "ten bytes are damaged");
        readings.read_part(&(90..100), 100, sound(10));
        assert_eq!(readings.whole(), Some((5, true)), "as old as the part read first");
        readings.read_all(sound(20));
        assert_eq!(readings.whole(), Some((20, true)));
    }

    #[test]
    fn those_that_waited_longest_are_next() {
        let mut archives = vec![archive(100, 1), archive(95, 2)];
        assert_eq!(next_parts(&archives, 100), [(0, 0..20)], "whole blocks of a tenth");
        archives[0].readings.read_part(&(0..20), 100, PartState::Sound { seconds: 3 });
        assert_eq!(next_parts(&archives, 500), [(0, 20..100), (1, 0..20)]);
        archives[0].written_seconds = 3;
        archives[1].written_seconds = 4;
        assert_eq!(next_parts(&archives, 100), [(0, 20..40)], "unread goes first");
        archives[0].written_seconds = 1;
        archives[1].written_seconds = 2;
        assert_eq!(next_parts(&archives, 1000), [(0, 0..100), (1, 0..95)]);
        assert_eq!(next_parts(&[], 100), []);
    }

    proptest! {
        #[test]
        fn every_byte_has_its_turn(
            lengths in proptest::collection::vec(1..2000u64, 1..6),
            permille in 1..1001u32,
        ) {
            let mut archives: Vec<_> = lengths.iter().map(|it| archive(*it, 1)).collect();
            let runs = 1000u32.div_ceil(permille);
            for run in 0..runs {
                for (at, part) in next_parts(&archives, permille) {
                    let seconds = u64::from(run) + 2;
                    let archive = &mut archives[at];
                    prop_assert!(part.start % 10 == 0 && part.end <= archive.archive_bytes);
                    let state = PartState::Sound { seconds };
                    archive.readings.read_part(&part, archive.archive_bytes, state);
                }
            }
            for archive in &archives {
                prop_assert!(archive.readings.whole().is_some_and(|(_, sound)| sound));
            }
        }

        #[test]
        fn painting_is_that_of_each_byte(
            readings in proptest::collection::vec((0..40u64, 0..40u64, any::<bool>()), 0..30),
        ) {
            let (mut painted, mut bytes) = (Readings::default(), vec![PartState::Unread; 40]);
            for (seconds, (a, b, sound)) in readings.into_iter().enumerate() {
                let seconds = seconds as u64;
                let (good, bad) = (PartState::Sound { seconds }, PartState::Damaged { seconds });
                let state = if sound { good } else { bad };
                let part = a.min(b)..a.max(b);
                bytes[part.start as usize..part.end as usize].fill(state);
                painted.read_part(&part, 40, state);
            }
            let found: Vec<_> =
                painted.within(40).flat_map(|(part, state)| part.map(move |_| state)).collect();
            prop_assert_eq!(found, bytes);
        }
    }
}
