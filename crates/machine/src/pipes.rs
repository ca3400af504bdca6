//! Pipes between other programs: which process holds which end, and how full they are.
//!
//! A full pipe waits for its reader, an empty one for its writer. So samples of the fill show which
//! program of a pipeline the others wait for. We keep a handle that only names the pipe (`O_PATH`)
//! and is neither reader nor writer. Each sample opens the pipe for reading, queries it, and closes
//! it at once. It never opens it for writing, because a reader would then not see the end of the
//! data. It does not keep it open, because a writer would then not notice that its reader has gone.
//!
//! Named pipes count as pipes once both sides have opened them. A process that waits in open(2) for
//! the other side is not visible here.
//!
//! Not here: pipes of other users, which only root can open, and sockets that some shells use
//! instead of pipes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, makedev, statx};

/// More open files of a process are not looked at.
const FILES_MAX: usize = 256;

/// Which pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// Device of the file system that holds its name; `None` for a pipe without a name.
    device: Option<u64>,
    inode: u64,
}

impl Number {
    /// Whether it has a name in a folder.
    pub fn is_named(self) -> bool {
        self.device.is_some()
    }

    /// From what an open file of a process shows and links to.
    fn of(open_file: &Path) -> Option<Number> {
        let link = fs::read_link(open_file).ok()?;
        let link = link.as_os_str().to_str()?;
        if let Some(inode) = link.strip_prefix("pipe:[") {
            return Some(Number { device: None, inode: inode.strip_suffix(']')?.parse().ok()? });
        }
        if !link.starts_with('/') {
            return None;
        }
        // Cached attributes are enough, and do not wait for a server that does not answer.
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let found = statx(CWD, open_file, flags, StatxFlags::TYPE | StatxFlags::INO).ok()?;
        let is_pipe = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Fifo;
        let device = makedev(found.stx_dev_major, found.stx_dev_minor);
        is_pipe.then_some(Number { device: Some(device), inode: found.stx_ino })
    }
}

/// An end of a pipe that a process holds open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub pipe: Number,
    /// Number of the open file.
    pub file: u32,
    /// Which end.
    pub side: Side,
}

/// An end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Bytes come out.
    Read,
    /// Bytes go in.
    Write,
}

/// The ends of pipes that a process has open, if this process may look.
pub fn ends(process: u32) -> Vec<End> {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let end = |entry: fs::DirEntry| {
        let pipe = Number::of(&entry.path())?;
        let file = entry.file_name().to_str()?.parse().ok()?;
        // The link itself has the rights with which the file was opened (proc_pid_fd(5)).
        let mode = fs::symlink_metadata(entry.path()).ok()?.permissions().mode();
        let side = match mode & 0o600 {
            0o400 => Side::Read,
            0o200 => Side::Write,
            _ => return None,
        };
        Some(End { pipe, file, side })
    };
    files.flatten().take(FILES_MAX).filter_map(end).collect()
}

/// Which process holds which ends of one pipe; each process with the caller's own value.
#[derive(Clone, Debug)]
pub struct Holders<T> {
    writers: BTreeMap<u32, T>,
    readers: BTreeMap<u32, (T, End)>,
}

impl<T> Default for Holders<T> {
    fn default() -> Holders<T> {
        Holders { writers: BTreeMap::new(), readers: BTreeMap::new() }
    }
}

impl<T: Copy + PartialEq> Holders<T> {
    /// Adds a process with one of the ends.
    pub fn add(&mut self, owner: T, process: u32, end: End) {
        match end.side {
            Side::Write => drop(self.writers.insert(process, owner)),
            Side::Read => drop(self.readers.insert(process, (owner, end))),
        }
    }

    /// The writer and the reader, if they are two, and a process and end through which the pipe can
    /// be opened for reading. A process with both ends is about to pass one on, or talks to itself.
    pub fn sides(&self) -> Option<((T, T), u32, End)> {
        let writer = self.writers.iter().find(|(it, _)| !self.readers.contains_key(it));
        let reader = self.readers.iter().find(|(it, _)| !self.writers.contains_key(it));
        let ((_, &from), (&process, &(to, end))) = (writer?, reader?);
        (from != to).then_some(((from, to), process, end))
    }
}

/// A pipe, by name only.
#[derive(Debug)]
pub struct Pipe {
    handle: OwnedFd,
}

/// What is in a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Bytes that wait for the reader.
    pub bytes: u64,
    pub capacity_bytes: u64,
}

