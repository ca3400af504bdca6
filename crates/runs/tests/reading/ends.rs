//! Where an archive ends, and what must follow: marks, missing indexes, zeros, pieces of an
//! overwritten index, lists against the archive.

use std::fs;
use std::path::Path;

use flow::cancel::Cancel;
use runs::backup::{BackupOptions, backup};
use runs::list::{Detail, HeaderCheck, ListError, ListOptions, ListWay, list};
use runs::read::{IndexNeed, ReadFailure};
use runs::restore::{RestoreError, RestoreOptions};
use runs::verify::{VerifyError, VerifyOptions, verify};

use crate::harness::{Harness, Kept, list_paths, list_with, shell, verify_archive, write};

/// An archive of a small tree, with its index.
fn archive(harness: &Harness, compression: &str) -> Vec<u8> {
    let root = harness.path("t");
    fs::create_dir_all(&root).unwrap();
    for number in 0..8u64 {
        let content = testkit::samples::noise(number + 1, 1000 * number as usize);
        fs::write(root.join(format!("file{number}")), content).unwrap();
    }
    let options = BackupOptions {
        sources: vec![root],
        target: harness.path("set").into(),
        compression: compression.parse().unwrap(),
        existing: device::target::Existing::Replace,
        ..Default::default()
    };
    backup(&options, &Kept::default(), &Cancel::new()).unwrap();
    fs::read(harness.path("set")).unwrap()
}

fn find(bytes: &[u8], pattern: &[u8]) -> usize {
    bytes.windows(pattern.len()).position(|window| window == pattern).unwrap()
}

/// Where the index of a plain archive begins.
fn index_start(archive: &[u8]) -> usize {
    find(archive, b"comment=takeup index 1") / 512 * 512 - 512
}

#[track_caller]
fn assert_lost_index(harness: &Harness, bytes: &[u8], text: &str) {
    let path = write(&harness.path("damaged"), bytes);
    let (report, kept) = verify_archive(&path, None);
    assert!(!report.is_sound());
    kept.expect_warning(text);
    let _ = fs::remove_dir_all(harness.path("out"));
    let (_, kept) = harness.restore(&path, "out");
    kept.expect_warning(text);
    let (paths, _, kept) = list_paths(&path);
    kept.expect_warning(text);
    assert!(paths.iter().all(|path| !path.contains("takeup-index")), "{paths:?}");
}

#[test]
fn an_archive_without_the_index_that_must_follow_is_damaged() {
    let harness = Harness::new();
    let archive = archive(&harness, "none");
    let index = index_start(&archive);
    const TEXT: &str = "the archive announces an index, but ends";
    assert_lost_index(&harness, &archive[..index], TEXT);
    // Cut at the end of a member, inside of one, and with a tail of zeros.
    let member = find(&archive, b"/t/file5") / 512 * 512;
    assert_lost_index(&harness, &archive[..member], TEXT);
    assert_lost_index(&harness, &archive[..member + 3072], TEXT);
    for from in [member, member + 3072, index, index + 4096] {
        let mut zeroed = archive.clone();
        zeroed[from..].fill(0);
        assert_lost_index(&harness, &zeroed, TEXT);
    }
    let compressed = self::archive(&harness, "zstd");
    let mut cut = compressed.clone();
    cut.truncate(compressed.len() - 300);
    assert_lost_index(&harness, &cut, "");
}

