//! The disk with its file system and files, and the drive; each run begins with a cold cache.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;
use testkit::samples::noise;

use super::super::Ground;
use super::super::mounted::{Mounted, succeeded};
use super::scene::{Change, Foreign, Scene, Tree};

/// Files of one folder.
const FILES_IN_FOLDER: u64 = 100;

/// The folder of a case.
pub(super) struct Place {
    folder: PathBuf,
    path: OsString,
    takeup: PathBuf,
    device: String,
    read_ahead_kib: u64,
    has_drive: bool,
    image: PathBuf,
    // Dropped in this order: what uses a disk or is mounted on it goes before it.
    _other: Option<Other>,
    _tree: Unmounted,
    _result: Unmounted,
    _drive: Option<Mounted>,
    _disk: Mounted,
}

impl Place {
    pub(super) fn new(ground: &Ground, scene: &Scene) -> anyhow::Result<Place> {
        let folder = ground.folder.clone();
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).context("create a folder for programs")?;
        std::os::unix::fs::symlink(&ground.takeup, programs.join("takeup"))?;
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        fs::create_dir(folder.join("tree"))?;
        // What a line writes costs as little as it can: where `takeup backup` waits for the disk at
        // its end, and `>` does not, that is no matter of the source.
        fs::create_dir(folder.join("result"))?;
        let result = Unmounted(folder.join("result"));
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&result.0).output();
        succeeded(&mounted.context("mount a folder in memory")?, "mount")?;
        let image = Path::new("/dev/shm").join(format!("trial-{}", std::process::id()));
        let seed = ground.seed;
        let kept = Kept(image.clone());
        make_image(&image, &folder, scene, seed)?;
        let image_text = image.to_string_lossy().into_owned();
        let mut options = scene.disk_options();
        options.extend(["--backing", &image_text, "--loop"].map(str::to_owned));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let (disk, device) = Mounted::start(&ground.takeup, &folder, "disk", "slow", &options)?;
        let device = device.context("the loop device of the disk")?;
        let other = Other::start(scene.foreign, &device)?;
        let drive = drive(ground, &folder, scene)?;
        std::mem::forget(kept);
        let place = Place {
            _tree: Unmounted(folder.join("tree")),
            _result: result,
            folder,
            path,
            takeup: ground.takeup.clone(),
            device,
            read_ahead_kib: scene.read_ahead_kib,
            has_drive: drive.is_some(),
            image,
            _other: other,
            _drive: drive,
            _disk: disk,
        };
        place.fresh(place.read_ahead_kib)?;
        Ok(place)
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        command.args(["-o", "pipefail", "-c", line]).current_dir(&self.folder);
        command.env("PATH", &self.path).env("XDG_STATE_HOME", self.folder.join("state"));
        command.env("TAKEUP_RUN_DIR", self.folder.join("run")).stdin(Stdio::null());
        command
    }

    fn do_it(&self, line: &str) -> anyhow::Result<()> {
        succeeded(&self.shell(line).output()?, line)
    }

    /// Mounts the files again, so that nothing of them is in memory.
    fn fresh(&self, read_ahead_kib: u64) -> anyhow::Result<()> {
        let device = &self.device;
        self.do_it(&format!(
            "mountpoint -q tree && umount tree; rm -rf result/*; blockdev --setra {} {device} && \
             blockdev --flushbufs {device} && mount -o ro {device} tree",
            read_ahead_kib * 2
        ))?;
        if self.has_drive {
            self.do_it("mt-st -f drive/nst0 rewind")?;
        }
        Ok(())
    }

    /// Runs a line on a cold cache and times it.
    pub(super) fn seconds(&self, line: &str) -> anyhow::Result<f64> {
        self.fresh(self.read_ahead_kib)?;
        self.timed(line)
    }

    /// Seconds of a line, as its user waits for it: with labels, filemarks and the drive's buffer.
    fn timed(&self, line: &str) -> anyhow::Result<f64> {
        let mut command = self.shell(line);
        let start = Instant::now();
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        let seconds = start.elapsed().as_secs_f64();
        succeeded(&output, line)?;
        Ok(seconds)
    }

    /// Runs a line with a change.
    pub(super) fn changed(&self, change: &Change) -> anyhow::Result<f64> {
        self.fresh(change.read_ahead_kib.unwrap_or(self.read_ahead_kib))?;
        if change.from_memory {
            self.do_it("find tree -type f -print0 | xargs -0 cat > /dev/null")?;
        }
        self.timed(&change.line)
    }

    /// Makes the change that was proposed, and times the line.
    pub(super) fn made(&self, command: &str) -> anyhow::Result<f64> {
        let Some(set) = command.strip_prefix("takeup tune set ") else {
            // What is on the drive is of the runs before.
            let backup = command.starts_with("takeup backup ");
            return self.seconds(&format!("{command}{}", if backup { " --overwrite" } else { "" }));
        };
        let kib = set.rsplit('=').next().and_then(|kib| kib.parse().ok()).context("a size")?;
        self.fresh(kib)?;
        let line = fs::read_to_string(self.folder.join("line"))?;
        self.timed(&line)
    }

    /// The program's answer for a line.
    pub(super) fn diagnosed(&self, line: &str) -> anyhow::Result<Value> {
        fs::write(self.folder.join("line"), line)?;
        let mut command = Command::new(&self.takeup);
        command.args(["diagnose", "--json", line]).current_dir(&self.folder);
        command.env("PATH", &self.path).env("XDG_STATE_HOME", self.folder.join("state"));
        let output = command.output()?;
        succeeded(&output, line)?;
        serde_json::from_slice(&output.stdout).context("what diagnose printed")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.image);
    }
}

