//! `takeup bench disk` on a loop device: discards, and jobs with a ramp.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{run, succeeds};

const SETTINGS: [&str; 8] = [
    "scheduler",
    "write_cache",
    "rotational",
    "max_sectors_kb",
    "nomerges",
    "wbt_lat_usec",
    "nr_requests",
    "read_ahead_kb",
];

/// A loop device over a file, until it is dropped.
pub struct Loop(PathBuf);

impl Loop {
    pub fn over(directory: &Path, bytes: u64) -> Loop {
        let path = directory.join("backing");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&path).output();
        let attached = attached.unwrap();
        assert!(attached.status.success(), "{attached:?}");
        Loop(String::from_utf8(attached.stdout).unwrap().trim().into())
    }

    /// A loop device with a lowered read-ahead and settings that differ from the kernel's choice.
    pub fn tuned(directory: &Path) -> Loop {
        let device = Loop::over(directory, 64 << 20);
        for (file, value) in [
            ("scheduler", "none"),
            ("max_sectors_kb", "512"),
            ("nomerges", "1"),
            ("nr_requests", "100"),
            ("read_ahead_kb", "64"),
        ] {
            fs::write(device.queue(file), value).unwrap();
        }
        device
    }

    /// All queue settings as the kernel shows them. Without write-back throttling its setting has
    /// no value.
    pub fn settings(&self) -> BTreeMap<&'static str, String> {
        let text = |file| fs::read_to_string(self.queue(file)).unwrap_or_default();
        SETTINGS.map(|file| (file, text(file).trim().to_owned())).into()
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// A setting of its queue.
    pub fn queue(&self, setting: &str) -> PathBuf {
        Path::new("/sys/block").join(self.0.file_name().unwrap()).join("queue").join(setting)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

pub fn runs(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("takeup-bench-disk.ndjson")).unwrap();
    let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["run"].clone()).collect()
}

pub const ONCE: [&str; 5] = ["--repeats", "1", "--repeats-max", "1", "--no-progress"];

#[test]
fn discards_have_a_rate() {
    testkit::require!(Fio, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(directory.path(), 64 << 20);
    let load = ["--load", "trim,randtrim", "--engines", "psync", "--block-size", "64k"];
    let length = ["--length", "16M", "--runtime", "once", "--destructive"];
    let command = ["bench", "disk", device.path()];
    succeeds(directory.path(), &[&command[..], &load, &length, &ONCE].concat());
    let runs = runs(directory.path());
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert!(run["error"].is_null() && run["seconds"].as_f64().unwrap() > 0.0, "{run}");
        assert_eq!(run["bytes"], 16 << 20, "{run}");
        assert!(run["measures"]["fio_trim_iops"].as_f64().unwrap() > 0.0, "{run}");
    }
}

