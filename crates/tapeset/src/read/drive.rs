//! The drive with its volume, and changes of volume.
//!
//! The drive is closed around a change, since st examines a medium when the device is opened
//! (st.rst). The labels of the new medium are checked before any data are used: which medium, and
//! which volume of which set. A wrong volume is refused and asked for again, a limited number of
//! times.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use archive::label::{Label, LabelError, LabelKind, MediumName, hex};
use base::failures::lock;
use device::tape::drive::{Access, OpenError};
use device::tape::raw::Statistics;
use device::tape::scsi::access_order::Segment;
use device::tape::scsi::attribute::CartridgeMemory;
use flow::cancel::Cancel;
use model::tape::parameters::TapeParameters;

use super::beginning::{self, Beginning, Search};
use super::blocks::{BlockReader, Identity, Totals};
use super::failure::TapeReadFailure;
use super::index_segment::TapeIndex;
use super::label_reader::{Opening, read_opening};

use super::origin::TapeOrigin;
use super::place::{Spot, TapeStands};
use super::walk::{LabelledFile, LastFile, SetHere, directory_behind};
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
    pub(super) origin: TapeOrigin,
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
    /// All sets on it, newest first, once they are known.
    pub(super) sets: Option<Vec<SetHere>>,
    /// The last file on it that begins with a label, once it is known.
    pub(super) last_file: Option<LastFile>,
    /// Whether its chip says that nothing was written to it since it was noted.
    pub is_as_noted: bool,
    /// How the drive moves, once that was asked.
    motion: Option<Option<Arc<TapeParameters>>>,
    /// Volumes that are not available.
    without: BTreeSet<u32>,
    /// Damage on all media.
    pub damage: Vec<String>,
}

