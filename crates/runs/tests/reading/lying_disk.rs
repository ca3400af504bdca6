//! A disk that lies: it reports data as written, but some extent of the archive is zeros, or older
//! data, or data from elsewhere, or missing. Whatever it is, a verification reports damage, and a
//! restore without warnings restores exactly the same tree.
//!
//! Small archives are damaged at every unit, large ones at random. The short form takes a part of
//! the cases; `TAKEUP_LONG=1` all of them.

mod cases;
mod sets;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use runs::backup::{BackupOptions, backup};
use runs::restore::{RestoreOptions, Synchronise, restore};
use runs::verify::{VerifyOptions, verify};

use crate::harness::Kept;
use cases::{Case, cases, random_cases};
use testkit::samples::noise;

/// An object of a tree: its kind, and everything that a restore restores.
type Object = (u32, u32, u32, u64, i64, i64, Vec<u8>);

/// Everything in a tree, by path.
pub fn fingerprint(root: &Path) -> BTreeMap<String, Object> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let status = fs::symlink_metadata(&path).unwrap();
            let content = if status.is_file() {
                fs::read(&path).unwrap()
            } else if status.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                Vec::new()
            };
            let links = if status.is_dir() { 0 } else { status.nlink() };
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let (mode, uid, gid) = (status.mode(), status.uid(), status.gid());
            let times = (status.mtime(), status.mtime_nsec());
            found.insert(name, (mode, uid, gid, links, times.0, times.1, content));
            if status.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

/// A tree in which each generation has the same names and lengths, and other contents.
pub fn tree(root: &Path, generation: u64, large_bytes: usize) {
    let folder = root.join("folder");
    fs::create_dir_all(folder.join("inner")).unwrap();
    for number in 0..4u64 {
        let length = number as usize * 700 + 10;
        let name = folder.join(format!("file{number}"));
        fs::write(name, noise(generation * 100 + number, length)).unwrap();
    }
    fs::write(folder.join("inner/large"), noise(generation * 100 + 9, large_bytes)).unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    fs::hard_link(folder.join("file1"), root.join("second-name")).unwrap();
    symlink("folder/file2", root.join("link")).unwrap();
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o640)).unwrap();
    crate::harness::run("bash", &["-c", "find . -exec touch -hd '2024-05-06 07:08:09' {} +"], root);
}

/// Two generations of an archive, and the tree of the first.
struct Sample {
    archive: Vec<u8>,
    stale: Vec<u8>,
    expected: BTreeMap<String, Object>,
}

impl Sample {
    fn new(compression: &str, large_bytes: usize) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let mut archives = Vec::new();
        let mut expected = BTreeMap::new();
        for generation in [1, 2] {
            // One place for both, since its path is in the archive.
            let root = folder.path().join("t");
            tree(&root, generation, large_bytes);
            let options = BackupOptions {
                sources: vec![root.clone()],
                target: folder.path().join(format!("set{generation}")).into(),
                compression: compression.parse::<Compression>().unwrap(),
                ..Default::default()
            };
            backup(&options, &Kept::default(), &Cancel::new()).unwrap();
            archives.push(fs::read(options.target.name()).unwrap());
            if generation == 1 {
                expected = fingerprint(&root);
            }
            fs::remove_dir_all(&root).unwrap();
        }
        let [archive, stale] = archives.try_into().unwrap();
        Sample { archive, stale, expected }
    }
}

/// Where the archive is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    File,
    Pipe,
}

/// Runs `body` with the name of a source that gives these bytes.
fn with_source<R>(source: Source, folder: &Path, bytes: &[u8], body: impl FnOnce(&Path) -> R) -> R {
    match source {
        Source::File => {
            let path = folder.join("damaged");
            fs::write(&path, bytes).unwrap();
            body(&path)
        }
        Source::Pipe => std::thread::scope(|scope| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            scope.spawn(move || {
                // The reader may end early.
                let _ = writer.write_all(bytes);
            });
            let result = body(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd())));
            drop(reader);
            result
        }),
    }
}

