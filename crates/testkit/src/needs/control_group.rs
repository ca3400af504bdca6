//! Control groups: processes that together get less of the machine than there is.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::behind::behind;

/// A control group; removed when it is dropped, once it is empty.
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Its processes together get a fifth of one core.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn with_a_fifth_of_a_core() -> Result<ControlGroup, String> {
        let first = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
        ControlGroup::of("cpu", &first, ("cpu.max", "20000 100000"))
    }

    /// Its processes together get so much memory, with what the kernel keeps of files for them.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn with_memory(bytes: u64) -> Result<ControlGroup, String> {
        let bytes = bytes.to_string();
        let first = [("memory.limit_in_bytes", &*bytes)];
        let made = ControlGroup::of("memory", &first, ("memory.max", &bytes))?;
        // Where there is no swap there may be no such file.
        for (name, value) in [("memory.memsw.limit_in_bytes", &*bytes), ("memory.swap.max", "0")] {
            if made.folder.join(name).exists() {
                made.set(name, value)?;
            }
        }
        Ok(made)
    }

    /// The most memory that it had, where the kernel tells it (before Linux 5.19, version 1 only).
    #[must_use]
    pub fn most_memory(&self) -> Option<u64> {
        let names = ["memory.max_usage_in_bytes", "memory.peak"];
        let text = names.iter().find_map(|it| std::fs::read_to_string(self.folder.join(it)).ok());
        text?.trim().parse().ok()
    }

    /// In the hierarchy of that controller, where it has one (version 1), or in the only one.
    fn of(
        controller: &str,
        first: &[(&str, &str)],
        second: (&str, &str),
    ) -> Result<ControlGroup, String> {
        let all = Path::new("/sys/fs/cgroup");
        let own = all.join(controller);
        let has_own = own.join("tasks").exists();
        let parent = if has_own { own } else { all.to_owned() };
        let name = format!("takeup-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = parent.join(name.replace(['(', ')'], ""));
        let told = |error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(told)?;
        let made = ControlGroup { folder };
        let second = [second];
        for (name, value) in if has_own { first } else { &second } {
            made.set(name, value)?;
        }
        Ok(made)
    }

    /// Puts a process into it.
    ///
    /// # Errors
    /// Why this failed.
    pub fn holds(&self, process: u32) -> Result<(), String> {
        self.set("cgroup.procs", &process.to_string())
    }

    /// The command, in the group from its first instruction on.
    #[must_use]
    pub fn around(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder);
        behind(&mut shell, command);
        shell
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        std::fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A killed process may be in it for a moment longer.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
