//! Spells: when a finding held. Findings of a rule in consecutive intervals are one spell, even
//! after a short pause.

use std::borrow::Cow;

use base::finding::{Finding, RuleId, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// After a pause of more intervals, a new spell begins.
const SILENT_INTERVALS: f64 = 5.0;
/// Maximum number of spells of a device per rule; if there are more, the two nearest ones are
/// joined.
const SPELLS_MAX: usize = 64;

/// A time in which a finding about a device held.
#[derive(Clone, Debug, PartialEq)]
pub struct Spell {
    /// The beginning of the first interval, in seconds since the beginning of the record.
    pub began_seconds: f64,
    /// The end of the last one.
    pub ended_seconds: f64,
    /// Intervals with the finding.
    pub spoken: u64,
    /// Intervals from the first to the last one.
    pub intervals: u64,
    /// The finding in the interval in which the device moved the most.
    pub finding: Finding,
    /// The ranges of the numbers behind it, over all intervals.
    pub numbers: Vec<NumberRange>,
    /// How much the device moved in the interval of `finding`.
    moved: f64,
    /// The number of the last interval.
    last: u64,
}

/// The range of a number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberRange {
    pub name: Cow<'static, str>,
    pub unit: Unit,
    pub least: f64,
    pub most: f64,
}

/// The spells of a device so far.
#[derive(Default)]
pub(super) struct Spells {
    spells: Vec<Spell>,
    interval: u64,
}

impl Spells {
    /// Adds the findings of an interval; `moved` is how much the device moved in it.
    pub(super) fn hear(&mut self, findings: &[Finding], end: f64, seconds: f64, moved: f64) {
        self.interval += 1;
        for finding in findings {
            let own = |spell: &Spell| spell.finding.rule == finding.rule;
            let at = self.spells.iter().rposition(own);
            let soon = |at: &usize| {
                let silent = end - seconds - self.spells[*at].ended_seconds;
                silent <= SILENT_INTERVALS * seconds
            };
            match at.filter(soon) {
                Some(at) => self.spells[at].goes_on(finding, self.interval, end, moved),
                None => {
                    let mut spell = Spell::new(finding, end - seconds, end, moved);
                    spell.last = self.interval;
                    self.spells.push(spell);
                    self.thin(&finding.rule);
                }
            }
        }
    }

    /// Joins the two nearest spells of a rule if there are too many.
    fn thin(&mut self, rule: &RuleId) {
        let own: Vec<usize> =
            (0..self.spells.len()).filter(|at| self.spells[*at].finding.rule == *rule).collect();
        if own.len() <= SPELLS_MAX {
            return;
        }
        let gap = |pair: &&[usize]| {
            self.spells[pair[1]].began_seconds - self.spells[pair[0]].ended_seconds
        };
        let nearest = own.windows(2).min_by(|a, b| gap(a).total_cmp(&gap(b)));
        let Some(&[first, second]) = nearest else { return };
        let later = self.spells.remove(second);
        self.spells[first].join(later);
    }

    pub(super) fn finish(self) -> Vec<Spell> {
        let mut spells = self.spells;
        spells.sort_by(|a, b| a.began_seconds.total_cmp(&b.began_seconds));
        spells
    }
}

impl Spell {
    fn new(finding: &Finding, began_seconds: f64, ended_seconds: f64, moved: f64) -> Spell {
        let range = |number: &base::finding::Number| NumberRange {
            name: number.name.clone(),
            unit: number.unit,
            least: number.value,
            most: number.value,
        };
        Spell {
            began_seconds,
            ended_seconds,
            spoken: 1,
            intervals: 1,
            finding: finding.clone(),
            numbers: finding.numbers.iter().map(range).collect(),
            moved,
            last: 0,
        }
    }

    fn goes_on(&mut self, finding: &Finding, interval: u64, end: f64, moved: f64) {
        // A rule may have findings about two directions in one interval.
        self.spoken += u64::from(interval > self.last);
        self.intervals += interval - self.last;
        self.last = interval;
        self.ended_seconds = end;
        let said = Spell::new(finding, end, end, moved);
        self.take_numbers(&said.numbers);
        if moved > self.moved {
            (self.finding, self.moved) = (finding.clone(), moved);
        }
    }

    fn join(&mut self, later: Spell) {
        self.spoken += later.spoken;
        self.intervals += later.last - self.last;
        self.last = later.last;
        self.ended_seconds = later.ended_seconds;
        self.take_numbers(&later.numbers);
        if later.moved > self.moved {
            (self.finding, self.moved) = (later.finding, later.moved);
        }
    }

    fn take_numbers(&mut self, numbers: &[NumberRange]) {
        for number in numbers {
            match self.numbers.iter_mut().find(|known| known.name == number.name) {
                Some(known) => {
                    known.least = known.least.min(number.least);
                    known.most = known.most.max(number.most);
                }
                None => self.numbers.push(number.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::finding::Certainty;

    use super::*;
    use crate::rules;

    fn said(length: f64) -> Finding {
        Finding::new(&rules::QUEUE_FULL, Certainty::Measured, format!("{length} in flight"))
            .with_number("in flight", length, Unit::Count)
    }

    #[test]
    fn what_is_said_again_soon_is_one_spell_and_later_another() {
        let mut spells = Spells::default();
        // Findings in the seconds 3, 4 and 8, a pause of 11, and one more.
        for second in 1..=20 {
            let spoken = [(3, 30.0), (4, 32.0), (8, 31.0), (20, 29.0)];
            let finding = spoken.iter().find(|(at, _)| *at == second).map(|(_, it)| said(*it));
            spells.hear(finding.as_slice(), f64::from(second), 1.0, f64::from(second));
        }
        let spells = spells.finish();
        let told = |it: &Spell| (it.began_seconds, it.ended_seconds, it.spoken, it.intervals);
        assert_eq!(
            spells.iter().map(told).collect::<Vec<_>>(),
            [(2.0, 8.0, 3, 6), (19.0, 20.0, 1, 1)]
        );
        // The words of the busiest interval, and the numbers of all.
        assert_eq!(spells[0].finding.what, "31 in flight");
        let range = &spells[0].numbers[0];
        assert_eq!((&*range.name, range.least, range.most), ("in flight", 30.0, 32.0));
    }

    #[test]
    fn a_rule_that_speaks_every_now_and_then_does_not_fill_the_memory() {
        let mut spells = Spells::default();
        for second in 0..10_000 {
            let finding = (second % 10 == 0).then(|| said(1.0));
            spells.hear(finding.as_slice(), f64::from(second + 1), 1.0, 1.0);
        }
        let spells = spells.finish();
        assert_eq!(spells.len(), SPELLS_MAX);
        assert_eq!(spells.iter().map(|it| it.spoken).sum::<u64>(), 1000);
        for spell in &spells {
            let seconds = spell.ended_seconds - spell.began_seconds;
            assert_eq!(spell.intervals as f64, seconds, "{spell:?}");
        }
    }
}
