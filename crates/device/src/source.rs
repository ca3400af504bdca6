//! What an archive is read from: a file, a block device, a pipe, standard input, a character
//! device.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};

/// Why a source cannot be read from.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The path cannot be opened.
    #[error("cannot open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The path is a directory or a socket.
    #[error("{} is {what}, not an archive", path.display())]
    NotReadable {
        path: PathBuf,
        /// The kind of object.
        what: &'static str,
    },
    /// Standard input is a terminal.
    #[error("standard input is a terminal, not an archive")]
    Terminal,
}

/// An opened source.
#[derive(Debug)]
pub struct Source {
    /// The open file.
    pub file: Arc<OwnedFd>,
    /// Name for messages.
    pub name: String,
    /// Length of a file or block device, which can be read at any offset; otherwise `None`.
    pub length_bytes: Option<u64>,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub fn open(path: &OsStr) -> Result<Source, SourceError> {
        let shown = PathBuf::from(path);
        let open_error = |source: io::Error| SourceError::Open { path: shown.clone(), source };
        let (file, name) = if path == "-" {
            if rustix::termios::isatty(rustix::stdio::stdin()) {
                return Err(SourceError::Terminal);
            }
            let file = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
                .map_err(|error| open_error(error.into()))?;
            (file, "standard input".to_owned())
        } else {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
            let file = base::interruptible::open(path, flags, Mode::empty())
                .map_err(|error| open_error(error.into()))?;
            (file, shown.display().to_string())
        };
        let status = rustix::fs::fstat(&file).map_err(|error| open_error(error.into()))?;
        let length_bytes = match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile if path != "-" => Some(status.st_size as u64),
            FileType::BlockDevice if path != "-" => {
                let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
                Some(end.map_err(|error| open_error(error.into()))?)
            }
            FileType::Directory => {
                return Err(SourceError::NotReadable { path: shown, what: "a directory" });
            }
            FileType::Socket => {
                return Err(SourceError::NotReadable { path: shown, what: "a socket" });
            }
            FileType::Fifo => {
                crate::pipe::enlarge(file.as_fd());
                None
            }
            _ => None,
        };
        Ok(Source { file: Arc::new(file), name, length_bytes })
    }

    /// The same file through a descriptor with flags of its own, if it can be opened again.
    pub fn reopen(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(base::interruptible::open(&*path, flags, Mode::empty())?)
    }
}
