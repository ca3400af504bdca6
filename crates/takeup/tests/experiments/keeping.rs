//! Rules that keep changes over a restart. A recorded machine replaces `/sys` and `/etc`, in a
//! separate mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use service::tune::persist::TunePersistAnswer;

use crate::tune::{check, told};

/// A machine with two SAS disks whose settings were changed.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(settings: Value) -> Scene {
        let scene = Scene::of("sas-disks");
        scene.write_list(settings);
        scene
    }

    fn of(name: &str) -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let machine = directory.path().join("machine");
        testkit::samples::unpack_machine(&testkit::samples::machine(name), &machine).unwrap();
        fs::create_dir_all(machine.join("etc")).unwrap();
        Scene(directory)
    }

    fn write_list(&self, settings: Value) {
        let folder = self.0.path().join("state");
        fs::create_dir_all(&folder).unwrap();
        let change = json!({
            "for_path": "/srv", "made_unix_seconds": 1, "boot": null, "settings": settings,
        });
        fs::write(folder.join("changes.json"), json!({ "changes": [change] }).to_string()).unwrap();
    }

    fn rules(&self) -> PathBuf {
        self.0.path().join("machine/etc/udev/rules.d/99-takeup.rules")
    }

    fn tune(&self, arguments: &[&str]) -> Output {
        let script = "mount --bind \"$1/sys\" /sys && mount --bind \"$1/etc\" /etc && \
                      shift && exec \"$@\"";
        let folder: &Path = self.0.path();
        Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(folder.join("machine"))
            .args([env!("CARGO_BIN_EXE_takeup"), "tune"])
            .args(arguments)
            .env("TAKEUP_STATE_DIR", folder.join("state"))
            .env("TAKEUP_RUN_DIR", folder.join("run"))
            .output()
            .unwrap()
    }
}

fn changed(kind: &str, set: &str) -> Value {
    let device = json!({
        "name": "sda", "known_by": { "wwid": "naa.5000c500a1b2c3d4" }, "sequence": null,
    });
    json!({ "kind": kind, "device": device, "before": "1", "set": set })
}

#[test]
fn a_rule_is_shown_written_and_taken_away() {
    testkit::require!(Mounts);
    let scene = Scene::new(json!([changed("max-sectors", "512"), changed("requests", "64")]));
    let rule = "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", \
                ATTRS{wwid}==\"naa.5000c500a1b2c3d4\", ATTR{queue/max_sectors_kb}=\"512\", \
                ATTR{queue/nr_requests}=\"64\"";
    let text = told(&scene.tune(&["persist"]), 0);
    let expected = format!(
        "/etc/udev/rules.d/99-takeup.rules\n  {rule}\nto write: takeup tune persist --write\n"
    );
    assert_eq!(text, expected);
    assert!(!scene.rules().exists(), "who only looks writes nothing");
    let text = told(&scene.tune(&["persist", "--write"]), 0);
    assert!(text.ends_with("written; to remove: takeup tune persist --remove\n"), "{text}");
    let written = fs::read_to_string(scene.rules()).unwrap();
    assert!(written.starts_with("# Written by ") && written.ends_with(&format!("{rule}\n")));
    let text = told(&scene.tune(&["persist", "--write"]), 0);
    let nothing = "already written; to remove: takeup tune persist --remove\n";
    assert!(text.ends_with(nothing), "{text}");
    // A later look does not ask to write the rule again.
    let text = told(&scene.tune(&["persist"]), 0);
    assert!(text.ends_with(nothing) && !text.contains("persist --write"), "{text}");
    let document = |arguments: &[&str]| -> Value {
        let document = serde_json::from_str(&told(&scene.tune(arguments), 0)).unwrap();
        check::<TunePersistAnswer>(&document);
        document
    };
    let now = document(&["persist", "--json"]);
    assert_eq!((&now["written"], &now["written_now"]), (&json!(true), &json!(false)));
    let other = format!("{written}# more\n");
    fs::write(scene.rules(), &other).unwrap();
    let text = told(&scene.tune(&["persist"]), 0);
    assert!(text.ends_with("was not written by takeup, or was edited: not changed\n"), "{text}");
    assert_eq!(document(&["persist", "--json"])["written"], false);
    fs::write(scene.rules(), &written).unwrap();
    // The rule is recognised as Takeup's own.
    assert!(!text.contains("sets it too"), "{text}");
    // An edited rule counts as foreign.
    fs::write(scene.rules(), format!("{written}# more\n")).unwrap();
    for arguments in [&["persist", "--remove"][..], &["persist", "--write"]] {
        let text = told(&scene.tune(arguments), 1);
        assert!(text.contains("99-takeup.rules was not written by takeup"), "{text}");
    }
    fs::write(scene.rules(), &written).unwrap();
    assert_eq!(
        told(&scene.tune(&["persist", "--remove"]), 0),
        "/etc/udev/rules.d/99-takeup.rules: removed\n"
    );
    assert!(!scene.rules().exists());
    assert_eq!(told(&scene.tune(&["persist", "--remove"]), 0), "nothing is kept over a restart\n");
}

