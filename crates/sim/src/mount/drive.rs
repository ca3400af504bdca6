//! A folder with a virtual tape drive in it.
//!
//! ```text
//! nst0      the drive; stays in position when closed
//! st0       the same drive; rewinds when closed
//! status    its state, as JSON; made anew at each opening
//! medium    the path of the loaded medium file; a path written to it is loaded
//! ```
//!
//! The two tape files are opened for direct I/O, so that a write(2) is one request and a read(2)
//! gets the length of the answer. They cannot be sought, since programs would take a seek for a
//! motion. The ioctls of `linux/mtio.h` arrive as restricted ioctls.
//!
//! Two things differ from a device node. The kernel does not report which close of a descriptor is
//! the last one. So each close waits until everything is on the medium, the filemark follows when
//! the file is released, and an open waits for that. And a block larger than FUSE passes in one
//! piece (`fs.fuse.max_pages_limit`) would arrive in two: see [`DriveMount::block_bytes_max`].
//!
//! Not here: the drive, see [`crate::tape`].

mod mtio;
mod shared;
mod status;

use std::io;
use std::path::{Path, PathBuf};

use fuser::{
    Errno, FopenFlags, OpenFlags, ReplyData, ReplyEmpty, ReplyWrite, Session, SessionUnmounter,
};
use storage::settings::fuse;

use super::folder::{Attributes, Files, Folder};
use super::{MountAs, STATUS_NAME, serve_at_once};
use crate::mount::MountError;
use crate::tape::real_time::Gauge;
use crate::tape::{CartridgeSettings, OnClose, VirtualDrive};
use shared::SharedDrive;

pub use self::status::{DriveMotion, DriveParameter, DriveStatus, DriveTime, ParameterValue};

/// A drive to mount.
pub struct DriveMountSettings {
    /// The drive, with or without a cartridge.
    pub drive: VirtualDrive,
    /// Its timing, if it has one.
    pub gauge: Option<Gauge>,
    /// Name of its generation.
    pub generation: String,
    /// The loaded medium file.
    pub medium: Option<PathBuf>,
    /// The properties of a new medium file.
    pub new_medium: CartridgeSettings,
    /// A generation that the drive reads but does not write.
    pub is_read_only: bool,
}

/// A mounted drive.
pub struct DriveMount {
    session: Session<Folder<SharedDrive>>,
    path: PathBuf,
    block_bytes_max: u64,
}

/// Ends a mounted drive, from another thread.
pub struct DriveUnmounter {
    inner: SessionUnmounter,
    path: PathBuf,
    gauge: Option<Gauge>,
}

impl DriveMount {
    /// Mounts a drive on a folder. Blocks of up to `block_bytes` pass in one piece if the kernel
    /// accepts that setting.
    ///
    /// # Errors
    /// When FUSE does not mount it.
    pub fn new(
        settings: DriveMountSettings,
        path: &Path,
        block_bytes: u64,
    ) -> Result<DriveMount, MountError> {
        // The limit counts when the connection is made; afterwards it is restored.
        let limit = fuse::raise(block_bytes);
        let block_bytes_max = limit.block_bytes();
        let drive = settings.drive.clone();
        drive.change_settings(|settings| {
            let most = u32::try_from(block_bytes_max).unwrap_or(u32::MAX);
            settings.block_bytes_max = settings.block_bytes_max.min(most);
        });
        let mount_as = MountAs { what: "drive", subtype: "tape", options: Vec::new() };
        let session = mount_as.mount(SharedDrive::new(settings), path)?;
        drop(limit);
        Ok(DriveMount { session, path: path.to_owned(), block_bytes_max })
    }

    /// The largest block that comes in one piece.
    pub fn block_bytes_max(&self) -> u64 {
        self.block_bytes_max
    }

    /// Returns what ends [`DriveMount::run`].
    pub fn unmounter(&mut self, gauge: Option<Gauge>) -> DriveUnmounter {
        DriveUnmounter { inner: self.session.unmount_callable(), path: self.path.clone(), gauge }
    }

    /// Answers requests until the folder is unmounted.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn run(self) -> Result<(), MountError> {
        let path = self.path;
        serve_at_once();
        super::serve(self.session).map_err(|source| MountError::Connection { path, source })
    }
}

impl DriveUnmounter {
    /// Unmounts. A program that has a file open keeps it until it closes it or this process ends;
    /// no program can open one any more, and no command waits for model time.
    ///
    /// # Errors
    /// When the folder cannot even be detached.
    pub fn unmount(&mut self) -> io::Result<()> {
        if let Some(gauge) = &self.gauge {
            gauge.stop();
        }
        super::unmount(&mut self.inner, &self.path)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Tape(OnClose),
    Status,
    Medium,
}

impl Files for SharedDrive {
    type File = File;
    const NAMES: &'static [(File, &'static str)] = &[
        (File::Tape(OnClose::Stay), "nst0"),
        (File::Tape(OnClose::Rewind), "st0"),
        (File::Status, STATUS_NAME),
        (File::Medium, "medium"),
    ];

    fn attributes(&self, file: File) -> Attributes {
        let permissions = if file == File::Status { 0o444 } else { 0o666 };
        Attributes { permissions, bytes: 0 }
    }

    fn open(&self, file: File, flags: OpenFlags) -> Result<(u64, FopenFlags), Errno> {
        let direct = FopenFlags::FOPEN_DIRECT_IO;
        Ok(match file {
            File::Tape(on_close) => {
                (self.open_tape(flags, on_close)?, direct | FopenFlags::FOPEN_NONSEEKABLE)
            }
            File::Status => (self.open_status()?, direct),
            File::Medium => (0, direct),
        })
    }

    fn read(&self, file: File, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        match file {
            File::Tape(_) => self.read_tape(handle, size, reply),
            File::Status => self.status_files.read(handle, offset, size, reply),
            File::Medium => self.read_medium(offset, size, reply),
        }
    }

    fn write(&self, file: File, handle: u64, _offset: u64, data: &[u8], reply: ReplyWrite) {
        let written = match file {
            File::Tape(_) => self.write_tape(handle, data),
            File::Status => Err(Errno::EACCES),
            File::Medium => self.change_medium(data).map(|()| data.len()),
        };
        match written {
            Ok(bytes) => reply.written(bytes as u32),
            Err(error) => reply.error(error),
        }
    }

    fn control(
        &self,
        file: File,
        handle: u64,
        command: u32,
        input: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        match file {
            File::Tape(_) => self.control_tape(handle, command, input),
            _ => Err(Errno::ENOTTY),
        }
    }

    fn close(&self, file: File, handle: u64) -> Result<(), Errno> {
        match file {
            File::Tape(_) => self.settle(handle),
            _ => Ok(()),
        }
    }

    fn synchronise(&self, file: File, reply: ReplyEmpty) {
        match file {
            // The tape driver has no fsync.
            File::Tape(_) => reply.error(Errno::EINVAL),
            _ => reply.ok(),
        }
    }

    fn release(&self, file: File, handle: u64) {
        match file {
            File::Tape(_) => self.close_tape(handle),
            File::Status => self.status_files.close(handle),
            File::Medium => {}
        }
    }
}
