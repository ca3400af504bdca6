//! The drive at the end of a pipeline: how long it needs for the data, whichever stage writes.

use base::finding::{Certainty, Finding, Unit};
use base::format::{duration, rate};

use super::{Case, Predicted, line, rules};
use crate::Drive;

/// A wait of more than this many times what the drive needs, plus [`STOPS_SECONDS`], is due to
/// stops of the drive.
const STOPS_RATIO: f64 = 1.5;
const STOPS_SECONDS: f64 = 0.3;
/// A source that takes less than this share of the drive's writing time never lets the drive run
/// empty. The margin covers errors of the model.
const GOES_ON_SHARE: f64 = 0.9;
/// Time of the kernel and its caller for a write, as a rule.
const CALL_SECONDS: f64 = 60e-6;
/// Time of the kernel and its caller for a write, at most.
pub(super) const KERNEL_SECONDS: f64 = 120e-6;

/// Block size of the proposed buffer.
const BUFFER_BLOCK_BYTES: u64 = 512 << 10;

/// Programs whose output a drive cannot compress further.
const COMPRESSORS: [&str; 16] = [
    "gzip", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "zstd", "lz4", "lzop", "lzma", "lzip",
    "plzip", "brotli", "age", "gpg", "openssl",
];

impl Case<'_> {
    /// The least time in which the drive writes the output of the last stage; 0 where it is not
    /// known. A drive that compresses may need less, unless its data are compressed already.
    pub(super) fn drive_seconds(&self) -> f64 {
        let stages = &self.look.stages;
        let given = stages.last().and_then(|last| last.bytes_out);
        let (Some(drive), Some(bytes)) = (&self.look.drive, given) else { return 0.0 };
        let compresses = |name: &str| COMPRESSORS.contains(&name);
        let is_compressed = stages.iter().any(|stage| {
            compresses(stage.program()) || stage.works_most.as_deref().is_some_and(compresses)
        });
        if drive.compresses && !is_compressed {
            return 0.0;
        }
        bytes as f64 / drive.highest_bytes_per_second.max(f64::MIN_POSITIVE)
    }

    /// [`Case::drive_seconds`] plus the filemark, which waits until all data are on the medium.
    pub(super) fn drive_seconds_to_end(&self) -> f64 {
        let mark = self.look.drive.as_ref().and_then(|drive| drive.synchronise_seconds);
        // A run that was cut off wrote no filemark.
        let mark = mark.unwrap_or(0.0).min(self.end_seconds());
        match self.drive_seconds() {
            seconds if seconds > 0.0 => seconds + mark,
            _ => 0.0,
        }
    }

    /// [`Case::drive_seconds_to_end`] from the first byte on, if the pipeline delivers the data
    /// within `source_seconds`.
    pub(super) fn drive_seconds_fed(&self, source_seconds: f64) -> f64 {
        match self.drive_seconds_to_end() {
            seconds if seconds > 0.0 => self.start_seconds(source_seconds) + seconds,
            _ => 0.0,
        }
    }

    /// How long the drive collects data before it starts, if it gets all data within
    /// `source_seconds`; 0 where that is not known.
    fn start_seconds(&self, source_seconds: f64) -> f64 {
        let start = || {
            let bytes = self.look.stages.last()?.bytes_out.filter(|&bytes| bytes > 0)? as f64;
            let start_bytes = self.look.drive.as_ref()?.start_bytes?;
            Some(source_seconds * (start_bytes / bytes).min(1.0))
        };
        start().unwrap_or(0.0)
    }

    /// How long the transfer of all data to the drive takes with so many writes. Each costs
    /// `call_seconds` beside its command and its bytes; `None` where a command's cost is not known.
    fn given_seconds(&self, writes: f64, call_seconds: f64) -> Option<f64> {
        let drive = self.look.drive.as_ref()?;
        let bytes = self.look.stages.last()?.bytes_out? as f64;
        let byte = drive.interface_bytes_per_second.map_or(0.0, |rate| 1.0 / rate.max(1.0));
        Some(writes * (drive.command_seconds? + call_seconds) + bytes * byte)
    }

    /// How long the last stage waited for the drive to accept its writes, and the longest time that
    /// the drive needs for them if it never stops; `None` where that is not known.
    fn waited_and_needed(&self) -> Option<(f64, f64)> {
        let last = self.look.stages.last()?;
        let medium = Some(self.drive_seconds()).filter(|&seconds| seconds > 0.0)?;
        let needed = medium + self.given_seconds(last.write_calls as f64, KERNEL_SECONDS)?;
        Some((last.device_write_seconds - last.flush_seconds, needed))
    }

    /// How much less the last stage waits for the drive with a buffer before it; 0 where the cost
    /// of a write is not known. It then waits for the drive's commands only; the callers compare
    /// the whole run with the time of the medium.
    pub(super) fn spared_by_buffer(&self) -> f64 {
        let of = |last: &super::Stage| {
            let needed = self.given_seconds(last.write_calls as f64, CALL_SECONDS)?;
            Some((last.device_write_seconds - last.flush_seconds - needed).max(0.0))
        };
        let is_known = self.drive_seconds() > 0.0;
        self.look.stages.last().filter(|_| is_known).and_then(of).unwrap_or(0.0)
    }

    /// Whether the last stage waited much longer for the drive than the data take: the drive ran
    /// out of data, went back and started again.
    pub(super) fn drive_stops(&self) -> bool {
        self.waited_and_needed()
            .is_some_and(|(waited, needed)| waited > STOPS_RATIO * needed + STOPS_SECONDS)
    }

    /// Whether the last stage waited much longer than the data take at the drive's rate, where only
    /// the rate is known: the drive may have stopped, or its commands take so long.
    pub(super) fn may_have_stopped(&self) -> bool {
        let of = |drive: &Drive| {
            let last = self.look.stages.last().filter(|_| drive.command_seconds.is_none())?;
            let waited = last.device_write_seconds - last.flush_seconds;
            let bytes = last.bytes_out? as f64;
            let medium = bytes / drive.highest_bytes_per_second.max(f64::MIN_POSITIVE);
            Some(waited > STOPS_RATIO * medium + STOPS_SECONDS)
        };
        self.look.drive.as_ref().and_then(of).unwrap_or(false)
    }

    /// Run time if the drive always gets data as fast as the source delivers them; `own_seconds` is
    /// the time of the last stage without its end. A source that is slower than the drive stops it
    /// all the same: the data collected during a stop, half of them as a rule, are written after
    /// the end of the source.
    pub(super) fn streamed_seconds(&self, own_seconds: f64) -> Option<f64> {
        let drive = self.look.drive.as_ref()?;
        let medium = Some(self.drive_seconds()).filter(|&seconds| seconds > 0.0)?;
        let mark = drive.synchronise_seconds?;
        let source = self.source_seconds(own_seconds, self.used_seconds(), None)?;
        let fed = self.start_seconds(source) + medium + mark;
        Some(match self.end_behind(source)? {
            end if source > medium => fed.max(source + end),
            _ => fed,
        })
    }

    /// How long it takes until all data have reached the drive: the longest of the last stage
    /// without its end (`own_seconds`), the stages before it (`changed` replaces the time of one)
    /// and the cores.
    fn source_seconds(
        &self,
        own_seconds: f64,
        used_seconds: f64,
        changed: Option<(usize, f64)>,
    ) -> Option<f64> {
        let before = self.look.stages.len().checked_sub(1)?;
        let least = own_seconds.max(used_seconds / self.left_cores());
        let seconds = |at: usize| match changed {
            Some((stage, seconds)) if stage == at => Some(seconds),
            _ => self.fed_seconds(at),
        };
        (0..before).try_fold(least, |most, at| Some(most.max(seconds(at)?)))
    }

    /// Run time if a drive that stops now gets its data faster than it writes them, because one of
    /// the stages before it (`changed`) becomes faster: it then writes without a stop. `None` where
    /// it would still stop.
    pub(super) fn kept_going(&self, changed: (usize, f64), used_seconds: f64) -> Option<f64> {
        let mark = self.look.drive.as_ref()?.synchronise_seconds?;
        let medium = Some(self.drive_seconds()).filter(|&seconds| seconds > 0.0)?;
        let (last, before) = self.look.stages.split_last()?;
        let given = self.given_seconds(last.write_calls as f64, CALL_SECONDS)?;
        let own = self.seen_seconds(before.len()) - last.device_write_seconds + given;
        let source = self.source_seconds(own, used_seconds, Some(changed))?;
        let goes_on = changed.0 < before.len() && source < GOES_ON_SHARE * medium;
        goes_on.then(|| self.start_seconds(source) + medium + mark)
    }

    /// Time of the drive after the end of a source that takes `source_seconds`: the filemark, and
    /// half of what a stop lets the drive collect if the source is too slow to keep it going.
    fn end_behind(&self, source_seconds: f64) -> Option<f64> {
        let drive = self.look.drive.as_ref()?;
        let mark = drive.synchronise_seconds?;
        let medium = self.drive_seconds();
        if source_seconds <= medium {
            return Some(mark);
        }
        let rate = self.look.stages.last()?.bytes_out? as f64 / source_seconds;
        if rate >= drive.lowest_bytes_per_second? {
            return Some(mark);
        }
        let stop = drive.stop_seconds?;
        let halves = if self.has_stopped(stop)? { 1.0 + medium / source_seconds } else { 0.0 };
        Some(mark + stop / 2.0 * halves)
    }

    /// Whether the last stage waited for the drive longer than its commands and its filemark take,
    /// by half a stop or more. Little data fit into the buffer, and the drive starts at the end.
    fn has_stopped(&self, stop_seconds: f64) -> Option<bool> {
        let drive = self.look.drive.as_ref()?;
        let last = self.look.stages.last()?;
        let given = self.given_seconds(last.write_calls as f64, CALL_SECONDS)?;
        let needed = given + drive.synchronise_seconds.unwrap_or(0.0);
        Some(last.device_write_seconds - needed > stop_seconds / 2.0)
    }

    /// [`Case::end_behind`]; 0 where the drive's stops are not known.
    pub(super) fn stop_at_end_seconds(&self, source_seconds: f64) -> f64 {
        let is_known = self.drive_seconds() > 0.0 && self.end_seconds() > 0.0;
        self.end_behind(source_seconds).filter(|_| is_known).unwrap_or(0.0)
    }

    /// Busy time of the last stage, or of the buffer between it and the drive, without its end.
    fn behind_buffer_seconds(&self) -> Option<f64> {
        let last = self.look.stages.last()?;
        let own = self.seen_seconds(self.look.stages.len() - 1) - last.device_write_seconds;
        Some(own.max(self.host_seconds(BUFFER_BLOCK_BYTES)?))
    }

    /// How long the transfer of all data to the drive takes in blocks of `block_bytes`.
    pub(super) fn host_seconds(&self, block_bytes: u64) -> Option<f64> {
        let bytes = self.look.stages.last()?.bytes_out?;
        self.given_seconds(bytes.div_ceil(block_bytes) as f64, CALL_SECONDS)
    }

    /// Reports that the drive stops, and proposes a buffer.
    pub(super) fn stops(&self) -> Option<(Finding, Option<Predicted>)> {
        let (waited, needed) = self.waited_and_needed().filter(|_| self.drive_stops())?;
        let what = format!(
            "writes waited {} for {}, which needs {} for the data if it never stops",
            duration(waited),
            self.look.drive.as_ref()?.name,
            duration(needed)
        );
        let command = self.split.as_deref().and_then(line::buffered);
        let finding = Finding::new(&rules::DRIVE_STOPS, Certainty::Inferred, what)
            .because("a drive that runs out of data stops, winds back and starts again")
            .with_number("waited", waited, Unit::Seconds)
            .with_number("needed", needed, Unit::Seconds);
        let change = "put a buffer in front of the drive";
        let seconds = self.behind_buffer_seconds().and_then(|own| self.streamed_seconds(own));
        let predicted = seconds.map(|seconds| Predicted {
            change: change.to_owned(),
            command: command.clone(),
            seconds: self.whole(seconds),
        });
        let unknown = if predicted.is_some() { "" } else { "; how much it saves is not known" };
        let finding = match command {
            Some(command) => {
                finding.with_action(format!("{change}{unknown}: {command}")).with_command(command)
            }
            None => finding.with_action(format!("{change}{unknown}")),
        };
        Some((finding, predicted))
    }

    /// The drive's highest rate and its time for the data, in words.
    pub(super) fn drive_said(&self) -> Option<String> {
        let drive = self.look.drive.as_ref()?;
        let (rate, all) =
            (rate(drive.highest_bytes_per_second), duration(self.drive_seconds_to_end()));
        Some(format!("{} writes {rate} at most: {all} for the data", drive.name))
    }
}
