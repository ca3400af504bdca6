//! Stacks of recorded machines and of this machine.

use super::*;
use crate::layers::Storage;

fn machine(name: &str) -> (tempfile::TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    testkit::samples::unpack_machine(&testkit::samples::machine(name), folder.path()).unwrap();
    let machine = Machine::recorded(folder.path()).unwrap();
    (folder, machine)
}

fn below(name: &str, number: &str, path: &str) -> Stack {
    let (_folder, machine) = machine(name);
    let is_device = path.starts_with("/dev/");
    let place = StackTarget { number: number.to_owned(), path: PathBuf::from(path), is_device };
    Stack::of(&machine, &place)
}

/// Layers as `name: what is below`.
fn shape(stack: &Stack) -> Vec<String> {
    stack.layers.iter().map(|it| format!("{}: {}", it.name, it.below.join(" "))).collect()
}

fn facts<const N: usize>(stack: &Stack, layer: &str, names: [&str; N]) -> [String; N] {
    let layer = stack.layer(layer).unwrap();
    names.map(|name| layer.fact(name).unwrap_or("-").to_owned())
}

/// Layers that have a setting, and whether it has an effect there.
fn acting(stack: &Stack, setting: &str) -> Vec<(String, bool)> {
    let own = |layer: &Layer| Some((layer.name.clone(), layer.settings.get(setting)?.acts));
    stack.layers.iter().filter_map(own).collect()
}

fn pairs<const N: usize>(all: [(&str, bool); N]) -> Vec<(String, bool)> {
    all.into_iter().map(|(name, acts)| (name.to_owned(), acts)).collect()
}

#[test]
fn a_volume_over_two_disks() {
    let stack = below("sas-disks", "253:1", "/srv/my data/file");
    let expected =
        ["/srv/my data: dm-1", "dm-1: sda2 sdb1", "sda2: sda", "sda: ", "sdb1: sdb", "sdb: "];
    assert_eq!(shape(&stack), expected);
    let kinds: Vec<LayerKind> = stack.layers.iter().map(|layer| layer.kind).collect();
    let (partition, disk) = (LayerKind::Partition, LayerKind::Sas);
    assert_eq!(kinds, [LayerKind::FileSystem, LayerKind::Lvm, partition, disk, partition, disk]);
    assert_eq!(stack.layer("dm-1").unwrap().above, ["/srv/my data"]);
    assert_eq!(stack.layer("sdb").unwrap().above, ["sdb1"]);
    assert_eq!(facts(&stack, "dm-1", ["volume_group", "volume"]), ["vg0", "my-data"]);
    let disk = ["vendor", "model", "firmware", "serial", "adapter"];
    let expected = ["SEAGATE", "ST4000NM0025", "N003", "ZC11ABCD", "mpt3sas"];
    assert_eq!(facts(&stack, "sda", disk), expected);
    let names = &stack.layer("sda").unwrap().names;
    assert_eq!(names["wwn"], "naa.5000c500a1b2c3d4");
    assert_eq!(names["id"], "wwn-0x5000c500a1b2c3d4");
    assert_eq!(names["sas_address"], "0x5000c500a1b2c3d5");
    let uuid = &stack.layers[0].names["uuid"];
    assert_eq!(uuid, "7d3c2f6e-5c7e-4f57-8d0c-1a2b3c4d5e6f");
    assert_eq!(stack.layer("dm-1").unwrap().size_bytes, Some(7_814_021_120 * 512));
    let health = stack.layer("sda").unwrap().health.clone().unwrap();
    assert_eq!((health.passed, health.medium_errors), (Some(true), Some(0)));
    assert_eq!(stack.layer("sdb").unwrap().health, None);
}

