//! Memory of the machine, and the pages that the kernel had to reclaim.

use super::{CounterError, read};
use crate::table;

const MEMINFO: &str = "/proc/meminfo";
const VMSTAT: &str = "/proc/vmstat";

/// Memory at one moment (proc_meminfo(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All that the kernel manages.
    pub total_bytes: u64,
    /// Memory that programs can get without swapping.
    pub available_bytes: u64,
}

impl Memory {
    /// Of this machine, now.
    ///
    /// # Errors
    /// When `/proc/meminfo` cannot be read or understood.
    pub fn now() -> Result<Memory, CounterError> {
        Memory::parse(&read(MEMINFO)?)
    }

    /// From the text of `/proc/meminfo`.
    ///
    /// # Errors
    /// When total or available memory is missing.
    pub fn parse(text: &[u8]) -> Result<Memory, CounterError> {
        let text = String::from_utf8_lossy(text);
        let missing = |what| CounterError::Missing { file: MEMINFO, what };
        Ok(Memory {
            total_bytes: table::bytes(&text, "MemTotal").ok_or(missing("MemTotal"))?,
            available_bytes: table::bytes(&text, "MemAvailable").ok_or(missing("MemAvailable"))?,
        })
    }
}

/// Pages that the kernel reclaimed since the machine was started: by its own thread, and while a
/// program waited for memory.
///
/// # Errors
/// When `/proc/vmstat` cannot be read or understood.
pub fn reclaimed_pages() -> Result<u64, CounterError> {
    parse_reclaimed_pages(&read(VMSTAT)?)
}

/// The same from the text of `/proc/vmstat`.
///
/// # Errors
/// When the text has no such counters.
pub fn parse_reclaimed_pages(text: &[u8]) -> Result<u64, CounterError> {
    let text = String::from_utf8_lossy(text);
    let value = |what: &'static str| -> Result<u64, CounterError> {
        let of_line = |line: &str| line.strip_prefix(what)?.strip_prefix(' ')?.trim().parse().ok();
        text.lines().find_map(of_line).ok_or(CounterError::Missing { file: VMSTAT, what })
    };
    Ok(value("pgsteal_kswapd")?.wrapping_add(value("pgsteal_direct")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_text_is_understood() {
        let text = b"MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:   8 kB\n";
        let expected = Memory { total_bytes: 16 << 20, available_bytes: 8 << 10 };
        assert_eq!(Memory::parse(text).unwrap(), expected);
        let error = Memory::parse(b"MemTotal: 1 kB\n").unwrap_err();
        assert_eq!(error.to_string(), "/proc/meminfo has no MemAvailable");
        let text = b"pgsteal_kswapd_x 1\npgsteal_kswapd 40\npgsteal_direct 2\n";
        assert_eq!(parse_reclaimed_pages(text).unwrap(), 42);
        assert!(parse_reclaimed_pages(b"pgsteal_kswapd 1\n").is_err());
    }

    #[test]
    fn this_machine_tells() {
        let memory = Memory::now().unwrap();
        assert!(memory.available_bytes > 1 << 20 && memory.available_bytes <= memory.total_bytes);
        reclaimed_pages().unwrap();
    }
}
