//! A search for the parameters that fit best: one after the other, on a logarithmic scale.

/// A parameter to be fitted and the range it may be in.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from: f64,
    pub to: f64,
}

const ROUNDS: i32 = 12;
const STEPS: usize = 14;
/// Each round looks in a narrower range around what is best so far.
const NARROWER: f64 = 0.6;

/// The parameters with the smallest `error`, by golden section, one parameter at a time.
pub fn fit<const N: usize>(ranges: [Range; N], error: impl Fn([f64; N]) -> f64) -> [f64; N] {
    let mut best = ranges.map(|range| (range.from * range.to).sqrt());
    for round in 0..ROUNDS {
        for at in 0..N {
            let (from, to) = (ranges[at].from.ln(), ranges[at].to.ln());
            let width = (to - from) / 2.0 * NARROWER.powi(round);
            let value = |exponent: f64| {
                let mut tried = best;
                tried[at] = exponent.exp();
                error(tried)
            };
            let around = best[at].ln();
            let found = golden((around - width).max(from), (around + width).min(to), value);
            if value(found) <= value(around) {
                best[at] = found.exp();
            }
        }
    }
    best
}

fn golden(mut low: f64, mut high: f64, error: impl Fn(f64) -> f64) -> f64 {
    let share = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - share * (high - low), low + share * (high - low));
    let (mut at_left, mut at_right) = (error(left), error(right));
    for _ in 0..STEPS {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - share * (high - low);
            at_left = error(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + share * (high - low);
            at_right = error(right);
        }
    }
    f64::midpoint(low, high)
}

#[test]
fn a_known_minimum_is_found() {
    let range = Range { from: 1.0, to: 1e6 };
    let found = fit([range, range], |[a, b]| (a / 300.0).ln().powi(2) + (b / 7e4).ln().powi(2));
    assert!((found[0] / 300.0 - 1.0).abs() < 0.01 && (found[1] / 7e4 - 1.0).abs() < 0.01);
}
