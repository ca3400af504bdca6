//! Where tracefs is, or a mount of it that nobody else sees.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::trace::error::TraceError;
use crate::trace::format::EventFormat;
use crate::trace::page::Layout;

/// Where it is mounted, if it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The number of the first namespace of processes (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The file system through which the kernel is asked to record.
#[derive(Debug)]
pub struct Tracefs {
    folder: PathBuf,
    /// A mount of our own, which goes with its descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds it, or mounts it where no path leads to.
    ///
    /// # Errors
    /// When this process may not, when the kernel has none, and in a container whose numbers of
    /// processes are not those that are recorded.
    pub fn open() -> Result<Tracefs, TraceError> {
        numbers_are_the_kernels()?;
        let mut is_refused = false;
        for place in PLACES {
            match fs::read_dir(Path::new(place).join("instances")) {
                Ok(_) => return Ok(Tracefs { folder: place.into(), _mount: None }),
                Err(error) => is_refused |= error.kind() == io::ErrorKind::PermissionDenied,
            }
        }
        if is_refused {
            return Err(TraceError::NotAllowed);
        }
        let mount = mount().map_err(|error| match error {
            rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => TraceError::NotAllowed,
            error => TraceError::NoTracefs { source: error.into() },
        })?;
        let folder = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs { folder, _mount: Some(mount) })
    }

    /// That which is mounted there and nowhere else.
    ///
    /// # Errors
    /// As of [`Tracefs::open`], and when it is no tracefs.
    pub fn at(folder: &Path) -> Result<Tracefs, TraceError> {
        numbers_are_the_kernels()?;
        match fs::read_dir(folder.join("instances")) {
            Ok(_) => Ok(Tracefs { folder: folder.to_owned(), _mount: None }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(TraceError::NotAllowed)
            }
            Err(source) => Err(TraceError::NoTracefs { source }),
        }
    }

    /// A mount of its own, whether or not it is mounted elsewhere, for tests of it.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn mount() -> Result<Tracefs, TraceError> {
        let mount = mount().map_err(|error| TraceError::NoTracefs { source: error.into() })?;
        let folder = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs { folder, _mount: Some(mount) })
    }

    /// Removes what recordings of processes that were killed have left; how many of them are still
    /// there, among them those of `parent`, if it still runs.
    pub fn remove_left(&self, parent: Option<u32>) -> usize {
        crate::trace::instance::remove_left(&self.path("instances"), parent)
    }

    /// The path of one of its files.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }

    /// How pages are laid out.
    ///
    /// # Errors
    /// When it cannot be read, or makes no sense.
    pub(crate) fn layout(&self) -> Result<Layout, TraceError> {
        let path = self.path("events/header_page");
        // All of it in one read: a second one gets nothing (kernel/trace/trace_events.c).
        let mut text = vec![0; 4096];
        let read = File::open(&path).and_then(|mut file| file.read(&mut text));
        let length =
            read.map_err(|source| TraceError::File { what: "read", path: path.clone(), source })?;
        Layout::parse(&text[..length]).map_err(|why| TraceError::Format { path, why })
    }

    /// How an event is laid out; `None` where this kernel has no such event.
    ///
    /// # Errors
    /// When its file makes no sense.
    pub fn format(&self, system: &str, name: &str) -> Result<Option<EventFormat>, TraceError> {
        let path = self.path(&format!("events/{system}/{name}/format"));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TraceError::File { what: "read", path, source }),
        };
        EventFormat::parse(&text).map(Some).map_err(|why| TraceError::Format { path, why })
    }
}

/// In a container they are others than those that are recorded.
fn numbers_are_the_kernels() -> Result<(), TraceError> {
    let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match own.to_str() {
        Some(own) if own != FIRST_NAMESPACE => Err(TraceError::Container),
        _ => Ok(()),
    }
}

/// fsmount(2): a mount without a place in the tree.
fn mount() -> rustix::io::Result<OwnedFd> {
    let kind = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_NOSUID;
    rustix::mount::fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
