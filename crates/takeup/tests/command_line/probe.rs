//! `takeup probe` on the storage of this machine; recorded machines are tested beside the code.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{document, run, small_tree};

fn layer<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut layers = document["layers"].as_array().unwrap().iter();
    layers.find(|layer| layer["name"] == name).unwrap()
}

#[test]
fn a_file_and_a_folder_lie_on_the_same_layers() {
    let directory = small_tree();
    let file = document(directory.path(), &["probe", "tree/a", "--json"]);
    let folder = document(directory.path(), &["probe", "tree", "--json"]);
    assert_eq!(file["layers"], folder["layers"]);
    let layers = file["layers"].as_array().unwrap();
    assert_eq!(layers[0]["kind"], "file-system");
    for layer in layers {
        for key in ["kind", "name"] {
            assert!(layer[key].is_string(), "{layer}");
        }
        assert!(layer["settings"].is_object(), "{layer}");
        for lower in layer["below"].as_array().unwrap() {
            let above = &self::layer(&file, lower.as_str().unwrap())["above"];
            assert!(above.as_array().unwrap().contains(&layer["name"]), "{above}");
        }
    }
    let text = run(directory.path(), &["probe", "tree/a"]);
    let text = String::from_utf8(text.stdout).unwrap();
    // The locale of the test has only ASCII letters.
    assert!(text.starts_with("tree/a\n`- ") && text.is_ascii(), "{text}");
}

/// A device over a file, removed again in the end.
struct LoopDevice(String);

impl LoopDevice {
    fn over(file: &Path) -> LoopDevice {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        LoopDevice(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_loop_device_lies_on_the_file_system_of_its_file() {
    testkit::require!(LoopDevices);
    let directory = small_tree();
    let file = directory.path().join("disk");
    File::create(&file).unwrap().set_len(8 << 20).unwrap();
    let device = LoopDevice::over(&file);
    let name = device.0.trim_start_matches("/dev/");
    let by_name = document(directory.path(), &["probe", name, "--request", "1G", "--json"]);
    let by_node = document(directory.path(), &["probe", &device.0, "--json"]);
    assert_eq!(by_name["layers"], by_node["layers"]);
    let found = layer(&by_node, name);
    assert_eq!((&found["kind"], &found["size_bytes"]), (&"loop".into(), &(8 << 20).into()));
    assert_eq!(found["facts"]["backing_file"], file.to_str().unwrap());
    assert_eq!(by_node["read_ahead_acts_at"], name);
    let below = document(directory.path(), &["probe", "disk", "--json"]);
    assert_eq!(found["below"][0], below["layers"][0]["name"]);
    // No read-ahead holds a gigabyte.
    let rules = |document: &Value| -> Vec<String> {
        let findings = document["findings"].as_array().unwrap();
        findings.iter().map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
    };
    let rule = "stack.window-below-request".to_owned();
    assert!(rules(&by_name).contains(&rule) && !rules(&by_node).contains(&rule));
}
