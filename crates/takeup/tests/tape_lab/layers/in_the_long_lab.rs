//! Stacks with parts that are not in Debian's kernel, or are a cluster: an image of Ceph from a
//! monitor and a storage daemon on loopback, and a pool of ZFS whose module was built for the
//! guest's kernel. `cargo xtask lab --long` provides them.

use super::*;

/// One monitor and one daemon, with objects in memory, without keys, and one copy of each object.
/// `ceph` and `rbd` below read the same file as the daemons.
const CLUSTER: &str = "\
    export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/ceph CEPH_CONF=$PWD/ceph.conf
    id=8b1f7c52-6d0e-4d8b-9f27-3a5c1e90b464
    monitor='[v2:127.0.0.1:3300/0,v1:127.0.0.1:6789/0]'
    cat >ceph.conf <<END
[global]
fsid = $id
mon host = $monitor
public addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 268435456
mon data = $PWD/monitor
mon data avail crit = 1
mon cluster log to file = false
osd data = $PWD/storage
run dir = $PWD/run
log to file = false
END
    mkdir run monitor storage
    monmaptool --create --addv a \"$monitor\" --fsid $id map >&2
    ceph-mon --mkfs -i a --monmap map
    ceph-mon -i a >monitor.log 2>&1
    ceph --connect-timeout 120 osd new 5d3c1a77-09f4-4a0b-8c55-6f7b2f0f9e11 >&2
    ceph-osd -i 0 --mkfs --osd-uuid 5d3c1a77-09f4-4a0b-8c55-6f7b2f0f9e11 >storage.log 2>&1
    ceph-osd -i 0 >>storage.log 2>&1
    ceph osd pool create images 1 >&2\n";

/// The image is striped over objects of 4 MiB in the pool; the kernel's own driver makes it a disk.
/// udev, for which `rbd` would wait, does not run here.
#[test]
#[ignore = "runs in the lab: cargo xtask lab --long"]
fn layers_of_an_image_of_ceph() {
    let image = "modprobe ext4; modprobe rbd; : >disks
        rbd create --size 64M --image-feature layering images/disk
        rbd info --format json images/disk >info
        DISK=$(rbd map --options noudev images/disk)
        mkfs.ext4 -q $DISK; mkdir on; mount $DISK on
        dd if=/dev/zero of=on/file bs=1M count=8 conv=fsync 2>/dev/null
        echo $DISK";
    let undo = "umount on; CEPH_CONF=$PWD/ceph.conf rbd unmap --options noudev images/disk; \
                kill $(pidof ceph-osd) $(pidof ceph-mon)";
    let laid = Laid::new(&format!("{CLUSTER}{image}"), undo);
    let (file, on, disk) = (laid.at("on/file"), laid.at("on"), laid.name(0));
    let on = on.to_str().unwrap();
    let said = probe(&file);
    check_drawn(&said, &[format!("file-system {on}: {disk}"), format!("rbd {disk}:")]);
    // The cluster's own data, which do not come from the kernel.
    let info: Value = serde_json::from_slice(&fs::read(laid.at("info")).unwrap()).unwrap();
    let drawn = layer(&said, disk);
    let facts = ["pool", "image", "snapshot"].map(|name| &drawn["facts"][name]);
    assert_eq!(facts, ["images", "disk", "-"], "{drawn:#}");
    assert_eq!(drawn["names"]["image_id"], info["id"], "{drawn:#}");
    assert_eq!(drawn["names"]["cluster"], "8b1f7c52-6d0e-4d8b-9f27-3a5c1e90b464");
    assert_eq!(drawn["size_bytes"], info["size"], "{drawn:#}");
    let object_kib = info["object_size"].as_u64().unwrap() / 1024;
    let largest = &drawn["settings"]["max_sectors_kb"]["value"];
    assert_eq!(largest, &object_kib.to_string(), "no request is larger than an object");
    check_counted(&file, &[&[disk]], 64.0);
    check_read_ahead(&file, &said, disk, disk);
}

