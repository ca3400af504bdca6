//! Pipes between other programs: who holds which end, and how full they are.
//!
//! A pipe that is full waits for its reader, an empty one for its writer, so that a look now and
//! then tells which program of a pipeline the others wait for. What is kept of a pipe is a handle
//! that only names it (`O_PATH`), which is neither reader nor writer. A look opens it for reading,
//! asks, and closes it at once: never for writing, since a reader of it would then not see its end,
//! and not for longer than that, since a writer whose reader has gone would not be told.
//!
//! Not here: pipes of other users, which only root can open, and sockets in the place of pipes,
//! which some shells use.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};

use rustix::fs::{CWD, Mode, OFlags};

/// More open files of a process are not looked at.
const FILES_MAX: usize = 256;

/// An end of a pipe that a process holds open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which pipe.
    pub inode: u64,
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

/// The ends of pipes that a process has open, if this one may look.
pub fn ends(process: u32) -> Vec<End> {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let end = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()?;
        let file = entry.file_name().to_str()?.parse().ok()?;
        // The link itself has the rights with which the file was opened (proc_pid_fd(5)).
        let mode = fs::symlink_metadata(entry.path()).ok()?.permissions().mode();
        let side = match mode & 0o600 {
            0o400 => Side::Read,
            0o200 => Side::Write,
            _ => return None,
        };
        Some(End { inode, file, side })
    };
    files.flatten().take(FILES_MAX).filter_map(end).collect()
}

/// Who holds which ends of one pipe, each process with what it is to whoever asks.
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
    /// A process with one of the ends.
    pub fn add(&mut self, owner: T, process: u32, end: End) {
        match end.side {
            Side::Write => drop(self.writers.insert(process, owner)),
            Side::Read => drop(self.readers.insert(process, (owner, end))),
        }
    }

    /// Who writes and who reads, if they are two, with a process and its end from which the pipe
    /// can be opened for reading. A process with both ends is about to give one away, or talks to
    /// itself.
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
    /// Bytes that it holds.
    pub capacity_bytes: u64,
}

impl Pipe {
    /// The pipe behind a process' open file. The process may have closed it and opened something
    /// else in its place, which is neither opened nor touched here.
    ///
    /// # Errors
    /// When it cannot be looked at, or is no pipe, or another one.
    pub fn of(process: u32, end: End) -> io::Result<Pipe> {
        let path = format!("/proc/{process}/fd/{}", end.file);
        let handle =
            interruptible::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let handle = File::from(handle);
        let found = handle.metadata()?;
        if !found.file_type().is_fifo() || found.ino() != end.inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Pipe { handle: handle.into() })
    }

    /// Looks.
    ///
    /// # Errors
    /// When it belongs to somebody else.
    pub fn look(&self) -> io::Result<Fill> {
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let reader = interruptible::openat(CWD, path, flags, Mode::empty())?;
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
        assert!(own.contains(&End { inode: end.inode, file: other, side: Side::Write }));
        let found = Pipe::of(std::process::id(), end).unwrap();
        (reader, writer, found)
    }

    #[test]
    fn what_is_written_is_seen_and_not_taken() {
        let (_reader, mut writer, found) = own_pipe();
        assert_eq!(found.look().unwrap().bytes, 0);
        writer.write_all(&[1; 5000]).unwrap();
        for _ in 0..2 {
            let fill = found.look().unwrap();
            assert_eq!((fill.bytes, fill.capacity_bytes), (5000, 65536));
        }
    }

    /// A handle that is kept is no reader: whoever writes is told that nobody reads any more.
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
        let end = |side| End { inode: 7, file: 1, side };
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
        let end = End { inode: 1, file: 0, side: Side::Read };
        assert!(Pipe::of(std::process::id(), end).is_err());
        assert!(ends(u32::MAX).is_empty());
    }
}
