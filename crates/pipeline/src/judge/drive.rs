//! The drive behind a pipeline: what it needs for all that it is given, whoever hands it over.

use base::finding::{Certainty, Finding, Unit};
use base::format::{duration, rate};

use super::{Case, Predicted, line, rules};
use crate::Drive;

/// Waiting that is so many times what the drive needs, and this longer, is for its stops.
const STOPS_RATIO: f64 = 1.5;
const STOPS_SECONDS: f64 = 0.3;
/// A source that takes less than this share of what the drive writes for never lets it run empty,
/// with what its model may be off by.
const GOES_ON_SHARE: f64 = 0.9;
/// What the kernel and its caller take for a write as a rule.
const CALL_SECONDS: f64 = 60e-6;
/// The same at most.
pub(super) const KERNEL_SECONDS: f64 = 120e-6;

/// Blocks of the buffer that is proposed.
const BUFFER_BLOCK_BYTES: u64 = 512 << 10;

/// Programs whose output a drive cannot make smaller.
const COMPRESSORS: [&str; 16] = [
    "gzip", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "zstd", "lz4", "lzop", "lzma", "lzip",
    "plzip", "brotli", "age", "gpg", "openssl",
];

impl Case<'_> {
    /// How long the drive writes what the last stage gave it, at the least; 0 where nothing is
    /// known of that. A drive that compresses may need less, unless it is given what is compressed.
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

    /// The same with the filemark behind it, which waits for all of it.
    pub(super) fn drive_seconds_to_end(&self) -> f64 {
        let mark = self.look.drive.as_ref().and_then(|drive| drive.synchronise_seconds);
        // A run that was cut off has written no mark.
        let mark = mark.unwrap_or(0.0).min(self.end_seconds());
        match self.drive_seconds() {
            seconds if seconds > 0.0 => seconds + mark,
            _ => 0.0,
        }
    }

    /// The same from the first byte on, where the pipeline gives the drive its data within so many
    /// seconds.
    pub(super) fn drive_seconds_fed(&self, source_seconds: f64) -> f64 {
        match self.drive_seconds_to_end() {
            seconds if seconds > 0.0 => self.start_seconds(source_seconds) + seconds,
            _ => 0.0,
        }
    }

    /// How long the drive collects data before it starts, where it is given all within so many
    /// seconds; 0 where that is not known.
    fn start_seconds(&self, source_seconds: f64) -> f64 {
        let start = || {
            let bytes = self.look.stages.last()?.bytes_out.filter(|&bytes| bytes > 0)? as f64;
            let start_bytes = self.look.drive.as_ref()?.start_bytes?;
            Some(source_seconds * (start_bytes / bytes).min(1.0))
        };
        start().unwrap_or(0.0)
    }

    /// How long the drive takes to be given all data by so many writes, each of which costs that
    /// much beside its command and its bytes; `None` where a command's cost is not known.
    fn given_seconds(&self, writes: f64, call_seconds: f64) -> Option<f64> {
        let drive = self.look.drive.as_ref()?;
        let bytes = self.look.stages.last()?.bytes_out? as f64;
        let byte = drive.interface_bytes_per_second.map_or(0.0, |rate| 1.0 / rate.max(1.0));
        Some(writes * (drive.command_seconds? + call_seconds) + bytes * byte)
    }

    /// How long the last stage waited for the drive to take its writes, and how long the drive
    /// takes for them at the most where it never stops; `None` where nothing is known of that.
    fn waited_and_needed(&self) -> Option<(f64, f64)> {
        let last = self.look.stages.last()?;
        let medium = Some(self.drive_seconds()).filter(|&seconds| seconds > 0.0)?;
        let needed = medium + self.given_seconds(last.write_calls as f64, KERNEL_SECONDS)?;
        Some((last.device_write_seconds - last.flush_seconds, needed))
    }

    /// What the last stage waits less for the drive's writes with a buffer in front, where what the
    /// drive takes for a write is known: it then waits for what its commands take, and the medium
    /// is held against all of it elsewhere.
    pub(super) fn spared_by_buffer(&self) -> f64 {
        let of = |last: &super::Stage| {
            let needed = self.given_seconds(last.write_calls as f64, CALL_SECONDS)?;
            Some((last.device_write_seconds - last.flush_seconds - needed).max(0.0))
        };
        let is_known = self.drive_seconds() > 0.0;
        self.look.stages.last().filter(|_| is_known).and_then(of).unwrap_or(0.0)
    }

    /// Whether the drive was waited for much longer than it takes for the data: it stops for want
    /// of data, goes back and starts again.
    pub(super) fn drive_stops(&self) -> bool {
        self.waited_and_needed()
            .is_some_and(|(waited, needed)| waited > STOPS_RATIO * needed + STOPS_SECONDS)
    }

    /// Whether a drive of which no more than its rate is known was waited for for much longer than
    /// the data take at that: it may have stopped, or its commands take so long.
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

    /// How long it takes where the drive is given all that it takes, by a last stage of that many
    /// seconds without its end. A source that is slower than the drive stops it all the same:
    /// what is collected meanwhile comes behind the end of the source, half of it as a rule.
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

    /// How long a drive's data take to be there, by a last stage of that many seconds without its
    /// end, the stages in front, of which `changed` takes that many seconds, and the cores.
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

    /// How long it takes where a drive that stops gets its data faster than it writes them, since
    /// one of the stages in front takes so long and all together that much processor time: it then
    /// goes on from its start to its end. `None` where it would stop still.
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

    /// What a drive takes behind the end of a source that takes so long: the filemark, and where
    /// the source is too slow for the drive to go on, half of what a stop lets it collect.
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

    /// Whether the drive was waited for longer than its commands and its filemark take, by half a
    /// stop or more. Little data stays in its buffer, and it never starts before the end.
    fn has_stopped(&self, stop_seconds: f64) -> Option<bool> {
        let drive = self.look.drive.as_ref()?;
        let last = self.look.stages.last()?;
        let given = self.given_seconds(last.write_calls as f64, CALL_SECONDS)?;
        let needed = given + drive.synchronise_seconds.unwrap_or(0.0);
        Some(last.device_write_seconds - needed > stop_seconds / 2.0)
    }

    /// The same where a stop is a part of it; 0 where nothing is known of one.
    pub(super) fn stop_at_end_seconds(&self, source_seconds: f64) -> f64 {
        let is_known = self.drive_seconds() > 0.0 && self.end_seconds() > 0.0;
        self.end_behind(source_seconds).filter(|_| is_known).unwrap_or(0.0)
    }

    /// How long the last stage, or the buffer between it and the drive, is busy, without its end.
    fn behind_buffer_seconds(&self) -> Option<f64> {
        let last = self.look.stages.last()?;
        let own = self.seen_seconds(self.look.stages.len() - 1) - last.device_write_seconds;
        Some(own.max(self.host_seconds(BUFFER_BLOCK_BYTES)?))
    }

    /// How long the drive takes to be given all data in blocks of so many bytes.
    pub(super) fn host_seconds(&self, block_bytes: u64) -> Option<f64> {
        let bytes = self.look.stages.last()?.bytes_out?;
        self.given_seconds(bytes.div_ceil(block_bytes) as f64, CALL_SECONDS)
    }

    /// That it stops, and what helps.
    pub(super) fn stops(&self) -> Option<(Finding, Option<Predicted>)> {
        let (waited, needed) = self.waited_and_needed().filter(|_| self.drive_stops())?;
        let what = format!(
            "{} was waited for for {}, and takes the data in {} where it never stops",
            self.look.drive.as_ref()?.name,
            duration(waited),
            duration(needed)
        );
        let command = self.split.as_deref().and_then(line::buffered);
        let finding = Finding::new(&rules::DRIVE_STOPS, Certainty::Inferred, what)
            .because("a drive that runs out of data stops, goes back and starts again")
            .with_number("waited", waited, Unit::Seconds)
            .with_number("needed", needed, Unit::Seconds);
        let change = "put a buffer in front of the drive";
        let seconds = self.behind_buffer_seconds().and_then(|own| self.streamed_seconds(own));
        let predicted = seconds.map(|seconds| Predicted {
            change: change.to_owned(),
            command: command.clone(),
            seconds: self.whole(seconds),
        });
        let unknown = if predicted.is_some() { "" } else { "; what it saves is not known" };
        let finding = match command {
            Some(command) => {
                finding.with_action(format!("{change}{unknown}: {command}")).with_command(command)
            }
            None => finding.with_action(format!("{change}{unknown}")),
        };
        Some((finding, predicted))
    }

    /// The same in words.
    pub(super) fn drive_said(&self) -> Option<String> {
        let drive = self.look.drive.as_ref()?;
        let (rate, all) =
            (rate(drive.highest_bytes_per_second), duration(self.drive_seconds_to_end()));
        Some(format!("{} takes {rate} at most, {all} for all of it", drive.name))
    }
}
