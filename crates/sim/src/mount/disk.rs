//! A folder with a virtual disk in it, for any program: FUSE, and a loop device over it.
//!
//! ```text
//! disk      the disk: each call is a request, past the page cache
//! cached    the same bytes through the page cache, with read-ahead
//! status    its state, as JSON; made anew at each opening
//! ```
//!
//! Exactly one layer must add read-ahead, since each of them could. `disk` has none. Through the
//! loop device it is the loop device's own (`/sys/block/loopN/queue`), with its scheduler and its
//! limits, because the loop device does direct I/O to `disk` and so any number of requests at once.
//! `cached` has the read-ahead of the folder (`/sys/class/bdi/0:N`), like a network file system. So
//! a request costs the model's time once, and one setting takes effect.
//!
//! The loop device opens `disk` through a clone of the mount. So the folder itself is not busy, and
//! unmounting it ends the disk.
//!
//! Not here: the timing, see [`DiskModel`](model::disk::DiskModel).

use rustix::fd::AsRawFd;
use std::os::fd::AsFd;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
mod backing;
mod files;
mod loop_device;
mod names;
mod queue;
mod status;
mod tally;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base::failures::lock;
use fuser::{MountOption, Session, SessionUnmounter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{OpenTreeFlags, open_tree};
use storage::settings::fuse;

pub use self::backing::{Access, Backing};
pub use self::loop_device::LoopDevice;
pub use self::queue::Clock;
pub use self::status::{DiskProperties, DiskStatus, DiskTime, HeadProperties};
use super::folder::Folder;
use super::{MountAs, MountError};
use files::DiskFiles;
use model::disk::DiskParameters;
pub use names::{CACHED_NAME, DISK_NAME};
use queue::{PROBE, Queue, be_a_device};

/// Whether there is a loop device over the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopChoice {
    /// A loop device that detaches itself.
    Attach,
    /// Files only.
    None,
}

/// A disk to mount.
#[derive(Debug)]
pub struct DiskSettings {
    /// Its name in `status`.
    pub name: String,
    /// The properties of the disk.
    pub parameters: DiskParameters,
    /// Where its bytes are stored.
    pub backing: Backing,
    /// How time passes.
    pub clock: Clock,
    /// Whether there is a loop device.
    pub loop_device: LoopChoice,
}

/// A mounted disk.
pub struct DiskMount {
    session: JoinHandle<io::Result<()>>,
    path: PathBuf,
    unmounter: DiskUnmounter,
    loop_path: Option<PathBuf>,
}

/// Ends a disk, from another thread.
#[derive(Clone)]
pub struct DiskUnmounter {
    inner: Arc<Mutex<SessionUnmounter>>,
    path: PathBuf,
    queue: Arc<Queue>,
    loop_device: Arc<Mutex<Option<LoopDevice>>>,
}

/// Its name in messages.
const WHAT: &str = "disk";
/// Calls that measure the time of a call itself.
const ROUND_TRIPS: usize = 64;
/// How often it is mounted until its descriptors are in order.
const MOUNTS_MAX: usize = 16;
/// The largest call that is one request, if the kernel accepts that setting.
const REQUEST_BYTES_MAX: u64 = 8 << 20;