/// Read-ahead has an effect at the device of the file system, ordering at the disks.
#[test]
fn settings_act_where_they_do() {
    let stack = below("sas-disks", "253:1", "/srv/my data/file");
    let expected = pairs([("dm-1", true), ("sda", false), ("sdb", false)]);
    assert_eq!(acting(&stack, "read_ahead_kb"), expected);
    assert_eq!(stack.read_ahead().unwrap().name, "dm-1");
    let expected = pairs([("dm-1", false), ("sda", true), ("sdb", true)]);
    assert_eq!(acting(&stack, "scheduler"), expected);
    assert_eq!(stack.layer("sda").unwrap().setting("scheduler"), Some("mq-deadline"));
    assert_eq!(stack.layer("sda").unwrap().number("queue_depth"), Some(254));
    let limit = &stack.layer("sda").unwrap().settings["max_sectors_kb"];
    assert_eq!((limit.value.as_str(), limit.limit.as_deref()), ("1280", Some("32767")));
    // A multipath device orders requests itself.
    let stack = below("san", "253:2", "/var/lib/db/base");
    let expected = pairs([("dm-2", false), ("dm-0", true), ("sdb", false), ("sdc", false)]);
    assert_eq!(acting(&stack, "scheduler"), expected);
    let expected = pairs([("dm-2", false), ("dm-0", true), ("sdb", true), ("sdc", true)]);
    assert_eq!(acting(&stack, "max_sectors_kb"), expected);
    // Reads of the device itself use its own read-ahead.
    let stack = below("sas-disks", "253:1", "/dev/mapper/vg0-my--data");
    assert_eq!(stack.layers[0].name, "dm-1");
    assert_eq!(stack.read_ahead().unwrap().name, "dm-1");
}

#[test]
fn who_sets_them() {
    let stack = below("sas-disks", "253:1", "/srv/my data/file");
    let owners = |layer: &str, setting: &str| -> Vec<String> {
        let layer = stack.layer(layer).unwrap();
        let told = |owner: &Owner| {
            let [place, value] = [&owner.place, &owner.value].map(|it| it.as_deref());
            let sure = if owner.is_sure { "sure" } else { "perhaps" };
            format!("{} {} {} {sure}", owner.by, place.unwrap_or("-"), value.unwrap_or("-"))
        };
        layer.settings[setting].owners.iter().map(told).collect()
    };
    let included = "/usr/lib/tuned/profiles/throughput-performance/tuned.conf:2";
    let tuned = format!("tuned {included} >4096 sure");
    let udev = "udev /etc/udev/rules.d/60-disks.rules:2 4096 sure";
    assert_eq!(owners("sda", "read_ahead_kb"), [udev, &tuned]);
    assert_eq!(owners("dm-1", "read_ahead_kb"), [&tuned, "lvm - - sure"]);
    let profile = "tuned /etc/tuned/throughput-here/tuned.conf:4 mq-deadline sure";
    assert_eq!(owners("sda", "scheduler"), [profile]);
    let other = "udev /etc/udev/rules.d/60-disks.rules:5 bfq perhaps";
    assert_eq!(owners("sdb", "scheduler"), [other, profile]);
    // The file of that name in /etc replaces it.
    assert_eq!(owners("sda", "nr_requests"), [""; 0]);
    // A rule with PROGRAM, as in nfs-common, applies if the program succeeds, and sets its output.
    let stack = below("nvme", "0:50", "/share/file");
    let owner = &stack.layers[0].settings["read_ahead_kb"].owners[0];
    assert_eq!((&*owner.by, owner.is_sure, owner.value.as_deref()), ("udev", false, None));
    let stack = below("san", "253:2", "/var/lib/db/base");
    let owner = &stack.layer("dm-0").unwrap().settings["max_sectors_kb"].owners[0];
    assert_eq!((&*owner.by, owner.is_sure), ("multipath.conf", false));
    assert_eq!(owner.place.as_deref(), Some("/etc/multipath.conf:2"));
}

