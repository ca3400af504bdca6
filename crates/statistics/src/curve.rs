//! Fits a curve to a sweep, whose parameters describe the hardware.
//!
//! Moving `b` bytes at once costs a fixed time and one that grows with `b`, so that
//!
//! ```text
//! time per byte = 1/rate + overhead/b            (one after the other)
//! rate(b) = min(plateau, that)                   (and never above what something else allows)
//! ```
//!
//! For block sizes the overhead is that of a command. For a read-ahead window it is the latency of
//! the device (window / (latency + window/path), Little 1961), and for a queue depth the service
//! time of a request. So one family of curves serves all three; `experiment::quantities` chooses
//! the word. The fit uses relative errors, since rates scatter in proportion, and is robust (Huber
//! 1964). So one level that follows another law (a drive that stops and starts) does not bend the
//! curve for all; it shows as a large residual.

pub mod known;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::median;

/// The data of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes moved at once, or under way at once.
    pub level: f64,
    /// Mean rate there.
    pub bytes_per_second: f64,
}

/// A fitted curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Fixed time of each request or command, or the latency that a window has to bridge.
    pub overhead_ns: f64,
    /// The limit of the rate for endless blocks, on the curve without a plateau; infinite if the
    /// fixed time alone explains the data.
    pub bytes_per_second: f64,
    /// With a plateau: the rate that larger levels do not exceed.
    pub plateau_bytes_per_second: Option<f64>,
    /// Number of levels before the plateau; all levels if there is none.
    pub rising: usize,
    /// Measured divided by predicted, minus one, for each point.
    pub residuals: Vec<f64>,
}

/// Points further from the curve than this share are reported.
pub const LARGE_RESIDUAL: f64 = 0.15;
/// One level in this many may follow another law; with fewer levels, one.
const LEVELS_FOR_A_STRAY: usize = 4;

impl Model {
    /// Rate at a level.
    pub fn predict(&self, level: f64) -> f64 {
        let per_byte = 1.0 / self.bytes_per_second + self.overhead_ns / 1e9 / level;
        let free = 1.0 / per_byte;
        self.plateau_bytes_per_second.map_or(free, |plateau| plateau.min(free))
    }

    /// The highest rate of the curve.
    pub fn highest_bytes_per_second(&self) -> f64 {
        self.plateau_bytes_per_second.unwrap_or(self.bytes_per_second)
    }

    /// Indices of the levels far from the curve.
    pub fn strays(&self) -> impl Iterator<Item = usize> {
        let sizes = self.residuals.iter().enumerate();
        sizes.filter(|(_, residual)| residual.abs() > LARGE_RESIDUAL).map(|(place, _)| place)
    }

    /// Whether the levels follow the curve, so that its parameters are meaningful. The robust fit
    /// allows a few levels that follow another law; with more of them there is no such curve.
    pub fn holds(&self) -> bool {
        self.strays().count() <= (self.residuals.len() / LEVELS_FOR_A_STRAY).max(1)
    }

    /// Median of the absolute residuals.
    pub fn typical_residual(&self) -> f64 {
        let sizes: Vec<f64> = self.residuals.iter().map(|residual| residual.abs()).collect();
        median(&sizes).unwrap_or(0.0)
    }
}

/// Most points of a fit. Every possible beginning of a plateau is tried, so the work grows with the
/// square of the number, and each interval repeats the fit.
pub const POINTS_MAX: usize = 64;

/// Fits the family to at least three points in the order of their levels and returns its simplest
/// member that explains them: with or without a plateau, by the Bayesian information criterion
/// (Schwarz 1978). `None` for fewer points or more than [`POINTS_MAX`], or if a rate or level is
/// not positive.
pub fn fit(points: &[Point]) -> Option<Model> {
    let positive = |point: &Point| point.level > 0.0 && point.bytes_per_second > 0.0;
    if !(3..=POINTS_MAX).contains(&points.len()) || !points.iter().all(positive) {
        return None;
    }
    let mut best: Option<(f64, Model)> = None;
    // The plateau begins at `split`; behind the last point means no plateau.
    for split in 1..=points.len() {
        let Some((model, parameters)) = candidate(points, split) else { continue };
        let score = score(&model, parameters);
        if best.as_ref().is_none_or(|(lowest, _)| score < *lowest) {
            best = Some((score, model));
        }
    }
    best.map(|(_, model)| model)
}