impl DiskMount {
    /// Mounts a disk on a folder, and serves it until it is unmounted.
    ///
    /// # Errors
    /// When FUSE does not mount it or there is no loop device; then nothing remains of it.
    pub fn new(settings: DiskSettings, path: &Path) -> Result<DiskMount, MountError> {
        let path = std::path::absolute(path).map_err(|source| MountError::Mount {
            what: WHAT,
            path: path.to_owned(),
            source,
        })?;
        let access = settings.backing.access();
        let options = match access {
            Access::ReadOnly => vec![MountOption::RO],
            Access::ReadWrite => Vec::new(),
        };
        // The limit counts when the connection is made; afterwards it is restored.
        let limit = fuse::raise(REQUEST_BYTES_MAX);
        let request_bytes = limit.block_bytes().min(REQUEST_BYTES_MAX);
        let queue = Queue::new(settings.parameters, settings.clock).map_err(MountError::Thread)?;
        let queue = Arc::new(queue);
        let backing_path = settings.backing.path().to_owned();
        let backing = Arc::new(settings.backing);
        let mut reserved = match settings.loop_device {
            LoopChoice::Attach => Some(LoopDevice::reserve(access)?),
            LoopChoice::None => None,
        };
        let mount = || {
            let files = DiskFiles::new(
                settings.name.clone(),
                Arc::clone(&backing),
                Arc::clone(&queue),
                u32::try_from(request_bytes).unwrap_or(u32::MAX),
            );
            let options = options.clone();
            MountAs { what: WHAT, subtype: "disk", options }.mount(files, &path)
        };
        let mut session = behind(&mut reserved, mount)?;
        drop(limit);
        let unmounter = DiskUnmounter {
            inner: Arc::new(Mutex::new(session.unmount_callable())),
            path: path.clone(),
            queue,
            loop_device: Arc::default(),
        };
        let serving = thread::Builder::new().name("disk".to_owned());
        let serve = move || {
            be_a_device();
            super::serve(session)
        };
        let session = serving.spawn(serve).map_err(MountError::Thread)?;
        let mut mount = DiskMount { session, path, unmounter, loop_path: None };
        if let Err(error) = mount.begin() {
            let _ = mount.unmounter.unmount();
            return Err(error);
        }
        if let Some(device) = reserved
            && let Err(error) = mount.attach(device, access, &backing_path)
        {
            // The first error counts.
            let _ = mount.unmounter.unmount();
            return Err(error);
        }
        Ok(mount)
    }

    /// The loop device over it.
    pub fn loop_path(&self) -> Option<&Path> {
        self.loop_path.as_deref()
    }

    /// Returns what ends it.
    pub fn unmounter(&self) -> DiskUnmounter {
        self.unmounter.clone()
    }

    /// Waits until the folder is unmounted and no program has the disk open.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn wait(self) -> Result<(), MountError> {
        let path = self.path;
        let ended = self.session.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        ended.map_err(|source| MountError::Connection { path, source })
    }

    /// Measures how long a call takes beyond its model time, and starts the model time.
    fn begin(&self) -> Result<(), MountError> {
        let path = self.path.join(DISK_NAME);
        let failed = |source| MountError::Through { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let mut times = [Duration::ZERO; ROUND_TRIPS];
        for time in &mut times {
            let before = Instant::now();
            file.read_at(&mut [0; 4096], 0).map_err(failed)?;
            *time = before.elapsed().saturating_sub(PROBE);
        }
        // The timer has adjusted during the first calls. Other load makes some longer.
        let learned = &mut times[ROUND_TRIPS / 2..];
        learned.sort_unstable();
        self.unmounter.queue.begin(learned[learned.len() / 4]);
        Ok(())
    }

    fn attach(
        &mut self,
        device: LoopDevice,
        access: Access,
        backing_path: &Path,
    ) -> Result<(), MountError> {
        let through =
            |source: io::Error| MountError::Through { path: self.path.join(DISK_NAME), source };
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(rustix::fs::CWD, &self.path, clone);
        let tree = tree.map_err(|error| through(error.into()))?;
        let mode = match access {
            Access::ReadWrite => OFlags::RDWR,
            Access::ReadOnly => OFlags::RDONLY,
        };
        let opened =
            base::interruptible::openat(&tree, DISK_NAME, mode | OFlags::CLOEXEC, Mode::empty());
        let file = File::from(opened.map_err(|error| through(error.into()))?);
        let device_number = file.metadata().map_err(through)?.st_dev();
        let device = device.attach(file.as_fd(), backing_path)?;
        self.loop_path = Some(device.path().to_owned());
        let slot = &self.unmounter.loop_device;
        *lock(slot) = Some(device);
        let watched = self.unmounter.clone();
        let watch = thread::Builder::new().name("disk-mounts".to_owned());
        watch
            .spawn(move || watched.detach_when_unmounted(device_number))
            .map_err(MountError::Thread)?;
        Ok(())
    }
}

impl DiskUnmounter {
    /// Unmounts and detaches. Requests no longer wait for model time; a program that has the disk
    /// open keeps it until it closes it or this process ends.
    ///
    /// # Errors
    /// When the folder cannot even be detached.
    pub fn unmount(&self) -> io::Result<()> {
        self.queue.hurry();
        // Meanwhile the rest is written through the loop device.
        self.detach();
        super::unmount(&mut lock(&self.inner), &self.path)
    }

