//! Sentences on runs that tune one setting: a report says the same as [`advice`], for the smallest
//! difference that the user considers worth a change.

use super::advice::{Advice, advice};
use super::told::told_ratio;
use super::{
    Judgement, JudgementOptions, RateVerdict, Sentence, Subject, rules, typed::SettingToType,
};
use crate::quantities::title;
use crate::record::{Factor, Level, RunRecord};
use base::finding::{Certainty, Finding, Unit};

impl Advice {
    /// The level to set, which may be the one in force; `None` if that is not settled. It is the
    /// level in force if another one is shown to be better by at most `worth`, a share.
    pub fn worth_setting(&self, worth: f64) -> Option<&Level> {
        if self.gain.verdict == RateVerdict::Differs && self.gain_most() <= worth {
            return Some(&self.present);
        }
        self.recommended.as_ref()
    }

    /// Upper bound on the gain, as a share.
    pub fn gain_most(&self) -> f64 {
        self.gain.interval.map_or(f64::INFINITY, |interval| interval.high - 1.0)
    }
}

/// What to set, if the one varied factor has a level in force, the user gave a smallest difference,
/// and the answer is not just the fastest level. The answer may be nothing, since no run of the
/// level in force completed; a lower level that is as fast; or the level in force, since other
/// levels are not worth the change.
pub(super) fn instead(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Option<Sentence> {
    let worth = options.worth?;
    let mut varied = factors.iter().filter(|it| it.levels.len() > 1 && it.present.is_some());
    let factor = varied.next().filter(|_| varied.next().is_none())?;
    let in_force = factor.present.as_ref()?;
    let name = title(&factor.name);
    let shown = |level: &Level| level.shown(&factor.name);
    let Some(advice) = advice(judgement, factor, runs, options) else {
        let text = format!(
            "{name}: not settled: no run of {}, which is in force, has ended",
            shown(in_force)
        );
        let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
        return Some(Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled));
    };
    let (gain, between) = told_ratio(advice.gain.ratio, advice.gain.interval);
    let to = advice.worth_setting(worth)?;
    let (text, verdict) = if *to == advice.present {
        if advice.gain.verdict != RateVerdict::Differs {
            return None;
        }
        let better = shown(advice.recommended.as_ref().unwrap_or(&advice.fastest));
        let text = format!(
            "{name}: keep {}: {better} has {gain} times its rate{between}, less than the {:.0} % \
             that is worth a change",
            shown(to),
            worth * 100.0
        );
        (text, RateVerdict::Same)
    } else if advice.gain.verdict == RateVerdict::Same {
        let text = format!(
            "{name}: {} is as fast as {}, which is in force, and costs others less: {gain} \
             times{between}",
            shown(to),
            shown(&advice.present)
        );
        (text, RateVerdict::Same)
    } else {
        return None;
    };
    let finding = Finding::new(&rules::SETTING, Certainty::Inferred, text);
    let finding = finding.with_number("gain", advice.gain.ratio, Unit::Ratio);
    let change = (*to != advice.present).then(|| SettingToType {
        factor: factor.name.clone(),
        from: advice.present.clone(),
        to: to.clone(),
    });
    Some(Sentence { change, ..Sentence::new(Subject::Set, finding).settled(verdict) })
}

#[cfg(test)]
mod tests {
    use super::super::{Judgement, JudgementOptions, judge};
    use super::*;

    const KIB: [u64; 3] = [64 << 10, 128 << 10, 1 << 20];

