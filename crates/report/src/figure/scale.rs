//! From data to positions in a figure, and the labels of its axes.

use super::{Axis, Figure, LEFT, PLOT_HEIGHT, RIGHT, TOP, WIDTH};

/// Approximate number of steps of an axis.
const TICKS: f64 = 6.0;

/// From data to positions in the figure.
pub(super) struct Scale {
    pub(super) logarithmic: bool,
    pub(super) x_low: f64,
    pub(super) x_high: f64,
    pub(super) x_step: f64,
    pub(super) y_most: f64,
    pub(super) y_step: f64,
    pub(super) margin: f64,
}

/// Smaller values are drawn at the edge of a logarithmic axis.
const LOGARITHM_LEAST: f64 = 1e-9;
/// Larger values are drawn at the edge.
pub(super) const VALUES_MAX: f64 = 1e15;

impl Scale {
    pub(super) fn of(figure: &Figure) -> Scale {
        let values = || figure.groups.iter().flat_map(|group| &group.values);
        let curves = || figure.groups.iter().flat_map(|group| &group.curve);
        let y_most = figure.y_highest().max(figure.y_least).min(VALUES_MAX);
        let y_step = tick_step(y_most);
        let named = figure.places.iter().map(|place| place.x);
        let places = values().map(|value| value.x).chain(curves().map(|(x, _)| *x)).chain(named);
        let places: Vec<f64> = places.filter(|x| x.is_finite() && x.abs() <= VALUES_MAX).collect();
        let logarithmic = figure.axis.is_logarithmic();
        let positive = places.iter().copied().filter(|x| !logarithmic || *x > LOGARITHM_LEAST);
        let low = positive.clone().fold(f64::INFINITY, f64::min);
        let high = positive.fold(0.0, f64::max);
        let x_step = tick_step(high);
        let (x_low, x_high, margin) = match &figure.axis {
            Axis::Words(words) => (0.0, words.len().saturating_sub(1).max(1) as f64, 48.0),
            Axis::Time(_) => (0.0, high.max(1.0), 0.0),
            Axis::Linear => (0.0, (high / x_step - 1e-9).ceil().max(1.0) * x_step, 0.0),
            _ if low.is_finite() && low < high => (low, high, 24.0),
            _ if low.is_finite() => (low / 2.0, low * 2.0, 24.0),
            _ => (1.0, 2.0, 24.0),
        };
        let y_most = (y_most / y_step - 1e-9).ceil().max(1.0) * y_step;
        Scale { logarithmic, x_low, x_high, x_step, y_most, y_step, margin }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(LOGARITHM_LEAST) / self.x_low).log2() / (self.x_high / self.x_low).log2()
        } else {
            (value - self.x_low) / (self.x_high - self.x_low)
        };
        LEFT + self.margin + (WIDTH - LEFT - RIGHT - 2.0 * self.margin) * share.clamp(0.0, 1.0)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (1.0 - (value / self.y_most).clamp(0.0, 1.0))
    }

    /// Powers of two on the axis, few enough that their labels do not touch.
    pub(super) fn powers(&self) -> Vec<f64> {
        const LABELS_MAX: usize = 9;
        let (first, last) = (self.x_low.log2().ceil() as i32, self.x_high.log2().floor() as i32);
        let all = (last - first).max(0) as usize + 1;
        let every = all.div_ceil(LABELS_MAX);
        (first..=last).step_by(every).map(|power| f64::from(power).exp2()).collect()
    }
}

/// 1, 2 or 5 times a power of ten, which gives about [`TICKS`] steps.
pub(super) fn tick_step(most: f64) -> f64 {
    if most.is_nan() || most < 1e-6 {
        return 1.0;
    }
    let rough = most / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fitting = factors.iter().find(|factor| **factor * power >= rough * (1.0 - 1e-9));
    fitting.copied().unwrap_or(10.0) * power
}

pub(super) fn number_text(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_axes_are_round() {
        let steps = [0.0, 0.7, 1.0, 6.0, 7.0, 29.0, 31.0, 480.0, f64::NAN].map(tick_step);
        assert_eq!(steps, [1.0, 0.2, 0.2, 1.0, 2.0, 5.0, 10.0, 100.0, 1.0]);
        assert_eq!(number_text(0.6, 0.2), "0.6");
        assert_eq!(number_text(300.0, 100.0), "300");
    }
}
