//! Small writes to a tape: each costs the drive and the kernel a fixed time.

use base::finding::{Certainty, Finding, Unit};
use base::format::{binary_size, duration};

use super::drive::KERNEL_SECONDS;
use super::{Case, Predicted, line, rules};

/// Writes to a tape of fewer bytes than this are small; [`PROPOSED_BYTES`] is what Takeup proposes.
const SMALL_WRITE_BYTES: f64 = 60.0 * 1024.0;
pub(super) const PROPOSED_BYTES: u64 = 64 << 10;
/// Fewer writes cost too little to report.
const WRITES_MIN: u64 = 200;
/// The writes must take this share of the run to be reported.
const WRITES_SHARE: f64 = 0.1;

/// The most processor time of a call beside its bytes: the rest is other work.
const CALL_SECONDS_MAX: f64 = 60e-6;
/// Rate at which the kernel copies bytes for reads and writes.
const COPY_BYTES_PER_SECOND: f64 = 4e9;

/// Small writes of the last stage.
struct Writes {
    bytes_each: f64,
    count: f64,
    seconds_each: f64,
}

impl Case<'_> {
    /// The tape that the last stage writes to.
    fn tape(&self) -> Option<String> {
        let last = self.look.stages.last()?;
        let is_tape = |what: &str| what.starts_with("/dev/nst") || what.starts_with("/dev/st");
        let named = || last.waits_for.iter().find(|wait| is_tape(&wait.what));
        let drive = self.look.drive.as_ref().map(|drive| drive.name.clone());
        drive.or_else(|| named().map(|wait| wait.what.clone()))
    }

    fn small_writes(&self) -> Option<Writes> {
        let last = self.look.stages.last()?;
        let bytes_each = last.write_bytes_mean?;
        let seconds = last.device_write_seconds - last.flush_seconds;
        let count = last.write_calls;
        let is_small = bytes_each < SMALL_WRITE_BYTES && count >= WRITES_MIN;
        let seconds_each = seconds / count as f64;
        (is_small && self.share(seconds) >= WRITES_SHARE).then_some(Writes {
            bytes_each,
            count: count as f64,
            seconds_each,
        })
    }

    /// Seconds of a write beside its bytes, and seconds of a byte; `None` where the drive's numbers
    /// are not known.
    fn costs(&self, writes: &Writes) -> Option<(f64, f64)> {
        let drive = self.look.drive.as_ref()?;
        let fixed = drive.command_seconds?;
        let byte = drive.interface_bytes_per_second.map_or(0.0, |rate| 1.0 / rate.max(1.0));
        let transfer = writes.bytes_each * byte;
        let waits_for_medium = writes.seconds_each > fixed + transfer + KERNEL_SECONDS;
        let fixed = if waits_for_medium { fixed } else { writes.seconds_each - transfer };
        Some((fixed.max(0.0), byte))
    }

    /// Read calls of the last stage, and the kernel's processor time of a call beside its bytes.
    fn reads(&self, writes: &Writes) -> (f64, f64) {
        let Some(last) = self.look.stages.last() else { return (0.0, 0.0) };
        let (reads, read_bytes) = match (last.bytes_in, last.read_bytes_mean) {
            (Some(bytes), Some(mean)) => (bytes as f64 / mean.max(1.0), bytes as f64),
            _ => (0.0, 0.0),
        };
        let moved = read_bytes + writes.count * writes.bytes_each;
        let copied = moved / COPY_BYTES_PER_SECOND;
        let each = (last.system_seconds - copied) / (reads + writes.count);
        (reads, each.clamp(0.0, CALL_SECONDS_MAX))
    }

    /// Run time with larger writes, each of which costs a fixed time beside its bytes.
    fn larger_seconds(&self, writes: &Writes, fixed: f64, byte: f64) -> Option<f64> {
        let last = self.look.stages.len().checked_sub(1)?;
        let moved = writes.count * writes.bytes_each;
        let fewer = (moved / PROPOSED_BYTES as f64).ceil();
        let with_own =
            |own: f64| self.overlapped_with(Some((last, own.max(0.0))), self.used_seconds());
        let (reads, call_seconds) = self.reads(writes);
        let saved_writes = (writes.count - fewer).max(0.0);
        if line::blocks::option(self.look.stages[last].program(), PROPOSED_BYTES).is_some() {
            // Most programs read with the same size as they write.
            let saved_calls = saved_writes + (reads - fewer).max(0.0);
            let saved = saved_writes * fixed + saved_calls * call_seconds;
            let seconds = with_own(self.seen_seconds(last) - saved)?;
            return Some(seconds.max(self.seconds() - saved));
        }
        // A second program writes while this one goes on.
        let each = writes.seconds_each + call_seconds;
        let seconds = with_own(self.seen_seconds(last) - each * writes.count)?;
        Some(seconds.max(fewer * fixed + moved * byte + self.end_seconds()))
    }

    /// Run time with larger writes if the drive then gets its data faster than it writes them, or
    /// fast enough to keep going: it does not stop, whether it did before or not.
    fn larger_streamed_seconds(&self, writes: &Writes) -> Option<f64> {
        let last = self.look.stages.len().checked_sub(1)?;
        let stage = &self.look.stages[last];
        let host = self.host_seconds(PROPOSED_BYTES)?;
        let rest = (self.seen_seconds(last) - stage.device_write_seconds).max(0.0);
        let has_option = line::blocks::option(stage.program(), PROPOSED_BYTES).is_some();
        let own = if has_option {
            let fewer = writes.count * writes.bytes_each / PROPOSED_BYTES as f64;
            let (reads, call_seconds) = self.reads(writes);
            let saved_calls = (writes.count - fewer).max(0.0) + (reads - fewer).max(0.0);
            (rest - saved_calls * call_seconds).max(0.0) + host
        } else {
            rest.max(host)
        };
        let rate = stage.bytes_out? as f64 / own;
        let lowest = self.look.drive.as_ref()?.lowest_bytes_per_second;
        let goes_on = own <= self.drive_seconds() || lowest.is_some_and(|lowest| rate >= lowest);
        self.streamed_seconds(own).filter(|_| goes_on || !has_option)
    }

    /// Small writes to a tape by the busiest stage, and what larger ones save.
    pub(super) fn small_tape_writes(&self) -> Option<(Finding, Option<Predicted>)> {
        let tape = self.tape()?;
        let last = self.look.stages.len().checked_sub(1)?;
        let writes = self.small_writes().filter(|_| self.longest == last)?;
        let stage = &self.look.stages[last];
        #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number")]
        let each = binary_size(writes.bytes_each.round() as u64);
        let what = format!(
            "{} writes {each} to {tape} per call: {} each, {} in all",
            self.named(last),
            short(writes.seconds_each),
            duration(writes.seconds_each * writes.count)
        );
        let finding = Finding::new(&rules::SMALL_TAPE_WRITES, Certainty::Measured, what)
            .because("each write costs a fixed time beside its bytes")
            .with_number("bytes", writes.bytes_each, Unit::Bytes)
            .with_number("seconds", writes.seconds_each, Unit::Seconds);
        let typed = self.split.as_deref().and_then(|split| split.last());
        let larger = typed.and_then(|typed| line::blocks::larger(typed, PROPOSED_BYTES));
        let option = line::blocks::option(stage.program(), PROPOSED_BYTES);
        let change = option.map_or_else(
            || "collect blocks of 64 KiB in front of the tape".to_owned(),
            |option| format!("write 64 KiB per call: {option}"),
        );
        let unknown = |why: &str| {
            let action = format!("{change}; how much it saves is not known, because {why}");
            Some((finding.clone().with_action(action), None))
        };
        let Some((fixed, byte)) = self.costs(&writes) else {
            return unknown("the cost of a write to this drive is not known");
        };
        let seconds = match self.larger_streamed_seconds(&writes) {
            Some(seconds) => seconds,
            None if self.drive_stops() => {
                return unknown("the drive stops for want of data, and may no longer do so then");
            }
            None => self.larger_seconds(&writes, fixed, byte)?,
        };
        let command = self.split.as_deref().and_then(|split| {
            let mut all = split.to_vec();
            let changed =
                larger.or_else(|| line::blocks::collected(split.last()?, PROPOSED_BYTES))?;
            *all.last_mut()? = changed;
            Some(all.join(" | "))
        });
        let predicted =
            self.if_worth(seconds, || Predicted { change, command, seconds: self.whole(seconds) });
        let gained = (self.seconds() - seconds).max(0.0);
        let mut finding = finding;
        finding.gain = predicted.is_some().then(|| {
            let how = option_or_blocks(stage.program());
            format!("{how} saves about {}", duration(gained))
        });
        // Small writes are a finding only where larger ones save time.
        predicted.is_some().then_some((finding, predicted))
    }
}

/// A duration that may be less than a millisecond.
fn short(seconds: f64) -> String {
    if seconds < 0.9995e-3 { format!("{:.0} us", seconds * 1e6) } else { duration(seconds) }
}

fn option_or_blocks(program: &str) -> String {
    let option = line::blocks::option(program, PROPOSED_BYTES);
    option.unwrap_or_else(|| "blocks of 64 KiB".to_owned())
}