#[test]
fn a_ramp_is_not_counted_at_the_device_either() {
    testkit::require!(Fio, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(directory.path(), 64 << 20);
    let job = "[a]\nrw=randread\nioengine=psync\ndirect=1\nbs=64k\nsize=64m\ntime_based\n\
               rate=20m\nruntime=1500ms\nramp_time=1500ms\n";
    fs::write(directory.path().join("job.fio"), job).unwrap();
    let command = ["bench", "disk", device.path(), "--job", "job.fio"];
    succeeds(directory.path(), &[&command[..], &ONCE].concat());
    let run = &runs(directory.path())[0];
    let ratio = run["measures"]["device_bytes_per_byte"].as_f64().unwrap();
    // With the ramp it would be 2.
    assert!((0.8..1.3).contains(&ratio), "{run}");
}

/// A stopped run is known to be slower than its target: by the amount that it had to move, or,
/// where the target is a time, by what the device has moved. All outputs show it as such a bound.
#[test]
fn a_run_that_is_stopped_leaves_a_bound() {
    testkit::require!(Fio, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(directory.path(), 512 << 20);
    let command = ["bench", "disk", device.path(), "--load", "randread", "--engines", "psync"];
    // A million requests of 512 B take longer on any machine, 512 of 1 MiB from a hole do not. On a
    // busy machine fio itself takes seconds to start, and no bound is known before.
    let blocks = ["--block-size", "512,1M", "--run-limit", "6s"];
    let whole = ["--length", "512M", "--runtime", "once"];
    let output = run(directory.path(), &[&command[..], &blocks, &whole, &ONCE].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // The block size is the load here; other loads say nothing about it.
    assert!(text.contains("block size 512 B, depth 1: slower than "), "{text}");
    assert!(text.contains("no run with the same load completed"), "{text}");
    assert!(!text.contains("runs failed"), "{text}");
    let runs = runs(directory.path());
    let cut = runs.iter().find(|run| run["cell"]["block_bytes"] == 512).unwrap();
    let bound = cut["slower_than_bytes_per_second"].as_f64().unwrap();
    // 512 MiB in the rest of six seconds after fio has started, or what the device has moved.
    assert!(bound > 0.0 && bound <= 250e6, "{cut}");
    let report = ["report", "takeup-bench-disk.ndjson", "--json"];
    let document: Value = serde_json::from_str(&succeeds(directory.path(), &report)).unwrap();
    let sentences = document["judgement"]["sentences"].as_array().unwrap();
    assert!(sentences.iter().any(|one| one["rule"] == "experiment.bound"), "{document:#}");
    fs::remove_file(directory.path().join("takeup-bench-disk.ndjson")).unwrap();
    let timed = ["--block-size", "4k", "--run-limit", "5s", "--runtime", "30s"];
    let output = run(directory.path(), &[&command[..], &timed, &ONCE].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("no run succeeded: slower than "), "{error}");
}

#[test]
fn a_run_that_moves_nothing_has_a_reason() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), vec![1; 1 << 20]).unwrap();
    let load = ["bench", "disk", "file", "--load", "trim", "--destructive", "--length", "1M"];
    let output = run(directory.path(), &[&load[..], &["--runtime", "once"], &ONCE].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("no run succeeded: "), "{error}");
    assert!(!error.contains("repeats"), "{error}");
}

