//! The shape of a tree: how many files of which size, and some of each to try.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use statistics::random::Random;

use super::SourceError;

/// From this size on a file is read ahead by more than a few pages.
pub const LARGE_BYTES: u64 = 1 << 20;
/// Large files whose paths are kept: the largest.
const LARGE_KEPT: usize = 32;
/// Folders of which some small files are kept.
const FOLDERS_KEPT: usize = 48;
/// Small files of a folder that are kept, in the order of the folder.
const SMALL_KEPT: usize = 24;
/// Deeper folders are not looked into: each level holds a descriptor.
const DEPTH_MAX: usize = 200;
/// Other file systems below that are kept by path.
const OTHERS_KEPT: usize = 4;
/// Places in large files, for the sample.
const PLACES: usize = 64;
/// The time is looked at every so many entries.
const ENTRIES_PER_LOOK: u64 = 64;

/// The shape of a tree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub large_files: u64,
    pub large_bytes: u64,
    pub small_files: u64,
    pub small_bytes: u64,
    pub folders: u64,
    /// Whether all of it was looked at.
    pub is_whole: bool,
    /// Seconds that listing it took.
    pub seconds: f64,
    /// Objects that could not be looked at.
    pub problems: u64,
    /// Other file systems below that were not looked into, some of them by path.
    pub other_file_systems: Vec<PathBuf>,
    /// How many these are.
    pub other_file_systems_count: u64,
    /// The largest files, with their sizes.
    pub large: Vec<(PathBuf, u64)>,
    /// Places in large files, drawn by their bytes: a file, and the share of it in front.
    pub places: Vec<(PathBuf, f64)>,
    /// Some small files with their sizes: of each folder those that lie behind each other.
    pub small: Vec<Vec<(PathBuf, u64)>>,
}

impl Tree {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.large_bytes + self.small_bytes
    }

    /// All files.
    pub fn files(&self) -> u64 {
        self.large_files + self.small_files
    }

    fn leave_out(&mut self, path: PathBuf) {
        self.other_file_systems_count += 1;
        if self.other_file_systems.len() < OTHERS_KEPT {
            self.other_file_systems.push(path);
        }
    }

    fn add(
        &mut self,
        bytes: u64,
        path: impl Fn() -> PathBuf,
        kept: &mut Vec<(PathBuf, u64)>,
        random: &mut Random,
    ) {
        if bytes < LARGE_BYTES {
            self.small_files += 1;
            self.small_bytes += bytes;
            if kept.len() < SMALL_KEPT && bytes > 0 {
                kept.push((path(), bytes));
            }
            return;
        }
        self.large_files += 1;
        self.large_bytes += bytes;
        self.draw(bytes, &path, random);
        if self.large.len() < LARGE_KEPT {
            self.large.push((path(), bytes));
        } else if let Some(least) = self.large.iter_mut().min_by_key(|it| it.1)
            && bytes > least.1
        {
            *least = (path(), bytes);
        }
    }

    /// Lets a file take each place with the chance that its bytes have among all so far.
    fn draw(&mut self, bytes: u64, path: &impl Fn() -> PathBuf, random: &mut Random) {
        let chance = bytes as f64 / self.large_bytes as f64;
        let mut own = None;
        for place in 0..PLACES {
            if place < self.places.len() && random.unit() >= chance {
                continue;
            }
            let own = own.get_or_insert_with(path).clone();
            let at = random.unit();
            match self.places.get_mut(place) {
                Some(other) => *other = (own, at),
                None => self.places.push((own, at)),
            }
        }
    }
}

/// A folder to look into: the open folder above it, and its name there.
struct Waiting {
    above: Arc<OwnedFd>,
    name: CString,
    path: PathBuf,
    depth: usize,
}

/// Looks at all files of one file system below the paths, for as long as is given.
pub(super) fn walk(
    paths: &[PathBuf],
    limit: Duration,
    cancel: &Cancel,
) -> Result<Tree, SourceError> {
    let mut walk = Walk {
        paths,
        tree: Tree { is_whole: true, ..Tree::default() },
        begun: Instant::now(),
        limit,
        entries: 0,
        device: 0,
        random: Random::new(0x7461_6b65),
    };
    for path in paths {
        walk.path(path, cancel)?;
    }
    walk.tree.seconds = walk.begun.elapsed().as_secs_f64();
    walk.tree.large.sort_by_key(|it| std::cmp::Reverse(it.1));
    Ok(walk.tree)
}

