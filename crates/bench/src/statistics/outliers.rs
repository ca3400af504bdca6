//! Runs that do not look like the others: marked, never dropped.

use super::median;

/// From this modified z-score on a value is an outlier (Iglewicz and Hoaglin 1993).
pub const OUTLIER_SCORE: f64 = 3.5;

/// Modified z-scores (Iglewicz and Hoaglin 1993): distance from the median in units of the median
/// absolute deviation, scaled so that normal values score as with a standard deviation. Where more
/// than half of the values are the same the mean absolute deviation takes its place, as they say.
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let Some(centre) = median(values) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let middle = median(&distances).unwrap_or(0.0);
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let scale = if middle > 0.0 { middle / 0.674_5 } else { mean * 1.253_314 };
    values.iter().map(|value| if scale > 0.0 { (value - centre) / scale } else { 0.0 }).collect()
}

/// Which values are outliers. Of fewer than five none: their median says too little.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 5 {
        return Vec::new();
    }
    let scores = modified_z_scores(values);
    let far = |index: &usize| scores[*index].abs() > OUTLIER_SCORE;
    (0..values.len()).filter(far).collect()
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
        // More than half are the same.
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0]), [7]);
        assert_eq!(outliers(&[5.0; 9]), [0usize; 0]);
    }
}
