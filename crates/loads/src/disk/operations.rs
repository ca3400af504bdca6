//! What fio reported of a run: a row for each kind of operation, and numbers by name.

use super::fio::{FioDirection, FioRun, FioSection};
use experiment::observed::Measures;
use experiment::record::{OperationKind, Operations};
use statistics::histogram::Histogram;

/// All that a run of fio did.
pub fn of(run: &FioRun) -> Vec<Operations> {
    let named = run.sections.len() > 1;
    let of_section = |section: &FioSection| {
        let name = if named { section.name.as_str() } else { "" };
        [
            (OperationKind::Read, &section.read),
            (OperationKind::Write, &section.write),
            (OperationKind::Trim, &section.trim),
            (OperationKind::Fsync, &section.sync),
        ]
        .into_iter()
        .filter(|(_, direction)| direction.requests > 0)
        .map(|(operation, direction)| one(name, operation, direction))
        .collect::<Vec<Operations>>()
    };
    run.sections.iter().flat_map(of_section).collect()
}

fn one(section: &str, operation: OperationKind, direction: &FioDirection) -> Operations {
    Operations {
        section: section.to_owned(),
        operation,
        bytes: direction.bytes,
        requests: direction.requests,
        seconds: direction.seconds,
        latency: direction.latency.clone(),
        submission_mean_ns: direction.submission_mean_ns(),
        submission_p99_ns: direction.submission.quantile_ns(0.99),
    }
}

/// What fio told of a run in numbers by name: all directions together, each by itself, and
/// synchronising calls. Times are those of fio(1): `clat` from submission to completion, `slat`
/// until a request was accepted.
pub fn measures(run: &FioRun) -> Measures {
    let mut measures = Measures::new();
    let seconds = run.seconds.max(1e-9);
    let mut put = |name: String, value: Option<f64>| {
        measures.extend(value.map(|value| (name, value)));
    };
    let mut all = FioDirection::default();
    run.directions().into_iter().for_each(|direction| all.merge(direction));
    let named = [("", &all), ("read_", &run.read), ("write_", &run.write), ("trim_", &run.trim)];
    for (prefix, direction) in named.into_iter().filter(|(_, one)| one.requests > 0) {
        put(format!("fio_{prefix}iops"), Some(direction.requests as f64 / seconds));
        put(format!("fio_{prefix}clat_mean_ns"), direction.latency_mean_ns());
        put(format!("fio_{prefix}slat_mean_ns"), direction.submission_mean_ns());
        for (name, share) in QUANTILES {
            let quantile = |times: &Histogram| times.quantile_ns(share).map(|ns| ns as f64);
            put(format!("fio_{prefix}clat_{name}_ns"), quantile(&direction.latency));
            put(format!("fio_{prefix}slat_{name}_ns"), quantile(&direction.submission));
        }
        if !prefix.is_empty() {
            let rate = direction.bytes as f64 / seconds;
            put(format!("fio_{prefix}bytes_per_second"), Some(rate));
        }
    }
    if run.sync.requests > 0 {
        put("fio_fsyncs_per_second".to_owned(), Some(run.sync.requests as f64 / seconds));
        put("fio_fsync_mean_ns".to_owned(), run.sync.latency_mean_ns());
        for (name, share) in QUANTILES {
            let quantile = run.sync.latency.quantile_ns(share).map(|ns| ns as f64);
            put(format!("fio_fsync_{name}_ns"), quantile);
        }
    }
    put("fio_processor_percent".to_owned(), Some(run.processor_percent));
    measures
}

/// Shares of requests, and what is told of them is called.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)];
