//! Restores an archive and prints where the time went.
//!
//! ```text
//! cargo run --release -p runs --example restore_rates -- ARCHIVE DIRECTORY [THREADS [RING_MIB]]
//! ```
#![allow(clippy::print_stdout)]

use std::num::NonZero;

use flow::cancel::Cancel;
use flow::monitor::{Counter, Level, Monitor, Notice};
use runs::restore::{RestoreOptions, Synchronise, restore};

struct Warn;

impl Monitor for Warn {
    fn count(&self, _: Counter, _: u64) {}
    fn notice(&self, notice: Notice) {
        if notice.level > Level::Detail {
            println!("{}: {}", String::from_utf8_lossy(&notice.object), notice.text);
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let number = |at: usize| -> Option<usize> { arguments.get(at)?.to_str()?.parse().ok() };
    let options = RestoreOptions {
        from: arguments[0].clone().into(),
        into: arguments[1].clone().into(),
        threads: number(2).and_then(NonZero::new),
        ring_bytes: number(3).unwrap_or(64) << 20,
        synchronise: Synchronise::No,
        ..RestoreOptions::default()
    };
    match restore(options, &Warn, &Cancel::new()) {
        Ok(report) => {
            let run = &report.run;
            println!(
                "{} members, {} files, {} bytes in {:.3} s, {} warnings, checksums {:?}",
                run.members,
                run.files,
                run.source_bytes,
                run.seconds,
                report.warnings,
                report.checksums
            );
            for stage in &run.stages {
                println!(
                    "{:10} x{} working {:.3} starved {:.3} blocked {:.3} processor {:.3}",
                    stage.kind,
                    stage.threads,
                    stage.working_seconds,
                    stage.starved_seconds,
                    stage.blocked_seconds,
                    stage.processor_seconds
                );
            }
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            println!("failed: {error}: {}", cause.unwrap_or_default());
            std::process::exit(1);
        }
    }
}
