//! Files that change or fail while they are read: the archive stays valid and has the data that
//! could be read, the warning says what happened, and every other file is complete.

use std::time::Duration;

use archive::chunk::Compression;
use flow::backend::Engine;
use fuser::FileType;
use runs::backup::BackupOptions;
use runs::sweep::ReadOrder;
use tempfile::tempdir;

use crate::fuse::{Fault, content, mount};
use crate::harness::{Finished, options, run};
use crate::index::{Parts, check_archive};
use crate::tools::python_members;

/// Smaller than a reservation of the ring of these tests, and larger: read in one go by a reader,
/// or streamed with several reads in flight.
const SMALL: u64 = 100_000;
const LARGE: u64 = 9_000_001;

/// The archived state of each file.
fn contents(finished: &Finished, parts: &Parts) -> Vec<(String, Vec<u8>)> {
    let members = python_members(&finished.archive).into_iter().filter(|it| it.type_flag == b'0');
    members
        .map(|member| {
            let path = String::from_utf8(member.path).unwrap();
            let name = path.rsplit('/').next().unwrap().to_owned();
            let bytes = &parts.archive[member.content_offset as usize..][..member.size as usize];
            (name, bytes.to_vec())
        })
        .collect()
}

/// Backs up one misbehaving file between two good ones, with both back ends; `expected` is its
/// archived content, `None` if it must not be a regular file there.
fn check(size: u64, fault: Fault, expected: Option<Vec<u8>>, warnings: &[&str]) {
    testkit::require!(Fuse);
    for engine in [Engine::Auto, Engine::Threads] {
        let files = [
            ("a-good", SMALL, Fault::None),
            ("m", size, fault.clone()),
            ("z-good", LARGE, Fault::None),
        ];
        let mounted = mount(&files);
        let folder = tempdir().unwrap();
        let wanted =
            BackupOptions { engine, ..options(&[mounted.path()], &folder.path().join("archive")) };
        let finished = run(&wanted);
        let parts = check_archive(&finished, Compression::None);
        let mut good = vec![("a-good".to_owned(), content(SMALL))];
        good.extend(expected.clone().map(|bytes| ("m".to_owned(), bytes)));
        good.push(("z-good".to_owned(), content(LARGE)));
        let actual = contents(&finished, &parts);
        let names =
            |all: &[(String, Vec<u8>)]| all.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(&actual), names(&good));
        for ((name, actual), (_, good)) in actual.iter().zip(&good) {
            let first = actual.iter().zip(good).position(|(actual, good)| actual != good);
            assert_eq!(first, None, "first wrong byte of {name} with {fault:?} by {engine:?}");
            assert_eq!(actual.len(), good.len(), "length of {name}");
        }
        let told = finished.warnings();
        assert!(told.iter().all(|(object, _)| object.ends_with("/m")), "{told:?}");
        let texts: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, warnings, "{fault:?} by {engine:?}");
    }
}

/// The first `good` bytes of a file, then zeros up to `size`.
fn cut(good: u64, size: u64) -> Vec<u8> {
    let mut bytes = content(good);
    bytes.resize(size as usize, 0);
    bytes
}

#[test]
fn steady_files_come_without_a_warning() {
    for size in [0, 1, SMALL, LARGE] {
        check(size, Fault::None, Some(content(size)), &[]);
    }
}

#[test]
fn reads_that_give_less_than_asked_for_are_continued() {
    for size in [SMALL, LARGE] {
        check(size, Fault::ShortReads(77_777), Some(content(size)), &[]);
    }
}

#[test]
fn a_slow_file_holds_nobody_up_for_ever() {
    check(SMALL, Fault::Slow(Duration::from_millis(20)), Some(content(SMALL)), &[]);
}

#[test]
fn a_small_file_shrinks() {
    let warnings =
        ["ended at byte 0, the rest is zeros", "shrank from 100000 to 0 bytes, the rest is zeros"];
    check(SMALL, Fault::SizeAfterRead(0), Some(cut(0, SMALL)), &warnings);
    let warnings = [
        "ended at byte 70001, the rest is zeros",
        "shrank from 100000 to 70001 bytes, the rest is zeros",
    ];
    check(SMALL, Fault::SizeAfterRead(70_001), Some(cut(70_001, SMALL)), &warnings);
}

#[test]
fn a_large_file_shrinks() {
    let warnings = [
        "ended at byte 3000001, the rest is zeros",
        "shrank from 9000001 to 3000001 bytes, the rest is zeros",
    ];
    check(LARGE, Fault::SizeAfterRead(3_000_001), Some(cut(3_000_001, LARGE)), &warnings);
}

#[test]
fn a_file_grows() {
    for (size, text) in [
        (SMALL, "grew from 100000 to 20000000 bytes, archived up to 100000"),
        (LARGE, "grew from 9000001 to 20000000 bytes, archived up to 9000001"),
        (0, "nothing of an empty file is read"),
    ] {
        let warnings: &[&str] = if size > 0 { &[text] } else { &[] };
        check(size, Fault::SizeAfterRead(20_000_000), Some(content(size)), warnings);
    }
}

#[test]
fn a_file_is_written_to_without_changing_its_size() {
    for size in [SMALL, LARGE] {
        check(size, Fault::TouchedByRead, Some(content(size)), &["changed while it was read"]);
    }
}

