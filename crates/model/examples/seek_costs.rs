//! What reads of 4 KiB cost on the presets with heads: by distance, and by how many are in flight.
//!
//! ```text
//! cargo run --release -p model --example seek_costs [CAPACITY_GB]
//! ```
//!
//! By distance it is the mean over many places of a read that comes alone, after a read that ended
//! so many bytes before it. Reads per second are at random places of the whole disk.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use model::BILLION;
use model::disk::{DiskChanges, DiskParameters, time_of_reads};

const READ_BYTES: u64 = 4096;
const PRESETS: [&str; 2] = ["sata7200", "sas15k"];

fn main() {
    let gigabytes: Option<u64> = std::env::args().nth(1).map(|text| text.parse().unwrap());
    let changes = DiskChanges {
        capacity_bytes: gigabytes.map(|number| number * BILLION),
        ..DiskChanges::default()
    };
    let disks = PRESETS.map(|name| DiskParameters::named(name).unwrap().with(&changes));
    println!("| ms of a read of 4 KiB, by the distance to it | {} | {} |", PRESETS[0], PRESETS[1]);
    println!("|---|---:|---:|");
    let distances = [0, 64 << 10, 1_000_000, 10_000_000, 1 << 30, 100 * BILLION, 300 * BILLION];
    for bytes in distances {
        let [first, second] = [0, 1].map(|number| after(&disks[number], bytes));
        println!("| {} | {first} | {second} |", words(bytes));
    }
    println!("\n| random reads of 4 KiB a second | {} | {} |", PRESETS[0], PRESETS[1]);
    println!("|---|---:|---:|");
    for depth in [1, 2, 4, 8, 16, 32] {
        let [first, second] = [0, 1].map(|number| per_second(&disks[number], depth));
        println!("| {depth} in flight | {first:.0} | {second:.0} |");
    }
}

fn words(bytes: u64) -> String {
    match bytes {
        0 => "none: the next bytes".to_owned(),
        small if small < 1_000_000 => format!("{} KiB", small >> 10),
        middle if middle < BILLION => format!("{} MB", middle / 1_000_000),
        large => format!("{} GB", large / BILLION),
    }
}

/// Milliseconds of a read that begins this far behind the last one, or a dash where that is beyond
/// the end.
fn after(disk: &DiskParameters, bytes: u64) -> String {
    const PLACES: u64 = 500;
    let capacity = disk.capacity_bytes().unwrap();
    let Some(room) = capacity.checked_sub(bytes + (1 << 20)) else { return "-".to_owned() };
    let mut reads = Random(1);
    let total_ns: u64 = (0..PLACES)
        .map(|_| {
            let first = (reads.next() % room / 512 * 512, READ_BYTES);
            let second = (first.0 + READ_BYTES + bytes, READ_BYTES);
            time_of_reads(disk, &[first, second], 1) - time_of_reads(disk, &[first], 1)
        })
        .sum();
    format!("{:.2}", total_ns as f64 / PLACES as f64 / 1e6)
}

fn per_second(disk: &DiskParameters, depth: usize) -> f64 {
    const READS: usize = 5000;
    let blocks = disk.capacity_bytes().unwrap() / READ_BYTES;
    let mut random = Random(1);
    let reads: Vec<_> =
        (0..READS).map(|_| (random.next() % blocks * READ_BYTES, READ_BYTES)).collect();
    READS as f64 / (time_of_reads(disk, &reads, depth) as f64 / BILLION as f64)
}

/// Knuth's linear generator, without its low bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        self.0 >> 16
    }
}
