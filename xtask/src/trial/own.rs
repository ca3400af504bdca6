//! The trial `own`.

use anyhow::bail;

use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Own;

impl Trial for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn cases(&self) -> u64 {
        60
    }

    fn asked(&self) -> &'static [Asked] {
        &[]
    }

    fn run(&self, _ground: &Ground, _number: u64) -> anyhow::Result<Outcome> {
        bail!("no case yet")
    }
}
