//! Tests whether repeats are a sample: independent of each other, and of one kind.
//!
//! Every interval here assumes that the repeats of a cell are independent and of one distribution.
//! If a repeat resembles the one before, ten of them are worth as much as five. If a cell has two
//! speeds, three repeats usually see one of them. Few repeats cannot show either, and the report
//! says so.

use super::mean;
use crate::random::Random;

/// Fewest repeats, and fewest pairs of neighbours over all cells, for the test of dependence.
const NEIGHBOURS_MIN: (usize, usize) = (5, 9);

/// Fewest repeats that can show two kinds.
pub const KINDS_MIN: usize = 6;

/// Most orders that are tried; the search ends earlier after enough orders that look like the real
/// one.
const ORDERS_MAX: u32 = 999;
const ALIKE_MAX: u32 = 20;

/// With more cells than this, some cell looks like two kinds by chance too often.
const ALONE_MAX: usize = 20;

/// Whether this many cells with this many repeats can show dependence.
pub fn tells_dependence(cells: usize, repeats: usize) -> bool {
    repeats >= NEIGHBOURS_MIN.0 && cells * (repeats - 1) >= NEIGHBOURS_MIN.1
}

/// Probability that independent repeats look as much like their neighbours: the sum of products of
/// neighbours, each cell counting alike, against the same sum for other orders of the repeats (a
/// permutation test, Wald and Wolfowitz 1943; drawn until the answer is clear, Besag and Clifford
/// 1991). All cells are put into the same order, so common effects of a repeat do no harm. Each
/// cell has its values in the order of the repeats, and all have the same number. `None` if there
/// are too few.
pub fn like_the_one_before(cells: &[Vec<f64>], seed: u64) -> Option<f64> {
    let repeats = cells.first()?.len();
    if !tells_dependence(cells.len(), repeats) || cells.iter().any(|own| own.len() != repeats) {
        return None;
    }
    let centred: Vec<Vec<f64>> = cells.iter().filter_map(|own| standardised(own)).collect();
    let products = |order: &[usize]| -> f64 {
        let of = |own: &Vec<f64>| -> f64 {
            order.windows(2).map(|pair| own[pair[0]] * own[pair[1]]).sum()
        };
        centred.iter().map(of).sum()
    };
    let mut order: Vec<usize> = (0..repeats).collect();
    let seen = products(&order);
    let mut random = Random::new(seed);
    let mut alike = 0;
    for drawn in 1..=ORDERS_MAX {
        random.shuffle(&mut order);
        // The same order read backwards has the same products, except for rounding.
        alike += u32::from(products(&order) >= seen - 1e-9);
        if alike >= ALIKE_MAX {
            return Some(f64::from(alike) / f64::from(drawn));
        }
    }
    Some(f64::from(alike + 1) / f64::from(ORDERS_MAX + 1))
}

/// Highest correlation with the previous repeat that is assumed: a few repeats cannot distinguish a
/// higher one from a trend.
const LIKE_MAX: f64 = 0.8;

/// The factor by which intervals have to be wider if repeats resemble the one before. It uses the
/// mean correlation of neighbours, corrected for its bias (Marriott and Pope 1954), and the effect
/// of a first-order autoregression on the error of a mean and on the scatter that it is estimated
/// from (Zwiers and von Storch 1995). Each cell has its values in the order of the repeats.
pub fn widening(cells: &[Vec<f64>]) -> f64 {
    let neighbours = |own: &Vec<f64>| {
        let centred = standardised(own)?;
        Some(centred.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>())
    };
    let correlations: Vec<f64> = cells.iter().filter_map(neighbours).collect();
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let Some(seen) = mean(&correlations).filter(|_| count > 4) else { return 1.0 };
    let count = count as f64;
    let like = ((count * seen + 1.0) / (count - 4.0)).clamp(0.0, LIKE_MAX);
    let further = (1..count as i32).map(|by| (1.0 - f64::from(by) / count) * like.powi(by));
    let excess = 1.0 + 2.0 * further.sum::<f64>();
    (excess * (count - 1.0) / (count - excess)).sqrt()
}

fn standardised(values: &[f64]) -> Option<Vec<f64>> {
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares > 0.0).then(|| values.iter().map(|value| (value - centre) / squares.sqrt()).collect())
}

