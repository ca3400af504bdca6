//! How busy the processor was with other programs during a run.
//!
//! Stages that wait for a core look busy from inside; whether they wait for each other or for
//! somebody else only the whole machine's counters tell.

use rustix::time::{ClockId, clock_gettime};

/// A look at the clocks at the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorClock {
    machine_seconds: f64,
    own_seconds: f64,
}

impl ProcessorClock {
    /// Looks now. `None` where `/proc/stat` cannot be read.
    pub fn start() -> Option<ProcessorClock> {
        let machine_seconds = machine_busy_seconds(&std::fs::read("/proc/stat").ok()?)?;
        Some(ProcessorClock { machine_seconds, own_seconds: own_seconds() })
    }

    /// Seconds of processor time that other programs have used since, on all cores together.
    pub fn others_seconds(&self) -> Option<f64> {
        let now = ProcessorClock::start()?;
        let machine = now.machine_seconds - self.machine_seconds;
        Some((machine - (now.own_seconds - self.own_seconds)).max(0.0))
    }
}

fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Busy time of all cores: the first line of `/proc/stat` (proc_stat(5)) without `idle` and
/// `iowait`, and without the two guest columns, which `user` and `nice` hold already.
fn machine_busy_seconds(stat: &[u8]) -> Option<f64> {
    const COLUMNS: usize = 8;
    let line = stat.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("cpu ")?;
    let mut ticks = [0u64; COLUMNS];
    for (tick, text) in ticks.iter_mut().zip(line.split_ascii_whitespace()) {
        *tick = text.parse().ok()?;
    }
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks;
    let busy = [user, nice, system, irq, softirq, steal];
    let busy: f64 = busy.iter().map(|&ticks| ticks as f64).sum();
    Some(busy / rustix::param::clock_ticks_per_second().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn idle_time_is_not_busy() {
        let ticks = rustix::param::clock_ticks_per_second();
        let line = format!("cpu  {ticks} 0 {ticks} 99999 99999 0 0 0 7 7\ncpu0 1\n");
        assert_eq!(machine_busy_seconds(line.as_bytes()), Some(2.0));
        assert_eq!(machine_busy_seconds(b"intr 5"), None);
        assert_eq!(machine_busy_seconds(b"cpu  1 x"), None);
    }

    #[test]
    fn this_machine_tells() {
        let clock = ProcessorClock::start().unwrap();
        assert!(clock.others_seconds().unwrap() >= 0.0);
    }

    proptest! {
        #[test]
        fn no_input_panics(stat in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = machine_busy_seconds(&stat);
            let _ = machine_busy_seconds(&[b"cpu ", &stat[..]].concat());
        }
    }
}
