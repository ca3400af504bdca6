//! What is found on the way to a drive has one shape, and each rule is in the list.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::drive::{Drive, takeup};

#[track_caller]
fn document(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn findings_of_a_backup_and_of_probe_are_of_listed_rules() {
    needs::require!(Fuse);
    let drive = Drive::new();
    fs::write(drive.folder().join("data"), samples::noise(1, 1 << 20)).unwrap();
    let mut command = takeup();
    command.current_dir(drive.folder()).args(["backup", "data", "--json", "--to"]);
    let run = document(command.arg(drive.tape()));
    let probe = document(takeup().args(["probe", "--json"]).arg(drive.tape()));
    let list = document(takeup().args(["rules", "--json"]));
    let rooms = list["rooms"].as_array().unwrap().iter();
    let listed: Vec<&Value> =
        rooms.flat_map(|room| room["rules"].as_array().unwrap()).map(|rule| &rule["id"]).collect();
    let [of_run, of_probe] = [&run, &probe].map(|document| document["findings"].as_array());
    let (of_run, of_probe) = (of_run.unwrap(), of_probe.unwrap());
    for finding in of_run.iter().chain(of_probe) {
        assert!(listed.contains(&&finding["rule"]), "{finding:#}");
        assert_eq!(finding.as_object().unwrap().len(), 11, "{finding:#}");
    }
    let [limit, streaming] = &of_run[..] else { panic!("{of_run:#?}") };
    let explanation = run["explanation"].as_str().unwrap();
    assert!(explanation.starts_with(limit["sentence"].as_str().unwrap()), "{limit:#}");
    assert_eq!(streaming["sentence"], run["tape"]["verdict"]);
    let mut rules = of_probe.iter().map(|finding| &finding["rule"]);
    assert!(rules.any(|rule| rule == "drive.lowest-speed"), "{of_probe:#?}");
}
