//! The sets of the medium in the drive: as they were noted, or by a walk over the tape, which is
//! noted then.

use super::drive::LoadedDrive;
use super::failure::TapeReadFailure;
use super::walk::{LabelledFile, SetHere, Walk};
use crate::known::KnownMedium;

/// Most sets of a volume that are listed.
const SETS_MAX: usize = 10_000;

/// Whether a look at the sets goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoOn {
    Yes,
    /// The sets so far are enough.
    No,
}

impl LoadedDrive {
    /// Sets of the medium in the drive, newest first, until `enough` returns true.
    pub fn sets(
        &mut self,
        mut enough: impl FnMut(&SetHere) -> bool,
    ) -> Result<Vec<SetHere>, TapeReadFailure> {
        self.look_through(|_, set| Ok(if enough(set) { GoOn::No } else { GoOn::Yes }))
    }

    /// The same, and calls `visit` with each set as soon as it is known. Where the tape is walked
    /// over, it stands behind the label of the set's last file then.
    pub fn look_through(
        &mut self,
        mut visit: impl FnMut(&mut LoadedDrive, &SetHere) -> Result<GoOn, TapeReadFailure>,
    ) -> Result<Vec<SetHere>, TapeReadFailure> {
        let mut sets: Vec<SetHere> = Vec::new();
        if let Some(known) = self.sets.clone() {
            for set in known {
                sets.push(set);
                if visit(self, &set)? == GoOn::No {
                    break;
                }
            }
            return Ok(sets);
        }
        let mut walk = self.walk()?;
        let mut last = walk.last_file(self.blocks()?)?;
        while let Some(file) = last
            && sets.len() < SETS_MAX
        {
            let shown = walk.sets_from(self.blocks()?, file)?;
            for set in shown.sets {
                let set = SetHere { followed: !sets.is_empty(), ..set };
                sets.push(set);
                if visit(self, &set)? == GoOn::No {
                    return Ok(sets);
                }
            }
            let Some(oldest) = sets.last_mut().filter(|_| !shown.is_whole) else { break };
            let blocks = self.blocks()?;
            last = walk.file_before(blocks, oldest.first.spot.file)?;
            if shown.is_counted && last.is_some_and(|it| it.label.set == file.label.set) {
                // Its files are not those that its label counts.
                walk.miss();
                *oldest = SetHere { followed: oldest.followed, ..walk.set_of(blocks, file)? };
                last = walk.file_before(blocks, oldest.first.spot.file)?;
            }
        }
        if walk.has_missed_none() && sets.len() < SETS_MAX {
            self.know(&sets)?;
        }
        Ok(sets)
    }

    fn walk(&mut self) -> Result<Walk, TapeReadFailure> {
        let (cancel, last_file) = (self.cancel.clone(), self.last_file.clone());
        Walk::new(self.blocks()?, &cancel, last_file)
    }

    /// Remembers that these are all sets of the medium in the drive.
    fn know(&mut self, sets: &[SetHere]) -> Result<(), TapeReadFailure> {
        let Some(medium) = sets.first().map(|set| set.last.label.medium) else { return Ok(()) };
        self.sets = Some(sets.to_vec());
        let Some(memory) = self.chip()? else { return Ok(()) };
        self.origin.memory.note(|| Some(KnownMedium { medium, memory, sets: sets.to_vec() }));
        Ok(())
    }

    /// The last file of the medium that begins with a label; and its set, if that is known.
    pub fn last_set(&mut self) -> Result<Option<(LabelledFile, Option<SetHere>)>, TapeReadFailure> {
        if let Some(newest) = self.sets.as_ref().and_then(|sets| sets.first()) {
            return Ok(Some((newest.last, Some(*newest))));
        }
        let mut walk = self.walk()?;
        let blocks = self.blocks()?;
        let Some(last) = walk.last_file(blocks)? else { return Ok(None) };
        let here = if last.begins_index() { None } else { Some(walk.set_of(blocks, last)?) };
        Ok(Some((last, here)))
    }

    /// The part of a set on the volume in the drive.
    pub fn find_set(&mut self, set: [u8; 16]) -> Result<Option<SetHere>, TapeReadFailure> {
        let is_it = |here: &SetHere| here.first.label.set == set;
        let sets = self.sets(is_it)?;
        Ok(sets.last().copied().filter(is_it))
    }
}
