//! The members and names in the archive: several sources, relative ones, excludes, other file
//! systems, the archive itself.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use archive::chunk::Compression;
use device::target::Existing;
use tempfile::{TempDir, tempdir};
use tree::FileSystems;

use crate::harness::{Finished, options, run, run_clean, try_run};
use crate::index::check_archive;
use crate::snapshot::{assert_same, snapshot};
use crate::tools::{gnu_extract, gnu_names, quiet};

fn folder_with(files: &[&str]) -> TempDir {
    let folder = tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file).unwrap();
    }
    folder
}

/// Names in the archive, without the path to the temporary folder in front.
fn names(finished: &Finished, folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.strip_prefix("/").unwrap().display());
    let all = gnu_names(&finished.archive).into_iter();
    all.map(|name| name.strip_prefix(&prefix).unwrap_or(&name).to_owned()).collect()
}

/// The working folder belongs to the whole process.
static WORKING_FOLDER: Mutex<()> = Mutex::new(());

fn in_folder<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    let _guard = WORKING_FOLDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder).unwrap();
    let result = work();
    std::env::set_current_dir(before).unwrap();
    result
}

#[test]
fn several_sources_in_the_order_given() {
    let folder = folder_with(&["b/2", "a/1", "c"]);
    let at = |name: &str| folder.path().join(name);
    let target = at("archive");
    let finished = run_clean(&options(&[&at("b"), &at("c"), &at("a")], &target));
    assert_eq!(names(&finished, folder.path()), ["b/", "b/2", "c", "a/", "a/1"]);
    check_archive(&finished, Compression::None);
}

#[test]
fn a_source_given_twice_comes_back_once() {
    let folder = folder_with(&["a/1", "a/2"]);
    let source = folder.path().join("a");
    std::fs::hard_link(source.join("1"), source.join("3")).unwrap();
    let target = folder.path().join("archive");
    let finished = run_clean(&options(&[&source, &source], &target));
    let into = folder.path().join("into");
    gnu_extract(&target, &into);
    let there = into.join(source.strip_prefix("/").unwrap());
    assert_same(&snapshot(&source), &snapshot(&there), "twice");
    check_archive(&finished, Compression::None);
}

#[test]
fn relative_sources_have_the_names_that_tar_gives_them() {
    let folder = folder_with(&["a/1", "d/a/2"]);
    let check = |working: &str, source: &str, expected: &[&str]| {
        in_folder(&folder.path().join(working), || {
            let target = folder.path().join("archive");
            let finished = run_clean(&options(&[Path::new(source)], &target));
            assert_eq!(names(&finished, folder.path()), expected, "{source} in {working}");
            std::fs::remove_file(target).unwrap();
        });
    };
    check("a", ".", &["./", "1"]);
    check("d", "..", &["./", "a/", "a/1", "d/", "d/a/", "d/a/2"]);
    check("d", "../a", &["a/", "a/1"]);
    check("d", "./a/", &["a/", "a/2"]);
    check("", "a/1", &["a/1"]);
    check("a", "../d/../a/1", &["a/1"]);
}

#[test]
fn excludes_leave_out_what_they_match() {
    let folder = folder_with(&["t/keep", "t/a.tmp", "t/cache/x", "t/sub/cache/y", "t/sub/b.tmp"]);
    let source = folder.path().join("t");
    let check = |excludes: &[&str], expected: &[&str]| {
        let target = folder.path().join("archive");
        let mut wanted = options(&[&source], &target);
        wanted.excludes = excludes.iter().map(|glob| (*glob).to_owned()).collect();
        let finished = run_clean(&wanted);
        assert_eq!(names(&finished, folder.path()), expected, "{excludes:?}");
        std::fs::remove_file(target).unwrap();
    };
    check(&["*.tmp", "cache"], &["t/", "t/keep", "t/sub/"]);
    check(
        &["/cache/"],
        &["t/", "t/a.tmp", "t/keep", "t/sub/", "t/sub/b.tmp", "t/sub/cache/", "t/sub/cache/y"],
    );
    check(&["*"], &["t/"]);
    let mut wanted = options(&[&source], &folder.path().join("archive"));
    wanted.excludes = vec!["a[".to_owned()];
    let error = try_run(&wanted).unwrap_err().to_string();
    assert!(error.starts_with("bad exclude glob: a["), "{error}");
}