/// Reads wait behind writes, and one in a hundred fsyncs is slow: a single number hides it.
#[test]
fn reads_writes_and_fsyncs_are_told_apart() {
    testkit::require!(Fio, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(directory.path(), 64 << 20);
    let command = ["bench", "disk", device.path(), "--load", "randrw", "--read-percent", "75"];
    let load = ["--engines", "libaio", "--depth", "4", "--block-size", "8k", "--fsync", "8"];
    let length = ["--length", "32M", "--runtime", "once", "--destructive"];
    let text = succeeds(directory.path(), &[&command[..], &load, &length, &ONCE].concat());
    let run = &runs(directory.path())[0];
    let operations = run["operations"].as_array().unwrap();
    let of = |name: &str| operations.iter().find(|one| one["operation"] == name).unwrap();
    let count = |name: &str| of(name)["requests"].as_u64().unwrap();
    let bytes = |name: &str| of(name)["bytes"].as_u64().unwrap();
    let measure = |name: &str| run["measures"][name].as_f64().unwrap();
    assert_eq!(bytes("read") + bytes("write"), 32 << 20, "{run}");
    assert_eq!((bytes("read"), bytes("write")), (count("read") * 8192, count("write") * 8192));
    assert!((2.0..4.5).contains(&(count("read") as f64 / count("write") as f64)), "{run}");
    // fio also counts reads between two of them.
    assert!(count("fsync") > 0 && count("fsync") < 4096 / 4, "{run}");
    let latencies: u64 =
        of("fsync")["latency"].as_array().unwrap().iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(latencies, count("fsync"), "{run}");
    assert!(measure("fio_fsync_p99_ns") >= measure("fio_fsync_p50_ns"), "{run}");
    assert!(measure("fio_read_slat_mean_ns") > 0.0 && measure("fio_write_slat_p99_ns") > 0.0);
    // The device counted the same, by direction. It flushes its cache, which Linux 6.18 counts as
    // an empty write, too.
    assert_eq!(measure("device_read_request_bytes"), 8192.0, "{run}");
    let written = measure("device_write_request_bytes");
    assert!(written > 0.0 && written <= 8192.0, "{run}");
    assert!(measure("device_flushes_per_second") > 0.0, "{run}");
    for word in ["operation", "99.9 % within", "submitted in", "fsync"] {
        assert!(text.contains(word), "{text}");
    }
    let page = directory.path().join("page.html");
    let report = ["report", "takeup-bench-disk.ndjson", "--html", page.to_str().unwrap()];
    succeeds(directory.path(), &report);
    let page = fs::read_to_string(page).unwrap();
    for word in ["Operations", "99.9 % within", "the only combination, fsync"] {
        assert!(page.contains(word), "{word}");
    }
}

/// A job as its owner wrote it, with two devices in one section: both are probed, watched, and have
/// their settings changed and restored. No PATH is needed.
#[test]
fn a_job_names_its_devices_itself() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| directory.path().join(name));
    let [one, two] = folders.map(|folder| {
        fs::create_dir(&folder).unwrap();
        Loop::over(&folder, 32 << 20)
    });
    let job = format!(
        "[both]\nfilename={}:{}\nrw=read\nbs=64k\nioengine=psync\ndirect=1\nsize=32m\n",
        one.path(),
        two.path()
    );
    fs::write(directory.path().join("mine.fio"), job).unwrap();
    let schedulers = || [&one, &two].map(|device| fs::read(device.queue("scheduler")).unwrap());
    let before = schedulers();
    let command = ["bench", "disk", "--job", "mine.fio", "--scheduler", "none,mq-deadline"];
    succeeds(directory.path(), &[&command[..], &ONCE].concat());
    assert_eq!(schedulers(), before);
    let runs = runs(directory.path());
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert_eq!(run["bytes"], 32 << 20, "{run}");
        // Half of the data is on each device: one device alone would have moved half as much.
        let ratio = run["measures"]["device_bytes_per_byte"].as_f64().unwrap();
        assert!((0.9..1.5).contains(&ratio), "{run}");
        let wanted = format!("[{}]", run["cell"]["scheduler"].as_str().unwrap());
        for device in [&one, &two] {
            let name = device.path().trim_start_matches("/dev/");
            assert!(run["environment"]["disks"].as_str().unwrap().contains(name), "{run}");
            let is_set = |(key, value): (&String, &Value)| {
                key.contains(&format!("/{name}/queue/scheduler"))
                    && (value == run["cell"]["scheduler"].as_str().unwrap()
                        || value.as_str().unwrap().contains(&wanted))
            };
            assert!(run["environment"].as_object().unwrap().iter().any(is_set), "{run}");
        }
    }
}

/// Nothing is written to the others, whatever one of them is.
#[test]
fn a_job_with_a_device_that_is_mounted_is_refused() {
    testkit::require!(Fio, LoopDevices, Ext4);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(directory.path(), 32 << 20);
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        let status = shell.args(["-ec", script]).current_dir(directory.path()).status();
        assert!(status.unwrap().success(), "{script}");
    };
    fs::write(directory.path().join("file"), vec![1; 1 << 20]).unwrap();
    shell(&format!("mkdir at && mkfs.ext4 -q {0} && mount {0} at", device.path()));
    let job = format!("[a]\nfilename=file:{}\nrw=write\nbs=4k\nsize=2m\n", device.path());
    fs::write(directory.path().join("mine.fio"), job).unwrap();
    let command = ["bench", "disk", "--job", "mine.fio", "--destructive"];
    let output = run(directory.path(), &[&command[..], &ONCE].concat());
    shell("umount at");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("{} is mounted or in use", device.path())), "{error}");
    assert!(fs::read(directory.path().join("file")).unwrap() == vec![1; 1 << 20]);
    assert!(!directory.path().join("takeup-bench-disk.ndjson").exists());
}

