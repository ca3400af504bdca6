//! What the kernel reports about one process.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::table;

/// When a process started and how much time it has used (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Processor time of all threads in ticks, user and system.
    pub used_ticks: u64,
    /// Ticks of the children that it has waited for, and of their children.
    pub children_ticks: u64,
    /// The part of both that was spent in the kernel.
    pub system_ticks: u64,
    /// Start time, in ticks since the machine was started. It distinguishes a process from a later
    /// one with the same number.
    pub start_ticks: u64,
    /// Page faults that had to wait for a device, including those of the children that it has
    /// waited for.
    pub major_faults: u64,
    /// Whether the process has ended and its parent has not yet collected its exit status.
    pub has_ended: bool,
}

impl ProcessTimes {
    /// Of a process of this machine, if it exists.
    pub fn of(process: u32) -> Option<ProcessTimes> {
        ProcessTimes::parse(&fs::read(format!("/proc/{process}/stat")).ok()?)
    }

    /// From the text of `/proc/PID/stat`, if the text is complete.
    pub fn parse(text: &[u8]) -> Option<ProcessTimes> {
        // The name in brackets, the second field, may hold anything, even brackets and line ends.
        // The first word behind it is the third field.
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&text[end + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(ProcessTimes {
            used_ticks: number(14)?.saturating_add(number(15)?),
            children_ticks: number(16)?.saturating_add(number(17)?),
            system_ticks: number(15)?.saturating_add(number(17)?),
            start_ticks: number(22)?,
            major_faults: number(12)?.saturating_add(number(13)?),
            has_ended: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }

    /// Processor time in seconds.
    pub fn used_seconds(&self) -> f64 {
        seconds(self.used_ticks)
    }

    /// Processor time in seconds, including the children that it has waited for.
    pub fn with_children_seconds(&self) -> f64 {
        seconds(self.used_ticks.saturating_add(self.children_ticks))
    }

    /// The part of that time spent in the kernel.
    pub fn system_seconds(&self) -> f64 {
        seconds(self.system_ticks)
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64
}

/// A process, distinct from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Start time, in ticks since the machine was started.
    pub start_ticks: u64,
}

impl Process {
    /// The process with that number that runs now.
    pub fn of(pid: u32) -> Option<Process> {
        let times = ProcessTimes::of(pid).filter(|times| !times.has_ended)?;
        Some(Process { pid, start_ticks: times.start_ticks })
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        Process::of(self.pid) == Some(*self)
    }
}

/// Detects the end of a process with one cheap call (pidfd_open(2)); reading `/proc` would be too
/// expensive to do all the time.
#[derive(Debug)]
pub struct Ending(OwnedFd);

impl Ending {
    /// For this process, if it still runs.
    pub fn of(process: Process) -> Option<Ending> {
        let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
        let ending = Ending(pidfd_open(pid, PidfdFlags::empty()).ok()?);
        // Another process may have got the number before it was opened.
        process.runs().then_some(ending)
    }

    /// Whether it has ended.
    pub fn has_come(&self) -> bool {
        let mut end = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut end, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// The name of a process' program, cut off at 15 bytes by the kernel (proc_pid_comm(5)).
pub fn name(process: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// The children of all threads of a process; empty if the kernel keeps no such list
/// (`CONFIG_PROC_CHILDREN`).
pub fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let numbers = |list: String| -> Vec<u32> {
        list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// The numbers of all processes, also of ended ones that nobody has waited for.
pub fn numbers() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All processes that have not ended.
pub fn running() -> impl Iterator<Item = Process> {
    numbers().filter_map(Process::of)
}

/// The processes of a group that have not ended, found by looking at all processes.
pub fn of_group(group: u32) -> Vec<u32> {
    let is_in_it = |process: &u32| {
        let text = fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
        group_of_living(&text) == Some(group)
    };
    numbers().filter(is_in_it).collect()
}

/// The group of a process from its `/proc/PID/stat`; `None` if the process has ended.
fn group_of_living(text: &[u8]) -> Option<u32> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(group)
}

/// Bytes that a process has moved, including those of the children that it has waited for
/// (proc_pid_io(5)). Mapped and spliced data are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessBytes {
    /// Bytes returned by calls that read files, pipes and devices.
    pub read_bytes: u64,
    /// Bytes passed to calls that write.
    pub written_bytes: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes that devices read for it, including read-ahead and mapped files.
    pub device_read_bytes: u64,
    /// Bytes that devices must write because of it, counted when a page of the page cache becomes
    /// dirty.
    pub device_written_bytes: u64,
    /// The part of those that was never written, because the file was truncated or removed.
    pub cancelled_bytes: u64,
}

impl ProcessBytes {
    /// Of a process, even an ended one whose exit status is not yet collected, if this process may
    /// look.
    pub fn of(process: u32) -> Option<ProcessBytes> {
        ProcessBytes::parse(&fs::read_to_string(format!("/proc/{process}/io")).ok()?)
    }

    /// From the text of `/proc/PID/io`.
    pub fn parse(text: &str) -> Option<ProcessBytes> {
        let number = |name: &str| table::field(text, name)?.parse().ok();
        Some(ProcessBytes {
            read_bytes: number("rchar")?,
            written_bytes: number("wchar")?,
            read_calls: number("syscr")?,
            write_calls: number("syscw")?,
            device_read_bytes: number("read_bytes")?,
            device_written_bytes: number("write_bytes")?,
            cancelled_bytes: number("cancelled_write_bytes")?,
        })
    }
}

/// A line of this process' status by its name, `Umask` or `SigIgn` (proc_pid_status(5)).
pub fn own_status(name: &str) -> Option<String> {
    let text = fs::read("/proc/self/status").ok()?;
    table::field(&String::from_utf8_lossy(&text), name).map(str::to_owned)
}

/// Huge pages in the memory of a process, in bytes. Counting them makes the kernel walk through all
/// of its memory (proc_pid_smaps(5), `AnonHugePages`).
pub fn huge_page_bytes(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    table::bytes(&text, "AnonHugePages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"71 (a) R 9 (b\n) S 1 71 71 0 -1 4194304 9 0 2 3 500 25 7 3 20 0 1 0 1234 5\n";
        let expected = ProcessTimes {
            used_ticks: 525,
            children_ticks: 10,
            system_ticks: 28,
            start_ticks: 1234,
            major_faults: 5,
            has_ended: false,
        };
        assert_eq!(ProcessTimes::parse(text), Some(expected));
        assert_eq!(ProcessTimes::parse(b"71 (a) R 1"), None);
        assert_eq!(ProcessTimes::parse(b""), None);
    }

    /// The parent may never collect the exit status.
    #[test]
    fn what_has_ended_and_is_not_waited_for_does_not_run() {
        assert!(Process::of(std::process::id()).is_some_and(|own| own.runs()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let begun = std::time::Instant::now();
        while Process::of(child.id()).is_some() {
            assert!(begun.elapsed().as_secs() < 60, "it never ends");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(ProcessTimes::of(child.id()).unwrap().has_ended);
        child.wait().unwrap();
    }

    #[test]
    fn the_group_is_the_fifth_field_of_what_has_not_ended() {
        assert_eq!(group_of_living(b"71 (a) R 9 (b\n) S 1 70 71 0"), Some(70));
        assert_eq!(group_of_living(b"71 (a) Z 1 70 71 0"), None);
        assert_eq!(group_of_living(b"71 (a"), None);
    }

    #[test]
    fn bytes_are_those_of_calls() {
        let text = "rchar: 70\nwchar: 50\nsyscr: 2\nsyscw: 1\nread_bytes: 4096\n\
                    write_bytes: 8192\ncancelled_write_bytes: 512\n";
        let expected = ProcessBytes {
            read_bytes: 70,
            written_bytes: 50,
            read_calls: 2,
            write_calls: 1,
            device_read_bytes: 4096,
            device_written_bytes: 8192,
            cancelled_bytes: 512,
        };
        assert_eq!(ProcessBytes::parse(text), Some(expected));
        assert_eq!(ProcessBytes::parse("rchar: 70"), None);
        assert!(ProcessBytes::of(std::process::id()).is_some());
    }

    #[test]
    fn a_child_has_its_parent_and_its_name() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        // spawn returns a moment before the kernel sets the new name (fs/exec.c).
        let is_named = || name(child.id()).as_deref() == Some("sleep");
        for _ in 0..1000 {
            if is_named() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(is_named());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(name(child.id()), None);
    }

    #[test]
    fn this_process_is_known() {
        let own = ProcessTimes::of(std::process::id()).unwrap();
        assert!(own.start_ticks > 0 && own.used_seconds() >= 0.0);
        assert_eq!(ProcessTimes::of(u32::MAX), None);
        assert!(u32::from_str_radix(&own_status("Umask").unwrap(), 8).is_ok());
        assert_eq!(own_status("Nothing"), None);
    }
}