/// An archive that is cut within its first piece was called "not a tar archive".
#[test]
fn an_archive_cut_before_its_first_member_ends_early() {
    let harness = Harness::new();
    let zstd = archive(&harness, "zstd");
    let gzip = archive(&harness, "gzip");
    let plain = archive(&harness, "none");
    shell(
        "tar -cf foreign.tar t && zstd -q foreign.tar && gzip -k foreign.tar",
        harness.folder.path(),
    );
    let foreign = |name: &str| fs::read(harness.path(name)).unwrap();
    let (foreign_zstd, foreign_gzip) = (foreign("foreign.tar.zst"), foreign("foreign.tar.gz"));
    let check = |bytes: &[u8], what: &str| {
        let path = write(&harness.path("cut"), bytes);
        let expected = format!(
            "{} ends early, at byte {}: nothing of it can be read",
            path.display(),
            bytes.len()
        );
        let (kept, cancel) = (Kept::default(), Cancel::new());
        let options = VerifyOptions { from: path.clone().into(), ..Default::default() };
        let failure = verify(options, &kept, &cancel).unwrap_err();
        assert_eq!(failure.to_string(), expected, "{what}");
        let options = RestoreOptions { from: path.clone().into(), ..Default::default() };
        let failure = harness.try_restore(options, "out", &kept).unwrap_err();
        assert_eq!(failure.to_string(), expected, "{what}");
        let options = ListOptions { from: path.into(), ..Default::default() };
        // A failure has stopped the one before.
        let failure = list(options, &kept, &Cancel::new(), |_| {}).unwrap_err();
        assert_eq!(failure.to_string(), expected, "{what}");
    };
    for length in [5, 20, 200] {
        check(&zstd[..length], &format!("zstd {length}"));
        check(&foreign_zstd[..length], &format!("foreign zstd {length}"));
    }
    for length in [4, 20, 60] {
        check(&gzip[..length], &format!("gzip {length}"));
        check(&foreign_gzip[..length], &format!("foreign gzip {length}"));
    }
    for length in [300, 511, 512, 700] {
        check(&plain[..length], &format!("plain {length}"));
    }
    // What is no archive is not called one.
    let noise = write(&harness.path("noise"), &testkit::samples::noise(1, 300_000));
    shell("zstd -q noise && head -c 200000 noise.zst >cut.zst", harness.folder.path());
    let _ = noise;
    let options = VerifyOptions { from: harness.path("cut.zst").into(), ..Default::default() };
    let failure = verify(options, &Kept::default(), &Cancel::new()).unwrap_err();
    assert!(failure.to_string().ends_with("is not a tar archive"), "{failure}");
}

/// A damaged first frame was called "not a tar archive".
#[test]
fn an_archive_with_a_damaged_start_says_what_is_damaged() {
    let harness = Harness::new();
    archive(&harness, "none");
    shell("tar -cf foreign.tar t && zstd -q foreign.tar", harness.folder.path());
    let mut bytes = fs::read(harness.path("foreign.tar.zst")).unwrap();
    bytes[20..60].fill(0xff);
    let path = write(&harness.path("damaged"), &bytes);
    let options = VerifyOptions { from: path.clone().into(), ..Default::default() };
    let failure = verify(options, &Kept::default(), &Cancel::new()).unwrap_err();
    assert_eq!(failure.to_string(), format!("nothing of {} can be read", path.display()));
    let VerifyError::Read(failure) = failure else { panic!("{failure}") };
    let cause = std::error::Error::source(&failure).unwrap().to_string();
    assert!(cause.starts_with("damaged zstd data at byte 0 of the compressed archive"), "{cause}");
}

