//! What the kernel tells of one process.

use std::fs;

use crate::table;

/// When a process began and what it has used (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Processor time of all threads in ticks, user and system.
    pub used_ticks: u64,
    /// Ticks since the machine was started at which it began: tells a process from a later one with
    /// the same number.
    pub start_ticks: u64,
}

impl ProcessTimes {
    /// Of a process of this machine, if it is there.
    pub fn of(process: u32) -> Option<ProcessTimes> {
        ProcessTimes::parse(&fs::read(format!("/proc/{process}/stat")).ok()?)
    }

    /// From the text of `/proc/PID/stat`, if it is whole.
    pub fn parse(text: &[u8]) -> Option<ProcessTimes> {
        // The name in brackets, the second field, may hold anything, brackets and ends of lines
        // too; the first word behind it is the third field.
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&text[end + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(ProcessTimes {
            used_ticks: number(14)?.saturating_add(number(15)?),
            start_ticks: number(22)?,
        })
    }

    /// Processor time in seconds.
    pub fn used_seconds(&self) -> f64 {
        self.used_ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64
    }
}

/// A line of this process' status by its name, `Umask` or `SigIgn` (proc_pid_status(5)).
pub fn own_status(name: &str) -> Option<String> {
    let text = fs::read("/proc/self/status").ok()?;
    table::field(&String::from_utf8_lossy(&text), name).map(str::to_owned)
}

/// Huge pages in the memory of a process, in bytes; counting them takes the kernel a walk over all
/// of it (proc_pid_smaps(5), `AnonHugePages`).
pub fn huge_page_bytes(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    table::bytes(&text, "AnonHugePages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"71 (a) R 9 (b\n) S 1 71 71 0 -1 4194304 9 0 0 0 500 25 0 0 20 0 1 0 1234 5\n";
        let expected = ProcessTimes { used_ticks: 525, start_ticks: 1234 };
        assert_eq!(ProcessTimes::parse(text), Some(expected));
        assert_eq!(ProcessTimes::parse(b"71 (a) R 1"), None);
        assert_eq!(ProcessTimes::parse(b""), None);
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