/// What is wrong with the report of the damage, if anything.
fn trial(sample: &Sample, damaged: &[u8], source: Source, folder: &Path) -> Option<String> {
    let kept = Kept::default();
    let found = with_source(source, folder, damaged, |path| {
        let options =
            VerifyOptions { from: path.into(), ring_bytes: 8 << 20, ..Default::default() };
        verify(options, &kept, &Cancel::new())
    });
    if found.is_ok_and(|report| report.is_sound()) && kept.warnings().is_empty() {
        return Some("verify finds no fault".to_owned());
    }
    let into = folder.join("out");
    let kept = Kept::default();
    let done = with_source(source, folder, damaged, |path| {
        let options = RestoreOptions {
            from: path.into(),
            into: into.clone(),
            ring_bytes: 8 << 20,
            synchronise: Synchronise::No,
            ..Default::default()
        };
        restore(options, &kept, &Cancel::new())
    });
    let silent = done.is_ok() && kept.warnings().is_empty();
    let whole = silent && is_restored(&into, &sample.expected);
    let _ = fs::remove_dir_all(&into);
    (silent && !whole).then(|| "restore says that all is done, and it is not".to_owned())
}

/// Whether the tree is somewhere below the folder.
fn is_restored(into: &Path, expected: &BTreeMap<String, Object>) -> bool {
    let mut root = into.to_path_buf();
    while !root.join("folder").exists() {
        let Some(entry) = fs::read_dir(&root).ok().and_then(|mut all| all.next()) else {
            return false;
        };
        root = entry.unwrap().path();
    }
    fingerprint(&root) == *expected
}

/// Runs cases on two threads; returns their number, and the failures.
fn run(sample: &Sample, all: &[(Case, Source)]) -> (usize, Vec<String>) {
    let (next, wrong, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                while let Some((case, source)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let damaged = case.apply(&sample.archive, &sample.stale);
                    // A complete older archive, whatever follows it, is that archive.
                    if damaged == sample.archive || damaged.starts_with(&sample.stale) {
                        continue;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    if let Some(what) = trial(sample, &damaged, *source, folder.path()) {
                        wrong.lock().unwrap().push(format!("{case:?} from a {source:?}: {what}"));
                    }
                }
            });
        }
    });
    (done.into_inner(), wrong.into_inner().unwrap())
}

fn is_long() -> bool {
    std::env::var_os("TAKEUP_LONG").is_some()
}

/// Every `step`th of all cases, from files and pipes in turns; all of them from both where it is 1.
fn chosen(cases: Vec<Case>, step: usize) -> Vec<(Case, Source)> {
    let both = [Source::File, Source::Pipe];
    if step == 1 {
        return cases.into_iter().flat_map(|case| both.map(|source| (case, source))).collect();
    }
    let numbered = cases.into_iter().enumerate();
    numbered
        .filter(|(number, _)| number % step == 0)
        .map(|(number, case)| (case, both[number / step % 2]))
        .collect()
}

#[track_caller]
fn check(compression: &str, large_bytes: usize, all: impl FnOnce(usize) -> Vec<(Case, Source)>) {
    let sample = Sample::new(compression, large_bytes);
    let (done, wrong) = run(&sample, &all(sample.archive.len()));
    eprintln!("lying disk, {compression}: {done} cases, {} told wrongly", wrong.len());
    assert!(wrong.is_empty(), "{} of {done}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A number without a common factor with those that the list of cases repeats in.
const SHORT_STEP: usize = 7;

#[test]
fn every_unit_of_a_small_plain_archive() {
    check("none", 3000, |bytes| chosen(cases(bytes), if is_long() { 1 } else { SHORT_STEP }));
}

#[test]
fn every_unit_of_a_small_zstd_archive() {
    check("zstd", 3000, |bytes| chosen(cases(bytes), if is_long() { 1 } else { SHORT_STEP }));
}

#[test]
fn every_unit_of_a_small_gzip_archive() {
    check("gzip", 3000, |bytes| chosen(cases(bytes), if is_long() { 1 } else { SHORT_STEP }));
}

/// Several blocks, and several chunks of gzip.
#[test]
fn random_extents_of_large_archives() {
    for (seed, compression) in ["none", "zstd", "gzip"].into_iter().enumerate() {
        let count = if is_long() { 2000 } else { 24 };
        check(compression, 3_500_000, |bytes| {
            chosen(random_cases(bytes, seed as u64 + 1, 2 * count), 2)
        });
    }
}
