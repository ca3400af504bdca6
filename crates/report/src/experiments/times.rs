//! A judgement as a document. If times are compared, its numbers are times: internally everything
//! is computed with speeds in runs per second, which no reader uses.

use serde::Serialize;
use serde_json::{Map, Value, json};

use experiment::record::Value as Compared;

/// Keys of speeds, and their keys as times.
const KEYS: &[(&str, &str)] = &[("bytes_per_second", "seconds")];

/// A judgement, a cell or a comparison as an object.
pub fn document(judged: &impl Serialize, compared: Compared) -> Value {
    let document = json!(judged);
    if compared.is_rate() { document } else { in_times(document) }
}

fn in_times(document: Value) -> Value {
    match document {
        Value::Array(all) => Value::Array(all.into_iter().map(in_times).collect()),
        Value::Object(object) => {
            let is_cell = object.contains_key("rates");
            Value::Object(if is_cell { cell(object) } else { plain(object) })
        }
        other => other,
    }
}

fn plain(object: Map<String, Value>) -> Map<String, Value> {
    let one = |(key, value): (String, Value)| match KEYS.iter().find(|(from, _)| *from == key) {
        Some((_, to)) => ((*to).to_owned(), inverse(value)),
        None => (key, in_times(value)),
    };
    object.into_iter().map(one).collect()
}

/// One combination. The mean and the scatter of its times are not the inverses of those of its
/// speeds.
fn cell(mut object: Map<String, Value>) -> Map<String, Value> {
    let times: Vec<f64> = object["rates"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|rate| Some(1.0 / rate.get(1)?.as_f64()?))
        .collect();
    let mean = json!(statistics::mean(&times));
    object.remove("harmonic_mean_bytes_per_second");
    object.remove("mean_bytes_per_second");
    object["standard_deviation"] = json!(statistics::standard_deviation(&times));
    for name in ["interval", "median_interval"] {
        if let Some(interval) = object.get(name).filter(|interval| interval.is_object()) {
            let ends = json!({
                "low": inverse(interval["high"].clone()),
                "high": inverse(interval["low"].clone()),
            });
            object[name] = ends;
        }
    }
    let rates = object.remove("rates").unwrap_or_default();
    let pairs = rates.as_array().into_iter().flatten();
    let times: Vec<Value> = pairs.map(|pair| json!([pair[0], inverse(pair[1].clone())])).collect();
    let mut object = plain(object);
    object.insert("times".to_owned(), Value::Array(times));
    object.insert("mean_seconds".to_owned(), mean);
    object
}

fn inverse(value: Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(inverse).collect()),
        other => other.as_f64().map_or(other, |speed| json!(1.0 / speed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_become_times() {
        let cell = json!({
            "rates": [[1, 0.5], [2, 0.25]],
            "mean_bytes_per_second": 0.375,
            "harmonic_mean_bytes_per_second": 0.333,
            "bytes_per_second": 0.5,
            "standard_deviation": 0.1,
            "interval": { "low": 0.25, "high": 0.5 },
            "median_interval": null,
        });
        let told = document(&json!({ "cells": [cell.clone()] }), Compared::Time);
        let expected = json!({
            "times": [[1, 2.0], [2, 4.0]],
            "mean_seconds": 3.0,
            "seconds": 2.0,
            "standard_deviation": 2f64.sqrt(),
            "interval": { "low": 2.0, "high": 4.0 },
            "median_interval": null,
        });
        assert_eq!(told["cells"][0], expected);
        assert_eq!(document(&cell, Compared::Rate), cell);
        let pair = document(&json!({ "bytes_per_second": [0.5, 0.25] }), Compared::Time);
        assert_eq!(pair, json!({ "seconds": [2.0, 4.0] }));
    }
}
