//! Which block size matters: that of the reads from the disk, or that of the writes.
//!
//! `dd bs=` raises both at once, so it cannot separate the disk from the adapter. Crossed, each
//! block size has an effect of its own, on average over the other. There is a sentence only if both
//! effects are settled: an effect that may be anything does not rule out the other.

use base::finding::{Certainty, Finding, Unit};

use super::super::told::told_ratio;
use super::super::verdict::the_same;
use super::super::{Effect, Judgement, JudgementOptions, RateVerdict, Sentence, Subject, rules};
use crate::quantities::title;

const READS: &str = "read_block_bytes";
const WRITES: &str = "block_bytes";

/// The sentence, if both were varied and both are settled.
pub fn which_matters(judgement: &Judgement, options: &JudgementOptions) -> Option<Sentence> {
    let effect = |name: &str| {
        let mut own = judgement.effects.iter();
        own.find(|effect| effect.is_average() && effect.change.factor == name)
    };
    let (reads, writes) = (effect(READS)?, effect(WRITES)?);
    let verdict = match (reads.verdict, writes.verdict) {
        (RateVerdict::NotSettled, _) | (_, RateVerdict::NotSettled) => return None,
        (RateVerdict::Same, RateVerdict::Same) => "neither block size matters",
        (RateVerdict::Differs, RateVerdict::Same) => {
            "the disk's block size matters, that of the tape does not"
        }
        (RateVerdict::Same, RateVerdict::Differs) => {
            "the tape's block size matters, that of the disk does not"
        }
        (RateVerdict::Differs, RateVerdict::Differs) => "both block sizes matter",
    };
    let told = |effect: &Effect| {
        let change = &effect.change;
        let (ratio, between) = told_ratio(effect.ratio, effect.interval);
        let what = match effect.verdict {
            RateVerdict::Same => the_same(options),
            _ => format!("{ratio} times the rate"),
        };
        format!(
            "{} {} instead of {} is {what}{between}",
            title(&change.factor),
            change.to.shown(&change.factor),
            change.from.shown(&change.factor),
        )
    };
    let text = format!(
        "{verdict}: {}, {}, each on average over everything else",
        told(reads),
        told(writes)
    );
    let finding = Finding::new(&rules::TWO_BLOCK_SIZES, Certainty::Inferred, text)
        .with_number("reads", reads.ratio, Unit::Ratio)
        .with_number("writes", writes.ratio, Unit::Ratio);
    let same = reads.verdict == RateVerdict::Same && writes.verdict == RateVerdict::Same;
    let verdict = if same { RateVerdict::Same } else { RateVerdict::Differs };
    Some(Sentence::new(Subject::Finding, finding).settled(verdict))
}
