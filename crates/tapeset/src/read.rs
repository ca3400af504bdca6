//! A tape as the source of an archive: a Takeup set over any number of volumes, or a file that
//! another program wrote.
//!
//! ```text
//! drive --> BlockReader --> Stitcher (parts and volumes into one stored stream) --> ring --> ...
//!           one block a read(2), around what cannot be read       or TapeFile
//! ```
//!
//! Reading has its own thread, since the kernel cannot interrupt a command to a drive. From the
//! ring on, a tape is read like a file: gaps stand for missing data. The index has a file of its
//! own on tape, and follows the data as if it stood behind them.
//!
//! `docs/format.md` ("On tape") describes the medium, `docs/design/reading.md` the reading. Not
//! here: writing ([`crate::write`]), and what a drive's answers mean (`device::tape`).

mod beginning;
mod blocks;
mod drive;
mod elsewhere;
mod failure;
mod feed;
mod file;
mod held;
mod index_segment;
mod known_parts;
mod label_reader;
mod order;
mod origin;
mod part;
mod place;
mod set;
mod sets_here;
mod sign;
mod stitch;
mod volume_sets;
mod walk;
mod wanted_blocks;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use archive::chunk::Compression;
use archive::label::{Label, hex};
use archive::stream::{Stored, StoredOffset};
use base::failures::lock;
use flow::account::Account;
use flow::cancel::Cancel;
use flow::gaps::Gaps;
use flow::ring::Producer;

use beginning::{Beginning, Search};
pub use blocks::Totals;
use drive::LoadedDrive;
pub use failure::TapeReadFailure;
use feed::Feed;
use file::{FileEnd, TapeFile, Wish};
pub use held::HELD_BYTES_MAX;
pub use index_segment::TapeIndex;
pub use order::{blocks_read_through, reading_order};
pub use origin::{KnownIndex, SetChoice, TapeOrigin, TapeReading};
pub use place::{Spot, TapeStands};
pub use set::Need;
use set::OpenSet;
use sign::Sign;
use stitch::{SetEnd, Stitcher};
pub use volume_sets::{
    SetContents, SetOnVolume, Wanted, copy_indexes, labelled_sets, look_through_sets,
    sets_on_volume,
};
pub use walk::{LabelledFile, SetHere};
pub use wanted_blocks::WantedBlocks;

/// An open tape.
pub struct OpenTape {
    found: Found,
    /// How long opening took.
    times: OpeningTimes,
}

/// The time until a tape was open, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct OpeningTimes {
    /// All of it except changes of volume.
    ready: f64,
    /// Part of it for winding.
    winding: f64,
}

/// What the tape holds.
enum Found {
    /// A Takeup set.
    Set(Box<OpenSet>),
    /// A file of a tape without sets.
    File(Box<TapeFile>),
}

/// Results that are reported after reading.
#[derive(Default)]
pub struct TapeEnd {
    pub report: TapeReading,
    /// Missing data.
    pub warnings: Vec<String>,
    pub damage: Vec<String>,
    pub notes: Vec<String>,
    index: Option<TapeIndex>,
}

/// What the reading thread shares with others.
#[derive(Clone, Copy)]
pub struct TapeShared<'a> {
    /// Gaps: what cannot be read.
    pub gaps: &'a Gaps<Stored>,
    /// Set when the reader needs no more.
    pub stop: &'a AtomicBool,
    /// The index of the set, available before the stream ends.
    pub index: &'a Mutex<Option<TapeIndex>>,
}

impl OpenTape {
    /// Opens the drive and finds out what the tape holds.
    ///
    /// # Errors
    /// See [`TapeReadFailure`].
    pub fn open(
        origin: &TapeOrigin,
        need: Need,
        cancel: &Cancel,
    ) -> Result<OpenTape, TapeReadFailure> {
        let begun = Instant::now();
        let mut tape = OpenTape { found: find(origin, need, cancel)?, times: Default::default() };
        let drive = tape.drive();
        let winding = seconds(drive.totals().0.winding_ns);
        let ready = begun.elapsed().as_secs_f64() - seconds(drive.change_ns);
        tape.times = OpeningTimes { ready: ready.max(winding), winding };
        Ok(tape)
    }

    /// Damage that is known before reading.
    pub fn damage(&self) -> &[String] {
        match &self.found {
            Found::Set(set) => &set.drive.damage,
            Found::File(_) => &[],
        }
    }

    /// Whether it is an uncompressed set.
    pub fn is_plain_set(&self) -> bool {
        matches!(&self.found, Found::Set(set) if set.compression() == Compression::None)
    }

    /// Whether the tape can go to parts of it.
    pub fn knows_its_parts(&self) -> bool {
        matches!(&self.found, Found::Set(set) if set.knows_its_parts())
    }

