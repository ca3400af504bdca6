//! A part of a group of requests, and the lines of its section.

use crate::job::group::FileGroup;
use crate::job::numbers::whole;

/// An option of fio, or what is known in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// As fio reads it; `None` where there is only something to say.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: String,
}

/// Which operations of a group a section does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Reads, beside a section of writes.
    Reads,
    /// Writes and their syncs, beside a section of reads.
    Writes,
    /// Writes of a queue, beside a section of syncs.
    Queued,
    /// Syncs by call, each behind a write.
    Syncs,
    /// All that there is.
    All,
}

impl Part {
    /// Into what a group is cut.
    pub fn of(group: &FileGroup) -> &'static [Part] {
        if group.syncs_beside() {
            return match group.reads {
                0 => &[Part::Queued, Part::Syncs],
                _ => &[Part::Reads, Part::Queued, Part::Syncs],
            };
        }
        if group.syncs_among_reads_beside() {
            return &[Part::Queued, Part::Syncs];
        }
        let is_mixed = synced_among_reads(group).is_some();
        let apart = group.syncs > 0 && !is_mixed
            || rewrites(group).is_some()
            || goes_further_than_a_mix(group);
        if group.reads > 0 && group.writes > 0 && apart {
            &[Part::Reads, Part::Writes]
        } else {
            &[Part::All]
        }
    }

    /// How many reads it does.
    pub fn reads(self, group: &FileGroup) -> u64 {
        let is_beside = group.syncs_among_reads_beside();
        let synced = if is_beside { whole(group.reads as f64 * synced_share(group)) } else { 0 };
        match self {
            Part::Reads | Part::All => group.reads,
            Part::Writes => 0,
            Part::Queued if synced > 0 => group.reads - synced,
            Part::Queued => 0,
            Part::Syncs => synced,
        }
    }

    /// How many writes.
    pub fn writes(self, group: &FileGroup) -> u64 {
        let synced = if group.syncs_among_reads_beside() {
            whole(group.writes as f64 * synced_share(group))
        } else {
            group.syncs
        };
        match self {
            Part::Reads => 0,
            Part::Writes | Part::All => group.writes,
            Part::Queued => group.writes.saturating_sub(synced),
            Part::Syncs => synced,
        }
    }

    /// All that it does.
    pub(super) fn operations(self, group: &FileGroup) -> u64 {
        self.reads(group) + self.writes(group)
    }
}

/// The lines of a section while it is written.
pub struct SectionLines(pub Vec<Line>);

impl SectionLines {
    /// An option.
    pub fn add(&mut self, value: impl Into<String>, origin: impl Into<String>) {
        self.0.push(Line { value: Some(value.into()), origin: origin.into() });
    }

    /// A comment.
    pub fn say(&mut self, origin: impl Into<String>) {
        self.0.push(Line { value: None, origin: origin.into() });
    }

    /// What is not known, why, and what is taken in its place.
    pub fn assume(&mut self, value: Option<String>, what: &str, why: &str, taken: &str) {
        let origin = format!("{what} unknown: {why}; {taken} is an assumption");
        self.0.push(Line { value, origin });
    }
}

/// Share of rewrites from which on they are imitated.
pub(super) const REWRITE_MIN: f64 = 0.05;

/// Of a ring with more syncs than writes, the share of its reads and writes with a sync behind it.
pub(super) fn synced_share(group: &FileGroup) -> f64 {
    group.syncs as f64 / group.operations().max(1) as f64
}

/// Whether reads and writes went through more of the file, in order, than a section of both does:
/// that begins again when both together come to the size of the file (3.33).
pub(super) fn goes_further_than_a_mix(group: &FileGroup) -> bool {
    /// By this share of the requests, which is what of them goes to places used before.
    const FURTHER: f64 = 0.08;
    let in_order = group.sequential.is_some_and(|share| share >= 0.9);
    let (Some(reuse), Some(size), Some(block)) = (group.reuse, group.size_bytes, group.block_bytes)
    else {
        return false;
    };
    let operations = group.operations() as f64;
    let places = size as f64 / block.max(1) as f64;
    let share = group.reads.max(group.writes) as f64 / operations.max(1.0);
    let of_mix = share * places.min(operations);
    in_order && group.paths.len() == 1 && 1.0 - reuse - of_mix / operations.max(1.0) > FURTHER
}

/// How often a place is written before the next one, where that is often.
pub(super) fn rewrites(group: &FileGroup) -> Option<(u64, f64)> {
    let share = group.rewrite.filter(|share| *share >= REWRITE_MIN)?;
    let times = whole(1.0 / (1.0 - share).max(1e-3)).min(group.writes.max(1));
    (times > 1).then_some((times, share))
}

use crate::job::cadence;
use crate::job::slice::filled;

/// A sync behind how many writes, where reads between them are synced as well.
pub fn synced_among_reads(group: &FileGroup) -> Option<u64> {
    cadence::among_reads(group.reads, group.writes, group.syncs, filled(group))
}
