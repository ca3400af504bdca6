//! The trial `capture`.

use anyhow::bail;

use super::{Asked, Ground, Outcome, Trial};

/// The trial.
pub struct Capture;

impl Trial for Capture {
    fn name(&self) -> &'static str {
        "capture"
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
