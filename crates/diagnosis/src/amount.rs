//! A number with its range, and how it is known.

use base::finding::Certainty;

/// A number that was measured several times, or that is known within limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// The most likely value.
    pub typical: f64,
    /// The lower end of its range.
    pub low: f64,
    /// The upper end of its range.
    pub high: f64,
    pub certainty: Certainty,
}

/// Even trials that agree are of a few seconds only.
const LEAST_SPREAD: f64 = 0.05;

/// Which of the numbers of an [`Amount`] a forecast is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    Low,
    Typical,
    High,
}

impl Amount {
    /// A number that is known without a trial.
    pub fn told(value: f64) -> Amount {
        Amount { typical: value, low: value, high: value, certainty: Certainty::Told }
    }

    /// From trials: their median, with a range that holds them all. `None` without any.
    pub fn of_trials(values: &[f64]) -> Option<Amount> {
        let typical = statistics::median(values)?;
        let least = values.iter().copied().fold(typical, f64::min);
        let most = values.iter().copied().fold(typical, f64::max);
        Some(Amount {
            typical,
            low: least.min(typical * (1.0 - LEAST_SPREAD)),
            high: most.max(typical * (1.0 + LEAST_SPREAD)),
            certainty: Certainty::Measured,
        })
    }

    /// One of its numbers.
    pub fn at(&self, pick: Pick) -> f64 {
        match pick {
            Pick::Low => self.low,
            Pick::Typical => self.typical,
            Pick::High => self.high,
        }
    }

    /// The same, but no more than another.
    #[must_use]
    pub fn at_most(self, other: Amount) -> Amount {
        Amount {
            typical: self.typical.min(other.typical),
            low: self.low.min(other.low),
            high: self.high.min(other.high),
            certainty: self.certainty,
        }
    }

    /// The same, times a number.
    #[must_use]
    pub fn times(self, factor: f64) -> Amount {
        Amount {
            typical: self.typical * factor,
            low: self.low * factor,
            high: self.high * factor,
            certainty: self.certainty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_holds_all_trials() {
        let amount = Amount::of_trials(&[90.0, 100.0, 130.0]).unwrap();
        assert_eq!((amount.low, amount.typical, amount.high), (90.0, 100.0, 130.0));
        let narrow = Amount::of_trials(&[100.0]).unwrap();
        assert_eq!((narrow.low, narrow.high), (95.0, 105.0));
        assert_eq!(Amount::of_trials(&[]), None);
    }
}
