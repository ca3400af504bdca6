//! The trial `tape`.

use anyhow::bail;

use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Tape;

impl Trial for Tape {
    fn name(&self) -> &'static str {
        "tape"
    }

    fn cases(&self) -> u64 {
        20
    }

    fn asked(&self) -> &'static [Asked] {
        &[]
    }

    fn run(&self, _ground: &Ground, _number: u64) -> anyhow::Result<Outcome> {
        bail!("no case yet")
    }
}
