//! What the kernel knows of a tape drive without querying the drive: `/sys/class/scsi_tape`.
//!
//! See `Documentation/ABI/testing/sysfs-class-scsi_tape` and `Documentation/scsi/st.rst`.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use machine::counters::tape::Statistics;

/// The kernel's folder of one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeFolder {
    path: PathBuf,
}

impl TapeFolder {
    /// The folder of the character device with these numbers.
    pub fn of_device(major: u32, minor: u32) -> Option<TapeFolder> {
        let link = format!("/sys/dev/char/{major}:{minor}");
        let path = fs::canonicalize(link).ok()?;
        Some(TapeFolder { path })
    }

    /// Name of the node below `/dev`.
    pub fn node(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }

    /// Host, channel, target and unit: `2:0:0:1`.
    pub fn address(&self) -> Option<String> {
        let device = fs::canonicalize(self.path.join("device")).ok()?;
        Some(device.file_name()?.to_str()?.to_owned())
    }

    /// The generic device of the same drive, `/dev/sg1`.
    pub fn generic_device(&self) -> Option<PathBuf> {
        let folder = self.path.join("device/scsi_generic");
        let entry = fs::read_dir(folder).ok()?.next()?.ok()?;
        Some(Path::new("/dev").join(entry.file_name()))
    }

    /// The counters.
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::of(&self.path)
    }

    /// Commands that the drive is working on now.
    pub fn in_flight(&self) -> Option<u64> {
        self.number("stats/in_flight")
    }

    /// The driver's options for this drive, the `MT_ST_*` bits.
    pub fn options(&self) -> Option<u32> {
        let text = self.text("options")?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    }

    /// A file of the device itself: `vendor`, `model`, `rev`.
    pub fn device_text(&self, name: &str) -> Option<String> {
        self.text(&format!("device/{name}"))
    }

    /// Name of the driver of the host adapter.
    pub fn host_driver(&self) -> Option<String> {
        let address = self.address()?;
        let host = address.split(':').next()?;
        let path = format!("/sys/class/scsi_host/host{host}/proc_name");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    }

    fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.text(name)?.parse().ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.path.join(name)).ok()?.trim().to_owned())
    }
}
