//! What the user does in his folder, once. Errors are his: he tries what he can.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// One act.
#[derive(Clone, Copy, Debug)]
pub enum Attack {
    /// Exchanges what was made last for a decoy.
    Exchange(Decoy),
    /// Puts a decoy where the next object is to be.
    Plant(Decoy),
    /// Exchanges the targets of hard links for files of his own.
    ExchangeTargets(Decoy),
    /// Takes away what was made last.
    Remove,
    /// Exchanges the folder that is to be his for the one that is root's.
    SwapFolders,
}

/// What he puts there.
#[derive(Clone, Copy, Debug)]
pub enum Decoy {
    /// Root's own, which lies in his folder: he may move it.
    Roots(&'static str),
    /// A link of his to a file of root's outside.
    Link,
    /// A program of his.
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
    /// Where it lies; his own are made now.
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

/// What came into being last in the folder, under whatever name.
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
