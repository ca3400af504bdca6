//! Sets on tape: what lies on the cartridges of a drive in this process, read by the words of the
//! format and by GNU tar.

mod media;

use std::path::Path;

use archive::chunk::Compression;
use archive::label::LabelKind;
use backup::backup::{BackupError, BackupOptions, backup_to_tape};
use backup::report::RunReport;
use backup::tape::{
    BlockLayout, ChangeError, TapeOptions, VolumeChanger, VolumePurpose, VolumeRequest,
};
use device::target::Existing;
use flow::cancel::Cancel;
use proptest::prelude::*;
use sim::tape::{Cartridge, CartridgeSettings, Library, VirtualDrive};
use tempfile::{TempDir, tempdir};

use crate::harness::{Recorder, Watchdog, options};
use crate::snapshot::{Kind, Snapshot, assert_same, snapshot};
use crate::trees::{noise, text, write_sparse};
use media::{Set, check_set, files, parts, shell};

/// Somebody who puts one cartridge after the other into the drive.
struct Operator {
    library: Library,
    requests: Vec<VolumeRequest>,
}

impl VolumeChanger for Operator {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        self.requests.push(request.clone());
        match self.library.load_next() {
            Some(_) => Ok(()),
            None => Err(ChangeError::Declined { text: "no cartridge is left".into() }),
        }
    }
}

/// A drive with a rack of blank cartridges, the first of which is loaded.
fn library(capacities: &[u64], early_warning_bytes: u64) -> Library {
    let cartridges = capacities.iter().map(|&capacity_bytes| {
        Cartridge::blank(CartridgeSettings {
            capacity_bytes,
            early_warning_bytes,
            ..CartridgeSettings::default()
        })
    });
    let library = Library::new(VirtualDrive::new("/dev/nst0", Default::default()), cartridges);
    assert!(library.load(0));
    library
}

struct Written {
    report: RunReport,
    requests: Vec<VolumeRequest>,
}

fn write(
    options: &BackupOptions,
    tape: &TapeOptions,
    library: &Library,
) -> (Result<RunReport, BackupError>, Vec<VolumeRequest>) {
    let _watchdog = Watchdog::new(format!("backup to tape with {options:?} {tape:?}"));
    let mut operator = Operator { library: library.clone(), requests: Vec::new() };
    let recorder = Recorder::default();
    let (drive, cancel) = (library.drive(), Cancel::new());
    let result = backup_to_tape(options, tape, drive, &mut operator, &recorder, &cancel);
    (result, operator.requests)
}

fn write_well(options: &BackupOptions, tape: &TapeOptions, library: &Library) -> Written {
    let (result, requests) = write(options, tape, library);
    Written { report: result.unwrap_or_else(|error| panic!("{error:?}: {requests:?}")), requests }
}

fn set_id(report: &RunReport) -> [u8; 16] {
    let digits = &report.tape.as_ref().unwrap().set;
    u128::from_str_radix(digits, 16).unwrap().to_be_bytes()
}

/// A tree of some files, small and not so small.
fn tree(seed: u64, files: usize, bytes_max: usize) -> TempDir {
    let tree = tempdir().unwrap();
    for number in 0..files {
        let directory = tree.path().join(format!("directory-{}", number % 3));
        std::fs::create_dir_all(&directory).unwrap();
        let seed = seed + number as u64;
        let bytes = blake3::hash(&seed.to_le_bytes()).as_bytes()[0] as usize * bytes_max / 255;
        let content = if number % 2 == 0 { noise(seed, bytes) } else { text(seed, bytes) };
        std::fs::write(directory.join(format!("file-{number}")), content).unwrap();
    }
    tree
}

fn tape_options(tree: &Path, block_bytes: usize, compression: Compression) -> BackupOptions {
    BackupOptions {
        block_bytes,
        compression,
        ring_bytes: 16 << 20,
        ..options(&[tree], Path::new("/dev/nst0"))
    }
}

/// The whole archive stream gives the tree back.
fn assert_restores(set: &Set, tree: &Path) {
    let out = tempdir().unwrap();
    std::fs::write(out.path().join("archive"), &set.archive).unwrap();
    let into = out.path().join("into");
    std::fs::create_dir(&into).unwrap();
    shell("tar --ignore-zeros --xattrs -xpf ../archive", &into);
    let name = tree.strip_prefix("/").unwrap();
    assert_same(&snapshot(tree), &snapshot(&into.join(name)), "tar");
}

