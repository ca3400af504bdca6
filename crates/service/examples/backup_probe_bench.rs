//! Backs up a folder, and looks at the storage below it, without the program `takeup`:
//! `cargo run -p service --example backup_probe_bench -- FOLDER ARCHIVE`

use std::path::PathBuf;

use flow::cancel::Cancel;
use flow::monitor::Silent;
use service::backup::{BackupRequest, backup};
use service::change::NoChanger;
use service::failure::Failure;
use service::probe::{ProbeRequest, probe};

fn main() -> Result<(), Failure> {
    let mut typed = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(archive)) = (typed.next(), typed.next()) else {
        return Err(Failure::of("name a folder and an archive", None));
    };
    let wanted = serde_json::json!({ "sources": [&folder], "to": archive });
    let request: BackupRequest = serde_json::from_value(wanted).expect("a request of a backup");
    let done = backup(&request, &Silent, &Cancel::new(), NoChanger::shared())?;
    let below = probe(&ProbeRequest { path: folder, request_bytes: None })?;
    let (backup, probe) = (service::document(&done.answer()), service::document(&below.answer()));
    print(&format!("{backup:#}\n{probe:#}"));
    Ok(())
}

#[allow(clippy::print_stdout)]
fn print(text: &str) {
    println!("{text}");
}
