//! The drive with a volume in it, and the change to another.
//!
//! The drive is closed around a change: st looks at a medium when it is opened (st.rst). What comes
//! back is looked at before a byte of it is used: its labels say which medium and which volume of
//! which set it is. A wrong one is refused and asked for again, so many times.

use std::collections::BTreeSet;
use std::time::Instant;

use archive::label::{LabelError, hex};
use base::failures::lock;
use device::tape::drive::{Access, OpenError};
use device::tape::raw::Statistics;
use flow::cancel::Cancel;

use super::beginning::{self, Beginning, Search};
use super::blocks::{BlockReader, Identity, Totals};
use super::failure::TapeReadFailure;
use super::origin::TapeOrigin;
use super::walk::{SetHere, Walk};
use crate::change::{CHANGE_ATTEMPTS_MAX, ChangeError, Refused, VolumePurpose, VolumeRequest};

/// Most labels that are told of, if they are not where they should be.
const DAMAGE_MAX: usize = 1000;

/// The volume that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedVolume {
    pub set: [u8; 16],
    pub volume: u32,
    /// Id of the medium, where it is known.
    pub medium: Option<[u8; 16]>,
    pub which: Which,
}

/// Whether a later volume will do too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// This one.
    Exactly,
    /// This one or a later one: the last one is wanted, and nobody knows its number.
    OrLater,
}

/// Whether a volume came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// It is in the drive.
    Here,
    /// It is not to be had, and the run goes on without it.
    Without,
}

/// The drive.
pub(super) struct LoadedDrive {
    origin: TapeOrigin,
    pub cancel: Cancel,
    blocks: Option<BlockReader>,
    /// What was read from media that are not in the drive any more.
    before: Totals,
    /// Counters of the drive when it was opened, and what they came to on media before.
    opened: Option<Statistics>,
    read_ns: Option<u64>,
    /// Id of the medium in the drive, once it was looked at.
    pub medium: Option<[u8; 16]>,
    /// Volumes that were changed to.
    pub changes: u32,
    /// Time until they were in the drive, in nanoseconds.
    pub change_ns: u64,
    /// Volumes that are not to be had.
    without: BTreeSet<u32>,
    /// What is not as it was written, on all media.
    pub damage: Vec<String>,
}

impl LoadedDrive {
    pub fn new(origin: TapeOrigin, cancel: Cancel) -> LoadedDrive {
        LoadedDrive {
            without: origin.without_volumes.iter().copied().collect(),
            origin,
            cancel,
            blocks: None,
            before: Totals::default(),
            opened: None,
            read_ns: None,
            medium: None,
            changes: 0,
            change_ns: 0,
            damage: Vec::new(),
        }
    }

    /// Name of the drive.
    pub fn device(&self) -> String {
        self.origin.drive.name().to_owned()
    }

    /// The open drive.
    pub fn blocks(&mut self) -> Result<&mut BlockReader, TapeReadFailure> {
        if self.blocks.is_none() {
            let begun = Instant::now();
            let opened = self.origin.drive.open(Access::Read);
            if self.changes > 0 {
                // A drive opens when the medium is loaded.
                self.change_ns += begun.elapsed().as_nanos() as u64;
            }
            let mut blocks = BlockReader::new(opened?);
            self.opened = blocks.statistics();
            self.blocks = Some(blocks);
        }
        Ok(self.blocks.as_mut().expect("it was opened"))
    }

    /// Closes the drive.
    pub fn close(&mut self) {
        self.medium = None;
        let Some(mut blocks) = self.blocks.take() else { return };
        if let (Some(opened), Some(now)) = (self.opened.take(), blocks.statistics()) {
            *self.read_ns.get_or_insert(0) += now.since(opened).read_ns;
        }
        self.before.add(blocks.totals);
    }

    /// What was read from all media, and the time that the kernel counted in reads, which is known
    /// of closed drives only.
    pub fn totals(&self) -> (Totals, Option<u64>) {
        let mut totals = self.before;
        totals.add(self.blocks.as_ref().map_or_else(Totals::default, |blocks| blocks.totals));
        (totals, self.read_ns)
    }

    /// What the tape in the drive begins with. Rewinds it, and leaves it somewhere.
    pub fn beginning(&mut self, search: Search) -> Result<Beginning, TapeReadFailure> {
        let cancel = self.cancel.clone();
        let blocks = self.blocks()?;
        let beginning = beginning::look(blocks, search, &cancel)?;
        if let Beginning::Ours { found, damage } = &beginning {
            // Every label has the id of the medium.
            let medium = found.label.medium;
            blocks.identify(Identity { label: found.spot, medium });
            self.medium = Some(medium);
            if let Some(why) = damage {
                self.miss_label(medium, 0, why);
            }
        }
        Ok(beginning)
    }

