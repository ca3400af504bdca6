//! The campaign: a mishap before every single command of a backup, an append and a backup over
//! several volumes.
//!
//! The commands of a run without a mishap are counted; then the run is repeated with one mishap
//! before each of them in turn. Whatever happens, no data on a medium change, no lost data are
//! reported as written or safe, the message names what happened, and the next run finds its place.
//! `TAKEUP_LONG=1` tries every mishap at every command, the short form fewer of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use archive::index::{ExtentRecord, IndexSection, find_trailer};
use archive::label::{LabelKind, MediumName};
use device::tape::scsi::attribute::CartridgeMemory;
use device::tape::sense::Sense;
use flow::cancel::Cancel;
use runs::backup::{BackupError, BackupOptions, backup};
use runs::destination::Destination;
use sim::tape::{
    Cartridge, CartridgeSettings, Library, Mishap, Object, Persistence, Protection, VirtualDrive,
};
use tapeset::{
    KnownMedia, KnownMedium, Memory, Safe, SetChoice, TapeIndex, TapeOptions, TapeOrigin,
    sets_on_volume,
};
use tempfile::TempDir;

use super::media::{check_extents, files, parts, section, stitch};
use super::{Operator, small_set, tree};
use crate::harness::{Recorder, Watchdog};

/// A mishap, and the messages that its failure may have.
struct Kind {
    name: &'static str,
    mishap: Mishap,
    words: &'static [&'static str],
    /// To this many commands in a row.
    times: u32,
    /// The cartridge that is loaded, and what may happen to its data.
    other: Option<(Cartridge, Other)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Its data do not change.
    Untouched,
    /// Its data are kept; others may follow.
    Kept,
}

fn sense(key: u8, code: u8, qualifier: u8) -> Sense {
    Sense { key, code, qualifier, deferred: false }
}

/// Messages of opening a drive whatever its first answer, and of a drive that contradicts itself.
const IN_ANY_CASE: [&str; 2] = ["the drive is not ready", "changed since takeup checked it"];

/// The message when the driver has forgotten the drive's report, or does not log it.
const FORGOTTEN: &str = "Input/output error";

/// What also ends a run whose medium is full, and that switches the drive's compression.
const WHEN_ENDING: [&str; 2] = ["no cartridge is left", "the compression of /dev/nst0"];

/// The driver does not report why; the drive does when it is asked for the end of data.
const BLANK: &[&str] = &["blank check", FORGOTTEN];

const FULL: &[&str] = &["volume overflow", FORGOTTEN, "no cartridge", "too small"];

fn kinds(own: &Cartridge) -> Vec<Kind> {
    let told = |name, sense, words| Kind {
        name,
        mishap: Mishap::Refused(sense),
        words,
        times: 1,
        other: None,
    };
    let simple = |name, mishap, words| Kind { name, mishap, words, times: 1, other: None };
    let twice = |name, sense, words| Kind { times: 2, ..told(name, sense, words) };
    let thrice = |name, sense, words| Kind { times: 3, ..told(name, sense, words) };
    let put_in = |name, cartridge: Cartridge, becomes, words| {
        let mishap = Mishap::Exchanged(cartridge.clone());
        Kind { name, mishap, words, times: 1, other: Some((cartridge, becomes)) }
    };
    let protected = own.duplicate().unwrap();
    protected.set_protection(Protection::Protected);
    let aborted = sense(0xb, 0x4b, 0x00);
    vec![
        told("medium error", sense(3, 0x0c, 0), &["medium error"]),
        told("hardware error", sense(4, 0x44, 0), &["hardware error"]),
        told("aborted", aborted, &["aborted command"]),
        told("not ready", sense(2, 4, 1), &["not ready", "no medium"]),
        told("protected", sense(7, 0x27, 0), &["write protected", "write-protected"]),
        told(
            "end of data",
            sense(8, 0, 5),
            &[FORGOTTEN, "changed since takeup checked it", "did not write"],
        ),
        told("no end of data", sense(8, 0x14, 3), BLANK),
        told("unknown format", sense(8, 0x30, 1), BLANK),
        // A read, and the question whether it is the end of data: the driver reports the key.
        twice("no end of data, twice", sense(8, 0x14, 3), BLANK),
        twice("unknown format, twice", sense(8, 0x30, 1), BLANK),
        thrice("no end of data, thrice", sense(8, 0x14, 3), BLANK),
        thrice("unknown format, thrice", sense(8, 0x30, 1), BLANK),
        told("parameters changed", sense(6, 0x2a, 1), &["unit attention"]),
        told("illegal", sense(5, 0x24, 0), &["illegal request"]),
        simple("done but aborted", Mishap::DoneButRefused(aborted), &["aborted command"]),
        simple("early warning", Mishap::EarlyWarning, &[FORGOTTEN, "too small", "no cartridge"]),
        simple("full", Mishap::Full, FULL),
        simple("buffer lost", Mishap::BufferLost, &["deferred medium error"]),
        simple("reset", Mishap::Reset, &["reset", FORGOTTEN]),
        simple("removed", Mishap::Removed, &["medium not present", "no medium", "No medium"]),
        put_in("foreign", foreign(), Other::Untouched, CHANGED),
        put_in("own", own.duplicate().unwrap(), Other::Kept, CHANGED),
        put_in("own, protected", protected, Other::Untouched, CHANGED),
        put_in("blank", blank(64 << 20), Other::Kept, CHANGED),
    ]
}

