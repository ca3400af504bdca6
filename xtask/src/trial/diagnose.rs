//! The trial `diagnose`: a backup line on a disk and a drive of known truth, and what `takeup
//! diagnose` says of it without running it.
//!
//! The truth of a case is measured: the line runs as it is, and with each of several single
//! changes. The change that gains most shows the limit. Then the change that was proposed is made,
//! and its gain compared with the interval that was given.

mod ground;
mod scene;

use serde_json::Value;

use super::{Asked, Ground, Outcome, Trial};
use ground::Place;
use scene::{ActsOn, Scene};

/// A smaller gain counts as none: two equal runs differ by as much.
const GAIN_MIN: f64 = 1.10;
/// Changes whose times differ by less count as equal.
const ALIKE: f64 = 1.07;

const LIMIT: &str = "first limit right";
const GAIN: &str = "interval holds the gain";
const KNOWN: &str = "an answer";

/// The trial.
pub struct Diagnose;

impl Trial for Diagnose {
    fn name(&self) -> &'static str {
        "diagnose"
    }

    fn cases(&self) -> u64 {
        200
    }

    fn asked(&self) -> &'static [Asked] {
        &[
            Asked { property: LIMIT, share: 0.95 },
            Asked { property: GAIN, share: 0.90 },
            Asked { property: KNOWN, share: 0.95 },
        ]
    }

    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome> {
        let scene = Scene::random(&mut ground.random(number));
        let place = Place::new(ground, &scene)?;
        let said = place.diagnosed(&scene.line())?;
        if ground.loud {
            println!("{said:#}");
        }
        let truth = Truth::measure(&place, &scene)?;
        let mut outcome = Outcome {
            number,
            case: scene.to_string(),
            truth: truth.to_string(),
            said: sentences(&said),
            ..Outcome::default()
        };
        let made = gain(&mut outcome, &place, &said, &truth)?;
        limit(&mut outcome, &said, &truth, made);
        Ok(outcome)
    }
}

/// Seconds of the line, and of each change.
struct Truth {
    seconds: f64,
    changes: Vec<(&'static str, ActsOn, f64)>,
}

impl Truth {
    fn measure(place: &Place, scene: &Scene) -> anyhow::Result<Truth> {
        let seconds = place.seconds(&scene.line())?;
        let mut changes = Vec::new();
        for change in scene.changes() {
            let taken = place.changed(&change)?;
            changes.push((change.name, change.acts_on, taken));
        }
        // The line once more: the slower of two runs of a machine that others use says little.
        let again = place.seconds(&scene.line())?;
        Ok(Truth { seconds: seconds.min(again), changes })
    }

    /// What the changes act on that gain most, and those that gain as much.
    fn limits(&self) -> Vec<ActsOn> {
        // `takeup backup` with a compressor changes two stations, the reading and the compressor
        // (its gzip is another library's): which of them it was, the other changes say.
        let compresses = self.changes.iter().any(|it| it.1 == ActsOn::Compressor);
        let single = |it: &&(&str, ActsOn, f64)| !compresses || it.1 != ActsOn::AtOnce;
        let best = self.best(&self.changes.iter().collect::<Vec<_>>());
        let rest = self.best(&self.changes.iter().filter(single).collect::<Vec<_>>());
        if best.contains(&ActsOn::AtOnce) { [best, rest].concat() } else { best }
    }

    /// What those of some changes act on that gain most: of all, and of those that a user can make.
    fn best(&self, changes: &[&(&'static str, ActsOn, f64)]) -> Vec<ActsOn> {
        let best = changes.iter().map(|it| it.2).fold(f64::INFINITY, f64::min);
        let remedies = || changes.iter().filter(|it| it.1.is_remedy());
        let remedied = remedies().map(|it| it.2).fold(f64::INFINITY, f64::min);
        let free = changes.iter().filter(|it| it.2 <= ALIKE * best);
        let gains = remedied * GAIN_MIN < self.seconds;
        let made = remedies().filter(|it| gains && it.2 <= ALIKE * remedied);
        free.chain(made).map(|it| it.1).collect()
    }

    fn remedies_gain(&self) -> bool {
        self.changes.iter().any(|it| it.1.is_remedy() && it.2 * GAIN_MIN < self.seconds)
    }
}

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as it is {:.2} s", self.seconds)?;
        for (name, _, seconds) in &self.changes {
            write!(f, ", {name} {seconds:.2} s")?;
        }
        Ok(())
    }
}

fn findings(said: &Value) -> &[Value] {
    said["findings"].as_array().map_or(&[], Vec::as_slice)
}

fn sentences(said: &Value) -> String {
    let one = |finding: &Value| {
        let parts = ["sentence", "gain", "command"].map(|part| finding[part].as_str());
        parts.into_iter().flatten().collect::<Vec<&str>>().join("; ")
    };
    let all: Vec<String> = findings(said).iter().map(one).collect();
    let now = said["bytes_per_second"]["value"].as_f64().unwrap_or(0.0) / 1e6;
    let seconds = said["seconds"].as_f64().unwrap_or(0.0);
    format!("{now:.1} MB/s, found in {seconds:.1} s; {}", all.join(" / "))
}

/// `made` is the gain of the change that was proposed, which need not be among those of the truth:
/// a compressor at another level.
fn limit(outcome: &mut Outcome, said: &Value, truth: &Truth, made: Option<f64>) {
    let rule = findings(said).first().and_then(|first| first["rule"].as_str()).unwrap_or("none");
    let named: &[ActsOn] = match rule {
        "diagnose.read-ahead" => &[ActsOn::ReadAhead],
        "diagnose.at-once" => &[ActsOn::AtOnce],
        "diagnose.small-files" => &[ActsOn::AtOnce, ActsOn::Source],
        "diagnose.source" => &[ActsOn::Source],
        "diagnose.compressor" => &[ActsOn::Compressor, ActsOn::NoCompressor],
        "diagnose.pace" => &[ActsOn::Pace],
        "diagnose.blocks" => &[ActsOn::Blocks],
        "diagnose.turns" => &[ActsOn::Turns],
        "diagnose.drive" | "diagnose.target" => &[ActsOn::Target],
        _ => &[],
    };
    let limits = truth.limits();
    let is_right = limits.iter().any(|limit| named.contains(limit));
    // Where no change of the user's gains, none may be proposed.
    let proposes = said["steps"].as_array().is_some_and(|steps| !steps.is_empty());
    let right = is_right
        && (!proposes || truth.remedies_gain() || made.is_some_and(|gain| gain >= GAIN_MIN));
    let because = format!("{rule}: {}; {truth}", outcome.said.clone());
    outcome.check(KNOWN, !named.is_empty(), because.clone());
    outcome.check(LIMIT, right, because.clone());
    outcome.claim(rule, right, because);
}

/// Makes the first change that was proposed; its gain.
fn gain(
    outcome: &mut Outcome,
    place: &Place,
    said: &Value,
    truth: &Truth,
) -> anyhow::Result<Option<f64>> {
    let step = said["steps"].as_array().and_then(|steps| steps.first());
    let Some((step, command)) = step.and_then(|it| Some((it, it["command"].as_str()?))) else {
        return Ok(None);
    };
    let taken = place.made(command)?;
    let gain = truth.seconds / taken;
    let [low, high] = ["low", "high"].map(|end| step["gain"][end].as_f64().unwrap_or(0.0));
    let right = gain >= low && gain <= high;
    let because = format!("{command}: {gain:.2} times, {low:.2} to {high:.2} was said; {truth}");
    outcome.check(GAIN, right, because);
    Ok(Some(gain))
}
