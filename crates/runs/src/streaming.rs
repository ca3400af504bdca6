//! What a backup to tape reports besides the numbers of every run: the set, the medium, and whether
//! the drive could stream.
//!
//! The verdict compares the rate of data to the drive with its lowest speed. Below that speed a
//! drive empties its buffer, stops, winds back and starts again. The host does not see it: the
//! buffer takes the writes all the while, so no write seems slow.

use std::borrow::Cow;

use archive::label::hex;
use base::finding::{Certainty, Finding, Unit};
use base::format::{count, rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::NamedMedium;

use crate::rules;

/// The end of a backup to tape. Names are kept once they are published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeSummary {
    pub device: String,
    /// Id of the set, 32 hexadecimal digits.
    pub set: String,
    /// Generation of the first medium.
    pub generation: Option<Cow<'static, str>>,
    /// Its lowest speed in native bytes per second.
    pub lowest_bytes_per_second: Option<u64>,
    /// Where the lowest speed comes from, in words.
    pub lowest_certainty: Option<String>,
    /// How sure the lowest speed is.
    #[serde(skip)]
    pub certainty: Option<Certainty>,
    /// Size of the drive's buffer. A set that fits into it says nothing about streaming.
    pub drive_buffer_bytes: Option<u64>,
    /// Bytes of each block.
    pub block_bytes: u64,
    /// Length at which segments are closed, in bytes of the archive.
    pub segment_bytes: u64,
    /// File on the first medium at which the set begins.
    pub file_number: u32,
    /// Volumes of the set.
    pub volumes: u32,
    /// The media, in the order of the volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<WrittenMedium>,
    /// Segments, the index segment included.
    pub segments: u32,
    /// Blocks written, labels included.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// Filemarks written.
    pub filemarks: u64,
    /// Time that the drive took for writes, as the kernel counts it.
    pub write_seconds: Option<f64>,
    /// Time until the first medium could be written: winding, and reading its label.
    pub ready_seconds: f64,
    /// Part of `ready_seconds` for reading the label; the rest is winding.
    pub label_seconds: f64,
    /// Time of the last filemark, which waits until everything is on the medium.
    pub synchronise_seconds: f64,
    /// Time for changes of volume.
    pub change_seconds: f64,
    /// Time in which the drive could receive data: without the last filemark and changes of volume.
    pub streaming_seconds: f64,
    /// `bytes` by `streaming_seconds`: the rate of data to the drive.
    pub streaming_bytes_per_second: f64,
    /// Whether that rate is at least the lowest speed; `null` when the speed is unknown.
    pub kept_streaming: Option<bool>,
    /// How often the ring ran empty.
    pub ring_ran_empty: u64,
    /// The verdict in words.
    pub verdict: String,
    /// The same in parts, for the findings of the run.
    #[serde(skip)]
    pub finding: Option<Finding>,
}

/// A medium that got a volume of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenMedium {
    /// Its id, as in its labels.
    pub medium: String,
    /// What it is called: its bar code, or as `--volume-name` said.
    pub name: Option<String>,
}

impl From<&NamedMedium> for WrittenMedium {
    fn from(medium: &NamedMedium) -> WrittenMedium {
        let name = medium.name.map(|name| name.to_string());
        WrittenMedium { medium: hex(&medium.medium), name }
    }
}

impl TapeSummary {
    /// Computes the fields that follow from the others.
    #[must_use]
    pub fn judged(mut self) -> TapeSummary {
        if self.streaming_seconds > 0.0 {
            self.streaming_bytes_per_second = self.bytes as f64 / self.streaming_seconds;
        }
        let is_long_enough = self.bytes > self.drive_buffer_bytes.unwrap_or(0);
        self.kept_streaming = self
            .lowest_bytes_per_second
            .filter(|_| is_long_enough)
            .map(|lowest| self.streaming_bytes_per_second >= lowest as f64);
        let finding = self.found();
        self.verdict = finding.line();
        self.finding = Some(finding);
        self
    }

