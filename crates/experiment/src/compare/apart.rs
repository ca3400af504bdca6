//! The factors that explain why two experiments have no combination in common.

use crate::record::{Experiment, Factor};

/// Largest number of levels that a sentence names.
const LEVELS_MAX: usize = 6;

/// The factors whose levels differ between A and B, in words: `block size is 64 KiB in A and 1 MiB,
/// 2 MiB in B`. Empty if each factor has levels in common, but no combination ran in both.
pub fn apart(a: &Experiment, b: &Experiment) -> Vec<String> {
    let find = |experiment: &Experiment, name: &str| {
        experiment.header.factors.iter().find(|factor| factor.name == name).cloned()
    };
    let mut told = Vec::new();
    for factor in &a.header.factors {
        match find(b, &factor.name) {
            Some(other) if is_apart(factor, &other) => {
                let [in_a, in_b] = [factor, &other].map(levels);
                told.push(format!("{} is {in_a} in A and {in_b} in B", factor.title()));
            }
            None if factor.levels.len() > 1 => told.push(alone(factor, "A")),
            _ => {}
        }
    }
    let own = b.header.factors.iter().filter(|factor| factor.levels.len() > 1);
    told.extend(own.filter(|it| find(a, &it.name).is_none()).map(|factor| alone(factor, "B")));
    told
}

/// A factor with one level in each does not keep them apart; such factors are ignored.
fn is_apart(one: &Factor, other: &Factor) -> bool {
    let varies = one.levels.len().max(other.levels.len()) > 1;
    varies && !one.levels.iter().any(|level| other.levels.contains(level))
}

fn alone(factor: &Factor, name: &str) -> String {
    format!("{} varies only in {name} ({})", factor.title(), levels(factor))
}

fn levels(factor: &Factor) -> String {
    let shown: Vec<String> =
        factor.levels.iter().take(LEVELS_MAX).map(|level| level.shown(&factor.name)).collect();
    match factor.levels.len().saturating_sub(LEVELS_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{FORMAT, Header, Level, Value};

    fn experiment(factors: &[(&str, &[u64])]) -> Experiment {
        let factor = |(name, levels): &(&str, &[u64])| {
            Factor::new(name, levels.iter().copied().map(Level::Number).collect())
        };
        let header = Header {
            format: FORMAT,
            kind: "disk".into(),
            title: String::new(),
            value: Value::Rate,
            factors: factors.iter().map(factor).collect(),
            plan: serde_json::Value::Null,
            seed: 1,
            started_unix_seconds: 0,
        };
        Experiment { header, runs: Vec::new(), torn_bytes: 0 }
    }

    #[test]
    fn the_factors_that_keep_two_experiments_apart_are_named() {
        let a =
            experiment(&[("block_bytes", &[65536, 1 << 17]), ("depth", &[1, 8]), ("jobs", &[1])]);
        let b =
            experiment(&[("block_bytes", &[1 << 20]), ("depth", &[8, 32]), ("readers", &[1, 2])]);
        assert_eq!(
            apart(&a, &b),
            [
                "block size is 64 KiB, 128 KiB in A and 1 MiB in B",
                "readers varies only in B (1, 2)"
            ]
        );
        // Factors with one level in each are ignored.
        let b = experiment(&[("block_bytes", &[65536]), ("depth", &[8]), ("jobs", &[4])]);
        assert!(apart(&a, &b).is_empty());
        let many: Vec<u64> = (1..10).collect();
        let (a, b) = (experiment(&[("depth", &many)]), experiment(&[("depth", &[64])]));
        assert_eq!(apart(&a, &b), ["depth is 1, 2, 3, 4, 5, 6 and 3 more in A and 64 in B"]);
    }
}