/// GNU tar reads each segment of a plain set, over as many volumes as it lies on: all of them
/// together give the tree back.
fn assert_tar_restores(set: &Set, tree: &Path) {
    let out = tempdir().unwrap();
    let into = out.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let data: Vec<_> =
        set.parts.iter().filter(|found| found.label.kind == LabelKind::Data).collect();
    for segment in data.chunk_by(|a, b| a.label.segment == b.label.segment) {
        let mut arguments = String::new();
        for (number, part) in segment.iter().enumerate() {
            std::fs::write(out.path().join(format!("volume-{number}")), &part.bytes).unwrap();
            arguments += &format!(" -f ../volume-{number}");
        }
        let units = segment[0].label.block_bytes / 512;
        let several = if segment.len() > 1 { "-M" } else { "" };
        shell(&format!("tar -b {units} {several} -t {arguments} > /dev/null"), &into);
        shell(&format!("tar -b {units} {several} --xattrs -xp {arguments}"), &into);
    }
    let name = tree.strip_prefix("/").unwrap();
    let (expected, actual) = (snapshot(tree), snapshot(&into.join(name)));
    assert_same(&without_folder_times(expected), &without_folder_times(actual), "tar");
}

/// A folder gets the time of the last file that is put into it, by another segment than its own.
fn without_folder_times(mut snapshot: Snapshot) -> Snapshot {
    for object in snapshot.values_mut().filter(|object| object.kind == Kind::Directory) {
        object.modified_ns = 0;
    }
    snapshot
}

#[test]
fn a_set_on_one_volume() {
    let tree = tree(1, 40, 30_000);
    for compression in
        [Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 3 }]
    {
        let library = library(&[64 << 20], 1 << 20);
        let options = BackupOptions {
            ring_bytes: 128 << 20,
            ..tape_options(tree.path(), 64 << 10, compression)
        };
        let written = write_well(&options, &TapeOptions::default(), &library);
        let set = check_set(library.cartridges(), set_id(&written.report), compression);
        assert_eq!(written.requests, []);
        assert_eq!(set.parts.len(), 2);
        assert_restores(&set, tree.path());
        let tape = written.report.tape.unwrap();
        let blocks: usize = files(&library.cartridges()[0]).iter().map(Vec::len).sum();
        assert_eq!((tape.segments, tape.filemarks, tape.volumes), (2, 2, 1));
        assert_eq!(tape.blocks, blocks as u64);
    }
}

#[test]
fn segments_are_archives_of_their_own() {
    let tree = tree(7, 200, 20_000);
    let library = library(&[64 << 20], 1 << 20);
    let options = tape_options(tree.path(), 4096, Compression::None);
    let tape = TapeOptions { segment_bytes: Some(200 << 10), ..TapeOptions::default() };
    let written = write_well(&options, &tape, &library);
    let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
    assert!(set.parts.len() > 5, "{}", set.parts.len());
    assert_tar_restores(&set, tree.path());
}

#[test]
fn a_set_goes_on_where_a_volume_is_full() {
    let tree = tree(3, 60, 60_000);
    for block_bytes in [512, 4096, 20 * 512, 64 << 10] {
        let library = library(&[600 << 10; 8], 100 << 10);
        let options = tape_options(tree.path(), block_bytes, Compression::None);
        let tape = TapeOptions { segment_bytes: Some(900 << 10), ..TapeOptions::default() };
        let written = write_well(&options, &tape, &library);
        assert!(written.requests.len() >= 2, "{:?}", written.requests);
        let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
        assert_restores(&set, tree.path());
        assert_tar_restores(&set, tree.path());
    }
}

#[test]
fn compressed_sets_go_on_with_the_chunk_that_was_cut() {
    let tree = tree(5, 60, 200_000);
    for block_bytes in [512, 10_240, 64 << 10] {
        let compression = Compression::Gzip { level: 1 };
        let library = library(&[2 << 20; 8], 100 << 10);
        let options = tape_options(tree.path(), block_bytes, compression);
        let tape = TapeOptions { segment_bytes: Some(3 << 20), ..TapeOptions::default() };
        let written = write_well(&options, &tape, &library);
        assert!(written.requests.len() >= 2, "{:?}", written.requests);
        let set = check_set(library.cartridges(), set_id(&written.report), compression);
        assert_restores(&set, tree.path());
        let repeated = set.parts.windows(2).any(|pair| {
            let end = pair[0].label.stream_bytes + pair[0].stream().len() as u64;
            pair[1].label.stream_bytes < end
        });
        assert!(repeated, "no volume ended inside a chunk");
    }
}
