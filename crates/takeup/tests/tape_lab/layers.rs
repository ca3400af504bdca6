//! Every kind of storage stack with its real parts, in the lab's guest: `takeup probe` draws it,
//! `takeup watch` counts it, and the read-ahead that `probe` names is the one in effect. They need
//! no tape, so each runs with only one of the drives. `docs/layers/` has the results.
//!
//! Known truth: a known number of bytes is read past the page cache, and each layer has them
//! exactly once. The effect of a read-ahead is counted in `/proc/diskstats`: no read is larger than
//! the window.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{LVM_ONLY_OF, run, shell, takeup};

mod in_the_long_lab;

/// Longer than any step here.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes that the loads read past the page cache.
const READ_KIB: f64 = 8192.0;

/// Devices and the stack on them, until it is dropped.
struct Laid {
    folder: tempfile::TempDir,
    /// Names of devices, as printed by the script.
    names: Vec<String>,
    undo: &'static str,
}

impl Laid {
    /// The script makes the devices in a separate folder, and prints their names. It has `disk
    /// MIB`, which makes a loop device and leaves its node in `$DISK`.
    fn new(script: &str, undo: &'static str) -> Laid {
        let folder = tempfile::tempdir().unwrap();
        let disk = "disk() { count=$((${count:-0} + 1)); truncate -s \"$1M\" \"disk$count\"; \
                    DISK=$(losetup --find --show \"disk$count\"); echo \"$DISK\" >>disks; }\n\
                    node() { echo /dev/$(dmsetup info -c --noheadings -o blkdevname $1); }\n";
        let said = shell(folder.path(), &format!("{disk}{script}")).with_code(0);
        let name = |word: &str| word.trim_start_matches("/dev/").to_owned();
        let names = said.output.split_whitespace().map(name).collect();
        Laid { folder, names, undo }
    }

    fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    fn node(&self, at: usize) -> PathBuf {
        Path::new("/dev").join(self.name(at))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shell(&self, script: &str) {
        shell(self.folder.path(), script).with_code(0);
    }

    /// The results of `watch` for these devices while fio runs, with these options.
    fn fio(&self, places: &[usize], job: &str) -> BTreeMap<String, Counted> {
        self.fio_for(places, job, ("700ms", 2))
    }

    /// With the interval, and the seconds that fio runs: a slow device needs time for enough
    /// requests.
    fn fio_for(
        &self,
        places: &[usize],
        job: &str,
        (interval, seconds): (&str, u32),
    ) -> BTreeMap<String, Counted> {
        let places: Vec<PathBuf> = places.iter().map(|at| self.node(*at)).collect();
        let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        let top = places[0].display();
        let time = format!("--direct=1 --size=8M --time_based --runtime={seconds}");
        let load = format!("fio --name=a --filename={top} {time} {job} >fio.log");
        watched(&places, interval, || self.shell(&load))
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        let detach = "for disk in $(cat disks); do losetup --detach $disk; done";
        let _ = shell(self.folder.path(), &format!("{}; {detach}", self.undo));
    }
}

/// The counts of `watch` for a device, and its findings.
#[derive(Default)]
struct Counted {
    read_kib: f64,
    joined: f64,
    discard_kib: f64,
    rules: BTreeSet<String>,
}

/// The counts of `watch` for these devices during an action, summed over all intervals.
fn watched(places: &[&Path], interval: &str, load: impl FnOnce()) -> BTreeMap<String, Counted> {
    let folder = tempfile::tempdir().unwrap();
    let (record, lines) = (folder.path().join("record"), folder.path().join("lines"));
    let mut arguments = vec!["watch", "--json", "--interval", interval];
    arguments.extend(["--record", record.to_str().unwrap()]);
    arguments.extend(places.iter().map(|place| place.to_str().unwrap()));
    let child = takeup(&arguments).stdout(File::create(&lines).unwrap()).spawn().unwrap();
    let mut watch = Ended(child);
    // The first line describes the file, the second one is the first sample.
    await_lines(&record, 2);
    load();
    // A sample may be in progress, and the line of the last one be printed after it was recorded.
    await_lines(&record, looks(&record) + 3);
    let number = watch.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    watch.0.wait().unwrap();
    let mut devices: BTreeMap<String, Counted> = BTreeMap::new();
    for line in fs::read_to_string(&lines).unwrap().lines() {
        let interval: Value = serde_json::from_str(line).unwrap();
        let seconds = interval["seconds"].as_f64().unwrap();
        for device in interval["devices"].as_array().unwrap() {
            let all = devices.entry(device["device"].as_str().unwrap().to_owned()).or_default();
            let column = |name: &str| device["iostat"][name].as_f64().unwrap() * seconds;
            all.read_kib += column("rkB/s");
            all.joined += column("rrqm/s");
            all.discard_kib += column("dkB/s");
            let findings = device["findings"].as_array().unwrap().iter();
            all.rules.extend(findings.map(|it| it["rule"].as_str().unwrap().to_owned()));
        }
    }
    devices
}

/// A program that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

fn looks(record: &Path) -> usize {
    fs::read_to_string(record).map_or(0, |text| text.lines().count())
}

fn await_lines(record: &Path, count: usize) {
    let start = Instant::now();
    while looks(record) < count {
        assert!(start.elapsed() < LIMIT, "no look of watch");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn probe(place: &Path) -> Value {
    run(&["probe", place.to_str().unwrap(), "--json"]).with_code(0).json()
}

fn layers(said: &Value) -> impl Iterator<Item = &Value> {
    said["layers"].as_array().unwrap().iter()
}

fn layer<'a>(said: &'a Value, name: &str) -> &'a Value {
    layers(said).find(|layer| layer["name"] == name).unwrap_or_else(|| panic!("{said:#}"))
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// Asserts kind, name and lower layers, such as `lvm dm-0: loop0 loop1`, without those of the file
/// system of the lab's own files.
#[track_caller]
fn check_drawn(said: &Value, expected: &[String]) {
    let is_ours =
        |layer: &&Value| layer["kind"] != "file-system" || layer["facts"]["type"] != "tmpfs";
    let own: BTreeSet<&str> =
        layers(said).filter(is_ours).map(|it| it["name"].as_str().unwrap()).collect();
    let line = |layer: &Value| {
        let below: Vec<&str> =
            words(&layer["below"]).into_iter().filter(|name| own.contains(name)).collect();
        let of = [&layer["kind"], &layer["name"]].map(|it| it.as_str().unwrap());
        format!("{} {}: {}", of[0], of[1], below.join(" ")).trim_end().to_owned()
    };
    let drawn: Vec<String> = layers(said).filter(is_ours).map(line).collect();
    assert_eq!(drawn, expected, "{said:#}");
    for layer in layers(said) {
        for name in words(&layer["below"]) {
            let lower = layers(said).find(|it| it["name"] == name).unwrap();
            assert!(words(&lower["above"]).contains(&layer["name"].as_str().unwrap()), "{said:#}");
        }
    }
}

/// Reads 8 MiB past the page cache; `watch` must count them once in each of these layers, of one
/// device or several, with at most this many bytes more.
#[track_caller]
fn check_counted(place: &Path, layers: &[&[&str]], beside_kib: f64) {
    check_counted_at(place, &[place], layers, beside_kib);
}

/// The same where the watched devices are not the one that is read.
#[track_caller]
fn check_counted_at(place: &Path, watch: &[&Path], layers: &[&[&str]], beside_kib: f64) {
    let path = place.to_str().unwrap();
    let seen = watched(watch, "500ms", || {
        let load = format!("dd if={path} of=/dev/null bs=1M count=8 iflag=direct");
        shell(Path::new("/"), &load).with_code(0);
    });
    for devices in layers {
        let all: f64 = devices.iter().map(|name| seen[*name].read_kib).sum();
        let range = READ_KIB - 0.5..=READ_KIB + beside_kib + 0.5;
        assert!(range.contains(&all), "{all} KiB at {devices:?}");
        let least = devices.iter().map(|name| seen[*name].read_kib).fold(f64::MAX, f64::min);
        assert!(least > 0.0 || devices.len() > 1, "{devices:?}");
    }
    let told: BTreeSet<&str> = layers.concat().into_iter().collect();
    let found: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(found, told);
}

/// Reads sent by a device, its merged reads, and their KiB.
fn reads_of(device: &str) -> (f64, f64) {
    let text = fs::read_to_string("/proc/diskstats").unwrap();
    let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row[2] == device).unwrap();
    let number = |at: usize| row[at].parse::<f64>().unwrap();
    (number(3) + number(4), number(5) / 2.0)
}

/// The same for the share that is mounted there (nfs(5), `/proc/self/mountstats`): operations, and
/// the bytes that came back, with a header of some bytes each.
fn reads_of_share(point: &Path) -> (f64, f64) {
    let text = fs::read_to_string("/proc/self/mountstats").unwrap();
    let begins = format!(" mounted on {} ", point.display());
    let of_it = text.lines().skip_while(|line| !line.contains(&begins));
    let row = of_it.map(str::trim).find_map(|line| line.strip_prefix("READ: ")).unwrap();
    let numbers: Vec<f64> = row.split_whitespace().map(|it| it.parse().unwrap()).collect();
    (numbers[0], numbers[4] / 1024.0)
}

/// The size of reads while a file or a device is read in small pieces, in KiB.
fn request_kib(place: &Path, reads: &dyn Fn() -> (f64, f64)) -> f64 {
    let path = place.to_str().unwrap();
    let before = reads();
    // The first call drops the cached pages of this file only.
    let script =
        format!("dd if={path} iflag=nocache count=0; dd if={path} of=/dev/null bs=4k count=512");
    shell(Path::new("/"), &script).with_code(0);
    let after = reads();
    (after.1 - before.1) / (after.0 - before.0)
}

/// The read-ahead of the layer that `probe` names has an effect, and no other: measured by the size
/// of the reads at a device below the page cache.
#[track_caller]
fn check_read_ahead(place: &Path, said: &Value, acts_at: &str, device: &str) {
    check_read_ahead_by(place, said, acts_at, &|| reads_of(device));
}

#[track_caller]
fn check_read_ahead_by(place: &Path, said: &Value, acts_at: &str, reads: &dyn Fn() -> (f64, f64)) {
    assert_eq!(said["read_ahead_acts_at"], acts_at, "{said:#}");
    let acts = |layer: &&Value| layer["name"] == acts_at;
    let set = |acting: &str, others: &str| {
        for layer in layers(said) {
            let setting = &layer["settings"]["read_ahead_kb"];
            let Some(file) = setting["path"].as_str() else { continue };
            assert_eq!(setting["acts"] == true, acts(&layer), "{layer:#}");
            fs::write(file, if acts(&layer) { acting } else { others }).unwrap();
        }
        request_kib(place, reads)
    };
    let (small, large) = (set("16", "16"), set("256", "16"));
    let (small_below_large, large_below_larger) = (set("16", "1024"), set("256", "1024"));
    let all = [small, large, small_below_large, large_below_larger];
    assert!(small <= 16.5 && small_below_large <= 16.5, "{all:?}");
    assert!(large > 2.0 * small && large_below_larger > 2.0 * small, "{all:?}");
    let ratio = large_below_larger / large;
    assert!((0.8..1.25).contains(&ratio), "{all:?}");
}

/// An md array over loop devices, made by mdadm, from the drawing to the read-ahead. It is opened
/// once before, since the kernel then looks for partitions.
fn check_array(level: &str, disks: usize) {
    let script = format!(
        "modprobe raid0; modprobe raid456; for each in $(seq {disks}); do disk 16; done; \
         mdadm --quiet --create /dev/md77 --run --level={level} --raid-devices={disks} \
         --assume-clean {options} $(cat disks) >&2; : </dev/md77; echo md77 $(cat disks)",
        options = if level == "1" { "--bitmap=none" } else { "--chunk=64" },
    );
    let laid = Laid::new(&script, "mdadm --quiet --stop /dev/md77");
    let (top, names) = (laid.node(0), &laid.names[1..]);
    let said = probe(&top);
    let mut expected = vec![format!("md md77: {}", names.join(" "))];
    expected.extend(names.iter().map(|name| format!("loop {name}:")));
    check_drawn(&said, &expected);
    let array = layer(&said, "md77");
    assert_eq!(array["facts"]["level"], format!("raid{level}"), "{array:#}");
    assert_eq!(array["members"].as_array().unwrap().len(), disks, "{array:#}");
    // Parity is not read, and a mirror is read on one side.
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    check_counted(&top, &[&["md77"], &members], 0.0);
    check_read_ahead(&top, &said, "md77", "md77");
}

/// Mounts the last disk as `on`, with a file of 8 MiB in it, and prints the disks.
const MOUNTED: &str = "mkdir on; mount $DISK on; \
                       dd if=/dev/zero of=on/file bs=1M count=8 conv=fsync 2>/dev/null; cat disks";

mod on_sim_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_stripes() {
        check_array("0", 2);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_a_mirror() {
        check_array("1", 2);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_parity() {
        testkit::kernel_since!((5, 14), "an array with parity counts more than is read");
        check_array("5", 3);
    }

    /// A volume in stripes, with a file system on it.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_a_volume() {
        testkit::kernel_since!((5, 0), "a volume counts more than is read");
        let script = "modprobe ext4; disk 32; disk 32; lvm_only_of $(cat disks); disk 32; \
                      set -- $(cat disks); \
                      lvm vgcreate --quiet labgroup $1 $2 >&2; \
                      lvm lvcreate --quiet -y -Zn -i 2 -I 64k -n data -L 32M labgroup >&2; \
                      mkfs.ext4 -q $(node labgroup-data); mkdir on; \
                      mount $(node labgroup-data) on; \
                      dd if=/dev/zero of=on/file bs=1M count=8 conv=fsync 2>/dev/null; \
                      echo $(node labgroup-data) $*";
        let undo = "umount on; LVM_SYSTEM_DIR=$PWD/lvm lvm vgchange -q -an labgroup";
        let laid = Laid::new(&format!("{LVM_ONLY_OF}{script}"), undo);
        let [volume, one, two, other] = [0, 1, 2, 3].map(|at| laid.name(at));
        // LVM has not read a disk beside them: one of another test can be counted meanwhile.
        assert_eq!(reads_of(other), (0.0, 0.0));
        let (file, on) = (laid.at("on/file"), laid.at("on"));
        let on = on.to_str().unwrap();
        let said = probe(&file);
        let expected = [
            format!("file-system {on}: {volume}"),
            format!("lvm {volume}: {one} {two}"),
            format!("loop {one}:"),
            format!("loop {two}:"),
        ];
        check_drawn(&said, &expected);
        let facts = &layer(&said, volume)["facts"];
        assert_eq!(
            (&facts["volume_group"], &facts["volume"]),
            (&"labgroup".into(), &"data".into())
        );
        assert_eq!(layer(&said, on)["facts"]["type"], "ext4");
        // The kernel also reads where the blocks of the file are.
        check_counted(&file, &[&[volume], &[one, two]], 64.0);
        check_read_ahead(&file, &said, volume, volume);
        // Discarded space is discarded once in each layer, too.
        let seen = watched(&[&laid.at("on")], "500ms", || laid.shell("rm on/file; fstrim on"));
        let [above, below] = [&[volume][..], &[one, two]]
            .map(|names| names.iter().map(|name| seen[*name].discard_kib).sum::<f64>());
        assert!(above > READ_KIB && (above - below).abs() < 1.0, "{above} {below}");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_xfs_in_a_file() {
        testkit::kernel_since!((5, 10), "Linux 4.18 mounts no XFS of a mkfs.xfs of today");
        let script = format!("modprobe xfs; disk 320; mkfs.xfs -q $DISK; {MOUNTED}");
        let laid = Laid::new(&script, "umount on");
        let (file, on, disk) = (laid.at("on/file"), laid.at("on"), laid.name(0));
        let said = probe(&file);
        let on = on.to_str().unwrap();
        check_drawn(&said, &[format!("file-system {on}: {disk}"), format!("loop {disk}:")]);
        assert_eq!(layer(&said, on)["facts"]["type"], "xfs");
        check_counted(&file, &[&[disk]], 64.0);
        check_read_ahead(&file, &said, disk, disk);
    }

    /// Its read-ahead is independent of its devices'.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_btrfs() {
        testkit::kernel_since!((5, 10), "btrfs shows no read-ahead by its UUID in Linux 4.18");
        let script = format!(
            "modprobe btrfs; disk 128; disk 128; mkfs.btrfs -q -d raid0 $(cat disks) >&2; {MOUNTED}"
        );
        let laid = Laid::new(&script, "umount on");
        let (file, on) = (laid.at("on/file"), laid.at("on"));
        let [one, two] = [0, 1].map(|at| laid.name(at));
        let said = probe(&file);
        let on = on.to_str().unwrap();
        let expected = [
            format!("file-system {on}: {one} {two}"),
            format!("loop {one}:"),
            format!("loop {two}:"),
        ];
        check_drawn(&said, &expected);
        assert_eq!(layer(&said, on)["facts"]["data"], "raid0", "{said:#}");
        // With checksums.
        check_counted(&file, &[&[one, two]], 256.0);
        check_read_ahead(&file, &said, on, one);
    }
}

mod on_tgtd_drive {
    use super::*;

