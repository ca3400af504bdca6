//! A backup's single stream from an array under three settings of read-ahead.
//!
//! The rows are those of size and run time: the printed rates disagree with them in two of the
//! three. Free parameters are the rate of one path to a disk and the rate at which the host reads
//! in all; they are fitted on the first and the last row. The time of a command is assumed: 0.5 ms,
//! a sequential read that an array answers without a seek. Between 0.1 and 0.7 ms the middle row
//! stays within 15 %.

use std::cell::RefCell;
use std::collections::BTreeMap;

use model::disk::DiskParameters;
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use serde::Deserialize;

use super::fit::{Range, fit};
use super::{Role, Row, show};

#[derive(Deserialize)]
struct Published {
    size_gb: f64,
    service_time_ms: f64,
    example_block_kib: u64,
    example_mb_s: f64,
    rows: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    setting: String,
    run_time_s: f64,
    printed_mb_s: f64,
    read_pref_io_bytes: Option<u64>,
    read_nstream: Option<u64>,
}

const COMMAND_NS: u64 = 500_000;
const READ_BYTES: u64 = 256 << 10;

fn published() -> Published {
    toml::from_str(include_str!("read-ahead.toml")).unwrap()
}

fn array(path_rate: f64, command_ns: u64) -> DiskParameters {
    let path = path_rate as u64;
    DiskParameters {
        server_bytes_per_second: path,
        ..DiskParameters::constant(command_ns, 1 << 40)
    }
}

/// VxFS keeps four times `read_pref_io` times `read_nstream` under way, in requests of the former.
fn policy(row: &Measured) -> Policy {
    match (row.read_pref_io_bytes, row.read_nstream) {
        (Some(request_bytes), Some(streams)) => {
            Policy::Ahead { window_bytes: 4 * request_bytes * streams, request_bytes }
        }
        _ => Policy::Direct,
    }
}

fn from_disk(row: &Measured, path_rate: f64, command_ns: u64) -> f64 {
    let reader = Reader { read_bytes: READ_BYTES, copy_bytes_per_second: 1 << 40 };
    sequential_bytes_per_second(&array(path_rate, command_ns), policy(row), reader) as f64
}

fn seconds(row: &Measured, size_gb: f64, path_rate: f64, taken: f64, command_ns: u64) -> f64 {
    size_gb * 1e9 / from_disk(row, path_rate, command_ns).min(taken)
}

fn fitted_rates(published: &Published, command_ns: u64) -> [f64; 2] {
    let range = |from, to| Range { from, to };
    // The search evaluates one path many times, with another total rate.
    let known = RefCell::new(BTreeMap::new());
    fit([range(1e7, 1e9), range(1e8, 2e9)], |[path, taken]| {
        let off = [0, 2].map(|number: usize| {
            let row = &published.rows[number];
            let mut known = known.borrow_mut();
            let rate: f64 = *known
                .entry((number, path.to_bits()))
                .or_insert_with(|| from_disk(row, path, command_ns));
            (published.size_gb * 1e9 / rate.min(taken) / row.run_time_s).ln().powi(2)
        });
        off.iter().sum()
    })
}

#[test]
fn read_ahead_of_a_single_stream() {
    let published = published();
    let [path, taken] = fitted_rates(&published, COMMAND_NS);
    let row = |(number, measured): (usize, &Measured)| Row {
        name: measured.setting.clone(),
        role: if number == 1 { Role::Predicted } else { Role::Fitted },
        measured_s: measured.run_time_s,
        model_s: seconds(measured, published.size_gb, path, taken, COMMAND_NS),
        note: format!(
            "printed {:.0} MB/s, size / time {:.0} MB/s",
            measured.printed_mb_s,
            published.size_gb * 1e3 / measured.run_time_s
        ),
    };
    let rows: Vec<Row> = published.rows.iter().enumerate().map(row).collect();
    let line = format!(
        "fitted: {:.1} MB/s for a path to a disk, {:.0} MB/s for all; assumed: a command of 0.5 ms",
        path / 1e6,
        taken / 1e6
    );
    show("read-ahead of one stream, VxFS", &[line], &rows);
    assert!(rows.iter().all(Row::fits), "{rows:?}");
    for command_ns in [100_000, 700_000] {
        let [path, taken] = fitted_rates(&published, command_ns);
        let middle = &published.rows[1];
        let model_s = seconds(middle, published.size_gb, path, taken, command_ns);
        assert!((model_s / middle.run_time_s - 1.0).abs() < 0.15, "{command_ns}: {model_s}");
    }
}

/// 256 KiB in 5.5 ms are 46 MB/s, one request after the other.
#[test]
fn without_read_ahead_a_stream_is_request_over_service_time() {
    let published = published();
    let service_ns = (published.service_time_ms * 1e6) as u64;
    let disk = DiskParameters::constant(service_ns, 10_000_000_000);
    let read_bytes = published.example_block_kib << 10;
    let reader = Reader { read_bytes, copy_bytes_per_second: 10_000_000_000 };
    let rate = sequential_bytes_per_second(&disk, Policy::Direct, reader) as f64 / 1e6;
    assert!((rate / published.example_mb_s - 1.0).abs() < 0.05, "{rate}");
}
