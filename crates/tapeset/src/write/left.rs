//! How a medium is left: what is noted of it, and a copy of the index that was written.

use std::fs::File;
use std::io::Write as _;

use archive::label::DIRECTORY_BYTES_MAX;
use device::tape::scsi::attribute::CartridgeMemory;
use machine::unnamed_file;

use crate::directory::Directory;
use crate::known::{KnownMedium, Memory};
use crate::read::{LabelledFile, SetHere, TapeIndex};

/// The sets of a medium that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct SetsOfMedium {
    /// Those in front of this one, as far as they are known.
    before: Directory,
    /// The first and the last label of this one.
    own: Option<(LabelledFile, LabelledFile)>,
}

impl SetsOfMedium {
    /// Of a medium with these sets.
    pub fn behind(before: Directory) -> SetsOfMedium {
        SetsOfMedium { before, own: None }
    }

    /// The directory for the label of this set's index: its own first label on the medium, which
    /// the reader joins with the label itself, and the sets in front of it.
    pub fn directory(&self) -> String {
        let own = self.own.map(|(first, _)| first);
        let own = own.map(|first| SetHere {
            first,
            last: first,
            followed: false,
            first_file: first.spot.file,
        });
        let sets = own.into_iter().chain(self.before.sets.iter().copied()).collect();
        let is_whole = self.before.is_whole;
        Directory { sets, is_whole }.text(DIRECTORY_BYTES_MAX)
    }

    /// A label of this set is on the medium.
    pub fn has_label(&mut self, label: LabelledFile) {
        let first = self.own.map_or(label, |(first, _)| first);
        self.own = Some((first, label));
    }

    /// The set is cut in front of a file: its index follows there.
    pub fn cut(&mut self, file_number: u32) {
        self.own = self.own.filter(|(first, _)| first.spot.file < file_number);
    }

    /// The medium as it is left, if all its sets are known.
    pub fn left(&self, medium: [u8; 16], memory: CartridgeMemory) -> Option<KnownMedium> {
        let (first, last) = self.own?;
        let first_file = first.spot.file;
        let own = SetHere { first, last, followed: false, first_file };
        let followed = |set: &SetHere| SetHere { followed: true, ..*set };
        if !self.before.is_whole {
            return None;
        }
        let before = self.before.sets.iter().map(followed);
        Some(KnownMedium { medium, memory, sets: [own].into_iter().chain(before).collect() })
    }
}

/// A copy of the index that passes on its way to the tape.
#[derive(Debug, Default)]
pub(super) struct IndexCopy(Option<File>);

impl IndexCopy {
    /// Begins one, if it will be kept. Without a file there is none.
    pub fn begin(memory: &Memory) -> IndexCopy {
        IndexCopy(memory.0.is_some().then(|| unnamed_file().ok()).flatten())
    }

    /// Adds the next bytes. After a failure there is no copy.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.0.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
            self.0 = None;
        }
    }

    /// Keeps it: the index is on tape.
    pub fn keep(&mut self, set: [u8; 16], memory: &Memory) {
        let copy = self.0.take().and_then(|file| TapeIndex::of_copy(file).ok().flatten());
        if let Some(index) = copy.filter(|index| index.set() == Some(set)) {
            memory.keep(set, &index);
        }
    }
}
