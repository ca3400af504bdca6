//! Runs as a two-way table: a level for each cell and a level for each block.
//!
//! The normal equations are solved for the side with fewer elements. An experiment has many repeats
//! of few cells, or few repeats of many cells, so this side has at most as many elements as the
//! root of the number of runs, and the work never grows with the cube of the repeats. Elements of
//! the other side with the same runs (all blocks that hold every cell once) have the same equation,
//! and form one [`RunGroup`].

use std::collections::BTreeMap;

/// Elements of the larger side with the same runs.
#[derive(Clone, Debug)]
pub struct RunGroup {
    /// Elements of the smaller side, each with its number of runs in each element of the group.
    pub members: Vec<(usize, f64)>,
    /// Runs of an element.
    pub size: f64,
    pub elements: Vec<usize>,
}

impl RunGroup {
    /// Mean of a number of the smaller side over the runs of an element.
    pub fn mean(&self, of: &[f64]) -> f64 {
        self.members.iter().map(|&(at, times)| times * of[at]).sum::<f64>() / self.size
    }
}

/// The two-way table, solved.
#[derive(Clone, Debug)]
pub struct TwoWay {
    /// A generalised inverse of the equations of the smaller side, after substituting those of the
    /// larger one.
    inverse: Vec<Vec<f64>>,
    groups: Vec<RunGroup>,
    group_of: Vec<usize>,
}

impl TwoWay {
    /// From runs, each given as its elements of the smaller and the larger side.
    pub fn new(runs: impl Iterator<Item = (usize, usize)>) -> TwoWay {
        let mut own: Vec<Vec<usize>> = Vec::new();
        let mut small_count = 0;
        for (small, large) in runs {
            small_count = small_count.max(small + 1);
            if own.len() <= large {
                own.resize_with(large + 1, Vec::new);
            }
            own[large].push(small);
        }
        let mut groups: Vec<RunGroup> = Vec::new();
        let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut group_of = Vec::with_capacity(own.len());
        for (element, mut runs) in own.into_iter().enumerate() {
            runs.sort_unstable();
            let size = runs.len() as f64;
            let index = *known.entry(runs).or_insert_with_key(|runs| {
                let parts = runs.chunk_by(|a, b| a == b);
                let members = parts.map(|part| (part[0], part.len() as f64)).collect();
                groups.push(RunGroup { members, size, elements: Vec::new() });
                groups.len() - 1
            });
            groups[index].elements.push(element);
            group_of.push(index);
        }
        let inverse = generalised_inverse(equations(&groups, small_count));
        TwoWay { inverse, groups, group_of }
    }

    /// The groups of the larger side.
    pub fn groups(&self) -> &[RunGroup] {
        &self.groups
    }

    /// The group of an element of the larger side.
    pub fn group_of(&self, element: usize) -> &RunGroup {
        &self.groups[self.group_of[element]]
    }

    /// The index of that.
    pub fn group_index(&self, element: usize) -> usize {
        self.group_of[element]
    }

    /// Elements of the smaller side.
    pub fn small_count(&self) -> usize {
        self.inverse.len()
    }

    /// Solves the equations of the smaller side for a right-hand side.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        self.inverse.iter().map(|row| dot(row, right)).collect()
    }

    /// Like `solve`, for a right-hand side with few non-zero places.
    pub fn solve_sparse(&self, right: &BTreeMap<usize, f64>) -> Vec<f64> {
        let one = |row: &Vec<f64>| right.iter().map(|(&at, value)| row[at] * value).sum();
        self.inverse.iter().map(one).collect()
    }

    /// For each member of a group, the share of its run in the degrees of freedom that the fit
    /// uses.
    pub fn leverages(&self, group: &RunGroup) -> Vec<f64> {
        let share = |row: &Vec<f64>| {
            group.members.iter().map(|&(at, times)| times * row[at]).sum::<f64>() / group.size
        };
        // Only the places of the members are needed.
        let mixed: Vec<f64> =
            group.members.iter().map(|&(at, _)| share(&self.inverse[at])).collect();
        let both: f64 = (group.members.iter().zip(&mixed))
            .map(|(&(_, times), mixed)| times * mixed)
            .sum::<f64>()
            / group.size;
        let one = |(&(at, _), mixed): (&(usize, f64), &f64)| {
            1.0 / group.size + self.inverse[at][at] - 2.0 * mixed + both
        };
        group.members.iter().zip(&mixed).map(one).collect()
    }
}

/// The equations of the smaller side.
fn equations(groups: &[RunGroup], count: usize) -> Vec<Vec<f64>> {
    let mut normal = vec![vec![0.0; count]; count];
    for group in groups.iter().filter(|group| group.size > 0.0) {
        let elements = group.elements.len() as f64;
        for &(at, times) in &group.members {
            normal[at][at] += elements * times;
            for &(other, other_times) in &group.members {
                normal[at][other] -= elements * times * other_times / group.size;
            }
        }
    }
    normal
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Generalised inverse of a symmetric matrix without negative eigenvalues, by elimination;
/// dependent rows are skipped.
fn generalised_inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let scale = (0..n).map(|at| matrix[at][at]).fold(0.0, f64::max);
    let mut used = vec![false; n];
    // The sweep operator (Goodnight 1979).
    for pivot in 0..n {
        let diagonal = matrix[pivot][pivot];
        if diagonal <= 1e-9 * scale {
            continue;
        }
        used[pivot] = true;
        let row: Vec<f64> = matrix[pivot].iter().map(|value| value / diagonal).collect();
        for at in (0..n).filter(|&at| at != pivot) {
            let factor = matrix[at][pivot];
            for (value, part) in matrix[at].iter_mut().zip(&row) {
                *value -= factor * part;
            }
            matrix[at][pivot] = -factor / diagonal;
        }
        matrix[pivot] = row;
        matrix[pivot][pivot] = 1.0 / diagonal;
    }
    for (at, row) in matrix.iter_mut().enumerate() {
        for (other, value) in row.iter_mut().enumerate() {
            if !(used[at] && used[other]) {
                *value = 0.0;
            }
        }
    }
    matrix
}