    /// Twelve runs of each window at these rates, and the bytes that each fetches for a random
    /// read; the second window is in force.
    fn judged(
        rates: [f64; 3],
        worth: Option<f64>,
        ended: [bool; 3],
    ) -> (Judgement, Option<Advice>, Vec<String>) {
        let mut runs = Vec::new();
        for repeat in 1..=12 {
            for (place, (window, rate)) in KIB.into_iter().zip(rates).enumerate() {
                let scatter = 0.001 * ((repeat * 5 + place as u64 * 3) % 7) as f64;
                let mut run = RunRecord {
                    cell: [("read_ahead_bytes".to_owned(), Level::Number(window))].into(),
                    repeat,
                    bytes: rate as u64,
                    seconds: 1.0 + scatter,
                    ..RunRecord::default()
                };
                let fetched = (window as f64) * (1.0 + 0.001 * (repeat % 5) as f64);
                run.measures.insert("random_read_device_bytes".to_owned(), fetched);
                if !ended[place] {
                    run.cut_after_seconds = Some(1.0);
                    (run.bytes, run.seconds) = (0, 0.0);
                    run.error = Some("cut".to_owned());
                }
                runs.push(run);
            }
        }
        let present = Some(Level::Number(KIB[1]));
        let levels = KIB.map(Level::Number).to_vec();
        let factor = Factor { present, ..Factor::new("read_ahead_bytes", levels) };
        let options = JudgementOptions { worth, ..JudgementOptions::default() };
        let judgement = judge(std::slice::from_ref(&factor), &runs, &options);
        let advice = advice(&judgement, &factor, &runs, &options);
        let told = judgement.sentences.iter().filter(|it| it.subject <= Subject::Gain);
        let told = told.map(|it| it.text.clone()).collect();
        (judgement, advice, told)
    }

    /// A report recommends what `tune` would set, for each kind of answer.
    #[test]
    fn a_report_says_what_tune_does() {
        for rates in [
            [1e9, 1e9, 1e9],
            [1e9, 1e9, 1.035e9],
            [1e9, 1e9, 1.5e9],
            [0.5e9, 1e9, 1e9],
            [0.5e9, 1e9, 0.5e9],
        ] {
            let worth = 0.05;
            let (judgement, advice, told) = judged(rates, Some(worth), [true; 3]);
            let advice = advice.unwrap();
            let to_set = advice.worth_setting(worth).filter(|level| **level != advice.present);
            let changes: Vec<&Level> =
                judgement.sentences.iter().filter_map(|it| Some(&it.change.as_ref()?.to)).collect();
            let changes: Vec<&Level> =
                changes.into_iter().filter(|to| **to != advice.present).collect();
            assert_eq!(changes, Vec::from_iter(to_set), "{rates:?}: {told:?}");
        }
    }

    #[test]
    fn a_lower_level_that_is_as_good() {
        let (_, _, told) = judged([1e9, 1e9, 1e9], Some(0.05), [true; 3]);
        let text = "read-ahead: 64 KiB is as fast as 128 KiB, which is in force, and costs others \
                    less: 1.000 times (0.99";
        assert!(told[0].starts_with(text), "{told:?}");
        // Without a smallest difference, the level in force is kept as before.
        let (_, _, told) = judged([1e9, 1e9, 1e9], None, [true; 3]);
        assert!(told[0].contains("keep 128 KiB"), "{told:?}");
    }

    #[test]
    fn what_is_not_worth_it_is_kept() {
        let (judgement, _, told) = judged([1e9, 1e9, 1.035e9], Some(0.05), [true; 3]);
        assert!(told[0].starts_with("read-ahead: keep 128 KiB: 1 MiB has 1.03"), "{told:?}");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(judgement.sentences.iter().all(|it| it.typed.is_empty()));
        let (_, _, told) = judged([1e9, 1e9, 1.035e9], Some(0.01), [true; 3]);
        assert!(told[0].starts_with("read-ahead: 1 MiB"), "{told:?}");
    }

    #[test]
    fn without_the_level_in_force_nothing_is_said_of_what_to_set() {
        let (judgement, advice, told) = judged([1e9, 1e9, 1.5e9], Some(0.05), [true, false, true]);
        assert_eq!(advice, None);
        assert!(told.is_empty(), "{told:?}");
        let doubt = "read-ahead: not settled: no run of 128 KiB, which is in force, has ended";
        assert!(judgement.sentences.iter().any(|it| it.text == doubt), "{judgement:?}");
    }
}
