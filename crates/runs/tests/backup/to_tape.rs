//! Sets on tape: the content of cartridges of a drive in this process, read as the format describes
//! and by GNU tar.

mod calls;
mod changes;
mod early;
mod media;
mod mishaps;
mod names;
mod operator;
mod streams;
mod vague;

use std::path::Path;
use std::sync::{Arc, Mutex};

use archive::chunk::Compression;
use archive::label::LabelKind;
use device::tape::{BlockMode, DriveCompression, Filemark, TapeDrive};
use device::target::Existing;
use flow::cancel::Cancel;
use proptest::prelude::*;
use runs::backup::{BackupError, BackupOptions, backup};
use runs::destination::Destination;
use runs::report::BackupReport;
use sim::tape::{Cartridge, CartridgeSettings, Faults, Library, Object, Protection, VirtualDrive};
use tapeset::{
    BlockLayout, Refused, Safe, TapeDestination, TapeOptions, TapeSetError, VolumeChanger,
    VolumeRequest,
};
use tempfile::{TempDir, tempdir};

use crate::harness::{Recorder, Watchdog, options};
use crate::snapshot::{Kind, Snapshot, assert_same, snapshot};
use crate::trees::{text, write_sparse};
use media::{Set, check_set, files, parts, shell};
use operator::Operator;
use testkit::samples::noise;

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
    report: BackupReport,
    requests: Vec<VolumeRequest>,
}

fn write(
    options: &BackupOptions,
    tape: &TapeOptions,
    library: &Library,
) -> (Result<BackupReport, BackupError>, Vec<VolumeRequest>) {
    let _watchdog = Watchdog::new(format!("backup to tape with {options:?} {tape:?}"));
    let operator = Operator::of(library);
    let options = on_tape(options, tape, library.drive().clone(), operator.clone());
    let result = backup(&options, &Recorder::default(), &Cancel::new());
    let requests = operator.requests.lock().unwrap().clone();
    (result, requests)
}

/// A tape in a drive, and a changer for the others.
fn destination(
    drive: impl TapeDrive + 'static,
    options: TapeOptions,
    changer: impl VolumeChanger + 'static,
) -> Destination {
    let changer = Arc::new(Mutex::new(changer));
    let (drive, media, memory) = (Arc::new(drive), Default::default(), Default::default());
    Destination::Tape(TapeDestination { drive, options, changer, media, memory })
}

/// The same backup to a tape.
fn on_tape(
    options: &BackupOptions,
    tape: &TapeOptions,
    drive: impl TapeDrive + 'static,
    changer: impl VolumeChanger + 'static,
) -> BackupOptions {
    BackupOptions { target: destination(drive, *tape, changer), ..options.clone() }
}

fn write_well(options: &BackupOptions, tape: &TapeOptions, library: &Library) -> Written {
    let (result, requests) = write(options, tape, library);
    Written { report: result.unwrap_or_else(|error| panic!("{error:?}: {requests:?}")), requests }
}