/// Shares that [`in_two`] exceeds in 2 % and in 0.1 % of samples of normal values, by the number of
/// values. (Simulated, 400,000 samples each; 60,000 from 30 on.)
const LIMITS: [(usize, f64, f64); 11] = [
    (6, 0.9546, 0.9899),
    (7, 0.9359, 0.9805),
    (8, 0.9193, 0.9686),
    (9, 0.9047, 0.9584),
    (10, 0.8908, 0.9483),
    (12, 0.8692, 0.9271),
    (15, 0.8445, 0.9023),
    (20, 0.8147, 0.8706),
    (30, 0.7808, 0.8292),
    (50, 0.7467, 0.7899),
    (100, 0.7125, 0.7437),
];

/// The largest share of the sum of squares that cutting the values in two explains, with at least
/// two values on each side.
fn in_two(values: &[f64]) -> Option<f64> {
    let sorted = super::sorted(&standardised(values)?);
    let count = sorted.len();
    let mut sum = 0.0;
    let mut most = 0.0f64;
    for (below, value) in sorted.iter().enumerate() {
        if below >= 2 && below + 2 <= count {
            let (low, high) = (below as f64, (count - below) as f64);
            most = most.max(sum * sum * (1.0 / low + 1.0 / high));
        }
        sum += value;
    }
    Some(most)
}

/// The cells, given by their values, that look like two kinds of run rather than one: all of them
/// taken together, or those that do so by themselves. `None` if no cell has enough repeats.
pub fn of_two_kinds(cells: &[Vec<f64>]) -> Option<Vec<usize>> {
    let limits = |count: usize| LIMITS.iter().rev().find(|(known, ..)| *known <= count);
    let mut shares = Vec::new();
    for (index, values) in cells.iter().enumerate().filter(|(_, own)| own.len() >= KINDS_MIN) {
        let (_, together, alone) = limits(values.len())?;
        shares.push((index, in_two(values).unwrap_or(0.0), *together, *alone));
    }
    if shares.is_empty() {
        return None;
    }
    // Cells with common repeats are one sample, however many they are: their mean is compared with
    // the limit of one.
    let is_few = shares.len() <= ALONE_MAX;
    let excess: f64 = shares.iter().map(|(_, share, together, _)| share - together).sum();
    let found =
        shares.iter().filter(
            |(_, share, together, alone)| {
                if excess > 0.0 { share > together } else { is_few && share > alone }
            },
        );
    Some(found.map(|(index, ..)| *index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(count: usize, repeats: usize, seed: u64, own: f64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed);
        let mut cell = || {
            let mut before = random.normal();
            let mut next = || {
                before = own * before + (1.0 - own * own).sqrt() * random.normal();
                before
            };
            (0..repeats).map(|_| next()).collect()
        };
        (0..count).map(|_| cell()).collect()
    }

    #[test]
    fn repeats_like_the_one_before_are_told() {
        let told = |count, repeats, own| {
            let p = |seed| like_the_one_before(&cells(count, repeats, seed, own), seed).unwrap();
            (0..300).filter(|&seed| p(seed) <= 0.02).count()
        };
        assert!(told(6, 10, 0.5) > 190, "{}", told(6, 10, 0.5));
        assert!(told(1, 40, 0.5) > 190, "{}", told(1, 40, 0.5));
        assert!(told(6, 10, 0.0) < 16 && told(3, 5, 0.0) < 16);
        assert_eq!(like_the_one_before(&cells(1, 9, 1, 0.5), 1), None);
        assert_eq!(like_the_one_before(&cells(9, 4, 1, 0.5), 1), None);
        assert_eq!(like_the_one_before(&[], 1), None);
    }

    #[test]
    fn two_kinds_are_told_from_one() {
        let found = |gap: f64, repeats| {
            let kinds = |seed| {
                let mut random = Random::new(seed);
                let mut one = || random.normal() + gap * (random.below(2) as f64);
                of_two_kinds(&[(0..repeats).map(|_| one()).collect()]).unwrap().len()
            };
            (0..300).map(kinds).sum::<usize>()
        };
        assert!(found(0.0, 6) < 14 && found(0.0, 11) < 14 && found(0.0, 25) < 14);
        assert!(found(10.0, 10) > 270, "{}", found(10.0, 10));
        assert_eq!(of_two_kinds(&[vec![1.0; 5]]), None);
        assert_eq!(of_two_kinds(&[vec![1.0; 6]]), Some(vec![]));
    }
}
