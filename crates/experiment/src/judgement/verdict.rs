//! The three verdicts that an interval allows. "Not settled" is different from "no difference".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgementOptions;
use statistics::interval::Interval;
use statistics::ratio::holm;

/// Whether two rates differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateVerdict {
    /// The interval excludes equality, and does not lie within the band.
    Differs,
    /// The whole interval lies within the band: any difference is too small to notice.
    Same,
    /// The interval allows both no difference and one that matters; or there is no interval.
    NotSettled,
}

impl RateVerdict {
    /// The verdict of the interval of a ratio. Equivalence is shown as by two one-sided tests
    /// (Schuirmann 1987), but with the whole 95 % interval instead of their 90 % one.
    pub fn of(interval: Option<Interval>, options: &JudgementOptions) -> RateVerdict {
        let Some(interval) = interval else { return RateVerdict::NotSettled };
        let band = options.band.ln_1p();
        if interval.low.ln() >= -band && interval.high.ln() <= band {
            RateVerdict::Same
        } else if interval.contains(1.0) {
            RateVerdict::NotSettled
        } else {
            RateVerdict::Differs
        }
    }

    /// The verdict of one ratio among many, whose p-value is corrected for their number: ratios
    /// differ if chance does not explain it among all of them.
    pub fn of_many(
        interval: Option<Interval>,
        corrected: f64,
        options: &JudgementOptions,
    ) -> RateVerdict {
        match RateVerdict::of(interval, options) {
            RateVerdict::Same => RateVerdict::Same,
            _ if corrected < 1.0 - options.confidence => RateVerdict::Differs,
            _ => RateVerdict::NotSettled,
        }
    }
}

/// For many ratios, each with its p-value, if it has one, and its interval: the p-values corrected
/// for their number (Holm), and the verdicts. A ratio without a p-value gets `None`.
pub fn settle(
    ratios: &[(Option<f64>, Option<Interval>)],
    options: &JudgementOptions,
) -> Vec<Option<(f64, RateVerdict)>> {
    let raw: Vec<f64> = ratios.iter().filter_map(|(p_value, _)| *p_value).collect();
    let mut corrected = holm(&raw).into_iter();
    let settled = |(p_value, interval): &(Option<f64>, Option<Interval>)| {
        let corrected = p_value.and_then(|_| corrected.next())?;
        Some((corrected, RateVerdict::of_many(*interval, corrected, options)))
    };
    ratios.iter().map(settled).collect()
}

/// `the same within 2 %`, for use in a sentence.
pub fn the_same(options: &JudgementOptions) -> String {
    format!("the same within {:.0} %", options.band * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_nothing() {
        let of = |low: f64, high: f64| {
            RateVerdict::of(Some(Interval { low, high }), &JudgementOptions::default())
        };
        assert_eq!(of(0.99, 1.01), RateVerdict::Same);
        assert_eq!(of(1.005, 1.015), RateVerdict::Same);
        assert_eq!(of(1.005, 1.03), RateVerdict::Differs);
        assert_eq!(of(0.7, 0.9), RateVerdict::Differs);
        assert_eq!(of(0.97, 1.01), RateVerdict::NotSettled);
        assert_eq!(of(0.5, 3.0), RateVerdict::NotSettled);
        assert_eq!(RateVerdict::of(None, &JudgementOptions::default()), RateVerdict::NotSettled);
    }
}
