//! The trial `explain`.

use anyhow::bail;

use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Explain;

impl Trial for Explain {
    fn name(&self) -> &'static str {
        "explain"
    }

    fn cases(&self) -> u64 {
        100
    }

    fn asked(&self) -> &'static [Asked] {
        &[]
    }

    fn run(&self, _ground: &Ground, _number: u64) -> anyhow::Result<Outcome> {
        bail!("no case yet")
    }
}
