//! The outcomes of a trial, compared with the requirements.

use std::collections::BTreeMap;
use std::fmt;

use super::{Asked, Outcome};

/// Highest share of false sentences, of all that can be true or false.
const FALSE_SENTENCES: f64 = 0.02;

/// A share: how many of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    right: u64,
    all: u64,
}

impl Count {
    fn add(&mut self, right: bool) {
        self.right += u64::from(right);
        self.all += 1;
    }

    fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.right as f64 / self.all as f64 }
    }
}

/// The verdict of a trial.
pub struct Verdict {
    properties: Vec<(Asked, Count)>,
    sentences: BTreeMap<String, Count>,
    made: u64,
    wanted: u64,
}

impl Verdict {
    /// Counts the outcomes.
    #[must_use]
    pub fn of(asked: &[Asked], outcomes: &[Outcome], wanted: u64) -> Verdict {
        let made = outcomes.iter().filter(|one| one.not_made.is_none()).count() as u64;
        let count = |asked: &Asked| {
            let mut count = Count::default();
            let checks = outcomes.iter().flat_map(|one| &one.checks);
            for check in checks.filter(|check| check.property == asked.property) {
                count.add(check.right);
            }
            (*asked, count)
        };
        let mut sentences: BTreeMap<String, Count> = BTreeMap::new();
        for claim in outcomes.iter().flat_map(|one| &one.claims) {
            sentences.entry(claim.sentence.clone()).or_default().add(claim.is_true);
        }
        Verdict { properties: asked.iter().map(count).collect(), sentences, made, wanted }
    }

    fn all_sentences(&self) -> Count {
        self.sentences.values().fold(Count::default(), |sum, one| Count {
            right: sum.right + one.right,
            all: sum.all + one.all,
        })
    }

    /// Whether every share was reached, with enough cases.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let sentences = self.all_sentences();
        let reached = |(asked, count): &(Asked, Count)| {
            count.all > 0 && count.share() + f64::EPSILON >= asked.share
        };
        self.made >= self.wanted
            && self.properties.iter().all(reached)
            && (sentences.all - sentences.right) as f64 <= FALSE_SENTENCES * sentences.all as f64
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} of {} cases could be made", self.made, self.wanted)?;
        for (asked, count) in &self.properties {
            let reached = if count.share() + f64::EPSILON >= asked.share { "" } else { "  MISSED" };
            writeln!(
                f,
                "{:<44} {:>4} of {:<4} {:>5.1} %, asked {:>3.0} %{reached}",
                asked.property,
                count.right,
                count.all,
                100.0 * count.share(),
                100.0 * asked.share,
            )?;
        }
        let all = self.all_sentences();
        writeln!(f, "false sentences: {} of {}, asked at most 2 %", all.all - all.right, all.all)?;
        for (sentence, count) in &self.sentences {
            writeln!(f, "  {:>4} of {:<4} false  {sentence}", count.all - count.right, count.all)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &[Asked] = &[Asked { property: "limit", share: 0.75 }];

    fn outcomes(wrong: u64, false_sentences: u64) -> Vec<Outcome> {
        (0..8)
            .map(|number| {
                let mut outcome = Outcome { number, ..Outcome::default() };
                outcome.check("limit", number >= wrong, "");
                for sentence in 0..10 {
                    outcome.claim("it is so", number * 10 + sentence >= false_sentences, "");
                }
                outcome
            })
            .collect()
    }

    #[test]
    fn what_is_asked_must_be_reached_in_every_point() {
        assert!(Verdict::of(ASKED, &outcomes(2, 1), 8).is_reached());
        assert!(!Verdict::of(ASKED, &outcomes(3, 0), 8).is_reached());
        assert!(!Verdict::of(ASKED, &outcomes(0, 2), 8).is_reached());
        assert!(!Verdict::of(ASKED, &outcomes(0, 0), 9).is_reached());
        assert!(!Verdict::of(ASKED, &[], 0).is_reached());
    }

    #[test]
    fn a_case_that_could_not_be_made_is_not_among_those_made() {
        let mut all = outcomes(0, 0);
        all.push(Outcome::not_made(8, &anyhow::anyhow!("no fio")));
        let verdict = Verdict::of(ASKED, &all, 9);
        assert!(!verdict.is_reached());
        assert!(verdict.to_string().contains("8 of 9 cases could be made"));
    }
}
