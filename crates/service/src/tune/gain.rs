//! The gain of a setting: the recommended level, or why there is none.

use base::rounding::Rounding;
use experiment::judgement::{Advice, Judgement, Paid, RateVerdict};
use experiment::record::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of runs over the levels of one setting.
#[derive(Debug)]
pub struct LevelGain<'a> {
    /// The judgement of all runs.
    pub judgement: &'a Judgement,
    /// The advice for the setting.
    pub advice: &'a Advice,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Formats a level for people.
    pub shown: fn(&Level) -> String,
}

impl LevelGain<'_> {
    /// The recommended level, possibly the present one; `None` if that is not settled.
    pub fn recommended(&self) -> Option<&Level> {
        self.advice.worth_setting(self.worth)
    }

    /// The recommended level, if it differs from the present one.
    pub fn to_apply(&self) -> Option<&Level> {
        self.recommended().filter(|level| **level != self.advice.present)
    }

    /// For people.
    pub fn words(&self) -> String {
        let gain = self.advice.gain;
        let digits = Rounding::of(gain.interval.map(|interval| (interval.low, interval.high)));
        let interval = gain.interval.map_or("without an interval".to_owned(), |it| {
            format!("95 % interval {} to {}", digits.number(it.low), digits.number(it.high))
        });
        let times = format!("{} times the rate in force, {interval}", digits.number(gain.ratio));
        let compared =
            self.advice.recommended.as_ref().filter(|level| **level != self.advice.present);
        let better = (self.shown)(compared.unwrap_or(&self.advice.fastest));
        match (gain.verdict, self.to_apply()) {
            (RateVerdict::Same, Some(_)) => {
                format!("no gain in rate: {times}; it costs other programs less")
            }
            (_, Some(_)) => times,
            _ if self.advice.fastest == self.advice.present => self.fastest_already(),
            _ if self.advice.gain_most() <= self.worth => {
                format!("little to gain: {better} gives {times}")
            }
            _ => format!("not settled: {better} gives {times}"),
        }
    }

    /// Nothing was faster than the present value: states what the runs cannot rule out.
    fn fastest_already(&self) -> String {
        let hidden = self.judgement.recommended.first().map_or(f64::INFINITY, |own| own.hidden);
        let others = match hidden {
            none if none <= 1.0 => "all others are slower".to_owned(),
            some if some.is_finite() => {
                let digits = Rounding::digits(3);
                format!("no other is more than {} times as fast (95 %)", digits.number(some))
            }
            _ => "single runs cannot show how fast the others are".to_owned(),
        };
        format!("none: the present value is the fastest, and {others}")
    }

    /// As a part of an answer.
    pub fn answer(&self) -> GainAnswer {
        let (advice, text) = (self.advice, self.words());
        let own = self.judgement.recommended.first();
        let gain = advice.gain;
        match own.filter(|_| advice.fastest == advice.present) {
            // The present value has no interval to itself; all others have an upper bound.
            Some(own) => GainAnswer {
                ratio: 1.0,
                low: None,
                high: finite(own.hidden),
                verdict: own.verdict,
                text,
            },
            None => GainAnswer {
                ratio: gain.ratio,
                low: gain.interval.and_then(|interval| finite(interval.low)),
                high: gain.interval.and_then(|interval| finite(interval.high)),
                verdict: gain.verdict,
                text,
            },
        }
    }
}

/// A number that JSON can hold.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// The gain of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GainAnswer {
    /// Rate of the recommended or fastest value, divided by the rate of the present one.
    pub ratio: f64,
    /// Lower end of the interval of the ratio.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio.
    pub high: Option<f64>,
    /// The verdict of the interval.
    pub verdict: RateVerdict,
    pub text: String,
}

/// A cost of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostAnswer {
    /// Name of the measure.
    pub measure: String,
    pub what: String,
    /// Value with the present setting.
    pub present: f64,
    /// Value with the recommended setting.
    pub recommended: f64,
    /// Whether the cost is shown to grow or to shrink.
    pub is_settled: bool,
}

impl From<&Paid> for CostAnswer {
    fn from(paid: &Paid) -> CostAnswer {
        CostAnswer {
            measure: paid.measure.to_owned(),
            what: paid.what.to_owned(),
            present: paid.present,
            recommended: paid.recommended,
            is_settled: paid.is_settled,
        }
    }
}