#[test]
fn two_ways_to_one_disk() {
    let stack = below("san", "253:2", "/var/lib/db/base");
    let expected = ["/var/lib/db: dm-2", "dm-2: dm-0", "dm-0: sdb sdc", "sdb: ", "sdc: "];
    assert_eq!(shape(&stack), expected);
    let kinds: Vec<LayerKind> = stack.layers[1..].iter().map(|layer| layer.kind).collect();
    assert_eq!(
        kinds,
        [LayerKind::Crypt, LayerKind::Multipath, LayerKind::FibreChannel, LayerKind::Iscsi]
    );
    assert_eq!(facts(&stack, "dm-2", ["encryption", "mapped_name"]), ["LUKS2", "luks-db"]);
    let fibre = ["target_port", "port_state", "own_port", "speed"];
    let expected = ["0x500a098012345678", "Online", "0x21000024ff112233", "16 Gbit"];
    assert_eq!(facts(&stack, "sdb", fibre), expected);
    let expected = ["iqn.2003-01.org.linux-iscsi.store:db", "192.0.2.7:3260", "FAILED"];
    assert_eq!(facts(&stack, "sdc", ["target", "portal", "session"]), expected);
    let member = |name: &str, state: &str, works| {
        let [name, state] = [name, state].map(str::to_owned);
        Member { name, state, works }
    };
    let expected =
        [member("sdb", "active, running", true), member("sdc", "failed, transport-offline", false)];
    assert_eq!(stack.layer("dm-0").unwrap().members, expected);
}

/// Recorded from the kernel of the lab, see scripts/record-machine.
#[test]
fn a_volume_over_paths_to_files_and_an_array_without_one_of_its_disks() {
    let stack = below("lab-multipath-md", "254:1", "/dev/dm-1");
    let expected =
        ["dm-1: dm-0", "dm-0: loop0 loop1", "loop0: /run/lab/tmp", "loop1: /run/lab/tmp"];
    assert_eq!(shape(&stack)[..4], expected);
    let of = |name: &str| stack.layer(name).unwrap();
    assert_eq!((of("dm-1").kind, of("dm-0").kind), (LayerKind::Lvm, LayerKind::Multipath));
    let works: Vec<bool> = of("dm-0").members.iter().map(|member| member.works).collect();
    assert_eq!(works, [true, false]);
    let memory = of("/run/lab/tmp");
    assert_eq!(
        (memory.fact("type"), &memory.above[..]),
        (Some("tmpfs"), &["loop0", "loop1"].map(str::to_owned)[..])
    );
    let stack = below("lab-multipath-md", "9:100", "/dev/md100");
    assert_eq!(shape(&stack)[..2], ["md100: loop2 loop3", "loop2: /run/lab/tmp"]);
    assert_eq!(facts(&stack, "md100", ["level", "disks", "missing"]), ["raid1", "2", "1"]);
    // The device mapper counts regardless of `iostats`; other drivers obey it.
    let stack = below("lab-multipath-md", "254:1", "/dev/dm-1");
    let expected = pairs([("dm-1", false), ("dm-0", true), ("loop0", true), ("loop1", true)]);
    assert_eq!(acting(&stack, "iostats"), expected);
    let stack = below("lab-multipath-md", "9:100", "/dev/md100");
    assert!(stack.layer("md100").unwrap().settings["iostats"].acts);
    let members = &stack.layer("md100").unwrap().members;
    assert_eq!((members[0].works, members[1].state.as_str()), (true, "faulty"));
    assert_eq!(stack.layer("md100").unwrap().names.get("uuid"), None);
}

