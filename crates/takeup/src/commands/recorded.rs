//! Records of `takeup watch --record`, as input of `report` and `compare`.

use std::path::Path;

use watch::history::{DeviceHistory, History};

use super::watch::{say_cut, say_left_out};
use service::recorded::RecordedDevice;

/// Reports what was skipped in a record.
pub fn say_damage(path: &Path, history: &History) {
    say_left_out(path, &history.left_out.0, history.left_out.1);
    if history.is_cut {
        say_cut(path);
    }
}

/// A device as `--json` prints it.
pub fn device_document(history: &History, device: &DeviceHistory) -> RecordedDevice {
    RecordedDevice::of(history, device)
}