fn candidate(points: &[Point], split: usize) -> Option<(Model, usize)> {
    let (rising, flat) = points.split_at(split);
    let rates: Vec<f64> = flat.iter().map(|point| point.bytes_per_second).collect();
    if flat.len() == 1 {
        // A plateau of one point explains only that point.
        return None;
    }
    let plateau = median(&rates);
    let (per_byte, overhead) = match (rising, plateau) {
        // One rising point gives the overhead, if only the plateau limits the rate.
        ([only], Some(_)) => (0.0, only.level / only.bytes_per_second),
        _ => robust_line(rising)?,
    };
    let mut model = Model {
        overhead_ns: overhead * 1e9,
        bytes_per_second: if per_byte > 0.0 { 1.0 / per_byte } else { f64::INFINITY },
        plateau_bytes_per_second: plateau,
        rising: split,
        residuals: Vec::new(),
    };
    model.residuals = points
        .iter()
        .map(|point| point.bytes_per_second / model.predict(point.level) - 1.0)
        .collect();
    let parameters = if plateau.is_none() { 2 } else { 2 + usize::from(rising.len() > 1) };
    Some((model, parameters))
}

/// Fits time per byte against 1/level: constant and slope, neither negative, by iteratively
/// reweighted least squares in relative errors with Huber's weights.
fn robust_line(points: &[Point]) -> Option<(f64, f64)> {
    const ROUNDS: usize = 40;
    let mut weights = vec![1.0; points.len()];
    let mut line = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let before = line;
        line = relative_line(points, &weights)?;
        let stays = |a: f64, b: f64| (a - b).abs() <= 1e-10 * a.abs();
        if stays(line.0, before.0) && stays(line.1, before.1) {
            break;
        }
        let residuals: Vec<f64> = points
            .iter()
            .map(|point| point.bytes_per_second * (line.0 + line.1 / point.level) - 1.0)
            .collect();
        let sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
        let scale = (median(&sizes)? / 0.674_5).max(1e-6);
        for (weight, size) in weights.iter_mut().zip(&sizes) {
            // 1.345: 95 % of the efficiency of least squares with normal errors (Huber 1964).
            let standardised = size / (1.345 * scale);
            *weight = if standardised <= 1.0 { 1.0 } else { 1.0 / standardised };
        }
    }
    Some(line)
}

fn relative_line(points: &[Point], weights: &[f64]) -> Option<(f64, f64)> {
    // Relative error of the time per byte: rate x (constant + slope / level) - 1.
    let (mut aa, mut ab, mut bb, mut a, mut b) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (point, weight) in points.iter().zip(weights) {
        let (one, other) = (point.bytes_per_second, point.bytes_per_second / point.level);
        aa += weight * one * one;
        ab += weight * one * other;
        bb += weight * other * other;
        a += weight * one;
        b += weight * other;
    }
    let determinant = aa * bb - ab * ab;
    let (constant, slope) = if determinant > 1e-9 * aa * bb {
        ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant)
    } else {
        return None;
    };
    Some(match (constant < 0.0, slope < 0.0) {
        (true, _) => (0.0, b / bb),
        (_, true) => (a / aa, 0.0),
        _ => (constant, slope),
    })
}

/// Schwarz's criterion with the mean absolute logarithmic residual as the scale of Laplace's
/// distribution, so that one stray point does not dominate it.
fn score(model: &Model, parameters: usize) -> f64 {
    let n = model.residuals.len() as f64;
    let mean = model.residuals.iter().map(|r| (1.0 + r).max(1e-6).ln().abs()).sum::<f64>() / n;
    // No measurement is better than half a per cent.
    2.0 * n * mean.max(0.005).ln() + parameters as f64 * n.ln()
}

/// A limit that a rate cannot exceed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhysicalLimit {
    /// Its name: `native rate of an LTO-7 drive`.
    pub name: String,
    /// The rate.
    pub bytes_per_second: f64,
}