    /// Keeps in mind that a file does not open with the label that it should.
    pub fn miss_label(&mut self, medium: [u8; 16], file: u32, why: &str) {
        let medium = &hex(&medium)[..8];
        let place = format!("file {file} of the tape (medium {medium}) does not begin with its");
        if !self.damage.iter().any(|text| text.starts_with(&place)) {
            self.tell(format!("{place} label: {why}"));
        }
    }

    /// Keeps in mind what is to be told at the end, once.
    pub fn tell(&mut self, text: String) {
        if self.damage.contains(&text) {
            return;
        }
        match self.damage.len() {
            0..DAMAGE_MAX => self.damage.push(text),
            DAMAGE_MAX => self.damage.push("there is more of that kind".to_owned()),
            _ => {}
        }
    }

    /// What there is of a set on the volume in the drive.
    pub fn find_set(&mut self, set: [u8; 16]) -> Result<Option<SetHere>, TapeReadFailure> {
        let cancel = self.cancel.clone();
        let is_it = |here: &SetHere| here.first.label.set == set;
        let sets = Walk::new(self.blocks()?, &cancel)?.sets(is_it)?;
        Ok(sets.last().copied().filter(is_it))
    }

    /// Asks for a volume until it is there.
    pub fn bring(&mut self, wanted: WantedVolume) -> Result<Brought, TapeReadFailure> {
        if self.without.contains(&wanted.volume) {
            return Ok(Brought::Without);
        }
        let mut refused: Option<Refused> = None;
        for attempt in 1..=CHANGE_ATTEMPTS_MAX {
            let begun = Instant::now();
            self.close();
            let asked = self.ask(wanted, refused.take(), attempt);
            self.change_ns += begun.elapsed().as_nanos() as u64;
            if asked? == Brought::Without {
                self.without.insert(wanted.volume);
                return Ok(Brought::Without);
            }
            self.changes += 1;
            match self.look(wanted) {
                Ok(None) => return Ok(Brought::Here),
                Ok(why) => refused = why,
                Err(TapeReadFailure::Open(OpenError::NoMedium { .. })) => {
                    refused = Some(Refused::NoMedium);
                }
                Err(TapeReadFailure::Stopped(stopped)) => return Err(stopped.into()),
                Err(TapeReadFailure::Label { source: LabelError::Later { version }, .. }) => {
                    refused = Some(Refused::LaterVersion { version });
                }
                Err(error) => {
                    let text = base::failures::with_causes(&error);
                    refused = Some(Refused::Unreadable { text });
                }
            }
        }
        Err(TapeReadFailure::WrongVolumes {
            volume: wanted.volume,
            set: hex(&wanted.set),
            refused: refused.map(|why| why.to_string()).unwrap_or_default(),
        })
    }

    fn ask(
        &mut self,
        wanted: WantedVolume,
        refused: Option<Refused>,
        attempt: u32,
    ) -> Result<Brought, TapeReadFailure> {
        self.cancel.check()?;
        let WantedVolume { set, volume, medium, .. } = wanted;
        let purpose = VolumePurpose::Read { set, volume, medium };
        let request = VolumeRequest { device: self.device(), purpose, refused, attempt };
        let mut changer = lock(&self.origin.changer);
        match changer.change(&request) {
            Ok(()) => Ok(Brought::Here),
            Err(ChangeError::WithoutIt) => Ok(Brought::Without),
            Err(ChangeError::Stopped(stopped)) => Err(stopped.into()),
            Err(error) => {
                let set = hex(&set);
                Err(TapeReadFailure::VolumeMissing { volume, set, source: error })
            }
        }
    }

    /// Why the volume in the drive is not the one that is wanted; `None` when it is.
    fn look(&mut self, wanted: WantedVolume) -> Result<Option<Refused>, TapeReadFailure> {
        let label = match self.beginning(Search::Nowhere)? {
            Beginning::Ours { found, .. } => found.label,
            Beginning::Foreign { .. } => return Ok(Some(Refused::Foreign)),
            Beginning::Blank => return Ok(Some(Refused::Blank)),
        };
        if wanted.medium == Some(label.medium) {
            return Ok(None);
        }
        let found = if label.set == wanted.set {
            Some(label.volume)
        } else {
            self.find_set(wanted.set)?.map(|here| here.first.label.volume)
        };
        let fits = |found| match wanted.which {
            Which::Exactly => found == wanted.volume && wanted.medium.is_none(),
            Which::OrLater => found >= wanted.volume,
        };
        Ok(match found {
            Some(found) if fits(found) => None,
            Some(found) => Some(Refused::OtherVolume { found, wanted: wanted.volume }),
            None => Some(Refused::OtherSet),
        })
    }
}

impl Drop for LoadedDrive {
    fn drop(&mut self) {
        self.close();
    }
}