const CHANGED: &[&str] = &[
    "may have changed",
    "changed since takeup checked it",
    "did not write",
    "write-protected",
    "write protected",
];

fn blank(capacity_bytes: u64) -> Cartridge {
    Cartridge::blank(CartridgeSettings {
        capacity_bytes,
        early_warning_bytes: 100 << 10,
        ..CartridgeSettings::default()
    })
}

fn foreign() -> Cartridge {
    let cartridge = blank(64 << 20);
    let drive = VirtualDrive::loaded(cartridge.clone());
    let mut tape = device::tape::TapeDrive::open(&drive, device::tape::Access::Write).unwrap();
    // More files than any set has, so that a place by its count is there, too.
    for number in 0..40u8 {
        for _ in 0..2 {
            tape.write(&[number; 10_240]).unwrap();
        }
        tape.write_filemark(device::tape::Filemark::Synchronising).unwrap();
    }
    drop(tape);
    cartridge
}

/// The state before a run.
struct Situation {
    name: &'static str,
    media: Vec<Cartridge>,
    options: BackupOptions,
    tape: TapeOptions,
    tree: TempDir,
    /// What is noted of the first medium; chips of copies differ, so that is filled in.
    noted: Option<KnownMedium>,
    chip: Mutex<CartridgeMemory>,
    /// How much of the set there must be.
    extent: Extent,
    drive: DriveState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DriveState {
    /// With the first medium.
    Loaded,
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// It ends early on a full medium, after any segment.
    SomeSegments,
}

/// One medium as it was noted, whatever becomes of it.
struct Noted(KnownMedium);

impl KnownMedia for Noted {
    fn medium(&self, memory: &CartridgeMemory) -> Option<KnownMedium> {
        Some(&self.0).filter(|known| memory.is_unchanged_since(&known.memory)).cloned()
    }

    fn index(&self, _: [u8; 16]) -> Option<TapeIndex> {
        None
    }

    fn name(&self, _: [u8; 16]) -> Option<MediumName> {
        None
    }

    fn note(&self, _: &KnownMedium) {}

    fn keep(&self, _: [u8; 16], _: &TapeIndex) {}
}

/// Keeps the last note.
#[derive(Default)]
struct LastNote(Mutex<Option<KnownMedium>>);

impl KnownMedia for LastNote {
    fn medium(&self, _: &CartridgeMemory) -> Option<KnownMedium> {
        None
    }

    fn index(&self, _: [u8; 16]) -> Option<TapeIndex> {
        None
    }

    fn name(&self, _: [u8; 16]) -> Option<MediumName> {
        None
    }

    fn note(&self, medium: &KnownMedium) {
        *self.0.lock().unwrap() = Some(medium.clone());
    }

