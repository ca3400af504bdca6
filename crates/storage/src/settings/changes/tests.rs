//! Changes on model kernels: one resets read-ahead with every limit, one clips, one refuses. Also a
//! process that dies at any write, a restart, and devices that disappear.

mod restarts;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use machine::processes::Process;

/// A sysfs in files, and a kernel that behaves as Linux 6.18 did when it was observed.
#[derive(Debug)]
struct Kernel {
    sys: tempfile::TempDir,
    boot: RefCell<String>,
    uptime_ms: Cell<u64>,
    /// Writes until the process dies, before or after that write.
    lives_for: Cell<Option<(usize, Death)>>,
    /// A kind that the kernel refuses.
    refuses: Cell<Option<SettingKind>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Before,
    Behind,
}

const START: [(SettingKind, &str); 7] = [
    (SettingKind::Scheduler, "[none] mq-deadline bfq"),
    (SettingKind::WriteCache, "write back"),
    (SettingKind::Rotational, "1"),
    (SettingKind::MaxSectors, "1280"),
    (SettingKind::WriteBackLatency, "75000"),
    (SettingKind::Requests, "100"),
    (SettingKind::ReadAhead, "64"),
];

impl Kernel {
    fn new(disks: &[&str]) -> Kernel {
        let kernel = Kernel {
            sys: tempfile::tempdir().unwrap(),
            boot: RefCell::new("first".into()),
            uptime_ms: Cell::new(5_000),
            lives_for: Cell::new(None),
            refuses: Cell::new(None),
        };
        fs::create_dir_all(kernel.sys().join("class/block")).unwrap();
        for disk in disks {
            kernel.plug(disk, disk, "1");
        }
        kernel
    }

    /// A disk with a WWN appears under a name, with the settings of a fresh start.
    fn plug(&self, name: &str, wwid: &str, sequence: &str) {
        let folder = self.sys().join("devices").join(name);
        fs::create_dir_all(folder.join("queue")).unwrap();
        fs::write(folder.join("wwid"), wwid).unwrap();
        fs::write(folder.join("diskseq"), sequence).unwrap();
        for (kind, value) in START {
            fs::write(Setting::of_queue(kind, &folder.join("queue")).path, value).unwrap();
        }
        symlink(&folder, self.sys().join("class/block").join(name)).unwrap();
    }

    fn unplug(&self, name: &str) {
        fs::remove_file(self.sys().join("class/block").join(name)).unwrap();
        fs::remove_dir_all(self.sys().join("devices").join(name)).unwrap();
    }

    fn setting(&self, name: &str, kind: SettingKind) -> Setting {
        Setting::of_queue(kind, &self.sys().join("devices").join(name).join("queue"))
    }

    fn put(&self, setting: &Setting, value: &str) {
        let text = match setting.kind {
            SettingKind::Scheduler => ["none", "mq-deadline", "bfq"]
                .map(|one| one.to_owned())
                .join(" ")
                .replace(value, &format!("[{value}]")),
            _ => value.to_owned(),
        };
        fs::write(&setting.path, text).unwrap();
    }

    fn values(&self, name: &str) -> Vec<String> {
        let value = |(kind, _)| self.value(&self.setting(name, kind)).unwrap();
        START.map(value).into()
    }

    fn takes(&self, setting: &Setting, value: &str) {
        let queue = setting.path.parent().unwrap();
        let other = |kind| Setting::of_queue(kind, queue);
        match setting.kind {
            SettingKind::Scheduler => {
                self.put(setting, value);
                self.put(
                    &other(SettingKind::Requests),
                    if value == "none" { "128" } else { "256" },
                );
                self.put(
                    &other(SettingKind::WriteBackLatency),
                    if value == "bfq" { "0" } else { "2000" },
                );
            }
            SettingKind::MaxSectors | SettingKind::Rotational | SettingKind::WriteCache => {
                let kib = value.parse::<u64>().map(|kib| kib.min(1280).to_string());
                self.put(
                    setting,
                    if setting.kind == SettingKind::MaxSectors {
                        kib.as_ref().unwrap()
                    } else {
                        value
                    },
                );
                // Even if the value does not change, a lowered read-ahead is raised.
                let ahead = other(SettingKind::ReadAhead);
                let now: u64 = self.value(&ahead).unwrap().parse().unwrap();
                self.put(&ahead, &now.max(512).to_string());
            }
            SettingKind::ReadAhead => {
                let kib: u64 = value.parse().unwrap();
                self.put(setting, &(kib / 4 * 4).to_string());
            }
            _ => self.put(setting, value),
        }
    }
}

