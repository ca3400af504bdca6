//! Predictions of the engine model for other machines: the tables of `docs/design/scaling.md`.
//!
//! `cargo run --release -p model --example scaling`
//!
//! With `BYTES FILES disk|memory CORES RATE` it prints the predicted seconds of one backup to
//! `/dev/null`, and its limit (`scripts/check-scaling` compares them with measurements).
#![allow(clippy::print_stdout)]

use model::engine::{EngineLimit, Origin, Work, stages};

const CORES: [usize; 6] = [1, 2, 4, 8, 16, 64];
const DISKS_GB: [f64; 5] = [0.5, 1.0, 3.5, 7.0, 14.0];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [bytes, files, origin, cores, rate] = &arguments[..] {
        let number = |text: &String| text.parse::<f64>().expect("a number");
        let origin = if origin == "memory" { Origin::Memory } else { Origin::Disk };
        let work = Work { bytes: number(bytes), files: number(files), origin };
        let foretold = work.foretell(number(cores) as usize, number(rate));
        println!("{:.2} {:?}", foretold.seconds, foretold.limit);
        return;
    }
    for (name, origin) in [("from a disk", Origin::Disk), ("from memory", Origin::Memory)] {
        println!("| stage, {name} | ns a byte | us a file | threads |");
        println!("|---|---|---|---|");
        for stage in stages(origin) {
            let threads = if stage.is_serial { "one" } else { "all" };
            let file_us = stage.file_ns / 1000.0;
            println!("| {} | {} | {file_us} | {threads} |", stage.name, stage.byte_ns);
        }
        println!();
    }
    let large = Work { bytes: 1e9, files: 0.0, origin: Origin::Disk };
    table("One large file, GB/s", &large, |seconds| format!("{:.1}", 1.0 / seconds));
    let small = Work { bytes: 9e9, files: 1e6, origin: Origin::Disk };
    table("Files of 9 KB, thousands a second", &small, |seconds| format!("{:.0}", 1e3 / seconds));
}

/// A row for each number of cores, a column for each disk; cells that the disk does not limit are
/// marked.
fn table(title: &str, work: &Work, shown: impl Fn(f64) -> String) {
    let heads: Vec<String> = DISKS_GB.iter().map(|rate| format!("{rate} GB/s")).collect();
    println!("| {title}, cores | {} | memory |", heads.join(" | "));
    println!("|---{}|", "|---".repeat(DISKS_GB.len() + 1));
    for cores in CORES {
        let rates = DISKS_GB.iter().map(|rate| rate * 1e9).chain([f64::INFINITY]);
        let cells: Vec<String> = rates
            .map(|rate| {
                let origin = if rate.is_finite() { Origin::Disk } else { Origin::Memory };
                let foretold = Work { origin, ..*work }.foretell(cores, rate);
                let mark = match foretold.limit {
                    EngineLimit::Source => "",
                    EngineLimit::Processors => " P",
                    EngineLimit::Order => " O",
                };
                format!("{}{mark}", shown(foretold.seconds))
            })
            .collect();
        println!("| {cores} | {} |", cells.join(" | "));
    }
    println!();
}
