//! The folders, the archive, and the conditions that must hold afterwards.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use base::interruptible::openat;
use rustix::fs::{CWD, FileType, Gid, Mode, OFlags, Uid, XattrFlags, makedev, mknodat};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::attack::NAMES;

/// The user.
pub const USER: u32 = 65534;
/// CAP_NET_RAW, permitted and effective.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// All that the user could want to change of root's files.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    kind: u32,
    mode: u32,
    owner: (u32, u32),
    modified: Option<i64>,
    content: Vec<u8>,
    has_capability: bool,
}

pub struct Scene {
    home: tempfile::TempDir,
    /// Root's objects before the run, by device and inode.
    roots: BTreeMap<(u64, u64), Look>,
    /// It stays open, so that its inode number is not used again.
    _held: Vec<OwnedFd>,
}

/// Archives the members that are restored, with GNU tar.
pub fn archive(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    let user = source.join("user");
    fs::create_dir_all(source.join("sys")).unwrap();
    fs::create_dir(&user).unwrap();
    let file = |name: &str, content: &str, owner: u32, mode: u32| {
        let path = user.join(name);
        fs::write(&path, content).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    symlink("../../outside/secret", user.join("a-link")).unwrap();
    std::os::unix::fs::lchown(user.join("a-link"), Some(USER), Some(USER)).unwrap();
    file("b-program", "archived program", USER, 0o6755);
    file("c-empty", "", USER, 0o644);
    file("d-roots", "archived secret", 0, 0o600);
    let node = |name: &str, kind, device| {
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, user.join(name), kind, mode, device).unwrap();
        chown(user.join(name), Some(USER), Some(USER)).unwrap();
        // The umask has changed the modes.
        fs::set_permissions(user.join(name), PermissionsExt::from_mode(0o666)).unwrap();
    };
    node("e-fifo", FileType::Fifo, 0);
    node("f-device", FileType::CharacterDevice, makedev(1, 3));
    fs::create_dir(user.join("g-folder")).unwrap();
    file("g-folder/inside", "archived inside", USER, 0o644);
    chown(user.join("g-folder"), Some(USER), Some(USER)).unwrap();
    fs::hard_link(user.join("d-roots"), user.join("h-hard")).unwrap();
    let program = file("i-program", "archived program of root", 0, 0o755);
    let capable = file("j-capable", "archived capable", USER, 0o755);
    let flags = XattrFlags::empty();
    rustix::fs::setxattr(capable, "security.capability", &CAPABILITY, flags).unwrap();
    fs::create_dir(user.join("k-roots-folder")).unwrap();
    file("k-roots-folder/inside", "archived inside of root", 0, 0o644);
    fs::set_permissions(user.join("k-roots-folder"), PermissionsExt::from_mode(0o700)).unwrap();
    file("old", "archived new", USER, 0o644);
    fs::hard_link(program, source.join("sys/z-program")).unwrap();
    let archive = folder.join("archive.tar");
    let mut tar = Command::new("tar");
    tar.args(["--format=pax", "--xattrs", "--xattrs-include=*", "-C"]).arg(&source);
    tar.arg("-cf").arg(&archive);
    tar.args(NAMES.iter().map(|name| format!("user/{name}"))).arg("sys/z-program");
    assert!(tar.status().unwrap().success());
    archive
}