#[test]
fn other_file_systems_are_entered_or_not() {
    testkit::require!(Mounts);
    let folder = folder_with(&["t/a", "t/mounted/below"]);
    let source = folder.path().join("t");
    let mount = Mount::tmpfs(&source.join("mounted"), "size=1m");
    std::fs::write(mount.0.join("inside"), "x").unwrap();
    let target = folder.path().join("archive");
    let mut wanted = options(&[&source], &target);
    let all = names(&run_clean(&wanted), folder.path());
    assert_eq!(all, ["t/", "t/a", "t/mounted/", "t/mounted/inside"]);
    wanted.file_systems = FileSystems::One;
    wanted.existing = Existing::Replace;
    let one = names(&run_clean(&wanted), folder.path());
    assert_eq!(one, ["t/", "t/a", "t/mounted/"]);
}

/// A mounted file system, until it is dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn tmpfs(at: &Path, options: &str) -> Mount {
        let mut mount = Command::new("mount");
        quiet(mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at));
        Mount(at.to_path_buf())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_socket_is_noted_and_nothing_else() {
    let folder = folder_with(&["t/a"]);
    let _listener = UnixListener::bind(folder.path().join("t/socket")).unwrap();
    let finished = run_clean(&options(&[&folder.path().join("t")], &folder.path().join("archive")));
    let notes = finished.notes();
    assert!(
        matches!(&notes[..], [(object, text)]
        if object.ends_with("t/socket") && text == "socket, not archived"),
        "{notes:?}"
    );
    assert_eq!(names(&finished, folder.path()), ["t/", "t/a"]);
}

#[test]
fn the_archive_does_not_swallow_itself() {
    let folder = folder_with(&["t/a", "t/z"]);
    let source = folder.path().join("t");
    let target = source.join("m.tar");
    let mut wanted = options(&[&source], &target);
    wanted.existing = Existing::Replace;
    let finished = run_clean(&wanted);
    assert_eq!(names(&finished, folder.path()), ["t/", "t/a", "t/z"]);
    assert_eq!(finished.notes().len(), 1, "the unfinished archive is seen and left out");
    // The second run finds the first one's archive as well, under a second name too.
    std::fs::hard_link(&target, source.join("other-name")).unwrap();
    let finished = run_clean(&wanted);
    assert_eq!(names(&finished, folder.path()), ["t/", "t/a", "t/z"]);
    let notes: Vec<String> = finished.notes().into_iter().map(|(_, text)| text).collect();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().any(|text| text.contains("is the archive itself")));
}

#[test]
fn a_target_that_is_a_source_is_refused() {
    let folder = folder_with(&["t/a"]);
    let file = folder.path().join("t/a");
    let mut wanted = options(&[&file], &file);
    wanted.existing = Existing::Replace;
    let error = try_run(&wanted).unwrap_err().to_string();
    assert_eq!(error, format!("{} is also the source", file.display()));
    assert_eq!(std::fs::read(&file).unwrap(), b"t/a");
}

#[test]
fn a_missing_source_stops_the_run_before_anything_is_written() {
    let folder = folder_with(&["t/a"]);
    let missing = folder.path().join("nowhere");
    let target = folder.path().join("archive");
    let error = try_run(&options(&[&folder.path().join("t"), &missing], &target)).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the source is there");
}

#[test]
fn a_device_as_target_stays_a_device_in_the_archive() {
    testkit::require!(Root);
    let folder = folder_with(&["t/a"]);
    let null = folder.path().join("t/null");
    crate::trees::mknod(&null, rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    let finished = run(&options(&[&folder.path().join("t")], &null));
    assert_eq!((finished.notes(), finished.report.members), (vec![], 3));
}