impl SettingFiles for Kernel {
    fn sys(&self) -> &Path {
        self.sys.path()
    }

    fn mounts(&self) -> Vec<Mount> {
        Vec::new()
    }

    fn boot(&self) -> Option<String> {
        Some(self.boot.borrow().clone())
    }

    fn uptime_ms(&self) -> u64 {
        self.uptime_ms.get()
    }

    fn value(&self, setting: &Setting) -> Result<String, StorageError> {
        let text = fs::read_to_string(&setting.path).map_err(|it| setting.failed("read", it))?;
        Ok(super::super::chosen(text.trim()).to_owned())
    }

    fn check_settable(&self, _: &Setting) -> Result<(), StorageError> {
        Ok(())
    }

    fn write(&self, setting: &Setting, value: &str) -> Result<(), StorageError> {
        if self.refuses.get() == Some(setting.kind) {
            return Err(setting.failed("write", io::ErrorKind::InvalidInput.into()));
        }
        let left = self.lives_for.get();
        if let Some((0, Death::Before)) = left {
            std::panic::resume_unwind(Box::new("killed"));
        }
        self.takes(setting, value);
        if let Some((0, Death::Behind)) = left {
            std::panic::resume_unwind(Box::new("killed"));
        }
        self.lives_for.set(left.map(|(left, death)| (left - 1, death)));
        Ok(())
    }
}

struct Scene {
    kernel: Kernel,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(disks: &[&str]) -> Scene {
        Scene { kernel: Kernel::new(disks), folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state/changes.json")
    }

    fn open(&self) -> Changes<'_> {
        Changes::open(&self.kernel, &self.path()).unwrap()
    }

    fn wanted(&self, values: &[(&str, SettingKind, &str)]) -> WantedChange {
        let setting = |(name, kind, value): &(&str, SettingKind, &str)| {
            (self.kernel.setting(name, *kind), (*value).to_owned())
        };
        WantedChange {
            for_path: "/srv".into(),
            now_unix_seconds: 1000,
            trial: None,
            settings: values.iter().map(setting).collect(),
        }
    }

    /// Applies a change that is restored automatically after that many seconds.
    fn on_trial(&self, seconds: u64, values: &[(&str, SettingKind, &str)]) {
        let trial = Trial {
            until_uptime_ms: self.kernel.uptime_ms() + seconds * 1000,
            until_unix_seconds: 1000 + seconds,
            guard: Process::of(std::process::id()).unwrap(),
            phase: Phase::default(),
        };
        let mut changes = self.open();
        let wanted = WantedChange { trial: Some(trial), ..self.wanted(values) };
        changes.remember(&wanted).unwrap();
        changes.apply().unwrap();
    }

    /// Lets time pass, restores what is overdue then, and returns the number of settings.
    fn after(&self, seconds: u64) -> usize {
        self.kernel.uptime_ms.set(self.kernel.uptime_ms() + seconds * 1000);
        self.open().put_back_overdue().unwrap().put_back.len()
    }

    fn read_ahead(&self, name: &str) -> String {
        self.kernel.value(&self.kernel.setting(name, SettingKind::ReadAhead)).unwrap()
    }

    fn apply(&self, values: &[(&str, SettingKind, &str)]) -> Result<Vec<Now>, StorageError> {
        let mut changes = self.open();
        changes.remember(&self.wanted(values))?;
        changes.apply()
    }
}

