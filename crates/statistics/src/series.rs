//! Analyses a throughput series: its warm-up, and its lasting changes.

use super::{mean, median};

/// The course of a series of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// As it began.
    Steady,
    /// Its beginning differs from the rest.
    WarmsUp,
    /// It changes for good somewhere in its middle.
    Changes,
    /// It differs for a while, and ends as it began.
    Dips,
}

/// Least change of level, as a share of the larger level.
const CHANGE: f64 = 0.2;

/// The course of a series. Changes of level are found first, because the search for a warm-up would
/// cut off everything that makes the rest look uneven, even all that is before a lasting change. A
/// beginning that settles within a third of the run is a warm-up; a change that lasts for the last
/// fifth is lasting.
pub fn course(series: &[f64]) -> Course {
    let n = series.len();
    let mut edges = vec![0];
    edges.extend(regime_changes(series, (n / 10).max(5)));
    edges.push(n);
    let level = |pair: &[usize]| mean(&series[pair[0]..pair[1]]);
    let levels: Vec<f64> = edges.windows(2).filter_map(level).collect();
    let Some(&last) = levels.last() else { return Course::Steady };
    let differs = |level: &f64| (level - last).abs() > CHANGE * level.abs().max(last.abs());
    let Some(other) = levels.iter().rposition(differs) else {
        return if has_long_warm_up(series) { Course::WarmsUp } else { Course::Steady };
    };
    let settled = edges[other + 1];
    match () {
        () if !differs(&levels[0]) => Course::Dips,
        () if settled * 3 <= n => Course::WarmsUp,
        () if (n - settled) * 5 >= n => Course::Changes,
        () => Course::Dips,
    }
}

/// Whether the first fifth or more of a series differs. MSER-5 finds the best place to cut, but it
/// also cuts every fifth even series there. So the two parts have to differ by a noticeable amount,
/// and by more than choosing the best place makes of noise.
fn has_long_warm_up(series: &[f64]) -> bool {
    const OTHERWISE: f64 = 0.05;
    const ERRORS: f64 = 4.0;
    let n = series.len();
    // A series that never settles differs in its first half.
    let cut = warm_up(series).unwrap_or(n / 2);
    let (beginning, rest) = series.split_at(cut);
    let (Some(first), Some(then), Some(noise)) = (mean(beginning), mean(rest), noise(series))
    else {
        return false;
    };
    let error = (noise * (1.0 / beginning.len() as f64 + 1.0 / rest.len() as f64)).sqrt();
    let difference = (first - then).abs();
    cut * 5 > n && difference > ERRORS * error && difference > OTHERWISE * first.max(then)
}

/// Warm-up of a series by MSER-5 (White 1997; White, Cobb and Spratt 2000): means of five, then the
/// cut that makes the standard error of the rest smallest. Returns how many values belong to the
/// warm-up. A cut in the second half means that the series never settles: `None`.
pub fn warm_up(series: &[f64]) -> Option<usize> {
    const BATCH: usize = 5;
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let n = batches.len();
    if n < 4 {
        return Some(0);
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let centre = mean(rest).unwrap_or(0.0);
        let squares: f64 = rest.iter().map(|value| (value - centre).powi(2)).sum();
        squares / (rest.len() * rest.len()) as f64
    };
    // The last five batches may agree by chance; White excludes them from the search.
    let last = n.saturating_sub(5).max(n / 2);
    let best = (0..=last).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (best <= n / 2).then_some(best * BATCH)
}

/// Places where the mean of a series changes: the partition with the least squared error and a
/// penalty of 4 ln n for each change (Jackson et al. 2005, "optimal partitioning"; the optimum that
/// PELT of Killick, Fearnhead and Eckley 2012 finds, without its pruning, which short series do not
/// need). The noise is estimated from differences of neighbours, which a change of level hardly
/// affects. Each place is the first value of its regime.
///
/// No regime is shorter than `shortest` values. The work grows with the square of the length, so
/// series longer than [`SERIES_MAX`] are cut there.
pub fn regime_changes(series: &[f64], shortest: usize) -> Vec<usize> {
    let series = &series[..series.len().min(SERIES_MAX)];
    let (n, shortest) = (series.len(), shortest.max(2));
    let Some(noise) = noise(series).filter(|_| n >= 2 * shortest) else { return Vec::new() };
    let sums = Sums::new(series);
    let penalty = 4.0 * (n as f64).ln();
    let mut best = vec![f64::INFINITY; n + 1];
    let mut last_change = vec![0usize; n + 1];
    best[0] = -penalty;
    for end in shortest..=n {
        for from in 0..=end - shortest {
            let cost = best[from] + sums.cost(from, end) / noise + penalty;
            if cost < best[end] {
                (best[end], last_change[end]) = (cost, from);
            }
        }
    }
    let mut changes = Vec::new();
    let mut at = n;
    while last_change[at] > 0 {
        at = last_change[at];
        changes.push(at);
    }
    changes.reverse();
    changes
}

