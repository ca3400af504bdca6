//! A loop device over a file, with queue settings chosen by the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Detached after the test, with the old queue settings restored.
pub struct Loop {
    path: String,
    before: Vec<(PathBuf, String)>,
}

impl Loop {
    /// A disk of 64 MiB over a file in this folder.
    pub fn over(directory: &Path) -> Loop {
        let file = directory.join("disk");
        fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let output =
            Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        Loop { path, before: Vec::new() }
    }

    /// Its node.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its name among the counters.
    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    /// Sets a setting of its queue.
    pub fn set(&mut self, setting: &str, value: &str) {
        let path = Path::new("/sys/block").join(self.name()).join("queue").join(setting);
        let shown = fs::read_to_string(&path).unwrap();
        let before = storage::settings::chosen(shown.trim()).to_owned();
        fs::write(&path, value).unwrap_or_else(|error| panic!("{setting} {value}: {error}"));
        self.before.push((path, before));
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // In reverse order, because a limit of the queue resets the read-ahead.
        for (path, value) in self.before.iter().rev() {
            let _ = fs::write(path, value);
        }
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
