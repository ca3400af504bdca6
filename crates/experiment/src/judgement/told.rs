//! Formatting of ratios and intervals.

use base::rounding::Rounding;
use statistics::interval::Interval;

/// A ratio with the digits that its interval supports, and that interval in brackets.
pub fn told_ratio(ratio: f64, interval: Option<Interval>) -> (String, String) {
    let digits = Rounding::of(interval.map(|interval| (interval.low, interval.high)));
    let shown = |value| digits.number(value);
    let between = interval.map_or(String::new(), |interval| between(interval, shown));
    (digits.number(ratio), between)
}

/// ` (110 us to 140 us)`
pub fn between(interval: Interval, shown: impl Fn(f64) -> String) -> String {
    format!(" ({} to {})", shown(interval.low), shown(interval.high))
}
