//! The trial `explain`: pipelines of other programs, and the diagnosis of `takeup explain`.
//!
//! The truth of a case is measured: the pipeline runs with each of several single changes (a
//! buffer, a faster stage, no rate, larger blocks), and the change that gains most shows the limit.
//! The intent of the generator does not count: a stage that was meant to be slow may not be.

mod ground;
mod pipelines;

use anyhow::Context as _;
use serde_json::Value;

use super::{Asked, Ground, Outcome, Trial};
use ground::Place;
use pipelines::{ActsOn, Change, Pipeline};

/// A smaller gain counts as none: two equal runs differ by as much.
const GAIN_MIN: f64 = 0.10;
/// A smaller gain need not be proposed, and needs no forecast.
const WORTH_MIN: f64 = 0.15;
/// Changes whose times differ by less count as equal.
const ALIKE: f64 = 0.05;
/// A forecast may be this share below the faster, or above the slower, of two measured runs.
const FORECAST_SHARE: f64 = 0.15;
/// How far a floor may by chance be below the time measured without any waiting.
const FLOOR_SHARE: f64 = 0.10;

const LIMIT: &str = "limit right";
const FLOOR: &str = "no floor below truth";
const FORECAST: &str = "forecast within 15 %";
const GIVEN: &str = "forecast given where a change gains";
const ADVICE: &str = "concrete advice";
const REASON: &str = "a reason where there is no advice";

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
        &[
            Asked { property: LIMIT, share: 0.95 },
            Asked { property: FLOOR, share: 1.0 },
            Asked { property: FORECAST, share: 0.90 },
            Asked { property: GIVEN, share: 0.70 },
            Asked { property: ADVICE, share: 0.60 },
            Asked { property: REASON, share: 1.0 },
        ]
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let mut random = ground.random(number);
        let pipeline = Pipeline::of(number, &mut random);
        let place = Place::new(ground, &pipeline)?;
        let said = place.explained(&pipeline.line)?;
        if ground.loud {
            println!("{said:#}");
        }
        let truth = Truth::measure(&place, &pipeline, &said)?;
        let mut outcome = Outcome {
            number,
            case: pipeline.shown(),
            truth: truth.to_string(),
            said: sentences(&said),
            ..Outcome::default()
        };
        limit(&mut outcome, &said, &truth);
        floor(&mut outcome, &said, &truth);
        forecast(&mut outcome, &place, &said, &truth)?;
        advice(&mut outcome, &said);
        Ok(outcome)
    }
}

/// The measurements.
struct Truth {
    /// The unchanged pipeline, while it was explained.
    seconds: f64,
    changes: Vec<Changed>,
}

/// A change, and how long it took.
struct Changed {
    name: &'static str,
    acts_on: ActsOn,
    is_remedy: bool,
    seconds: f64,
}

impl Truth {
    fn measure(place: &Place, pipeline: &Pipeline, said: &Value) -> anyhow::Result<Truth> {
        let seconds = said["seconds"].as_f64().context("seconds of the explained run")?;
        let mut changes = Vec::new();
        for change in &pipeline.changes {
            let seconds = place.seconds(&change.line)?;
            let Change { name, acts_on, is_remedy, .. } = *change;
            changes.push(Changed { name, acts_on, is_remedy, seconds });
        }
        Ok(Truth { seconds, changes })
    }

    fn best(&self) -> f64 {
        self.changes.iter().map(|change| change.seconds).fold(self.seconds, f64::min)
    }

    /// The time with the best change that does the same work with the same parts.
    fn remedied(&self) -> f64 {
        let remedies = self.changes.iter().filter(|change| change.is_remedy);
        remedies.map(|change| change.seconds).fold(self.seconds, f64::min)
    }

    /// Whether any single change gains.
    fn gains(&self) -> bool {
        self.best() < (1.0 - GAIN_MIN) * self.seconds
    }

    /// Whether a single change gains enough to be worth making.
    fn is_remediable(&self) -> bool {
        self.remedied() < (1.0 - WORTH_MIN) * self.seconds
    }

    /// The subjects of the change that gains most, and of those that gain as much: of all changes,
    /// and of those that a user can make. Without the longer of two stages that take turns a run is
    /// shorter than with a buffer between them; still the turns are what the user can change.
    fn limits(&self) -> Vec<ActsOn> {
        let of = |best: f64| move |change: &&Changed| change.seconds <= (1.0 + ALIKE) * best;
        let remedies = self.changes.iter().filter(|change| change.is_remedy);
        let remedied = remedies.filter(|_| self.is_remediable()).filter(of(self.remedied()));
        self.changes.iter().filter(of(self.best())).chain(remedied).map(|it| it.acts_on).collect()
    }

