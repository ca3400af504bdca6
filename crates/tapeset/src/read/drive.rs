//! The drive with its volume, and changes of volume.
//!
//! The drive is closed around a change, since st examines a medium when the device is opened
//! (st.rst). The labels of the new medium are checked before any data are used: which medium, and
//! which volume of which set. A wrong volume is refused and asked for again, a limited number of
//! times.

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

/// Most missing labels that are reported.
const DAMAGE_MAX: usize = 1000;

/// The volume that the run needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedVolume {
    pub set: [u8; 16],
    pub volume: u32,
    /// Id of the medium, if known.
    pub medium: Option<[u8; 16]>,
    pub which: Which,
}

/// Whether a later volume is accepted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Only this volume.
    Exactly,
    /// This volume or a later one: the run needs the last one, whose number is unknown.
    OrLater,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// The volume is in the drive.
    Here,
    /// The volume is not available, and the run continues without it.
    Without,
}

/// The drive.
pub(super) struct LoadedDrive {
    origin: TapeOrigin,
    pub cancel: Cancel,
    blocks: Option<BlockReader>,
    /// Counts of media that are no longer in the drive.
    before: Totals,
    /// Kernel counters when the drive was opened, and their sums over earlier media.
    opened: Option<Statistics>,
    read_ns: Option<u64>,
    /// Id of the medium in the drive, once its label was read.
    pub medium: Option<[u8; 16]>,
    /// Number of changes of volume.
    pub changes: u32,
    /// Time of these changes, in nanoseconds.
    pub change_ns: u64,
    /// Volumes that are not available.
    without: BTreeSet<u32>,
    /// Damage on all media.
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

    /// Counts of all media, and the time that the kernel counted in reads, which is known for
    /// closed drives only.
    pub fn totals(&self) -> (Totals, Option<u64>) {
        let mut totals = self.before;
        totals.add(self.blocks.as_ref().map_or_else(Totals::default, |blocks| blocks.totals));
        (totals, self.read_ns)
    }

    /// What the tape in the drive begins with. Rewinds the tape and leaves it anywhere.
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

    /// Records that a file does not begin with its label.
    pub fn miss_label(&mut self, medium: [u8; 16], file: u32, why: &str) {
        let medium = &hex(&medium)[..8];
        let place = format!("file {file} of the tape (medium {medium}) does not begin with its");
        if !self.damage.iter().any(|text| text.starts_with(&place)) {
            self.tell(format!("{place} label: {why}"));
        }
    }

    /// Records a warning for the end of the run, once.
    pub fn tell(&mut self, text: String) {
        if self.damage.contains(&text) {
            return;
        }
        match self.damage.len() {
            0..DAMAGE_MAX => self.damage.push(text),
            DAMAGE_MAX => self.damage.push("further damage is not listed".to_owned()),
            _ => {}
        }
    }

    /// The part of a set on the volume in the drive.
    pub fn find_set(&mut self, set: [u8; 16]) -> Result<Option<SetHere>, TapeReadFailure> {
        let cancel = self.cancel.clone();
        let is_it = |here: &SetHere| here.first.label.set == set;
        let sets = Walk::new(self.blocks()?, &cancel)?.sets(is_it)?;
        Ok(sets.last().copied().filter(is_it))
    }

    /// Asks for a volume until it is in the drive.
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

    /// Why the volume in the drive is not the one that the run needs; `None` if it is.
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
