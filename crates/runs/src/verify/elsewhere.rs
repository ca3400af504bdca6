//! Suggests another folder if the one compared with has almost nothing of the archive: paths are
//! those of the archive, and one folder too deep or too high is easily typed.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use base::interruptible::{openat, openat2};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::findings::{Elsewhere, VerifyReport};

/// A suggestion needs this many compared members, all but one of them missing.
const NEXT_TO_NOTHING: u64 = 10;
/// Paths to look for, spread over the missing ones.
const SAMPLES: usize = 16;
/// Most folders above and below to look into.
const ABOVE_MAX: usize = 32;
const BELOW_MAX: usize = 1000;

/// The folder to suggest, if `against` has almost nothing of what was compared.
pub(crate) fn look(against: &Path, report: &VerifyReport) -> Option<Elsewhere> {
    let probably = || probably_meant(against, &report.missing.items);
    is_elsewhere(report).then(|| Elsewhere { probably: probably() })
}

/// Whether almost nothing of what was compared exists.
fn is_elsewhere(report: &VerifyReport) -> bool {
    let compared = report.checked.compared;
    let found = compared - report.missing.total.min(compared);
    compared > 0 && found * NEXT_TO_NOTHING <= compared
}

/// The folder above or directly below `against` that has most of the missing paths, if it has at
/// least half of them.
fn probably_meant(against: &Path, missing: &[Vec<u8>]) -> Option<PathBuf> {
    let every = missing.len().div_ceil(SAMPLES).max(1);
    let samples: Vec<&[u8]> = missing.iter().step_by(every).map(Vec::as_slice).collect();
    let whole = against.canonicalize().ok()?;
    let above = whole.ancestors().skip(1).take(ABOVE_MAX).map(Path::to_owned);
    let entries = whole.read_dir().ok()?.take(BELOW_MAX).flatten();
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let below = entries.filter(is_folder).map(|entry| entry.path());
    let counted = above.chain(below).map(|folder| (there(&folder, &samples), folder));
    let (found, folder) = counted.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (found > 0 && 2 * found >= samples.len()).then_some(folder)
}

/// How many of these are below a folder.
fn there(folder: &Path, paths: &[&[u8]]) -> usize {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, folder, flags, Mode::empty()) else { return 0 };
    paths.iter().filter(|path| is_there(&folder, path)).count()
}

/// The path comes from an archive, and must not lead outside.
fn is_there(folder: &OwnedFd, path: &[u8]) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(folder, path, flags, Mode::empty(), beneath).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_that_has_what_is_missing_is_named() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/srv/data")).unwrap();
        std::fs::create_dir_all(root.join("other")).unwrap();
        let names: Vec<Vec<u8>> = (0..40).map(|n| format!("srv/data/f{n}").into_bytes()).collect();
        for name in &names {
            let name = std::str::from_utf8(name).unwrap();
            std::fs::write(root.join("home").join(name), name).unwrap();
        }
        let home = Some(root.join("home"));
        for too_deep in ["home/srv", "home/srv/data"] {
            assert_eq!(probably_meant(&root.join(too_deep), &names), home);
        }
        assert_eq!(probably_meant(&root, &names), home, "one too high");
        assert_eq!(probably_meant(&root.join("other"), &names), None);
        // Whatever an archive calls its members.
        let outside = [b"../home/srv".to_vec(), b"/".to_vec(), Vec::new()];
        assert_eq!(probably_meant(&root.join("other"), &outside), None);
        assert_eq!(probably_meant(&root.join("none"), &names), None);
        assert_eq!(probably_meant(&root, &[]), None);
    }

    #[test]
    fn a_folder_is_another_one_only_where_next_to_nothing_is_there() {
        let tree = tempfile::tempdir().unwrap();
        let of = |compared: u64, missing: u64| {
            let mut report = VerifyReport::default();
            report.checked.compared = compared;
            report.missing.total = missing;
            look(tree.path(), &report)
        };
        let elsewhere = Some(Elsewhere { probably: None });
        assert_eq!(of(0, 0), None);
        assert_eq!(of(100, 0), None);
        assert_eq!(of(100, 89), None);
        assert_eq!(of(100, 90), elsewhere);
        assert_eq!(of(1, 1), elsewhere);
    }
}
