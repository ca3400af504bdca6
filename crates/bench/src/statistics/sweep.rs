//! Which level of a sweep to set: the simplest that is as good as the best.

/// How many standard errors of its difference from the best one a level may lie below it and still
/// be as good. One, and a tenth for the luck of the best, which is the highest of several: with one
/// the right knee of `tests/truth` was found in 74 % of experiments of three repeats, with this in
/// 77 %; more of it would pass over differences that are some.
const ERRORS: f64 = 1.1;

/// The first of several levels, each given by its logarithm and the standard error of its
/// difference from the best one, that lies within about one such error of it: the rule of one
/// standard error (Breiman, Friedman, Olshen and Stone 1984, for trees), with the error of what is
/// compared.
/// What nobody would notice, `indifference` as a share, counts as no difference either. Of levels
/// that all lie further below it is the highest; `None` of none.
pub fn simplest_of_the_best(levels: &[(f64, f64)], best: f64, indifference: f64) -> Option<usize> {
    let is_as_good =
        |(log, error): &(f64, f64)| best - log <= (ERRORS * error).max(indifference.ln_1p());
    let highest = || (0..levels.len()).max_by(|&a, &b| levels[a].0.total_cmp(&levels[b].0));
    levels.iter().position(is_as_good).or_else(highest)
}

/// Levels that rise to one of them and fall behind it, as near to the given ones as can be: means
/// of neighbours that come in the wrong order (isotonic regression by pooling adjacent violators,
/// Ayer et al. 1955; with a peak, Frisen 1986). Several levels that are as good as each other lend
/// each other their runs, where the largest of them alone would be too large.
pub fn unimodal(levels: &[f64]) -> Vec<f64> {
    let mut best: Option<(f64, Vec<f64>)> = None;
    for peak in 0..levels.len() {
        let mut fitted = rising(&levels[..=peak]);
        let mut falling: Vec<f64> = levels[peak + 1..].to_vec();
        falling.reverse();
        falling = rising(&falling);
        falling.reverse();
        fitted.extend(falling);
        let distance: f64 = fitted.iter().zip(levels).map(|(a, b)| (a - b).powi(2)).sum();
        if best.as_ref().is_none_or(|(least, _)| distance < least - 1e-15) {
            best = Some((distance, fitted));
        }
    }
    best.map(|(_, fitted)| fitted).unwrap_or_default()
}

fn rising(levels: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &level in levels {
        let mut pool = (level, 1);
        while let Some(&(before, count)) = pools.last().filter(|(before, _)| *before > pool.0) {
            let both = count + pool.1;
            pool = ((before * count as f64 + pool.0 * pool.1 as f64) / both as f64, both);
            pools.pop();
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|&(level, count)| std::iter::repeat_n(level, count)).collect()
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
}
