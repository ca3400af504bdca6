//! Processor time: of the machine, of this process, of a thread.
//!
//! A thread that waits for a core looks busy from inside. Only the counters of the whole machine
//! show whether other programs had the cores.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};

use super::{CounterError, read};
use crate::threads::Schedule;

const STAT: &str = "/proc/stat";

/// Time of all cores since the machine was started, in seconds (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineTime {
    /// Time in programs, the kernel and interrupts.
    pub busy_seconds: f64,
    /// Time in which the host of a virtual machine gave the cores to others.
    pub steal_seconds: f64,
}

impl MachineTime {
    /// Of this machine, now.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or understood.
    pub fn now() -> Result<MachineTime, CounterError> {
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        MachineTime::parse(&read(STAT)?, ticks_per_second)
    }

    /// From the text of `/proc/stat`, of a kernel with this many ticks a second. `idle` and
    /// `iowait` do not count as busy. Nor do the two guest columns, which `user` and `nice` contain
    /// already.
    ///
    /// # Errors
    /// When the first line is not that of all cores.
    pub fn parse(text: &[u8], ticks_per_second: u64) -> Result<MachineTime, CounterError> {
        let missing = |what| CounterError::Malformed { file: STAT, line: 1, what };
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).map_err(|_| missing("text"))?;
        let columns = line.strip_prefix("cpu ").ok_or(missing("sum of all cores"))?;
        let mut ticks = [0u64; 8];
        let mut words = columns.split_ascii_whitespace();
        for tick in &mut ticks {
            let word = words.next().ok_or(missing("eight columns"))?;
            *tick = word.parse().map_err(|_| missing("number"))?;
        }
        let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks;
        let per_second = ticks_per_second.max(1) as f64;
        let busy: f64 = [user, nice, system, irq, softirq].iter().map(|&ticks| ticks as f64).sum();
        Ok(MachineTime {
            busy_seconds: busy / per_second,
            steal_seconds: steal as f64 / per_second,
        })
    }
}

/// A start time, to compute later how busy other programs kept the cores.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorClock {
    machine: MachineTime,
    own_ns: u64,
}

impl ProcessorClock {
    /// Looks now. `None` where `/proc/stat` cannot be read.
    pub fn start() -> Option<ProcessorClock> {
        Some(ProcessorClock { machine: MachineTime::now().ok()?, own_ns: process_ns() })
    }

    /// Seconds of processor time that others have used since, on all cores together: other
    /// programs, and other virtual machines of the same host.
    pub fn others_seconds(&self) -> Option<f64> {
        let now = ProcessorClock::start()?;
        let taken = |time: MachineTime| time.busy_seconds + time.steal_seconds;
        let own_seconds = now.own_ns.saturating_sub(self.own_ns) as f64 / 1e9;
        Some((taken(now.machine) - taken(self.machine) - own_seconds).max(0.0))
    }
}

/// Processor time of this process so far, all threads, user and system, in nanoseconds.
pub fn process_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}

/// Processor time of all children that this process has waited for, including the children that
/// they have waited for; user and system, in nanoseconds.
///
/// # Errors
/// Never on a kernel as it should be.
pub fn children_ns() -> io::Result<[u64; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = [usage.user_time(), usage.system_time()];
    Ok(time.map(|time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000))
}

/// How often the calling thread has let go of its processor so far because it had to wait: for a
/// disk, or for another thread. 0 if the kernel does not say.
pub fn thread_waits() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.map_or(0, |usage| usage.voluntary_context_switches() as u64)
}

/// Processor time of the calling thread so far, in nanoseconds.
pub fn thread_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The scheduler's account of one thread, held open: reading it takes one system call.
#[derive(Debug)]
pub struct ThreadSchedule {
    file: Option<File>,
}

impl ThreadSchedule {
    /// Of the calling thread. On a kernel without such an account all waits are 0.
    pub fn of_this_thread() -> ThreadSchedule {
        ThreadSchedule { file: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Time that the thread has waited for a core so far, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        let mut text = [0; 64];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = std::str::from_utf8(&text[..read.unwrap_or(0)]).ok();
        text.and_then(Schedule::parse).map_or(0, |schedule| schedule.waited_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn idle_time_is_not_busy() {
        let parse = |text: &str| MachineTime::parse(text.as_bytes(), 100);
        let found = parse("cpu  100 50 100 99999 99999 25 25 200 7 7\ncpu0 1\n").unwrap();
        assert_eq!(found, MachineTime { busy_seconds: 3.0, steal_seconds: 2.0 });
        for text in ["", "intr 5", "cpu  1 x 3 4 5 6 7 8", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8"] {
            assert!(matches!(parse(text), Err(CounterError::Malformed { line: 1, .. })), "{text}");
        }
    }

    #[test]
    fn this_machine_tells() {
        let clock = ProcessorClock::start().unwrap();
        assert!(clock.others_seconds().unwrap() >= 0.0);
        let (thread, process) = (thread_ns(), process_ns());
        assert!(thread > 0 && thread <= process);
    }

    #[test]
    fn the_wait_is_the_second_number() {
        let schedule = Schedule::parse("2463141 7512 13\n").unwrap();
        assert_eq!((schedule.ran_ns, schedule.waited_ns), (2_463_141, 7512));
        assert_eq!(Schedule::parse(""), None);
        ThreadSchedule::of_this_thread().waited_ns();
    }

    proptest! {
        #[test]
        fn no_input_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = MachineTime::parse(&text, 0);
            let _ = MachineTime::parse(&[b"cpu ", &text[..]].concat(), 100);
        }
    }
}
