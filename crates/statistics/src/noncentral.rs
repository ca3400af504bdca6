//! How far from zero a value has to be for a t test to find it.
//!
//! The noncentral t distribution by the normal approximation of Johnson and Welch (1940), whose
//! error is below one in a hundred for the usual powers.

use statrs::distribution::{ContinuousCDF, Normal};

/// Probability that a value `away` standard errors from zero is found by a test that requires
/// `limit` estimated ones, with this many degrees of freedom.
pub fn found(limit: f64, away: f64, degrees: f64) -> Option<f64> {
    let (shift, root) = shape(limit, degrees);
    Some(1.0 - Normal::new(0.0, 1.0).ok()?.cdf((limit * shift - away) / root))
}

/// The distance, in standard errors, that is found in `share` of all tests; the inverse of
/// [`found`].
pub fn away(limit: f64, share: f64, degrees: f64) -> Option<f64> {
    let (shift, root) = shape(limit, degrees);
    Some(limit * shift + root * Normal::new(0.0, 1.0).ok()?.inverse_cdf(share))
}

/// The typical estimate of a standard error, as a share of the true one: with few degrees of
/// freedom, estimates are more often too small than too large (the median of chi squared by Wilson
/// and Hilferty 1931).
pub fn typical_estimate(degrees: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * degrees)).max(0.1).powf(1.5)
}

/// The effect of estimating the error on the limit: its mean, and how much wider the distribution
/// is.
fn shape(limit: f64, degrees: f64) -> (f64, f64) {
    (1.0 - 1.0 / (4.0 * degrees), (1.0 + limit * limit / (2.0 * degrees)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn as_many_are_found_as_foretold() {
        let mut random = Random::new(7);
        for (limit, degrees) in [(4.85, 4u32), (3.2, 8), (2.4, 18)] {
            let away = away(limit, 0.8, f64::from(degrees)).unwrap();
            assert!((found(limit, away, f64::from(degrees)).unwrap() - 0.8).abs() < 1e-9);
            let mut errors = Vec::new();
            let mut count = 0;
            for _ in 0..20_000 {
                let squares: f64 = (0..degrees).map(|_| random.normal().powi(2)).sum();
                let error = (squares / f64::from(degrees)).sqrt();
                count += u32::from((away + random.normal()) / error > limit);
                errors.push(error);
            }
            let share = f64::from(count) / 20_000.0;
            assert!((0.77..=0.83).contains(&share), "{limit} {degrees}: {share}");
            let typical = crate::median(&errors).unwrap();
            assert!((typical / typical_estimate(f64::from(degrees)) - 1.0).abs() < 0.02);
        }
    }
}
