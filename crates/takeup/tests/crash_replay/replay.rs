//! File systems on recorded disks, and the disks that a power cut could have left.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;
use testkit::stepper::{Call, CallVerdict, ProgramEnd, Step, Stepped};

use crate::recorder::{Event, Recorder};

/// A file system of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    pub kind: &'static str,
    pub mib: usize,
    pub make: &'static [&'static str],
    pub options: &'static str,
}

pub const EXT4: FileSystem = FileSystem { kind: "ext4", mib: 48, make: &[], options: "loop" };
/// Without ext4's protection for programs that rename without fsync.
pub const EXT4_STRICT: FileSystem = FileSystem { options: "loop,noauto_da_alloc", ..EXT4 };
/// Content is not ordered before names.
pub const EXT4_WRITEBACK: FileSystem =
    FileSystem { options: "loop,noauto_da_alloc,data=writeback", ..EXT4 };
pub const XFS: FileSystem = FileSystem { kind: "xfs", mib: 300, make: &[], options: "loop,nouuid" };
/// Data and metadata once each: half as many writes.
pub const BTRFS: FileSystem =
    FileSystem { kind: "btrfs", mib: 120, make: &["-m", "single"], options: "loop" };

impl FileSystem {
    pub fn name(&self) -> String {
        format!("{} ({})", self.kind, self.options)
    }

    /// Makes the file system and lets `fill` put files on it. Returns the disk.
    pub fn disk(&self, fill: impl FnOnce(&Path)) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len((self.mib << 20) as u64).unwrap();
        let mut make = Command::new(format!("mkfs.{}", self.kind));
        // Debian installs these programs outside of a user's PATH.
        make.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        let made = make.arg("-q").args(self.make).arg(&path).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mounted = Mounted::new(&path, self).unwrap();
        fs::write(mounted.path().join(NEIGHBOUR), b"0").unwrap();
        fill(mounted.path());
        drop(mounted);
        fs::read(&path).unwrap()
    }
}

/// A mounted disk, until it is dropped.
pub struct Mounted(TempDir);

impl Mounted {
    pub fn new(disk: &Path, system: &FileSystem) -> Result<Mounted, String> {
        let at = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", system.kind, "-o", system.options]).arg(disk).arg(at.path());
        let done = mount.output().unwrap();
        if done.status.success() {
            Ok(Mounted(at))
        } else {
            Err(format!("mount: {}", String::from_utf8_lossy(&done.stderr)))
        }
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmount = |options: &[&str]| {
            let mut command = Command::new("umount");
            let done = command.args(options).arg(self.path()).output();
            done.is_ok_and(|done| done.status.success())
        };
        // A child of another test holds this process's descriptors until it runs its program.
        for _ in 0..100 {
            if unmount(&[]) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let done = unmount(&["--lazy"]) || std::thread::panicking();
        assert!(done, "{} stays mounted", self.path().display());
    }
}

/// What is on a disk, once the kernel has replayed its journal.
///
/// # Errors
/// It cannot be mounted.
pub fn look_at<T>(
    system: &FileSystem,
    image: &[u8],
    look: impl FnOnce(&Path) -> T,
) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    write_disk(&path, image, &[]);
    let mounted = Mounted::new(&path, system)?;
    Ok(look(mounted.path()))
}

const NEIGHBOUR: &str = "neighbour";

/// After each call that changes something, another program calls fsync on the same file system.
struct Neighbour<'a> {
    recorder: &'a Recorder,
    file: File,
    began: bool,
    calls: u64,
}

/// Calls after which there is something new to lose.
const CHANGES: [&str; 16] = [
    "pwrite64",
    "write",
    "ftruncate",
    "fallocate",
    "linkat",
    "renameat",
    "renameat2",
    "unlinkat",
    "mkdirat",
    "symlinkat",
    "fchown",
    "fchmod",
    "utimensat",
    "fsync",
    "syncfs",
    "openat",
];

impl Step for Neighbour<'_> {
    fn before(&mut self, call: &Call) -> CallVerdict {
        self.began |= call.number == 7;
        CallVerdict::Pass
    }

    fn after(&mut self, call: &Call, result: i64) {
        let Some(name) = call.name().filter(|name| CHANGES.contains(name)) else { return };
        let creates = OFlags::CREATE.bits() | OFlags::TMPFILE.bits() | OFlags::TRUNC.bits();
        let only_opens = name == "openat" && call.arguments[2] as u32 & creates == 0;
        if !self.began || result < 0 || only_opens {
            return;
        }
        self.calls += 1;
        self.recorder.mark(&format!("call {}: {name}", self.calls));
        self.file.write_all_at(&self.calls.to_le_bytes(), 0).unwrap();
        self.file.sync_all().unwrap();
    }
}

/// The log of a run.
pub struct Recorded {
    pub system: FileSystem,
    pub ended: ProgramEnd,
    base: Vec<u8>,
    log: Vec<Event>,
}