    fn found(&self) -> Finding {
        let given = rate(self.streaming_bytes_per_second);
        let empty = match self.ring_ran_empty {
            0 => "the ring never ran empty".to_owned(),
            1 => "the ring ran empty once".to_owned(),
            times => format!("the ring ran empty {} times", count(times)),
        };
        let found = |rule, certainty, what| {
            Finding::new(rule, certainty, what)
                .with_number("given", self.streaming_bytes_per_second, Unit::BytesPerSecond)
                .with_number("ring_ran_empty", self.ring_ran_empty as f64, Unit::Count)
        };
        let (Some(lowest), Some(generation)) = (self.lowest_bytes_per_second, &self.generation)
        else {
            let what = format!(
                "the drive was given {given}, and {empty}; whether it streamed is unknown: the \
                 density of the medium belongs to no LTO generation"
            );
            return found(&rules::NO_SPEEDS, Certainty::Unknown, what);
        };
        let by = self.lowest_certainty.as_deref().unwrap_or("assumed");
        let needs = format!("{generation} streams from {} on ({by})", rate(lowest as f64));
        let (rule, judged) = match (self.kept_streaming, self.ring_ran_empty) {
            (Some(true), _) => {
                let ratio = self.streaming_bytes_per_second / lowest as f64;
                let unless = format!("unless it compresses by more than {ratio:.1}:1");
                (&rules::STREAMED, format!(": it could stream, {unless}; {empty}"))
            }
            (None, _) => (
                &rules::IN_THE_BUFFER,
                "; all of it fits into the drive's buffer, so this says nothing about streaming"
                    .to_owned(),
            ),
            (_, 0) => {
                (&rules::TOO_LITTLE, format!(": it was too little to stream, though {empty}"))
            }
            _ => (
                &rules::STOPPED,
                format!(
                    ": it had to stop and go back; {empty}, and each time the drive emptied its \
                     buffer and stopped"
                ),
            ),
        };
        // Nothing reports stops: they follow from the rate of data to the drive.
        let certainty = match (self.kept_streaming, self.certainty) {
            (None, _) => Certainty::Unknown,
            (_, Some(Certainty::Told)) => Certainty::Inferred,
            _ => Certainty::Assumed,
        };
        found(rule, certainty, format!("the drive was given {given}, and {needs}{judged}"))
            .with_number("lowest", lowest as f64, Unit::BytesPerSecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn summary(bytes: u64, seconds: f64, ring_ran_empty: u64) -> TapeSummary {
        TapeSummary {
            set: "0123456789abcdef0123456789abcdef".into(),
            generation: Some("LTO-8".into()),
            lowest_bytes_per_second: Some(112_000_000),
            lowest_certainty: Some("by a maker's manual".into()),
            certainty: Some(Certainty::Told),
            block_bytes: 1 << 20,
            volumes: 2,
            segments: 3,
            blocks: bytes >> 20,
            bytes,
            streaming_seconds: seconds,
            synchronise_seconds: 2.5,
            write_seconds: Some(seconds / 2.0),
            ring_ran_empty,
            ..TapeSummary::default()
        }
        .judged()
    }

    #[test]
    fn each_rule_speaks() {
        let short = TapeSummary { drive_buffer_bytes: Some(1 << 30), ..summary(1 << 30, 4.0, 0) };
        let unknown = TapeSummary { generation: None, ..summary(1 << 30, 4.0, 1) };
        let summaries = [
            summary(1 << 30, 4.0, 0),
            summary(1 << 30, 20.0, 0),
            summary(1 << 30, 20.0, 7),
            unknown.judged(),
            short.judged(),
        ];
        let found = summaries.iter().map(|summary| summary.finding.as_ref().unwrap());
        let spoke: BTreeSet<&str> = found.clone().map(|finding| &*finding.rule).collect();
        let listed: BTreeSet<&str> = rules::STREAMING.rules.iter().map(|rule| rule.id).collect();
        assert_eq!(spoke, listed);
        use Certainty::{Inferred, Unknown};
        let sure: Vec<Certainty> = found.map(|finding| finding.certainty).collect();
        assert_eq!(sure, [Inferred, Inferred, Inferred, Unknown, Unknown]);
    }

    #[test]
    fn the_verdict_is_that_of_the_numbers() {
        assert_eq!(summary(112_000_000, 1.0, 0).kept_streaming, Some(true));
        assert_eq!(summary(111_000_000, 1.0, 0).kept_streaming, Some(false));
        assert_eq!(TapeSummary::default().judged().kept_streaming, None);
    }
}
