//! Fits parameters: one after the other, on a logarithmic scale.

/// A parameter to be fitted and its range.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from: f64,
    pub to: f64,
}

const ROUNDS: i32 = 8;
const STEPS: usize = 14;
/// Each round searches a narrower range around the best value so far.
const NARROWER: f64 = 0.6;

/// The parameters with the smallest `error`: by golden section, one parameter at a time, and then
/// along the direction in which they moved together (Powell), since the time of a command and the
/// rate of a source compensate each other.
pub fn fit<const N: usize>(ranges: [Range; N], error: impl Fn([f64; N]) -> f64) -> [f64; N] {
    let bounded = |place: [f64; N]| {
        let mut inside = place;
        for (value, range) in inside.iter_mut().zip(&ranges) {
            *value = value.clamp(range.from.ln(), range.to.ln());
        }
        inside
    };
    let at = |place: [f64; N]| error(bounded(place).map(f64::exp));
    let mut best = ranges.map(|range| f64::midpoint(range.from.ln(), range.to.ln()));
    for round in 0..ROUNDS {
        let before = best;
        for number in 0..N {
            let width = (ranges[number].to / ranges[number].from).ln() / 2.0;
            let mut way = [0.0; N];
            way[number] = width * NARROWER.powi(round);
            best = bounded(along(best, way, &at));
        }
        if N > 1 {
            let way = std::array::from_fn(|number| 4.0 * (best[number] - before[number]));
            best = bounded(along(best, way, &at));
        }
    }
    best.map(f64::exp)
}

/// The best place between one `way` back and one ahead.
fn along<const N: usize>(
    from: [f64; N],
    way: [f64; N],
    error: &impl Fn([f64; N]) -> f64,
) -> [f64; N] {
    let place = |share: f64| std::array::from_fn(|number| from[number] + share * way[number]);
    let found = place(golden(-1.0, 1.0, |share| error(place(share))));
    if error(found) <= error(from) { found } else { from }
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
