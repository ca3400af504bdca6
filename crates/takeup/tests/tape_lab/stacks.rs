//! `takeup bench disk` and `probe` on stacks of block devices: queue settings act where requests
//! wait, and are restored, and all layers are shown. They need no tape, but kernel modules of the
//! guest: device mapper, multipath and md. Each runs with only one of the drives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Said, run, shell};

/// Loop devices and the stack on them, until it is dropped.
struct Stack {
    folder: tempfile::TempDir,
    /// The device on top, below `/dev`.
    top: PathBuf,
    /// Names of the loop devices.
    disks: Vec<String>,
    undo: &'static str,
}

impl Stack {
    /// The script makes the device over `$ONE` and `$TWO` and prints its path.
    fn new(script: &str, undo: &'static str) -> Stack {
        let folder = tempfile::tempdir().unwrap();
        let attach = "for disk in one two; do truncate -s 16M $disk; \
                      losetup --find --show $disk >>disks; done";
        shell(folder.path(), attach).with_code(0);
        let text = fs::read_to_string(folder.path().join("disks")).unwrap();
        let disks: Vec<&str> = text.lines().collect();
        let script = format!("ONE={}; TWO={}; {script}", disks[0], disks[1]);
        let top = shell(folder.path(), &script).with_code(0).output.trim().to_owned();
        let name = |path: &&str| path.trim_start_matches("/dev/").to_owned();
        let disks = disks.iter().map(name).collect();
        let top = Path::new(&top).canonicalize().unwrap();
        Stack { folder, top, disks, undo }
    }

    /// The name of the device on top, as in `/sys/block`.
    fn name(&self) -> String {
        self.top.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// The settings of all layers, by layer and name.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for name in self.disks.iter().chain([&self.name()]) {
            for setting in ["scheduler", "nomerges", "read_ahead_kb", "max_sectors_kb"] {
                found.insert(format!("{name} {setting}"), queue(name, setting));
            }
        }
        found
    }

    fn bench(&self, options: &[&str]) -> Said {
        let (top, file) = (self.top.to_str().unwrap(), self.folder.path().join("runs.ndjson"));
        let _ = fs::remove_file(&file);
        let mut arguments = vec!["bench", "disk", top, "-o", file.to_str().unwrap()];
        if !options.contains(&"--engines") {
            arguments.extend(["--engines", "psync", "--depth", "1", "--block-size", "64k"]);
        }
        arguments.extend(["--length", "32M", "--runtime", "once", "--load", "read"]);
        arguments.extend(["--repeats", "1", "--repeats-max", "1"]);
        arguments.extend(options);
        run(&arguments)
    }

    /// The same for a job of fio.
    fn run_job(&self, job: &str, options: &[&str]) -> Said {
        let at = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        let (file, job_file) = (at("runs.ndjson"), at("job.fio"));
        let _ = fs::remove_file(&file);
        fs::write(&job_file, job).unwrap();
        let mut arguments =
            vec!["bench", "disk", self.top.to_str().unwrap(), "-o", &file, "--job", &job_file];
        arguments.extend(["--repeats", "1", "--repeats-max", "1"]);
        arguments.extend(options);
        run(&arguments)
    }

    fn runs(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("runs.ndjson")).unwrap();
        let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|mut line| line["run"].take()).collect()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let disks = self.disks.iter().map(|name| format!("; losetup --detach /dev/{name}"));
        let script = format!("{}{}", self.undo, disks.collect::<String>());
        let _ = shell(self.folder.path(), &script);
    }
}

/// A setting of the queue of a block device.
fn queue(name: &str, setting: &str) -> String {
    let path = Path::new("/sys/block").join(name).join("queue").join(setting);
    fs::read_to_string(&path).unwrap().trim().to_owned()
}

/// A queue setting in effect during a run, as the kernel shows it or as it was set.
fn in_force(run: &Value, name: &str, setting: &str) -> Option<String> {
    let all = run["environment"].as_object().unwrap();
    let end = format!("/{name}/queue/{setting}");
    let found = all.iter().find(|(key, _)| key.ends_with(&end));
    let own = || all.get(&format!("queue {setting}"));
    let value = found.map(|(_, value)| value).or_else(own)?.as_str()?;
    let chosen = value.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Some(chosen.map_or(value, |(chosen, _)| chosen).to_owned())
}

/// The layer of a stack in the output of `probe`.
fn layer(said: &Value, name: &str) -> Value {
    let layers = said["layers"].as_array().unwrap();
    layers.iter().find(|layer| layer["name"] == name).unwrap().clone()
}

