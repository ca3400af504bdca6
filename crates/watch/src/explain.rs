//! What the columns of a device mean: each rule is a function of an interval.
//!
//! The first finding says what the requests look like, the next ones where they wait. An almost
//! idle device has no findings.

mod queueing;
mod shape;
#[cfg(test)]
mod tests;

use base::finding::{Certainty, Finding, Severity, Unit};
use storage::queue::Queue;

use crate::intervals::{CounterState, DeviceInterval};
use crate::rules;

/// Minimum number of requests for a finding about them.
const REQUESTS_MIN: u64 = 20;
/// A device gets findings if it is busy for this share of the time, in per cent, or
const BUSY_PERCENT: f64 = 5.0;
/// moves this many bytes per second, or
const BYTES_PER_SECOND: f64 = 1e6;
/// has this many requests per second.
const REQUESTS_PER_SECOND: f64 = 100.0;
/// A direction matters if it has this share of requests or bytes.
const SHARE: f64 = 0.1;

/// All findings for a device in an interval of this many seconds.
pub fn findings(device: &DeviceInterval, seconds: f64) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(state(device));
    if device.state == CounterState::NotCounted {
        return findings;
    }
    findings.extend(hung(device));
    if !is_worth_a_word(device, seconds) {
        return findings;
    }
    let stack = device.queue.as_ref().filter(|queue| !queue.made_of.is_empty());
    if stack.is_none_or(Queue::has_requests) {
        findings.extend(shape::findings(device));
        findings.extend(queueing::findings(device));
    }
    findings.extend(stack.map(|queue| stacked(device, queue)));
    if device.number == (0, 0) {
        let what = "one path of a multipath device";
        let why = "the multipath device may count the same requests again";
        let finding = Finding::new(&rules::HIDDEN_PATH, Certainty::Told, what);
        findings.push(finding.because(why));
    }
    findings
}

/// Requests of all kinds except flushes.
fn requests(device: &DeviceInterval) -> u64 {
    let counted = &device.counted;
    [counted.read, counted.write, counted.discard]
        .iter()
        // Saturating, because a record may be damaged.
        .fold(0, |sum, it| sum.saturating_add(it.requests))
}

/// Whether a device was busy enough in an interval for a finding.
pub(crate) fn is_worth_a_word(device: &DeviceInterval, seconds: f64) -> bool {
    let count = requests(device).saturating_add(device.counted.flush.requests);
    let counted = &device.counted;
    let all = [counted.read, counted.write, counted.discard];
    let bytes = all.iter().fold(0_u64, |sum, it| sum.saturating_add(it.bytes()));
    count >= REQUESTS_MIN
        && (device.columns.busy_percent >= BUSY_PERCENT
            || bytes as f64 >= BYTES_PER_SECOND * seconds
            || count as f64 >= REQUESTS_PER_SECOND * seconds)
}

fn state(device: &DeviceInterval) -> Option<Finding> {
    let told =
        |rule, what: &str, why: &str| Some(Finding::new(rule, Certainty::Told, what).because(why));
    match device.state {
        CounterState::Counted => None,
        CounterState::Appeared => {
            told(&rules::APPEARED, "the device appeared", "its counters started at 0")
        }
        CounterState::CountedAnew => told(
            &rules::COUNTED_ANEW,
            "the counters restarted",
            "it is another device, or the same one came back; this interval has no numbers",
        ),
        CounterState::NotCounted => {
            let name = &device.name;
            let what = "not counted";
            let why = "counting is switched off (iostats is 0), so no column changes";
            let command = format!("echo 1 > /sys/block/{name}/queue/iostats");
            told(&rules::NOT_COUNTED, what, why).map(|finding| finding.with_command(command))
        }
    }
}

/// Requests without a time from which on their times are not counted.
const UNTIMED_MIN: u64 = 100;

/// Whether the kernel counts requests of an array and not their times, which md does where it shows
/// `iostats` as 0 and counts all the same.
fn has_no_times(device: &DeviceInterval, queue: &Queue) -> bool {
    let counted = &device.counted;
    let all = [counted.read, counted.write, counted.discard, counted.flush];
    let times = all.iter().map(|it| u64::from(it.time_ms)).sum::<u64>();
    let none = times + u64::from(counted.busy_ms) + u64::from(counted.weighted_ms) == 0;
    let is_such = device.name.starts_with("md") && queue.iostats == Some(0);
    none && is_such && requests(device) >= UNTIMED_MIN
}

fn stacked(device: &DeviceInterval, queue: &Queue) -> Finding {
    let below = queue.made_of.join(", ");
    let what = format!("a device over {below}");
    if has_no_times(device, queue) {
        let why = "the kernel counts its requests and not their times: await, aqu-sz and %util \
                   say nothing here; see the devices below";
        return Finding::new(&rules::NO_TIMES, Certainty::Told, what).because(why);
    }
    let why = if queue.has_requests() {
        "requests are merged here; the devices below show how many they accept at once"
    } else {
        "it merges nothing, and its times have the resolution of clock ticks: see the devices below"
    };
    Finding::new(&rules::STACKED, Certainty::Told, what).because(why)
}

/// Two intervals, because one may fall between two requests of a slow device.
const STUCK_INTERVALS: u32 = 2;
/// And this long, however short the intervals are.
const STUCK_SECONDS: f64 = 2.0;

fn hung(device: &DeviceInterval) -> Option<Finding> {
    let stuck = device.stuck;
    if stuck.intervals < STUCK_INTERVALS || stuck.seconds < STUCK_SECONDS {
        return None;
    }
    let now = device.in_flight.now;
    let requests = base::format::counted(now.into(), "request", "requests");
    let time = base::format::duration(stuck.seconds);
    let what = format!("the device hangs: {requests} in flight, none finished for {time}");
    let why = "the columns count only finished requests, so they show 0";
    let finding = Finding::new(&rules::HUNG, Certainty::Measured, what).because(why);
    let finding = finding.severe(Severity::Critical);
    let finding = finding.with_number("in flight", now.into(), Unit::Count);
    let finding = finding.with_number("without an end", stuck.seconds, Unit::Seconds);
    Some(finding.with_action("look for the cause in the kernel's log (dmesg)"))
}

/// A size in KiB with three digits, in MiB where that is shorter.
fn kib(value: f64) -> String {
    match value {
        large if large >= 10_240.0 => format!("{:.1} MiB", large / 1024.0),
        middle if middle >= 99.95 => format!("{middle:.0} KiB"),
        small => format!("{small:.1} KiB"),
    }
}

/// A time in milliseconds with about three digits.
fn milliseconds(value: f64) -> String {
    match value {
        long if long >= 99.95 => format!("{long:.0} ms"),
        middle if middle >= 0.9995 => format!("{middle:.1} ms"),
        short => format!("{short:.2} ms"),
    }
}
