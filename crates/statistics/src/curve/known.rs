//! Intervals of a curve's parameters: not every sweep determines each of them.
//!
//! The levels are drawn again from their errors, the same fit is made to each draw, and the spread
//! of the results gives the intervals (parametric bootstrap, Efron 1979). So the choice between a
//! curve with and without a plateau is part of the uncertainty. If only one level rises, the fixed
//! time is a range, however exact that level is. If levels do not lie on the curve, their distance
//! from it widens the intervals, however exact they are.

use super::{Model, Point, candidate, fit};
use crate::interval::Interval;
use crate::quantile;
use crate::random::Random;

/// Number of draws; the ends of an interval of 95 % are then the fifth from below and from above.
const DRAWS: u64 = 199;

/// Least error of such a curve. On virtual drives, which follow it exactly except for their buffer,
/// the true fixed time is this close to the fitted one (`cargo xtask trial tape`), although levels
/// are known ten times better.
const CURVE_ERROR: f64 = 0.01;

/// From this many degrees of freedom on, the error of an error does not matter.
const MANY_DEGREES: f64 = 200.0;

/// The errors of the levels of a sweep, in logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    /// Standard error of each level by itself.
    pub own: Vec<f64>,
    /// Standard error of the part that all levels have in common.
    pub common: f64,
    /// Degrees of freedom of these errors; infinite if they are assumed.
    pub degrees: f64,
}

/// Intervals of a curve's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Fixed time of each request; from 0 if only an upper bound is known.
    pub overhead_ns: Interval,
    /// The rate of the curve; to infinity if only a lower bound is known.
    pub bytes_per_second: Interval,
    /// The plateau, if it is certain that there is one.
    pub plateau: Option<Interval>,
}

impl Known {
    /// For the curve that [`fit`] chooses.
    pub fn of(points: &[Point], errors: &Errors, confidence: f64) -> Option<Known> {
        Known::by(points, errors, confidence, fit)
    }

    /// For the curve without a plateau, from two levels on.
    pub fn of_line(points: &[Point], errors: &Errors, confidence: f64) -> Option<Known> {
        Known::by(points, errors, confidence, line)
    }

    fn by(
        points: &[Point],
        errors: &Errors,
        confidence: f64,
        fit: impl Fn(&[Point]) -> Option<Model>,
    ) -> Option<Known> {
        let mut random = Random::new(1);
        let mut draws = Vec::new();
        for _ in 0..DRAWS {
            let scale = scale(errors.degrees, &mut random);
            let common = errors.common * random.normal();
            let drawn = points.iter().zip(&errors.own).map(|(point, own)| {
                let log = scale * (common + own * random.normal());
                Point { bytes_per_second: point.bytes_per_second * log.exp(), ..*point }
            });
            draws.push(fit(&drawn.collect::<Vec<_>>())?);
        }
        let (low, high) = ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0);
        let at = |values: Vec<f64>, share| quantile(&values, share);
        let of = |number: &dyn Fn(&Model) -> f64| draws.iter().map(number).collect::<Vec<f64>>();
        let rate = |model: &Model| model.bytes_per_second.min(f64::MAX.sqrt());
        let behind = at(of(&rate), high)?;
        let plateaus: Vec<f64> =
            draws.iter().filter_map(|model| model.plateau_bytes_per_second).collect();
        let is_certain = plateaus.len() as f64 >= high * DRAWS as f64;
        let plateau = || {
            let (low, high) = (at(plateaus.clone(), low)?, at(plateaus.clone(), high)?);
            Some(Interval { low, high })
        };
        let missed = fit(points)?.typical_residual().max(CURVE_ERROR);
        // The smallest level determines the fixed time, which is the largest part of its time.
        let times = points.iter().map(|point| 1e9 * point.level / point.bytes_per_second);
        let missed_ns = missed * times.reduce(f64::min)?;
        Some(Known {
            overhead_ns: Interval {
                low: (at(of(&|model| least_overhead(model, points)), low)? - missed_ns).max(0.0),
                high: at(of(&|model| model.overhead_ns), high)? + missed_ns,
            },
            bytes_per_second: Interval {
                low: at(of(&|model| least_rate(model)), low)? / (1.0 + missed),
                high: if behind > 1e30 { f64::INFINITY } else { behind * (1.0 + missed) },
            },
            plateau: if is_certain { plateau() } else { None },
        })
    }
}

/// The curve without a plateau; two points are enough for it.
pub fn line(points: &[Point]) -> Option<Model> {
    let positive = |point: &Point| point.level > 0.0 && point.bytes_per_second > 0.0;
    if points.len() < 2 || !points.iter().all(positive) {
        return None;
    }
    candidate(points, points.len()).map(|(model, _)| model)
}

/// One level that rises to a plateau bounds its fixed time: at most all of its time, and at least
/// the rest when its bytes pass as fast as the plateau.
fn least_overhead(model: &Model, points: &[Point]) -> f64 {
    match (model.rising, model.plateau_bytes_per_second) {
        (1, Some(plateau)) => (model.overhead_ns - 1e9 * points[0].level / plateau).max(0.0),
        _ => model.overhead_ns,
    }
}

fn least_rate(model: &Model) -> f64 {
    match model.plateau_bytes_per_second {
        Some(plateau) => plateau.min(model.bytes_per_second),
        None => model.bytes_per_second,
    }
    .min(f64::MAX.sqrt())
}

/// The true scatter divided by the observed one.
fn scale(degrees: f64, random: &mut Random) -> f64 {
    if degrees >= MANY_DEGREES {
        return 1.0;
    }
    let whole = degrees.max(1.0).round() as u32;
    let squares: f64 = (0..whole).map(|_| random.normal().powi(2)).sum();
    (f64::from(whole) / squares.max(1e-9)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive whose medium limits only the fastest level: one level does not show a plateau, and
    /// the curve misses the others by some percent, however exact each of them is.
    #[test]
    fn what_a_curve_misses_is_not_known() {
        let seen = [(16, 13.2e6), (64, 47.6e6), (256, 118.2e6), (1024, 158e6)];
        let points = seen
            .map(|(kib, bytes_per_second)| Point { level: f64::from(kib << 10), bytes_per_second });
        let errors = Errors { own: vec![0.001; 4], common: 0.001, degrees: 8.0 };
        let known = Known::of(&points, &errors, 0.95).unwrap();
        // The drive's time of a command.
        assert!(known.overhead_ns.contains(1.157e6), "{known:?}");
        assert!(known.overhead_ns.high < 1.5e6 && known.overhead_ns.low > 0.8e6, "{known:?}");
        // Exact levels on the curve leave almost no uncertainty.
        let exact = points.map(|point| Point {
            bytes_per_second: 1.0 / (1e-3 / point.level + 1.0 / 200e6),
            ..point
        });
        let known = Known::of(&exact, &errors, 0.95).unwrap();
        assert!(known.overhead_ns.high - known.overhead_ns.low < 0.06e6, "{known:?}");
    }
}
