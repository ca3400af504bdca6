//! A record of `takeup bench tape` as on a drive with known parameters: an LTO-4 that writes 110
//! MB/s, with a buffer of 90 MB, 120 us for a command, 230 MB/s from the host, and 2.4 s for a
//! filemark.

use serde_json::{Value, json};

const HIGHEST: f64 = 110e6;
const BUFFER: f64 = 90e6;
const HOST: f64 = 230e6;
const COMMAND_SECONDS: f64 = 120e-6;
const FILEMARK_SECONDS: f64 = 2.4;
const FILE: u64 = 400 << 20;
/// Rate of zeros.
const RATIO: f64 = 90.0;
const STEP_SECONDS: f64 = 0.01;

/// The lines of such a record; the first one has the experiment. Runs of later repeats are up to
/// 0.2 % slower.
pub fn made(repeats: u64) -> Vec<Value> {
    let header = json!({ "experiment": {
        "format": 1, "kind": "tape", "title": "made", "factors": [], "plan": null, "seed": 1,
        "started_unix_seconds": 0,
    } });
    let mut lines = vec![header];
    for repeat in 1..=repeats {
        for data in ["zeros", "random"] {
            for block in [16 << 10, 64 << 10, 256 << 10, 1 << 20] {
                lines.push(run(data, block, repeat, 1.0 + 0.001 * (repeat % 3) as f64));
            }
        }
    }
    lines
}

/// The record as the text of a file.
pub fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn run(data: &str, block: u64, repeat: u64, times: f64) -> Value {
    let rate = block as f64 / (COMMAND_SECONDS + block as f64 / HOST);
    // The tape starts when the buffer is full, and then sets the pace.
    let (until_full, after) = match data {
        "random" if rate > HIGHEST => (BUFFER, HIGHEST),
        _ => (FILE as f64, rate),
    };
    let written = until_full / rate + (FILE as f64 - until_full) / after;
    let left = match data {
        "zeros" => FILE as f64 / RATIO,
        _ => BUFFER,
    };
    let filemark = FILEMARK_SECONDS + left / HIGHEST;
    let at = |seconds: f64| {
        let first = rate * seconds.min(until_full / rate);
        (first + after * (seconds - until_full / rate).max(0.0)).min(FILE as f64) as u64
    };
    let steps = ((written + filemark) / STEP_SECONDS).ceil() as u64;
    let passed = |step: u64| at(step as f64 * STEP_SECONDS) / block * block;
    let series: Vec<u64> = (0..steps).map(|step| passed(step + 1) - passed(step)).collect();
    json!({ "run": {
        "cell": {
            "block_bytes": block, "data": data, "file_bytes": FILE, "ring_bytes": 64 << 20,
            "operation": "write",
        },
        "repeat": repeat,
        "bytes": FILE,
        "seconds": (written + filemark) * times,
        "series": { "step_seconds": STEP_SECONDS * times, "bytes": series },
        "measures": {
            "filemark_seconds": filemark * times,
            "without_filemark_bytes_per_second": FILE as f64 / written / times,
        },
        "environment": {
            "drive": "IBM ULT3580-TD4", "path": "/dev/nst0", "drive compression": "on",
            "medium generation": "LTO-4", "drive buffer bytes": "128000000",
            "drive lowest bytes per second": "30000000",
        },
    } })
}