const ALL: [(&str, SettingKind, &str); 6] = [
    // Deliberately in a wrong order.
    ("sda", SettingKind::ReadAhead, "32"),
    ("sda", SettingKind::Requests, "200"),
    ("sda", SettingKind::MaxSectors, "512"),
    ("sda", SettingKind::WriteCache, "write through"),
    ("sda", SettingKind::Rotational, "0"),
    ("sda", SettingKind::Scheduler, "bfq"),
];

#[test]
fn a_kernel_that_resets_read_ahead_is_survived_both_ways() {
    let scene = Scene::new(&["sda"]);
    let before = scene.kernel.values("sda");
    let now = scene.apply(&ALL).unwrap();
    assert!(now.iter().all(Now::holds), "{now:#?}");
    let held = ["bfq", "write through", "0", "512", "0", "200", "32"];
    assert_eq!(scene.kernel.values("sda"), held);
    let reverted = scene.open().revert().unwrap();
    assert_eq!(scene.kernel.values("sda"), before);
    assert!(reverted.gone.is_empty() && reverted.forgotten.is_empty(), "{reverted:?}");
    assert_eq!(reverted.put_back.len(), 7, "wbt_lat_usec goes with the scheduler");
    assert!(!scene.path().exists());
    assert_eq!(scene.open().revert().unwrap(), Reverted::default());
}

/// A limit alone: read-ahead, which was not requested, keeps its value.
#[test]
fn what_was_not_asked_for_stays() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", SettingKind::MaxSectors, "512")]).unwrap();
    assert_eq!(
        scene.kernel.value(&scene.kernel.setting("sda", SettingKind::ReadAhead)).unwrap(),
        "64"
    );
    // A requested value that was in force before is in force at the end.
    scene
        .apply(&[("sda", SettingKind::MaxSectors, "256"), ("sda", SettingKind::ReadAhead, "64")])
        .unwrap();
    assert_eq!(
        scene.kernel.value(&scene.kernel.setting("sda", SettingKind::ReadAhead)).unwrap(),
        "64"
    );
}

#[test]
fn a_process_that_is_killed_at_any_write_leaves_what_can_be_put_back() {
    for death in [Death::Before, Death::Behind] {
        // One for each requested setting; all except the write-back latency of the queue.
        for writes in 0..ALL.len() {
            let scene = Scene::new(&["sda"]);
            let before = scene.kernel.values("sda");
            scene.kernel.lives_for.set(Some((writes, death)));
            let killed = catch_unwind(AssertUnwindSafe(|| scene.apply(&ALL)));
            scene.kernel.lives_for.set(None);
            assert!(killed.is_err(), "{writes} {death:?}");
            // The reverting process is killed too: at its first write, at its second.
            for more in 0..9 {
                scene.kernel.lives_for.set(Some((more, death)));
                let killed = catch_unwind(AssertUnwindSafe(|| scene.open().revert().map(|_| ())));
                if killed.is_ok() {
                    break;
                }
                assert!(more < 8, "it never ends");
            }
            scene.kernel.lives_for.set(None);
            scene.open().revert().unwrap();
            assert_eq!(scene.kernel.values("sda"), before, "{writes} {death:?}");
        }
    }
}

#[test]
fn several_changes_go_back_to_what_was_before_the_first() {
    let scene = Scene::new(&["sda", "sdb"]);
    let before = scene.kernel.values("sda");
    for value in ["128", "4096", "1024"] {
        scene
            .apply(&[
                ("sda", SettingKind::ReadAhead, value),
                ("sdb", SettingKind::ReadAhead, value),
            ])
            .unwrap();
    }
    scene.apply(&[("sda", SettingKind::MaxSectors, "512")]).unwrap();
    assert_eq!(remembered(&scene.path()).unwrap().len(), 4);
    scene.open().revert().unwrap();
    assert_eq!((scene.kernel.values("sda"), scene.kernel.values("sdb")), (before.clone(), before));
}