#[test]
fn zeros_are_no_archive() {
    let harness = Harness::new();
    for length in [512, 1024, 10_240, 10 << 20] {
        let path = write(&harness.path("zeros"), &vec![0; length]);
        let kept = Kept::default();
        let options = VerifyOptions { from: path.clone().into(), ..Default::default() };
        let expected = |failure: &ReadFailure| {
            matches!(failure, ReadFailure::OnlyZeros { .. } | ReadFailure::NotAnArchive { .. })
        };
        match verify(options, &kept, &Cancel::new()) {
            Err(VerifyError::Read(failure)) if expected(&failure) => {}
            other => panic!("{length}: {other:?}"),
        }
        let options = RestoreOptions { from: path.clone().into(), ..Default::default() };
        match harness.try_restore(options, "out", &kept) {
            Err(RestoreError::Read(failure)) if expected(&failure) => {}
            other => panic!("{length}: {other:?}"),
        }
        let options = ListOptions { from: path.into(), ..Default::default() };
        match list(options, &kept, &Cancel::new(), |_| {}) {
            Err(ListError::Read(failure)) if expected(&failure) => {}
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn more_zeros_than_tar_writes_are_told() {
    let harness = Harness::new();
    shell("mkdir t && head -c 30000 /dev/urandom > t/a && tar cf a.tar t", harness.folder.path());
    for padding in 0..21 {
        // However the last member ends, the zeros of tar itself are never too many.
        shell(
            &format!("head -c $((512 * {padding})) /dev/urandom > t/b && tar cf b.tar t"),
            harness.folder.path(),
        );
        let (report, kept) = verify_archive(&harness.path("b.tar"), None);
        assert!(report.is_sound());
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{padding}");
    }
    shell("truncate -s +12K a.tar", harness.folder.path());
    let (report, kept) = verify_archive(&harness.path("a.tar"), None);
    assert!(report.is_sound());
    kept.expect_warning("of zeros follow the member that ends");
    let (_, kept) = harness.restore(&harness.path("a.tar"), "out");
    kept.expect_warning("of zeros follow the member that ends");
    // An index proves that the data before it are complete.
    let mut ours = archive(&harness, "none");
    ours.resize(ours.len() + (1 << 20), 0);
    let (report, kept) = verify_archive(&write(&harness.path("longer"), &ours), None);
    assert!(report.is_sound() && kept.warnings().is_empty(), "{:?}", kept.warnings());
}

#[test]
fn an_index_can_be_asked_for_of_any_archive() {
    let harness = Harness::new();
    shell("mkdir t && echo a > t/a && tar cf a.tar t", harness.folder.path());
    let from = || harness.path("a.tar").into();
    let (index, kept) = (IndexNeed::Required, Kept::default());
    let options = VerifyOptions { from: from(), index, ..Default::default() };
    assert!(matches!(
        verify(options, &kept, &Cancel::new()),
        Err(VerifyError::Read(ReadFailure::NoIndex { .. }))
    ));
    let options = RestoreOptions { from: from(), index, ..Default::default() };
    assert!(matches!(
        harness.try_restore(options, "out", &kept),
        Err(RestoreError::Read(ReadFailure::NoIndex { .. }))
    ));
    let ours = archive(&harness, "gzip");
    let path = write(&harness.path("ours"), &ours);
    let options = VerifyOptions { from: path.into(), index, ..Default::default() };
    assert!(verify(options, &kept, &Cancel::new()).unwrap().is_sound());
}

#[test]
fn what_gnu_tar_appends_is_read_and_the_rest_of_the_index_is_no_member() {
    for length in [10, 3000, 9000, 20_000] {
        let harness = Harness::new();
        archive(&harness, "none");
        shell(
            &format!("head -c {length} /dev/urandom > more && tar rf set more"),
            harness.folder.path(),
        );
        let path = harness.path("set");
        let (paths, _, kept) = list_paths(&path);
        assert!(paths.contains(&"more".to_owned()));
        assert!(paths.iter().all(|path| !path.contains("takeup-index")), "{length}: {paths:?}");
        assert!(!kept.warnings().is_empty());
        let (report, _) = verify_archive(&path, None);
        assert!(!report.is_sound());
        let (_, kept) = harness.restore(&path, "out");
        assert!(harness.path("out/more").exists());
        assert!(!harness.path("out/takeup-index").exists(), "{length}");
        assert!(!kept.warnings().is_empty());
    }
}

fn names(path: &Path, check: HeaderCheck) -> (Vec<String>, ListWay, Kept) {
    let options =
        ListOptions { from: path.into(), detail: Detail::Index, check, ..Default::default() };
    let (paths, report, kept) = list_with(options);
    (paths, report.way, kept)
}

#[test]
fn a_list_from_the_index_is_held_against_the_archive() {
    let harness = Harness::new();
    let ours = archive(&harness, "none");
    let path = harness.path("set");
    let (_, way, kept) = names(&path, HeaderCheck::Sample);
    assert_eq!((way, kept.warnings().len()), (ListWay::Index { headers_checked: 9 }, 0));
    let (_, way, kept) = names(&path, HeaderCheck::All);
    assert_eq!((way, kept.warnings().len()), (ListWay::Headers, 0));
    // The data before the index are lost.
    let mut lost = ours.clone();
    let index = index_start(&ours);
    lost[1024..index].fill(0);
    let path = write(&harness.path("lost"), &lost);
    for check in [HeaderCheck::Sample, HeaderCheck::All] {
        let cancel = Cancel::new();
        let kept = Kept::default();
        let options = ListOptions {
            from: path.clone().into(),
            detail: Detail::Index,
            check,
            ..Default::default()
        };
        let result = list(options, &kept, &cancel, |_| {});
        assert!(result.is_err() || !kept.warnings().is_empty());
    }
    // The header of one member is replaced by another's.
    let mut other = ours.clone();
    let at = find(&ours, b"/t/file3") / 512 * 512;
    let name = find(&ours[at..], b"file3") + at;
    other[name + 4] = b'9';
    // The sum of the header stays right.
    let sum = at + 148;
    let digits = u32::from_str_radix(std::str::from_utf8(&ours[sum..sum + 6]).unwrap(), 8).unwrap();
    other[sum..sum + 6].copy_from_slice(format!("{:06o}", digits + 6).as_bytes());
    let path = write(&harness.path("other"), &other);
    let (paths, way, kept) = names(&path, HeaderCheck::Sample);
    kept.expect_warning("in its place");
    assert_eq!(way, ListWay::Headers);
    assert!(paths.iter().any(|path| path.ends_with("file9")));
    let (_, _, kept) = names(&path, HeaderCheck::All);
    kept.expect_warning("in its place");
}
