//! Programs that Takeup starts for itself, such as `losetup`, `smartctl` and `fio`.
//!
//! The working directory is never searched: a user who can write to it would choose what root runs.
//! The absolute folders of PATH are searched, then the usual folders of such programs. An empty,
//! unset or relative PATH adds nothing.
//!
//! Not here: a line that the user typed. The shell looks up its programs by the user's own PATH.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Searched after PATH, because not every user's PATH has these folders.
const USUAL: [&str; 7] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/VRTS/bin",
];

/// A program by its name, without arguments. It is started by its absolute path, and itself looks
/// up programs in the same folders.
///
/// # Errors
/// `NotFound` where none of the folders has it.
pub fn command(program: &str) -> io::Result<Command> {
    let folders = folders(std::env::var_os("PATH").as_deref());
    let mut command = Command::new(find(&folders, program)?);
    command.env("PATH", joined(&folders));
    Ok(command)
}

/// The path of a program, for a line that another program runs.
///
/// # Errors
/// `NotFound` where none of the folders has it.
pub fn path(program: &str) -> io::Result<PathBuf> {
    find(&folders(std::env::var_os("PATH").as_deref()), program)
}

/// A shell, by its name or a path that the user gave, to run a line of the user. The line gets the
/// user's own PATH.
///
/// # Errors
/// `NotFound` where it is a name and none of the folders has it.
pub fn shell(name: &str) -> io::Result<Command> {
    if name.contains('/') {
        return Ok(Command::new(name));
    }
    find(&folders(std::env::var_os("PATH").as_deref()), name).map(Command::new)
}

/// The folders to be searched, in this order.
fn folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    let named = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    let named = named.into_iter().flatten().filter(|folder| folder.is_absolute());
    named.chain(USUAL.iter().map(PathBuf::from)).collect()
}

fn joined(folders: &[PathBuf]) -> OsString {
    // The folders were split at colons, so none contains one.
    std::env::join_paths(folders).unwrap_or_default()
}

fn find(folders: &[PathBuf], program: &str) -> io::Result<PathBuf> {
    let is_name = !program.is_empty() && !program.contains('/');
    let mut places = folders.iter().map(|folder| folder.join(program));
    let found = places.find(|place| is_name && is_program(place));
    found.ok_or_else(|| io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error()))
}

fn is_program(place: &Path) -> bool {
    let metadata = std::fs::metadata(place);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_of_path_are_searched() {
        let check = |path: Option<&str>, expected: &[&str]| {
            let found = folders(path.map(OsStr::new));
            let usual = USUAL.iter().map(Path::new);
            let expected: Vec<&Path> = expected.iter().map(Path::new).chain(usual).collect();
            assert_eq!(found, expected, "{path:?}");
        };
        check(None, &[]);
        for nothing in ["", ":", "::", ".", "bin:../bin", "./x:"] {
            check(Some(nothing), &[]);
        }
        check(Some(":/a:b:/c/../d:"), &["/a", "/c/../d"]);
    }

    #[test]
    fn a_program_is_a_file_that_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let in_it = [folder.path().to_owned()];
        let found = |name: &str| find(&in_it, name).ok();
        std::fs::write(folder.path().join("text"), "").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found("program"), Some(program));
        for other in ["text", "folder", "missing", "", "./program", "../program", "/bin/sh"] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(find(&in_it, "x").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