    fn keep(&self, _: [u8; 16], _: &TapeIndex) {}
}

impl Situation {
    fn new(name: &'static str, tree: TempDir, media: Vec<Cartridge>) -> Situation {
        let (options, tape) = small_set(tree.path());
        let options = BackupOptions { ring_bytes: 256 << 10, ..options };
        let tape = TapeOptions { segment_bytes: Some(24 << 10), ..tape };
        let (extent, drive) = (Extent::Whole, DriveState::Loaded);
        let chip = Mutex::default();
        Situation { name, media, options, tape, tree, noted: None, chip, extent, drive }
    }

    fn library(&self) -> Library {
        let copies = self.media.iter().map(|medium| medium.duplicate().unwrap());
        let library = Library::new(VirtualDrive::new("/dev/nst0", Default::default()), copies);
        if self.drive == DriveState::Loaded {
            assert!(library.load(0));
        }
        *self.chip.lock().unwrap() = library.cartridges()[0].memory();
        library
    }

    fn memory(&self) -> Memory {
        let memory = self.chip.lock().unwrap().clone();
        let noted = self.noted.clone().map(|noted| Noted(KnownMedium { memory, ..noted }));
        Memory(noted.map(|noted| Arc::new(noted) as Arc<dyn KnownMedia>))
    }

    fn run(&self, library: &Library) -> Result<[u8; 16], (String, Option<Safe>)> {
        let (drive, operator) = (library.drive().clone(), Operator::of(library));
        let mut options = super::on_tape(&self.options, &self.tape, drive, operator);
        if let Destination::Tape(tape) = &mut options.target {
            tape.memory = self.memory();
        }
        match backup(&options, &Recorder::default(), &Cancel::new()) {
            Ok(report) => Ok(super::set_id(&report)),
            Err(BackupError::Unfinished(unfinished)) => {
                Err((in_words(&unfinished.error), Some(unfinished.safe)))
            }
            Err(error) => Err((in_words(&error), None)),
        }
    }
}

fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}

fn situations(own: &Cartridge) -> Vec<Situation> {
    let open = own.duplicate().unwrap();
    open.cut(own.len() - 4).unwrap();
    let small = || tree(41, 9, 9000);
    let mut situations = vec![
        Situation::new("blank", small(), vec![blank(64 << 20)]),
        Situation::new("append", small(), vec![own.duplicate().unwrap()]),
        Situation::new("append to what died", small(), vec![open]),
        Situation::new("volumes", tree(42, 16, 20_000), (0..9).map(|_| blank(180 << 10)).collect()),
    ];
    let mut noted =
        Situation::new("append to what is noted", small(), vec![own.duplicate().unwrap()]);
    noted.noted = Some(noted_of(own));
    situations.push(noted);
    let mut fixed = Situation::new("fixed", small(), vec![own.duplicate().unwrap()]);
    fixed.tape.layout = tapeset::BlockLayout::Fixed;
    situations.push(fixed);
    let media = vec![own.duplicate().unwrap(), blank(64 << 20)];
    let mut asked = Situation::new("asked for", small(), media);
    asked.drive = DriveState::Empty;
    situations.push(asked);
    situations.push(ending_early());
    situations
}

/// The only medium is full before the end, and has room for the index once the set is cut.
fn ending_early() -> Situation {
    let medium = own_on(blank(3600 << 10));
    let mut early = Situation::new("ends early", tree(43, 110, 90_000), vec![medium]);
    early.options.block_bytes = 32 << 10;
    early.options.ring_bytes = 1 << 20;
    early.tape.segment_bytes = Some(256 << 10);
    early.tape.drive_compression = Some(device::tape::DriveCompression::Off);
    early.extent = Extent::SomeSegments;
    early
}

/// What is noted of a cartridge that is listed.
fn noted_of(cartridge: &Cartridge) -> KnownMedium {
    let note = Arc::new(LastNote::default());
    let origin = TapeOrigin {
        drive: Arc::new(VirtualDrive::loaded(cartridge.duplicate().unwrap())),
        set: SetChoice::Last,
        file_number: None,
        without_volumes: Vec::new(),
        known: None,
        changer: Arc::new(Mutex::new(Operator::of(&super::library(&[1 << 20], 1 << 16)))),
        memory: Memory(Some(Arc::clone(&note) as Arc<dyn KnownMedia>)),
        motion: None,
    };
    sets_on_volume(&origin, &Cancel::new()).unwrap();
    let noted = note.0.lock().unwrap().take();
    noted.expect("all of its sets were seen")
}