    /// Whether it is a Takeup set, of which every segment is an archive.
    pub fn is_set(&self) -> bool {
        matches!(&self.found, Found::Set(_))
    }

    /// Name of the drive.
    pub fn device(&self) -> String {
        match &self.found {
            Found::Set(set) => set.drive.device(),
            Found::File(file) => file.drive.device(),
        }
    }

    /// The index of the set, if it is known.
    pub fn index(&self) -> Option<&TapeIndex> {
        match &self.found {
            Found::Set(set) => set.index.as_ref(),
            Found::File(_) => None,
        }
    }

    /// Whether it is a set that holds only what changed since another one.
    pub fn counts_on_others(&self) -> bool {
        let chain = match &self.found {
            Found::Set(set) => set.label.chain,
            Found::File(_) => None,
        };
        chain.is_some_and(|chain| chain.level > 0)
    }

    /// Bytes of the blocks of a set, the unit of the checksums in its index.
    pub fn set_block_bytes(&self) -> Option<u32> {
        match &self.found {
            Found::Set(set) => u32::try_from(set.block_bytes()).ok().filter(|bytes| *bytes > 0),
            Found::File(_) => None,
        }
    }

    /// Bytes of a ring block that holds whole tape blocks: about `about_bytes`.
    pub fn ring_block_bytes(&self, about_bytes: usize) -> usize {
        let block_bytes = match &self.found {
            Found::Set(set) => set.block_bytes(),
            Found::File(file) => file.block_bytes(),
        };
        match block_bytes {
            0 => about_bytes,
            odd if !odd.is_multiple_of(512) => about_bytes.max(odd.next_multiple_of(512)),
            whole => (about_bytes / whole).max(1) * whole,
        }
    }

    /// Reads everything, or `ranges` of the stored stream of a set, into the ring. What was read
    /// stays valid if the tape fails later.
    pub fn read(
        mut self,
        ranges: Option<&[Range<StoredOffset>]>,
        producer: Producer,
        shared: &TapeShared<'_>,
        account: &mut Account,
    ) -> (TapeEnd, Result<(), TapeReadFailure>) {
        let TapeShared { gaps, stop, index } = *shared;
        let mut feed = Feed::new(producer, account, gaps);
        let (mut end, result) = match &mut self.found {
            Found::Set(set) => {
                let mut stitcher = Stitcher::new(set, &mut feed, stop);
                let result = stitcher.read(ranges);
                let end = std::mem::take(&mut stitcher.end);
                (set_end(set, end), result)
            }
            Found::File(file) => match file.read(&mut feed, stop) {
                Ok(end) => (file_end(file, end), Ok(())),
                Err(error) => (TapeEnd::default(), Err(error)),
            },
        };
        // The index follows complete data only: behind half a file it would be read as the other
        // half.
        if result.is_ok() {
            *lock(index) = end.index.take();
        }
        // A stopped run ends at once; data read before a failure are kept.
        if !matches!(result, Err(TapeReadFailure::Stopped(_))) {
            feed.finish();
        }
        let OpeningTimes { ready, winding } = self.times;
        let drive = self.drive();
        drive.close();
        end.damage.append(&mut drive.damage);
        let (totals, read_ns) = drive.totals();
        end.report.device = drive.device();
        end.report.changes = drive.changes;
        end.report.blocks = totals.blocks;
        end.report.bytes = totals.bytes;
        end.report.lost_blocks = totals.lost_blocks;
        end.report.retries = totals.retries;
        end.report.read_seconds = read_ns.map(seconds);
        end.report.ready_seconds = ready;
        end.report.label_seconds = ready - winding;
        end.report.winds = totals.winds;
        end.report.winding_seconds = (seconds(totals.winding_ns) - winding).max(0.0);
        end.report.change_seconds = seconds(drive.change_ns);
        (end, result)
    }

    /// The label of the set.
    pub fn label(&self) -> Option<Label> {
        match &self.found {
            Found::Set(set) => Some(set.label),
            Found::File(_) => None,
        }
    }

    /// Where the tape stands now.
    pub fn stands(&mut self) -> Option<TapeStands> {
        let drive = self.drive();
        if drive.medium.is_none() && !drive.recognise_by_chip().unwrap_or(false) {
            return None;
        }
        drive.stands().ok().flatten()
    }

    fn drive(&mut self) -> &mut LoadedDrive {
        match &mut self.found {
            Found::Set(set) => &mut set.drive,
            Found::File(file) => &mut file.drive,
        }
    }
}

/// Where a tape stands whose medium its chip names, without winding it.
pub fn where_it_stands(origin: &TapeOrigin) -> Option<TapeStands> {
    let mut drive = LoadedDrive::new(origin.clone(), Cancel::new());
    let is_known = drive.recognise_by_chip().unwrap_or(false);
    if is_known { drive.stands().ok().flatten() } else { None }
}

