//! The effect of a setting at each level of a load, if it differs, and the effects of conditions
//! that you do not choose.

use base::finding::{Certainty, Finding, Unit};

use super::super::effects::At;
use super::super::told::told_ratio;
use super::super::verdict::the_same;
use super::super::{Effect, Judgement, JudgementOptions, RateVerdict, Sentence, Subject, rules};
use crate::quantities::title;
use crate::record::{Cell, Factor, Level, Role, shown_cell};
use statistics::blocks::Contrast;
use statistics::ratio::differ;

/// The interactions that matter.
pub fn joint_effects(
    factors: &[Factor],
    anchor: &Cell,
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Vec<Sentence> {
    let varied =
        |role: Role| move |factor: &&Factor| factor.role == role && factor.levels.len() > 1;
    let mut found = Vec::new();
    for setting in factors.iter().filter(varied(Role::Setting)) {
        for load in factors.iter().filter(varied(Role::Load)) {
            let joint = Joint { setting, load, anchor, judgement, options };
            found.extend(joint.sentence());
        }
    }
    found
}

/// A setting at its first and last level with each level of a load, all else as in `anchor`.
struct Joint<'a> {
    setting: &'a Factor,
    load: &'a Factor,
    anchor: &'a Cell,
    judgement: &'a Judgement,
    options: &'a JudgementOptions,
}

/// Levels of a load that a sentence has room for.
const LOAD_LEVELS_MAX: usize = 4;

impl Joint<'_> {
    /// The sentence, if all levels of the load together show that the effect depends on them.
    /// Testing only the two levels that lie furthest apart would find something in every fourth
    /// experiment.
    fn sentence(&self) -> Option<Sentence> {
        let (first, last) = (self.setting.levels.first()?, self.setting.levels.last()?);
        let at = |level: &Level| {
            let (from, to) = (self.find(first, level)?, self.find(last, level)?);
            self.judgement.comparer.contrast(&[(1.0, to), (-1.0, from)])
        };
        let effects: Vec<(&Level, Contrast)> =
            self.load.levels.iter().filter_map(|level| Some((level, at(level)?))).collect();
        let contrasts: Vec<Contrast> = effects.iter().map(|(_, effect)| *effect).collect();
        let by_chance = differ(&contrasts)?;
        if by_chance > 1.0 - self.options.confidence {
            return None;
        }
        let told: Vec<String> =
            effects.iter().take(LOAD_LEVELS_MAX).map(|effect| self.told(effect)).collect();
        let text = format!(
            "the effect of {} {} instead of {} depends on the {}: {}",
            self.setting.title(),
            last.shown(&self.setting.name),
            first.shown(&self.setting.name),
            self.load.title(),
            joined(&told),
        );
        let finding = Finding::new(&rules::JOINT_EFFECT, Certainty::Inferred, text);
        Some(Sentence::new(Subject::Finding, finding).settled(RateVerdict::Differs))
    }

    fn find(&self, setting_level: &Level, load_level: &Level) -> Option<usize> {
        // Loads that the anchor does not fix stay at their first levels.
        let mut wanted = self.judgement.recommended.first()?.load.clone();
        wanted.extend(self.anchor.clone());
        wanted.insert(self.setting.name.clone(), setting_level.clone());
        wanted.insert(self.load.name.clone(), load_level.clone());
        self.judgement.cells.iter().position(|cell| cell.cell == wanted)
    }

    fn told(&self, (level, effect): &(&Level, Contrast)) -> String {
        let interval = effect.interval(self.options.confidence);
        let (ratio, between) = told_ratio(effect.ratio(), interval);
        let words = match RateVerdict::of(interval, self.options) {
            RateVerdict::Differs => format!("{ratio} times"),
            RateVerdict::Same => the_same(self.options),
            RateVerdict::NotSettled => "not settled".to_owned(),
        };
        format!("{words} with {}{between}", level.shown(&self.load.name))
    }
}

/// Settings that make some combinations slower and others faster, so that an average means nothing.
pub fn turned(factors: &[Factor], judgement: &Judgement) -> Vec<Sentence> {
    let sentence = |effect: &Effect| {
        let ends = effect.turns_around.as_ref()?;
        let change = &effect.change;
        let told = |at: &At| {
            let (ratio, _) = told_ratio(at.ratio, at.interval);
            format!("{ratio} times with {}", shown_cell(&at.others, factors))
        };
        let text = format!(
            "{} {} instead of {} is slower with some settings and faster with others: {} and {}",
            title(&change.factor),
            change.to.shown(&change.factor),
            change.from.shown(&change.factor),
            told(&ends[0]),
            told(&ends[1]),
        );
        let finding = Finding::new(&rules::JOINT_EFFECT, Certainty::Inferred, text);
        Some(Sentence::new(Subject::Finding, finding).settled(RateVerdict::Differs))
    };
    judgement.effects.iter().filter_map(sentence).collect()
}

fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The effects of the pooled conditions.
pub fn conditions(judgement: &Judgement, options: &JudgementOptions) -> Vec<Sentence> {
    let Some(pooled) = &judgement.pooled else { return Vec::new() };
    let own = judgement
        .effects
        .iter()
        .filter(|effect| effect.is_average() && pooled.over.contains(&effect.change.factor));
    let sentence = |effect: &super::super::Effect| {
        let change = &effect.change;
        let (ratio, between) = told_ratio(effect.ratio, effect.interval);
        let (subject, what) = match effect.verdict {
            RateVerdict::Differs => {
                let way = if effect.ratio > 1.0 { "faster" } else { "slower" };
                (Subject::Finding, format!("is {way}"))
            }
            RateVerdict::Same => (Subject::Finding, format!("is {}", the_same(options))),
            RateVerdict::NotSettled => {
                (Subject::Doubt, "may be faster, slower or the same".to_owned())
            }
        };
        let text = format!(
            "{} {} instead of {} {what}, on average over everything else: {ratio} times the \
             rate{between}",
            title(&change.factor),
            change.to.shown(&change.factor),
            change.from.shown(&change.factor),
        );
        let finding = Finding::new(&rules::CONDITION, Certainty::Inferred, text).with_number(
            "ratio",
            effect.ratio,
            Unit::Ratio,
        );
        Sentence::new(subject, finding).settled(effect.verdict)
    };
    own.map(sentence).collect()
}
