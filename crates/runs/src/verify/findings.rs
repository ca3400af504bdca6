//! What a verification found.

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

/// What there was to check with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Whether the archive carries an index, and it was read whole.
    pub index: bool,
    /// Files that the index knows.
    pub files: u64,
    /// Files whose content was held against a hash of the index.
    pub content_hashes: u64,
    /// Blocks held against a checksum of the index; `None` where that cannot be done: where it
    /// comes behind the blocks (a pipe) and those are not of the usual size.
    pub blocks: Option<u64>,
    /// Members compared with live objects.
    pub compared: u64,
}

/// The end of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// The numbers.
    pub run: RunReport,
    /// What the tape has to tell, if it was one.
    pub tape: Option<TapeReading>,
    /// Warnings given to the monitor: damage, what differs, is missing or could not be compared.
    pub warnings: u64,
    /// What there was to check with.
    pub checked: Checked,
    /// Where the archive was read from.
    pub read_from: ReadFrom,
    /// What is wrong with the archive, by check: one flaw may be found by several.
    pub damaged: Bounded<Problem>,
    /// The members that it hit.
    pub hit: Hit,
    /// Live objects that changed since the backup.
    pub changed: Bounded<Differing>,
    /// Live objects that differ although neither size nor times say that anybody touched them.
    pub differs: Bounded<Differing>,
    /// Members without a live object.
    pub missing: Bounded<Vec<u8>>,
    /// Live objects that are not in the archive, in directories that are. Below an extra directory
    /// nothing is listed.
    pub extra: Bounded<Vec<u8>>,
    /// Members that could not be compared.
    pub not_compared: Bounded<Problem>,
    /// Set where next to nothing of the archive is below the directory compared with.
    pub elsewhere: Option<Elsewhere>,
}

/// The directory compared with has next to nothing of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// The one that was probably meant, where one above or right below it has what is missing.
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

    /// Records what is wrong with the compressed form of an archive of ours.
    pub(super) fn outside(
        &mut self,
        summary: &ReadSummary,
        from_end: IndexFromEnd,
        warnings: &Warnings<'_>,
    ) {
        let Outside { table, headers } = summary.outside;
        let has_table = summary.compression == "zstd" && summary.endpoint != Endpoint::Tape;
        if has_table && table != TableState::Holds {
            let why = "the seek table behind the last frame is missing, or not that of the frames";
            self.damage(&Damage::of_index(why.to_owned()), warnings);
        }
        // Where the archive is not alone in its source the members of others are no damage; nor is
        // it known to be alone where other damage was met.
        let is_alone = from_end == IndexFromEnd::Expected && self.damaged.total == 0;
        if let (ChunkHeaders::Changed(at), true) = (headers, is_alone) {
            self.damage(&Damage::of_chunk_header(at), warnings);
        }
    }

    /// Records what is wrong with a member that the index knows.
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

/// Whether the index of a file must have been found from its end too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexFromEnd {
    /// One archive with its index and nothing else.
    Expected,
    /// There is none, or something in front of or behind it.
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
