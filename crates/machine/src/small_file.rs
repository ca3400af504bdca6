//! Small files that are read as a whole: a plan that the user names, the status of a virtual drive.
//! Their size is limited, and opening a file that Takeup looks for by itself never blocks.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

/// Longer than any plan.
const BYTES_MAX: u64 = 16 << 20;

/// The text of a file that the user named, which may be a pipe.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or is larger than 16 MiB.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = up_to_limit(File::open(path)?)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The content of a regular file that Takeup looks for by itself. If a pipe is in its place, this
/// does not wait for it.
///
/// # Errors
/// When there is no such file, or it is larger than 16 MiB.
pub fn regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = base::interruptible::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    up_to_limit(File::from(file))
}

fn up_to_limit(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it is larger than 16 MiB"));
    }
    Ok(bytes)
}
