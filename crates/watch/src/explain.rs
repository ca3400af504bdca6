//! What the columns of a device mean: the rules, as functions of an interval.
//!
//! The first finding says what its requests look like, the next ones where they wait. Nobody
//! speaks of a device that does next to nothing.

mod queueing;
mod shape;
#[cfg(test)]
mod tests;

use base::finding::{Certainty, Finding, Severity, Unit};
use storage::queue::Queue;

use crate::intervals::{CounterState, DeviceInterval};
use crate::rules;

/// Requests that are needed to say anything about them.
const REQUESTS_MIN: u64 = 20;
/// A device is worth a word from here on: busy for so much of the time, or
const BUSY_PERCENT: f64 = 5.0;
/// so many bytes in a second, or
const BYTES_PER_SECOND: f64 = 1e6;
/// so many requests.
const REQUESTS_PER_SECOND: f64 = 100.0;
/// A direction belongs to what the device does with this share of requests or bytes.
const SHARE: f64 = 0.1;

/// All that is to be said of a device in an interval of so many seconds.
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
    findings.extend(stack.map(stacked));
    if device.number == (0, 0) {
        let what = "a path to a device that has several";
        let why = "the device itself may count the same requests once more";
        let finding = Finding::new(&rules::HIDDEN_PATH, Certainty::Told, what);
        findings.push(finding.because(why));
    }
    findings
}

/// Requests of all kinds but flushes.
fn requests(device: &DeviceInterval) -> u64 {
    let counted = &device.counted;
    [counted.read, counted.write, counted.discard]
        .iter()
        // A record may be damaged.
        .fold(0, |sum, it| sum.saturating_add(it.requests))
}

/// Whether a device was busy enough in an interval for a sentence.
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
            told(&rules::APPEARED, "the device appeared", "its counters began at 0 meanwhile")
        }
        CounterState::CountedAnew => told(
            &rules::COUNTED_ANEW,
            "the counters have begun anew",
            "it is another device, or the same that was away; this interval is not known",
        ),
        CounterState::NotCounted => {
            let name = &device.name;
            let what = "not counted";
            let why = "counting is switched off (iostats is 0), so that all columns stand still";
            let command = format!("echo 1 > /sys/block/{name}/queue/iostats");
            told(&rules::NOT_COUNTED, what, why).map(|finding| finding.with_command(command))
        }
    }
}

fn stacked(queue: &Queue) -> Finding {
    let what = format!("a device over {}", queue.made_of.join(", "));
    let why = if queue.has_requests() {
        "what is joined is joined here; how many at once these take, they tell themselves"
    } else {
        "it joins nothing itself, and its times go by ticks of the clock: look at those"
    };
    Finding::new(&rules::STACKED, Certainty::Told, what).because(why)
}

/// Two intervals, since one may lie between two requests of a slow device.
const STUCK_INTERVALS: u32 = 2;
/// And so long, however short the intervals are.
const STUCK_SECONDS: f64 = 2.0;

fn hung(device: &DeviceInterval) -> Option<Finding> {
    let stuck = device.stuck;
    if stuck.intervals < STUCK_INTERVALS || stuck.seconds < STUCK_SECONDS {
        return None;
    }
    let now = device.in_flight.now;
    let requests = base::format::counted(now.into(), "request", "requests");
    let time = base::format::duration(stuck.seconds);
    let what = format!("it hangs: {requests} in flight, and none was finished for {time}");
    let why = "all columns are made of finished requests, so that they show nothing";
    let finding = Finding::new(&rules::HUNG, Certainty::Measured, what).because(why);
    let finding = finding.severe(Severity::Critical);
    let finding = finding.with_number("in flight", now.into(), Unit::Count);
    let finding = finding.with_number("without an end", stuck.seconds, Unit::Seconds);
    Some(finding.with_action("the kernel's log (dmesg) may say why"))
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