/// A reverted setting must not return at the next start.
#[test]
fn revert_takes_the_rule_away() {
    testkit::require!(Mounts);
    let scene = Scene::new(json!([changed("requests", "64")]));
    told(&scene.tune(&["persist", "--write"]), 0);
    // The recorded settings do not belong to this kernel and are not written.
    let path = scene.0.path().join("state/changes.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    list["changes"] = json!([]);
    fs::write(&path, list.to_string()).unwrap();
    let text = told(&scene.tune(&["revert"]), 0);
    assert!(text.starts_with("/etc/udev/rules.d/99-takeup.rules: removed\n"), "{text}");
    assert!(!scene.rules().exists() && !path.exists());
}

#[test]
fn what_no_rule_keeps_is_told_with_what_does() {
    testkit::require!(Mounts);
    let scene = Scene::new(json!([changed("requests", "64"), changed("read-ahead", "1024")]));
    // The recorded machine's profile includes another one, which is not in `/etc`.
    let profile = scene.0.path().join("machine/etc/tuned/throughput-here/tuned.conf");
    fs::write(profile, "[disk]\nreadahead=>4096\n").unwrap();
    let text = told(&scene.tune(&["persist", "--write"]), 2);
    let line = "sda read-ahead: tuned sets it after udev; set it in \
                /etc/tuned/throughput-here/tuned.conf:2:\n  readahead=1024\n";
    assert!(text.contains(line), "{text}");
    assert!(fs::read_to_string(scene.rules()).unwrap().contains("nr_requests"));
    // Foreign files are not overwritten.
    let scene = Scene::new(json!([changed("requests", "64")]));
    fs::write(scene.rules(), "mine").unwrap();
    let text = told(&scene.tune(&["persist", "--write"]), 1);
    assert!(text.contains("hint: move the file away"), "{text}");
    assert_eq!(fs::read_to_string(scene.rules()).unwrap(), "mine");
    // A setting on trial is not kept.
    scene.write_list(json!([changed("requests", "64")]));
    let path = scene.0.path().join("state/changes.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    list["changes"][0]["boot"] = boot.trim().into();
    list["changes"][0]["trial"] = json!({
        "until_uptime_ms": u64::MAX, "until_unix_seconds": 1,
        "guard": { "pid": 1, "start_ticks": 0 },
    });
    fs::write(&path, list.to_string()).unwrap();
    let text = told(&scene.tune(&["persist"]), 1);
    assert!(
        text.contains("a change on trial cannot be kept") && text.contains("confirm"),
        "{text}"
    );
}

/// Requests in flight would fail the paths: refused on the multipath device and on what is above
/// it, before anything is written.
#[test]
fn the_largest_request_below_a_live_multipath_device_is_left_alone() {
    testkit::require!(Mounts);
    let scene = Scene::of("san");
    let node = scene.0.path().join("luks-db");
    let made = Command::new("mknod").arg(&node).args(["b", "253", "2"]).status().unwrap();
    assert!(made.success());
    let before = scene.0.path().join("machine/sys/devices/virtual/block/dm-0/queue/max_sectors_kb");
    let text = told(&scene.tune(&["set", node.to_str().unwrap(), "max_sectors_kb=256"]), 1);
    assert!(text.contains("cannot change max_sectors_kb below dm-0"), "{text}");
    assert!(text.contains("hint: set max_sectors_kb in /etc/multipath.conf"), "{text}");
    assert_eq!(fs::read_to_string(before).unwrap().trim(), "512");
    assert!(!scene.0.path().join("state/changes.json").exists());
}
