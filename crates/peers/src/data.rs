//! The trees to back up: planned from a seed, written in parallel, kept for the next run.
//!
//! Four recipes of the benchmark:
//!
//! - small files: sizes log-normal with mean 9 KB (9000 bytes) and sigma 1.2, at most 4 MiB, 250 a
//!   folder, two thirds prose and one third packed;
//! - one file: 4 MiB pieces, three of four packed and one prose, written into preallocated space so
//!   that parallel writers do not fragment it;
//! - mixed tree: by bytes 22 % logs (mean 1 MB), 20 % source code (12 kB), 16 % prose (60 kB), 24 %
//!   executables (400 kB), 18 % packed (1.5 MB), log-normal again. `zstd -3` leaves about 40 %;
//! - packed tree: log-normal with mean 250 kB and sigma 1, nothing that can be compressed.
//!
//! A stamp beside a tree holds its recipe; data with another stamp are made again. `content.rs`
//! makes the content of a file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use rustix::fs::FallocateFlags;
use serde::{Deserialize, Serialize};

use crate::content::{self, ContentKind, Vocabulary};
use crate::random::Generator;

/// Must change whenever the same recipe would give other bytes.
const RECIPE_VERSION: u32 = 2;
const SEED: u64 = 0x7461_6b65_7570;
const FILES_PER_FOLDER: u64 = 250;
const SMALL_MEAN_BYTES: f64 = 9000.0;
const SMALL_SIGMA: f64 = 1.2;
const SMALL_BYTES_MAX: u64 = 4 << 20;
const MIXED_BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: u64 = 4 << 20;
const PACKED_MEAN_BYTES: f64 = 250e3;
const PACKED_SIGMA: f64 = 1.0;

/// The recipe of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    SmallFiles(u64),
    /// One file of this many bytes.
    OneFile(u64),
    /// A tree of about this many bytes.
    MixedTree(u64),
    /// A tree of this many bytes that cannot be compressed.
    PackedTree(u64),
}

impl Recipe {
    /// An upper estimate of the disk space in bytes.
    pub fn disk_bytes(self) -> u64 {
        match self {
            // The rounding of a file to whole 4 KiB pages, its inode, and the name.
            Self::SmallFiles(files) => files * (9000 + 2048 + 512),
            Self::OneFile(bytes) => bytes + (bytes >> 6),
            Self::MixedTree(bytes) => bytes + bytes / 8,
            Self::PackedTree(bytes) => bytes + bytes / 32,
        }
    }
}

/// A tree that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// Its folder or file.
    pub path: PathBuf,
    /// Number of regular files.
    pub files: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    version: u32,
    seed: u64,
    recipe: Recipe,
    files: u64,
    bytes: u64,
}

struct PlannedFile {
    path: PathBuf,
    kind: ContentKind,
    bytes: u64,
}

/// Makes the tree `folder/name`, or uses the existing one if its stamp matches.
///
/// # Errors
/// When the disk is not a real one or too full, or a file cannot be written.
pub fn ensure(folder: &Path, name: &str, recipe: Recipe) -> anyhow::Result<DataSet> {
    let path = folder.join(name);
    let stamp_path = stamp_path(folder, name);
    if let Some(stamp) = read_stamp(&stamp_path)
        && (stamp.version, stamp.seed, stamp.recipe) == (RECIPE_VERSION, SEED, recipe)
        && path.exists()
    {
        return Ok(DataSet { path, files: stamp.files, bytes: stamp.bytes });
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    remove(folder, name)?;
    refuse_memory(folder)?;
    require_space(folder, recipe.disk_bytes())?;
    let (files, bytes) = match recipe {
        Recipe::OneFile(bytes) => write_one_file(&path, bytes)?,
        Recipe::SmallFiles(files) => write_tree(&path, &plan_small(files))?,
        Recipe::MixedTree(bytes) => write_tree(&path, &plan_mixed(bytes))?,
        Recipe::PackedTree(bytes) => write_tree(&path, &plan_packed(bytes))?,
    };
    rustix::fs::syncfs(File::open(folder)?).context("syncfs")?;
    let stamp = Stamp { version: RECIPE_VERSION, seed: SEED, recipe, files, bytes };
    fs::write(&stamp_path, serde_json::to_string(&stamp)?)
        .with_context(|| format!("write {}", stamp_path.display()))?;
    Ok(DataSet { path, files, bytes })
}

/// Removes a tree and its stamp; fine if there is none.
///
/// # Errors
/// When an existing object cannot be removed.
pub fn remove(folder: &Path, name: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    // The stamp goes first: half a tree must not look complete.
    for result in [fs::remove_file(stamp_path(folder, name)), remove_any(&path)] {
        match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("remove {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads everything under `path` into the page cache.
///
/// # Errors
/// When a file cannot be read.
pub fn warm(path: &Path) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for_each_file(path, &mut |file, _| files.push(file.to_path_buf()))?;
    in_parallel(&files, |file| {
        let mut buffer = vec![0; 1 << 20];
        let mut reader = File::open(file)?;
        while io::Read::read(&mut reader, &mut buffer)? > 0 {}
        Ok(())
    })
    .context("warm the page cache")
}

/// Counts regular files and sums their sizes under `path`.
///
/// # Errors
/// When a folder cannot be listed.
pub fn measure(path: &Path) -> anyhow::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for_each_file(path, &mut |_, size| {
        files += 1;
        bytes += size;
    })?;
    Ok((files, bytes))
}

/// Calls `visit` with each regular file under `path` and its size, in the folders' own order.
///
/// # Errors
/// When a folder cannot be listed.
pub fn for_each_file(path: &Path, visit: &mut dyn FnMut(&Path, u64)) -> anyhow::Result<()> {
    let metadata = path.symlink_metadata().with_context(|| format!("stat {}", path.display()))?;
    if metadata.is_file() {
        visit(path, metadata.len());
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
            for_each_file(&entry?.path(), visit)?;
        }
    }
    Ok(())
}

/// Fails unless `bytes` and a reserve of 1 GiB (or as much again, if that is less) are free.
///
/// # Errors
/// When less is free, or the file system does not report it.
pub fn require_space(folder: &Path, bytes: u64) -> anyhow::Result<()> {
    let status = rustix::fs::statvfs(folder).context("statvfs")?;
    let free_bytes = status.f_bavail * status.f_frsize;
    let needed_bytes = bytes + bytes.min(1 << 30);
    if free_bytes < needed_bytes {
        bail!(
            "{}: needs {} MiB, {} MiB are free; --work DIR takes another disk",
            folder.display(),
            needed_bytes >> 20,
            free_bytes >> 20
        );
    }
    let files_needed = bytes / 9000;
    if status.f_files > 0 && status.f_favail < files_needed {
        bail!("{}: too few free inodes", folder.display());
    }
    Ok(())
}

fn refuse_memory(folder: &Path) -> anyhow::Result<()> {
    // linux/magic.h: TMPFS_MAGIC and RAMFS_MAGIC.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let magic = rustix::fs::statfs(folder).context("statfs")?.f_type as u64;
    if IN_MEMORY.contains(&(magic & 0xffff_ffff)) {
        bail!("{}: lies in memory, --work must be on a real disk", folder.display());
    }
    Ok(())
}

fn stamp_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.recipe.json"))
}