impl Scene {
    pub fn new() -> Scene {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for folder in ["outside", "into", "into/user", "into/sys", "into/user/bait-directory"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let file = |path: &str, content: &str, mode: u32| {
            fs::write(at(path), content).unwrap();
            fs::set_permissions(at(path), PermissionsExt::from_mode(mode)).unwrap();
        };
        file("outside/secret", "secret outside", 0o600);
        file("outside/program", "program outside", 0o755);
        file("into/user/bait-file", "bait", 0o600);
        file("into/user/bait-directory/inside", "bait inside", 0o644);
        symlink("../../outside/secret", at("into/user/bait-link")).unwrap();
        let node = |path: &str, kind, device| {
            mknodat(CWD, at(path), kind, Mode::from_raw_mode(0o600), device).unwrap();
        };
        node("into/user/bait-fifo", FileType::Fifo, 0);
        node("into/user/bait-device", FileType::CharacterDevice, makedev(1, 7));
        let closed = PermissionsExt::from_mode(0o700);
        fs::set_permissions(at("into/user/bait-directory"), closed).unwrap();
        file("into/user/old", "old", 0o644);
        let long_ago =
            FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        File::options().write(true).open(at("into/user/old")).unwrap().set_times(long_ago).unwrap();
        for owned in ["into/user", "into/user/old"] {
            chown(at(owned), Some(USER), Some(USER)).unwrap();
        }
        let mut scene = Scene { home, roots: BTreeMap::new(), _held: Vec::new() };
        for path in all_below(scene.home()) {
            let status = fs::symlink_metadata(&path).unwrap();
            if status.uid() == 0 {
                scene.roots.insert((status.dev(), status.ino()), look(&path));
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                scene._held.push(openat(CWD, &path, flags, Mode::empty()).unwrap());
            }
        }
        scene
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn destination(&self) -> PathBuf {
        self.home().join("into")
    }

    /// Acts in the user's folder as the user, in a thread that keeps his identity.
    pub fn as_the_user(&self, act: impl FnOnce(&Path) + Send) {
        let folder = self.destination().join("user");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
                act(&folder);
            });
        });
    }

    /// The result of an undisturbed restore.
    pub fn assert_restored(&self) {
        let user = self.destination().join("user");
        for name in NAMES {
            assert!(fs::symlink_metadata(user.join(name)).is_ok(), "{name}");
        }
        let status = |name: &str| fs::symlink_metadata(user.join(name)).unwrap();
        assert_eq!(
            (status("b-program").uid(), status("b-program").mode() & 0o7777),
            (USER, 0o6755)
        );
        assert_eq!((status("e-fifo").uid(), status("e-fifo").mode() & 0o7777), (USER, 0o666));
        assert_eq!((status("g-folder").uid(), status("a-link").uid()), (USER, USER));
        assert_eq!(fs::read(user.join("old")).unwrap(), b"archived new");
        assert_eq!(status("d-roots").ino(), status("h-hard").ino());
        let linked = fs::symlink_metadata(self.destination().join("sys/z-program")).unwrap();
        assert_eq!(linked.ino(), status("i-program").ino());
        assert!(look(&user.join("j-capable")).has_capability);
        let left = all_below(self.home()).into_iter().filter(|path| is_temporary(path)).count();
        assert_eq!(left, 0);
    }

    /// Finds forbidden changes.
    pub fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut outside = 0;
        for path in all_below(self.home()) {
            let status = fs::symlink_metadata(&path).unwrap();
            let now = look(&path);
            let below = path.strip_prefix(self.home()).unwrap().to_owned();
            outside += usize::from(below.starts_with("outside"));
            let mut tell = |what: &str| found.push(format!("{}: {what}: {now:?}", below.display()));
            if let Some(before) = self.roots.get(&(status.dev(), status.ino()))
                && *before != now
            {
                tell(&format!("root's was changed from {before:?}"));
            }
            let is_users = status.uid() == USER;
            if status.is_file() && status.mode() & 0o6000 != 0 {
                let is_archived = now.content == b"archived program";
                if !(is_users && is_archived) {
                    tell("a set-ID bit");
                }
            }
            if now.has_capability && !(is_users && now.content == b"archived capable") {
                tell("a capability");
            }
            let is_roots =
                now.content.starts_with(b"archived secret") || now.content.ends_with(b"of root");
            if is_roots && is_users {
                tell("root's archived file is the user's");
            }
            if now.content == b"archived inside of root" {
                let above = fs::symlink_metadata(path.parent().unwrap()).unwrap();
                if above.uid() != 0 || above.mode() & 0o077 != 0 {
                    tell("what was in root's closed folder is open");
                }
            }
            if below.starts_with("into/sys") && is_users {
                tell("in root's folder is something of the user's");
            }
        }
        if outside != 3 {
            found.push(format!("outside are {outside} objects"));
        }
        found
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".takeup-"))
}

fn all_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(all_below(&entry.path()));
        }
    }
    found
}

fn look(path: &Path) -> Look {
    let status = fs::symlink_metadata(path).unwrap();
    let is = status.file_type();
    let content = match (is.is_file(), is.is_symlink()) {
        (true, _) => fs::read(path).unwrap(),
        (_, true) => fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let mut value = [0; 64];
    let capability = rustix::fs::lgetxattr(path, OsStr::new("security.capability"), &mut value[..]);
    Look {
        kind: status.mode() & 0o170_000,
        mode: status.mode() & 0o7777,
        owner: (status.uid(), status.gid()),
        // Names created and removed in a directory change its time, and he may have had it moved
        // into the restored folder.
        modified: (!is.is_dir()).then(|| status.mtime_nsec() + status.mtime() * 1_000_000_000),
        content,
        has_capability: capability.is_ok(),
    }
}
