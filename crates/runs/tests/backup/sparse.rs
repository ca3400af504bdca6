//! Sparse files with more runs of data than a map takes.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::{Command, Stdio};

use archive::chunk::Compression;
use tempfile::tempdir;

use crate::harness::{options, run_clean};
use crate::index::check_archive;
use crate::sources::Mount;

const RUNS: u64 = 66_000;
const STEP: u64 = 8192;

#[test]
fn of_too_many_holes_the_smallest_are_filled() {
    testkit::require!(Mounts, GnuTar);
    let folder = tempdir().unwrap();
    let memory = folder.path().join("memory");
    fs::create_dir(&memory).unwrap();
    // Reads of single pages from a disk that is busy take minutes.
    let mount = Mount::tmpfs(&memory, "size=1g");
    let path = memory.join("torn");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    // Holes of one page, and a few of two, which must stay.
    let mut at = 0;
    for run in 0..RUNS {
        file.write_all_at(&[run as u8 | 1; 4096], at).unwrap();
        at += if run % 100 == 0 { STEP + 4096 } else { STEP };
    }
    file.set_len(at).unwrap();
    let data_bytes = RUNS * 4096;
    assert_eq!(file.metadata().unwrap().blocks() * 512, data_bytes, "tmpfs knows holes");
    let target = memory.join("archive");
    let finished = run_clean(&options(&[&path], &target));
    let filled = RUNS - tree::EXTENTS_MAX as u64;
    let notes = finished.notes();
    let [(object, text)] = &notes[..] else { panic!("one note: {notes:?}") };
    assert!(object.ends_with("torn"), "{object}");
    let expected = format!(
        "has more than 65536 runs of data: its {filled} smallest holes, {} bytes, are archived as \
         zeros",
        filled * 4096
    );
    assert_eq!(*text, expected);
    let archive_bytes = fs::metadata(&target).unwrap().len();
    let most_bytes = data_bytes + filled * 4096 + (4 << 20);
    assert!(archive_bytes < most_bytes, "{archive_bytes} bytes for {data_bytes} of data");
    assert_gnu_tar_gives(&target, &file, at);
    check_archive(&finished, Compression::None);
    drop((finished, file));
    drop(mount);
}

/// Compares what GNU tar extracts, holes written out, with the file.
fn assert_gnu_tar_gives(archive: &std::path::Path, file: &File, size: u64) {
    let mut tar = Command::new("tar")
        .arg("-xOf")
        .arg(archive)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs GNU tar");
    let mut output = tar.stdout.take().unwrap();
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for offset in (0..size).step_by(1 << 20) {
        let bytes = (size - offset).min(1 << 20) as usize;
        output.read_exact(&mut left[..bytes]).unwrap();
        file.read_exact_at(&mut right[..bytes], offset).unwrap();
        assert!(left[..bytes] == right[..bytes], "at {offset}");
    }
    assert_eq!(output.read(&mut left).unwrap(), 0, "nothing follows");
    assert!(tar.wait().unwrap().success());
}
