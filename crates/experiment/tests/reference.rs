//! Our statistics against scipy and statsmodels on the records in this repository.
//! `scripts/reference-statistics` printed the reference values, with the versions of the libraries.
//! With the same method the numbers agree to a millionth; for different methods
//! `docs/design/statistics.md` gives the reason.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use experiment::record::{Cell, load};
use serde_json::Value;
use statistics::blocks::{Fit, Observation};
use statistics::interval::of_geometric_mean;
use statistics::mean;
use statistics::ratio::{holm, independent};
use statistics::simultaneous::dunnett_factor;
use statistics::sweep::unimodal;

fn values() -> Value {
    serde_json::from_str(include_str!("reference/values.json")).unwrap()
}

/// Equal to a millionth.
fn check(what: &str, ours: f64, theirs: &Value) {
    let theirs = theirs.as_f64().unwrap();
    let apart = (ours - theirs).abs() / theirs.abs().max(1e-3);
    assert!(apart < 1e-6, "{what}: {ours} is not {theirs}");
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Rates by repeat of each cell with two runs at least, in the order of the reference.
fn cells(record: &Value) -> Vec<BTreeMap<u64, f64>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let experiment = load(&root.join(record["record"].as_str().unwrap())).unwrap();
    let own = |name: &Value| {
        let cell: Cell = serde_json::from_str(name.as_str().unwrap()).unwrap();
        let runs = experiment.runs.iter().filter(|run| run.cell == cell);
        runs.filter_map(|run| Some((run.repeat, run.bytes_per_second()?))).collect()
    };
    list(&record["cells"]).iter().map(own).collect()
}

#[test]
fn intervals_differences_and_their_correction_are_those_of_scipy() {
    for record in list(&values()["records"]) {
        let cells: Vec<Vec<f64>> =
            cells(record).iter().map(|own| own.values().copied().collect()).collect();
        for (rates, theirs) in cells.iter().zip(list(&record["intervals"])) {
            let ours = of_geometric_mean(rates, 0.95).unwrap();
            check("low end of a cell", ours.low, &theirs[0]);
            check("high end of a cell", ours.high, &theirs[1]);
        }
        let mut p_values = Vec::new();
        for (rates, theirs) in cells[1..].iter().zip(list(&record["welch"])) {
            let ours = independent(rates, &cells[0], 0.95).unwrap();
            check("p of Welch", ours.p_value, &theirs["p"]);
            check("low end of a ratio", ours.interval.low, &theirs["low"]);
            check("high end of a ratio", ours.interval.high, &theirs["high"]);
            p_values.push(ours.p_value);
        }
        for (ours, theirs) in holm(&p_values).into_iter().zip(list(&record["holm"])) {
            check("p of Holm", ours, theirs);
        }
        let logs = |rates: &Vec<f64>| mean(&rates.iter().map(|rate| rate.ln()).collect::<Vec<_>>());
        let levels: Option<Vec<f64>> = cells.iter().map(logs).collect();
        for (ours, theirs) in unimodal(&levels.unwrap()).into_iter().zip(list(&record["unimodal"]))
        {
            check("a level that rises and falls", ours, theirs);
        }
    }
}

#[test]
fn cells_and_repeats_are_those_of_statsmodels() {
    let mut complete = 0;
    for record in list(&values()["records"]) {
        let cells = cells(record);
        let one = |cell: usize, repeat: &u64, rate: &f64| Observation {
            cell,
            block: *repeat as usize,
            log: rate.ln(),
        };
        let runs = cells.iter().enumerate();
        let runs =
            runs.flat_map(|(cell, own)| own.iter().map(move |(at, rate)| one(cell, at, rate)));
        let fit = Fit::new(runs.collect()).unwrap();
        let theirs = &record["blocks"];
        for (other, difference) in list(&theirs["differences"]).iter().enumerate() {
            let ours = fit.contrast(&[(1.0, other + 1), (-1.0, 0)]).unwrap();
            check("a difference of cells", ours.value, difference);
            // With no run missing, a mixed model has the same means as fixed repeats.
            if theirs["is_complete"] == Value::Bool(true) {
                let mixed = theirs["mixed_differences"][other].as_f64().unwrap();
                assert!((ours.value - mixed).abs() < 1e-6, "{} {mixed}", ours.value);
                complete += 1;
            }
        }
        let squares: f64 = fit.residuals().iter().map(|left| left * left).sum();
        check("squares that are left", squares, &theirs["residual_squares"]);
        check("degrees of freedom", fit.scatter().1, &theirs["residual_degrees"]);
    }
    assert!(complete > 10, "{complete}");
}

#[test]
fn the_factors_of_dunnett_are_those_of_their_definition() {
    for one in list(&values()["dunnett"]) {
        let (others, degrees) = (one["others"].as_u64().unwrap(), one["degrees"].as_f64().unwrap());
        let ours = dunnett_factor(0.95, others as usize, degrees).unwrap();
        let theirs = one["factor"].as_f64().unwrap();
        assert!((ours / theirs - 1.0).abs() < 1e-6, "{others} {degrees}: {ours} {theirs}");
    }
}
