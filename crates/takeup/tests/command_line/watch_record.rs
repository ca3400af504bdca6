//! Records of a watch with known truth: random reads of a disk below a device-mapper device, with a
//! rate that varies from second to second about a constant level.

use serde_json::{Value, json};

/// The load of a disk in a record.
pub struct Load {
    /// Reads in a second, on average.
    pub reads: f64,
    /// Size of a read in KiB.
    pub kib: u64,
    /// Time of a read in milliseconds; the number in flight follows from it.
    pub await_ms: f64,
    /// Seconds between two samples.
    pub interval: u64,
    /// How long it is watched.
    pub seconds: u64,
    /// Start and end of a pause.
    pub idle: std::ops::Range<u64>,
    /// Seed, which makes two records of the same load differ.
    pub seed: u64,
    /// An idle disk.
    pub idle_disk: &'static str,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            reads: 4000.0,
            kib: 8,
            await_ms: 0.5,
            interval: 1,
            seconds: 400,
            idle: 100..120,
            seed: 1,
            idle_disk: "sdb",
        }
    }
}

/// The start of a record, 2026-11-20 08:33:01.
pub const BEGAN: u64 = 1_795_163_581;

/// The lines of the record.
pub fn text(load: &Load) -> String {
    let mut text = "{\"takeup_watch\":1}\n".to_owned();
    let mut random = load.seed;
    let (mut reads, mut away) = (1000, 0.0);
    let mut second = 0;
    while second <= load.seconds {
        if second > 0 {
            // A second is like the one before (0.8), and differs by a tenth at most.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            away = 0.8 * away + 0.2 * ((random >> 33) as f64 / 2_f64.powi(30) - 1.0);
            let is_idle = load.idle.contains(&(second - 1));
            let rate = if is_idle { 0.0 } else { load.reads * (1.0 + 0.1 * away) };
            reads += (rate * load.interval as f64) as u64;
        }
        text.push_str(&format!("{}\n", look(load, second, reads)));
        second += load.interval;
    }
    text
}

fn look(load: &Load, second: u64, reads: u64) -> Value {
    let time_ms = (reads as f64 * load.await_ms) as u64;
    let (busy_ms, sectors) = (time_ms / 4, reads * load.kib * 2);
    let rows: Vec<String> = [(8, "sda"), (253, "dm-0")]
        .iter()
        .map(|(major, name)| {
            format!("{major} 0 {name} {reads} 0 {sectors} {time_ms} 0 0 0 0 0 {busy_ms} {time_ms}")
        })
        .chain([format!("8 16 {} 9 0 72 1 0 0 0 0 0 1 1", load.idle_disk)])
        .collect();
    let mut line = json!({ "at_seconds": second, "unix_seconds": BEGAN + second, "rows": rows });
    if second == 0 {
        let queue = |made_of: &[&str]| {
            json!({
                "scheduler": "none", "max_sectors_kb": 1280, "read_ahead_kb": 128,
                "nr_requests": 64, "hardware_queues": 1, "device_depth": 32, "nomerges": 0,
                "rotational": 0, "iostats": 1, "made_of": made_of,
            })
        };
        line["queues"] = json!({ "sda": queue(&[]), "dm-0": queue(&["sda"]) });
    }
    line
}
