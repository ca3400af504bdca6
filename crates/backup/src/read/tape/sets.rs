//! The sets on a volume, from the labels of its files.
//!
//! Every file of the tape opens with a label that says which segment of which set it is, so whole
//! sets are stepped over: from segment N of a set on its first volume it is N - 1 files back to its
//! first one. Tapes are read from their end, since the newest set is wanted mostly.

use archive::label::{Label, LabelKind};
use flow::cancel::Cancel;

use super::blocks::BlockReader;
use super::failure::TapeReadFailure;
use super::label_reader::{Opening, read_opening};
use super::place::Spot;

/// Most sets of a volume that are told apart.
const SETS_MAX: usize = 10_000;

/// A file of the tape that opens with a label.
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

/// What there is of a set on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetHere {
    /// Its first file on this volume.
    pub first: LabelledFile,
    /// Its last file on this volume.
    pub last: LabelledFile,
    /// Whether another set follows it.
    pub followed: bool,
}

impl SetHere {
    /// Number of the file that it begins with on this volume, whether or not its label can be read.
    pub fn first_file(&self) -> u32 {
        let first = &self.first;
        match first.label.volume {
            1 => first.spot.file.saturating_sub(first.label.segment - 1),
            _ => first.spot.file,
        }
    }
}

/// Goes back over the files of a volume.
pub(super) struct Walk<'t> {
    blocks: &'t mut BlockReader,
    cancel: &'t Cancel,
    bytes: Vec<u8>,
    /// Number of the file that ends the data, or would follow it.
    end_file: u32,
}

impl<'t> Walk<'t> {
    /// Begins at the end of the data.
    pub fn new(
        blocks: &'t mut BlockReader,
        cancel: &'t Cancel,
    ) -> Result<Walk<'t>, TapeReadFailure> {
        let end_file = blocks.go_to_end()?;
        Ok(Walk { blocks, cancel, bytes: Vec::new(), end_file })
    }

    /// The last file with a label.
    pub fn last_file(&mut self) -> Result<Option<LabelledFile>, TapeReadFailure> {
        // Data without a filemark behind them: the machine went down while it wrote.
        match self.label_of(self.end_file)? {
            Some(file) => Ok(Some(file)),
            None => self.file_before(self.end_file),
        }
    }

    /// The last labelled file before one. Files whose label cannot be read are passed over.
    pub fn file_before(&mut self, file: u32) -> Result<Option<LabelledFile>, TapeReadFailure> {
        for number in (0..file).rev() {
            self.cancel.check()?;
            if let Some(found) = self.label_of(number)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first file of the set that `last` belongs to, on this volume.
    pub fn first_of(&mut self, last: LabelledFile) -> Result<LabelledFile, TapeReadFailure> {
        let same_set = |file: &LabelledFile| file.label.set == last.label.set;
        // On its first volume every segment is one file.
        if last.label.volume == 1
            && let Some(number) = last.spot.file.checked_sub(last.label.segment - 1)
            && let Some(first) = self.label_of(number)?.filter(same_set)
            && first.label.segment == 1
        {
            return Ok(first);
        }
        let mut first = last;
        while let Some(before) = self.file_before(first.spot.file)?.filter(same_set) {
            first = before;
        }
        Ok(first)
    }

    /// The sets of the volume, newest first, until `enough` says so.
    pub fn sets(
        &mut self,
        mut enough: impl FnMut(&SetHere) -> bool,
    ) -> Result<Vec<SetHere>, TapeReadFailure> {
        let mut sets = Vec::new();
        let mut last = self.last_file()?;
        while let Some(file) = last
            && sets.len() < SETS_MAX
        {
            let first = self.first_of(file)?;
            let set = SetHere { first, last: file, followed: !sets.is_empty() };
            sets.push(set);
            if enough(&set) {
                break;
            }
            last = self.file_before(first.spot.file)?;
        }
        Ok(sets)
    }

    /// The label of a file, where it has one that can be read.
    fn label_of(&mut self, file: u32) -> Result<Option<LabelledFile>, TapeReadFailure> {
        self.blocks.go_to(Spot::start_of(file, None))?;
        let spot = self.blocks.here_with_number();
        match read_opening(self.blocks, &mut self.bytes, self.cancel)? {
            Opening::Label(label) => Ok(Some(LabelledFile { spot, label })),
            _ => Ok(None),
        }
    }
}