/// Recorded from the kernel of the lab: two sessions to one target below a multipath device, a
/// btrfs over two disks, a network mount.
#[test]
fn paths_over_iscsi_a_pool_and_a_share_that_were_real() {
    let recorded = |number: &str, path: &str| below("lab-iscsi-btrfs-nfs", number, path);
    let stack = recorded("254:0", "/dev/dm-0");
    assert_eq!(shape(&stack), ["dm-0: sda sdb", "sda: ", "sdb: "]);
    let kinds: Vec<LayerKind> = stack.layers.iter().map(|layer| layer.kind).collect();
    assert_eq!(kinds, [LayerKind::Multipath, LayerKind::Iscsi, LayerKind::Iscsi]);
    for (disk, portal) in [("sda", "127.0.0.1:3270"), ("sdb", "127.0.0.1:3271")] {
        let told = facts(&stack, disk, ["vendor", "target", "portal", "session", "adapter"]);
        let expected = ["LIO-ORG", "iqn.2026-11.lab.takeup:disk", portal, "LOGGED_IN", "iscsi_tcp"];
        assert_eq!(told, expected);
    }
    assert!(stack.layer("dm-0").unwrap().members.iter().all(|member| member.works));
    let expected = pairs([("dm-0", true), ("sda", false), ("sdb", false)]);
    assert_eq!(acting(&stack, "read_ahead_kb"), expected);
    assert_eq!(acting(&stack, "scheduler"), expected);

    let stack = recorded("0:35", "/srv/pool/file");
    let expected = ["/srv/pool: loop0 loop1", "loop0: /run", "loop1: /run", "/run: "];
    assert_eq!(shape(&stack), expected);
    assert_eq!(
        facts(&stack, "/srv/pool", ["type", "data", "metadata"]),
        ["btrfs", "raid0", "raid1"]
    );
    assert_eq!(stack.read_ahead().unwrap().number("read_ahead_kb"), Some(4096));
    let expected = pairs([("/srv/pool", true), ("loop0", false), ("loop1", false)]);
    assert_eq!(acting(&stack, "read_ahead_kb"), expected);

    let stack = recorded("0:38", "/srv/share/file");
    assert_eq!(shape(&stack), ["/srv/share: "]);
    assert_eq!(facts(&stack, "/srv/share", ["type", "rsize"]), ["nfs4", "65536"]);
    assert_eq!(acting(&stack, "read_ahead_kb"), pairs([("/srv/share", true)]));
}

#[test]
fn an_image_of_ceph_and_a_pool_of_zfs_that_were_real() {
    let recorded = |number: &str, path: &str| below("lab-ceph-zfs", number, path);
    let stack = recorded("252:0", "/srv/image/file");
    assert_eq!(shape(&stack), ["/srv/image: rbd0", "rbd0: "]);
    assert_eq!(stack.layer("rbd0").unwrap().kind, LayerKind::Rbd);
    assert_eq!(facts(&stack, "rbd0", ["pool", "image", "snapshot"]), ["images", "disk", "-"]);
    assert_eq!(stack.layer("rbd0").unwrap().names["image_id"], "100b8ca8ac91");
    assert_eq!(acting(&stack, "read_ahead_kb"), pairs([("rbd0", true)]));

    let stack = recorded("0:34", "/srv/pool/file");
    let expected = ["/srv/pool: tank", "tank: loop0 loop1", "loop0: /run", "loop1: /run", "/run: "];
    assert_eq!(shape(&stack), expected);
    assert_eq!(facts(&stack, "tank", ["state"]), ["DEGRADED"]);
    let members = &stack.layer("tank").unwrap().members;
    let states: Vec<&str> = members.iter().map(|member| member.state.as_str()).collect();
    assert_eq!(states, ["OFFLINE", "ONLINE"]);
    assert!(stack.read_ahead().is_none());
    let expected = pairs([("loop0", false), ("loop1", false)]);
    assert_eq!(acting(&stack, "read_ahead_kb"), expected);
    let (_folder, machine) = machine("lab-ceph-zfs");
    let path = PathBuf::from("/srv/pool/file");
    let place = StackTarget { number: "0:34".to_owned(), path, is_device: false };
    assert_eq!(Stack::devices(&machine, &place), ["loop0", "loop1"]);
}

