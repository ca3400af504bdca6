//! Which queue settings a load needs, on a virtual disk with a known answer.

use std::fs;
use std::path::{Path, PathBuf};

use experiment::record::load;
use model::disk::{DiskChanges, DiskParameters};
use serde_json::Value;
use service::tune::queue_advice::TuneQueueAnswer;
use sim::mount::disk::LoopChoice;

use crate::disks::Loop;
use crate::settings::Disk;
use crate::tune::{check, told, tune};

fn document(directory: &Path, arguments: &[&str]) -> (Value, String) {
    let output = tune(directory, arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let document = serde_json::from_slice(&output.stdout).unwrap();
    check::<TuneQueueAnswer>(&document);
    (document, errors)
}

/// A disk that answers after 20 ms and serves 64 requests at once, behind a queue of four: at most
/// 200 requests a second, of 32 that could be in flight. A longer queue is better whatever else the
/// machine does.
#[test]
fn a_queue_that_is_too_short_is_found_and_taken_back() {
    testkit::require!(Fio, Fuse, LoopDevices, KernelSettings);
    let changes =
        DiskChanges { service_ns: Some(20_000_000), servers: Some(64), ..DiskChanges::default() };
    let parameters = DiskParameters::sas15k().with(&changes);
    let disk = Disk::attached(parameters, LoopChoice::Attach);
    let directory = tempfile::tempdir().unwrap();
    let path = disk.loop_path();
    let queue = PathBuf::from("/sys/block").join(path.file_name().unwrap()).join("queue");
    let length = || fs::read_to_string(queue.join("nr_requests")).unwrap().trim().to_owned();
    fs::write(queue.join("nr_requests"), "4").unwrap();
    let command = ["queue", path.to_str().unwrap(), "--settings", "nr_requests", "--json"];
    let quick = ["--runtime", "300ms", "--difference", "50", "--budget", "5m"];
    let set = ["--apply", "--settle", "10ms", "-o", "runs"];
    let (found, foretold) = document(directory.path(), &[&command[..], &quick, &set].concat());
    assert!(foretold.contains(" settings take about "), "{foretold}");
    let tuned = &found["settings"][0];
    assert_eq!((&tuned["name"], &tuned["present"]), (&"nr_requests".into(), &"4".into()));
    let recommended: u64 = tuned["recommended"].as_str().unwrap().parse().unwrap();
    assert!(recommended >= 16, "{found:#}");
    assert_eq!(tuned["gain"]["verdict"], "differs");
    assert!(tuned["gain"]["low"].as_f64().unwrap() > 1.5, "{found:#}");
    // Known truth: four at once, 20 ms each.
    let present = &tuned["levels"][0];
    let rate = present["requests_per_second"].as_f64().unwrap();
    assert!(present["value"] == "4" && rate <= 220.0, "{found:#}");
    // The rate and the requests of a row are the same number.
    assert_eq!(present["bytes_per_second"].as_f64().unwrap() / 4096.0, rate);
    // A loop device has 128 requests; without a scheduler the kernel accepts no more.
    let refused = found["not_tried"].as_array().unwrap().iter();
    let refused: Vec<&Value> =
        refused.filter(|it| it["name"] == "nr_requests").map(|it| &it["value"]).collect();
    assert_eq!(refused, ["256", "512"], "{found:#}");
    let why = found["not_tried"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the kernel refuses it: Invalid argument"), "{found:#}");
    // Existing runs are kept, not overwritten.
    let kept = load(&directory.path().join("runs/nr_requests.ndjson")).unwrap();
    let factor = kept.header.factors.last().unwrap();
    assert_eq!((&*factor.name, kept.runs.is_empty()), ("nr_requests", false));
    let again = [&command[..], &quick, &["-o", "runs"]].concat();
    let text = told(&tune(directory.path(), &again).output().unwrap(), 1);
    assert!(text.contains("runs/nr_requests.ndjson exists"), "{text}");
    assert_eq!(found["applied"][0]["holds"], true);
    assert_eq!(length(), recommended.to_string());
    assert!(!directory.path().join("run/settings.json").exists());
    let text = told(&tune(directory.path(), &["revert"]).output().unwrap(), 0);
    assert!(text.contains(&format!("nr_requests: {recommended} -> 4\n")), "{text}");
    assert_eq!(length(), "4");
}

/// Tried settings are restored, also when the time is up. Settings that cannot matter are not
/// tried.
#[test]
fn schedulers_are_tried_and_put_back() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let quick = ["--runtime", "50ms", "--budget", "1ms", "--settle", "10ms"];
    let command = [&["queue", device.path(), "--json"][..], &quick].concat();
    let output = tune(directory.path(), &command).output().unwrap();
    assert_eq!(device.settings(), before);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && errors.contains("no run has a result"), "{errors}");
    assert!(errors.contains("hint: increase --budget"), "{errors}");
    let quick = ["--runtime", "50ms", "--difference", "900", "--budget", "5m", "--settle", "10ms"];
    let settings = ["--settings", "scheduler,max_sectors_kb"];
    let command = [&["queue", device.path(), "--json", "--apply"][..], &quick, &settings].concat();
    let output = tune(directory.path(), &command).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    check::<TuneQueueAnswer>(&found);
    let names: Vec<&str> = found["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["scheduler"], "{found:#}");
    assert_eq!(found["not_tried"][0]["name"], "max_sectors_kb");
    assert_eq!(found["not_tried"][0]["why"], "no value splits requests of 4 KiB");
    let levels = found["settings"][0]["levels"].as_array().unwrap();
    assert!(levels.iter().any(|level| level["value"] == "mq-deadline"), "{found:#}");
    // One tenth of the load.
    assert_eq!((&found["commands"], &found["applied"]), (&Value::Null, &Value::Null));
    assert_eq!(device.settings(), before);
    let text = told(
        &tune(directory.path(), &["queue", device.path(), "--settings", "max_sectors_kb"])
            .output()
            .unwrap(),
        1,
    );
    assert!(text.contains("max_sectors_kb: no value splits requests of 4 KiB"), "{text}");
    let twice = ["queue", device.path(), "--settings", "scheduler,nomerges,scheduler"];
    let text = told(&tune(directory.path(), &twice).output().unwrap(), 1);
    assert!(text.contains("--settings: scheduler is given twice"), "{text}");
}
