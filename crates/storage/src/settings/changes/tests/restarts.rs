//! What remains of a change after a restart, and what Takeup does with the rest.

use super::*;

impl Scene {
    /// A restart, after which the disk has these values.
    fn restart(&self, disk: &str, values: &[(SettingKind, &str)]) {
        self.kernel.unplug(disk);
        self.kernel.boot.borrow_mut().push_str(" and another");
        self.kernel.plug(disk, disk, "1");
        for (kind, value) in values {
            self.kernel.put(&self.kernel.setting(disk, *kind), value);
        }
    }
}

/// The limit survived the restart, and is restored. The read-ahead that the kernel resets with it
/// was never set by Takeup, and keeps its value from after the restart.
#[test]
fn what_was_never_set_stays_as_it_is_after_a_restart() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", SettingKind::MaxSectors, "512")]).unwrap();
    scene.restart("sda", &[(SettingKind::MaxSectors, "512"), (SettingKind::ReadAhead, "256")]);
    let reverted = scene.open().revert().unwrap();
    assert_eq!((reverted.put_back.len(), reverted.forgotten.len()), (1, 0), "{reverted:?}");
    let limit = scene.kernel.value(&scene.kernel.setting("sda", SettingKind::MaxSectors)).unwrap();
    assert_eq!((limit, scene.read_ahead("sda")), ("1280".to_owned(), "256".to_owned()));
}

/// A value from before the restart is not used for a change after it.
#[test]
fn a_change_after_a_restart_goes_back_to_what_was_before_it() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", SettingKind::ReadAhead, "1024")]).unwrap();
    scene.restart("sda", &[(SettingKind::ReadAhead, "128")]);
    scene.apply(&[("sda", SettingKind::ReadAhead, "2048")]).unwrap();
    scene.open().revert().unwrap();
    assert_eq!(scene.read_ahead("sda"), "128");
}

/// After a restart the kernel has its own values, which stay; only values that another program kept
/// are restored.
#[test]
fn after_a_restart_only_what_is_still_set_is_put_back() {
    let scene = Scene::new(&[]);
    for (name, wwid) in [("sda", "naa.1"), ("sdb", "naa.2"), ("sdc", "naa.3")] {
        scene.kernel.plug(name, wwid, "1");
    }
    let all = ["sda", "sdb", "sdc"].map(|name| (name, SettingKind::ReadAhead, "1024"));
    scene.apply(&all).unwrap();
    for name in ["sda", "sdb", "sdc"] {
        scene.kernel.unplug(name);
    }
    *scene.kernel.boot.borrow_mut() = "second".into();
    // The names have changed, one is gone, and a rule of udev has set one of them again.
    scene.kernel.plug("sdb", "naa.1", "1");
    scene.kernel.plug("sda", "naa.2", "1");
    let (kept, other) = ("1024", "333");
    scene.kernel.put(&scene.kernel.setting("sdb", SettingKind::ReadAhead), kept);
    scene.kernel.put(&scene.kernel.setting("sda", SettingKind::ReadAhead), other);
    let reverted = scene.open().revert().unwrap();
    let names = |of: &[Left]| -> Vec<String> {
        of.iter().map(|left| left.changed.device.name.clone()).collect()
    };
    assert_eq!(names(&reverted.put_back), ["sda"]);
    assert_eq!(names(&reverted.forgotten), ["sdb"]);
    assert_eq!(names(&reverted.gone), ["sdc"]);
    let read_ahead = |name| scene.kernel.value(&scene.kernel.setting(name, SettingKind::ReadAhead));
    assert_eq!((&read_ahead("sdb").unwrap()[..], &read_ahead("sda").unwrap()[..]), ("64", other));
    // A device that is gone stays in the list until it is back or given up.
    assert_eq!(names(&scene.open().revert().unwrap().gone), ["sdc"]);
    scene.kernel.plug("sdz", "naa.3", "9");
    scene.kernel.put(&scene.kernel.setting("sdz", SettingKind::ReadAhead), "1024");
    assert_eq!(names(&scene.open().revert().unwrap().put_back), ["sdc"]);
    assert_eq!(read_ahead("sdz").unwrap(), "64");
    assert!(!scene.path().exists());
}

/// The kernel has forgotten one; a rule has set the other again, and that one is restored.
#[test]
fn a_restart_ends_every_trial() {
    let scene = Scene::new(&["sda", "sdb"]);
    scene.on_trial(
        600,
        &[("sda", SettingKind::ReadAhead, "1024"), ("sdb", SettingKind::ReadAhead, "1024")],
    );
    *scene.kernel.boot.borrow_mut() = "second".into();
    scene.kernel.uptime_ms.set(1000);
    scene.kernel.put(&scene.kernel.setting("sdb", SettingKind::ReadAhead), "128");
    assert!(remembered(&scene.path()).unwrap()[0].is_overdue(&scene.kernel));
    assert_eq!(scene.after(0), 1);
    let both = (scene.read_ahead("sda"), scene.read_ahead("sdb"));
    assert_eq!((&both.0[..], &both.1[..]), ("64", "128"));
    assert!(!scene.path().exists());
}