/// Two paths to one disk have the same WWN, but separate settings.
#[test]
fn paths_to_one_disk_are_two() {
    let scene = Scene::new(&[]);
    scene.kernel.plug("sda", "naa.5", "1");
    scene.kernel.plug("sdb", "naa.5", "2");
    scene.kernel.put(&scene.kernel.setting("sdb", SettingKind::ReadAhead), "96");
    scene
        .apply(&[("sda", SettingKind::ReadAhead, "512"), ("sdb", SettingKind::ReadAhead, "512")])
        .unwrap();
    scene.open().revert().unwrap();
    let read_ahead = |name| scene.kernel.value(&scene.kernel.setting(name, SettingKind::ReadAhead));
    assert_eq!((&read_ahead("sda").unwrap()[..], &read_ahead("sdb").unwrap()[..]), ("64", "96"));
}

#[test]
fn what_the_kernel_makes_of_a_value_is_what_is_remembered() {
    let scene = Scene::new(&["sda"]);
    let now = scene.apply(&[("sda", SettingKind::MaxSectors, "9999")]).unwrap();
    let told = |now: &Now| (now.changed.set.clone(), now.value.clone());
    assert_eq!(told(&now[0]), (Some("9999".into()), Some("1280".into())));
    let change = remembered(&scene.path()).unwrap().remove(0);
    assert_eq!(change.settings[0].set.as_deref(), Some("1280"));
    assert!(look(&scene.kernel, &change).iter().all(Now::holds));
    scene.kernel.put(&scene.kernel.setting("sda", SettingKind::MaxSectors), "600");
    assert!(!look(&scene.kernel, &change)[0].holds(), "another program has set it");
}

#[test]
fn what_is_refused_leaves_nothing_changed() {
    let scene = Scene::new(&["sda"]);
    let before = scene.kernel.values("sda");
    scene.kernel.refuses.set(Some(SettingKind::Requests));
    let error = scene
        .apply(&[("sda", SettingKind::MaxSectors, "512"), ("sda", SettingKind::Requests, "9999")])
        .unwrap_err();
    assert!(
        matches!(&error, StorageError::Refused { wanted, .. } if wanted == "9999"),
        "{error:?}"
    );
    assert_eq!(scene.kernel.values("sda"), before);
    assert!(!scene.path().exists());
}

/// Only write-back latency has a value that asks for the kernel's default.
#[test]
fn the_kernels_own_latency_is_asked_for_by_minus_one() {
    let scene = Scene::new(&["sda"]);
    let latency = [("sda", SettingKind::WriteBackLatency, SettingKind::DEFAULT_LATENCY)];
    for (wanted, asks) in [(latency, true), ([("sda", SettingKind::ReadAhead, "128")], false)] {
        let all = scene.apply(&wanted).unwrap();
        let own = all.iter().find(|now| now.changed.set.is_some()).unwrap();
        assert_eq!((own.asks_for_default(), own.holds()), (asks, true), "{own:?}");
    }
    let mut number =
        scene.apply(&[("sda", SettingKind::WriteBackLatency, "2000")]).unwrap().remove(0);
    assert!(!number.asks_for_default());
    number.value = Some("75000".into());
    assert!(!number.holds());
}

#[test]
fn a_device_that_is_gone_for_good_can_be_given_up() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", SettingKind::ReadAhead, "1024")]).unwrap();
    scene.kernel.unplug("sda");
    let change = remembered(&scene.path()).unwrap().remove(0);
    assert_eq!(look(&scene.kernel, &change)[0].name, None);
    assert_eq!(scene.open().revert().unwrap().gone.len(), 1);
    assert_eq!(scene.open().forget_gone().unwrap(), 1);
    assert!(!scene.path().exists());
}

#[test]
fn nothing_is_remembered_of_nothing() {
    let scene = Scene::new(&["sda"]);
    assert_eq!(scene.apply(&[("sda", SettingKind::ReadAhead, "64")]).unwrap(), []);
    assert!(!scene.path().exists());
}