#[test]
fn namespaces_and_what_lies_on_no_device_of_its_own() {
    let stack = below("nvme", "0:33", "/data/file");
    let expected = [
        "/data: nvme0n1p1 nvme1n1",
        "nvme0n1p1: nvme0n1",
        "nvme0n1: ",
        "nvme1n1: nvme1c1n1 nvme1c2n1",
        "nvme1c1n1: ",
        "nvme1c2n1: ",
    ];
    assert_eq!(shape(&stack), expected);
    assert_eq!(stack.read_ahead().unwrap().name, "/data");
    assert_eq!(stack.layers[0].number("read_ahead_kb"), Some(4096));
    assert_eq!(stack.layers[0].fact("data"), Some("raid1"));
    assert_eq!(stack.layer("nvme1c1n1").unwrap().kind, LayerKind::NvmePath);
    let drive = ["model", "serial", "firmware", "transport"];
    let expected = ["SAMSUNG MZVL2512HCJQ-00B00", "S675NX0T123456", "GXA7801Q", "pcie"];
    assert_eq!(facts(&stack, "nvme0n1", drive), expected);
    assert_eq!(facts(&stack, "nvme1n1", ["policy"]), ["numa"]);
    let members = &stack.layer("nvme1n1").unwrap().members;
    let states: Vec<&str> = members.iter().map(|member| member.state.as_str()).collect();
    assert_eq!(states, ["live, optimized", "connecting, optimized"]);
    assert_eq!((members[0].works, members[1].works), (true, false));
    let share = below("nvme", "0:50", "/share/file");
    assert_eq!(shape(&share), ["/share: "]);
    let expected = ["nfs4", "store:/export", "4.2", "1048576", "192.0.2.9"];
    assert_eq!(
        facts(&share, "/share", ["type", "source", "version", "rsize", "address"]),
        expected
    );
    assert_eq!(share.read_ahead().unwrap().number("read_ahead_kb"), Some(128));
    // A removed file cannot be followed.
    let pool = below("nvme", "0:51", "/tank/file");
    assert_eq!(shape(&pool), ["/tank: tank", "tank: sdd1", "sdd1: sdd", "sdd: "]);
    assert_eq!(facts(&pool, "tank", ["state"]), ["DEGRADED"]);
    assert_eq!(pool.layer("tank").unwrap().members[1].state, "UNAVAIL");
    assert_eq!(pool.layer("sdd").unwrap().kind, LayerKind::Ata);
    let (_folder, recorded) = machine("nvme");
    let at = |number: &str, path: &str| StackTarget {
        number: number.to_owned(),
        path: PathBuf::from(path),
        is_device: false,
    };
    assert_eq!(Stack::devices(&recorded, &at("0:51", "/tank/file")), ["sdd1", "sdd"]);
    assert!(Stack::devices(&recorded, &at("0:50", "/share/file")).is_empty());
    assert_eq!(pool.layer("sdd").unwrap().health.clone().unwrap().passed, Some(false));
    let merged = below("nvme", "0:60", "/merged/file");
    assert_eq!(shape(&merged)[..3], ["/merged: /ceph /data", "/ceph: rbd0", "rbd0: "]);
    assert_eq!(facts(&merged, "rbd0", ["pool", "image"]), ["rbd", "image"]);
}

/// Only the own drives of a real machine are believed that they do not rotate.
#[test]
fn disks_without_heads() {
    let (share, pool, image) = (("0:50", "/share"), ("0:51", "/tank"), ("252:0", "/ceph"));
    let namespaces = ("0:33", "/data");
    let is_without = |more: &str, (number, path): (&str, &str)| {
        let text = testkit::samples::machine("nvme")
            + "\n[]\nsys/class/block/rbd0/queue/rotational: 0\n"
            + more;
        let folder = tempfile::tempdir().unwrap();
        testkit::samples::unpack_machine(&text, folder.path()).unwrap();
        let machine = Machine::recorded(folder.path()).unwrap();
        let path = PathBuf::from(path).join("file");
        let place = StackTarget { number: number.to_owned(), path, is_device: false };
        Stack::is_without_heads(&machine, &place)
    };
    let real = "proc/cpuinfo: processor\\t: 0\\nflags\\t\\t: fpu sse2 lm\\n\n";
    let virtual_machine = "proc/cpuinfo: processor\\t: 0\\nflags\\t\\t: fpu hypervisor lm\\n\n";
    let says = |name: &str, rotational: &str| {
        format!("sys/class/block/{name}/queue/rotational: {rotational}\n")
    };
    let flash = says("sdd", "0") + &says("nvme0n1", "0") + &says("nvme1n1", "0");
    let on = |machine: &str, place| is_without(&(machine.to_owned() + &flash), place);
    assert!(on(real, pool) && on(real, namespaces));
    assert!(!on(real, share) && !on(real, image));
    assert!(!on(virtual_machine, pool) && !on(virtual_machine, namespaces) && !on("", pool));
    assert!(!is_without(&(real.to_owned() + &says("sdd", "1")), pool));
    assert!(!is_without(real, pool));
    // One disk with heads is enough.
    let mixed = real.to_owned() + &says("nvme0n1", "1") + &says("nvme1n1", "0");
    assert!(!is_without(&mixed, namespaces));
}