/// A cartridge with a set of its own.
fn own() -> Cartridge {
    own_on(blank(64 << 20))
}

fn own_on(blank: Cartridge) -> Cartridge {
    let situation = Situation::new("own", tree(40, 6, 8000), vec![blank]);
    let library = situation.library();
    situation.run(&library).unwrap();
    library.cartridges()[0].duplicate().unwrap()
}

/// The data of a set on cartridges, checked against its index and `expected`.
fn assert_whole(
    cartridges: &[Cartridge],
    set: [u8; 16],
    (expected, extent): (&[u8], Extent),
    what: &str,
) {
    let mut found = parts(cartridges);
    found.retain(|part| part.label.set == set);
    let of_kind = |kind| found.iter().filter(move |part| part.label.kind == kind);
    let data = stitch(of_kind(LabelKind::Data));
    let is_some = extent == Extent::SomeSegments && !data.is_empty() && expected.starts_with(&data);
    assert!(is_some || data == expected, "{what}: the data differ");
    let index = stitch(of_kind(LabelKind::Index));
    let trailer = find_trailer(&index).unwrap().unwrap_or_else(|| panic!("{what}: no trailer"));
    let mut extents: Vec<ExtentRecord> = section(&index, &trailer.trailer, IndexSection::Extents);
    // A drive that refuses to say where it is counts as one that does not know.
    let of_volume = |volume| parts(&cartridges[volume..=volume]);
    for extent in extents.iter_mut().filter(|extent| extent.label_block.is_none()) {
        let all = (0..cartridges.len()).flat_map(of_volume);
        let mut same = all.filter(|part| {
            (part.label.set, part.label.segment, part.label.part)
                == (extent.set, extent.segment, extent.part)
        });
        extent.label_block = same.next().map(|part| part.object);
    }
    check_extents(&found, &extents);
}

/// Everything reported as safe exists, each segment closed by a filemark.
fn assert_safe(cartridges: &[Cartridge], safe: &Safe, expected: &[u8], what: &str) {
    let mut found = parts(cartridges);
    found.retain(|part| {
        part.label.set == safe.set
            && part.label.kind == LabelKind::Data
            && part.label.segment <= safe.segments
    });
    let mut segments: Vec<u32> = found.iter().map(|part| part.label.segment).collect();
    segments.dedup();
    let data_segments = segments.len() as u32;
    assert!(safe.segments <= data_segments + u32::from(safe.index), "{what}: {safe:?}");
    let data = stitch(found.iter());
    assert!(data[..] == expected[..data.len()], "{what}: what is safe differs");
    for part in &found {
        let filemarks = cartridges[part.cartridge].objects().unwrap();
        let filemarks = filemarks.iter().filter(|object| **object == Object::Filemark).count();
        assert!((part.file as usize) < filemarks, "{what}: segment {} is open", part.label.segment);
    }
}

fn objects(cartridges: &[Cartridge]) -> Vec<Vec<Object>> {
    cartridges.iter().map(|cartridge| cartridge.objects().unwrap()).collect()
}

/// The data of a set.
fn data_of(library: &Library, set: [u8; 16]) -> Vec<u8> {
    let mut found = parts(library.cartridges());
    found.retain(|part| part.label.set == set && part.label.kind == LabelKind::Data);
    stitch(found.iter())
}

/// What a set would be that did not end early.
fn whole(situation: &Situation) -> Option<Vec<u8>> {
    (situation.extent == Extent::SomeSegments).then(|| {
        let library = super::library(&[64 << 20], 1 << 16);
        let drive = library.drive().clone();
        let options =
            super::on_tape(&situation.options, &situation.tape, drive, Operator::of(&library));
        let report = backup(&options, &Recorder::default(), &Cancel::new()).unwrap();
        data_of(&library, super::set_id(&report))
    })
}

