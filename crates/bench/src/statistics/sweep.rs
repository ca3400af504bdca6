//! Which level of a sweep to set: the simplest that is as good as the best.

/// Mean and scatter of one level, in the order of the sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Mean of the repeats.
    pub mean: f64,
    /// Standard error of that mean; zero where it is not known.
    pub standard_error: f64,
}

/// The one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, for trees): the first
/// level whose mean lies within one standard error of the best one. What nobody would notice,
/// `indifference` as a share of the best, counts as no difference either. `None` of no levels.
pub fn one_standard_error(levels: &[Level], indifference: f64) -> Option<usize> {
    let best = best(levels)?;
    let slack = levels[best].standard_error.max(indifference * levels[best].mean.abs());
    levels.iter().position(|level| level.mean >= levels[best].mean - slack)
}

/// The level with the highest mean.
pub fn best(levels: &[Level]) -> Option<usize> {
    (0..levels.len()).max_by(|&a, &b| levels[a].mean.total_cmp(&levels[b].mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_of_the_best() {
        let level = |mean, standard_error| Level { mean, standard_error };
        let levels = [level(50.0, 1.0), level(98.5, 1.0), level(99.0, 2.0), level(100.0, 1.6)];
        assert_eq!(one_standard_error(&levels, 0.0), Some(1));
        assert_eq!(best(&levels), Some(3));
        let exact = [level(50.0, 0.0), level(99.5, 0.0), level(100.0, 0.0)];
        assert_eq!(one_standard_error(&exact, 0.0), Some(2));
        assert_eq!(one_standard_error(&exact, 0.01), Some(1));
        assert_eq!(one_standard_error(&[], 0.01), None);
    }
}
