//! The sets on a volume, found by the labels of its files.
//!
//! Each tape file begins with a label that names its set and segment, so whole sets are skipped:
//! segment N of a set, on its first volume, is N - 1 files behind its first. So the label of an
//! index says where its set begins, and one look a set is enough; if it has a directory, one look
//! is enough for all. The walk goes from the end, since users mostly want the newest set.

use archive::label::{Label, LabelKind};
use archive::stream::StoredOffset;
use flow::cancel::Cancel;

use super::blocks::{BlockReader, Met};
use super::failure::TapeReadFailure;
use super::label_reader::{Opening, read_opening};
use super::place::Spot;
use crate::directory::{self, Directory};

/// A tape file that begins with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledFile {
    /// Where it begins.
    pub spot: Spot,
    pub label: Label,
}

impl LabelledFile {
    /// Whether an index begins here.
    pub(super) fn begins_index(&self) -> bool {
        self.label.kind == LabelKind::Index && self.label.part == 1
    }
}

/// The part of a set on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetHere {
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

/// The last file of a medium that begins with a label, and what the label says of the medium.
pub(super) type LastFile = (LabelledFile, Option<Directory>);

/// Walks backwards over the files of a volume.
pub(super) struct Walk {
    cancel: Cancel,
    bytes: Vec<u8>,
    /// Number of the file at the end of data.
    end_file: u32,
    /// The last file with a label, if it is known, and what it says of the medium.
    last: Option<LastFile>,
    /// What the last label that was read says of the medium.
    directory: Option<Directory>,
    /// A file before the end of data does not begin with its label.
    has_missed: bool,
}

/// Sets that one look at the tape has shown.
pub(super) struct Shown {
    /// Newest first.
    pub sets: Vec<SetHere>,
    /// Whether there is none before them.
    pub is_whole: bool,
    /// The set was counted from the label of its index, and not looked at.
    pub is_counted: bool,
}

impl Walk {
    /// Begins with the last file, if it is known, else at the end of data.
    pub fn new(
        blocks: &mut BlockReader,
        cancel: &Cancel,
        last: Option<LastFile>,
    ) -> Result<Walk, TapeReadFailure> {
        let end_file = match &last {
            Some((last, _)) => last.spot.file + 1,
            None => blocks.go_to_end()?,
        };
        let (bytes, cancel) = (Vec::new(), cancel.clone());
        Ok(Walk { cancel, bytes, end_file, last, directory: None, has_missed: false })
    }

    /// Whether every file that was looked at has shown its label.
    pub fn has_missed_none(&self) -> bool {
        !self.has_missed
    }

    /// A set is not where its label counts it.
    pub fn miss(&mut self) {
        self.has_missed = true;
    }

    /// The last file with a label.
    pub fn last_file(
        &mut self,
        blocks: &mut BlockReader,
    ) -> Result<Option<LabelledFile>, TapeReadFailure> {
        match self.last.clone() {
            Some((last, directory)) => {
                self.directory = directory;
                Ok(Some(last))
            }
            None => self.last_file_of(blocks, u32::MAX, |_, _| {}),
        }
    }

    /// The same among this many files; shows to `look` what the others begin with.
    pub fn last_file_of(
        &mut self,
        blocks: &mut BlockReader,
        files: u32,
        mut look: impl FnMut(&[u8], u32),
    ) -> Result<Option<LabelledFile>, TapeReadFailure> {
        // Data without a filemark behind them: the machine stopped while writing.
        for number in (self.end_file.saturating_sub(files)..=self.end_file).rev() {
            self.cancel.check()?;
            if let Some(found) = self.label_of(blocks, number)? {
                return Ok(Some(found));
            }
            look(&self.bytes, number);
        }
        Ok(None)
    }

