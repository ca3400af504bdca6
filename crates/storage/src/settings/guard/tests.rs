//! Settings of a real loop device, and journals that another program made.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;

/// A loop device, detached when this is dropped.
struct Loop {
    device: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn attach() -> Loop {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let mut command = Command::new("losetup");
        let output = command.args(["--find", "--show"]).arg(file.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let device = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        Loop { device, _file: file }
    }

    fn setting(&self) -> PathBuf {
        let name = self.device.file_name().unwrap();
        Path::new("/sys/block").join(name).join("queue/read_ahead_kb")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

fn value(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// A journal of a process that has ended.
fn journal_of(path: &Path, before: &str) -> String {
    let remembered = Remembered { setting: Setting::read_ahead(path), before: before.to_owned() };
    let settings = vec![remembered];
    let found = Journal { pid: 4_194_305, process_start: 1, boot: boot(), settings };
    serde_json::to_string(&found).unwrap()
}

/// Writes a journal as a program of this user does.
fn plant(journal: &Path, text: &str) {
    fs::write(journal, text).unwrap();
    fs::set_permissions(journal, PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn settings_come_back_whichever_way_it_ends() {
    testkit::require!(LoopDevices, KernelSettings);
    let device = Loop::attach();
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("run/read-ahead.json");
    let setting = device.setting();
    let read_ahead = Setting::read_ahead(&setting);
    let settings = [read_ahead.clone(), read_ahead.clone()];
    fs::write(&setting, "128").unwrap();
    let begin = || Guard::new(Some(&journal), &settings);
    let as_before = || assert_eq!((value(&setting).as_str(), journal.exists()), ("128", false));
    let mut guard = begin().unwrap();
    guard.set(&read_ahead, "4096").unwrap();
    assert_eq!(value(&setting), "4096");
    let busy = begin().unwrap_err();
    assert!(matches!(busy, StorageError::Busy { pid, .. } if pid == std::process::id()));
    guard.put_back().unwrap();
    as_before();
    // Dropped without an explicit restore.
    drop(begin().map(|guard| guard.set(&read_ahead, "0")));
    as_before();
    // Killed: the guard never runs, and the process has ended.
    let guard = begin().unwrap();
    guard.set(&read_ahead, "64").unwrap();
    let text = value(&journal);
    std::mem::forget(guard);
    let own = format!("\"pid\":{}", std::process::id());
    assert!(text.contains(&own));
    let left = text.replace(&own, "\"pid\":4194305");
    plant(&journal, &left);
    assert_eq!(recover(&journal).unwrap(), 1);
    as_before();
    // Killed before it changed anything.
    plant(&journal, &left);
    assert_eq!(recover(&journal).unwrap(), 1);
    as_before();
    // Written before a restart of the machine.
    fs::write(&setting, "256").unwrap();
    plant(&journal, &left.replace(&boot().unwrap(), "another"));
    assert_eq!((recover(&journal).unwrap(), journal.exists()), (0, false));
    assert_eq!(value(&setting), "256");
    // Killed while it wrote the journal, which then does not have its final name yet.
    let unfinished = journal.with_file_name(".read-ahead.json.4194305");
    plant(&unfinished, &text[..text.len() / 2]);
    assert_eq!((recover(&journal).unwrap(), unfinished.exists()), (0, false));
    drop(begin().unwrap());
    assert_eq!(fs::read_dir(journal.parent().unwrap()).unwrap().count(), 0);
}

/// Whatever a journal names, only a read-ahead setting of the kernel is written.
#[test]
fn a_journal_that_names_something_else_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().display();
    let journal = directory.path().join("read-ahead.json");
    let victim = directory.path().join("read_ahead_kb");
    fs::write(&victim, "precious").unwrap();
    for named in [
        format!("{folder}/read_ahead_kb"),
        format!("/sys/..{folder}/read_ahead_kb"),
        format!("/sys/block/../..{folder}/read_ahead_kb"),
        format!("..{folder}/read_ahead_kb"),
        "/sys/kernel/uevent_seqnum".to_owned(),
        "/proc/sys/kernel/hostname".to_owned(),
    ] {
        plant(&journal, &journal_of(Path::new(&named), "1024"));
        let error = recover(&journal).unwrap_err();
        assert!(matches!(error, StorageError::Untrusted { .. }), "{named}: {error}");
        assert!(error.to_string().contains("is not a read-ahead setting"), "{error}");
        assert_eq!(value(&victim), "precious", "{named}");
        assert!(journal.exists(), "an untrusted journal stays, so that its owner can inspect it");
    }
    let guard = Guard::new(Some(&directory.path().join("new")), &[Setting::read_ahead(&victim)]);
    assert!(
        matches!(guard, Err(StorageError::Setting { .. } | StorageError::NoSetting { .. })),
        "{guard:?}"
    );
    assert!(!directory.path().join("new").exists(), "no journal of what cannot be set");
}

#[test]
fn a_journal_that_others_may_have_made_is_not_believed() {
    testkit::require!(Root);
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("run");
    let journal = folder.join("read-ahead.json");
    let other = directory.path().join("other");
    let chmod = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
    let chown = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None);
    let nobody = 65534;
    let check = |change: &dyn Fn(), expected: &str| {
        fs::create_dir(&folder).unwrap();
        plant(&journal, "{}");
        change();
        for error in [recover(&journal), Guard::new(Some(&journal), &[]).map(|_| 0)] {
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error} instead of {expected}");
        }
        let _ = fs::remove_dir_all(&folder).or_else(|_| fs::remove_file(&folder));
        let _ = fs::remove_dir_all(&other);
    };
    check(&|| chown(&journal, nobody).unwrap(), "it belongs to user 65534");
    check(&|| chmod(&journal, 0o620).unwrap(), "other users can write to it");
    check(&|| chmod(&journal, 0o602).unwrap(), "other users can write to it");
    check(&|| chown(&folder, nobody).unwrap(), "its folder belongs to user 65534");
    check(&|| chmod(&folder, 0o1777).unwrap(), "other users can write to its folder");
    check(&|| fs::hard_link(&journal, folder.join("again")).unwrap(), "it has a second hard link");
    let replace = |make: &dyn Fn()| {
        fs::remove_file(&journal).unwrap();
        make();
    };
    let link = || std::os::unix::fs::symlink("/etc/passwd", &journal).unwrap();
    check(&|| replace(&link), "it is a symbolic link");
    check(&|| replace(&|| fs::create_dir(&journal).unwrap()), "it has the wrong file type");
    let elsewhere = || {
        fs::rename(&folder, &other).unwrap();
        std::os::unix::fs::symlink(&other, &folder).unwrap();
    };
    check(&elsewhere, "its parent is not a folder");
}

#[test]
fn without_a_place_for_a_journal_nothing_is_set() {
    assert!(Guard::new(None, &[]).is_ok(), "nothing is to be remembered");
    let settings = [Setting::read_ahead(Path::new("/sys/block/none/queue/read_ahead_kb"))];
    let error = Guard::new(None, &settings).unwrap_err();
    assert!(matches!(error, StorageError::NoPlace { .. }), "{error}");
}

#[test]
fn a_journal_that_is_not_understood_stays() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("read-ahead.json");
    let whole = journal_of(Path::new("/sys/block/none/queue/read_ahead_kb"), "128");
    let long = whole.replace("\"settings\"", &format!("{}\"settings\"", " ".repeat(1 << 20)));
    let unknown = whole.replace("read-ahead", "another");
    let before = whole.replace("\"before\"", "\"as_it_was\"");
    for text in ["", "{}", "\u{1}", &whole[..whole.len() / 2], &before, &unknown, &long] {
        plant(&journal, text);
        for error in [recover(&journal), Guard::new(Some(&journal), &[]).map(|_| 0)] {
            let error = error.unwrap_err();
            assert!(matches!(error, StorageError::NotUnderstood { .. }), "{text:.80}: {error}");
            assert!(error.to_string().contains("read-ahead.json"), "{error}");
        }
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
    }
    // A device that is gone has nothing to restore.
    plant(&journal, &whole);
    assert_eq!((recover(&journal).unwrap(), journal.exists()), (1, false));
}

#[test]
fn every_setting_is_tried_also_behind_one_that_fails() {
    testkit::require!(LoopDevices, KernelSettings);
    let (device, other) = (Loop::attach(), Loop::attach());
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("read-ahead.json");
    fs::write(other.setting(), "128").unwrap();
    let whole = journal_of(&device.setting(), "no number");
    let mut found: Journal = serde_json::from_str(&whole).unwrap();
    let setting = Setting::read_ahead(&other.setting());
    found.settings.push(Remembered { setting, before: "192".to_owned() });
    plant(&journal, &serde_json::to_string(&found).unwrap());
    let error = recover(&journal).unwrap_err();
    assert!(
        matches!(error, StorageError::Setting { .. } | StorageError::NotTaken { .. }),
        "{error}"
    );
    assert_eq!((value(&other.setting()).as_str(), journal.exists()), ("192", true));
}

#[test]
fn what_a_journal_says_is_told_without_touching_it() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("settings.json");
    assert_eq!(pending(&journal).unwrap(), None);
    let text = journal_of(Path::new("/sys/block/sda/queue/read_ahead_kb"), "64");
    plant(&journal, &text);
    let left = Pending { pid: 4_194_305, runs: false, what: "read-ahead".to_owned() };
    assert_eq!(pending(&journal).unwrap(), Some(left));
    assert_eq!(fs::read_to_string(&journal).unwrap(), text);
    let mut found: Journal = serde_json::from_str(&text).unwrap();
    found.pid = std::process::id();
    found.process_start = process_start(found.pid).unwrap();
    plant(&journal, &serde_json::to_string(&found).unwrap());
    assert!(pending(&journal).unwrap().unwrap().runs);
    // The kernel has forgotten all of it since the restart.
    found.boot = Some("another start".to_owned());
    plant(&journal, &serde_json::to_string(&found).unwrap());
    assert_eq!(pending(&journal).unwrap(), None);
    plant(&journal, "{");
    assert!(pending(&journal).is_err());
}