impl LoadedDrive {
    pub fn new(origin: TapeOrigin, cancel: Cancel) -> LoadedDrive {
        LoadedDrive {
            without: origin.without_volumes.iter().copied().collect(),
            motion: origin.motion.clone().map(Some),
            origin,
            cancel,
            blocks: None,
            sets: None,
            last_file: None,
            is_as_noted: false,
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
        self.sets = None;
        self.last_file = None;
        self.is_as_noted = false;
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

    /// Finds out which medium is in the drive without winding to its beginning: by its chip, or by
    /// a label near where the tape stands. False if neither says so; the tape is anywhere then.
    pub fn recognise(&mut self) -> Result<bool, TapeReadFailure> {
        Ok(self.medium.is_some() || self.recognise_by_chip()? || self.recognise_by_label()?)
    }

    /// Whether the chip is that of a medium which is as it was noted.
    pub(super) fn recognise_by_chip(&mut self) -> Result<bool, TapeReadFailure> {
        let Some(memory) = self.chip()? else { return Ok(false) };
        let Some(known) = self.origin.memory.medium(&memory) else { return Ok(false) };
        let Some(oldest) = known.sets.last() else { return Ok(false) };
        let identity = Identity { label: oldest.first.spot, medium: known.medium };
        self.blocks()?.identify(identity);
        self.medium = Some(known.medium);
        self.sets = Some(known.sets);
        self.is_as_noted = true;
        Ok(true)
    }

    /// What the chip says, where there is something to compare it with.
    pub(super) fn chip(&mut self) -> Result<Option<CartridgeMemory>, TapeReadFailure> {
        if self.origin.memory.0.is_none() {
            return Ok(None);
        }
        match self.blocks()?.cartridge_memory() {
            Ok(memory) => Ok(Some(memory)),
            Err(error) => {
                // The driver has missed the notice, and learns of it when it opens the drive.
                if error.is_attention() {
                    self.close();
                }
                Ok(None)
            }
        }
    }

    /// Whether a label near where the tape stands says which medium it is. In the first file
    /// nothing is read: its label is [`Self::beginning`]'s.
    fn recognise_by_label(&mut self) -> Result<bool, TapeReadFailure> {
        let cancel = self.cancel.clone();
        let blocks = self.blocks()?;
        let place = blocks.opened_in().map(|file| (file, blocks.here().map(|here| here.block)));
        let Some((file, block)) = place.filter(|(file, _)| *file > 0) else {
            return Ok(false);
        };
        match near_label(blocks, file, block, &cancel) {
            Ok(Some(((found, directory), is_last))) => {
                blocks.identify(Identity { label: found.spot, medium: found.label.medium });
                self.medium = Some(found.label.medium);
                self.last_file = is_last.then_some((found, directory));
                Ok(true)
            }
            Err(TapeReadFailure::Stopped(stopped)) => Err(stopped.into()),
            // Whatever it is, the beginning of the medium shows it.
            Ok(None) | Err(_) => {
                blocks.forget_place();
                Ok(false)
            }
        }
    }

    /// Where the tape stands, once its medium is known.
    pub fn stands(&mut self) -> Result<Option<TapeStands>, TapeReadFailure> {
        let Some(medium) = self.medium else { return Ok(None) };
        let object = self.blocks()?.here_with_number().absolute;
        Ok(Some(TapeStands { medium, object }))
    }

    /// How the drive moves, if that is known.
    pub fn motion(&mut self) -> Option<Arc<TapeParameters>> {
        if self.motion.is_none() {
            self.motion = Some(self.blocks().ok()?.motion().map(Arc::new));
        }
        self.motion.clone().flatten()
    }

    /// The order in which the drive recommends to read segments of its medium, where it does.
    pub fn recommended_order(
        &mut self,
        segments: &[Segment],
    ) -> Result<Option<Vec<usize>>, TapeReadFailure> {
        match self.blocks()?.access_order(segments) {
            Ok(order) => Ok(order),
            Err(error) => {
                // The driver has missed the notice, and learns of it when it opens the drive.
                if error.is_attention() {
                    self.close();
                    self.recognise()?;
                }
                Ok(None)
            }
        }
    }

    /// The copy of the index of the set that this label is of, if there is one and nothing in it
    /// contradicts the label.
    pub fn copy_of_index(&self, label: &Label) -> Option<TapeIndex> {
        let agrees = |copy: &TapeIndex| {
            let trailer = &copy.index.trailer;
            let last = copy.extents.last().map_or(0, |extent| extent.segment);
            let is_last =
                label.kind == LabelKind::Data || last.checked_add(1) == Some(label.segment);
            is_last
                && trailer.block_bytes == label.block_bytes
                && trailer.compression == label.compression
        };
        self.origin.memory.index(label.set).filter(agrees)
    }

    /// What the medium of a volume is called, if that is noted here.
    fn name_of(&self, wanted: WantedVolume) -> Option<MediumName> {
        self.origin.memory.name(wanted.medium?)
    }

    /// What the medium in the drive is called, as far as its labels were read.
    fn medium_name(&self) -> Option<MediumName> {
        let newest = self.sets.as_ref().and_then(|sets| Some(sets.first()?.last));
        let last = newest.or_else(|| Some(self.last_file.as_ref()?.0));
        last?.label.medium_name
    }

    /// Keeps a copy of an index that was read.
    pub fn keep_index(&self, set: [u8; 16], index: &TapeIndex) {
        if index.set() == Some(set) {
            self.origin.memory.keep(set, index);
        }
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
            name: self.name_of(wanted),
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
        let name = self.name_of(wanted);
        let purpose = VolumePurpose::Read { set, volume, medium, name };
        let request = VolumeRequest { device: self.device(), purpose, refused, attempt };
        let mut changer = lock(&self.origin.changer);
        match changer.change(&request) {
            Ok(()) => Ok(Brought::Here),
            Err(ChangeError::WithoutIt) => Ok(Brought::Without),
            Err(ChangeError::Stopped(stopped)) => Err(stopped.into()),
            Err(error) => {
                let set = hex(&set);
                Err(TapeReadFailure::VolumeMissing { volume, set, name, source: error })
            }
        }
    }

    /// Why the volume in the drive is not the one that the run needs; `None` if it is.
    fn look(&mut self, wanted: WantedVolume) -> Result<Option<Refused>, TapeReadFailure> {
        let first = if self.recognise_by_chip()? {
            None
        } else {
            match self.beginning(Search::Nowhere)? {
                Beginning::Ours { found, .. } => Some(found.label),
                Beginning::Foreign { .. } => return Ok(Some(Refused::Foreign)),
                Beginning::Blank => return Ok(Some(Refused::Blank)),
            }
        };
        if wanted.medium.is_some() && wanted.medium == self.medium {
            return Ok(None);
        }
        let found = match first.filter(|label| label.set == wanted.set) {
            Some(label) => Some(label.volume),
            None => self.find_set(wanted.set)?.map(|here| here.first.label.volume),
        };
        let fits = |found| match wanted.which {
            Which::Exactly => found == wanted.volume && wanted.medium.is_none(),
            Which::OrLater => found >= wanted.volume,
        };
        Ok(match found {
            Some(found) if fits(found) => None,
            Some(found) => Some(Refused::OtherVolume { found, wanted: wanted.volume }),
            None => Some(Refused::OtherSet { name: self.medium_name() }),
        })
    }
}

/// A label at the position, or at the front of the file that the tape is in, or of the last file if
/// it is at the end of the data; and whether it is known to be the last one.
fn near_label(
    blocks: &mut BlockReader,
    file: u32,
    block: Option<u64>,
    cancel: &Cancel,
) -> Result<Option<(LastFile, bool)>, TapeReadFailure> {
    let mut bytes = Vec::new();
    let mut is_at_end = false;
    if block == Some(0) {
        let spot = blocks.here_with_number();
        match read_opening(blocks, &mut bytes, cancel)? {
            Opening::Label(label) => {
                return Ok(Some(((LabelledFile { spot, label }, None), false)));
            }
            Opening::EndOfData => is_at_end = true,
            _ => return Ok(None),
        }
    }
    // The driver does not know the block where it was sent to the end of the data.
    let before = block.is_none_or(|block| block == 0);
    blocks.go_to(Spot::start_of(file.saturating_sub(u32::from(before)), None))?;
    let spot = blocks.here_with_number();
    match read_opening(blocks, &mut bytes, cancel)? {
        Opening::Label(label) => {
            let found = LabelledFile { spot, label };
            let directory =
                if is_at_end { directory_behind(blocks, found, &mut bytes, cancel)? } else { None };
            Ok(Some(((found, directory), is_at_end)))
        }
        _ => Ok(None),
    }
}

impl Drop for LoadedDrive {
    fn drop(&mut self) {
        self.close();
    }
}