    const ONE_BY_ONE: &str = "--ioengine=psync --rw=randread --bs=4k";
    const SLOW: (&str, u32) = ("1500ms", 4);

    /// LIO serves a file by two portals; two sessions make two disks of it, which are the same.
    const TARGET: &str = "\
        for module in sd_mod iscsi_target_mod target_core_file dm-service-time; do
            modprobe $module
        done
        mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
        truncate -s 64M served
        core=/sys/kernel/config/target/core/fileio_0/served
        mkdir -p $core
        echo fd_dev_name=$PWD/served,fd_dev_size=67108864 >$core/control
        echo lab0001 >$core/wwn/vpd_unit_serial
        echo 1 >$core/enable
        group=/sys/kernel/config/target/iscsi/iqn.2026-11.lab:served/tpgt_1
        mkdir -p $group/lun/lun_0 $group/np/127.0.0.1:3270 $group/np/127.0.0.1:3271
        ln -s $core $group/lun/lun_0/link
        for name in authentication demo_mode_write_protect; do echo 0 >$group/attrib/$name; done
        for name in generate_node_acls cache_dynamic_acls; do echo 1 >$group/attrib/$name; done
        echo 1 >$group/enable
        for port in 3270 3271; do
            iscsistart -i iqn.2026-11.lab:reader -t iqn.2026-11.lab:served -g 1 \
                -a 127.0.0.1 -p $port >&2
        done
        found() { grep -ls LIO-ORG /sys/block/sd*/device/vendor | cut -d/ -f4; }
        until [ $(found | wc -l) = 2 ] && [ -b /dev/$(found | tail -n 1) ]; do sleep 0.1; done
        paths=\"$(found)\"
        : >disks\n";

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_paths_over_iscsi() {
        testkit::kernel_since!((5, 0), "the schedulers of multipath are others");
        let map = "set -- $paths; sectors=$(cat /sys/block/$1/size); \
                   dmsetup create --uuid mpath-3600140lab paths --table \
                   \"0 $sectors multipath 0 0 1 1 service-time 0 2 1 /dev/$1 1 /dev/$2 1\"; \
                   echo $(node paths) $paths";
        let undo = "dmsetup remove paths; grep -ls LIO-ORG /sys/block/sd*/device/vendor | \
                    while read disk; do echo 1 >${disk%vendor}delete; done";
        let laid = Laid::new(&format!("{TARGET}{map}"), undo);
        let [top, one, two] = [0, 1, 2].map(|at| laid.name(at));
        let said = probe(&laid.node(0));
        let expected = [
            format!("multipath {top}: {one} {two}"),
            format!("iscsi {one}:"),
            format!("iscsi {two}:"),
        ];
        check_drawn(&said, &expected);
        let mut portals = BTreeSet::new();
        for disk in [one, two].map(|name| layer(&said, name)) {
            let facts = &disk["facts"];
            assert_eq!(facts["target"], "iqn.2026-11.lab:served", "{disk:#}");
            assert_eq!(facts["session"], "LOGGED_IN", "{disk:#}");
            portals.insert(facts["portal"].as_str().unwrap());
        }
        assert_eq!(portals, BTreeSet::from(["127.0.0.1:3270", "127.0.0.1:3271"]));
        check_counted(&laid.node(0), &[&[top], &[one, two]], 0.0);
        check_read_ahead(&laid.node(0), &said, top, top);
        let said = probe(&laid.node(1));
        check_drawn(&said, &[format!("iscsi {one}:")]);
        check_read_ahead(&laid.node(1), &said, one, one);

        // Adjacent requests are merged above the paths, which get the merged requests.
        laid.shell(&format!("echo mq-deadline >/sys/block/{top}/queue/scheduler"));
        let batches = "--iodepth_batch_submit=64 --iodepth_batch_complete_min=64";
        let job = format!("--ioengine=libaio --iodepth=64 --rw=read --bs=4k {batches}");
        let seen = laid.fio(&[0], &job);
        assert!(seen[top].joined > 1000.0, "{}", seen[top].joined);
        let says = |name: &str, rule: &str| seen[name].rules.contains(rule);
        assert!(says(top, "device.merged") && says(top, "device.stacked"), "{:?}", seen[top].rules);
        assert!(!says(one, "device.merged") && !says(two, "device.merged"));
        // The disk accepts 32 at once.
        let seen = laid.fio(&[1], "--ioengine=libaio --iodepth=128 --rw=randread --bs=4k");
        let rules = &seen[one].rules;
        assert!(rules.contains("device.queue-in-host"), "{rules:?}");
        laid.shell(&format!(
            "dmsetup remove paths; echo 64 >/sys/block/{one}/queue/max_sectors_kb"
        ));
        let seen = laid.fio(&[1], "--ioengine=psync --rw=randread --bs=1M");
        let rules = &seen[one].rules;
        assert!(rules.contains("device.split"), "{rules:?}");
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_a_disk_that_discards() {
        testkit::kernel_since!((4, 19), "discards are not counted");
        let script = "modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 lbpu=1 delay=0; \
                      found() { grep -ls scsi_debug /sys/block/sd*/device/model | cut -d/ -f4; }; \
                      until [ -b /dev/$(found) ]; do sleep 0.1; done; : >disks; found";
        let undo = "echo 0 >/sys/bus/pseudo/drivers/scsi_debug/delay; modprobe -r scsi_debug";
        let laid = Laid::new(script, undo);
        let (name, node) = (laid.name(0), laid.node(0));
        let said = probe(&node);
        check_drawn(&said, &[format!("scsi {name}:")]);
        let setting = &layer(&said, name)["settings"]["discard_max_bytes"]["value"];
        assert_ne!(setting, "0", "{said:#}");
        check_counted(&node, &[&[name]], 0.0);
        check_read_ahead(&node, &said, name, name);
        let all = format!("blkdiscard -f --step 65536 {}", node.display());
        let seen = watched(&[&node], "500ms", || laid.shell(&all));
        let discarded = seen[name].discard_kib;
        assert!((discarded - 65536.0).abs() < 1.0, "{discarded}");
        assert!(seen[name].rules.contains("device.discards"), "{:?}", seen[name].rules);
        // A number of clock ticks for each request.
        laid.shell("echo 5 >/sys/bus/pseudo/drivers/scsi_debug/delay");
        let seen = laid.fio_for(&[0], ONE_BY_ONE, SLOW);
        assert!(seen[name].rules.contains("device.slow"), "{:?}", seen[name].rules);
    }

    /// dm-delay below a disk that makes requests: the upper device is slow, the lower one is not.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_a_slow_disk() {
        let script = "modprobe dm-delay; disk 16; BELOW=$DISK; \
                      dmsetup create slow --table \"0 32768 delay $BELOW 0 4\"; \
                      TOP=$(losetup --direct-io=on --find --show $(node slow)); \
                      echo 0 >/sys/block/${TOP#/dev/}/queue/rotational; \
                      echo $TOP >top; echo $TOP $(node slow) $BELOW";
        let laid = Laid::new(script, "losetup --detach $(cat top); dmsetup remove slow");
        let [top, slow, below] = [0, 1, 2].map(|at| laid.name(at));
        let said = probe(&laid.node(0));
        let expected = [
            format!("loop {top}: {slow}"),
            format!("device-mapper {slow}: {below}"),
            format!("loop {below}:"),
        ];
        check_drawn(&said, &expected);
        let all = [0, 1, 2].map(|at| laid.node(at));
        let all = all.each_ref().map(PathBuf::as_path);
        check_counted_at(all[0], &all, &[&[top], &[slow], &[below]], 0.0);
        check_read_ahead(all[0], &said, top, top);
        laid.shell(&format!(
            "dmsetup reload slow --table '0 32768 delay /dev/{below} 0 24'; \
             dmsetup suspend slow; dmsetup resume slow"
        ));
        let seen = laid.fio_for(&[0, 1, 2], ONE_BY_ONE, SLOW);
        let says = |name: &str, rule: &str| seen[name].rules.contains(rule);
        assert!(says(top, "device.slow"), "{:?}", seen[top].rules);
        assert!(says(slow, "device.stacked"), "{:?}", seen[slow].rules);
        assert!(!says(below, "device.slow"), "{:?}", seen[below].rules);
    }

