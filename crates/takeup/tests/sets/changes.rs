//! Random changes of a random tree: all that users and programs do to files between two backups.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use testkit::samples::Random;

/// Its name, and what it does.
type Change = (&'static str, fn(&mut World));

/// The tree `tree` in a folder, and what changes it.
pub struct World {
    root: PathBuf,
    pub random: Random,
    next_name: u64,
}

impl World {
    pub fn new(root: PathBuf, seed: u64) -> World {
        fs::create_dir(&root).unwrap();
        let mut world = World { root, random: Random::new(seed), next_name: 0 };
        for _ in 0..6 {
            world.make_folder();
        }
        for _ in 0..20 {
            world.make_file();
        }
        for _ in 0..4 {
            world.link();
        }
        world
    }

    /// One change, of a kind that the tree allows. Its name, for messages.
    pub fn change(&mut self) -> &'static str {
        let changes: [Change; 17] = [
            ("create", World::make_file),
            ("make a folder", World::make_folder),
            ("edit", World::edit),
            ("append", World::append),
            ("truncate", World::truncate),
            ("rename", World::rename),
            ("move a folder", World::move_folder),
            ("swap folders", World::swap_folders),
            ("rotate three", World::rotate),
            ("delete", World::delete),
            ("delete a folder", World::delete_folder),
            ("link", World::link),
            ("file becomes a folder", World::make_folder_of_file),
            ("folder becomes a file", World::make_file_of_folder),
            ("permissions", World::permissions),
            ("edit and set the time back", World::edit_in_secret),
            ("symbolic link", World::symbolic_link),
        ];
        let chosen = self.random.index(changes.len());
        let (name, change) = changes[chosen];
        change(self);
        name
    }

    /// Rewrites a file in place with the same size, as shortly after its backup as a program can.
    pub fn edit(&mut self) {
        let Some(path) = self.file() else { return };
        let bytes = fs::metadata(&path).unwrap().len() as usize;
        fs::write(&path, self.random.bytes(bytes)).unwrap();
    }

    fn fresh(&mut self) -> String {
        self.next_name += 1;
        // Names that sort around each other, with bytes around the slash.
        let ends = ["", ".a", "-b", " c", "/".trim_end_matches('/'), "0", "~"];
        format!("n{}{}", self.next_name % 40, ends[self.random.index(ends.len())])
    }

    /// All paths of a kind below the root, in order.
    fn paths(&self, wanted: fn(&fs::Metadata) -> bool) -> Vec<PathBuf> {
        let (mut waiting, mut found) = (vec![self.root.clone()], Vec::new());
        while let Some(path) = waiting.pop() {
            for entry in fs::read_dir(&path).unwrap() {
                let path = entry.unwrap().path();
                let status = fs::symlink_metadata(&path).unwrap();
                if status.is_dir() {
                    waiting.push(path.clone());
                }
                if wanted(&status) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn one(&mut self, wanted: fn(&fs::Metadata) -> bool) -> Option<PathBuf> {
        let mut paths = self.paths(wanted);
        if paths.is_empty() {
            return None;
        }
        let chosen = self.random.index(paths.len());
        Some(paths.swap_remove(chosen))
    }

    fn file(&mut self) -> Option<PathBuf> {
        self.one(fs::Metadata::is_file)
    }

    fn folder(&mut self) -> Option<PathBuf> {
        self.one(fs::Metadata::is_dir)
    }

    /// A place where nothing is: in the root or in a folder.
    fn place(&mut self) -> PathBuf {
        loop {
            let folder = match self.random.below(3) {
                0 => self.root.clone(),
                _ => self.folder().unwrap_or_else(|| self.root.clone()),
            };
            let path = folder.join(self.fresh());
            if fs::symlink_metadata(&path).is_err() {
                return path;
            }
        }
    }

    fn make_file(&mut self) {
        let path = self.place();
        let most = [0, 10, 3000, 200_000][self.random.index(4)];
        let bytes = self.random.below(most + 1) as usize;
        fs::write(path, self.random.bytes(bytes)).unwrap();
    }

    fn make_folder(&mut self) {
        let path = self.place();
        fs::create_dir(path).unwrap();
    }

    fn append(&mut self) {
        let Some(path) = self.file() else { return };
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&self.random.bytes(100)).unwrap();
    }

    fn truncate(&mut self) {
        let Some(path) = self.file() else { return };
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.set_len(bytes / 2).unwrap();
    }

    fn rename(&mut self) {
        let Some(path) = self.file() else { return };
        let to = self.place();
        fs::rename(path, to).unwrap();
    }

    fn move_folder(&mut self) {
        let Some(path) = self.folder() else { return };
        let to = self.place();
        if !to.starts_with(&path) {
            fs::rename(path, to).unwrap();
        }
    }

    fn swap_folders(&mut self) {
        let (Some(one), Some(other)) = (self.folder(), self.folder()) else { return };
        if one.starts_with(&other) || other.starts_with(&one) {
            return;
        }
        let aside = self.root.join("aside");
        fs::rename(&one, &aside).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(&aside, &other).unwrap();
    }

    fn rotate(&mut self) {
        let files = self.paths(fs::Metadata::is_file);
        if files.len() < 3 {
            return;
        }
        let at = self.random.index(files.len() - 2);
        let aside = self.root.join("aside");
        fs::rename(&files[at], &aside).unwrap();
        fs::rename(&files[at + 1], &files[at]).unwrap();
        fs::rename(&files[at + 2], &files[at + 1]).unwrap();
        fs::rename(&aside, &files[at + 2]).unwrap();
    }

    fn delete(&mut self) {
        let Some(path) = self.file() else { return };
        fs::remove_file(path).unwrap();
    }

    fn delete_folder(&mut self) {
        let Some(path) = self.folder() else { return };
        fs::remove_dir_all(path).unwrap();
    }

    fn link(&mut self) {
        let Some(path) = self.file() else { return };
        let to = self.place();
        fs::hard_link(path, to).unwrap();
    }

    fn symbolic_link(&mut self) {
        let to = self.place();
        let target = self.fresh();
        match self.one(|status| status.is_symlink()) {
            Some(old) if self.random.below(2) == 0 => {
                fs::remove_file(&old).unwrap();
                symlink(target, old).unwrap();
            }
            _ => symlink(target, to).unwrap(),
        }
    }

    fn make_folder_of_file(&mut self) {
        let Some(path) = self.file() else { return };
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "was a file").unwrap();
    }

    fn make_file_of_folder(&mut self) {
        let Some(path) = self.folder() else { return };
        fs::remove_dir_all(&path).unwrap();
        fs::write(path, "was a folder").unwrap();
    }

    fn permissions(&mut self) {
        let Some(path) = self.one(|status| !status.is_symlink()) else { return };
        let mode = if path.is_dir() { [0o755, 0o700, 0o750] } else { [0o644, 0o600, 0o4755] };
        let mode = mode[self.random.index(3)];
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn edit_in_secret(&mut self) {
        let Some(path) = self.file() else { return };
        let before = modified(&path);
        self.write_same_size(&path);
        fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
    }

    fn write_same_size(&mut self, path: &Path) {
        let bytes = fs::metadata(path).unwrap().size() as usize;
        fs::write(path, self.random.bytes(bytes)).unwrap();
    }
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}
