//! Runs one backup and prints its stages: a bench for the engine without the command line.
//!
//! `cargo run --release -p runs --example backup_rates -- SOURCE TARGET [COMPRESSION [THREADS]]`
#![allow(clippy::print_stderr)]

use runs::backup::{BackupOptions, backup};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let options = BackupOptions {
        sources: vec![args[1].clone().into()],
        target: args[2].clone().into(),
        existing: device::target::Existing::Replace,
        compression: args.get(3).map_or(Ok(Default::default()), |it| it.parse()).expect("valid"),
        read_threads: args.get(4).and_then(|it| it.parse().ok()),
        ..Default::default()
    };
    match backup(&options, &flow::monitor::Silent, &flow::cancel::Cancel::new()) {
        Ok(report) => {
            eprintln!("{:.3} s, sync {:.3}", report.run.seconds, report.run.synchronise_seconds);
            for stage in &report.run.stages {
                eprintln!(
                    "{:9} x{:<3} work {:.3} starved {:.3} blocked {:.3} cpu {:.3} {} MB",
                    stage.kind,
                    stage.threads,
                    stage.working_seconds,
                    stage.starved_seconds,
                    stage.blocked_seconds,
                    stage.processor_seconds,
                    stage.bytes / 1_000_000
                );
            }
        }
        Err(error) => eprintln!("failed: {error}: {:?}", std::error::Error::source(&error)),
    }
}