/// The top has this kind and is on both disks, which are on the files' file system. Only the
/// read-ahead of the top has an effect, and requests are ordered there or at the disks.
fn check_probe(stack: &Stack, kind: &str, orders_itself: bool) -> Value {
    let top = stack.top.to_str().unwrap();
    let said = run(&["probe", top, "--json"]).with_code(0).json();
    let own = layer(&said, &stack.name());
    let mut disks = stack.disks.clone();
    disks.sort();
    assert_eq!((&own["kind"], &own["below"]), (&kind.into(), &disks.clone().into()), "{said:#}");
    assert_eq!(said["read_ahead_acts_at"], stack.name(), "{said:#}");
    let acts = |layer: &Value, setting: &str| layer["settings"][setting]["acts"] == true;
    assert_eq!(acts(&own, "scheduler"), orders_itself, "{own:#}");
    for name in &disks {
        let disk = layer(&said, name);
        assert_eq!((&disk["kind"], &disk["above"][0]), (&"loop".into(), &own["name"]));
        let file = disk["facts"]["backing_file"].as_str().unwrap();
        assert!(file.starts_with(stack.folder.path().to_str().unwrap()), "{file}");
        assert_eq!(acts(&disk, "scheduler"), !orders_itself, "{disk:#}");
        assert!(!acts(&disk, "read_ahead_kb") && acts(&disk, "nr_requests"), "{disk:#}");
        let below = layer(&said, disk["below"][0].as_str().unwrap());
        assert_eq!(below["kind"], "file-system", "{below:#}");
    }
    let text = run(&["probe", top]).with_code(0).output;
    assert!(stack.disks.iter().all(|name| text.contains(name)), "{text}");
    said
}

