//! A loop device over a file: the ioctls of `linux/loop.h`.
//!
//! The device is opened before the file system with its file is mounted, and that order matters if
//! this process is killed. The kernel closes the files of a dead process from the highest number
//! down (`task_work_run` takes the last one first). If the loop device's number is below that of
//! the FUSE connection, the connection ends first, and what the loop device still has to write
//! fails. The other way round it would wait for an answer from the ending process.
//!
//! The device detaches itself when its last user closes it (`LO_FLAGS_AUTOCLEAR`), and this process
//! is one of the users: nothing remains, however it ends.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::io::{DupFlags, dup3};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter};

use super::backing::Access;
use crate::mount::MountError;

const CONTROL: &str = "/dev/loop-control";
/// Attempts, since another program may take the free device first.
const TRIES_MAX: usize = 16;

const LOOP_CONFIGURE: Opcode = 0x4c0a;
const LOOP_CTL_GET_FREE: Opcode = 0x4c82;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

const NAME_BYTES: usize = 64;

/// `struct loop_config` with the `struct loop_info64` in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    file: u32,
    block_bytes: u32,
    device: u64,
    inode: u64,
    raw_device: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encryption: [u32; 2],
    flags: u32,
    file_name: [u8; NAME_BYTES],
    encryption_name: [u8; NAME_BYTES],
    encryption_key: [u8; 32],
    init: [u64; 2],
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopConfig>() == 304);

/// Asks for the number of a free device.
struct GetFree;

// SAFETY: LOOP_CTL_GET_FREE takes no argument and answers a number (loop(4)).
unsafe impl Ioctl for GetFree {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        out: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<i32> {
        Ok(out)
    }
}

/// A loop device; dropping it detaches it as soon as no other program has it open.
#[derive(Debug)]
pub struct LoopDevice {
    device: File,
    path: PathBuf,
    access: Access,
}

impl LoopDevice {
    /// Opens a free device. Another program may still take it.
    ///
    /// # Errors
    /// When this user cannot get one.
    pub fn reserve(access: Access) -> Result<LoopDevice, MountError> {
        let control = |source| MountError::LoopControl { source };
        let file = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(control)?;
        // SAFETY: the ioctl of this file that takes no argument.
        let number = unsafe { rustix::ioctl::ioctl(&file, GetFree) };
        // Its number becomes the device's.
        drop(file);
        let number = number.map_err(|error| control(error.into()))?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(access == Access::ReadWrite).open(&path);
        let device = opened.map_err(|source| MountError::Open { path: path.clone(), source })?;
        Ok(LoopDevice { device, path, access })
    }

    /// Attaches a file with direct I/O, so that only the settings of the loop device affect
    /// requests. `name` is what `losetup` shows.
    ///
    /// # Errors
    /// When the device does not accept it.
    pub fn attach(mut self, file: BorrowedFd<'_>, name: &Path) -> Result<LoopDevice, MountError> {
        for _ in 1..TRIES_MAX {
            match self.configure(file, name) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    self = self.replaced()?;
                }
                configured => return self.checked(configured),
            }
        }
        let configured = self.configure(file, name);
        self.checked(configured)
    }

    /// Another free device, with this one's descriptor, so that the order of descriptors stays the
    /// same.
    fn replaced(self) -> Result<LoopDevice, MountError> {
        let LoopDevice { device, path, access } = LoopDevice::reserve(self.access)?;
        let mut descriptor = OwnedFd::from(self.device);
        dup3(&device, &mut descriptor, DupFlags::CLOEXEC)
            .map_err(|error| MountError::Open { path: path.clone(), source: error.into() })?;
        Ok(LoopDevice { device: File::from(descriptor), path, access })
    }

    /// Resets the queue settings that decide the order and size of requests to the kernel's
    /// defaults: a loop device keeps them from one file to the next.
    pub fn forget_settings(&self) {
        let queue = self.in_sysfs().join("queue");
        let as_made = [
            // The kernel never lowers it by itself, and raises it later to two of the largest
            // requests of a disk with heads (`blk_apply_bdi_limits`).
            ("read_ahead_kb", "128"),
            ("scheduler", "none"),
            ("nomerges", "0"),
            ("nr_requests", "128"),
            // The kernel's own choice; older kernels refuse the setting.
            ("max_sectors_kb", "0"),
        ];
        for (setting, value) in as_made {
            // If `/sys` is read-only, the settings were not changed, either.
            let _ = fs::write(queue.join(setting), value);
        }
    }

    fn in_sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().unwrap_or_default())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the descriptor to the lowest free number, if that is lower than its own.
    ///
    /// # Errors
    /// When this process may open no more files.
    pub(super) fn take_lowest_number(&mut self) -> Result<(), MountError> {
        let path = &self.path;
        let opened = self.device.try_clone();
        let other = opened.map_err(|source| MountError::Open { path: path.clone(), source })?;
        if other.as_raw_fd() < self.number() {
            self.device = other;
        }
        Ok(())
    }

    /// Number of the descriptor.
    pub(super) fn number(&self) -> RawFd {
        self.device.as_raw_fd()
    }

    fn configure(&self, file: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
        let read_only = match self.access {
            Access::ReadWrite => 0,
            Access::ReadOnly => LO_FLAGS_READ_ONLY,
        };
        let mut config = LoopConfig {
            file: u32::try_from(file.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?,
            block_bytes: 512,
            device: 0,
            inode: 0,
            raw_device: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encryption: [0; 2],
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO | read_only,
            file_name: [0; NAME_BYTES],
            encryption_name: [0; NAME_BYTES],
            encryption_key: [0; 32],
            init: [0; 2],
            reserved: [0; 8],
        };
        let bytes = name.as_os_str().as_encoded_bytes();
        let shown = bytes.len().min(NAME_BYTES - 1);
        config.file_name[..shown].copy_from_slice(&bytes[..shown]);
        // SAFETY: LOOP_CONFIGURE reads a loop_config, whose layout and size are those above.
        let setter = unsafe { Setter::<LOOP_CONFIGURE, LoopConfig>::new(config) };
        // SAFETY: the ioctl of a loop device; the file stays open during the call.
        unsafe { rustix::ioctl::ioctl(self.device.as_fd(), setter) }.map_err(io::Error::from)
    }

    fn checked(self, configured: io::Result<()>) -> Result<LoopDevice, MountError> {
        configured.map_err(|source| MountError::LoopAttach { path: self.path.clone(), source })?;
        // The kernel falls back silently if a file does not support it.
        let shown = self.in_sysfs().join("loop/dio");
        match fs::read_to_string(shown) {
            Ok(text) if text.trim() == "0" => Err(MountError::LoopBuffered { path: self.path }),
            _ => {
                // Left attached by an earlier user, or by a killed virtual disk.
                self.forget_settings();
                Ok(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that are closed meanwhile leave lower numbers, and others higher ones.
    #[test]
    fn a_device_that_was_taken_is_replaced_under_its_number() {
        testkit::require!(LoopDevices);
        let lower = File::open("/dev/null").unwrap();
        let device = LoopDevice::reserve(Access::ReadWrite).unwrap();
        let number = device.number();
        drop(lower);
        let replaced = device.replaced().unwrap();
        assert_eq!(replaced.number(), number);
        let open = fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        assert_eq!(open, replaced.path());
    }
}