    /// The last labelled file before one. Files with unreadable labels are skipped.
    pub fn file_before(
        &mut self,
        blocks: &mut BlockReader,
        file: u32,
    ) -> Result<Option<LabelledFile>, TapeReadFailure> {
        for number in (0..file).rev() {
            self.cancel.check()?;
            if let Some(found) = self.label_of(blocks, number)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The set whose last file on this volume is `last`, which was just read, and those that its
    /// label names.
    pub fn sets_from(
        &mut self,
        blocks: &mut BlockReader,
        last: LabelledFile,
    ) -> Result<Shown, TapeReadFailure> {
        if let Some(Directory { sets, is_whole }) = self.directory.take() {
            return Ok(Shown { sets, is_whole, is_counted: false });
        }
        let counted = counted_from(last);
        let set = match counted {
            Some(set) => set,
            None => self.set_of(blocks, last)?,
        };
        Ok(Shown { sets: vec![set], is_whole: false, is_counted: counted.is_some() })
    }

    /// The set whose last file on this volume is `last`.
    pub fn set_of(
        &mut self,
        blocks: &mut BlockReader,
        last: LabelledFile,
    ) -> Result<SetHere, TapeReadFailure> {
        let followed = false;
        let same_set = |file: &LabelledFile| file.label.set == last.label.set;
        // On the first volume of a set every segment is one file.
        if last.label.volume == 1
            && let Some(number) = last.spot.file.checked_sub(last.label.segment - 1)
            && let Some(first) = self.label_of(blocks, number)?.filter(same_set)
            && first.label.segment == 1
        {
            return Ok(SetHere { first, last, followed, first_file: number });
        }
        let mut first = last;
        let mut before = self.file_before(blocks, first.spot.file)?;
        while let Some(file) = before.filter(same_set) {
            first = file;
            before = self.file_before(blocks, file.spot.file)?;
        }
        let behind_another = before.map_or(0, |before| before.spot.file + 1);
        let first_file = match (first.label.volume, first.label.part) {
            (1, _) => first.spot.file.saturating_sub(first.label.segment - 1).max(behind_another),
            (_, 1) => behind_another,
            _ => first.spot.file,
        };
        Ok(SetHere { first, last, followed, first_file })
    }

    /// The label of a file, if it is readable.
    fn label_of(
        &mut self,
        blocks: &mut BlockReader,
        file: u32,
    ) -> Result<Option<LabelledFile>, TapeReadFailure> {
        self.directory = None;
        blocks.go_to(Spot::start_of(file, None))?;
        let spot = blocks.here_with_number();
        match read_opening(blocks, &mut self.bytes, &self.cancel)? {
            Opening::Label(label) => {
                let found = LabelledFile { spot, label };
                let bytes = &mut self.bytes;
                self.directory = directory_behind(blocks, found, bytes, &self.cancel)?;
                Ok(Some(found))
            }
            opening => {
                self.has_missed |= opening != Opening::EndOfData;
                Ok(None)
            }
        }
    }
}

/// What a label says of the sets on its medium; the tape is behind `bytes`, its beginning.
pub(super) fn directory_behind(
    blocks: &mut BlockReader,
    found: LabelledFile,
    bytes: &mut Vec<u8>,
    cancel: &Cancel,
) -> Result<Option<Directory>, TapeReadFailure> {
    if !found.begins_index() {
        return Ok(None);
    }
    directory::read_behind(found, bytes, |block| match blocks.read(block, cancel)? {
        Met::Block(read) => Ok(Some(read)),
        _ => Ok(None),
    })
}

/// The set whose last file on this volume begins an index, without another look at the tape: on the
/// first volume of a set every segment is one file.
fn counted_from(last: LabelledFile) -> Option<SetHere> {
    let is_counted = last.begins_index() && last.label.volume == 1 && last.label.segment > 1;
    let first_file = last.spot.file.checked_sub(last.label.segment - 1).filter(|_| is_counted)?;
    let label = Label {
        kind: LabelKind::Data,
        segment: 1,
        stream_bytes: StoredOffset::START,
        previous: None,
        ..last.label
    };
    let first = LabelledFile { spot: Spot::start_of(first_file, None), label };
    Some(SetHere { first, last, followed: false, first_file })
}
