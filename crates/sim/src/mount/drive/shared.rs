//! The drive as the files of the folder show it: its users, and the effect of each call.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base::failures::{lock, with_causes};
use device::tape::played::{self, Asked, PLAYED_REQUEST};
use device::tape::raw::RawTape;
use fuser::{Errno, OpenAccMode, OpenFlags, ReplyData};
use model::tape::generation::Generation;
use rustix::fs::OFlags;

use super::DriveMountSettings;
use super::mtio::{self, MTIOCGET, MTIOCPOS, MTIOCTOP};
use super::status::StatusSources;
use crate::mount::folder::{StatusFiles, part};
use crate::tape::{
    Cartridge, Glance, MediumFileError, OnClose, OpenDirection, OpenMode, Readiness, VirtualTape,
};

/// How long an open waits for the release of a closed file. The kernel sends it at once.
const RELEASE_WAIT: Duration = Duration::from_secs(2);

/// The drive and its users.
pub(super) struct SharedDrive {
    settings: DriveMountSettings,
    holder: Mutex<Holder>,
    released: Condvar,
    tape: Mutex<Open>,
    seen: Mutex<Seen>,
    pub(super) status_files: StatusFiles,
}

/// The user of the tape.
#[derive(Default)]
struct Holder {
    handle: Option<u64>,
    /// Its last call was a close, which may not have been the last close.
    may_be_gone: bool,
    /// The last close is in progress.
    closing: bool,
    handles: u64,
}

/// The open tape.
#[derive(Default)]
struct Open {
    tape: Option<VirtualTape>,
    buffer: Vec<u8>,
}

/// The last state for the status file, so that reading it does not wait for the drive.
struct Seen {
    glance: Glance,
    medium: Option<PathBuf>,
    trouble: Option<String>,
}

impl SharedDrive {
    pub(super) fn new(mut settings: DriveMountSettings) -> SharedDrive {
        let glance = settings.drive.glance();
        let medium = settings.medium.take();
        let seen = Seen { glance, medium, trouble: None };
        SharedDrive {
            settings,
            holder: Mutex::default(),
            released: Condvar::new(),
            tape: Mutex::default(),
            seen: Mutex::new(seen),
            status_files: StatusFiles::default(),
        }
    }

    // The tape.

    pub(super) fn open_tape(&self, flags: OpenFlags, on_close: OnClose) -> Result<u64, Errno> {
        let mode = OpenMode {
            direction: match flags.acc_mode() {
                OpenAccMode::O_RDONLY => OpenDirection::Read,
                OpenAccMode::O_WRONLY | OpenAccMode::O_RDWR => OpenDirection::ReadWrite,
            },
            readiness: match flags.0 & OFlags::NONBLOCK.bits() as i32 {
                0 => Readiness::Needed,
                _ => Readiness::NotNeeded,
            },
            on_close,
        };
        let mut holder = self.wait_for_release()?;
        let tape = self.settings.drive.open_raw(mode)?;
        holder.handles += 1;
        holder.handle = Some(holder.handles);
        holder.may_be_gone = false;
        lock(&self.tape).tape = Some(tape);
        Ok(holder.handles)
    }