/// `Stack` and `Storage` must agree.
#[test]
fn the_read_ahead_that_acts_is_that_of_the_storage() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let stack = Stack::of(&Machine::this(), &StackTarget::of(&path).unwrap());
    let storage = Storage::of(&path).unwrap();
    assert!(!stack.is_cut);
    let found = stack.read_ahead().map(|layer| layer.settings["read_ahead_kb"].path.clone());
    assert_eq!(found, storage.read_ahead, "{stack:#?}");
    let mut names = stack.layers.iter().map(|layer| layer.name.as_str());
    assert!(storage.layers.iter().all(|layer| names.any(|name| name == layer.name)));
    assert!(StackTarget::of(Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn devices_by_their_names() {
    let (_folder, machine) = machine("nvme");
    let of = |name: &str| {
        let place = StackTarget::of_name(&machine, Path::new(name))?;
        Some(shape(&Stack::of(&machine, &place)))
    };
    assert_eq!(
        of("nvme0n1p1"),
        Some(vec!["nvme0n1p1: nvme0n1".to_owned(), "nvme0n1: ".to_owned()])
    );
    assert_eq!(of("/dev/nvme1c1n1"), Some(vec!["nvme1c1n1: ".to_owned()]));
    for nothing in ["sdz", "", ".", "..", "../block/rbd0", "/sys"] {
        assert_eq!(of(nothing), None, "{nothing}");
    }
}

/// A loop device on a file system on the same loop device, which no kernel allows, and a stack
/// deeper than any real one.
#[test]
fn circles_and_towers_end() {
    let mut text = String::from("proc/self/mountinfo: 22 1 7:0 / / rw - ext4 /dev/loop0 rw\n");
    text.push_str("sys/dev/block/7:0 -> /sys/devices/virtual/block/loop0\n");
    text.push_str("sys/devices/virtual/block/loop0/loop/backing_file: /disk\n");
    let tower: String = (0..60)
        .map(|at| {
            let next = at + 1;
            let folder = "sys/devices/virtual/block";
            format!("{folder}/dm-{at}/slaves/dm-{next} -> /{folder}/dm-{next}\n")
        })
        .collect();
    text.push_str(&tower);
    text.push_str("sys/dev/block/253:0 -> /sys/devices/virtual/block/dm-0\n");
    let folder = tempfile::tempdir().unwrap();
    testkit::samples::unpack_machine(&text, folder.path()).unwrap();
    let machine = Machine::recorded(folder.path()).unwrap();
    let place = |number: &str, is_device| StackTarget {
        number: number.to_owned(),
        path: PathBuf::from("/file"),
        is_device,
    };
    let stack = Stack::of(&machine, &place("7:0", false));
    assert_eq!(shape(&stack), ["/: loop0", "loop0: /"]);
    assert!(!stack.is_cut);
    let stack = Stack::of(&machine, &place("253:0", true));
    assert_eq!((stack.layers.len(), stack.is_cut), (DEPTH_MAX, true));
}