fn read_stamp(path: &Path) -> Option<Stamp> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn remove_any(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn plan_small(files: u64) -> Vec<PlannedFile> {
    let vocabulary = Vocabulary::new(SEED);
    let mut generator = Generator::new(SEED, 1);
    let word = |generator: &mut Generator| {
        String::from_utf8_lossy(vocabulary.word(generator)).into_owned()
    };
    (0..files)
        .map(|index| {
            let folder = index / FILES_PER_FOLDER;
            let bytes = generator.log_normal(SMALL_MEAN_BYTES, SMALL_SIGMA) as u64;
            let (kind, ending) = if generator.below(3) == 0 {
                (ContentKind::Packed, "jpg")
            } else {
                (ContentKind::Prose, "txt")
            };
            // A random word first, so that neither age nor inode follows the order of names.
            let name = format!("{}-{index:07}.{ending}", word(&mut generator));
            PlannedFile {
                path: PathBuf::from(format!("folder-{folder:04}/{name}")),
                kind,
                bytes: bytes.min(SMALL_BYTES_MAX),
            }
        })
        .collect()
}

fn plan_mixed(bytes: u64) -> Vec<PlannedFile> {
    let shares = [
        (ContentKind::Log, "log", 22, 1.0e6, 1.2),
        (ContentKind::Source, "src", 20, 12.0e3, 1.1),
        (ContentKind::Prose, "doc", 16, 60.0e3, 1.2),
        (ContentKind::Executable, "bin", 24, 400.0e3, 1.3),
        (ContentKind::Packed, "media", 18, 1.5e6, 0.8),
    ];
    let mut generator = Generator::new(SEED, 2);
    let mut plan = Vec::new();
    for (kind, name, percent, mean_bytes, sigma) in shares {
        let share_bytes = bytes * percent / 100;
        let (mut planned_bytes, mut index) = (0, 0);
        while planned_bytes < share_bytes {
            let size = (generator.log_normal(mean_bytes, sigma) as u64).min(MIXED_BYTES_MAX);
            // The last file of a kind fills its share exactly, whatever the scale.
            let size = size.min(share_bytes - planned_bytes);
            let folder = index / 120;
            let path = PathBuf::from(format!("{name}/part-{folder:03}/{index:06}.{name}"));
            plan.push(PlannedFile { path, kind, bytes: size });
            planned_bytes += size;
            index += 1;
        }
    }
    plan
}

/// Only packed files, so that a drive gets the same rate whether or not it compresses.
fn plan_packed(bytes: u64) -> Vec<PlannedFile> {
    let mut generator = Generator::new(SEED, 3);
    let mut plan: Vec<PlannedFile> = Vec::new();
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let index = plan.len() as u64;
        let size = generator.log_normal(PACKED_MEAN_BYTES, PACKED_SIGMA) as u64;
        let size = size.clamp(1, MIXED_BYTES_MAX).min(left_bytes);
        let folder = index / FILES_PER_FOLDER;
        let path = PathBuf::from(format!("folder-{folder:03}/{index:06}.packed"));
        plan.push(PlannedFile { path, kind: ContentKind::Packed, bytes: size });
        left_bytes -= size;
    }
    plan
}

