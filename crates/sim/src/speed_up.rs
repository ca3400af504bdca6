//! How many times faster than real time a virtual device runs.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Kept in thousandths, so that conversions in both directions agree.
const PARTS: u64 = 1000;

/// From 0.001, a thousandth of real time, to 1,000,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub struct SpeedUp {
    thousandths: u32,
}

/// A text that is not a valid speed-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0.001 to 1000000: 2.5 runs two and a half times as fast")]
pub struct NoSpeedUp;

impl SpeedUp {
    /// Real time.
    pub const ONE: SpeedUp = SpeedUp::times(1);

    /// A whole number of times, at least one and at most 1,000,000.
    pub const fn times(times: u32) -> SpeedUp {
        let times = match times {
            0 => 1,
            1_000_001.. => 1_000_000,
            times => times,
        };
        SpeedUp { thousandths: times * PARTS as u32 }
    }

    /// Virtual nanoseconds for real ones.
    pub fn there_ns(self, ours_ns: u64) -> u64 {
        scaled(ours_ns, self.thousandths.into(), PARTS)
    }

    /// Real nanoseconds for virtual ones.
    pub fn ours_ns(self, there_ns: u64) -> u64 {
        scaled(there_ns, PARTS, self.thousandths.into())
    }

    /// As a JSON number: a whole number if it is one.
    pub fn document(self) -> Number {
        let thousandths = u64::from(self.thousandths);
        let whole = Number::from(thousandths / PARTS);
        if thousandths.is_multiple_of(PARTS) {
            return whole;
        }
        // None only of what is not finite.
        Number::from_f64(thousandths as f64 / PARTS as f64).unwrap_or(whole)
    }
}

fn scaled(ns: u64, by: u64, divisor: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(by) / u128::from(divisor)).unwrap_or(u64::MAX)
}

impl fmt::Display for SpeedUp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(formatter)
    }
}

impl FromStr for SpeedUp {
    type Err = NoSpeedUp;

    fn from_str(text: &str) -> Result<SpeedUp, NoSpeedUp> {
        text.parse::<f64>().map_err(|_| NoSpeedUp)?.try_into()
    }
}

impl TryFrom<f64> for SpeedUp {
    type Error = NoSpeedUp;

    fn try_from(times: f64) -> Result<SpeedUp, NoSpeedUp> {
        let thousandths = times * PARTS as f64;
        if !(1.0..=1e9).contains(&thousandths) {
            return Err(NoSpeedUp);
        }
        Ok(SpeedUp { thousandths: thousandths.round() as u32 })
    }
}

impl From<SpeedUp> for f64 {
    fn from(speed_up: SpeedUp) -> f64 {
        f64::from(speed_up.thousandths) / PARTS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_whole_numbers() {
        let check = |text: &str, there_ns: u64, shown: &str| {
            let it: SpeedUp = text.parse().unwrap();
            assert_eq!((it.there_ns(1_000_000), it.to_string().as_str()), (there_ns, shown));
            assert_eq!(it.ours_ns(there_ns), 1_000_000);
        };
        check("1", 1_000_000, "1");
        check("2.5", 2_500_000, "2.5");
        check("0.25", 250_000, "0.25");
        check("1000000", 1_000_000_000_000, "1000000");
        assert_eq!(SpeedUp::times(100), "100".parse().unwrap());
        assert_eq!(SpeedUp::times(0), SpeedUp::ONE);
        for wrong in ["0", "-1", "0.0001", "1000001", "nan", "inf", "fast", ""] {
            assert_eq!(wrong.parse::<SpeedUp>(), Err(NoSpeedUp), "{wrong}");
        }
        assert_eq!(SpeedUp::times(1_000_000).there_ns(u64::MAX), u64::MAX);
    }
}
