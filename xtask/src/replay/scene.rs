//! The folder of a replay: commands run in it as typed, virtual drives and disks are unmounted when
//! they are dropped, and nothing is left.
//!
//! Every line is kept as typed, for the page, and contains no path of this machine: all paths are
//! relative to the folder, the program is found by its name, and the loop device over a virtual
//! disk is `$LOOP`. Every line is limited in time: when the time is over, or the replay is stopped,
//! it is killed with all processes that it started.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::judged::Judged;

/// Longest time of one line.
const LINE_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Longest time for a drive or disk to appear, or to go away.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// Exit code of a run that is done except for something that it names.
const WARNED: i32 = 2;

/// The length of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Minutes: as few data and repeats as show the direction.
    Short,
    /// Most of an hour.
    Long,
}

impl Length {
    /// Chooses one of two values by the length.
    pub fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Length::Short => short,
            Length::Long => long,
        }
    }
}

/// The folder, and the lines typed in it.
pub struct Scene {
    folder: PathBuf,
    path: OsString,
    stopped: Arc<AtomicBool>,
    typed: RefCell<Vec<String>>,
    loop_device: RefCell<Option<String>>,
    /// The length of the replay.
    pub length: Length,
}

impl Scene {
    /// In an empty folder, with the program under its name and the published tables as
    /// `published`.
    ///
    /// # Errors
    /// When the folder cannot be made, or another replay's cannot be removed.
    pub fn new(takeup: &Path, folder: &Path, length: Length) -> anyhow::Result<Scene> {
        remove(folder)?;
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).with_context(|| format!("create {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let programs = folder.join("programs");
        std::os::unix::fs::symlink(takeup, programs.join("takeup"))?;
        let tables = crate::folders::repository().join("benchmarks/published");
        std::os::unix::fs::symlink(tables, folder.join("published"))?;
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stopped)).context("watch signals")?;
        }
        let (typed, loop_device) = (RefCell::default(), RefCell::default());
        Ok(Scene { folder, path, stopped, typed, loop_device, length })
    }

    /// The lines typed since the last call.
    pub fn take_typed(&self) -> Vec<String> {
        self.typed.take()
    }

    /// Whether the user wants to stop the replay.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Runs a line of the shell.
    ///
    /// # Errors
    /// When it fails, with its output; or when its time is over.
    pub fn run(&self, line: &str) -> anyhow::Result<String> {
        self.type_in(line);
        self.finished(line, &[0])
    }

    /// Runs a line of preparation, which is not printed on the page.
    ///
    /// # Errors
    /// As [`Scene::run`].
    pub fn prepare(&self, line: &str) -> anyhow::Result<String> {
        self.finished(line, &[0])
    }

    /// Runs a line of Takeup with `--json`, which is not printed. An experiment with incomplete
    /// runs has a document, too.
    ///
    /// # Errors
    /// When it fails, or prints no document.
    pub fn document(&self, line: &str) -> anyhow::Result<Value> {
        self.type_in(line);
        let text = self.finished(&format!("{line} --json"), &[0, WARNED])?;
        serde_json::from_str(&text).with_context(|| format!("the document of {line}"))
    }

    /// Runs an experiment, or reports on one, and returns its results.
    ///
    /// # Errors
    /// As [`Scene::document`].
    pub fn judged(&self, line: &str) -> anyhow::Result<Judged> {
        self.document(line).map(|document| Judged::new(document, &self.folder))
    }

    /// Starts a virtual drive or disk on a new folder and waits until it is ready. `line` is typed
    /// with the name of the folder as its first argument, as in `takeup sim tape drive`.
    ///
    /// # Errors
    /// When it does not appear.
    pub fn mount(&self, line: &str) -> anyhow::Result<Mounted<'_>> {
        let name = line.split_whitespace().nth(3).context("a folder to mount on")?;
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        self.type_in(&format!("{line} &"));
        let (said, failed) = (self.folder.join("mounted"), self.folder.join("not-mounted"));
        let child = self.start(line, &said, &failed)?;
        let mut mounted = Mounted { child, folder, scene: self, queue: None };
        let wants_loop = line.contains("--loop");
        let end = Instant::now() + PATIENCE;
        loop {
            let there = mounted.folder.join("status").exists();
            let device = fs::read_to_string(&said).unwrap_or_default().trim().to_owned();
            if there && (!wants_loop || device.starts_with("/dev/loop")) {
                if wants_loop {
                    mounted.queue = Some(Queue::found(&device)?);
                    self.loop_device.replace(Some(device));
                }
                return Ok(mounted);
            }
            if mounted.child.try_wait()?.is_some() || Instant::now() > end {
                let text = fs::read_to_string(&failed).unwrap_or_default();
                bail!("{line}: {}", text.trim());
            }
            std::thread::sleep(POLL);
        }
    }

    fn type_in(&self, line: &str) {
        eprintln!("$ {line}");
        self.typed.borrow_mut().push(line.to_owned());
    }

    fn start(&self, line: &str, said: &Path, failed: &Path) -> anyhow::Result<Child> {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(&self.folder).env("PATH", &self.path);
        if let Some(device) = &*self.loop_device.borrow() {
            command.env("LOOP", device).env("QUEUE", Queue::folder(device));
        }
        command.env("LC_ALL", "C").env("SHELL", "/bin/bash");
        command.stdin(Stdio::null()).stdout(File::create(said)?).stderr(File::create(failed)?);
        // Ctrl-C must end the programs first, then their drives.
        command.process_group(0).spawn().with_context(|| format!("start {line}"))
    }

    fn finished(&self, line: &str, good: &[i32]) -> anyhow::Result<String> {
        let (said, failed) = (self.folder.join("said"), self.folder.join("failed"));
        let mut child = self.start(line, &said, &failed)?;
        let status = self.wait(&mut child).with_context(|| line.to_owned())?;
        let errors = fs::read_to_string(&failed).unwrap_or_default();
        if !status.code().is_some_and(|code| good.contains(&code)) {
            bail!("{line}: {status}: {}", last_lines(&errors));
        }
        fs::read_to_string(&said).with_context(|| format!("what {line} printed"))
    }

    fn wait(&self, child: &mut Child) -> anyhow::Result<ExitStatus> {
        let end = Instant::now() + LINE_LIMIT;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let late = Instant::now() > end;
            if late || self.is_stopped() {
                end_group(child);
                bail!(if late { "its time is over" } else { "stopped" });
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// A drive or disk that exists until this is dropped.
pub struct Mounted<'a> {
    child: Child,
    folder: PathBuf,
    scene: &'a Scene,
    /// The settings of its loop device.
    queue: Option<Queue>,
}

/// The settings of a loop device, which it keeps when its file changes.
struct Queue {
    settings: Vec<(PathBuf, String)>,
}

impl Queue {
    fn folder(device: &str) -> PathBuf {
        Path::new("/sys/block").join(device.replace("/dev/", "")).join("queue")
    }

    /// Remembers the settings that a replay changes, and enables merging of requests.
    fn found(device: &str) -> anyhow::Result<Queue> {
        let folder = Queue::folder(device);
        let setting = |name: &str| -> anyhow::Result<(PathBuf, String)> {
            let path = folder.join(name);
            let text = fs::read_to_string(&path)?;
            // Of several words, the one in brackets is in effect.
            let word = text.split(['[', ']']).nth(1).unwrap_or(text.trim());
            Ok((path, word.to_owned()))
        };
        let settings = ["nomerges", "scheduler"].map(setting);
        let settings = settings.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        fs::write(folder.join("nomerges"), "0").context("let requests be merged")?;
        Ok(Queue { settings })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        for (path, value) in &self.settings {
            if let Err(error) = fs::write(path, value) {
                eprintln!("xtask: {} is not what it was: {error}", path.display());
            }
        }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        drop(self.queue.take());
        unmount(&self.folder);
        let end = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > end {
                end_group(&mut self.child);
                break;
            }
            // The kernel releases a file only after the program has closed it.
            std::thread::sleep(POLL);
            unmount(&self.folder);
        }
        self.scene.loop_device.replace(None);
    }
}

