//! What of a change is left behind a restart, and what is done with the rest.

use super::*;

impl Scene {
    /// A restart with a disk that has these values behind it.
    fn restart(&self, disk: &str, values: &[(Kind, &str)]) {
        self.kernel.unplug(disk);
        self.kernel.boot.borrow_mut().push_str(" and another");
        self.kernel.plug(disk, disk, "1");
        for (kind, value) in values {
            self.kernel.put(&self.kernel.setting(disk, *kind), value);
        }
    }
}

/// The limit that was set is made to stay, and is put back; the read-ahead that a kernel sets anew
/// with it was never set, and stays what it is since the restart.
#[test]
fn what_was_never_set_stays_as_it_is_after_a_restart() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", Kind::MaxSectors, "512")]).unwrap();
    scene.restart("sda", &[(Kind::MaxSectors, "512"), (Kind::ReadAhead, "256")]);
    let reverted = scene.open().revert().unwrap();
    assert_eq!((reverted.put_back.len(), reverted.forgotten.len()), (1, 0), "{reverted:?}");
    let limit = scene.kernel.value(&scene.kernel.setting("sda", Kind::MaxSectors)).unwrap();
    assert_eq!((limit, scene.read_ahead("sda")), ("1280".to_owned(), "256".to_owned()));
}

/// What was there before a restart is of no use to a change behind it.
#[test]
fn a_change_after_a_restart_goes_back_to_what_was_before_it() {
    let scene = Scene::new(&["sda"]);
    scene.apply(&[("sda", Kind::ReadAhead, "1024")]).unwrap();
    scene.restart("sda", &[(Kind::ReadAhead, "128")]);
    scene.apply(&[("sda", Kind::ReadAhead, "2048")]).unwrap();
    scene.open().revert().unwrap();
    assert_eq!(scene.read_ahead("sda"), "128");
}