fn set_id(report: &BackupReport) -> [u8; 16] {
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

/// GNU tar reads each segment of a plain set, over as many volumes as it has: all of them together
/// restore the tree.
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

fn set_ids(cartridges: &[Cartridge]) -> Vec<[u8; 16]> {
    let mut ids: Vec<[u8; 16]> = parts(cartridges).iter().map(|found| found.label.set).collect();
    ids.dedup();
    ids
}

/// Why a run failed, and what it reports as safe.
fn fails(
    options: &BackupOptions,
    tape: &TapeOptions,
    library: &Library,
) -> (BackupError, Option<Safe>) {
    match write(options, tape, library).0 {
        Ok(report) => panic!("it did not fail: {report:?}"),
        Err(BackupError::Unfinished(unfinished)) => (unfinished.error, Some(unfinished.safe)),
        Err(error) => (error, None),
    }
}

/// A set of a few segments on one volume, and its options.
fn small_set(tree: &Path) -> (BackupOptions, TapeOptions) {
    let options = tape_options(tree, 4096, Compression::None);
    (options, TapeOptions { segment_bytes: Some(100 << 10), ..TapeOptions::default() })
}

#[test]
fn the_next_set_begins_behind_the_last_one() {
    let tree = tree(11, 30, 20_000);
    let (options, tape) = small_set(tree.path());
    let library = library(&[64 << 20], 1 << 20);
    for _ in 0..3 {
        write_well(&options, &tape, &library);
    }
    // Another block size, fixed blocks and compression do not affect existing data.
    let other = BackupOptions {
        block_bytes: 20 * 512,
        compression: Compression::Gzip { level: 1 },
        ..options.clone()
    };
    write_well(&other, &TapeOptions { layout: BlockLayout::Fixed, ..tape }, &library);
    let cartridges = library.cartridges();
    let ids = set_ids(cartridges);
    assert_eq!(ids.len(), 4);
    let mut previous = None;
    for (number, id) in ids.into_iter().enumerate() {
        let compression = if number == 3 { other.compression } else { Compression::None };
        let set = check_set(cartridges, id, compression);
        assert_restores(&set, tree.path());
        for found in &set.parts {
            assert_eq!(found.label.previous, previous);
            assert_eq!(found.label.medium, set.parts[0].label.medium);
        }
        previous = set.parts.last().map(|found| found.file);
    }
}

#[test]
fn what_others_wrote_is_written_over_only_when_asked() {
    let tree = tree(12, 5, 9000);
    let (options, tape) = small_set(tree.path());
    let library = library(&[64 << 20], 1 << 20);
    let foreign = |blocks: &[&[u8]]| {
        let mut tape = library.drive().open(device::tape::Access::Write).unwrap();
        tape.set_block_mode(BlockMode::Variable).unwrap();
        tape.rewind().unwrap();
        for block in blocks {
            if block.is_empty() {
                tape.write_filemark(Filemark::Synchronising).unwrap()
            } else {
                assert_eq!(tape.write(block).unwrap(), device::tape::TapeWrite::Whole)
            }
        }
    };
    let large = vec![7; 3 << 20];
    for blocks in [&[&[1u8; 10_240][..]][..], &[&[0; 512]], &[&large], &[&[], b"x"]] {
        foreign(blocks);
        let before = library.cartridges()[0].objects().unwrap();
        let (error, safe) = fails(&options, &tape, &library);
        let refused = |error| matches!(error, BackupError::Tape(TapeSetError::Refused { .. }));
        assert!(refused(error) && safe.is_none());
        assert_eq!(library.cartridges()[0].objects().unwrap(), before, "nothing was written");
        let over = BackupOptions { existing: Existing::Replace, ..options.clone() };
        let written = write_well(&over, &tape, &library);
        let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
        assert_eq!((set.parts[0].file, set.parts[0].label.previous), (0, None));
    }
}

#[test]
fn media_that_cannot_be_written_are_refused() {
    let tree = tree(13, 5, 9000);
    let (options, tape) = small_set(tree.path());
    let library = library(&[64 << 20], 1 << 20);
    let large = BackupOptions { block_bytes: 16 << 20, ring_bytes: 128 << 20, ..options.clone() };
    let (error, safe) = fails(&large, &tape, &library);
    let text = format!("{:?}", error);
    assert!(text.contains("BlockSize") && text.contains("8388608"), "{text}");
    assert!(safe.is_none() && library.cartridges()[0].is_empty());
    library.cartridges()[0].set_protection(Protection::Protected);
    library.load(0);
    let (error, _) = fails(&options, &tape, &library);
    let refused =
        TapeSetError::Refused { device: "/dev/nst0".into(), refused: Refused::WriteProtected };
    assert_eq!(error.to_string(), refused.to_string());
    library.drive().eject();
    let (error, _) = fails(&options, &tape, &Library::new(library.drive().clone(), []));
    assert!(error.to_string().contains("no medium"), "{error}");
}

/// Whatever object is the last that a killed run left, the finished segments are whole, and the
/// next set is complete and names the one before.
#[test]
fn a_run_that_dies_leaves_what_it_finished() {
    let tree = tree(14, 12, 20_000);
    let (options, tape) = small_set(tree.path());
    let whole = library(&[64 << 20], 1 << 20);
    write_well(&options, &tape, &whole);
    let objects = whole.cartridges()[0].len();
    assert!((20..200).contains(&objects), "{objects}");
    for kept in 0..objects {
        let cartridge = whole.cartridges()[0].duplicate().unwrap();
        cartridge.cut(kept).unwrap();
        let before = cartridge.objects().unwrap();
        let library = Library::new(whole.drive().clone(), [cartridge]);
        library.load(0);
        let written = write_well(&options, &tape, &library);
        let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
        assert_restores(&set, tree.path());
        let after = library.cartridges()[0].objects().unwrap();
        assert_eq!(after[..before.len()], before[..], "cut at {kept}");
        let closed = before.last().is_none_or(|last| *last == Object::Filemark);
        assert_eq!(after[before.len()] == Object::Filemark, !closed, "cut at {kept}");
        let first = set.parts[0].clone();
        let last = parts(library.cartridges()).into_iter().rfind(|found| found.file < first.file);
        assert_eq!(first.label.previous, last.map(|found| found.file), "cut at {kept}");
    }
}

/// A medium that is full at every place in turn: in data, in labels, at ends of segments, in the
/// index.
#[test]
fn a_volume_may_end_anywhere() {
    let tree = tree(15, 9, 6000);
    for (block_bytes, compression) in [
        (1024, Compression::None),
        (512, Compression::None),
        (4096, Compression::Gzip { level: 1 }),
    ] {
        let options = tape_options(tree.path(), block_bytes, compression);
        let tape = TapeOptions { segment_bytes: Some(12 << 10), ..TapeOptions::default() };
        let whole = library(&[64 << 20], 1 << 20);
        write_well(&options, &tape, &whole);
        let bytes = whole.cartridges()[0].used_bytes();
        let early = 64 << 10;
        for used in (0..bytes).step_by(block_bytes.max(1024)) {
            let library = library(&[used + early, 64 << 20, 64 << 20], early);
            let (result, requests) = write(&options, &tape, &library);
            let report = match result {
                Ok(report) => report,
                // Room for less than a label and some data.
                Err(BackupError::Unfinished(unfinished)) => {
                    let error = unfinished.error.to_string();
                    assert!(error.contains("too small"), "{error}");
                    let least = match compression {
                        Compression::None => 16 << 10,
                        _ => bytes,
                    };
                    assert!(used < least, "{error}, after {used} bytes");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            assert_eq!(requests.len(), 1, "{used} of {bytes}");
            let set = check_set(library.cartridges(), set_id(&report), compression);
            assert_restores(&set, tree.path());
            if compression == Compression::None && used.is_multiple_of(16 << 10) {
                assert_tar_restores(&set, tree.path());
            }
        }
    }
}

#[test]
fn no_other_volume_says_what_is_safe() {
    let tree = tree(17, 60, 60_000);
    let library = library(&[1 << 20], 100 << 10);
    let options = tape_options(tree.path(), 4096, Compression::None);
    let tape = TapeOptions { segment_bytes: Some(200 << 10), ..TapeOptions::default() };
    let (error, safe) = fails(&options, &tape, &library);
    assert!(matches!(error, BackupError::Tape(TapeSetError::Change { volume: 2, .. })), "{error}");
    let safe = safe.unwrap();
    let found = parts(library.cartridges());
    let last = found.last().unwrap().label.segment;
    assert!(last > 1 && safe.segments == last - 1, "{safe:?}, {last}");
    // The next run finds the place behind it, where only a label fits.
    let (error, safe) = fails(&options, &tape, &library);
    assert!(matches!(error, BackupError::Tape(TapeSetError::Change { volume: 2, .. })), "{error}");
    assert_eq!(safe.unwrap().segments, 0);
    let cartridges = [library.cartridges()[0].clone(), Cartridge::of_capacity(64 << 20)];
    let library = Library::new(library.drive().clone(), cartridges);
    library.load(0);
    let written = write_well(&options, &tape, &library);
    let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
    assert_restores(&set, tree.path());
}

/// A drive error in the second set: it ends the run, nothing of the set is reported as safe, and
/// the first set is unchanged; a third set finds its place.
#[test]
fn errors_of_the_drive_end_the_run() {
    let tree = tree(18, 30, 30_000);
    let (options, tape) = small_set(tree.path());
    type FaultsAt = fn(u64) -> Faults;
    let cases: [(&str, FaultsAt); 3] = [
        ("written", |at| Faults { unwritable: [at].into(), ..Faults::default() }),
        ("lost", |at| Faults { lost_from: Some(at), ..Faults::default() }),
        ("reset", |at| Faults { reset_before: Some(at), ..Faults::default() }),
    ];
    for (what, faults) in cases {
        let library = library(&[64 << 20], 1 << 20);
        let written = write_well(&options, &tape, &library);
        let objects = library.cartridges()[0].len();
        library.cartridges()[0].set_faults(faults(objects * 3 / 2));
        let (error, safe) = fails(&options, &tape, &library);
        assert!(matches!(error, BackupError::Tape(TapeSetError::Tape(_))), "{what}: {error:?}");
        assert_eq!(safe.unwrap().segments, 0, "{what}");
        library.cartridges()[0].set_faults(Faults::default());
        let third = write_well(&options, &tape, &library);
        for report in [&written.report, &third.report] {
            let set = check_set(library.cartridges(), set_id(report), Compression::None);
            assert_restores(&set, tree.path());
        }
    }
}

#[test]
fn compression_by_the_drive_is_set_and_read_back() {
    use sim::tape::CompressionSwitch;
    let tree = tree(21, 5, 9000);
    let (options, tape) = small_set(tree.path());
    let check = |switch, wanted, expected: Option<&str>| {
        let library = library(&[64 << 20], 1 << 20);
        library.drive().change_settings(|settings| settings.compression_switch = switch);
        let tape = TapeOptions { drive_compression: Some(wanted), ..tape };
        match (write(&options, &tape, &library).0, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(text)) => {
                assert!(error.to_string().contains(text), "{error}");
                assert!(library.cartridges()[0].is_empty(), "nothing was written");
            }
            (result, _) => panic!("{switch:?} {wanted:?}: {result:?}"),
        }
    };
    check(CompressionSwitch::Obeyed, DriveCompression::On, None);
    check(CompressionSwitch::Obeyed, DriveCompression::Off, None);
    check(CompressionSwitch::Ignored, DriveCompression::Off, Some("still has it on"));
    check(CompressionSwitch::Absent, DriveCompression::On, Some("cannot compress"));
}

#[test]
fn a_cancel_ends_at_a_block_and_says_what_is_safe() {
    struct CancelsAt(u64, std::sync::atomic::AtomicU64, Cancel);
    impl flow::monitor::Monitor for CancelsAt {
        fn count(&self, counter: flow::monitor::Counter, amount: u64) {
            let order = std::sync::atomic::Ordering::Relaxed;
            if counter == flow::monitor::Counter::TargetBytes
                && self.1.fetch_add(amount, order) + amount > self.0
            {
                self.2.cancel();
            }
        }
        fn notice(&self, _: flow::monitor::Notice) {}
    }
    let tree = tree(19, 60, 30_000);
    let (options, tape) = small_set(tree.path());
    let library = library(&[64 << 20], 1 << 20);
    let cancel = Cancel::new();
    let monitor = CancelsAt(500 << 10, 0.into(), cancel.clone());
    let told = on_tape(&options, &tape, library.drive().clone(), Operator::of(&library));
    let result = backup(&told, &monitor, &cancel);
    let Err(BackupError::Unfinished(unfinished)) = result else { panic!("{result:?}") };
    assert!(matches!(unfinished.error, BackupError::Stopped(flow::cancel::Stopped::Cancelled)));
    let found = parts(library.cartridges());
    assert_eq!(unfinished.safe.segments, found.last().unwrap().label.segment - 1);
    assert!(unfinished.safe.segments >= 2);
    write_well(&options, &tape, &library);
    assert_eq!(set_ids(library.cartridges()).len(), 2);
}

#[test]
fn sparse_files_and_links_go_over_volumes() {
    let tree = tree(20, 10, 10_000);
    let runs = [(0, 40_000), (1 << 20, 70_000), (3 << 20, 512)];
    write_sparse(&tree.path().join("sparse"), 5 << 20, &runs);
    std::fs::hard_link(tree.path().join("directory-0/file-0"), tree.path().join("link")).unwrap();
    std::fs::write(tree.path().join("n".repeat(200)), noise(1, 100_000)).unwrap();
    let early = 64 << 10;
    for used in (40u64 << 10..300 << 10).step_by(20 << 10) {
        let library = library(&[used + early, 64 << 20], early);
        let options = tape_options(tree.path(), 4096, Compression::None);
        let written = write_well(&options, &TapeOptions::default(), &library);
        let set = check_set(library.cartridges(), set_id(&written.report), Compression::None);
        assert_restores(&set, tree.path());
        assert_tar_restores(&set, tree.path());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_tree_on_any_volumes(
        seed in any::<u32>(),
        files in 0usize..40,
        bytes_max in prop_oneof![Just(300usize), Just(5000), Just(200_000)],
        segment_bytes in prop_oneof![Just(1u64), 5000u64..500_000],
        volume_bytes in 1_500_000u64..4_000_000,
        block_units in prop_oneof![Just(1usize), Just(8), 1usize..300],
        compression in prop_oneof![
            Just(Compression::None),
            Just(Compression::Gzip { level: 1 }),
        ],
        layout in prop_oneof![Just(BlockLayout::Variable), Just(BlockLayout::Fixed)],
    ) {
        let tree = tree(seed.into(), files, bytes_max);
        let library = library(&[volume_bytes; 60], 200_000);
        let options = tape_options(tree.path(), block_units * 512, compression);
        let tape = TapeOptions {
            segment_bytes: Some(segment_bytes),
            layout,
            ..TapeOptions::default()
        };
        let written = write_well(&options, &tape, &library);
        let set = check_set(library.cartridges(), set_id(&written.report), compression);
        assert_restores(&set, tree.path());
        if compression == Compression::None {
            assert_tar_restores(&set, tree.path());
        }
    }
}
