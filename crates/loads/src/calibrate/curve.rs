//! The curve through the levels of a sweep, with what is known of its numbers.

use super::estimate::{CONFIDENCE, by_repeat};
use statistics::curve::known::{Errors, Known, line};
use statistics::curve::{LARGE_RESIDUAL, Model, Point, fit};
use statistics::{logarithms, mean};

/// Nothing is known better than to half a per cent, see [`super::estimate`].
const ERROR_MIN: f64 = 0.002_5;

/// A level of a sweep, and the rates of its runs with the numbers of their repeats.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) level: f64,
    pub(super) rates: Vec<(u64, f64)>,
}

/// A curve that the levels follow.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) model: Model,
    pub(super) known: Known,
}

impl Curve {
    /// The line; or a curve with a plateau, where there is one for certain. `None` where the levels
    /// follow neither.
    pub(super) fn through(steps: &[Step]) -> Option<Curve> {
        let point = |step: &Step| {
            let bytes_per_second = by_repeat(&step.rates)?.value;
            Some(Point { level: step.level, bytes_per_second })
        };
        let points: Vec<Point> = steps.iter().filter_map(point).collect();
        let errors = errors(steps)?;
        let bent = Known::of(&points, &errors, CONFIDENCE)?;
        let (model, known) = match bent.plateau {
            Some(_) => (fit(&points)?, bent),
            None => (line(&points)?, Known::of_line(&points, &errors, CONFIDENCE)?),
        };
        let follows = model.residuals.iter().all(|residual| residual.abs() <= LARGE_RESIDUAL);
        follows.then_some(Curve { model, known })
    }
}

/// The scatter of single runs is one for all levels, in proportion.
fn errors(steps: &[Step]) -> Option<Errors> {
    let logs =
        |step: &Step| logarithms(&step.rates.iter().map(|(_, rate)| *rate).collect::<Vec<f64>>());
    let logs: Vec<Vec<f64>> = steps.iter().filter_map(logs).collect();
    let (mut squares, mut degrees) = (0.0, 0.0);
    for own in &logs {
        let centre = mean(own)?;
        squares += own.iter().map(|log| (log - centre).powi(2)).sum::<f64>();
        degrees += own.len() as f64 - 1.0;
    }
    let scatter = (squares / degrees).sqrt();
    let own = |own: &Vec<f64>| (scatter / (own.len() as f64).sqrt()).max(ERROR_MIN);
    Some(Errors { own: logs.iter().map(own).collect(), common: 0.0, degrees })
}