/// Runs a command on a disk while another program calls fsync.
pub fn record(
    system: FileSystem,
    disk: Vec<u8>,
    command: impl FnOnce(&Path) -> Command,
) -> Recorded {
    let recorder = Recorder::new(disk);
    let mounted = Mounted::new(&recorder.path(), &system).unwrap();
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let neighbour =
        base::interruptible::open(mounted.path().join(NEIGHBOUR), flags, Mode::empty()).unwrap();
    rustix::fs::syncfs(&neighbour).unwrap();
    let command = command(mounted.path());
    let base = recorder.begin();
    let file = File::from(neighbour);
    let mut step = Neighbour { recorder: &recorder, file, began: false, calls: 0 };
    let limit = Duration::from_secs(120);
    let ended = Stepped::new(&command, "/dev/null", limit).run(&mut step).unwrap();
    recorder.mark(ENDED);
    let log = recorder.end();
    drop(step);
    drop(mounted);
    Recorded { system, ended, base, log }
}

const ENDED: &str = "the program had ended";

/// A disk after a power cut.
pub struct Crash<'a> {
    pub place: &'a Path,
    /// The program had reported that it was done.
    pub ended: bool,
}

/// How many disks were checked.
#[derive(Debug, Default)]
pub struct Counts {
    pub writes: usize,
    pub barriers: usize,
    pub disks: usize,
    pub after_the_end: usize,
}

impl Recorded {
    /// The disks that a power cut could have left: the state at each barrier, and with `subsets`
    /// also parts of the writes after it. Only every `stride`-th barrier is tried, and all of the
    /// last ones.
    pub fn crashes(
        &self,
        stride: usize,
        subsets: u64,
        mut check: impl FnMut(&Crash<'_>) -> Result<(), String>,
    ) -> Counts {
        let mut counts = Counts::default();
        let mut image = self.base.clone();
        let mut pending: Vec<&Event> = Vec::new();
        let mut behind = "the start".to_owned();
        let mut wrong = Vec::new();
        let mut ended = false;
        let last = self.log.iter().filter(|event| matches!(event, Event::Barrier)).count();
        // The end of the log counts as a barrier: none of the pending writes need be kept.
        for event in self.log.iter().chain([&Event::Barrier]) {
            match event {
                Event::Mark(what) => {
                    ended |= what == ENDED;
                    behind.clone_from(what);
                }
                Event::Write { .. } => {
                    counts.writes += 1;
                    pending.push(event);
                }
                Event::Barrier => {
                    let of_interest = counts.barriers.is_multiple_of(stride)
                        || counts.barriers + 4 > last
                        || ended;
                    counts.barriers += 1;
                    // Tries parts of the writes that this barrier waits for.
                    let kept = (0..if of_interest { subsets + 1 } else { 0 }).map(|seed| {
                        let writes = pending.iter().enumerate();
                        let chosen = writes.filter(move |(at, _)| is_kept(seed, *at));
                        chosen.map(|(_, event)| *event).collect::<Vec<_>>()
                    });
                    for kept in kept {
                        counts.disks += 1;
                        counts.after_the_end += usize::from(ended);
                        if let Err(why) = self.crash(&image, &kept, ended, &mut check) {
                            let (number, of) = (kept.len(), pending.len());
                            wrong.push(format!(
                                "  barrier {} of {last}, with {number} of {of} writes behind the \
                                 one before, behind {behind}: {why}",
                                counts.barriers
                            ));
                        }
                    }
                    pending.drain(..).for_each(|event| apply(&mut image, event));
                }
            }
        }
        assert!(wrong.is_empty(), "{:?}:\n{}", self.system, wrong.join("\n"));
        counts
    }

    fn crash(
        &self,
        image: &[u8],
        kept: &[&Event],
        ended: bool,
        check: &mut impl FnMut(&Crash<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        write_disk(&path, image, kept);
        let mounted = Mounted::new(&path, &self.system)?;
        check(&Crash { place: mounted.path(), ended })
    }
}

/// Seed 0 keeps no write; each other seed keeps another half.
fn is_kept(seed: u64, at: usize) -> bool {
    let mut mixed = (seed << 32 | at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    seed > 0 && (mixed >> 40) & 1 == 1
}

fn apply(image: &mut [u8], event: &Event) {
    if let Event::Write { offset_bytes, bytes } = event {
        image[*offset_bytes..offset_bytes + bytes.len()].copy_from_slice(bytes);
    }
}

/// Zeros stay holes.
fn write_disk(path: &PathBuf, image: &[u8], kept: &[&Event]) {
    const GRAIN: usize = 64 << 10;
    let file = File::create(path).unwrap();
    file.set_len(image.len() as u64).unwrap();
    let zeros = vec![0u8; GRAIN];
    for (at, part) in image.chunks(GRAIN).enumerate() {
        if *part != zeros[..part.len()] {
            file.write_all_at(part, (at * GRAIN) as u64).unwrap();
        }
    }
    for event in kept {
        if let Event::Write { offset_bytes, bytes } = event {
            file.write_all_at(bytes, *offset_bytes as u64).unwrap();
        }
    }
}
