//! Outliers among runs: marked, never dropped.

use super::median;

/// From this modified z-score on, a value among many is an outlier (Iglewicz and Hoaglin 1993).
pub const OUTLIER_SCORE: f64 = 3.5;

/// By number of values: the limit that the largest score of normal values exceeds in one sample of
/// a hundred. The usual limit is for many values: with five it flags every fifth sample. Odd
/// numbers have larger limits, because their median is one of the values. (Simulated, 15,000
/// samples each.)
const LIMITS: [(usize, f64); 12] = [
    (5, 18.43),
    (6, 10.16),
    (7, 10.62),
    (8, 8.20),
    (9, 8.26),
    (10, 6.95),
    (12, 6.20),
    (15, 5.89),
    (20, 5.09),
    (30, 4.80),
    (50, 4.44),
    (100, 4.30),
];

/// The score above which one of `count` values is an outlier. For a number that is not in the list,
/// that of the next smaller one, which is larger.
pub fn limit(count: usize) -> f64 {
    let known = LIMITS.iter().rev().find(|(known, _)| *known <= count);
    known.map_or(LIMITS[0].1, |(_, limit)| *limit)
}

/// Modified z-scores (Iglewicz and Hoaglin 1993): distance from the median in units of the median
/// absolute deviation, scaled so that normal values score as with a standard deviation. If more
/// than half of the values are equal, the mean absolute deviation is used, as the authors suggest.
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let Some(centre) = median(values) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let middle = median(&distances).unwrap_or(0.0);
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let scale = if middle > 0.0 { middle / 0.674_5 } else { mean * 1.253_314 };
    values.iter().map(|value| if scale > 0.0 { (value - centre) / scale } else { 0.0 }).collect()
}

/// Indices of the outliers. None among fewer than five values: their median is too uncertain.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 5 {
        return Vec::new();
    }
    let scores = modified_z_scores(values);
    let typical = scores.iter().filter(|score| score.abs() > 0.0).count();
    // If most values are equal, the rest are not a sample of a distribution.
    let is_of_grain = 2 * typical < values.len();
    let limit = if is_of_grain { OUTLIER_SCORE } else { limit(values.len()) };
    (0..values.len()).filter(|&index| scores[index].abs() > limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_far_off_is_found_and_a_spread_is_not() {
        let values = [101.0, 99.0, 100.0, 102.0, 98.0, 40.0];
        assert_eq!(outliers(&values), [5]);
        assert_eq!(outliers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [0usize; 0]);
        assert_eq!(outliers(&[1.0, 1.0, 50.0]), [0usize; 0]);
        // More than half are equal.
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0]), [7]);
        assert_eq!(outliers(&[5.0; 9]), [0usize; 0]);
    }

    #[test]
    fn the_limit_depends_on_the_number() {
        assert_eq!((limit(5), limit(10), limit(1000)), (18.43, 6.95, 4.30));
        assert_eq!((limit(11), limit(4)), (limit(10), 18.43));
        let mut random = crate::random::Random::new(6);
        for (count, most) in [(5, 0.016), (11, 0.016), (25, 0.016)] {
            let mut sample = || (0..count).map(|_| random.normal()).collect::<Vec<f64>>();
            let flagged = (0..4000).filter(|_| !outliers(&sample()).is_empty()).count();
            assert!((flagged as f64) < most * 4000.0, "{count}: {flagged}");
        }
    }
}
