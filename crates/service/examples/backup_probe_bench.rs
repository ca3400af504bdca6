//! Backs up a folder, looks at the storage below it, and measures how fast the archive is read, all
//! without the program `takeup`:
//! `cargo run -p service --example backup_probe_bench -- FOLDER ARCHIVE RUNS`

use std::path::PathBuf;

use experiment::run::Unobserved;
use flow::cancel::Cancel;
use flow::monitor::Silent;
use service::backup::{BackupRequest, backup};
use service::bench::read::{BenchReadRequest, plan, run};
use service::bench::{BegunExperiment, ExperimentSurroundings};
use service::change::NoChanger;
use service::document;
use service::failure::Failure;
use service::probe::{ProbeRequest, probe};

fn main() -> Result<(), Failure> {
    let typed: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, archive, runs] = typed.as_slice() else {
        return Err(Failure::of("name a folder, an archive and a file for the runs", None));
    };
    let wanted = serde_json::json!({ "sources": [folder], "to": archive });
    let request: BackupRequest = serde_json::from_value(wanted).expect("a request of a backup");
    let cancel = Cancel::new();
    let backup = backup(&request, &Silent, &cancel, NoChanger::shared())?;
    let probe = probe(&ProbeRequest { path: folder.clone(), request_bytes: None })?;
    let mut request = BenchReadRequest { paths: vec![archive.clone()], ..Default::default() };
    (request.experiment.output, request.experiment.repeats_max) = (Some(runs.clone()), Some(3));
    let begun = BegunExperiment::open(plan(&request, &Silent)?, &request.experiment, &Silent)?;
    let bench = run(begun, &ExperimentSurroundings { observer: &Unobserved, cancel: &cancel })?;
    let answers =
        [&document(&backup.answer()), &document(&probe.answer()), &document(&bench.answer())];
    answers.iter().for_each(|answer| print(&format!("{answer:#}")));
    Ok(())
}

#[allow(clippy::print_stdout)]
fn print(text: &str) {
    println!("{text}");
}
