//! An instance of tracefs: Takeup's own buffers, removed when Takeup ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use machine::processes::Process;

use crate::trace::error::TraceError;
use crate::trace::tracefs::Tracefs;

/// Instances are `takeup-PID-TICKS-COUNT`: the name shows whether the owner still runs.
const NAME: &str = "takeup-";
/// The kernel takes the threads of one write up to a page (`set_event_pid`).
const THREADS_AT_ONCE: usize = 100;
/// No buffer of a processor is smaller.
const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// Of a sleeping reader; ours never sleeps in a read.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

static COUNT: AtomicU32 = AtomicU32::new(0);

/// One instance. It goes with this value, and the next one of another process removes those whose
/// process was killed.
#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
}

fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TraceError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => TraceError::NotAllowed,
        _ => TraceError::File { what, path, source },
    }
}

impl Instance {
    /// Makes one, with all its buffers together of about that size, that does not record yet.
    pub(crate) fn make(tracefs: &Tracefs, buffer_bytes: u64) -> Result<Instance, TraceError> {
        let all = tracefs.path("instances");
        remove_left(&all, None);
        let own = Process::of(std::process::id()).map_or(0, |own| own.start_ticks);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = all.join(format!("{NAME}{}-{own}-{count}", std::process::id()));
        fs::create_dir(&folder).map_err(file("make", &folder))?;
        let instance = Instance { folder };
        instance.write("tracing_on", "0")?;
        let processors = instance.processors()?.len().max(1) as u64;
        let each = (buffer_bytes / processors).max(BUFFER_BYTES_MIN.min(buffer_bytes));
        instance.write("buffer_size_kb", &each.div_ceil(1024).to_string())?;
        instance.write("trace_clock", "mono")?;
        Ok(instance)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }

    fn write(&self, below: &str, text: &str) -> Result<(), TraceError> {
        let path = self.path(below);
        let opened = OpenOptions::new().write(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(file("set", &path))
    }

    /// Processors that have a buffer.
    pub(crate) fn processors(&self) -> Result<Vec<u32>, TraceError> {
        let path = self.path("per_cpu");
        let entries = fs::read_dir(&path).map_err(file("read", &path))?;
        let mut found: Vec<u32> = entries.flatten().filter_map(|it| number_of(&it)).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Turns one of its events on.
    pub(crate) fn enable(&self, system: &str, name: &str) -> Result<(), TraceError> {
        self.write(&format!("events/{system}/{name}/enable"), "1")
    }

    /// Records children of the recorded threads from now on.
    pub(crate) fn follow_forks(&self) -> Result<(), TraceError> {
        self.write("options/event-fork", "1")
    }

    /// Adds threads to those that are recorded. Without any, all are.
    pub(crate) fn follow(&self, threads: &[u32]) -> Result<(), TraceError> {
        let path = self.path("set_event_pid");
        for some in threads.chunks(THREADS_AT_ONCE) {
            let text: String = some.iter().map(|thread| format!("{thread} ")).collect();
            // Without O_TRUNC those that are there stay.
            let opened = OpenOptions::new().append(true).open(&path);
            let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(file("set", &path))?;
        }
        Ok(())
    }

    /// Begins or goes on.
    pub(crate) fn start(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "1")
    }

    /// Ends; what is in the buffers stays there.
    pub(crate) fn stop(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "0")
    }

    /// The pages of a processor's buffer, each read(2) one of them.
    pub(crate) fn pages(&self, processor: u32) -> Result<File, TraceError> {
        let path = self.path(&format!("per_cpu/cpu{processor}/trace_pipe_raw"));
        let opened = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path);
        opened.map_err(file("open", &path))
    }

    /// The events that this processor's buffer had no room for, so far.
    pub(crate) fn lost(&self, processor: u32) -> Result<u64, TraceError> {
        let path = self.path(&format!("per_cpu/cpu{processor}/stats"));
        let mut text = String::new();
        let read = File::open(&path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(file("read", &path))?;
        Ok(lost(&text))
    }
}

fn number_of(entry: &fs::DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()
}

/// Events that were written over, did not fit, or were dropped, of a `stats` file.
fn lost(text: &str) -> u64 {
    let counted = |line: &str| {
        let (name, count) = line.split_once(':')?;
        let counts = matches!(name, "overrun" | "commit overrun" | "dropped events");
        count.trim().parse::<u64>().ok().filter(|_| counts)
    };
    text.lines().filter_map(counted).fold(0, u64::saturating_add)
}

/// Removes the instances of processes that have ended without; how many are still there. Those of
/// the process that has started this one count among them while it runs.
pub(crate) fn remove_left(all: &Path, parent: Option<u32>) -> usize {
    let Ok(entries) = fs::read_dir(all) else { return 0 };
    let mut left = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(owner) else { continue };
        if owner.runs() {
            left += usize::from(Some(owner.pid) == parent);
            continue;
        }
        // It is busy as long as one of its files is open. Another process may be faster.
        let removed = fs::remove_dir(entry.path());
        left += usize::from(removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound));
    }
    left
}

/// The process that owns an instance, from its name.
fn owner(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix(NAME)?.split('-');
    let pid = parts.next()?.parse().ok()?;
    let start_ticks = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    parts.next().is_none().then_some(Process { pid, start_ticks })
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It is busy while one of its files is open, and all are closed now. Errors are ignored.
        let _ = self.stop();
        let _ = fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whose_they_are() {
        let expected = Process { pid: 71, start_ticks: 99 };
        assert_eq!(owner("takeup-71-99-0"), Some(expected));
        for other in ["takeup-71-99", "takeup-71-99-0-1", "takeup-x-99-0", "mine-71-99-0", ""] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn everything_that_got_lost_is_counted() {
        let text = "entries: 5\noverrun: 100\ncommit overrun: 2\nbytes: 44\n\
                    oldest event ts:  7.5\ndropped events: 30\nread events: 9\n";
        assert_eq!(lost(text), 132);
        assert_eq!(lost("overrun: x\n"), 0);
    }
}