#[test]
fn many_files_have_a_rate_and_are_gone_afterwards() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("at")).unwrap();
    let command = ["bench", "disk", "at", "--load", "writefiles,readfiles", "--files", "50"];
    let sizes = ["--file-size", "4k,64k", "--block-size", "64k", "--cache", "buffered"];
    let engine = ["--engines", "psync", "--depth", "1"];
    let text = succeeds(directory.path(), &[&command[..], &sizes, &engine, &ONCE].concat());
    assert!(text.contains("files/s"), "{text}");
    let runs = runs(directory.path());
    assert_eq!(runs.len(), 4);
    for run in &runs {
        assert_eq!(run["bytes"], 50 * run["cell"]["file_bytes"].as_u64().unwrap(), "{run}");
        assert!(run["measures"]["files_per_second"].as_f64().unwrap() > 0.0, "{run}");
    }
    assert_eq!(fs::read_dir(directory.path().join("at")).unwrap().count(), 0);
    let wrong = ["bench", "disk", "at", "--files", "50"];
    let output = run(directory.path(), &wrong);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--files and --file-size are for "), "{error}");
}

#[test]
fn many_files_are_gone_when_it_is_stopped() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("at");
    fs::create_dir(&at).unwrap();
    let command = ["bench", "disk", "at", "--load", "writefiles", "--files", "200000"];
    let engine = ["--engines", "psync", "--depth", "1", "--cache", "buffered", "--fsync", "1"];
    for signal in ["-TERM", "-INT"] {
        let mut takeup = crate::takeup(directory.path());
        let mut child = takeup.args([&command[..], &engine, &ONCE].concat()).spawn().unwrap();
        let started = std::time::Instant::now();
        let files = || {
            let folders = fs::read_dir(&at).unwrap().flatten().map(|own| own.path().join("made"));
            folders.filter_map(|made| Some(fs::read_dir(made).ok()?.count())).sum::<usize>()
        };
        while files() < 10 {
            assert!(started.elapsed().as_secs() < 60, "it makes none");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    }
}

#[test]
fn a_job_that_is_not_there_is_told() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["bench", "disk", "--job", "none.fio"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("job none.fio: cannot be read: no such file or directory\n"), "{text}");
    assert!(!text.contains("options that a job may use"), "{text}");
}

/// Other processes that have a file open.
fn who_has(path: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = processes.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().parse::<u32>().is_ok() && name != own.as_str()
    });
    let has = |entry: &fs::DirEntry| {
        let open = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        open.map(|link| fs::read_link(link.path())).any(|link| link.is_ok_and(|link| link == path))
    };
    numbers.filter(has).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// fio would fork its jobs, which are not killed with it and would write for another minute.
#[test]
fn nothing_of_a_job_goes_on_behind_its_run() {
    testkit::require!(Fio);
    const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().canonicalize().unwrap().join("victim");
    fs::write(&file, vec![b'x'; 4 << 20]).unwrap();
    let job = "[global]\nthread=0\n[a]\nrw=write\nbs=64k\nsize=4m\ntime_based\nruntime=120\n\
               filename=victim\n[b]\nrw=read\nbs=64k\nsize=4m\ntime_based\nruntime=120\n\
               filename=victim\n";
    fs::write(directory.path().join("job.fio"), job).unwrap();
    let command = ["bench", "disk", "--job", "job.fio", "--destructive"];
    let cut = run(directory.path(), &[&command[..], &ONCE, &["--budget", "2s"]].concat());
    assert_eq!(cut.status.code(), Some(1), "{cut:?}");
    assert_eq!(who_has(&file), [""; 0]);
    // Nor after takeup was killed.
    let mut takeup = crate::takeup(directory.path());
    takeup.args(command).args(ONCE).args(["--output", "again.ndjson"]);
    let mut takeup = takeup.spawn().unwrap();
    let wait = |done: &dyn Fn(&[String]) -> bool| {
        let begun = std::time::Instant::now();
        while !done(&who_has(&file)) {
            assert!(begun.elapsed() < LIMIT, "{:?}", who_has(&file));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    // fio itself, whatever files takeup holds.
    let own = takeup.id().to_string();
    wait(&|holders| holders.iter().any(|holder| *holder != own));
    takeup.kill().unwrap();
    takeup.wait().unwrap();
    wait(&|holders| holders.is_empty());
}