/// The virtual drive of a scene, if it has one.
fn drive(ground: &Ground, folder: &Path, scene: &Scene) -> anyhow::Result<Option<Mounted>> {
    if !scene.has_drive() {
        return Ok(None);
    }
    let buffer = format!("buffer_bytes={}", scene.buffer_mib << 20);
    let mut options = vec!["--drive", scene.drive, "--capacity", "2GiB", "--compression", "off"];
    // A drive's buffer holds what comes during a stop. Both are small here: beside runs
    // of seconds that of a real drive would be all there is. Winding is paid between the runs only.
    for set in [
        buffer.as_str(),
        "back_hitch_ns=60ms",
        "synchronise_ns=60ms",
        "settle_ns=10ms",
        "wind_ns=1s",
    ] {
        options.extend(["--set", set]);
    }
    Ok(Some(Mounted::start(&ground.takeup, folder, "tape", "drive", &options)?.0))
}

/// Another program that runs beside all lines.
struct Other(Child);

impl Other {
    fn start(foreign: Foreign, device: &str) -> anyhow::Result<Option<Other>> {
        let line = match foreign {
            Foreign::Nothing => return Ok(None),
            // It ends with a trial that was killed, too.
            Foreign::Processor => "while [ -d /proc/$PPID ]; do :; done".to_owned(),
            Foreign::Disk => format!(
                "while [ -d /proc/$PPID ] && dd if={device} of=/dev/null bs=1M iflag=direct \
                 status=none; do :; done"
            ),
        };
        let mut command = Command::new("/bin/bash");
        command.args(["-c", &line]).stdin(Stdio::null()).process_group(0);
        Ok(Some(Other(command.spawn().context("start another program")?)))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Its `dd` too, which holds the disk.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).output();
        let _ = self.0.wait();
    }
}

/// A file that is removed unless it is forgotten.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A file system with the files of a scene, made on a disk without delays.
fn make_image(image: &Path, folder: &Path, scene: &Scene, seed: u64) -> anyhow::Result<()> {
    let (small, kilobytes, megabytes, large) = match scene.tree {
        Tree::Large { files, megabytes } => (0, 0, megabytes, files),
        Tree::Small { files, kilobytes } => (files, kilobytes, 0, 0),
        Tree::Mixed { files, kilobytes, megabytes } => (files, kilobytes, megabytes, 2),
    };
    let bytes = small * (kilobytes + 8) * 1000 + megabytes * 1_000_000;
    let size = (bytes * 5 / 4 + (96 << 20)).next_multiple_of(1 << 20);
    fs::File::create(image).and_then(|file| file.set_len(size)).context("make an image")?;
    let quiet = |line: &str| -> anyhow::Result<()> {
        let output = Command::new("/bin/bash").args(["-c", line]).current_dir(folder).output()?;
        succeeded(&output, line)
    };
    let shown = image.display();
    quiet(&format!("mkfs.ext4 -q -N 16384 -E lazy_itable_init=0,lazy_journal_init=0 {shown}"))?;
    quiet(&format!("mount -o loop {shown} tree"))?;
    let tree = Unmounted(folder.join("tree"));
    let mut made = seed;
    let mut piece = |length: usize| {
        made += 1;
        content(scene.is_text, made, length)
    };
    for number in 0..small {
        let below = tree.0.join((number / FILES_IN_FOLDER).to_string());
        fs::create_dir_all(&below)?;
        // From half to one and a half times the size.
        let length = kilobytes * 1000 * (50 + (number * 37) % 101) / 100;
        fs::write(below.join(number.to_string()), piece(usize::try_from(length)?))?;
    }
    for number in 0..large {
        let mut file = fs::File::create(tree.0.join(format!("large-{number}")))?;
        let mut left = megabytes * 1_000_000 / large;
        while left > 0 {
            let length = left.min(4 << 20);
            std::io::Write::write_all(&mut file, &piece(usize::try_from(length)?))?;
            left -= length;
        }
    }
    drop(tree);
    Ok(())
}

/// Noise, or digits of it, which shrink to half. Of another seed it is other noise: what comes
/// again would shrink, for some compressors, and in some trials.
fn content(is_text: bool, seed: u64, length: usize) -> Vec<u8> {
    if !is_text {
        return noise(seed, length);
    }
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let noise = noise(seed, length.div_ceil(2));
    let mut digits: Vec<u8> =
        noise.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect();
    digits.truncate(length);
    digits
}

/// A mount that goes when this is dropped.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}
