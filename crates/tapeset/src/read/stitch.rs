//! Joins the parts of a set, from any number of volumes, to one stored stream.
//!
//! Labels are left out, and what a compressed part repeats is skipped, both by arithmetic: a label
//! says where the bytes behind it belong, and blocks are counted from there. Unreadable data become
//! a gap of known length, so everything behind it keeps its offset. If the index has the locations
//! of the parts, the tape goes to them in the order that winds it least ([`super::order`]), and
//! volumes are asked for by medium id; what is read before its turn waits ([`super::held`]).
//! Otherwise the tape files are read one after the other, and volumes are asked for by number.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::index::{INDEX_HEADER_BYTES, is_index_header};
use archive::label::{LabelKind, hex};
use archive::stream::StoredOffset;
use flow::account::ThreadState;

use super::blocks::{Identity, Met};
use super::drive::{Brought, WantedVolume, Which};
use super::failure::TapeReadFailure;
use super::feed::Feed;
use super::held::Held;
use super::index_segment::{Following, TapeIndex, index_at};
use super::label_reader::{Opening, read_opening};
use super::order::{READ_THROUGH_BLOCKS, blocks_read_through};
use super::part::Part;
use super::place::Spot;
use super::set::OpenSet;
use super::walk::{LabelledFile, SetHere};
use crate::claims::missing_bytes_max;

/// Most volumes in a row that may be missing.
const VOLUMES_WITHOUT_MAX: u32 = 1000;

/// How the reading of a set ended.
#[derive(Clone, Default)]
pub(crate) struct SetEnd {
    /// Number of the last data segment.
    pub last_segment: u32,
    /// Volumes that were read, in order.
    pub volumes: Vec<u32>,
    /// Missing data, as warnings.
    pub missing: Vec<String>,
    /// The index that followed the data.
    pub index: Option<TapeIndex>,
    /// How often the ring was full.
    pub ring_was_full: u64,
}

/// Reads the set into the ring behind `feed`.
pub(super) struct Stitcher<'a, 'f> {
    pub set: &'a mut OpenSet,
    pub feed: &'a mut Feed<'f>,
    /// Set when the reader needs no more.
    pub stop: &'a AtomicBool,
    pub end: SetEnd,
    /// Offset of the next byte in the stored stream.
    pub(super) stream_bytes: StoredOffset,
    /// Where the stream in the ring begins, if the first volume is not available.
    base_bytes: StoredOffset,
    /// Zeros in the ring that stand for missing data.
    zeros_bytes: u64,
    /// The volume that was read before the one in the drive; the one in the drive, once some of it
    /// was read.
    pub(super) volume_before: u32,
    scratch: Vec<u8>,
    /// Pieces that were read before their turn.
    pub(super) held: Held,
    /// Where the bytes that are read go.
    pub(super) turn: Turn,
    /// The label that was checked last on the medium in the drive.
    pub(super) checked: Option<Spot>,
}

/// Whether a piece of the stream is the next one in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It goes into the ring.
    Now,
    /// It waits for those before it.
    Later,
}

impl<'a, 'f> Stitcher<'a, 'f> {
    pub fn new(
        set: &'a mut OpenSet,
        feed: &'a mut Feed<'f>,
        stop: &'a AtomicBool,
    ) -> Stitcher<'a, 'f> {
        let scratch = vec![0; set.block_bytes()];
        Stitcher {
            set,
            feed,
            stop,
            end: SetEnd::default(),
            stream_bytes: StoredOffset::START,
            base_bytes: StoredOffset::START,
            zeros_bytes: 0,
            volume_before: 0,
            scratch,
            held: Held::default(),
            turn: Turn::Now,
            checked: None,
        }
    }

