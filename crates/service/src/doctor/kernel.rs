//! What Takeup uses of the kernel where it is there, each tried.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use base::failures::with_causes;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};

use super::FacilityAnswer;
use crate::failure::without_error_numbers;

pub(super) fn facilities() -> Vec<FacilityAnswer> {
    vec![
        facility(
            IO_URING,
            flow::backend::Choice::new(flow::backend::Engine::IoUring).map(|_| ()),
            "transfers use threads that call pread and pwrite",
        ),
        facility(
            "openat2",
            openat2(),
            "restore opens a path folder by folder, which is as safe and takes more calls",
        ),
        facility("statx", statx(), "file systems are asked by older calls"),
        facility(
            "O_TMPFILE in the folder for temporary files",
            unnamed_file(),
            "files that are not complete have a name for a while, and a crash can leave them",
        ),
        facility(FUSE, open_for_both("/dev/fuse"), "takeup sim cannot run"),
        facility(
            LOOP_DEVICES,
            open_for_both("/dev/loop-control"),
            "takeup sim disk --loop cannot run",
        ),
    ]
}

pub(super) const IO_URING: &str = "io_uring";
pub(super) const FUSE: &str = "FUSE";
pub(super) const LOOP_DEVICES: &str = "loop devices";

fn facility(name: &str, tried: io::Result<()>, without: &str) -> FacilityAnswer {
    let refused = tried.err().map(|error| without_error_numbers(&with_causes(&error)).to_string());
    FacilityAnswer { name: name.to_owned(), refused, without: without.to_owned() }
}

fn openat2() -> io::Result<()> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let root =
        base::interruptible::openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    base::interruptible::openat2(&root, ".", flags, Mode::empty(), resolve)?;
    Ok(())
}

fn statx() -> io::Result<()> {
    rustix::fs::statx(CWD, "/", AtFlags::empty(), StatxFlags::BASIC_STATS)?;
    Ok(())
}

fn unnamed_file() -> io::Result<()> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    base::interruptible::openat(CWD, &folder, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

/// Opening these two nodes changes nothing: a file system or a loop device begins with a further
/// call.
fn open_for_both(node: &str) -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open(Path::new(node))?;
    Ok(())
}
