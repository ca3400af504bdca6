//! One virtual drive: `takeup sim tape` in a folder, with its cartridge in memory if there is room.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use machine::processes::ProcessTimes;
use sim::mount::drive::{DriveStatus, DriveTime};

use super::{DriveSetup, TapeRun, foretell};
use crate::environment::available_memory_bytes;

/// Longest time for the drive to appear, and to go away.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// Folder of a file system in memory.
const MEMORY: &str = "/dev/shm";
/// Memory for programs on this file system: rings of 1 GiB.
const BUFFERS_BYTES: u64 = 1 << 30;
/// Memory left for programs and their buffers, beside data and cartridge.
const MEMORY_RESERVE_BYTES: u64 = 4 << 30;

/// Folders for the mounts and the cartridge of a campaign's drives.
#[derive(Clone, Debug)]
pub struct CampaignDrives {
    folder: PathBuf,
    scratch: PathBuf,
}

/// A mounted drive; unmounted when it is dropped.
pub struct Drive {
    child: Child,
    folder: PathBuf,
    setup: DriveSetup,
}

impl CampaignDrives {
    /// Uses an existing folder.
    pub fn new(scratch: &Path) -> CampaignDrives {
        CampaignDrives { folder: scratch.join("drive"), scratch: scratch.to_path_buf() }
    }

    /// The drive's file.
    pub fn tape(&self) -> PathBuf {
        self.folder.join("nst0")
    }

    /// The folder on which it is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Mounts a drive with a blank cartridge.
    ///
    /// The previous cartridge stays until now: memory that was freed a moment ago is cheap to get
    /// again, where the host of a virtual machine reclaims free memory.
    ///
    /// # Errors
    /// When there is no room for the cartridge, or the drive does not appear.
    pub fn mount(
        &self,
        takeup: &Path,
        setup: DriveSetup,
        data_bytes: u64,
    ) -> anyhow::Result<Drive> {
        let medium = self.cartridge(setup.capacity_bytes, data_bytes)?;
        if medium == self.in_memory() && data_bytes > 0 && !medium.exists() {
            touch(&medium, data_bytes + BUFFERS_BYTES)?;
        }
        self.remove_cartridges();
        fs::create_dir_all(&self.folder).context("create the folder of the drive")?;
        let said = self.scratch.join("drive-said");
        let mut command = Command::new(takeup);
        command
            .args(["sim", "tape"])
            .arg(&self.folder)
            .args(["--drive", setup.generation, "--compression", "off", "--capacity"])
            .arg(setup.capacity_bytes.to_string())
            .arg("--medium")
            .arg(&medium);
        for (name, value) in setup.settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?);
        let child = command.spawn().context("start takeup sim tape")?;
        let mut drive = Drive { child, folder: self.folder.clone(), setup };
        let end = Instant::now() + PATIENCE;
        while !drive.folder.join("status").exists() {
            let ended = drive.child.try_wait()?.is_some();
            if ended || Instant::now() > end {
                let text = fs::read_to_string(&said).unwrap_or_default();
                bail!("takeup sim tape: {}", text.lines().next().unwrap_or("it does not appear"));
            }
            std::thread::sleep(POLL);
        }
        Ok(drive)
    }

    /// Removes the files that drives have left.
    pub fn remove_cartridges(&self) {
        for path in [self.in_memory(), self.on_disk()] {
            // Usually there is none.
            let _ = fs::remove_file(path);
        }
    }

    fn cartridge(&self, bytes: u64, data_bytes: u64) -> anyhow::Result<PathBuf> {
        let free = |folder: &Path| {
            rustix::fs::statvfs(folder).map_or(0, |status| status.f_bavail * status.f_frsize)
        };
        let needed_bytes = bytes + data_bytes + MEMORY_RESERVE_BYTES;
        // The previous cartridge goes first.
        let before = self.in_memory().metadata().map_or(0, |cartridge| cartridge.len());
        // Data in the page cache count as available, but they must stay there.
        let available_bytes = available_memory_bytes() + before;
        let in_memory = free(Path::new(MEMORY)) + before > bytes && available_bytes > needed_bytes;
        if in_memory {
            Ok(self.in_memory())
        } else if free(&self.scratch) > bytes + (1 << 30) {
            Ok(self.on_disk())
        } else {
            bail!("no room for a cartridge of {} MiB", bytes >> 20)
        }
    }

    /// The same name for the same folder: a killed campaign leaves memory in use, and the next one
    /// reuses it.
    fn in_memory(&self) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.scratch.hash(&mut hasher);
        Path::new(MEMORY).join(format!("takeup-peers-{:016x}", hasher.finish()))
    }

    fn on_disk(&self) -> PathBuf {
        self.scratch.join("cartridge")
    }
}

impl Drive {
    /// Process id of the drive.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until no program has the tape open and all data are on the medium, then reads the
    /// drive's counters.
    ///
    /// # Errors
    /// When the drive has gone, or reports an error.
    pub fn seen(&self) -> anyhow::Result<TapeRun> {
        // The kernel releases a file only after the program has closed it; the next open waits for
        // that, and for the filemark.
        drop(File::open(self.folder.join("nst0")).context("open the tape after the run")?);
        let status = read_status(&self.folder)?;
        if let Some(trouble) = &status.trouble {
            bail!("the drive is in trouble: {trouble}");
        }
        let time = time_of(&status)?;
        let (model_seconds, model_back_hitches) = foretell(&self.setup, time.host_bytes)?;
        Ok(TapeRun {
            drive: status.drive.clone(),
            highest_bytes_per_second: time.highest_bytes_per_second,
            lowest_bytes_per_second: time.lowest_bytes_per_second,
            host_bytes: time.host_bytes,
            native_bytes: time.native_bytes,
            streaming_seconds: time.streaming_seconds,
            still_seconds: time.still_seconds,
            back_hitches: time.back_hitches,
            back_hitch_seconds: time.back_hitch_seconds,
            lost_seconds: time.lost_seconds,
            host_blocked_seconds: time.host_blocked_seconds,
            synchronisations: time.synchronisations,
            synchronise_seconds: time.synchronise_seconds,
            drive_cpu_seconds: processor_seconds(self.process())?,
            model_seconds,
            model_back_hitches,
            rate: None,
        })
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.folder, rustix::mount::UnmountFlags::empty());
        let end = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            // Not root, or busy: the drive unmounts itself.
            let pid = rustix::process::Pid::from_child(&self.child);
            let signal = if Instant::now() > end {
                rustix::process::Signal::KILL
            } else {
                rustix::process::Signal::TERM
            };
            let _ = rustix::process::kill_process(pid, signal);
            std::thread::sleep(POLL);
        }
        let _ = rustix::mount::unmount(&self.folder, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Writes a file of this size, so that the first run finds memory in the same state as the others.
fn touch(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    std::io::copy(&mut std::io::repeat(0).take(bytes), &mut file).context("take memory")?;
    Ok(())
}

/// The status file of a drive.
pub fn read_status(folder: &Path) -> anyhow::Result<DriveStatus> {
    let text = fs::read(folder.join("status")).context("read the drive's status")?;
    serde_json::from_slice(&text).context("the drive's status")
}

/// What a drive did so far.
pub fn time_of(status: &DriveStatus) -> anyhow::Result<&DriveTime> {
    status.time.as_ref().context("the drive takes no time")
}

/// Processor time of a process with all of its threads.
pub fn processor_seconds(process: u32) -> anyhow::Result<f64> {
    let times = ProcessTimes::of(process).context("read the drive's processor time")?;
    Ok(times.used_seconds())
}
