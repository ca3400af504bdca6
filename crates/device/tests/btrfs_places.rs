//! Where btrfs says that data lie is what `FIEMAP` says, and checksums that were loaded are not
//! read again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use device::btrfs::places::Places;
use device::extents::extents;
use testkit::mounted::{Mounted, done, image};
use testkit::samples::noise;

/// A btrfs in a file, of 256 MiB.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
}

impl Disk {
    fn new() -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        image(&disk, 256 << 20, &["mkfs.btrfs", "-q", "-f", "-m", "single"]);
        let output = std::process::Command::new("losetup")
            .args(["--find", "--show", disk.to_str().unwrap()])
            .output()
            .unwrap();
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        assert!(!device.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Disk { folder, device }
    }

    fn mount(&self, options: &str) -> Mounted {
        Mounted::new(&["-o", options, &self.device], &self.folder.path().join("at"))
    }

    /// How many KiB were read of the device.
    fn read_kib(&self) -> u64 {
        let name = self.device.trim_start_matches("/dev/");
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        text.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() / 2
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

#[test]
fn places_are_those_of_fiemap() {
    testkit::require!(Root, LoopDevices, Btrfs);
    let disk = Disk::new();
    let mounted = disk.mount("noatime,compress=zstd");
    let at = |name: &str| mounted.path().join(name);
    let bytes = noise(35, 3 << 20);
    let plain = write(&at("plain"), &bytes);
    let mut files = vec![
        plain.clone(),
        write(&at("compressed"), &vec![b'x'; 1 << 20]),
        write(&at("inline"), b"some bytes"),
        write(&at("empty"), b""),
        write(&at("within"), &bytes[..1 << 20]),
    ];
    // Within an extent, which stays on the disk as a whole.
    let within = File::options().write(true).open(&files[4]).unwrap();
    within.write_all_at(&bytes[..8192], 400 << 10).unwrap();
    let holes = File::create(at("holes")).unwrap();
    for place in [0, 300, 900] {
        holes.write_all_at(&bytes[..100_000], place << 20).unwrap();
    }
    done("fallocate", &["--length", "1M", at("reserved").to_str().unwrap()]);
    done("cp", &["--reflink=always", plain.to_str().unwrap(), at("shared").to_str().unwrap()]);
    files.extend(["holes", "reserved", "shared"].map(at));
    done("sync", &["--file-system", mounted.path().to_str().unwrap()]);
    let mut places = Places::default();
    let mut counted = 0;
    for path in files {
        let file = File::open(&path).unwrap();
        let inode = file.metadata().unwrap().ino();
        let found = places.extents(file.as_fd(), inode).unwrap();
        assert_eq!(found, extents(file.as_fd()).unwrap(), "{}", path.display());
        counted += found.len();
    }
    assert!(counted > 8, "{counted}");
}

#[test]
fn loaded_checksums_are_not_read_with_the_data() {
    testkit::require!(Root, LoopDevices, Btrfs);
    const KIB: u64 = 64 << 10;
    let disk = Disk::new();
    {
        let mounted = disk.mount("noatime");
        write(&mounted.path().join("file"), &noise(36, (KIB << 10) as usize));
    }
    let read = |is_loaded: bool| {
        let mounted = disk.mount("ro,noatime");
        let file = File::open(mounted.path().join("file")).unwrap();
        let mut places = Places::default();
        let found = places.extents(file.as_fd(), file.metadata().unwrap().ino()).unwrap();
        let data =
            found.iter().map(|it| it.device_offset_bytes..it.device_offset_bytes + it.length_bytes);
        if is_loaded {
            places.load_checksums(file.as_fd(), data).unwrap();
        }
        let before = disk.read_kib();
        assert_eq!(std::io::copy(&mut &file, &mut std::io::sink()).unwrap(), KIB << 10);
        disk.read_kib() - before
    };
    // Four leaves of 16 KiB have them.
    let alone = read(false);
    assert!(alone >= KIB + 4 * 16, "{alone}");
    assert_eq!(read(true), KIB);
}

#[test]
fn other_file_systems_are_not_asked() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut places = Places::default();
    assert!(places.extents(reader.as_fd(), 1).is_err());
    assert!(places.load_checksums(reader.as_fd(), std::iter::once(0..4096)).is_err());
}
