//! `takeup sim disk --from RUNS`: a disk with known times, an experiment on it with the real fio,
//! and the disk simulated from that experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::disk::Disk;
use crate::drive::{run, takeup};

/// 50 ms for every request, four at once, and no more than 40 MB/s.
const TRUTH: [&str; 6] = ["--service-time", "50ms", "--parallel", "4", "--bandwidth", "40MB"];

/// What the experiment must show.
const TOLD: [(&str, f64); 3] =
    [("command_and_seek_ns", 50e6), ("parallel", 4.0), ("link_bytes_per_second", 40e6)];

/// Reads at random places of the disk of [`TRUTH`], one, eight and sixteen at a time. As somebody
/// would do it on a machine with other work, it is made longer until it tells what it can. What a
/// plan takes from it is the answer.
fn experiment(runs: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let disk = Disk::on(folder, &backing, &[&["--size", "256M"], &TRUTH[..]].concat());
    let mut plan = Value::Null;
    for repeats in ["3", "6", "12"] {
        let output = takeup()
            .args(["bench", "disk", "--load", "randread", "--engines", "psync"])
            .args(["--block-size", "4k,1M", "--jobs", "1,8,16", "--length", "256M"])
            .args(["--cache", "direct", "--runtime", "1s", "--budget", "10m", "--seed", "1"])
            .args(["--repeats", repeats, "--repeats-max", repeats, "--quiet", "--output"])
            .arg(runs)
            .arg(disk.told("disk"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        // A file takes two requests.
        let output = takeup()
            .args(["plan", "--drive", "lto7", "--size", "1TB", "--files", "1000", "--json"])
            .arg("--source-from")
            .arg(runs)
            .output()
            .unwrap();
        plan = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let from = &plan["source"]["from"]["told"];
        let is_told = |name: &str| {
            from.as_array().is_some_and(|all| all.iter().any(|one| one["parameter"] == name))
        };
        if TOLD.iter().all(|(name, _)| is_told(name)) {
            break;
        }
    }
    plan
}

fn told<'a>(from: &'a Value, parameter: &str) -> &'a Value {
    let all = from["told"].as_array().unwrap();
    let one = all.iter().find(|one| one["parameter"] == parameter);
    one.unwrap_or_else(|| panic!("{parameter} is not told: {from:#}"))
}

#[test]
fn a_virtual_disk_is_the_one_of_an_experiment() {
    testkit::require!(Fuse, Fio);
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs.ndjson");
    let plan = experiment(&runs);
    let from = ["--from", runs.to_str().unwrap(), "--size", "8M", "--max-request", "128k"];
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let disk = Disk::on(folder, &backing, &from);
    let document = disk.document();
    // One interval in twenty misses the truth; the tests of the calculation check how often, with
    // many experiments. A tenth more on both sides covers nearly all.
    for (parameter, truth) in TOLD {
        let one = told(&document["from"], parameter);
        let [low, high] = ["low", "high"].map(|end| one[end].as_f64().unwrap());
        assert!(low / 1.1 <= truth && truth <= high * 1.1, "{one:#}");
    }
    let made_of = &document["parameters"];
    assert_eq!(made_of["parallel"].as_f64(), told(&document["from"], "parallel")["value"].as_f64());
    let link = made_of["link_bytes_per_second"].as_f64().unwrap();
    assert!((link / 40e6 - 1.0).abs() < 0.1, "{made_of:#}");
    // Options override measured parameters.
    assert_eq!(made_of["request_bytes_max"], 128 << 10);
    let not_told = document["from"]["not_told"].to_string();
    assert!(not_told.contains("tell how much of it is a seek"), "{not_told}");
    // The same disk as the source of a plan, eight files at once on four.
    let file_ns = plan["source"]["file_ns"].as_f64().unwrap();
    assert!((file_ns / 25e6 - 1.0).abs() < 0.15, "{plan:#}");
    assert_eq!(plan["source"]["from"]["disk"], document["from"]["disk"]);
}

/// A record as fio and the kernel would make it on a disk with 5 ms.
fn record(place: &Path, change: fn(&mut Vec<Value>)) -> PathBuf {
    let mut lines = vec![json!({ "experiment": {
        "format": 1, "kind": "disk", "title": "made",
        "factors": [{ "name": "load", "levels": ["randread"] }],
        "plan": null, "seed": 1, "started_unix_seconds": 0,
    } })];
    for repeat in 1..=3 {
        lines.push(json!({ "run": {
            "cell": { "load": "randread", "block_bytes": 4096, "depth": 1 },
            "repeat": repeat, "bytes": 4096 * 200, "seconds": 1.0 + 0.001 * f64::from(repeat),
            "measures": { "device_request_bytes": 4096.0, "device_bytes_per_byte": 1.0 },
            "environment": { "device": "sdq", "queue rotational": "1" },
        } }));
    }
    change(&mut lines);
    let path = place.join("runs.ndjson");
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

#[test]
fn a_record_that_tells_nothing_ends_before_anything_is_made() {
    let check = |change: fn(&mut Vec<Value>), expected: &str| {
        let place = tempfile::tempdir().unwrap();
        let runs = record(place.path(), change);
        let [folder, backing] = ["disk", "backing"].map(|name| place.path().join(name));
        fs::create_dir(&folder).unwrap();
        let [folder, runs] = [&folder, &runs].map(|path| path.to_str().unwrap());
        let made = backing.to_str().unwrap();
        let sim = ["sim", "disk", folder, "--backing", made, "--size", "8M", "--from", runs];
        let plan = ["plan", "--drive", "lto7", "--size", "1TB", "--source-from", runs];
        for command in [&sim[..], &plan] {
            let output = run(command);
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains(expected), "{text}");
        }
        assert!(!backing.exists(), "{expected}");
    };
    check(|lines| lines[0]["experiment"]["kind"] = json!("tape"), "of the kind \"tape\"");
    check(|lines| lines.truncate(2), "each combination in it ran once");
    check(|lines| lines.truncate(1), "none of its 0 runs succeeded");
    check(|lines| lines[0]["experiment"]["factors"] = json!([]), "its load is your own job file");
    check(
        |lines| lines[1]["run"]["environment"]["device"] = json!("sdr"),
        "of several disks: sdq, sdr",
    );
    check(
        |lines| {
            for line in &mut lines[1..] {
                line["run"]["cell"]["cache"] = json!("buffered");
            }
        },
        "it shows no parameter of the disk: there are no repeated direct reads",
    );
}
