//! A virtual disk with heads: which requests it takes first, and the capacity of its arm.

use std::os::unix::fs::FileExt;

use testkit::samples::Random;

use crate::disk::Disk;
use crate::drive::run;

const MIB: u64 = 1 << 20;

fn disk(options: &[&str]) -> Disk {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    Disk::on(folder, &backing, &[&["--size", "1G", "--preset", "sata7200"], options].concat())
}

/// Sixteen threads read in random places. In the order of arrival a read would keep the arm for the
/// 12.7 ms of its average seek and half a turn; the disk has sixteen to choose from.
#[test]
fn a_disk_takes_the_nearest_of_the_requests_that_wait() {
    testkit::require!(Fuse);
    let disk = disk(&["--capacity", "1G", "--speed-up", "2"]);
    let file = std::fs::File::open(disk.told("disk")).unwrap();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let file = &file;
            scope.spawn(move || {
                let mut random = Random::numbered(number);
                for _ in 0..20 {
                    file.read_exact_at(&mut [1; 4096], random.below(1024 * MIB - 4096)).unwrap();
                }
            });
        }
    });
    let status = disk.status();
    assert_eq!((&status["reads"], &status["in_flight"]), (&320.into(), &0.into()));
    let service_seconds = status["time"]["mean_service_seconds"].as_f64().unwrap();
    assert!((0.002..0.010).contains(&service_seconds), "{status:#}");
    let heads = &status["parameters"]["heads"];
    assert_eq!(heads["capacity_bytes"], 1024 * MIB);
    assert_eq!(heads["queue"], 32);
}

#[test]
fn a_disk_ends_with_requests_in_its_queue() {
    testkit::require!(Fuse);
    let disk = disk(&["--speed-up", "0.001"]);
    let file = std::fs::File::open(disk.told("disk")).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let mut bytes = [1; 4096];
                file.read_exact_at(&mut bytes, number * MIB).unwrap();
                assert_eq!(bytes, [0; 4096]);
            });
        }
        // A read takes seconds; then nothing waits for time.
        while disk.status()["in_flight"] != 8 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        disk.signal("TERM");
    });
}

#[test]
fn a_capacity_is_refused_where_it_means_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().to_str().unwrap();
    let backing = folder.path().join("backing");
    let said = |options: &[&str]| {
        let arguments = ["sim", "disk", mountpoint, "--backing", backing.to_str().unwrap()];
        let output = run(&[&arguments, options].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&["--size", "8M", "--capacity", "4M"]);
    assert!(text.contains("--capacity 4 MiB is less than the size of the disk, 8 MiB"), "{text}");
    let text = said(&["--size", "8M", "--capacity", "8M", "--preset", "nvme"]);
    assert!(text.contains("--capacity is for disks with heads, and this one has none"), "{text}");
    assert!(!backing.exists());
}
