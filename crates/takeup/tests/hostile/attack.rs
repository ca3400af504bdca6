//! One attack of the user in his folder. Its errors do not matter: he tries what he can.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// An attack.
#[derive(Clone, Copy, Debug)]
pub enum Attack {
    /// Replaces the newest object by a decoy.
    Exchange(Decoy),
    /// Places a decoy where the next object will be.
    Plant(Decoy),
    /// Replaces the targets of hard links by his own files.
    ExchangeTargets(Decoy),
    /// Removes the newest object.
    Remove,
    /// Exchanges the folder that will be his for root's.
    SwapFolders,
}

/// A decoy.
#[derive(Clone, Copy, Debug)]
pub enum Decoy {
    /// Root's own object in his folder, which he may move.
    Roots(&'static str),
    /// His link to a file of root's outside.
    Link,
    /// His own program.
    Program,
}

pub const ATTACKS: &[Attack] = &[
    Attack::Exchange(Decoy::Roots("bait-file")),
    Attack::Exchange(Decoy::Link),
    Attack::Plant(Decoy::Roots("bait-directory")),
    Attack::Exchange(Decoy::Program),
    Attack::Exchange(Decoy::Roots("bait-fifo")),
    Attack::ExchangeTargets(Decoy::Program),
    Attack::Exchange(Decoy::Roots("bait-directory")),
    Attack::Plant(Decoy::Link),
    Attack::Exchange(Decoy::Roots("bait-link")),
    Attack::Remove,
    Attack::Plant(Decoy::Roots("bait-file")),
    Attack::SwapFolders,
    Attack::Plant(Decoy::Program),
    Attack::ExchangeTargets(Decoy::Roots("bait-file")),
    Attack::Exchange(Decoy::Roots("bait-device")),
];

/// Names in the folder, in the order of the archive.
pub const NAMES: &[&str] = &[
    "a-link",
    "b-program",
    "c-empty",
    "d-roots",
    "e-fifo",
    "f-device",
    "g-folder",
    "h-hard",
    "i-program",
    "j-capable",
    "k-roots-folder",
    "old",
];

impl Attack {
    pub fn act(self, folder: &Path) {
        match self {
            Attack::Exchange(decoy) => {
                if let Some(last) = last_made(folder) {
                    exchange(&decoy.get(folder), &last);
                }
            }
            Attack::Plant(decoy) => {
                let is_free = |name: &&&str| fs::symlink_metadata(folder.join(name)).is_err();
                if let Some(next) = NAMES.iter().find(is_free) {
                    let _ = fs::rename(decoy.get(folder), folder.join(next));
                }
            }
            Attack::ExchangeTargets(decoy) => {
                for name in ["d-roots", "i-program"] {
                    exchange(&decoy.get(folder), &folder.join(name));
                }
            }
            Attack::Remove => {
                if let Some(last) = last_made(folder) {
                    let _ = fs::remove_file(&last);
                    let _ = fs::remove_dir(&last);
                }
            }
            Attack::SwapFolders => {
                exchange(&folder.join("g-folder"), &folder.join("k-roots-folder"));
            }
        }
    }
}

impl Decoy {
    /// The path of the decoy; his own are created here.
    fn get(self, folder: &Path) -> PathBuf {
        match self {
            Decoy::Roots(name) => folder.join(name),
            Decoy::Link => {
                let path = folder.join("own-link");
                let _ = symlink("../../outside/secret", &path);
                path
            }
            Decoy::Program => {
                let path = folder.join("own-program");
                let _ = fs::write(&path, "the user's");
                let _ = fs::set_permissions(&path, PermissionsExt::from_mode(0o755));
                path
            }
        }
    }
}

fn exchange(one: &Path, other: &Path) {
    let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
}

/// The newest object in the folder, under any name.
fn last_made(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.map_while(Result::ok).map(|entry| entry.path());
    let made = entries.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with("bait") && !name.starts_with("own") && name != "old"
    });
    made.max_by_key(|path| {
        let status = fs::symlink_metadata(path).ok();
        status.map(|status| (status.ctime(), status.ctime_nsec(), status.ino()))
    })
}
