//! A virtual drive or disk of a case, and commands that must succeed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::bail;

/// Longest time for a drive or disk to appear or to go away.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A drive or disk that exists until this is dropped.
pub(super) struct Mounted {
    child: Child,
    folder: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let plain = rustix::mount::UnmountFlags::empty();
            // The mount is busy for a moment, or has gone by itself.
            let _ = rustix::mount::unmount(&self.folder, plain);
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            if Instant::now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let _ = rustix::mount::unmount(&self.folder, rustix::mount::UnmountFlags::DETACH);
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Mounted {
    /// `takeup sim KIND` on the folder `name` of a place. With `--loop` among the options, the loop
    /// device is returned, too.
    pub(super) fn start(
        takeup: &Path,
        place: &Path,
        kind: &str,
        name: &str,
        options: &[&str],
    ) -> anyhow::Result<(Mounted, Option<String>)> {
        let folder = place.join(name);
        fs::create_dir(&folder)?;
        let printed = place.join(format!("{name}.printed"));
        let mut command: Command = super::sim(takeup);
        command.arg(kind).arg(&folder).args(options).current_dir(place).stdin(Stdio::null());
        command.stdout(fs::File::create(&printed)?).stderr(Stdio::null());
        let mut mounted = Mounted { child: command.spawn()?, folder };
        let wants_device = options.contains(&"--loop");
        let end = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&printed)?;
            let device = text.lines().find(|line| line.starts_with("/dev/loop"));
            if mounted.folder.join("status").exists() && (device.is_some() || !wants_device) {
                return Ok((mounted, device.map(str::to_owned)));
            }
            if mounted.child.try_wait()?.is_some() || Instant::now() > end {
                bail!("takeup sim {kind} {} did not appear", options.join(" "));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Fails with what a command said, unless it succeeded.
pub(super) fn succeeded(output: &Output, line: &str) -> anyhow::Result<()> {
    if !output.status.success() {
        bail!("{line}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
