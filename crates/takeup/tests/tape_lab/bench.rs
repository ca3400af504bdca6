//! `takeup bench tape`: experiments under the kernel's own driver.

use std::path::Path;

use serde_json::Value;

use crate::{Said, cartridge, device, fresh, run, shell};

/// An experiment whose runs go to a file in `folder`.
fn bench(folder: &Path, options: &[&str]) -> Said {
    let (device, file) = (device(), folder.join("runs.ndjson"));
    let mut arguments = vec!["bench", "tape", &device, "-o", file.to_str().unwrap()];
    arguments.extend(options);
    run(&arguments)
}

fn runs(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("runs.ndjson")).unwrap();
    let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|mut line| line["run"].take()).collect()
}

const ONCE: [&str; 4] = ["--repeats", "1", "--repeats-max", "1"];

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn bench_writes_and_reads_back() {
    fresh("benched", 64);
    let folder = tempfile::tempdir().unwrap();
    let options = ["--block-size", "32k,1M", "--data", "zeros,random", "--framing", "raw,bacula"];
    let more = ["--operation", "write,read", "--length", "2M"];
    bench(folder.path(), &[&options[..], &more[..], &ONCE[..]].concat()).with_code(0);
    let runs = runs(folder.path());
    assert_eq!(runs.len(), 16);
    for run in &runs {
        assert_eq!(run["bytes"], 2 << 20, "{run}");
        let blocks = (2 << 20) as f64 / run["cell"]["block_bytes"].as_f64().unwrap();
        let counted = match run["cell"]["operation"].as_str() {
            Some("read") => "drive_reads",
            _ => "drive_writes",
        };
        // The kernel's own count; a read meets the filemark after the last block.
        let count = run["measures"][counted].as_f64().unwrap();
        assert!((blocks..=blocks + 1.0).contains(&count), "{run}");
        assert!(run["environment"]["drive"].is_string(), "{run}");
    }
    // One file for each run, after the label.
    let count = "mt rewind; mt fsf 16; dd if=$TAPE of=last bs=1M status=none; mt status";
    let status = shell(folder.path(), count).with_code(0).output;
    assert_eq!(std::fs::metadata(folder.path().join("last")).unwrap().len(), 2 << 20);
    assert!(status.contains("File number=17"), "{status}");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn bench_runs_the_design_of_btape() {
    // Smaller than all runs together: the end of the medium comes.
    fresh("design", 24);
    let folder = tempfile::tempdir().unwrap();
    let options = ["--preset", "btape", "--block-size", "64k,256k", "--scale", "0.0005", "--json"];
    let document = bench(folder.path(), &options).with_code(0).json();
    assert_eq!(document["runs"], 72, "{document:#}");
    // More than the medium holds: the run that met the end was repeated from the beginning of the
    // test area. Its notes report this, unless a second attempt replaced it for another reason.
    let moved = runs(folder.path()).iter().map(|run| run["bytes"].as_u64().unwrap()).sum::<u64>();
    assert!(moved > 24 << 20, "{moved} bytes: the end of the medium was not met");
    shell(folder.path(), "mt rewind; dd if=$TAPE bs=1k count=1 status=none | head -c 17 >label")
        .with_code(0);
    assert_eq!(std::fs::read(folder.path().join("label")).unwrap(), b"takeup bench tape");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn bench_leaves_data_to_their_owner() {
    fresh("owned", 64);
    let folder = tempfile::tempdir().unwrap();
    let small = [&["--block-size", "64k", "--length", "1M"][..], &ONCE[..]].concat();
    let write = "head -c 300000 /dev/urandom >data; dd if=data of=$TAPE bs=10k status=none";
    shell(folder.path(), write).with_code(0);
    bench(folder.path(), &small).with_code(1).complains(&["holds data", "--overwrite"]);
    assert!(!folder.path().join("runs.ndjson").exists());
    bench(folder.path(), &[&small[..], &["--append"]].concat()).with_code(0);
    let same = "mt rewind; dd if=$TAPE bs=10k status=none | cmp - data";
    shell(folder.path(), same).with_code(0);
    std::fs::remove_file(folder.path().join("runs.ndjson")).unwrap();
    bench(folder.path(), &[&small[..], &["--overwrite"]].concat()).with_code(0);
    // An experiment's data may be overwritten.
    std::fs::remove_file(folder.path().join("runs.ndjson")).unwrap();
    bench(folder.path(), &small).with_code(0);
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn bench_puts_the_block_size_back() {
    fresh("settings", 64);
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "mt setblk 10240").with_code(0);
    let small = [&["--block-size", "64k", "--length", "1M"][..], &ONCE[..]].concat();
    bench(folder.path(), &small).with_code(0);
    let status = shell(folder.path(), "mt status; mt setblk 0").with_code(0).output;
    assert!(status.contains("Tape block size 10240 bytes"), "{status}");
}

mod on_sim_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn bench_switches_compression_and_puts_it_back() {
        fresh("squeezed", 64);
        let folder = tempfile::tempdir().unwrap();
        let compression = || {
            let document = run(&["probe", &device(), "--json"]).with_code(0).json();
            document.to_string().contains("\"compression\":\"on\"")
        };
        let before = compression();
        let options = ["--drive-compression", "off,on", "--block-size", "64k", "--length", "1M"];
        bench(folder.path(), &[&options[..], &ONCE[..]].concat()).with_code(0);
        for run in runs(folder.path()) {
            let told = run["environment"]["drive compression"].clone();
            assert_eq!(told, run["cell"]["drive_compression"], "{run}");
        }
        assert_eq!(compression(), before);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn bench_goes_on_behind_an_error_of_the_drive() {
        fresh("broken", 64);
        let folder = tempfile::tempdir().unwrap();
        let options = ["--block-size", "64k", "--length", "1M", "--repeats", "5"];
        let more = ["--repeats-max", "5", "--interval", "0.001"];
        // The medium fails in the middle of the third run.
        cartridge(&["faults", "broken", "unwritable=40"]);
        cartridge(&["load", "broken"]);
        bench(folder.path(), &[&options[..], &more[..]].concat()).with_code(2);
        let runs = runs(folder.path());
        let failed: Vec<bool> = runs.iter().map(|run| run["error"].is_string()).collect();
        assert!(failed.contains(&true) && failed.contains(&false), "{failed:?}");
    }
}