#[test]
fn a_small_file_fails_to_read() {
    for from in [0, 1, 65_536, SMALL - 1] {
        let text = format!(
            "read error at byte {from}, the rest is zeros: Input/output error (os error 5)"
        );
        let fault = Fault::ReadFails { from, to: SMALL };
        check(SMALL, fault, Some(cut(from, SMALL)), &[&text]);
    }
}

#[test]
fn a_large_file_fails_to_read_at_its_end() {
    let from = 5_000_192;
    let text = format!(
        "read error at byte {from}, {} bytes are zeros: Input/output error (os error 5)",
        LARGE - from
    );
    check(LARGE, Fault::ReadFails { from, to: LARGE }, Some(cut(from, LARGE)), &[&text]);
}

#[test]
fn of_a_large_file_only_the_bad_region_is_lost() {
    // Whole pages, as disks lose them.
    let (from, to) = (1221 * 4096, 1223 * 4096);
    let mut expected = content(LARGE);
    expected[from as usize..to as usize].fill(0);
    let text =
        format!("read error at byte {from}, 8192 bytes are zeros: Input/output error (os error 5)");
    check(LARGE, Fault::ReadFails { from, to }, Some(expected), &[&text]);
}

#[test]
fn a_file_vanishes() {
    check(SMALL, Fault::Vanished, None, &["vanished before it was read"]);
}

#[test]
fn a_file_cannot_be_opened() {
    let text = "cannot open: Input/output error (os error 5)";
    check(SMALL, Fault::OpenFails(libc::EIO), None, &[text]);
    let text = "cannot open: Permission denied (os error 13)";
    check(SMALL, Fault::OpenFails(libc::EACCES), None, &[text]);
}

#[test]
fn a_file_turns_into_something_else() {
    let text = "was a file when it was listed, archived as it is now";
    check(0, Fault::TurnedInto(FileType::Symlink), None, &[text]);
    check(0, Fault::TurnedInto(FileType::NamedPipe), None, &[text]);
    let text = "was a file when it was listed and is a directory now, archived without its \
                content";
    check(0, Fault::TurnedInto(FileType::Directory), None, &[text]);
    // The new object cannot be archived, and is reported like any other of its kind.
    check(0, Fault::TurnedInto(FileType::Socket), None, &[]);
}

#[test]
fn a_folder_turns_into_a_file() {
    let texts = [
        "cannot open directory: Not a directory (os error 20)",
        "was a directory when it was listed, archived as it is now",
    ];
    check(SMALL, Fault::FolderTurnedFile, Some(content(SMALL)), &texts);
}

#[test]
fn a_folder_cannot_be_listed() {
    let text = "cannot read directory to its end: Input/output error (os error 5)";
    check(0, Fault::UnreadableFolder, None, &[text]);
}

#[test]
fn holes_of_any_grain_are_kept() {
    testkit::require!(Fuse);
    let runs = vec![(100, 1000), (2000, 1), (50_001, 3), (90_000, 10_000)];
    let mut stored = Vec::new();
    for (from, to) in [(0, 1536), (1536, 2048), (49_664, 50_176), (89_600, SMALL)] {
        stored.extend((from..to).map(crate::fuse::byte_at));
    }
    let mounted = mount(&[("holes", SMALL, Fault::Sparse(runs))]);
    let folder = tempdir().unwrap();
    let finished = run(&options(&[mounted.path()], &folder.path().join("archive")));
    assert_eq!(finished.warnings(), []);
    let parts = check_archive(&finished, Compression::None);
    let record = parts.files.last().unwrap();
    let content = &parts.archive[record.content_offset_bytes.bytes() as usize..][..stored.len()];
    assert!(content == stored);
}

#[test]
fn many_bad_files_among_many_good_ones() {
    testkit::require!(Fuse);
    let names: Vec<String> = (0..600).map(|number| format!("{number:04}")).collect();
    let faults = [
        Fault::None,
        Fault::SizeAfterRead(10),
        Fault::ReadFails { from: 5, to: 100 },
        Fault::Vanished,
        Fault::None,
        Fault::TouchedByRead,
        Fault::OpenFails(libc::EIO),
    ];
    let mut files = Vec::new();
    for (number, name) in names.iter().enumerate() {
        files.push((name.as_str(), 100 + number as u64, faults[number % faults.len()].clone()));
    }
    let mounted = mount(&files);
    let folder = tempdir().unwrap();
    // A look for heads would read some of them before they are opened for the archive, which then
    // has them as they are after their change.
    let read_order = ReadOrder::Name;
    let usual = options(&[mounted.path()], &folder.path().join("archive"));
    let finished = run(&BackupOptions { read_order, ..usual });
    check_archive(&finished, Compression::None);
    let count = |fault: &Fault| files.iter().filter(|file| file.2 == *fault).count();
    // A file that shrinks has two lines; the root is a member.
    let expected = count(&faults[1]) * 2
        + count(&faults[2])
        + count(&faults[3])
        + count(&faults[5])
        + count(&faults[6]);
    assert_eq!(finished.warnings().len(), expected);
    let missing = count(&faults[3]) + count(&faults[6]);
    assert_eq!(finished.report.members as usize, files.len() + 1 - missing);
}