/// A file system on the loop device, mounted until this is dropped.
pub struct FileSystem {
    folder: PathBuf,
}

impl FileSystem {
    /// Makes an ext4 on `$LOOP` and mounts it.
    ///
    /// # Errors
    /// When that fails.
    pub fn ext4(scene: &Scene, name: &str) -> anyhow::Result<FileSystem> {
        scene.run(&format!(
            "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 $LOOP; \\\n      \
             mkdir -p {name}; mount $LOOP {name}"
        ))?;
        Ok(FileSystem { folder: scene.folder.join(name) })
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        unmount(&self.folder);
    }
}

fn unmount(folder: &Path) {
    let plain = rustix::mount::UnmountFlags::empty();
    // The program may have ended by itself.
    let _ = rustix::mount::unmount(folder, plain);
}

/// Ends a program and all processes that it started.
fn end_group(child: &mut Child) {
    let group = Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let end = Instant::now() + Duration::from_secs(10);
    while let Ok(None) = child.try_wait() {
        if Instant::now() > end {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Removes a replay's folder. Mounts below it, left by a kill, are detached first, so that nothing
/// inside them is removed.
fn remove(folder: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.filter_map(Result::ok) {
        let _ = rustix::mount::unmount(entry.path(), rustix::mount::UnmountFlags::DETACH);
    }
    fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().rev().take(4).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
