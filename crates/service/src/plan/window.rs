//! Whether a plan fits into the available time, and what would make it fit.

use model::plan::Plan;
use model::plan::alternatives::{Alternative, Effort};
use model::plan::window::Needs;

/// The available time, and what is needed to end within it.
#[derive(Clone, Copy, Debug)]
pub struct TimeWindow {
    /// The available time, in seconds.
    pub seconds: f64,
    /// What would be enough, with all else as requested.
    pub needs: Needs,
}

impl TimeWindow {
    /// Whether a plan ends within that time.
    pub fn fits(&self, plan: &Plan) -> bool {
        plan.seconds <= self.seconds
    }

    /// The names of the plans of `list` that fit and need this effort.
    pub fn ways<'a>(&self, list: &'a [Alternative], effort: Effort) -> Vec<&'a str> {
        let fitting = list.iter().filter(|one| one.effort == effort && self.fits(&one.plan));
        fitting.map(|one| &*one.name).collect()
    }
}