/// One run with one mishap.
fn try_one(situation: &Situation, kind: &Kind, at: u64, expected: &[u8]) -> Option<String> {
    let what = format!("{}, {} before command {at}", situation.name, kind.name);
    let library = situation.library();
    let other = kind.other.as_ref().map(|(cartridge, _)| cartridge.duplicate().unwrap());
    if let (Some((from, _)), Some(other)) = (&kind.other, &other) {
        other.set_protection(if kind.name.contains("protected") {
            Protection::Protected
        } else {
            Protection::Writable
        });
        assert_eq!(from.len(), other.len());
    }
    let mishap = match &other {
        Some(other) => Mishap::Exchanged(other.clone()),
        None => kind.mishap.clone(),
    };
    let mut cartridges = library.cartridges().to_vec();
    cartridges.extend(other);
    let before = objects(&cartridges);
    library.drive().order_mishap(at, Persistence::Times(kind.times), mishap);
    let result = situation.run(&library);
    library.drive().count_commands();
    let after = objects(&cartridges);
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(after.starts_with(before), "{what}: cartridge {number} lost what it held");
    }
    if kind.other.as_ref().is_some_and(|(_, becomes)| *becomes == Other::Untouched) {
        assert!(before.last() == after.last(), "{what}: it was written to");
    }
    match result {
        Ok(set) => {
            assert_whole(&cartridges, set, (expected, situation.extent), &what);
            None
        }
        Err((words, safe)) => {
            let safe = safe.unwrap_or_default();
            assert_safe(&cartridges, &safe, expected, &what);
            let is_named = |word: &&str| {
                words.contains(*word) && (*word != FORGOTTEN || !words.contains("(sense "))
            };
            let named = kind.words.iter().chain(&IN_ANY_CASE).any(is_named)
                || situation.extent == Extent::SomeSegments && WHEN_ENDING.iter().any(is_named);
            assert!(named, "{what}: {words}");
            // The medium accepts the next set as usual.
            library.load(0);
            let has_room = situation.extent == Extent::Whole;
            if at.is_multiple_of(3) && situation.media.len() == 1 && has_room {
                let set =
                    situation.run(&library).unwrap_or_else(|error| panic!("{what}: {error:?}"));
                assert_whole(library.cartridges(), set, (expected, situation.extent), &what);
            }
            Some(words)
        }
    }
}

#[test]
#[allow(clippy::print_stdout)]
fn a_mishap_before_every_command_of_a_backup() {
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    let own = own();
    let (mut runs, mut failures, mut commands, mut broken) = (0, 0, 0, 0);
    let mut told: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    for situation in situations(&own) {
        let library = situation.library();
        library.drive().count_commands();
        let set = situation.run(&library).unwrap();
        let expected = whole(&situation).unwrap_or_else(|| data_of(&library, set));
        let count = library.drive().commands();
        commands += count;
        by_name.insert(situation.name, count);
        assert!(!files(&library.cartridges()[0]).is_empty() && situation.tree.path().exists());
        for (number, kind) in kinds(&own).iter().enumerate() {
            let _watchdog = Watchdog::new(format!("{}, {}", situation.name, kind.name));
            for at in 0..count {
                // A set of many blocks meets the same mishap many times.
                let step = if situation.extent == Extent::Whole { 8 } else { 24 };
                if !is_long && !(at + number as u64).is_multiple_of(step) {
                    continue;
                }
                runs += 1;
                let one = || try_one(&situation, kind, at, &expected);
                match std::panic::catch_unwind(std::panic::AssertUnwindSafe(one)) {
                    Ok(None) => {}
                    Ok(Some(words)) => {
                        failures += 1;
                        *told.entry((kind.name, words)).or_default() += 1;
                    }
                    Err(_) => broken += 1,
                }
            }
        }
    }
    // The beginning of a tape that is noted is not looked at.
    assert!(by_name["append to what is noted"] < by_name["append"], "{by_name:?}");
    println!("{commands} commands, {runs} runs with a mishap, of which {failures} failed");
    for ((kind, words), times) in told {
        println!("{times:6} {kind}: {words}");
    }
    assert_eq!(broken, 0, "what is wrong with them is said above");
}