    /// Reads `ranges` of the stored stream, or all of it.
    pub fn read(&mut self, ranges: Option<&[Range<StoredOffset>]>) -> Result<(), TapeReadFailure> {
        let index = self.set.index.clone();
        let result = match index.filter(|index| !index.extents.is_empty()) {
            Some(index) => self.read_known(&index, ranges),
            None => self.read_unknown(),
        };
        self.end.ring_was_full = self.feed.ring_was_full;
        result
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Reports once that a volume is missing.
    pub(super) fn do_without(&mut self, volume: u32) {
        let text = format!("volume {volume} was left out: its data are missing");
        if !self.end.missing.contains(&text) {
            self.end.missing.push(text);
        }
    }

    pub(super) fn enter_volume(&mut self, volume: u32) {
        if self.end.volumes.last() != Some(&volume) {
            self.end.volumes.push(volume);
        }
    }

    /// Reads the tape files one after the other.
    fn read_unknown(&mut self) -> Result<(), TapeReadFailure> {
        let mut here = self.find_beginning()?;
        let first = here.first.label;
        self.volume_before = first.volume;
        if first.volume > 1 {
            // Earlier volumes are not available.
            self.stream_bytes = first.stream_bytes;
            self.base_bytes = first.stream_bytes;
            let text = format!("volume {} was not read: its data are missing", first.volume - 1);
            self.end.missing.push(text);
        }
        loop {
            let volume = here.last.label.volume;
            self.enter_volume(volume);
            if self.read_volume(here)? == VolumeEnd::Done {
                return Ok(());
            }
            if !self.bring_next(volume)? {
                return Ok(());
            }
            match self.set.drive.find_set(self.set.id)? {
                Some(next) => here = next,
                None => return Ok(()),
            }
        }
    }

    /// Brings the next volume that is available; false if there is none.
    fn bring_next(&mut self, volume: u32) -> Result<bool, TapeReadFailure> {
        let (set, medium, which) = (self.set.id, None, Which::Exactly);
        for next in volume + 1..=volume + VOLUMES_WITHOUT_MAX {
            match self.bring(WantedVolume { set, volume: next, medium, which }) {
                Ok(Brought::Here) => return Ok(true),
                Ok(Brought::Without) => self.do_without(next),
                Err(TapeReadFailure::VolumeMissing { .. }) => {
                    self.miss_the_end(Some(next - 1));
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.miss_the_end(Some(volume + VOLUMES_WITHOUT_MAX));
        Ok(false)
    }

    /// The part of the set on its first volume, or on the one in the drive if the first is not
    /// provided.
    fn find_beginning(&mut self) -> Result<SetHere, TapeReadFailure> {
        let set = self.set.id;
        let known = self.set.here.take();
        let medium = self.set.drive.medium;
        let here = match known.filter(|here| medium == Some(here.first.label.medium)) {
            Some(here) => Some(here),
            None => self.set.drive.find_set(set)?,
        };
        let device = self.set.drive.device();
        let here = here.ok_or(TapeReadFailure::NoSets { device })?;
        if here.first.label.volume == 1 {
            return Ok(here);
        }
        for volume in 1..here.first.label.volume {
            let wanted = WantedVolume { set, volume, medium: None, which: Which::Exactly };
            match self.bring(wanted) {
                Ok(Brought::Without) => {}
                // The drive may have been emptied by others.
                Ok(Brought::Here) | Err(TapeReadFailure::VolumeMissing { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.set.drive.find_set(set)?.unwrap_or(here))
    }

    /// Where the set begins on the volume in the drive: before its first label, if the data before
    /// it were not read yet.
    fn first_file_of(&self, here: SetHere) -> Spot {
        let first = here.first.label;
        let is_next = first.volume <= self.volume_before + 1;
        let is_read = first.kind == LabelKind::Data && first.stream_bytes <= self.stream_bytes;
        if is_next && !is_read && here.first_file < here.first.spot.file {
            Spot::start_of(here.first_file, None)
        } else {
            here.first.spot
        }
    }

    /// Reads the whole part of the set on the volume in the drive.
    fn read_volume(&mut self, here: SetHere) -> Result<VolumeEnd, TapeReadFailure> {
        let mut file = self.first_file_of(here);
        let last = here.last.spot.file;
        loop {
            if self.stopped() {
                return Ok(VolumeEnd::Done);
            }
            let cancel = self.set.drive.cancel.clone();
            self.go_on_to(file)?;
            let blocks = self.set.drive.blocks()?;
            let mut bytes = Vec::new();
            let end = match read_opening(blocks, &mut bytes, &cancel)? {
                Opening::Label(label) if label.set == self.set.id => {
                    let found = LabelledFile { spot: file, label };
                    if label.kind == LabelKind::Index {
                        return self.meet_index(found, here.followed);
                    }
                    let identity = Identity { label: file, medium: label.medium };
                    self.set.drive.blocks()?.identify(identity);
                    self.end.last_segment = self.end.last_segment.max(label.segment);
                    self.read_part(Part::of(found), None)?
                }
                Opening::Unreadable { why } if file.file < last => {
                    self.set.drive.miss_label(here.last.label.medium, file.file, &why);
                    self.read_without_label(file, here.last.label.volume)?
                }
                Opening::Foreign if file.file < last => {
                    let (medium, why) = (here.last.label.medium, "the file begins with other data");
                    self.set.drive.blocks()?.check_medium_elsewhere(file)?;
                    self.set.drive.miss_label(medium, file.file, why);
                    self.read_without_label(file, here.last.label.volume)?
                }
                // A volume may end with a label without data, or with part of one.
                Opening::Label(_) | Opening::Unreadable { .. } | Opening::Foreign => {
                    return Ok(self.end_of_volume(here));
                }
                Opening::Filemark => PartEnd::Filemark,
                Opening::EndOfData => PartEnd::EndOfData,
            };
            if end == PartEnd::EndOfData {
                return Ok(self.end_of_volume(here));
            }
            let blocks = self.set.drive.blocks()?;
            file = match blocks.here() {
                Some(spot) if spot.block == 0 && spot.file > file.file => spot,
                _ => Spot::start_of(file.file + 1, None),
            };
            if file.file > last && here.followed {
                return Ok(self.end_of_volume(here));
            }
        }
    }

    fn end_of_volume(&mut self, here: SetHere) -> VolumeEnd {
        if !here.followed {
            return VolumeEnd::MayGoOn;
        }
        self.miss_the_end(None);
        VolumeEnd::Done
    }

    /// Reports that the end of the set is missing. `volume` is the last one that was read, if the
    /// set may continue on another.
    fn miss_the_end(&mut self, volume: Option<u32>) {
        let segment = self.end.last_segment;
        let mut text = format!(
            "set {} has no index: its backup did not finish; the last segment is number {segment}",
            hex(&self.set.id)
        );
        if let Some(volume) = volume {
            text.push_str(&format!(", unless the set continues on volume {}", volume + 1));
        }
        self.end.missing.push(text);
    }

    fn meet_index(
        &mut self,
        found: LabelledFile,
        followed: bool,
    ) -> Result<VolumeEnd, TapeReadFailure> {
        let following = if followed { Following::AnotherSet } else { Following::Nothing };
        if self.end.index.is_none() {
            self.end.index = match &self.set.index {
                Some(index) => Some(index.clone()),
                None => index_at(&mut self.set.drive, found, following)?,
            };
        }
        match &mut self.end.index {
            Some(index) => {
                let begins = index.index.place_in_archive(self.base_bytes);
                index.stream_begins_bytes = begins.unwrap_or_default();
            }
            None => self.end.missing.push("the index of the set cannot be read".to_owned()),
        }
        Ok(VolumeEnd::Done)
    }

    /// Reads a file with an unreadable label: the next segment, or the index.
    fn read_without_label(&mut self, file: Spot, volume: u32) -> Result<PartEnd, TapeReadFailure> {
        // The label has the length of the others that the set has at segment starts.
        let length_bytes = match self.set.label.part {
            1 => self.set.label.length_bytes.into(),
            _ => self.set.block_bytes() as u64,
        };
        let (stream_bytes, block_bytes) = (self.stream_bytes, self.set.block_bytes() as u64);
        let part = Part { label: file, volume, stream_bytes, length_bytes, block_bytes };
        let cancel = self.set.drive.cancel.clone();
        let blocks = self.set.drive.blocks()?;
        blocks.go_to(part.place_of(stream_bytes).0)?;
        if let Met::Block(bytes) = blocks.read(&mut self.scratch, &cancel)?
            && bytes >= INDEX_HEADER_BYTES
            && is_index_header(&self.scratch)
        {
            return Ok(PartEnd::Filemark);
        }
        self.end.last_segment += 1;
        self.read_part(part, None)
    }

    /// Reads a part from the stream's position to `to_bytes`, or to its end.
    pub(super) fn read_part(
        &mut self,
        part: Part,
        to_bytes: Option<StoredOffset>,
    ) -> Result<PartEnd, TapeReadFailure> {
        if part.stream_bytes > self.stream_bytes {
            let missing = part.stream_bytes - self.stream_bytes;
            self.check_missing(&part, missing)?;
            self.lose(missing, "the part of the set that holds them was not found")?;
        }
        let (first, mut over_bytes) = part.place_of(self.stream_bytes);
        self.go_on_to(first)?;
        self.volume_before = part.volume;
        while to_bytes != Some(self.stream_bytes) && !self.stopped() {
            let left_bytes = to_bytes.map_or(u64::MAX, |to| to - self.stream_bytes);
            let rest_bytes = part.block_bytes as usize - over_bytes;
            let wanted_bytes = left_bytes.min(rest_bytes as u64) as usize;
            let place = self.set.drive.blocks()?.here();
            match self.read_block(over_bytes, wanted_bytes)? {
                Taken::Block => self.stream_bytes += wanted_bytes as u64,
                Taken::Lost { why } => {
                    let place = place.map(|spot| format!(" ({spot})")).unwrap_or_default();
                    let volume = part.volume;
                    self.lose(wanted_bytes as u64, &format!("on volume {volume}{place}: {why}"))?;
                }
                Taken::End(end) => {
                    if let Some(to_bytes) = to_bytes {
                        let missing = to_bytes - self.stream_bytes;
                        self.lose(missing, "the segment ends early")?;
                    }
                    return Ok(end);
                }
            }
            over_bytes = 0;
        }
        Ok(PartEnd::Filemark)
    }

    /// Goes to a position on the volume in the drive; reads on if it is near. That time belongs to
    /// no stage.
    pub(super) fn go_on_to(&mut self, to: Spot) -> Result<(), TapeReadFailure> {
        let cancel = self.set.drive.cancel.clone();
        let blocks_max = self.blocks_read_through(to)?;
        let blocks = self.set.drive.blocks()?;
        if blocks.read_on_to(to, blocks_max, &mut self.scratch, &cancel)? {
            return Ok(());
        }
        self.feed.account.during(ThreadState::Apart, || blocks.go_to(to))
    }

    /// Most blocks that are read and dropped on the way to a position: as many as lie between, if
    /// winding over them takes longer.
    fn blocks_read_through(&mut self, to: Spot) -> Result<u64, TapeReadFailure> {
        let blocks = self.set.drive.blocks()?;
        let from = match blocks.here() {
            Some(here) => here.absolute,
            None => blocks.number(),
        };
        let (Some(motion), Some(from), Some(to)) = (self.set.drive.motion(), from, to.absolute)
        else {
            return Ok(READ_THROUGH_BLOCKS);
        };
        let block_bytes = self.set.block_bytes() as u64;
        Ok(blocks_read_through(&motion, from, to, block_bytes))
    }

    /// Asks for a volume; that time belongs to no stage, either.
    pub(super) fn bring(&mut self, wanted: WantedVolume) -> Result<Brought, TapeReadFailure> {
        let drive = &mut self.set.drive;
        self.feed.account.during(ThreadState::Apart, || drive.bring(wanted))
    }

    /// Whether so many bytes may be missing before a part.
    fn check_missing(&self, part: &Part, missing_bytes: u64) -> Result<(), TapeReadFailure> {
        let (before, zeros_bytes) = (self.volume_before, self.zeros_bytes);
        let read_bytes = self.feed.position_bytes().bytes() - zeros_bytes;
        if missing_bytes <= missing_bytes_max(before, part.volume, read_bytes, zeros_bytes) {
            return Ok(());
        }
        let (device, place) = (self.set.drive.device(), part.label.to_string());
        Err(TapeReadFailure::TooMuchMissing { device, place, missing_bytes })
    }

    /// Reads a block and passes `wanted_bytes` of it on, from `over_bytes` on.
    fn read_block(
        &mut self,
        over_bytes: usize,
        wanted_bytes: usize,
    ) -> Result<Taken, TapeReadFailure> {
        let block_bytes = self.scratch.len();
        let cancel = self.set.drive.cancel.clone();
        let whole = over_bytes == 0 && wanted_bytes == block_bytes;
        let whole = whole && self.turn == Turn::Now;
        let mut room = if whole { self.feed.room(block_bytes)? } else { None };
        let blocks = self.set.drive.blocks()?;
        let buffer = room.as_deref_mut().unwrap_or(&mut self.scratch);
        let met = blocks.read(buffer, &cancel)?;
        let in_place = room.is_some();
        match met {
            Met::Block(bytes) if bytes == block_bytes => {
                let wanted = over_bytes..over_bytes + wanted_bytes;
                match self.turn {
                    Turn::Now if in_place => self.feed.commit(bytes),
                    Turn::Now => self.feed.put(&self.scratch[wanted])?,
                    Turn::Later => self.held.put(&self.scratch[wanted])?,
                }
            }
            Met::Block(bytes) => {
                let why = format!("a block of {bytes} bytes, where all others have {block_bytes}");
                return Ok(Taken::Lost { why });
            }
            Met::LargerBlock => {
                blocks.pass_over_block()?;
                let why = format!("a block of more than {block_bytes} bytes");
                return Ok(Taken::Lost { why });
            }
            Met::Lost { why } => return Ok(Taken::Lost { why }),
            Met::Filemark => return Ok(Taken::End(PartEnd::Filemark)),
            Met::EndOfData => return Ok(Taken::End(PartEnd::EndOfData)),
        }
        Ok(Taken::Block)
    }

    /// Puts a gap into the stream.
    pub(super) fn lose(&mut self, bytes: u64, why: &str) -> Result<(), TapeReadFailure> {
        let start_bytes = StoredOffset::new(self.stream_bytes - self.base_bytes);
        match self.turn {
            Turn::Now => self.feed.put_gap(start_bytes, bytes, why.to_owned())?,
            Turn::Later => self.held.put_gap(start_bytes, bytes, why),
        }
        self.stream_bytes += bytes;
        self.zeros_bytes += bytes;
        Ok(())
    }
}

/// The result of reading a block.
enum Taken {
    Block,
    Lost { why: String },
    End(PartEnd),
}

/// What follows a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// A filemark; or the requested range ended before.
    Filemark,
    /// Nothing: the machine stopped while writing.
    EndOfData,
}

/// How a volume ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VolumeEnd {
    /// The set may continue on the next one.
    MayGoOn,
    /// The set ends here.
    Done,
}
