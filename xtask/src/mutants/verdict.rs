//! The outcomes of a subject, compared with the requirement for its tests.

use std::fmt;

use super::SURVIVORS;
use super::mutant::Mutant;
use super::outcome::{self, Fate, Outcome};
use super::subject::Subject;
use super::survivors::Survivors;

/// Tests must detect at least this share of the mutants that compile and change something.
const SHARE: f64 = 0.95;

/// The verdict on the tests of a subject.
pub struct Verdict {
    subject: Subject,
    picked: usize,
    caught: usize,
    timeouts: usize,
    unviable: usize,
    /// The line and the name of each mutant that no test detected.
    missed: Vec<(usize, String)>,
    /// Undetected too, with the reason why it cannot be detected.
    without_effect: Vec<(String, String)>,
    /// Listed as without effect, but a test detected them.
    listed_and_caught: Vec<String>,
}

impl Verdict {
    /// Counts the outcomes of the picked mutants.
    #[must_use]
    pub fn of(
        subject: Subject,
        picked: &[Mutant],
        outcomes: &[Outcome],
        listed: &Survivors,
    ) -> Verdict {
        let mut verdict = Verdict {
            subject,
            picked: picked.len(),
            caught: 0,
            timeouts: 0,
            unviable: 0,
            missed: Vec::new(),
            without_effect: Vec::new(),
            listed_and_caught: Vec::new(),
        };
        for mutant in picked {
            let reason = listed.reason(&mutant.name);
            let name = mutant.name.clone();
            match outcome::latest(outcomes, &mutant.name).map(|outcome| outcome.fate) {
                None => {}
                Some(Fate::Unviable) => verdict.unviable += 1,
                Some(Fate::Missed) => match reason {
                    Some(reason) => verdict.without_effect.push((name, reason.to_string())),
                    None => verdict.missed.push((mutant.line, name)),
                },
                Some(fate) => {
                    verdict.caught += 1;
                    verdict.timeouts += usize::from(fate == Fate::Timeout);
                    if reason.is_some() {
                        verdict.listed_and_caught.push(name);
                    }
                }
            }
        }
        verdict
    }

    fn tried(&self) -> usize {
        self.caught + self.missed.len() + self.without_effect.len() + self.unviable
    }

    /// Share of those that compile and have an effect.
    fn share(&self) -> f64 {
        let all = self.caught + self.missed.len();
        if all == 0 { 0.0 } else { self.caught as f64 / all as f64 }
    }

    /// Whether all picked mutants were tried, enough were detected, and the list is correct.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.picked > 0
            && self.tried() == self.picked
            && self.share() + f64::EPSILON >= SHARE
            && self.listed_and_caught.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = if self.is_reached() { "" } else { "  NOT REACHED" };
        writeln!(
            f,
            "\n{}: {} of {} mutants tried, {} of {} caught ({:.1} %, asked {:.0} %){reached}",
            self.subject,
            self.tried(),
            self.picked,
            self.caught,
            self.caught + self.missed.len(),
            100.0 * self.share(),
            100.0 * SHARE,
        )?;
        writeln!(
            f,
            "  {} did not compile, {} change nothing observable, {} were seen by a time limit only",
            self.unviable,
            self.without_effect.len(),
            self.timeouts,
        )?;
        for (line, name) in &self.missed {
            writeln!(f, "  no test saw  {name} (line {line})")?;
        }
        for (name, reason) in &self.without_effect {
            writeln!(f, "  no effect    {name}\n               {reason}")?;
        }
        for name in &self.listed_and_caught {
            writeln!(f, "  {SURVIVORS} lists it as without effect, and a test saw it: {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(count: usize) -> Vec<Mutant> {
        (0..count).map(|number| Mutant::at(&format!("mutant {number}"), number + 1)).collect()
    }

    fn outcomes(fates: &[Fate]) -> Vec<Outcome> {
        let outcome = |(number, fate): (usize, &Fate)| Outcome {
            mutant: format!("mutant {number}"),
            fate: *fate,
            by: None,
            unsteady: vec![],
            seconds: 1.0,
        };
        fates.iter().enumerate().map(outcome).collect()
    }

    fn verdict(fates: &[Fate], picked_count: usize, listed: &str) -> Verdict {
        let listed = Survivors::parse(listed).unwrap();
        Verdict::of(Subject::Flow, &picked(picked_count), &outcomes(fates), &listed)
    }

    #[test]
    fn ninety_five_of_a_hundred_are_asked_of_those_that_compile() {
        let mut fates = vec![Fate::Caught; 18];
        fates.extend([Fate::Timeout, Fate::Missed, Fate::Unviable, Fate::Unviable]);
        let reached = verdict(&fates, 22, "");
        assert!(reached.is_reached());
        let text = reached.to_string();
        assert!(text.contains("22 of 22 mutants tried, 19 of 20 caught (95.0 %"), "{text}");
        assert!(text.contains("2 did not compile"), "{text}");
        assert!(text.contains("1 were seen by a time limit only"), "{text}");
        assert!(text.contains("no test saw  mutant 19 (line 20)"), "{text}");
        fates[0] = Fate::Missed;
        let text = verdict(&fates, 22, "").to_string();
        assert!(text.contains("(90.0 %, asked 95 %)  NOT REACHED"), "{text}");
    }

    #[test]
    fn what_was_not_tried_is_not_passed() {
        assert!(!verdict(&[Fate::Caught; 20], 21, "").is_reached());
        assert!(!verdict(&[], 0, "").is_reached());
        assert!(!verdict(&[Fate::Unviable; 3], 3, "").is_reached());
    }

    #[test]
    fn a_listed_survivor_does_not_count_and_must_survive() {
        let list =
            "[[survivor]]\nsubject = 'flow'\nmutant = 'mutant 1'\nreason = 'the order is free'\n";
        let survived = verdict(&[Fate::Caught, Fate::Missed], 2, list);
        assert!(survived.is_reached());
        assert!(survived.to_string().contains("the order is free"));
        let seen = verdict(&[Fate::Caught, Fate::Caught], 2, list);
        assert!(!seen.is_reached());
        assert!(seen.to_string().contains("a test saw it: mutant 1"));
    }
}
