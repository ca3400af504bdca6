//! Read-ahead that is set and restored, on a disk of the test: a FUSE file with a latency.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use model::disk::{DiskChanges, DiskParameters};
use sim::mount::disk::{Access, Backing, CACHED_NAME, Clock, DiskMount, DiskSettings, LoopChoice};
use sim::speed_up::SpeedUp;

use crate::{run, succeeds, takeup, tune};

pub struct Disk {
    place: TempDir,
    /// Holds the backing file of the mount.
    _inside: TempDir,
    mount: Option<DiskMount>,
    /// Its read-ahead.
    pub setting: PathBuf,
}

impl Disk {
    /// The loop device over it.
    pub fn loop_path(&self) -> PathBuf {
        self.mount.as_ref().unwrap().loop_path().unwrap().to_owned()
    }

    /// The file that is read through the page cache.
    pub fn cached(&self) -> PathBuf {
        self.place.path().join(CACHED_NAME)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(mount) = self.mount.take() {
            let _ = mount.unmounter().unmount();
            let _ = mount.wait();
        }
    }
}

/// A disk of 64 MiB with 2 ms.
fn disk() -> Disk {
    let changes =
        DiskChanges { service_ns: Some(2_000_000), servers: Some(64), ..DiskChanges::default() };
    Disk::with(DiskParameters::sas15k().with(&changes))
}

impl Disk {
    /// A disk of 64 MiB.
    pub fn with(parameters: DiskParameters) -> Disk {
        Disk::attached(parameters, LoopChoice::None)
    }

    /// The same, optionally with a loop device on it.
    pub fn attached(parameters: DiskParameters, loop_device: LoopChoice) -> Disk {
        let place = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let file = inside.path().join("backing");
        let settings = DiskSettings {
            name: "sas15k".to_owned(),
            parameters,
            backing: Backing::open(&file, Some(64 << 20), Access::ReadWrite).unwrap(),
            clock: Clock::Times(SpeedUp::ONE),
            loop_device,
        };
        let mount = DiskMount::new(settings, place.path()).unwrap();
        let number = fs::metadata(place.path().join(CACHED_NAME)).unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let setting = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
        Disk { place, _inside: inside, mount: Some(mount), setting }
    }
}

fn arguments(disk: &Disk, levels: &'static str) -> Vec<String> {
    let path = disk.cached();
    let path = path.to_str().unwrap();
    let fixed = ["--cache", "buffered", "--block-size", "128k", "--length", "64M"];
    let repeats = ["--repeats", "2", "--repeats-max", "2", "--random-reads", "2"];
    let all = [&["bench", "read", path, "--read-ahead", levels], &fixed[..], &repeats[..]];
    all.concat().into_iter().map(str::to_owned).collect()
}

#[test]
fn every_read_ahead_is_measured_and_put_back() {
    testkit::require!(Fuse, KernelSettings);
    let disk = disk();
    let directory = tempfile::tempdir().unwrap();
    fs::write(&disk.setting, "192").unwrap();
    let text = succeeds(directory.path(), &arguments(&disk, "current,64k,4M"));
    assert_eq!(fs::read_to_string(&disk.setting).unwrap().trim(), "192");
    // `scripts/read-ahead-sweeps` shows which of them is better.
    for level in ["64 KiB", "192 KiB", "4 MiB"] {
        assert!(text.contains(level), "{text}");
    }
    assert!(!directory.path().join("run/settings.json").exists());
}

#[test]
fn a_killed_experiment_is_cleared_up_after() {
    testkit::require!(Fuse, KernelSettings);
    let disk = disk();
    let directory = tempfile::tempdir().unwrap();
    fs::write(&disk.setting, "192").unwrap();
    let mut command = takeup(directory.path());
    let mut child = command.args(arguments(&disk, "64k,80k")).spawn().unwrap();
    let started = Instant::now();
    while fs::read_to_string(&disk.setting).unwrap().trim() == "192" {
        assert!(started.elapsed() < Duration::from_secs(60), "it never set anything");
        std::thread::sleep(Duration::from_millis(2));
    }
    let busy = run(directory.path(), &["bench", "put-back"]);
    let error = String::from_utf8_lossy(&busy.stderr).into_owned();
    assert!(error.contains("runs an experiment that changes read-ahead"), "{error}");
    let shown = || tune::done(directory.path(), &["show"]);
    assert!(shown().contains("has changed read-ahead until it ends"), "{}", shown());
    let journal = directory.path().join("run/settings.json");
    let kept = fs::read(&journal).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(fs::read_to_string(&disk.setting).unwrap().trim(), "192");
    assert!(shown().contains("left changed by a killed experiment"), "{}", shown());
    let text = succeeds(directory.path(), &["bench", "put-back"]);
    assert_eq!(text, "1 setting put back\n");
    assert_eq!(fs::read_to_string(&disk.setting).unwrap().trim(), "192");
    assert_eq!(succeeds(directory.path(), &["bench", "put-back"]), "nothing to put back\n");
    assert_eq!(shown(), "Takeup has changed no setting\n");
    // The same by `tune revert`, which reports the owner of the change.
    fs::write(&disk.setting, "64").unwrap();
    fs::write(&journal, kept).unwrap();
    fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let output = tune::tune(directory.path(), &["revert"]).output().unwrap();
    assert_eq!(fs::read_to_string(&disk.setting).unwrap().trim(), "192");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "takeup: restored 1 setting that a killed experiment had changed\n");
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
}

#[test]
fn what_was_not_put_back_is_not_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("run/settings.json");
    let folder = journal.parent().unwrap();
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).recursive(true).create(folder).unwrap();
    fs::write(&journal, "{\"pid\":4194305,\"process_start\":1,\"sett").unwrap();
    let output = run(directory.path(), &["bench", "put-back"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("run/settings.json cannot be parsed"), "{error}");
    assert!(
        error.contains("hint: look at the file: it may name settings that were not put back"),
        "{error}"
    );
    assert!(journal.exists());
}