    /// The time without any waiting between stages, as far as buffers can achieve it.
    fn overlapped(&self) -> f64 {
        let buffers = self.changes.iter().filter(|change| change.acts_on == ActsOn::Waiting);
        buffers.map(|change| change.seconds).fold(self.seconds, f64::min)
    }
}

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as it is {:.2} s", self.seconds)?;
        for Changed { name, acts_on, seconds, .. } in &self.changes {
            write!(f, ", {name} ({acts_on}) {seconds:.2} s")?;
        }
        Ok(())
    }
}

fn findings(said: &Value) -> &[Value] {
    said["findings"].as_array().map_or(&[], Vec::as_slice)
}

fn sentences(said: &Value) -> String {
    let one = |finding: &Value| {
        let parts = ["sentence", "caveat", "gain", "action"].map(|part| finding[part].as_str());
        parts.into_iter().flatten().collect::<Vec<&str>>().join("; ")
    };
    findings(said).iter().map(one).collect::<Vec<String>>().join(" / ")
}

fn limit(outcome: &mut Outcome, said: &Value, truth: &Truth) {
    let rule = findings(said).first().and_then(|first| first["rule"].as_str()).unwrap_or("none");
    let named = said["limit"].as_u64();
    let right = if truth.gains() {
        truth.limits().iter().any(|acts_on| match (acts_on, named) {
            // A program that does several things in turn is the limit, and waits.
            (ActsOn::Waiting, None) => true,
            (ActsOn::Waiting, Some(_)) => {
                let in_turn = ["pipeline.in-turn", "pipeline.small-tape-writes"];
                findings(said).iter().any(|it| in_turn.iter().any(|rule| it["rule"] == *rule))
            }
            (ActsOn::Stage(stage), Some(named)) => *stage == named,
            (ActsOn::Stage(_), None) => false,
        })
    } else {
        // No single change gains: a limit may be named, but no gain.
        said["predicted"].is_null()
    };
    let because = format!("{rule}, stage {named:?}: {}; {truth}", sentences(said));
    outcome.check(LIMIT, right, because.clone());
    let sentence = if named.is_some() { "stage N is the limit" } else { "no single bottleneck" };
    outcome.claim(sentence, right, because);
}

fn floor(outcome: &mut Outcome, said: &Value, truth: &Truth) {
    let Some(floor) = said["longest_stage_seconds"].as_f64() else {
        outcome.check(FLOOR, true, "not known");
        return;
    };
    let measured = truth.overlapped();
    let right = floor >= (1.0 - FLOOR_SHARE) * measured;
    let because = format!("all at once {floor:.2} s, measured {measured:.2} s; {truth}");
    outcome.check(FLOOR, right, because.clone());
    if sentences(said).contains("if all worked at once it would take") {
        outcome.claim("if all worked at once it would take N", right, because);
    }
}

fn forecast(
    outcome: &mut Outcome,
    place: &Place,
    said: &Value,
    truth: &Truth,
) -> anyhow::Result<()> {
    let predicted = &said["predicted"];
    if truth.is_remediable() {
        let because = format!("{}; {truth}", sentences(said));
        outcome.check(GIVEN, !predicted.is_null(), because);
    }
    let (Some(foretold), Some(command)) =
        (predicted["seconds"].as_f64(), predicted["command"].as_str())
    else {
        return Ok(());
    };
    // Two equal runs differ by some percent, which is not an error of a forecast.
    let (one, other) = (place.seconds(command)?, place.seconds(command)?);
    let (fast, slow) = (one.min(other), one.max(other));
    let because =
        format!("{command}: foretold {foretold:.2} s, measured {one:.2} and {other:.2} s; {truth}");
    let is_near = |foretold: f64| {
        foretold >= (1.0 - FORECAST_SHARE) * fast && foretold <= (1.0 + FORECAST_SHARE) * slow
    };
    outcome.check(FORECAST, is_near(foretold), because.clone());
    let gains = fast < (1.0 - ALIKE) * truth.seconds;
    outcome.claim("the change that is proposed gains", gains, because);
    Ok(())
}

fn advice(outcome: &mut Outcome, said: &Value) {
    let has = findings(said).iter().any(|finding| finding["action"].is_string());
    let because = sentences(said);
    outcome.check(ADVICE, has, because.clone());
    if !has {
        let reason = findings(said).iter().any(|it| it["rule"] == "pipeline.no-advice");
        outcome.check(REASON, reason, because);
    }
}