fn rules(said: &Value) -> Vec<&str> {
    let findings = said["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

/// Queue settings act on both disks, read-ahead on the top device; both are counted.
fn check_over_disks(stack: &Stack) {
    let before = stack.settings();
    let factors = ["--scheduler", "none,mq-deadline", "--nomerges", "0,2"];
    stack.bench(&factors).with_code(0);
    assert_eq!(stack.settings(), before);
    let runs = stack.runs();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        for name in &stack.disks {
            let cell = &run["cell"];
            let scheduler = in_force(run, name, "scheduler");
            assert_eq!(scheduler.as_deref(), cell["scheduler"].as_str(), "{run}");
            let nomerges = in_force(run, name, "nomerges").unwrap();
            assert_eq!(nomerges, cell["nomerges"].to_string(), "{run}");
        }
        assert_eq!(run["environment"]["disks"], stack.disks.join(" "), "{run}");
        let ratio = run["measures"]["device_bytes_per_byte"].as_f64().unwrap();
        assert!((0.9..1.5).contains(&ratio), "{run}");
    }
    // A larger window makes larger requests below, and only the window of the top device does.
    stack.bench(&["--read-ahead-kb", "16,512", "--cache", "buffered"]).with_code(0);
    assert_eq!(stack.settings(), before);
    let runs = stack.runs();
    let requests = |bytes: u64| {
        let run = runs.iter().find(|run| run["cell"]["read_ahead_bytes"] == bytes).unwrap();
        assert_eq!(
            in_force(run, &stack.name(), "read_ahead_kb").unwrap(),
            (bytes / 1024).to_string()
        );
        run["measures"]["device_request_bytes"].as_f64().unwrap()
    };
    assert!(requests(512 << 10) > 2.0 * requests(16 << 10));
}

mod on_sim_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn stacks_of_device_mapper_have_the_queues_of_their_disks() {
        testkit::kernel_since!((5, 14), "loop devices have no scheduler in Linux 5.10");
        let script = "dmsetup create stack --table \"0 32768 linear $ONE 0\n\
                      32768 32768 linear $TWO 0\"; \
                      echo /dev/$(dmsetup info -c --noheadings -o blkdevname stack)";
        let stack = Stack::new(script, "dmsetup remove stack");
        check_probe(&stack, "device-mapper", false);
        // Read-ahead that is set at a disk has no effect on the layers above.
        let disk = &stack.disks[0];
        let command = format!("echo 777 > /sys/block/{disk}/queue/read_ahead_kb");
        shell(stack.folder.path(), &command).with_code(0);
        let said = check_probe(&stack, "device-mapper", false);
        assert!(rules(&said).contains(&"stack.read-ahead-elsewhere"), "{said:#}");
        check_over_disks(&stack);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn stacks_of_md_have_the_queues_of_their_disks() {
        testkit::kernel_since!((5, 14), "loop devices have no scheduler in Linux 5.10");
        // The same as mdadm does, without its writes to the disks.
        let script = "echo md100 >/sys/module/md_mod/parameters/new_array; cd /sys/block/md100/md; \
                      echo none >metadata_version; echo raid1 >level; echo 2 >raid_disks; \
                      slot=0; for disk in $ONE $TWO; do name=${disk#/dev/}; \
                      cat /sys/block/$name/dev >new_dev; echo 16384 >dev-$name/size; \
                      echo $slot >dev-$name/slot; slot=1; done; \
                      echo 16384 >component_size; \
                      echo none >resync_start; echo active >array_state; echo /dev/md100";
        let undo = "echo clear >/sys/block/md100/md/array_state";
        let stack = Stack::new(script, undo);
        check_over_disks(&stack);
        let said = check_probe(&stack, "md", false);
        assert_eq!(layer(&said, "md100")["facts"]["level"], "raid1", "{said:#}");
        assert!(!rules(&said).contains(&"stack.degraded"), "{said:#}");
        let lose = format!("echo faulty > /sys/block/md100/md/dev-{}/state", stack.disks[1]);
        shell(stack.folder.path(), &lose).with_code(0);
        let said = run(&["probe", "md100", "--json"]).with_code(0).json();
        assert!(rules(&said).contains(&"stack.degraded"), "{said:#}");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn stacks_whose_path_fails_are_told() {
        let script = "dmsetup create --uuid mpath-lab stack --table \
                      \"0 32768 multipath 0 0 1 1 round-robin 0 2 1 $ONE 1000 $TWO 1000\"; \
                      echo /dev/$(dmsetup info -c --noheadings -o blkdevname stack)";
        let stack = Stack::new(script, "dmsetup remove stack");
        let said = check_probe(&stack, "multipath", true);
        let speaks = |said: &Value| rules(said).contains(&"stack.path-down");
        assert!(!speaks(&said), "{said:#}");
        let fail = format!(
            "dmsetup message stack 0 \"fail_path $(cat /sys/block/{}/dev)\"",
            stack.disks[1]
        );
        shell(stack.folder.path(), &fail).with_code(0);
        let said = check_probe(&stack, "multipath", true);
        assert!(speaks(&said), "{said:#}");
        let members = &layer(&said, &stack.name())["members"];
        let failed = |name: &str| {
            let all = members.as_array().unwrap();
            all.iter().any(|member| member["name"] == name && member["works"] == false)
        };
        assert!(failed(&stack.disks[1]) && !failed(&stack.disks[0]), "{members:#}");
    }

    /// The queue of a multipath device merges and orders requests; its paths get them unchanged,
    /// whatever their settings.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn stacks_of_multipath_have_a_queue_of_their_own() {
        testkit::kernel_since!((5, 0), "the schedulers of multipath are others");
        let script = "dmsetup create --uuid mpath-lab stack --table \
                      \"0 32768 multipath 0 0 1 1 round-robin 0 1 1 $ONE 1000\"; \
                      echo /dev/$(dmsetup info -c --noheadings -o blkdevname stack)";
        let stack = Stack::new(script, "dmsetup remove stack");
        let before = stack.settings();
        stack.bench(&["--scheduler", "none,mq-deadline", "--nomerges", "0,2"]).with_code(0);
        assert_eq!(stack.settings(), before);
        let top = stack.name();
        for run in &stack.runs() {
            let scheduler = in_force(run, &top, "scheduler");
            assert_eq!(scheduler.as_deref(), run["cell"]["scheduler"].as_str(), "{run}");
            let path = format!("/{}/queue/scheduler", stack.disks[0]);
            let all = run["environment"].as_object().unwrap();
            assert!(all.keys().all(|key| !key.ends_with(&path)), "{run}");
        }
        // Known truth: adjacent requests that are submitted at once are merged, or not, as the
        // setting of that queue says.
        let job = "[a]\nrw=read\nbs=4k\nsize=16M\ndirect=1\nioengine=libaio\niodepth=64\n\
                   iodepth_batch_submit=64\niodepth_batch_complete_min=64\n";
        stack.run_job(job, &["--scheduler", "mq-deadline", "--nomerges", "0,2"]).with_code(0);
        let runs = stack.runs();
        assert_eq!(runs.len(), 2);
        for run in &runs {
            let request_bytes = run["measures"]["device_request_bytes"].as_f64().unwrap();
            assert_eq!(request_bytes > 4096.0, run["cell"]["nomerges"] == 0, "{run}");
        }
        let refused = stack.bench(&["--max-sectors-kb", "128"]).with_code(1);
        refused.complains(&["max_sectors_kb of the paths below ", &top, "hint: "]);
        assert_eq!(stack.settings(), before);
    }
}