    /// Closes the loop device, which ends it unless others have it open.
    fn detach(&self) {
        if let Some(device) = lock(&self.loop_device).take() {
            device.forget_settings();
        }
    }

    /// Without the loop device the session would end with the mount, by itself.
    fn detach_when_unmounted(&self, device_number: u64) {
        let number =
            format!("{}:{}", rustix::fs::major(device_number), rustix::fs::minor(device_number));
        // If mounts cannot be watched, only a signal ends it.
        if wait_until_gone(&number).is_ok() {
            self.detach();
        }
    }
}

/// Mounts with a descriptor whose number is above the loop device's. When a process ends, its files
/// are closed by number, and once the folder is not served, the loop device cannot write its
/// remaining data: the end would hang. Another thread that closes a file meanwhile leaves a lower
/// number to the folder; then the folder is mounted again. After [`MOUNTS_MAX`] attempts it stays
/// as it is, since a disk is worth more than a clean end of a killed process.
fn behind(
    reserved: &mut Option<LoopDevice>,
    mount: impl Fn() -> Result<Session<Folder<DiskFiles>>, MountError>,
) -> Result<Session<Folder<DiskFiles>>, MountError> {
    let mut session = mount()?;
    let Some(device) = reserved else { return Ok(session) };
    for _ in 1..MOUNTS_MAX {
        if device.number() < session.as_fd().as_raw_fd() {
            break;
        }
        drop(session);
        device.take_lowest_number()?;
        session = mount()?;
    }
    Ok(session)
}

/// Waits until no mount has this device. The kernel reports changes (proc(5)); an additional check
/// now and then does no harm.
fn wait_until_gone(number: &str) -> io::Result<()> {
    const LOOK_SECONDS: i64 = 10;
    let mut mounts = File::open("/proc/self/mountinfo")?;
    loop {
        use std::io::{Read, Seek};
        let mut text = Vec::new();
        mounts.rewind()?;
        mounts.read_to_end(&mut text)?;
        if machine::mounts::parse(&text).iter().all(|mount| mount.device != number) {
            return Ok(());
        }
        let mut watched = [PollFd::new(&mounts, PollFlags::PRI | PollFlags::ERR)];
        let most = Timespec { tv_sec: LOOK_SECONDS, tv_nsec: 0 };
        match poll(&mut watched, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::speed_up::SpeedUp;

    use super::*;

    /// Without it the end of a killed process hangs.
    #[test]
    fn a_loop_device_is_closed_before_its_disk_whatever_other_threads_close() {
        testkit::require!(Fuse, LoopDevices);
        let (place, inside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let backing =
            Backing::open(&inside.path().join("backing"), Some(1 << 20), Access::ReadWrite);
        let (backing, is_done) = (Arc::new(backing.unwrap()), AtomicBool::new(false));
        let queue = Queue::new(DiskParameters::sas15k(), Clock::Times(SpeedUp::ONE)).unwrap();
        let queue = Arc::new(queue);
        let mount = || {
            let name = "disk".to_owned();
            let files = DiskFiles::new(name, Arc::clone(&backing), Arc::clone(&queue), 1 << 20);
            MountAs { what: WHAT, subtype: "disk", options: Vec::new() }.mount(files, place.path())
        };
        let mut orders = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let files: Vec<_> = (0..4).map(|_| File::open("/dev/null").unwrap()).collect();
                    thread::sleep(Duration::from_micros(200));
                    drop(files);
                    thread::sleep(Duration::from_micros(200));
                }
            });
            let all = (0..100).try_for_each(|_| {
                let mut reserved = Some(LoopDevice::reserve(Access::ReadWrite)?);
                let session = behind(&mut reserved, mount)?;
                let numbers = (reserved.map(|it| it.number()), session.as_fd().as_raw_fd());
                orders.push(numbers.0 < Some(numbers.1));
                Ok::<_, MountError>(())
            });
            is_done.store(true, Ordering::Relaxed);
            all.unwrap();
        });
        assert_eq!(orders, [true; 100]);
    }
}