/// The limit that explains a rate: the nearest one within `tolerance`, as a share.
pub fn matching_limit(
    bytes_per_second: f64,
    limits: &[PhysicalLimit],
    tolerance: f64,
) -> Option<&PhysicalLimit> {
    let distance = |limit: &PhysicalLimit| (bytes_per_second / limit.bytes_per_second).ln().abs();
    let near = limits.iter().filter(|limit| distance(limit) <= tolerance.ln_1p());
    near.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn points(levels: &[f64], rate: impl Fn(f64) -> f64) -> Vec<Point> {
        levels.iter().map(|&level| Point { level, bytes_per_second: rate(level) }).collect()
    }

    const LEVELS: [f64; 7] = [4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6];

    #[test]
    fn parameters_that_were_put_in_come_out() {
        let serial = |level: f64| 1.0 / (1.0 / 400e6 + 100e-6 / level);
        let model = fit(&points(&LEVELS, serial)).unwrap();
        assert!((model.overhead_ns / 100e3 - 1.0).abs() < 0.01, "{model:?}");
        assert!((model.bytes_per_second / 400e6 - 1.0).abs() < 0.01, "{model:?}");
        assert_eq!(model.plateau_bytes_per_second, None);
        let capped = |level: f64| serial(level).min(250e6);
        let model = fit(&points(&LEVELS, capped)).unwrap();
        assert!((model.overhead_ns / 100e3 - 1.0).abs() < 0.05, "{model:?}");
        assert!((model.plateau_bytes_per_second.unwrap() / 250e6 - 1.0).abs() < 0.01, "{model:?}");
    }

    #[test]
    fn one_level_with_a_law_of_its_own_does_not_bend_the_curve() {
        let serial = |level: f64| 1.0 / (1.0 / 400e6 + 100e-6 / level);
        let stopping = |level: f64| if level == 16e3 { serial(level) / 3.0 } else { serial(level) };
        let model = fit(&points(&LEVELS, stopping)).unwrap();
        assert!((model.overhead_ns / 100e3 - 1.0).abs() < 0.1, "{model:?}");
        assert!(model.residuals[1] < -0.6 && model.typical_residual() < 0.05, "{model:?}");
        assert!(model.holds() && model.strays().eq([1]), "{model:?}");
    }

    /// Measured with a disk of 5.5 ms and 600 MB/s behind a loop device: the kernel's windows
    /// change in steps, and a curve through them finds 3.7 ms and 900 MB/s.
    #[test]
    fn what_follows_no_curve_is_told_from_what_does() {
        let (windows, rates) = (
            [256e3, 512e3, 1e6, 2e6, 2.6e6, 4e6, 8e6, 16e6],
            [72.8e6, 143e6, 200e6, 210e6, 250e6, 525e6, 394e6, 484e6],
        );
        let pairs = windows.into_iter().zip(rates);
        let points: Vec<Point> =
            pairs.map(|(level, bytes_per_second)| Point { level, bytes_per_second }).collect();
        let model = fit(&points).unwrap();
        assert!(model.strays().count() > 2 && !model.holds(), "{model:?}");
    }

    #[test]
    fn noise_does_not_make_a_plateau() {
        let mut wrong = 0;
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut rate =
                |level: f64| (0.01 * random.normal()).exp() / (1.0 / 400e6 + 1e-3 / level);
            let points: Vec<Point> =
                LEVELS.map(|level| Point { level, bytes_per_second: rate(level) }).to_vec();
            let model = fit(&points).unwrap();
            assert!(model.typical_residual() < 0.03, "{model:?}");
            let at = model.predict(64e3) * (1.0 / 400e6 + 1e-3 / 64e3);
            wrong += usize::from((at - 1.0).abs() > 0.05);
        }
        assert!(wrong <= 10, "{wrong} of 200");
    }

    #[test]
    fn limits_are_matched_and_too_little_is_said_nothing_about() {
        assert_eq!(fit(&points(&LEVELS[..2], |_| 1.0)), None);
        assert_eq!(fit(&points(&LEVELS, |_| 0.0)), None);
        let flat = fit(&points(&LEVELS, |_| 5e6)).unwrap();
        assert!((flat.highest_bytes_per_second() / 5e6 - 1.0).abs() < 0.01);
        let limit = |name: &str, rate| PhysicalLimit { name: name.into(), bytes_per_second: rate };
        let limits = [limit("drive", 300e6), limit("link", 320e6)];
        assert_eq!(matching_limit(310e6, &limits, 0.05).unwrap().name, "link");
        assert_eq!(matching_limit(250e6, &limits, 0.05), None);
    }
}
