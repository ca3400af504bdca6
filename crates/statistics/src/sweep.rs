//! Which level of a sweep to set: the simplest one that is as good as the best.

/// How many standard errors of the difference a level may be below the best one and still count as
/// good. One, plus a tenth for the luck of the best, which is the highest of several. With 1.0 the
/// right knee of `tests/truth` was found in 74 % of experiments of three repeats, with 1.1 in 77 %;
/// a larger value would ignore real differences.
const ERRORS: f64 = 1.1;

/// The first level within about one standard error of the best one. Each level is given by its
/// logarithm and the standard error of its difference from the best one. This is the rule of one
/// standard error (Breiman, Friedman, Olshen and Stone 1984, for trees), with the error of the
/// comparison. A difference too small to notice, `indifference` as a share, does not count either.
/// If all levels are further below the best one, the highest; `None` without levels.
pub fn simplest_of_the_best(levels: &[(f64, f64)], best: f64, indifference: f64) -> Option<usize> {
    let is_as_good =
        |(log, error): &(f64, f64)| best - log <= (ERRORS * error).max(indifference.ln_1p());
    let highest = || (0..levels.len()).max_by(|&a, &b| levels[a].0.total_cmp(&levels[b].0));
    levels.iter().position(is_as_good).or_else(highest)
}

/// Levels that rise to one of them and fall behind it, as near as possible to the given ones:
/// neighbours in the wrong order are replaced by their mean (isotonic regression by pooling
/// adjacent violators, Ayer et al. 1955; with a peak, Frisen 1986). Several levels that are equally
/// good share their runs; otherwise the largest of them would be estimated too large.
///
/// The work grows with the number of levels: the distance of each beginning from its fit, and of
/// each end, follows from those of the shorter ones (Stout 2008, "Unimodal regression via prefix
/// isotonic regression").
pub fn unimodal(levels: &[f64]) -> Vec<f64> {
    let beginnings = distances(levels.iter().copied());
    let mut ends = distances(levels.iter().rev().copied());
    ends.reverse();
    let mut best: Option<(f64, usize)> = None;
    for (peak, beginning) in beginnings.iter().enumerate() {
        let distance = beginning + ends.get(peak + 1).copied().unwrap_or(0.0);
        if best.is_none_or(|(least, _)| distance < least - 1e-15) {
            best = Some((distance, peak));
        }
    }
    let Some((_, peak)) = best else { return Vec::new() };
    let mut fitted = rising(levels[..=peak].iter().copied());
    let mut falling = rising(levels[peak + 1..].iter().rev().copied());
    falling.reverse();
    fitted.extend(falling);
    fitted
}

/// Neighbours that share their mean.
#[derive(Clone, Copy)]
struct Shared {
    sum: f64,
    count: usize,
    /// Squares of the distances from the mean.
    squares: f64,
}

impl Shared {
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn with(self, other: Shared) -> Shared {
        let (sum, count) = (self.sum + other.sum, self.count + other.count);
        let apart = self.mean() - other.mean();
        let weight = self.count as f64 * other.count as f64 / count as f64;
        Shared { sum, count, squares: self.squares + other.squares + weight * apart * apart }
    }
}

/// Appends a level to those that rise; returns the distance of all.
fn push(shared: &mut Vec<Shared>, level: f64) -> f64 {
    let mut last = Shared { sum: level, count: 1, squares: 0.0 };
    let mut before = 0.0;
    while let Some(own) = shared.pop_if(|own| own.mean() > last.mean()) {
        before += own.squares;
        last = own.with(last);
    }
    shared.push(last);
    last.squares - before
}

/// For each beginning, the sum of squared distances from rising levels.
fn distances(levels: impl Iterator<Item = f64>) -> Vec<f64> {
    let (mut shared, mut distance) = (Vec::new(), 0.0);
    let next = |level| {
        distance += push(&mut shared, level);
        distance
    };
    levels.map(next).collect()
}

fn rising(levels: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut shared = Vec::new();
    for level in levels {
        push(&mut shared, level);
    }
    shared.iter().flat_map(|own| std::iter::repeat_n(own.mean(), own.count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_of_the_best() {
        let level = |rate: f64, error: f64| (rate.ln(), error);
        let levels = [level(50.0, 0.02), level(98.5, 0.02), level(99.0, 0.02), level(100.0, 0.0)];
        assert_eq!(simplest_of_the_best(&levels, 100f64.ln(), 0.0), Some(1));
        let exact = [level(50.0, 0.0), level(99.5, 0.0), level(100.0, 0.0)];
        assert_eq!(simplest_of_the_best(&exact, 100f64.ln(), 0.0), Some(2));
        assert_eq!(simplest_of_the_best(&exact, 100f64.ln(), 0.01), Some(1));
        assert_eq!(simplest_of_the_best(&exact[..2], 110f64.ln(), 0.01), Some(1));
        assert_eq!(simplest_of_the_best(&[], 1.0, 0.01), None);
    }

    #[test]
    fn neighbours_in_the_wrong_order_share_their_mean() {
        assert_eq!(unimodal(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(unimodal(&[1.0, 4.0, 2.0, 3.0]), [1.0, 4.0, 2.5, 2.5]);
        assert_eq!(unimodal(&[3.0, 2.0, 1.0]), [3.0, 2.0, 1.0]);
        assert!(unimodal(&[]).is_empty());
    }

    /// Tries every peak by itself, by the definition.
    #[test]
    fn no_other_peak_is_nearer() {
        let mut random = crate::random::Random::new(4);
        for _ in 0..300 {
            let count = 1 + random.below(9);
            let levels: Vec<f64> = (0..count).map(|_| random.normal()).collect();
            let distance = |fitted: &[f64]| -> f64 {
                fitted.iter().zip(&levels).map(|(a, b)| (a - b).powi(2)).sum()
            };
            let at = |peak: usize| {
                let mut fitted = rising(levels[..=peak].iter().copied());
                let mut falling = rising(levels[peak + 1..].iter().rev().copied());
                falling.reverse();
                fitted.extend(falling);
                distance(&fitted)
            };
            let least = (0..count).map(at).fold(f64::INFINITY, f64::min);
            assert!((distance(&unimodal(&levels)) - least).abs() < 1e-12, "{levels:?}");
        }
    }
}
