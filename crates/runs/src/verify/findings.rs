//! The results of a verification.

use crate::read::{ChunkHeaders, Damage, Outside, ReadSummary, TableState};
use crate::verify::Bounded;
use crate::verify::Differing;
use crate::verify::Hit;
use crate::verify::Problem;
use crate::verify::ReadFrom;
use crate::verify::hit;
use crate::warnings::Warnings;
use archive::index::FileRecord;
use flow::monitor::Harm;
use flow::run::{Endpoint, RunReport};
use std::path::PathBuf;
use tapeset::TapeReading;

/// What the archive was checked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Whether the archive has an index, and it was read completely.
    pub index: bool,
    /// Files in the index.
    pub files: u64,
    /// Files whose content was compared with a hash of the index.
    pub content_hashes: u64,
    /// Blocks compared with a checksum of the index; `None` if that is not possible: if the index
    /// comes after the blocks (a pipe), and these do not have the usual size.
    pub blocks: Option<u64>,
    /// Members compared with live objects.
    pub compared: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub run: RunReport,
    /// The tape's results, if it was a tape.
    pub tape: Option<TapeReading>,
    /// Warnings given to the monitor: damage, differences, missing and uncompared objects.
    pub warnings: u64,
    /// What the archive was checked with.
    pub checked: Checked,
    /// Where the archive was read from.
    pub read_from: ReadFrom,
    /// Damage of the archive, by check: several checks may find one flaw.
    pub damaged: Bounded<Problem>,
    /// The damaged members.
    pub hit: Hit,
    /// Live objects that changed since the backup.
    pub changed: Bounded<Differing>,
    /// Live objects that differ although size and times say that they were not touched.
    pub differs: Bounded<Differing>,
    /// Members without a live object.
    pub missing: Bounded<Vec<u8>>,
    /// Live objects that are not in the archive, in directories that are. Nothing below an extra
    /// directory is listed.
    pub extra: Bounded<Vec<u8>>,
    /// Members that could not be compared.
    pub not_compared: Bounded<Problem>,
    /// Set if the directory compared with has almost nothing of the archive.
    pub elsewhere: Option<Elsewhere>,
}

/// The directory compared with has almost nothing of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// The folder that was probably meant: one above or directly below it that has the missing
    /// members.
    pub probably: Option<PathBuf>,
}

impl VerifyReport {
    /// Whether the archive itself is sound.
    pub fn is_sound(&self) -> bool {
        self.damaged.total == 0
    }

    /// Records damage and warns of it.
    pub(super) fn damage(&mut self, damage: &Damage, warnings: &Warnings<'_>) {
        if damage.is_certain() {
            let path = damage.path.clone();
            self.hit.path(&path, hit::Object::File);
            self.damaged.push(Problem { path, what: damage.to_string() });
        }
        warnings.damage(damage);
    }

    /// Records damage of the compressed form of a Takeup archive.
    pub(super) fn outside(
        &mut self,
        summary: &ReadSummary,
        from_end: IndexFromEnd,
        warnings: &Warnings<'_>,
    ) {
        let Outside { table, headers } = summary.outside;
        let has_table = summary.compression == "zstd" && summary.endpoint != Endpoint::Tape;
        if has_table && table != TableState::Holds {
            let why =
                "the seek table after the last frame is missing, or does not match the frames";
            self.damage(&Damage::of_index(why.to_owned()), warnings);
        }
        // If the source holds more than one archive, foreign members are no damage; and other
        // damage makes it unknown whether it does.
        let is_alone = from_end == IndexFromEnd::Expected && self.damaged.total == 0;
        if let (ChunkHeaders::Changed(at), true) = (headers, is_alone) {
            self.damage(&Damage::of_chunk_header(at), warnings);
        }
    }

    /// Records damage of a member that is in the index.
    pub(super) fn problem_of(
        &mut self,
        record: &FileRecord,
        what: String,
        warnings: &Warnings<'_>,
    ) {
        self.hit.record(record);
        self.problem(&record.path, what, warnings);
    }

    pub(super) fn problem(&mut self, path: &[u8], what: String, warnings: &Warnings<'_>) {
        warnings.warn(Harm::Damage, path, what.clone());
        self.damaged.push(Problem { path: path.to_vec(), what });
    }
}

/// Whether the index of a file must also be found from the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexFromEnd {
    /// One archive with its index and nothing else.
    Expected,
    /// There is none, or other data before or after it.
    NotExpected,
}

/// Adds blocks whose checksum does not hold to a report.
pub(super) fn report_blocks(
    block_bytes: u32,
    differing: &[u64],
    differing_count: u64,
    report: &mut VerifyReport,
    warnings: &Warnings<'_>,
) {
    report.hit.blocks(differing, block_bytes.into());
    for block in differing {
        let at = block * u64::from(block_bytes);
        let what = format!("the checksum of the {block_bytes} bytes at byte {at} does not hold");
        report.problem(b"", what, warnings);
    }
    report.damaged.total += differing_count.saturating_sub(differing.len() as u64);
}
