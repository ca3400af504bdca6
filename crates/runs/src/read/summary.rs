//! The result of reading a whole archive.

use std::ops::Range;

use archive::stream::ArchiveOffset;
use flow::crew::cores;
use flow::monitor::Harm;
use flow::run::{Command, Endpoint, RunReport, StageReport};

use super::Outside;
use crate::warnings::Warnings;
use tapeset::{TapeEnd, TapeReading};

/// The result of reading.
pub(crate) struct ReadSummary {
    pub endpoint: Endpoint,
    pub engine: &'static str,
    /// Bytes taken from the source.
    pub source_bytes: u64,
    /// Bytes of the archive before compression.
    pub archive_bytes: u64,
    pub compression: &'static str,
    pub ring_bytes: u64,
    /// Bytes after the last chunk.
    pub trailing_bytes: u64,
    /// Whether everything was read past the page cache.
    pub past_cache: bool,
    /// The headers and seek table of its compressed form.
    pub outside: Outside,
    /// `read` and, when compressed, `decompress`.
    pub stages: Vec<StageReport>,
    /// The tape's results.
    pub tape: Option<TapeEnd>,
    /// What could not be read: ranges of the archive before compression.
    pub lost: Vec<Range<ArchiveOffset>>,
}

impl ReadSummary {
    /// Puts the result into the report of a run, and reports the tape's warnings.
    pub fn enter(
        self,
        run: &mut RunReport,
        command: Command,
        target: Endpoint,
        warnings: &Warnings<'_>,
    ) -> Option<TapeReading> {
        if self.trailing_bytes > 0 {
            let bytes = self.trailing_bytes;
            warnings.note(b"", format!("{bytes} bytes after the compressed data were skipped"));
        }
        (run.command, run.target) = (command, target);
        run.archive_bytes = self.archive_bytes;
        run.target_bytes = self.source_bytes;
        run.stages = self.stages;
        run.ring_bytes = self.ring_bytes;
        run.engine = self.engine.into();
        run.source = self.endpoint;
        run.compression = self.compression.to_owned();
        run.cores = cores();
        let tape = self.tape?;
        run.ready_seconds = tape.report.ready_seconds;
        run.label_seconds = tape.report.label_seconds;
        run.winding_seconds = tape.report.winding_seconds;
        run.change_seconds = tape.report.change_seconds;
        run.unreadable_blocks = tape.report.lost_blocks;
        for text in tape.notes {
            warnings.note(b"", text);
        }
        for text in tape.warnings {
            warnings.warn(Harm::Unseen, b"", text);
        }
        for text in tape.damage {
            warnings.warn(Harm::Damage, b"", text);
        }
        Some(tape.report)
    }
}