    /// The share has its own read-ahead; the server's reads are counted at its disk.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn layers_of_a_share() {
        let script = "for module in ext4 nfsd nfsv4; do modprobe $module; done; disk 32; \
                      mkfs.ext4 -q $DISK; mkdir served share; mount $DISK served; \
                      dd if=/dev/zero of=served/file bs=1M count=8 conv=fsync 2>/dev/null; \
                      mkdir -p /var/lib/nfs/v4recovery; touch /var/lib/nfs/etab /etc/exports; \
                      mount -t nfsd nfsd /proc/fs/nfsd; \
                      for time in lease grace; do echo 10 >/proc/fs/nfsd/nfsv4${time}time; done; \
                      exportfs -o rw,no_root_squash,insecure,fsid=0 127.0.0.1:$PWD/served; \
                      rpc.mountd -N 2 -N 3 >&2; rpc.nfsd -N 3 2 >&2; \
                      echo Y >/proc/fs/nfsd/v4_end_grace; \
                      mount -t nfs4 -o vers=4.2,rsize=65536 127.0.0.1:/ share >&2; echo $DISK";
        let undo =
            "umount share; rpc.nfsd 0; exportfs -au; umount served; kill $(pidof rpc.mountd)";
        let laid = Laid::new(script, undo);
        let (file, share, disk) = (laid.at("share/file"), laid.at("share"), laid.name(0));
        let point = share.to_str().unwrap();
        let said = probe(&file);
        check_drawn(&said, &[format!("file-system {point}:")]);
        let facts = &layer(&said, point)["facts"];
        assert_eq!((&facts["type"], &facts["rsize"]), (&"nfs4".into(), &"65536".into()));
        let served = laid.at("served/file");
        laid.shell("dd if=served/file iflag=nocache count=0");
        check_counted_at(&file, &[&served], &[&[disk]], 64.0);
        check_read_ahead_by(&file, &said, point, &|| reads_of_share(&share));
    }
}
