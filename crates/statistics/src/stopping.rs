//! When repeats are enough, from what has been measured so far.
//!
//! Who repeats until an interval looks narrow ends where the scatter looks smaller than it is, and
//! the interval then holds the truth less often than it says (Chow and Robbins 1965 promise
//! coverage in the limit only). Three things keep that small. The intervals of all cells have to
//! be narrow twice in a row. With several cells the widest of all decides, which by luck is hardly
//! ever too narrow. And of one or two cells the interval is one of a higher level, which holds what
//! the plain one promises: that one has to be narrow, and that one is printed.
//!
//! The rule looks at nothing but the runs of whole repeats, so that an experiment that was
//! interrupted ends where it would have ended, and a simulation of it is a simulation of
//! `run`.

use super::interval::of_geometric_mean;

/// Repeats in a row after which all intervals have to be narrow.
const NARROW_IN_A_ROW: u64 = 2;

/// When it is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// Repeats that every cell gets.
    pub repeats_min: u64,
    /// Repeats that no cell exceeds.
    pub repeats_max: u64,
    /// Half the width of an interval, as a share, that is narrow.
    pub narrow: f64,
}

impl Stopping {
    /// The level of an interval that holds the truth in 95 % of experiments that end by this rule,
    /// one of so many cells. Simulated: the plain one holds it in 92.3, 94.4, 94.7 and 95 % with
    /// 1, 2, 3 and more cells, where that is worst.
    pub fn level(&self, cells: usize) -> f64 {
        match cells {
            _ if self.repeats_min >= self.repeats_max => 0.95,
            1 => 0.975,
            2 => 0.96,
            _ => 0.95,
        }
    }

    /// Whether it is enough after a repeat, of cells that are given by their rates and the repeats
    /// of these; later repeats are not looked at.
    pub fn is_enough(&self, cells: &[Vec<(u64, f64)>], repeat: u64) -> bool {
        let is_narrow =
            |repeat| self.widest(cells, repeat).is_some_and(|widest| widest <= self.narrow);
        repeat >= self.repeats_min
            && repeat >= NARROW_IN_A_ROW
            && (repeat + 1 - NARROW_IN_A_ROW..=repeat).all(is_narrow)
    }

    /// Half the width of the widest interval after a repeat, as a share; `None` as long as a cell
    /// has none.
    pub fn widest(&self, cells: &[Vec<(u64, f64)>], repeat: u64) -> Option<f64> {
        let half = |rates: &Vec<(u64, f64)>| {
            let own = rates.iter().filter(|(own, _)| *own <= repeat);
            let rates: Vec<f64> = own.map(|(_, rate)| *rate).collect();
            Some(of_geometric_mean(&rates, self.level(cells.len()))?.relative_half_width())
        };
        cells.iter().map(half).try_fold(0.0, |widest: f64, half| Some(widest.max(half?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Stopping = Stopping { repeats_min: 5, repeats_max: 20, narrow: 0.05 };

    #[test]
    fn later_repeats_do_not_count_and_one_narrow_repeat_is_not_enough() {
        let cell =
            |rates: &[f64]| -> Vec<(u64, f64)> { (1..).zip(rates.iter().copied()).collect() };
        // Wide up to the fifth, narrow from the seventh on.
        let one = [80.0, 120.0, 100.0, 90.0, 110.0, 100.0, 100.0];
        let steady = cell(&[100.0, 101.0, 99.0, 100.0, 101.0, 99.0, 100.0]);
        let both = [steady.clone(), cell(&one)];
        assert!(RULE.is_enough(&[steady.clone(), steady.clone()], 5));
        assert!(!RULE.is_enough(&[steady.clone(), steady.clone()], 4));
        assert!(!(1..=7).any(|repeat| RULE.is_enough(&both, repeat)));
        let later = cell(&[100.0, 101.0, 99.0, 100.0, 101.0, 30.0, 100.0]);
        assert!(RULE.is_enough(&[later.clone(), steady], 5), "what comes later is not seen");
        assert!(!RULE.is_enough(&[later, cell(&[100.0])], 5), "a cell without an interval");
    }

    #[test]
    fn few_cells_have_a_higher_level_unless_nobody_looks() {
        assert_eq!([1, 2, 3, 40].map(|cells| RULE.level(cells)), [0.975, 0.96, 0.95, 0.95]);
        assert_eq!(Stopping { repeats_max: 5, ..RULE }.level(1), 0.95);
    }
}