/// Finds out what the tape in the drive holds.
fn find(origin: &TapeOrigin, need: Need, cancel: &Cancel) -> Result<Found, TapeReadFailure> {
    let mut drive = LoadedDrive::new(origin.clone(), cancel.clone());
    if let Some(number) = origin.file_number {
        return open_file(drive, number);
    }
    if let Some(index) = origin.known.as_ref().and_then(KnownIndex::open) {
        let set = elsewhere::open_known(drive, index)?;
        return Ok(Found::Set(Box::new(set)));
    }
    if let SetChoice::Anywhere(id) = origin.set {
        if let Some(index) = origin.memory.index(id) {
            let set = elsewhere::open_known(drive, index)?;
            return Ok(Found::Set(Box::new(set)));
        }
        let set = elsewhere::open_anywhere(drive, id, need)?;
        return Ok(Found::Set(Box::new(set)));
    }
    let blocks = drive.blocks()?;
    let (before, number) = match blocks.here() {
        Some(spot) => (Some(spot), None),
        None => (None, blocks.number()),
    };
    if drive.recognise()? {
        let set = set::open_set(drive, &origin.set, need)?;
        return Ok(Found::Set(Box::new(set)));
    }
    let search = match origin.set {
        SetChoice::Last => Search::Nowhere,
        // A request for a set implies that there is one.
        _ => Search::Everywhere,
    };
    match drive.beginning(search)? {
        Beginning::Ours { .. } => {
            let set = set::open_set(drive, &origin.set, need)?;
            Ok(Found::Set(Box::new(set)))
        }
        _ if origin.set != SetChoice::Last => {
            Err(TapeReadFailure::NoSets { device: drive.device() })
        }
        Beginning::Blank => Err(TapeReadFailure::Blank { device: drive.device() }),
        Beginning::Foreign { sign, first } => {
            let blocks = drive.blocks()?;
            let was_at_beginning = before.is_some_and(|before| before.is_at(Spot::default()));
            let before = before.unwrap_or_default();
            // It is read already: going back would stop the tape.
            if let Some(first) = first.filter(|_| was_at_beginning)
                && blocks.fixed_bytes().is_none()
            {
                return Ok(Found::File(Box::new(TapeFile::behind_first(drive, first))));
            }
            let returned = match number {
                Some(number @ 1..) => blocks.go_to_number(number),
                _ => blocks.go_to(before),
            };
            // Not every drive finds the end of data by its count.
            if returned.is_err() && (before.file > 0 || number.is_some()) {
                return Err(TapeReadFailure::AtEndOfData { device: blocks.device() });
            }
            returned?;
            let file = TapeFile::open(drive, Wish::Whatever)?;
            if !file.opens_with_label() {
                return Ok(Found::File(Box::new(file.with_sign(sign))));
            }
            let mut drive = file.drive;
            drive.beginning(Search::Everywhere)?;
            let set = set::open_set(drive, &origin.set, need)?;
            Ok(Found::Set(Box::new(set)))
        }
    }
}

fn set_end(set: &OpenSet, end: SetEnd) -> TapeEnd {
    let report = TapeReading {
        set: Some(hex(&set.id)),
        block_bytes: set.block_bytes() as u64,
        ring_was_full: end.ring_was_full,
        volumes: end.volumes,
        ..TapeReading::default()
    };
    TapeEnd { report, warnings: end.missing, index: end.index, ..TapeEnd::default() }
}

fn file_end(file: &TapeFile, end: FileEnd) -> TapeEnd {
    let report = TapeReading {
        file_number: file.number,
        block_bytes: end.block_bytes as u64,
        ring_was_full: end.ring_was_full,
        ..TapeReading::default()
    };
    let following = |number| format!("file {number} follows on the tape: --file {number} reads it");
    let notes = end.following.map(following).into_iter().collect();
    let damage = end.sign.iter().map(Sign::to_string).collect();
    TapeEnd { report, notes, damage, ..TapeEnd::default() }
}

fn open_file(mut drive: LoadedDrive, number: u32) -> Result<Found, TapeReadFailure> {
    let device = drive.device();
    let blocks = drive.blocks()?;
    blocks.go_to(Spot::start_of(0, None))?;
    if blocks.go_to(Spot::start_of(number, None)).is_err() {
        return Err(TapeReadFailure::NoSuchFile { device, number });
    }
    match TapeFile::open(drive, Wish::ThisFile) {
        Err(TapeReadFailure::AtEndOfData { device }) => {
            Err(TapeReadFailure::NoSuchFile { device, number })
        }
        opened => opened.map(|file| Found::File(Box::new(file))),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