fn write_tree(path: &Path, plan: &[PlannedFile]) -> anyhow::Result<(u64, u64)> {
    let mut folders: Vec<_> = plan.iter().filter_map(|file| file.path.parent()).collect();
    folders.dedup();
    for folder in folders {
        let folder = path.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let vocabulary = Vocabulary::new(SEED);
    // Each thread writes whole groups of neighbours, so that a folder's files are together on the
    // disk.
    let numbered: Vec<_> = plan.iter().enumerate().collect();
    let groups: Vec<_> = numbered.chunks(50).collect();
    in_parallel(&groups, |group| {
        let mut contents = Vec::new();
        for (index, file) in *group {
            contents.clear();
            let mut generator = Generator::new(SEED, 1000 + *index as u64);
            let bytes = file.bytes as usize;
            content::append(file.kind, &vocabulary, &mut generator, &mut contents, bytes);
            fs::write(path.join(&file.path), &contents)?;
        }
        Ok(())
    })
    .with_context(|| format!("write {}", path.display()))?;
    Ok((plan.len() as u64, plan.iter().map(|file| file.bytes).sum()))
}

fn write_one_file(path: &Path, bytes: u64) -> anyhow::Result<(u64, u64)> {
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    match base::interruptible::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error).with_context(|| format!("reserve {}", path.display())),
    }
    let vocabulary = Vocabulary::new(SEED);
    let pieces: Vec<u64> = (0..bytes.div_ceil(PIECE_BYTES)).collect();
    in_parallel(&pieces, |&piece| {
        let mut contents = Vec::new();
        let offset = piece * PIECE_BYTES;
        let length = PIECE_BYTES.min(bytes - offset) as usize;
        let kind = if piece % 4 == 3 { ContentKind::Prose } else { ContentKind::Packed };
        let mut generator = Generator::new(SEED, (1 << 40) + piece);
        content::append(kind, &vocabulary, &mut generator, &mut contents, length);
        file.write_all_at(&contents, offset)
    })
    .with_context(|| format!("write {}", path.display()))?;
    Ok((1, bytes))
}

/// Runs `work` over `items` with a thread for each processor; the first error ends it.
fn in_parallel<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> io::Result<()> + Sync,
) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(16);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first_error = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if let Err(error) = work(item) {
                        failed.store(true, Ordering::Relaxed);
                        // A poisoned lock still holds the error of another thread.
                        let mut slot = first_error.lock().unwrap_or_else(|lock| lock.into_inner());
                        slot.get_or_insert(error);
                    }
                }
            });
        }
    });
    match first_error.into_inner().unwrap_or_else(|lock| lock.into_inner()) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_keep_the_proportions_of_the_recipe() {
        let plan = plan_small(20_000);
        let folders: std::collections::HashSet<_> =
            plan.iter().map(|file| file.path.parent()).collect();
        assert_eq!(folders.len(), 80);
        let mean = plan.iter().map(|file| file.bytes).sum::<u64>() / 20_000;
        assert!((8500..9500).contains(&mean), "{mean}");

        let plan = plan_mixed(200 << 20);
        let sum = |kind| plan.iter().filter(|f| f.kind == kind).map(|f| f.bytes).sum::<u64>();
        assert_eq!(sum(ContentKind::Log), (200 << 20) * 22 / 100);
        assert_eq!(sum(ContentKind::Packed), (200 << 20) * 18 / 100);

        let plan = plan_packed(200 << 20);
        assert_eq!(plan.iter().map(|file| file.bytes).sum::<u64>(), 200 << 20);
        assert!((700..1000).contains(&plan.len()), "{}", plan.len());
    }

    #[test]
    fn data_is_made_once_and_again_when_the_recipe_changes() {
        // Beside the build's output, which is on a disk even where /tmp is not.
        let beside = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let folder = folder.path();
        for recipe in [
            Recipe::SmallFiles(300),
            Recipe::MixedTree(1 << 20),
            Recipe::PackedTree(1 << 20),
            Recipe::OneFile(5 << 20),
        ] {
            let made = ensure(folder, "data", recipe).unwrap();
            assert_eq!(measure(&made.path).unwrap(), (made.files, made.bytes), "{recipe:?}");
            let mut first = None;
            for_each_file(&made.path, &mut |path, _| first = Some(path.to_path_buf())).unwrap();
            let first = first.unwrap();
            let contents = fs::read(&first).unwrap();
            fs::write(&first, b"marked").unwrap();
            assert_eq!(ensure(folder, "data", recipe).unwrap(), made);
            assert_eq!(fs::read(&first).unwrap(), b"marked", "reused, not made anew");
            remove(folder, "data").unwrap();
            ensure(folder, "data", recipe).unwrap();
            assert!(fs::read(&first).unwrap() == contents, "{recipe:?} is not deterministic");
        }
    }
}
