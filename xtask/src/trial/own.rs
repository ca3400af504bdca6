//! The trial `own`: the limits that `takeup pipe` and `takeup backup` report for their own runs.
//!
//! A case is one run with a source, a target, a ring and perhaps compression, a rate limit or other
//! load ([`scene`]). Its truth is measured: the run is repeated with each single change that a user
//! could make, and the change that gains most shows the limit ([`judge`]). The intent of the
//! generator does not count.
//!
//! Not here: runs to tape drives, virtual or real.

mod judge;
mod scene;

use super::{Asked, Ground, Outcome, Trial};
use judge::Measured;
use scene::{Change, Place, Scene};

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
        &[Asked { property: "limit", share: 0.95 }, Asked { property: "advice", share: 0.9 }]
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let scene = Scene::random(&mut ground.random(number));
        let place = Place::new(ground, &scene)?;
        let before = place.run(&scene)?;
        let changes = scene.changes();
        let mut measured = Vec::new();
        for change in changes {
            let document = place.run(&scene.changed(change))?;
            measured.push(Measured { change, seconds: judge::seconds(&document)? });
        }
        // The machine may have changed meanwhile: the case is judged by the second diagnosis, and
        // only if both agree.
        let document = place.run(&scene)?;
        let (first, second) = (judge::seconds(&before)?, judge::seconds(&document)?);
        if (first - second).abs() > 0.15 * first.max(second) + 0.05 {
            anyhow::bail!("the same run took {first:.2} s and {second:.2} s");
        }
        if ground.loud {
            println!("{document:#}");
        }
        let again = |change: Change| judge::seconds(&place.run(&scene.changed(change))?);
        let mut outcome = Outcome { number, case: scene.to_string(), ..Outcome::default() };
        judge::judge(&mut outcome, &document, &measured, &again)?;
        Ok(outcome)
    }
}
