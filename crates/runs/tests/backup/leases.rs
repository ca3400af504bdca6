//! Files that another program holds a write lease on, as a file server does.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::tempdir;

use crate::harness::{options, run_clean};
use crate::tools::gnu_names;

/// The state of a lease from fcntl(2): `F_WRLCK` while no program wants the file, otherwise the
/// requested state. Linux grants leases to the process, which also runs the backup of these tests:
/// its own open breaks the lease like any other.
#[allow(unsafe_code, reason = "no library has a safe wrapper for leases")]
fn lease(file: &File, command: i32, kind: i32) -> i32 {
    // SAFETY: no memory is passed.
    unsafe { libc::fcntl(file.as_raw_fd(), command, kind) }
}

/// Backs up a leased file, a folder of others around it; `answer` is called while it is wanted,
/// until it says that it is done.
fn check(answer: impl Fn(&File) -> bool + Send + Sync) {
    // SAFETY: no handler. The signal that a lease is wanted would end the process.
    #[allow(unsafe_code, reason = "std has no signals")]
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
    }
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "leased", "z"] {
        fs::write(tree.join(name), name).unwrap();
    }
    let held = File::options().read(true).write(true).open(tree.join("leased")).unwrap();
    assert_eq!(lease(&held, libc::F_SETLEASE, libc::F_WRLCK), 0, "this file system has leases");
    let done = AtomicBool::new(false);
    let target = folder.path().join("archive");
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let is_wanted = lease(&held, libc::F_GETLEASE, 0) != libc::F_WRLCK;
                if is_wanted && answer(&held) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let finished = run_clean(&options(&[&tree], &target));
        done.store(true, Ordering::SeqCst);
        finished
    });
    let names = gnu_names(&finished.archive);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names[1].ends_with("tree/a") && names[2].ends_with("tree/leased"), "{names:?}");
}

#[test]
fn a_holder_that_answers_late_is_waited_for() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    check(|held| {
        let is_enough = asked.fetch_add(1, Ordering::SeqCst) == 30;
        if is_enough {
            assert_eq!(lease(held, libc::F_SETLEASE, libc::F_UNLCK), 0);
        }
        is_enough
    });
}

/// The kernel takes the lease away after `/proc/sys/fs/lease-break-time` seconds, 45 as a rule.
#[test]
fn a_holder_that_never_answers_is_waited_for_as_long_as_the_kernel_does() {
    testkit::long_run!();
    check(|_| false);
}