/// Longest series that is analysed.
pub const SERIES_MAX: usize = 4096;

/// The largest excursion of the cumulative sum of deviations from the mean, in units expected of
/// independent values (Page 1954; the scaled range of the bridge), and its place. More than 1.36
/// occurs in one of twenty series that do not change (Kolmogorov's distribution).
pub fn cusum(series: &[f64]) -> Option<(f64, usize)> {
    let centre = mean(series)?;
    let scale = noise(series)?.sqrt() * (series.len() as f64).sqrt();
    let mut sum = 0.0;
    let mut worst = (0.0f64, 0);
    for (index, value) in series.iter().enumerate() {
        sum += value - centre;
        if sum.abs() / scale > worst.0 {
            worst = (sum.abs() / scale, index + 1);
        }
    }
    Some(worst)
}

/// Variance of the noise from differences of neighbours: half of their squared robust spread.
fn noise(series: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let middle = median(&differences)?;
    let spread = middle / 0.674_5;
    let mean = mean(&differences)?;
    // Most neighbours are equal: rounding of a counter, not absence of noise.
    let spread = if spread > 0.0 { spread } else { mean * 1.253_314 };
    (spread > 0.0).then(|| spread.powi(2) / 2.0)
}

/// Cumulative sums, from which the cost of any regime takes two look-ups.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(series: &[f64]) -> Sums {
        let centre = mean(series).unwrap_or(0.0);
        let (mut values, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for value in series {
            // Around their mean, to keep the precision of the squares.
            sum += value - centre;
            square += (value - centre).powi(2);
            values.push(sum);
            squares.push(square);
        }
        Sums { values, squares }
    }

    /// Sum of squared distances from the mean of `from..to`.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let sum = self.values[to] - self.values[from];
        (self.squares[to] - self.squares[from] - sum * sum / (to - from) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn noisy(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let flat = levels.iter().flat_map(|&(count, level)| std::iter::repeat_n(level, count));
        flat.map(|level| level + random.normal()).collect()
    }

    #[test]
    fn warm_up_is_found() {
        let found = warm_up(&noisy(&[(20, 10.0), (180, 50.0)], 3)).unwrap();
        assert!((20..=30).contains(&found), "{found}");
        let found = warm_up(&noisy(&[(200, 50.0)], 4)).unwrap();
        assert!(found <= 40, "{found}");
        assert_eq!(warm_up(&noisy(&[(130, 50.0), (70, 10.0)], 5)), None);
        assert_eq!(warm_up(&[1.0, 2.0]), Some(0));
    }

    #[test]
    fn the_course_of_a_series_is_told_by_how_it_ends() {
        let share = |levels: &[(usize, f64)], expected: Course| {
            (0..200).filter(|&seed| course(&noisy(levels, seed)) == expected).count()
        };
        let step = [(40, 50.0), (60, 30.0)];
        let early = [(20, 20.0), (80, 50.0)];
        let dip = [(40, 50.0), (20, 30.0), (40, 50.0)];
        assert!(share(&step, Course::Changes) >= 198);
        assert!(share(&early, Course::WarmsUp) >= 198);
        assert!(share(&dip, Course::Dips) >= 198);
        assert!(share(&[(100, 50.0)], Course::Steady) >= 150);
    }

    #[test]
    fn regimes_are_found_where_they_are_and_not_where_they_are_not() {
        let (mut exact, mut false_alarms) = (0, 0);
        for seed in 0..200 {
            let changes = regime_changes(&noisy(&[(100, 50.0), (60, 44.0), (90, 52.0)], seed), 5);
            let near = |place: usize| changes.iter().any(|change| change.abs_diff(place) <= 2);
            assert!(near(100) && near(160), "{seed}: {changes:?}");
            exact += usize::from(changes.len() == 2);
            let flat = noisy(&[(250, 50.0)], seed);
            false_alarms += usize::from(!regime_changes(&flat, 5).is_empty());
        }
        assert!(exact >= 194, "{exact} of 200");
        assert!(false_alarms <= 6, "{false_alarms} of 200");
        assert!(regime_changes(&[7.0; 50], 5).is_empty());
        assert!(regime_changes(&[], 5).is_empty());
    }

    #[test]
    fn cusum_tells_a_drift_from_noise() {
        let alarms = |level: f64| {
            let series = |seed| noisy(&[(60, 50.0), (60, 50.0 + level)], seed);
            (0..300).filter(|&seed| cusum(&series(seed)).unwrap().0 > 1.36).count()
        };
        assert!(alarms(0.0) <= 30, "{}", alarms(0.0));
        assert!(alarms(1.5) >= 295, "{}", alarms(1.5));
    }
}
