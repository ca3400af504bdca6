//! Space that is reserved for large files: it keeps them in one piece, and never makes an
//! unfinished one look whole, or take space that it does not need.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use archive::member::Extent;
use rustix::fs::fstat;
use testkit::mounted::{Mounted, image};
use tree::{Created, ResolveMethod, RestoreFile};

use crate::fixture::{Archived, destination, file};
use crate::round_trip::exact;

const FREE_BYTES: u64 = 60 << 20;
const SIZE_BYTES: u64 = 20 << 20;

/// A file system of twice as many bytes.
struct Disk {
    mounted: Mounted,
    _home: tempfile::TempDir,
}

impl Disk {
    fn new(mkfs: &[&str]) -> Disk {
        let home = tempfile::tempdir().unwrap();
        let disk = home.path().join("disk");
        image(&disk, 2 * FREE_BYTES, mkfs);
        let mounted =
            Mounted::new(&["-o", "loop", disk.to_str().unwrap()], &home.path().join("at"));
        Disk { mounted, _home: home }
    }

    fn ext4() -> Disk {
        Disk::new(&["mkfs.ext4", "-q", "-F", "-m", "0"])
    }

    fn at(&self) -> std::path::PathBuf {
        self.mounted.path().to_owned()
    }

    /// A file of this size of which `written_bytes` were written.
    fn begin(&self, archived: &Archived, written_bytes: usize) -> RestoreFile {
        let mut worker = destination(&self.at(), exact(ResolveMethod::Auto)).worker();
        let Created::File(mut file) = worker.create_file(&archived.member).unwrap() else {
            panic!("nothing is in its way")
        };
        file.write_at(0, &vec![7; written_bytes]).unwrap();
        file
    }

    fn used_bytes(&self) -> u64 {
        used_bytes(&self.at())
    }

    /// Soon: a child that another test starts holds the files of this one until it runs its
    /// program, and their space with them.
    fn assert_used_below(&self, limit_bytes: u64) {
        let begun = Instant::now();
        while self.used_bytes() >= limit_bytes && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let used_bytes = self.used_bytes();
        assert!(used_bytes < limit_bytes, "{used_bytes} of {limit_bytes}");
    }
}

fn used_bytes(at: &Path) -> u64 {
    let status = rustix::fs::statvfs(at).unwrap();
    (status.f_blocks - status.f_bfree) * status.f_frsize
}

fn of_size(size_bytes: u64) -> Archived {
    let mut archived = file("file", b"");
    archived.member.size_bytes = size_bytes;
    archived
}

#[test]
fn space_is_reserved_before_the_content_is_written() {
    testkit::require!(Root, LoopDevices, Ext4);
    let mounted = Disk::ext4();
    let before = mounted.used_bytes();
    let file = mounted.begin(&of_size(SIZE_BYTES), 4096);
    let status = fstat(file.as_fd()).unwrap();
    assert!(status.st_blocks as u64 * 512 >= SIZE_BYTES, "{status:?}");
    assert_eq!(status.st_size, 4096, "an unfinished file must not look whole");
    drop(file);
    mounted.assert_used_below(before + (1 << 20));
}

#[test]
fn an_incomplete_file_gives_back_what_it_does_not_need() {
    testkit::require!(Root, LoopDevices, Ext4);
    let mounted = Disk::ext4();
    let before = mounted.used_bytes();
    mounted.begin(&of_size(SIZE_BYTES), 4096).keep_as(b"file.incomplete").unwrap();
    assert_eq!(fs::metadata(mounted.at().join("file.incomplete")).unwrap().len(), 4096);
    mounted.assert_used_below(before + (1 << 20));
}

/// Content that was lost leaves a hole, also where it is larger than the disk.
#[test]
fn what_is_skipped_is_not_reserved() {
    testkit::require!(Root, LoopDevices, Ext4);
    let mounted = Disk::ext4();
    let mut file = mounted.begin(&of_size(1 << 33), 4096);
    file.write_at((1 << 33) - SIZE_BYTES, b"the end begins here").unwrap();
    file.write_at((1 << 33) - 4096, &[7; 4096]).unwrap();
    let status = fstat(file.as_fd()).unwrap();
    assert!(status.st_blocks as u64 * 512 >= SIZE_BYTES + (60 << 20), "{status:?}");
    file.keep_as(b"file.incomplete").unwrap();
    mounted.assert_used_below(100 << 20);
}

/// A damaged header may claim any size: what there is of the content has to come back.
#[test]
fn a_size_that_no_disk_has_is_no_error() {
    testkit::require!(Root, LoopDevices, Ext4);
    let mounted = Disk::ext4();
    let file = mounted.begin(&of_size(1 << 50), 1 << 20);
    file.keep_as(b"file.incomplete").unwrap();
    mounted.assert_used_below(20 << 20);
}

#[test]
fn a_full_disk_is_reported_by_the_write() {
    testkit::require!(Root, LoopDevices, Ext4);
    let mounted = Disk::ext4();
    let mut file = mounted.begin(&of_size(4 * FREE_BYTES), 4096);
    let piece = vec![7; 1 << 20];
    let mut offsets = (0..4 * FREE_BYTES).step_by(1 << 20);
    let error = offsets.find_map(|offset| file.write_at(offset, &piece).err()).unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn neither_holes_nor_small_files_nor_btrfs_get_reserved_space() {
    testkit::require!(Root, LoopDevices, Ext4, Btrfs);
    let mounted = Disk::ext4();
    let mut sparse = of_size(SIZE_BYTES);
    sparse.member.sparse = Some(vec![Extent { offset_bytes: 0, length_bytes: 4096 }]);
    let blocks = |file: RestoreFile| fstat(file.as_fd()).unwrap().st_blocks as u64 * 512;
    assert!(blocks(mounted.begin(&sparse, 4096)) < SIZE_BYTES / 2);
    assert!(blocks(mounted.begin(&of_size(200_000), 4096)) < 200_000);
    let mounted = Disk::new(&["mkfs.btrfs", "-q", "-M", "-f"]);
    assert!(blocks(mounted.begin(&of_size(SIZE_BYTES), 4096)) < SIZE_BYTES / 2);
}
