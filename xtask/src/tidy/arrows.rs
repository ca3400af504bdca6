//! Which crate may name which: arrows go down, one floor at least.

/// The floors of the product, the ground first. A crate names those on floors below its own.
const FLOORS: &[&[&str]] = &[
    &["base"],
    &["archive", "machine", "model", "statistics"],
    &["storage"],
    &["device"],
    &["catalogue", "tree", "flow", "sim"],
    &["tapeset"],
    &["experiment", "jobs", "runs"],
    &["loads"],
    &["watch"],
    &["capture", "pipeline"],
    &["diagnosis", "given", "many"],
    &["service"],
    &["arguments", "report"],
    &["screen"],
    &["takeup", "takeup-mpi", "peers", "fuzzing"],
];

/// Crates that only tests may use.
const FOR_TESTS: &[&str] = &["testkit"];

/// The place that names a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Product,
    /// By tests, examples and benchmarks: they may use higher floors, as `runs` is tested on drives
    /// of `sim`.
    Tests,
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

/// Why `from` may not name `to`; both are crates of this repository.
pub fn refusal(from: &str, to: &str, by: Use) -> Option<String> {
    if by == Use::Tests {
        return (to == "xtask").then(|| "no crate may depend on xtask".to_owned());
    }
    // The chores may use every crate.
    let from_floor = if from == "xtask" { FLOORS.len() } else { floor(from).unwrap_or(0) };
    if FOR_TESTS.contains(&to) {
        return Some(format!("{to} is for tests only"));
    }
    if floor(from).is_none() && from != "xtask" && !FOR_TESTS.contains(&from) {
        return Some(format!("{from} has no floor in xtask/src/tidy/arrows.rs"));
    }
    match floor(to) {
        None => Some(format!("{to} has no floor in xtask/src/tidy/arrows.rs")),
        Some(to_floor) if to_floor >= from_floor => {
            Some(format!("{to} does not lie below {from} (xtask/src/tidy/arrows.rs)"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_down() {
        let product = |from, to| refusal(from, to, Use::Product).is_some();
        assert!(!product("runs", "flow") && !product("takeup", "runs"));
        assert!(
            product("flow", "runs") && product("tree", "flow") && product("runs", "experiment")
        );
        assert!(product("runs", "testkit") && product("store", "flow") && product("flow", "store"));
        assert!(!product("xtask", "sim") && product("takeup", "xtask"));
        assert!(!product("sim", "model") && product("model", "sim") && product("machine", "flow"));
        assert!(refusal("runs", "sim", Use::Tests).is_none());
        assert!(refusal("runs", "xtask", Use::Tests).is_some());
    }
}