/// A pool of two disks side by side. Written data stay in the cache of ZFS until the pool is
/// imported again.
const POOL: &str = "\
    modprobe zfs; disk 128; disk 128
    zpool create -O compression=off -m none labpool $(cat disks)
    zfs create -o mountpoint=$PWD/on labpool/data
    dd if=/dev/urandom of=on/file bs=1M count=8 conv=fsync 2>/dev/null
    zpool export labpool; zpool import $(sed 's/^/-d /' disks) labpool
    cat disks";

/// Imports the pool again, with this read-ahead at its devices, and reads 2 MiB of the file in
/// small pieces. Returns the size of the devices' reads, and their KiB together.
fn read_after_import(laid: &Laid, read_ahead_kib: u32, prefetch: bool) -> (f64, f64) {
    laid.shell(&format!(
        "echo {} >/sys/module/zfs/parameters/zfs_prefetch_disable
         for disk in $(cat disks); do
             echo {read_ahead_kib} >/sys/block/${{disk#/dev/}}/queue/read_ahead_kb
         done
         zpool export labpool; zpool import $(sed 's/^/-d /' disks) labpool",
        u8::from(!prefetch),
    ));
    let all = || {
        let [one, two] = [0, 1].map(|at| reads_of(laid.name(at)));
        (one.0 + two.0, one.1 + two.1)
    };
    let before = all();
    laid.shell("dd if=on/file of=/dev/null bs=4k count=512");
    let after = all();
    let (reads, kib) = (after.0 - before.0, after.1 - before.1);
    (kib / reads, kib)
}

/// ZFS reads with its own cache and prefetch: the kernel's read-ahead has no effect.
#[test]
#[ignore = "runs in the lab: cargo xtask lab --long"]
fn layers_of_a_pool_of_zfs() {
    let undo = "zpool destroy labpool; echo 0 >/sys/module/zfs/parameters/zfs_prefetch_disable";
    let laid = Laid::new(POOL, undo);
    let (file, on) = (laid.at("on/file"), laid.at("on"));
    let on = on.to_str().unwrap();
    let [one, two] = [0, 1].map(|at| laid.name(at));
    let said = probe(&file);
    let expected = [
        format!("file-system {on}: labpool"),
        format!("zfs-pool labpool: {one} {two}"),
        format!("loop {one}:"),
        format!("loop {two}:"),
    ];
    check_drawn(&said, &expected);
    assert_eq!(layer(&said, on)["facts"]["source"], "labpool/data");
    let pool = layer(&said, "labpool");
    assert_eq!(pool["facts"]["state"], "ONLINE", "{pool:#}");
    let members = pool["members"].as_array().unwrap();
    assert!(members.len() == 2 && members.iter().all(|it| it["works"] == true), "{pool:#}");
    // With checksums and block pointers.
    check_counted(&file, &[&[one, two]], 1024.0);

    assert_eq!(said["read_ahead_acts_at"], Value::Null, "{said:#}");
    for device in [one, two] {
        assert_eq!(layer(&said, device)["settings"]["read_ahead_kb"]["acts"], false, "{said:#}");
    }
    let refused = run(&["tune", "set", file.to_str().unwrap(), "read_ahead_kb=1024"]);
    assert!(refused.code != Some(0) && refused.errors.contains("no read-ahead"));
    // Records of 128 KiB are read as a whole. With prefetch more is read than requested.
    let [small, large] = [16, 1024].map(|kib| read_after_import(&laid, kib, true));
    let [bare_small, bare_large] = [16, 1024].map(|kib| read_after_import(&laid, kib, false));
    let all = [small, large, bare_small, bare_large];
    assert!(all.iter().all(|(each, _)| *each > 64.0), "{all:?}");
    assert!(
        [bare_small, bare_large].iter().all(|(_, kib)| (2048.0..2560.0).contains(kib)),
        "{all:?}"
    );
    assert!([small, large].iter().all(|(_, kib)| *kib > 3072.0), "{all:?}");
}
