//! Runs the other tar programs, and reads trees on disk.

use archive::member::Timestamp;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tar program and the Debian package it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    GnuTar,
    Bsdtar,
}

impl Tool {
    pub const ALL: [Tool; 2] = [Tool::GnuTar, Tool::Bsdtar];

    fn name_and_package(self) -> (&'static str, &'static str) {
        match self {
            Tool::GnuTar => ("tar", "tar"),
            Tool::Bsdtar => ("bsdtar", "libarchive-tools"),
        }
    }

    /// The program, to be run in `directory` under `locale`.
    fn command(self, directory: &Path, locale: &str) -> Command {
        let (name, _) = self.name_and_package();
        let mut command = Command::new(name);
        command.current_dir(directory).env("LC_ALL", locale).env_remove("TAR_OPTIONS");
        command.env("TZ", "UTC0");
        command
    }

    /// Runs the program and returns standard output and standard error; it has to succeed.
    pub fn run(self, directory: &Path, locale: &str, arguments: &[&OsStr]) -> (Vec<u8>, String) {
        let (name, package) = self.name_and_package();
        let output = self.command(directory, locale).args(arguments).output();
        let output = output.unwrap_or_else(|error| {
            panic!("this test needs {name} (Debian package {package}): {error}")
        });
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let only_locale = self == Tool::Bsdtar && locale == "C" && speaks_of_the_locale(&errors);
        assert!(output.status.success() || only_locale, "{name} {arguments:?}: {errors}");
        (output.stdout, errors)
    }

    /// Extracts with everything that the program can restore; returns its messages.
    pub fn extract(self, archive: &Path, into: &Path, locale: &str) -> String {
        let options: &[&str] = match self {
            Tool::GnuTar => &["-xp", "--xattrs", "--xattrs-include=*", "--acls"],
            Tool::Bsdtar => &["-xp", "--xattrs", "--acls"],
        };
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new("--numeric-owner"), OsStr::new("-f"), archive.as_os_str()]);
        self.run(into, locale, &arguments).1
    }

    /// Creates an archive of `tree` (as `.`) and returns its bytes.
    pub fn create(self, tree: &Path, options: &[&str]) -> Vec<u8> {
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.extend(["-cf", "-", "."].map(OsStr::new));
        self.run(tree, "C.UTF-8", &arguments).0
    }
}

/// Whether bsdtar's only message is that its locale lacks a name of the archive. It has still
/// restored the name, byte by byte, as it does with such names in its own archives.
fn speaks_of_the_locale(errors: &str) -> bool {
    let mut lines = errors.lines().filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            line.ends_with("can't be converted from UTF-8 to current locale.")
                || line == "bsdtar: Error exit delayed from previous errors."
        })
}

/// A path on disk from bytes in an archive.
pub fn disk_path(directory: &Path, path: &[u8]) -> PathBuf {
    directory.join(OsStr::from_bytes(path))
}

pub fn modified(path: &Path) -> Timestamp {
    let metadata = path.symlink_metadata().expect("the file is there");
    Timestamp { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() as u32 }
}

/// Value of an extended attribute; `None` if the file does not have it.
pub fn xattr(path: &Path, name: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![0; 1 << 16];
    let length = rustix::fs::lgetxattr(path, name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

pub fn set_xattr(path: &Path, name: &[u8], value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty())
        .expect("the temporary folder lies on a file system with extended attributes");
}

/// Whether `file` has fewer blocks than its size needs.
pub fn has_holes(file: &Path) -> bool {
    let metadata = file.metadata().expect("the file is there");
    metadata.blocks() * 512 < metadata.len()
}