#[test]
fn a_trial_ends_at_its_time_unless_it_is_confirmed() {
    let scene = Scene::new(&["sda"]);
    let before = scene.kernel.values("sda");
    scene.on_trial(600, &ALL);
    assert_eq!((scene.after(599), scene.read_ahead("sda").as_str()), (0, "32"));
    let change = remembered(&scene.path()).unwrap().remove(0);
    assert_eq!(change.left(&scene.kernel), Some(std::time::Duration::from_secs(1)));
    assert_eq!(scene.after(1), 7);
    assert_eq!(scene.kernel.values("sda"), before);
    assert!(!scene.path().exists());
    scene.on_trial(600, &ALL);
    assert_eq!(scene.open().confirm().unwrap().len(), 1);
    assert_eq!((scene.after(700), scene.read_ahead("sda").as_str()), (0, "32"));
    assert_eq!(scene.open().confirm().unwrap(), []);
    scene.open().revert().unwrap();
    assert_eq!(scene.kernel.values("sda"), before);
}

/// A setting that was set again meanwhile stays, and reverts to the value from before both changes.
#[test]
fn a_trial_that_ends_takes_no_later_change_along() {
    let scene = Scene::new(&["sda"]);
    let before = scene.kernel.values("sda");
    scene.on_trial(600, &[("sda", SettingKind::ReadAhead, "1024")]);
    scene.on_trial(1200, &[("sda", SettingKind::ReadAhead, "2048")]);
    assert_eq!((scene.after(600), scene.read_ahead("sda").as_str()), (0, "2048"));
    assert_eq!((scene.after(600), scene.read_ahead("sda").as_str()), (1, "64"));
    assert_eq!(scene.kernel.values("sda"), before);
    // nr_requests was set while a scheduler was on trial; the kernel resets it with the scheduler.
    scene.on_trial(600, &[("sda", SettingKind::Scheduler, "bfq")]);
    scene.apply(&[("sda", SettingKind::Requests, "77")]).unwrap();
    scene.after(600);
    let requests =
        || scene.kernel.value(&scene.kernel.setting("sda", SettingKind::Requests)).unwrap();
    assert_eq!((scene.kernel.values("sda")[0].as_str(), requests().as_str()), ("none", "77"));
    scene.open().revert().unwrap();
    assert_eq!(scene.kernel.values("sda"), before);
    // A limit that was set meanwhile only remembers the read-ahead, so it is restored at once.
    scene.on_trial(600, &[("sda", SettingKind::ReadAhead, "32")]);
    scene.apply(&[("sda", SettingKind::MaxSectors, "512")]).unwrap();
    assert_eq!((scene.after(600), scene.read_ahead("sda").as_str()), (1, "64"));
    scene.open().revert().unwrap();
    assert_eq!(scene.kernel.values("sda"), before);
}

/// The value of the other program stays: it is not part of the trial.
#[test]
fn what_somebody_else_has_set_meanwhile_outlives_the_trial() {
    let scene = Scene::new(&["sda"]);
    let before = scene.kernel.values("sda");
    scene.on_trial(
        600,
        &[("sda", SettingKind::ReadAhead, "1024"), ("sda", SettingKind::MaxSectors, "512")],
    );
    scene.kernel.put(&scene.kernel.setting("sda", SettingKind::ReadAhead), "4096");
    scene.kernel.uptime_ms.set(scene.kernel.uptime_ms() + 600_000);
    let reverted = scene.open().put_back_overdue().unwrap();
    let found: Vec<Option<&str>> = reverted.theirs.iter().map(|it| it.found.as_deref()).collect();
    assert_eq!(found, [Some("4096")]);
    assert_eq!(scene.read_ahead("sda"), "4096");
    scene.kernel.put(&scene.kernel.setting("sda", SettingKind::ReadAhead), "64");
    assert_eq!(scene.kernel.values("sda"), before);
    assert!(!scene.path().exists());
}

