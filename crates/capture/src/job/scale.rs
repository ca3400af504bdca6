//! How much of the load a job repeats.

use crate::job::extent;
use crate::job::group::FileGroup;
use crate::job::limits::JobLimits;

/// By how much a job is smaller than what was captured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Share of the operations, at most 1.
    pub share: f64,
    /// Share of the size of files, at most 1.
    pub size_share: f64,
    /// Share of the operations of a part that one section has.
    pub slice: f64,
}

impl Scale {
    /// What keeps a job within its limits.
    pub fn of(groups: &[FileGroup], seconds: f64, limits: Option<JobLimits>) -> Scale {
        let Some(limits) = limits else { return Scale { share: 1.0, size_share: 1.0, slice: 1.0 } };
        let operations: u64 = groups.iter().map(FileGroup::operations).sum();
        let share = (limits.operations as f64 / operations.max(1) as f64)
            .min(limits.seconds / seconds.max(1e-3))
            .min(1.0);
        let taken = |group: &FileGroup| {
            let each = extent::size_of(group, share).0;
            each.saturating_mul(group.names.len() as u64)
        };
        let all = groups.iter().map(taken).fold(0, u64::saturating_add);
        let size_share = (limits.file_bytes as f64 / all.max(1) as f64).min(1.0);
        Scale { share, size_share, slice: 1.0 }
    }
}