impl Pipe {
    /// The pipe behind an open file of a process. The process may have closed it and opened
    /// something else at the same number; that is neither opened nor touched.
    ///
    /// # Errors
    /// When it cannot be read, is not a pipe, or is another pipe.
    pub fn of(process: u32, end: End) -> io::Result<Pipe> {
        let path = format!("/proc/{process}/fd/{}", end.file);
        let handle =
            base::interruptible::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let handle = File::from(handle);
        let found = handle.metadata()?;
        let is_on_device = end.pipe.device.is_none_or(|device| device == found.dev());
        if !found.file_type().is_fifo() || found.ino() != end.pipe.inode || !is_on_device {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Pipe { handle: handle.into() })
    }

    /// Looks.
    ///
    /// # Errors
    /// When the pipe belongs to another user.
    pub fn look(&self) -> io::Result<Fill> {
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let reader = base::interruptible::openat(CWD, path, flags, Mode::empty())?;
        Ok(Fill {
            bytes: rustix::io::ioctl_fionread(&reader)?,
            capacity_bytes: rustix::pipe::fcntl_getpipe_size(&reader)? as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Write as _, pipe};

    use super::*;

    fn own_pipe() -> (PipeReader, PipeWriter, Pipe) {
        let (reader, writer) = pipe().unwrap();
        let own = ends(std::process::id());
        let number = u32::try_from(reader.as_raw_fd()).unwrap();
        let end = *own.iter().find(|end| end.file == number).unwrap();
        assert_eq!(end.side, Side::Read);
        let other = u32::try_from(writer.as_raw_fd()).unwrap();
        assert!(own.contains(&End { pipe: end.pipe, file: other, side: Side::Write }));
        let found = Pipe::of(std::process::id(), end).unwrap();
        (reader, writer, found)
    }

    #[test]
    fn what_is_written_is_seen_and_not_taken() {
        let (_reader, mut writer, found) = own_pipe();
        assert_eq!(found.look().unwrap().bytes, 0);
        writer.write_all(&[1; 5000]).unwrap();
        // 16 pages, unless told otherwise (pipe(7)).
        let capacity_bytes = 16 * rustix::param::page_size() as u64;
        for _ in 0..2 {
            let fill = found.look().unwrap();
            assert_eq!((fill.bytes, fill.capacity_bytes), (5000, capacity_bytes));
        }
    }

    #[test]
    fn a_pipe_with_a_name_is_found_by_both_its_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("named");
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        // Neither open waits for the other side.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = File::from(base::interruptible::open(&path, flags, Mode::empty()).unwrap());
        let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let inode = reader.metadata().unwrap().ino();
        let own = ends(std::process::id());
        let found: Vec<&End> = own.iter().filter(|it| it.pipe.inode == inode).collect();
        assert_eq!(found.len(), 2, "{own:?}");
        assert!(found.iter().all(|it| it.pipe == found[0].pipe && it.pipe.is_named()));
        assert_ne!(found[0].side, found[1].side);
        writer.write_all(&[1; 300]).unwrap();
        let pipe = Pipe::of(std::process::id(), *found[0]).unwrap();
        assert_eq!(pipe.look().unwrap().bytes, 300);
        let elsewhere = Number { device: Some(0), inode };
        assert!(Pipe::of(std::process::id(), End { pipe: elsewhere, ..*found[0] }).is_err());
    }

    /// A kept handle is not a reader: a writer still gets EPIPE when the last reader has gone.
    #[test]
    fn a_kept_handle_holds_nothing_open() {
        let (reader, mut writer, found) = own_pipe();
        found.look().unwrap();
        drop(reader);
        assert_eq!(writer.write(&[1]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        found.look().unwrap();
    }

    #[test]
    fn who_has_both_ends_is_on_neither_side() {
        let pipe = Number { device: None, inode: 7 };
        let end = |side| End { pipe, file: 1, side };
        let mut holders = Holders::default();
        holders.add("shell", 10, end(Side::Read));
        holders.add("shell", 10, end(Side::Write));
        holders.add("tar", 11, end(Side::Write));
        assert_eq!(holders.sides(), None);
        holders.add("gzip", 12, end(Side::Read));
        assert_eq!(holders.sides(), Some((("tar", "gzip"), 12, end(Side::Read))));
    }

    #[test]
    fn another_file_in_its_place_is_not_taken_for_it() {
        let pipe = Number { device: None, inode: 1 };
        let end = End { pipe, file: 0, side: Side::Read };
        assert!(Pipe::of(std::process::id(), end).is_err());
        assert!(ends(u32::MAX).is_empty());
    }
}