    /// Waits while a program that closed the tape may still have it.
    fn wait_for_release(&self) -> Result<MutexGuard<'_, Holder>, Errno> {
        let end = Instant::now() + RELEASE_WAIT;
        let mut holder = lock(&self.holder);
        while holder.handle.is_some() {
            let left = end.saturating_duration_since(Instant::now());
            // The filemark of a close takes its time in the drive.
            let wait = if holder.closing { RELEASE_WAIT } else { left };
            if !(holder.may_be_gone || holder.closing) || wait.is_zero() {
                return Err(Errno::EBUSY);
            }
            holder = self
                .released
                .wait_timeout(holder, wait)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(holder, _)| holder);
        }
        Ok(holder)
    }

    pub(super) fn close_tape(&self, handle: u64) {
        {
            let mut holder = lock(&self.holder);
            if holder.handle != Some(handle) {
                return;
            }
            holder.closing = true;
        }
        let tape = lock(&self.tape).tape.take();
        if let Some(Err(error)) = tape.map(VirtualTape::close) {
            // The program is gone; the status shows the error.
            lock(&self.seen).trouble = Some(format!("close: {error}"));
        }
        self.look();
        let mut holder = lock(&self.holder);
        holder.handle = None;
        holder.closing = false;
        drop(holder);
        self.released.notify_all();
    }

    pub(super) fn settle(&self, handle: u64) -> Result<(), Errno> {
        let result = self.with_tape(handle, |open| open.tape()?.settle().map_err(Errno::from));
        let mut holder = lock(&self.holder);
        if holder.handle == Some(handle) {
            holder.may_be_gone = true;
        }
        result
    }

    pub(super) fn read_tape(&self, handle: u64, size: u32, reply: ReplyData) {
        let mut reply = Some(reply);
        let result = self.with_tape(handle, |open| {
            open.buffer.resize(size as usize, 0);
            let tape = open.tape.as_mut().ok_or(Errno::EBADF)?;
            let bytes = tape.read(&mut open.buffer)?;
            if let Some(reply) = reply.take() {
                reply.data(&open.buffer[..bytes]);
            }
            Ok(())
        });
        if let (Err(error), Some(reply)) = (result, reply) {
            reply.error(error);
        }
    }

    pub(super) fn write_tape(&self, handle: u64, data: &[u8]) -> Result<usize, Errno> {
        self.with_tape(handle, |open| Ok(open.tape()?.write(data)?))
    }

    pub(super) fn control_tape(
        &self,
        handle: u64,
        command: u32,
        input: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        self.with_tape(handle, |open| {
            let tape = open.tape()?;
            match command {
                MTIOCTOP => {
                    let (operation, count) = mtio::decode_operation(input).ok_or(Errno::EINVAL)?;
                    tape.operate_by_number(operation, count)?;
                    Ok(Vec::new())
                }
                MTIOCGET => Ok(mtio::encode_status(&tape.status()?)),
                MTIOCPOS => Ok(mtio::encode_position(tape.position()?)),
                PLAYED_REQUEST => {
                    let (command, asked) = played::decode_request(input).ok_or(Errno::EINVAL)?;
                    let mut data = Vec::new();
                    let answer = match asked {
                        Asked::For(wanted) => {
                            data.resize(wanted, 0);
                            tape.command(&command, &mut data)
                        }
                        Asked::With(data) => tape.command_with(&command, data).map(|()| 0),
                    };
                    Ok(played::encode_answer(&answer, &data))
                }
                _ => Err(Errno::ENOTTY),
            }
        })
    }

    fn with_tape<T>(
        &self,
        handle: u64,
        act: impl FnOnce(&mut Open) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        {
            let mut holder = lock(&self.holder);
            if holder.handle != Some(handle) {
                return Err(Errno::EBADF);
            }
            holder.may_be_gone = false;
        }
        let result = act(&mut lock(&self.tape));
        self.look();
        result
    }

    /// Records the state of the drive.
    fn look(&self) {
        let glance = self.settings.drive.glance();
        lock(&self.seen).glance = glance;
    }

    // The status.

    pub(super) fn open_status(&self) -> Result<u64, Errno> {
        let reading = self.settings.gauge.as_ref().map(|gauge| gauge.read());
        let seen = lock(&self.seen);
        let trouble = seen.trouble.as_ref().or(seen.glance.trouble.as_ref());
        let status = StatusSources {
            generation: &self.settings.generation,
            medium: seen.medium.as_deref(),
            glance: &seen.glance,
            reading: reading.as_ref(),
            trouble: trouble.map(String::as_str),
        };
        self.status_files.open(|| status.status())
    }

    // The medium.

    pub(super) fn read_medium(&self, offset: u64, size: u32, reply: ReplyData) {
        let mut text = Vec::new();
        if let Some(path) = &lock(&self.seen).medium {
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(b'\n');
        }
        reply.data(part(&text, offset, size));
    }

    /// Loads the medium file that `request` names; ejects if it names none. Not while a program has
    /// the tape open.
    pub(super) fn change_medium(&self, request: &[u8]) -> Result<(), Errno> {
        let _holder = self.wait_for_release()?;
        let path = Path::new(OsStr::from_bytes(request.trim_ascii()));
        // The file in the drive is locked: it must be ejected before it can be loaded again.
        drop(self.settings.drive.eject());
        lock(&self.seen).medium = None;
        let loaded = if path.as_os_str().is_empty() { Ok(()) } else { self.load(path) };
        self.look();
        loaded.map_err(|error| {
            lock(&self.seen).trouble = Some(with_causes(&error));
            Errno::EIO
        })
    }

    fn load(&self, path: &Path) -> Result<(), MediumFileError> {
        let wanted = &self.settings.new_medium;
        let cartridge = Cartridge::in_file(path, wanted.clone())?;
        if cartridge.density() != wanted.density {
            return Err(MediumFileError::OtherGeneration {
                path: path.to_owned(),
                found: generation_name(cartridge.density()),
                wanted: generation_name(wanted.density),
            });
        }
        if self.settings.is_read_only {
            cartridge.protect();
        }
        self.settings.drive.insert(cartridge);
        let mut seen = lock(&self.seen);
        seen.medium = Some(path.to_owned());
        seen.trouble = None;
        Ok(())
    }
}

/// The generation of a density code.
fn generation_name(density: u8) -> String {
    let known = Generation::of_density(density);
    known.map_or_else(|| format!("density {density:02x}h"), |one| one.name.to_owned())
}

impl Open {
    fn tape(&mut self) -> Result<&mut VirtualTape, Errno> {
        self.tape.as_mut().ok_or(Errno::EBADF)
    }
}
