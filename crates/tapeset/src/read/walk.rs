//! The sets on a volume, found by the labels of its files.
//!
//! Each tape file begins with a label that names its set and segment, so whole sets are skipped:
//! segment N of a set, on its first volume, is N - 1 files behind its first. The walk goes from the
//! end, since users mostly want the newest set.

use archive::label::{Label, LabelKind};
use flow::cancel::Cancel;

use super::blocks::BlockReader;
use super::failure::TapeReadFailure;
use super::label_reader::{Opening, read_opening};
use super::place::Spot;

/// Most sets of a volume that are listed.
const SETS_MAX: usize = 10_000;

/// A tape file that begins with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelledFile {
    /// Where it begins.
    pub spot: Spot,
    pub label: Label,
}

impl LabelledFile {
    /// Whether an index begins here.
    pub fn begins_index(&self) -> bool {
        self.label.kind == LabelKind::Index && self.label.part == 1
    }
}

/// The part of a set on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetHere {
    /// Its first file on this volume.
    pub first: LabelledFile,
    /// Its last file on this volume.
    pub last: LabelledFile,
    /// Whether another set follows it.
    pub followed: bool,
    /// Number of the earliest file that may belong to it on this volume, if labels before the first
    /// one are lost.
    pub first_file: u32,
}

/// Walks backwards over the files of a volume.
pub(super) struct Walk<'t> {
    blocks: &'t mut BlockReader,
    cancel: &'t Cancel,
    bytes: Vec<u8>,
    /// Number of the file at the end of data.
    end_file: u32,
}

impl<'t> Walk<'t> {
    /// Begins at the end of data.
    pub fn new(
        blocks: &'t mut BlockReader,
        cancel: &'t Cancel,
    ) -> Result<Walk<'t>, TapeReadFailure> {
        let end_file = blocks.go_to_end()?;
        Ok(Walk { blocks, cancel, bytes: Vec::new(), end_file })
    }

    /// The last file with a label.
    pub fn last_file(&mut self) -> Result<Option<LabelledFile>, TapeReadFailure> {
        self.last_file_of(u32::MAX, |_, _| {})
    }

    /// The same among this many files; shows to `look` what the others begin with.
    pub fn last_file_of(
        &mut self,
        files: u32,
        mut look: impl FnMut(&[u8], u32),
    ) -> Result<Option<LabelledFile>, TapeReadFailure> {
        // Data without a filemark behind them: the machine stopped while writing.
        for number in (self.end_file.saturating_sub(files)..=self.end_file).rev() {
            self.cancel.check()?;
            if let Some(found) = self.label_of(number)? {
                return Ok(Some(found));
            }
            look(&self.bytes, number);
        }
        Ok(None)
    }

    /// The last labelled file before one. Files with unreadable labels are skipped.
    pub fn file_before(&mut self, file: u32) -> Result<Option<LabelledFile>, TapeReadFailure> {
        for number in (0..file).rev() {
            self.cancel.check()?;
            if let Some(found) = self.label_of(number)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The set whose last file on this volume is `last`.
    pub fn set_of(&mut self, last: LabelledFile) -> Result<SetHere, TapeReadFailure> {
        let followed = false;
        let same_set = |file: &LabelledFile| file.label.set == last.label.set;
        // On the first volume of a set every segment is one file.
        if last.label.volume == 1
            && let Some(number) = last.spot.file.checked_sub(last.label.segment - 1)
            && let Some(first) = self.label_of(number)?.filter(same_set)
            && first.label.segment == 1
        {
            return Ok(SetHere { first, last, followed, first_file: number });
        }
        let mut first = last;
        let mut before = self.file_before(first.spot.file)?;
        while let Some(file) = before.filter(same_set) {
            first = file;
            before = self.file_before(file.spot.file)?;
        }
        let behind_another = before.map_or(0, |before| before.spot.file + 1);
        let first_file = match (first.label.volume, first.label.part) {
            (1, _) => first.spot.file.saturating_sub(first.label.segment - 1).max(behind_another),
            (_, 1) => behind_another,
            _ => first.spot.file,
        };
        Ok(SetHere { first, last, followed, first_file })
    }

    /// The sets of the volume, newest first, until `enough` returns true.
    pub fn sets(
        &mut self,
        mut enough: impl FnMut(&SetHere) -> bool,
    ) -> Result<Vec<SetHere>, TapeReadFailure> {
        let mut sets = Vec::new();
        let mut last = self.last_file()?;
        while let Some(file) = last
            && sets.len() < SETS_MAX
        {
            let set = SetHere { followed: !sets.is_empty(), ..self.set_of(file)? };
            sets.push(set);
            if enough(&set) {
                break;
            }
            last = self.file_before(set.first.spot.file)?;
        }
        Ok(sets)
    }

    /// The label of a file, if it is readable.
    fn label_of(&mut self, file: u32) -> Result<Option<LabelledFile>, TapeReadFailure> {
        self.blocks.go_to(Spot::start_of(file, None))?;
        let spot = self.blocks.here_with_number();
        match read_opening(self.blocks, &mut self.bytes, self.cancel)? {
            Opening::Label(label) => Ok(Some(LabelledFile { spot, label })),
            _ => Ok(None),
        }
    }
}