/// A guard that is ended restores its own change and nothing else.
#[test]
fn a_guard_that_is_ended_puts_back_what_it_guards() {
    let scene = Scene::new(&["sda", "sdb"]);
    let before = scene.kernel.values("sda");
    scene.on_trial(600, &ALL);
    scene.apply(&[("sdb", SettingKind::ReadAhead, "512")]).unwrap();
    let guard = remembered(&scene.path()).unwrap()[0].trial.clone().unwrap().guard;
    let other = Process { pid: guard.pid + 1, ..guard };
    assert_eq!(scene.open().put_back_guarded_by(&other).unwrap(), Reverted::default());
    scene.open().put_back_guarded_by(&guard).unwrap();
    assert_eq!(scene.kernel.values("sda"), before);
    assert_eq!(scene.read_ahead("sdb"), "512");
}

#[test]
fn who_ends_a_trial_and_is_killed_at_any_write_leaves_what_the_next_ends() {
    for death in [Death::Before, Death::Behind] {
        for writes in 0..6 {
            let scene = Scene::new(&["sda"]);
            let before = scene.kernel.values("sda");
            scene.on_trial(600, &ALL);
            scene.kernel.uptime_ms.set(scene.kernel.uptime_ms() + 600_000);
            scene.kernel.lives_for.set(Some((writes, death)));
            let killed = catch_unwind(AssertUnwindSafe(|| scene.open().put_back_overdue()));
            scene.kernel.lives_for.set(None);
            assert!(killed.is_err(), "{writes} {death:?}");
            assert!(scene.after(0) > 0, "{writes} {death:?}");
            assert_eq!(scene.kernel.values("sda"), before, "{writes} {death:?}");
        }
    }
}

/// The file is written, removed, and left alone if it is not ours; also after a crash between the
/// writes of the list and the file.
#[test]
fn the_file_that_keeps_changes_is_ours_or_is_left_alone() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", SettingKind::ReadAhead, "1024")]).unwrap();
    let file = scene.folder.path().join("99-takeup.rules");
    let text = || fs::read_to_string(&file).ok();
    assert_eq!(scene.open().unpersist().unwrap(), FileState::AsItWas);
    fs::write(&file, "somebody's").unwrap();
    let refused = scene.open().persist(&file, "one").unwrap_err();
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused:?}");
    assert_eq!(text().as_deref(), Some("somebody's"));
    fs::remove_file(&file).unwrap();
    assert_eq!(scene.open().persist(&file, "one").unwrap(), FileState::Done);
    assert_eq!(scene.open().persist(&file, "one").unwrap(), FileState::AsItWas);
    assert_eq!(scene.open().persist(&file, "two").unwrap(), FileState::Done);
    assert_eq!(text().as_deref(), Some("two"));
    // Killed between the writes of list and file: both texts are ours.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(scene.open().persist(&file, "three").is_err());
    fs::remove_dir(&file).unwrap();
    fs::write(&file, "two").unwrap();
    assert_eq!(scene.open().persist(&file, "three").unwrap(), FileState::Done);
    // Another user adds a line.
    fs::write(&file, "three, and a line").unwrap();
    assert!(matches!(scene.open().unpersist().unwrap_err(), StorageError::Foreign { .. }));
    assert_eq!(text().as_deref(), Some("three, and a line"));
    fs::write(&file, "three").unwrap();
    // The list stays without changes as long as the file exists.
    scene.open().revert().unwrap();
    assert!(scene.path().exists());
    assert_eq!(scene.open().unpersist().unwrap(), FileState::Done);
    assert!(text().is_none() && !scene.path().exists());
    // Removed by hand.
    scene.open().persist(&file, "four").unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(scene.open().unpersist().unwrap(), FileState::AsItWas);
    let left: Vec<_> = fs::read_dir(scene.folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "nothing unfinished is left: {left:?}");
}

/// The list has the text, the file does not have it yet.
#[test]
fn who_is_killed_before_the_file_is_written_has_written_none() {
    let scene = Scene::new(&["sda"]);
    let file = scene.folder.path().join("no/such/folder/99-takeup.rules");
    assert!(matches!(scene.open().persist(&file, "one").unwrap_err(), StorageError::File { .. }));
    assert_eq!(scene.open().persisted(), Some(&*file));
    assert_eq!(scene.open().unpersist().unwrap(), FileState::AsItWas);
    assert!(!scene.path().exists());
}
