//! What the threads of other processes are doing: running, waiting for a core, or waiting in which
//! call.
//!
//! `/proc/PID/task/TID/syscall` shows number and arguments of the call that a thread waits in or
//! runs. Reading it takes the right to trace the process (ptrace(2)), which its parent has. A
//! thread that its group's quota keeps from a core shows there as running, like one on a core. The
//! scheduler's accounts of the thread ([`Schedule`]) and of its group ([`crate::control_groups`])
//! distinguish the two.
//!
//! Not here: what a call means for a pipeline or a disk, which is `watch`'s and `pipeline`'s.

use std::fs;
use std::path::PathBuf;

/// Most threads of one process that are looked at.
pub const THREADS_MAX: usize = 64;

/// The threads of a process, at most [`THREADS_MAX`]; empty if it has ended.
pub fn of(process: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    all.flatten().filter_map(number).take(THREADS_MAX).collect()
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Not waiting in a call: on a core, or kept from one.
    Runs,
    /// Waiting in the call with this number and these arguments.
    Waits {
        /// The architecture's number of the call (syscalls(2)).
        number: u64,
        /// The arguments of the call.
        arguments: [u64; 6],
    },
    /// Waiting outside of a call: for a page or a signal, or stopped.
    Outside,
}

impl Call {
    /// Of a thread; `None` if it has ended, or this process may not look at it.
    pub fn of(process: u32, thread: u32) -> Option<Call> {
        let path = format!("/proc/{process}/task/{thread}/syscall");
        Call::parse(&fs::read_to_string(path).ok()?)
    }

    /// From the text of `/proc/PID/syscall` (proc_pid_syscall(5)).
    ///
    /// ```
    /// use machine::threads::Call;
    ///
    /// assert_eq!(Call::parse("running\n"), Some(Call::Runs));
    /// let read = Call::parse("0 0x3 0x7f20 0x10000 0x0 0x0 0x0 0x7ffd 0x7f31\n");
    /// assert_eq!(read, Some(Call::Waits { number: 0, arguments: [3, 0x7f20, 0x10000, 0, 0, 0] }));
    /// ```
    pub fn parse(text: &str) -> Option<Call> {
        let mut words = text.split_ascii_whitespace();
        let number = match words.next()? {
            "running" => return Some(Call::Runs),
            "-1" => return Some(Call::Outside),
            number => number.parse().ok()?,
        };
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Call::Waits { number, arguments })
    }
}

/// The scheduler's account of a thread so far (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Nanoseconds on a core.
    pub ran_ns: u64,
    /// Nanoseconds for which it could run but had no core.
    pub waited_ns: u64,
}

impl Schedule {
    /// Of a thread, if the kernel keeps such an account.
    pub fn of(process: u32, thread: u32) -> Option<Schedule> {
        let path = format!("/proc/{process}/task/{thread}/schedstat");
        Schedule::parse(&fs::read_to_string(path).ok()?)
    }

    /// From the text of `/proc/PID/schedstat`.
    pub fn parse(text: &str) -> Option<Schedule> {
        let mut words = text.split_ascii_whitespace().map(str::parse);
        let (Some(Ok(ran_ns)), Some(Ok(waited_ns))) = (words.next(), words.next()) else {
            return None;
        };
        Some(Schedule { ran_ns, waited_ns })
    }
}

/// The command line of a process; empty if it has ended or is a kernel thread.
pub fn arguments(process: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = text.split(|byte| *byte == 0).map(|it| String::from_utf8_lossy(it).into_owned());
    let mut words: Vec<String> = words.collect();
    if words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    words
}

/// The path of an open file of a process, as the kernel names it.
pub fn open_file(process: u32, number: u64) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/fd/{number}")).ok()
}

#[cfg(test)]
mod tests {
    use std::io::pipe;
    use std::os::fd::AsRawFd as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_reads_an_empty_pipe_waits_in_read() {
        let (reader, writer) = pipe().unwrap();
        let mut child = Command::new("cat").stdin(reader).stdout(Stdio::null()).spawn().unwrap();
        let waits = || match Call::of(child.id(), child.id()) {
            Some(Call::Waits { number, arguments }) => Some((number, arguments[0])),
            _ => None,
        };
        let mut seen = None;
        for _ in 0..1000 {
            // Between fork and its first read the child may be in execve(2), with arguments of 0.
            seen = waits().filter(|(number, file)| matches!(number, 0 | 63) && *file == 0);
            let is_cat = arguments(child.id()) == ["cat"];
            if seen.is_some() && is_cat {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // read(2) has number 0 on x86-64, and 63 in the generic table.
        assert!(matches!(seen, Some((0 | 63, 0))), "{seen:?}");
        let file = open_file(child.id(), 0).unwrap();
        assert!(file.to_str().unwrap().starts_with("pipe:["), "{file:?}");
        assert!(Schedule::of(child.id(), child.id()).unwrap().ran_ns > 0);
        assert_eq!(of(child.id()), [child.id()]);
        drop(writer);
        child.wait().unwrap();
        assert_eq!(Call::of(child.id(), child.id()), None);
        assert!(of(child.id()).is_empty() && arguments(child.id()).is_empty());
    }

    #[test]
    fn a_file_of_ours_has_its_name() {
        let (reader, _writer) = pipe().unwrap();
        let number = u64::try_from(reader.as_raw_fd()).unwrap();
        assert!(open_file(std::process::id(), number).is_some());
        assert_eq!(open_file(std::process::id(), 1 << 40), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = (Call::parse(&text), Schedule::parse(&text));
        }
    }
}