struct Walk<'a> {
    /// What was named: each is looked into by itself.
    paths: &'a [PathBuf],
    tree: Tree,
    begun: Instant,
    limit: Duration,
    entries: u64,
    /// Other file systems below are not looked into.
    device: u64,
    random: Random,
}

impl Walk<'_> {
    fn path(&mut self, path: &Path, cancel: &Cancel) -> Result<(), SourceError> {
        let failed = |error: rustix::io::Errno| SourceError::Inspect {
            path: path.to_owned(),
            source: error.into(),
        };
        let status = rustix::fs::stat(path).map_err(failed)?;
        let random = &mut self.random;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => {}
            FileType::BlockDevice => {
                let file = std::fs::File::open(path);
                let file =
                    file.map_err(|source| SourceError::Inspect { path: path.to_owned(), source })?;
                let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
                self.tree.add(bytes.map_err(failed)?, || path.to_owned(), &mut Vec::new(), random);
                return Ok(());
            }
            _ => {
                let mut kept = Vec::new();
                self.tree.add(held_bytes(&status), || path.to_owned(), &mut kept, random);
                self.tree.small.extend((!kept.is_empty()).then_some(kept));
                return Ok(());
            }
        }
        self.device = status.st_dev;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = base::interruptible::open(path, flags, Mode::empty()).map_err(failed)?;
        let above = Arc::new(top);
        let first = Waiting { above, name: c".".to_owned(), path: path.to_owned(), depth: 0 };
        let mut waiting = vec![first];
        while let Some(next) = waiting.pop() {
            if self.is_over() {
                self.tree.is_whole = false;
                break;
            }
            if cancel.check().is_err() {
                return Err(SourceError::Cancelled);
            }
            self.folder(next, &mut waiting);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }

    fn folder(&mut self, folder: Waiting, waiting: &mut Vec<Waiting>) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened =
            base::interruptible::openat(&*folder.above, &folder.name, flags, Mode::empty());
        let Some((open, listed)) =
            opened.ok().and_then(|open| Dir::read_from(&open).ok().map(|dir| (open, dir)))
        else {
            self.tree.problems += 1;
            return;
        };
        let open = Arc::new(open);
        self.tree.folders += 1;
        let mut kept = Vec::new();
        let mut below = Vec::new();
        for entry in listed {
            let Ok(entry) = entry else {
                self.tree.problems += 1;
                break;
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries.is_multiple_of(ENTRIES_PER_LOOK) && self.is_over() {
                self.tree.is_whole = false;
                break;
            }
            let Ok(status) = rustix::fs::statat(&*open, name, AtFlags::SYMLINK_NOFOLLOW) else {
                self.tree.problems += 1;
                continue;
            };
            let path = || folder.path.join(OsStr::from_bytes(name.to_bytes()));
            if status.st_dev != self.device {
                let is_folder = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
                if is_folder && holds_data(&open, name) && !self.paths.contains(&path()) {
                    self.tree.leave_out(path());
                }
                continue;
            }
            match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile => {
                    let size = held_bytes(&status);
                    self.tree.add(size, path, &mut kept, &mut self.random);
                }
                FileType::Directory if folder.depth < DEPTH_MAX => below.push(Waiting {
                    above: Arc::clone(&open),
                    name: name.to_owned(),
                    path: path(),
                    depth: folder.depth + 1,
                }),
                FileType::Directory => self.tree.is_whole = false,
                _ => {}
            }
        }
        // In random order, so that a walk that is cut off has seen a bit of everything.
        self.random.shuffle(&mut below);
        waiting.append(&mut below);
        self.keep(kept);
    }

    /// Keeps the small files of some folders, each folder with the same chance.
    fn keep(&mut self, kept: Vec<(PathBuf, u64)>) {
        if kept.is_empty() {
            return;
        }
        if self.tree.small.len() < FOLDERS_KEPT {
            self.tree.small.push(kept);
            return;
        }
        let seen = usize::try_from(self.tree.folders).unwrap_or(usize::MAX);
        let place = self.random.below(seen.max(1));
        if let Some(other) = self.tree.small.get_mut(place) {
            *other = kept;
        }
    }
}

