//! How many digits a number is printed with: as many as its accuracy supports.
//!
//! A value with an interval ends where the interval's half width begins, or one digit further if
//! the half width begins with 1 (the Guide to the Expression of Uncertainty in Measurement, JCGM
//! 100:2008, 7.2.6, gives an uncertainty one or two digits). The two ends of the interval end at
//! the same place. A value without a known interval has two digits. Sentences, tables and pages use
//! this module for values with an interval, and the three digits of [`crate::format`] for all
//! others.
#![cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a floating-point number saturates"
    )
)]

use crate::format::duration;

/// Digits of a value without a known interval.
const OF_ONE_RUN: i32 = 2;

/// Most digits, however narrow an interval is.
const DIGITS_MAX: i32 = 4;

/// Most decimals of a ratio.
const DECIMALS_MAX: i32 = 3;

/// The power of ten of the last printed digit, in the unit of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounding {
    /// `None` where no interval is known.
    last: Option<i32>,
    digits: i32,
}

impl Rounding {
    /// For a value known to lie between these ends.
    pub fn within(low: f64, high: f64) -> Rounding {
        let half = (high - low) / 2.0;
        let is_known = half.is_finite() && half > 0.0;
        Rounding { last: is_known.then(|| (half / 2.0).log10().floor() as i32), digits: DIGITS_MAX }
    }

    /// For a value with an interval, or for a single measurement.
    pub fn of(interval: Option<(f64, f64)>) -> Rounding {
        match interval {
            Some((low, high)) => Rounding::within(low, high),
            None => Rounding { last: None, digits: OF_ONE_RUN },
        }
    }

    /// For a value that is printed with this many digits.
    pub fn digits(digits: i32) -> Rounding {
        Rounding { last: None, digits }
    }

    /// A plain number, for example a ratio.
    pub fn number(self, value: f64) -> String {
        self.scaled(value, 0, DECIMALS_MAX)
    }

    /// Bytes per second in MB/s.
    pub fn rate(self, bytes_per_second: f64) -> String {
        self.rate_digits(bytes_per_second) + " MB/s"
    }

    /// A rate without the unit, for the ends of an interval.
    pub fn rate_digits(self, bytes_per_second: f64) -> String {
        // Three digits, like all rates.
        let digits = self.digits.min(3);
        Rounding { digits, ..self }.scaled(bytes_per_second, 6, DECIMALS_MAX)
    }

    /// A share in per cent.
    pub fn percent(self, share: f64) -> String {
        self.scaled(share, -2, 1) + " %"
    }

    /// A span of time, from nanoseconds to hours.
    pub fn seconds(self, seconds: f64) -> String {
        match seconds {
            few if few < 0.9995e-6 => self.scaled(few, -9, 0) + " ns",
            few if few < 0.9995e-3 => self.scaled(few, -6, 1) + " us",
            some if some < 0.9995 => self.scaled(some, -3, 1) + " ms",
            some if some < 59.95 => self.scaled(some, 0, 2) + " s",
            many => duration(many),
        }
    }

    /// In units of a power of ten.
    fn scaled(self, value: f64, power: i32, decimals_max: i32) -> String {
        let value = if value.is_finite() { value / 10f64.powi(power) } else { 0.0 };
        let highest = highest_digit(value, self.digits);
        let by_digits = highest - (self.digits - 1);
        // Keeps at least one digit, however wide the interval.
        let last = self.last.map_or(by_digits, |last| (last - power).max(by_digits).min(highest));
        let last = last.max(-decimals_max);
        let step = 10f64.powi(last);
        format!("{:.*}", last.min(0).unsigned_abs() as usize, (value / step).round() * step)
    }
}

/// A share in per cent, never rounded up: in tenths below ten.
pub fn percent_at_least(share: f64) -> String {
    match share * 100.0 {
        few if few < 10.0 => format!("{:.1}", (few * 10.0).ceil().max(1.0) / 10.0),
        many => format!("{:.0}", many.ceil()),
    }
}

/// The power of ten of the first digit, after rounding to this many digits.
fn highest_digit(value: f64, digits: i32) -> i32 {
    let shown = format!("{:.*e}", (digits - 1).max(0) as usize, value);
    shown.split('e').next_back().and_then(|power| power.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_would_be_seen_is_not_told_to_be_less() {
        let told = [0.0, 0.0121, 0.0999, 0.101, 2.0].map(percent_at_least);
        assert_eq!(told, ["0.1", "1.3", "10.0", "11", "200"]);
    }

    #[test]
    fn digits_are_those_that_an_interval_supports() {
        let ratio = |value: f64, low: f64, high: f64| Rounding::within(low, high).number(value);
        assert_eq!(ratio(1.4731, 1.3812, 1.5704), "1.47");
        assert_eq!(ratio(30.782, 19.1, 49.6), "31");
        assert_eq!(ratio(1.4731, 0.86, 2.59), "1.5");
        assert_eq!(ratio(1.003_04, 1.0028, 1.0033), "1.003");
        let rate = |value: f64, half: f64| Rounding::within(value - half, value + half).rate(value);
        assert_eq!(rate(287_123_456.0, 35e6), "290 MB/s");
        assert_eq!(rate(287_123_456.0, 2e6), "287 MB/s");
        assert_eq!(rate(9_331_000.0, 0.4e6), "9.3 MB/s");
        assert_eq!(rate(12_300.0, 100.0), "0.012 MB/s");
        let time = |value: f64, half: f64| Rounding::within(value - half, value + half);
        assert_eq!(time(125.2e-6, 14e-6).seconds(125.2e-6), "125 us");
        assert_eq!(time(125.2e-6, 30e-6).seconds(125.2e-6), "130 us");
        assert_eq!(time(3.4721, 0.09).seconds(3.4721), "3.47 s");
        assert_eq!(time(812e-9, 40e-9).seconds(812e-9), "810 ns");
    }

    #[test]
    fn of_one_run_two_digits_are_told() {
        let told = [30.782, 1.1007, 2.178, 99.96, 0.0432].map(|it| Rounding::of(None).number(it));
        assert_eq!(told, ["31", "1.1", "2.2", "100", "0.043"]);
        assert_eq!(Rounding::of(None).percent(0.042), "4.2 %");
        assert_eq!(Rounding::digits(3).number(29_130.80), "29100");
        assert_eq!(Rounding::digits(3).number(0.0), "0.00");
    }

    proptest! {
        /// The printed value lies within half of its last digit, and so within the interval.
        #[test]
        fn what_is_told_lies_within_the_interval(
            value in 1e-3f64..1e6,
            share in 1e-3f64..0.9,
        ) {
            let half = value * share;
            let told: f64 = Rounding::within(value - half, value + half).number(value).parse()?;
            let decimals = 0.5 * 10f64.powi(-DECIMALS_MAX);
            prop_assert!((told - value).abs() <= half.max(decimals) * 1.000_001, "{}", told);
        }
    }
}