/// Whether a folder has files of a file system that is backed up: not one of the kernel, and not
/// one in memory. Nothing is mounted for the question.
fn holds_data(above: &OwnedFd, name: &CStr) -> bool {
    /// Numbers of <linux/magic.h>: proc, sysfs, devpts, cgroup, cgroup2, debugfs, tracefs,
    /// securityfs, pstore, bpf, configfs, mqueue, hugetlbfs, fusectl, efivarfs, autofs,
    /// binfmt_misc, nsfs, tmpfs, ramfs.
    const WITHOUT_DATA: [u64; 20] = [
        0x9fa0,
        0x6265_6572,
        0x1cd1,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x6165_676c,
        0xcafe_4a11,
        0x6265_6570,
        0x1980_0202,
        0x9584_58f6,
        0x6573_5543,
        0xde5e_81e4,
        0x0187,
        0x4249_4e4d,
        0x6e73_6673,
        0x0102_1994,
        0x8584_58f6,
    ];
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = base::interruptible::openat(above, name, flags, Mode::empty());
    let status = folder.ok().and_then(|folder| rustix::fs::fstatfs(folder).ok());
    status.is_some_and(|status| !WITHOUT_DATA.contains(&(status.f_type as u64 & 0xffff_ffff)))
}

/// Bytes that are read from the disk: holes are not.
fn held_bytes(status: &rustix::fs::Stat) -> u64 {
    let held = u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512);
    u64::try_from(status.st_size).unwrap_or(0).min(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_shape_of_a_tree_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        for at in 0..60 {
            let below = folder.path().join(format!("a/{at}"));
            fs::create_dir_all(&below).unwrap();
            (0..3).for_each(|file| fs::write(below.join(file.to_string()), [7; 5000]).unwrap());
        }
        fs::write(folder.path().join("large"), vec![1; 3 << 20]).unwrap();
        fs::File::create(folder.path().join("holes")).unwrap().set_len(1 << 30).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("link")).unwrap();
        let paths = [folder.path().to_owned()];
        let tree = walk(&paths, Duration::from_secs(60), &Cancel::new()).unwrap();
        assert_eq!((tree.small_files, tree.small_bytes), (181, 180 * 5000));
        assert_eq!((tree.large_files, tree.large_bytes), (1, 3 << 20));
        assert_eq!((tree.folders, tree.problems, tree.is_whole), (62, 0, true));
        assert_eq!(tree.large.len(), 1);
        assert!(tree.small.iter().all(|folder| folder.len() == 3) && tree.small.len() == 48);
        let cut = walk(&paths, Duration::ZERO, &Cancel::new()).unwrap();
        assert!(!cut.is_whole);
    }

    #[test]
    fn a_larger_file_takes_the_place_of_one_other() {
        let (mut tree, mut random) = (Tree::default(), Random::new(1));
        let size = |at: usize| if at == LARGE_KEPT { 2 * LARGE_BYTES } else { LARGE_BYTES };
        for at in 0..=LARGE_KEPT {
            tree.add(size(at), || at.to_string().into(), &mut Vec::new(), &mut random);
        }
        assert_eq!(tree.large.len(), LARGE_KEPT);
        assert_eq!(tree.large.iter().filter(|it| it.1 > LARGE_BYTES).count(), 1);
    }

    /// Each byte has the same chance, whatever files came first.
    #[test]
    fn places_are_drawn_by_bytes() {
        let (mut tree, mut random) = (Tree::default(), Random::new(1));
        let mut of_large = 0;
        for _ in 0..20 {
            tree = Tree::default();
            for (name, files, bytes) in [("large", 1, 300), ("middle", 300, 1)] {
                for _ in 0..files {
                    tree.add(bytes * LARGE_BYTES, || name.into(), &mut Vec::new(), &mut random);
                }
            }
            of_large += tree.places.iter().filter(|(path, _)| path == Path::new("large")).count();
        }
        assert_eq!(tree.places.len(), PLACES);
        let share = of_large as f64 / (20 * PLACES) as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
    }

    /// The kernel's file systems hold nothing to back up, and what is named is looked into anyhow.
    #[test]
    fn only_file_systems_with_data_are_left_out() {
        let root =
            base::interruptible::open("/", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let root = root.unwrap();
        assert!(!holds_data(&root, c"proc") && !holds_data(&root, c"sys"));
        assert!(!holds_data(&root, c"nowhere"));
        let folder = tempfile::tempdir_in(".").unwrap();
        let above = std::fs::File::open(folder.path().parent().unwrap()).unwrap().into();
        let name = CString::new(folder.path().file_name().unwrap().as_bytes()).unwrap();
        assert_eq!(holds_data(&above, &name), !device::file::is_in_memory(&above));
    }

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let error = walk(&["/nowhere/at/all".into()], Duration::ZERO, &Cancel::new());
        assert!(error.unwrap_err().to_string().contains("/nowhere/at/all"));
    }
}
