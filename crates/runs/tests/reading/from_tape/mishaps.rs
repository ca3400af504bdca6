//! The campaign: a mishap before every single command of a restore, a list and a verification.
//!
//! As on the writing side (`backup tape::mishaps`): whatever happens, nothing is written to any
//! medium. Files restored under their own names are what was backed up, a run without warnings
//! restores everything, and a failure says what happened.

use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use device::tape::sense::Sense;
use device::tape::{Access, Filemark, TapeDrive};
use flow::cancel::Cancel;
use sim::tape::{
    AccessOrders, Cartridge, DriveSettings, Library, Mishap, Object, Persistence, VirtualDrive,
};

use super::harness::{BLOCK_BYTES, Clerk, TapeHarness};

pub type Tree = BTreeMap<String, Vec<u8>>;

struct Kind {
    name: &'static str,
    mishap: Mishap,
    /// One of these is in the words of a failure.
    words: &'static [&'static str],
}

fn sense(key: u8, code: u8, qualifier: u8) -> Sense {
    Sense { key, code, qualifier, deferred: false }
}

/// Name of the situation that is warned of without any mishap.
const NO_LABEL: &str = "without its first label";

const CHANGED: &[&str] = &["may have changed", "was exchanged during the run", "lost its place"];

/// A blank check, which the driver does not log, and what it may be mistaken for.
const FORGOTTEN: &str = "Input/output error";
const NOT_LOGGED: &[&str] = &[FORGOTTEN, "no set", "no index", "end of its data"];

fn kinds(own: &Cartridge) -> Vec<Kind> {
    let told = |name, sense, words| Kind { name, mishap: Mishap::Refused(sense), words };
    let put_in = |name, cartridge: Cartridge| Kind {
        name,
        mishap: Mishap::Exchanged(cartridge),
        words: CHANGED,
    };
    let reset = &["reset", FORGOTTEN];
    let removed = &["not present", "no medium", "lost its place"];
    vec![
        told("medium error", sense(3, 0x11, 0), &["medium error"]),
        told("hardware error", sense(4, 0x44, 0), &["hardware error"]),
        told("aborted", sense(0xb, 0x4b, 0), &["aborted command"]),
        told("not ready", sense(2, 4, 1), &["not ready"]),
        told("end of data", sense(8, 0, 5), NOT_LOGGED),
        told("no end of data", sense(8, 0x14, 3), NOT_LOGGED),
        told("parameters changed", sense(6, 0x2a, 1), &["unit attention"]),
        Kind { name: "reset", mishap: Mishap::Reset, words: reset },
        Kind { name: "removed", mishap: Mishap::Removed, words: removed },
        put_in("foreign", foreign()),
        put_in("own", own.duplicate().unwrap()),
        put_in("blank", Cartridge::of_capacity(64 << 20)),
    ]
}

fn foreign() -> Cartridge {
    let cartridge = Cartridge::of_capacity(64 << 20);
    let drive = VirtualDrive::loaded(cartridge.clone());
    let mut tape = drive.open(Access::Write).unwrap();
    for number in 0..4u8 {
        tape.write(&[number + 1; 10_240]).unwrap();
        tape.write_filemark(Filemark::Synchronising).unwrap();
    }
    drop(tape);
    cartridge
}

/// The result of a run: complaints, and whether it reports that all is well.
pub struct Said {
    pub failure: Option<String>,
    pub warnings: Vec<String>,
}

impl Said {
    fn of<T, E: Error>(result: &Result<T, E>, warnings: Vec<String>) -> Said {
        let failure = result.as_ref().err().map(|error| in_words(error));
        Said { failure, warnings }
    }

    pub fn is_silent(&self) -> bool {
        self.failure.is_none() && self.warnings.is_empty()
    }
}

fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}

/// A run on a harness; `expected` has the trees, one of which must be restored, complete or not.
pub type Run = fn(&TapeHarness, &[&Tree], &str) -> Said;

pub fn restore(harness: &TapeHarness, expected: &[&Tree], what: &str) -> Said {
    let _ = std::fs::remove_dir_all(harness.plain.path("out"));
    let (result, kept) = harness.try_restore("out", &[]);
    let said = Said::of(&result, kept.warnings());
    let mut restored = harness.restored("out");
    restored.retain(|path, _| !path.ends_with(".incomplete"));
    let within = |tree: &&&Tree| restored.iter().all(|(path, it)| tree.get(path) == Some(it));
    let found = expected.iter().find(within);
    let found = found.unwrap_or_else(|| panic!("{what}: wrong content: {:?}", said.failure));
    assert!(!said.is_silent() || restored.len() == found.len(), "{what}: less, without a word");
    said
}

/// Three files, which the drive sorts before it is sent to them.
fn restore_some(harness: &TapeHarness, expected: &[&Tree], what: &str) -> Said {
    let _ = std::fs::remove_dir_all(harness.plain.path("out"));
    let paths = expected[0].keys().step_by(expected[0].len() / 3).take(3);
    let paths: Vec<&str> = paths.map(String::as_str).collect();
    let (result, kept) = harness.try_restore("out", &paths);
    let said = Said::of(&result, kept.warnings());
    let mut restored = harness.restored("out");
    restored.retain(|path, _| !path.ends_with(".incomplete"));
    let is_within = |tree: &&Tree| restored.iter().all(|(path, it)| tree.get(path) == Some(it));
    assert!(expected.iter().any(is_within), "{what}: wrong content: {:?}", said.failure);
    assert!(!said.is_silent() || restored.len() == paths.len(), "{what}: less, without a word");
    said
}

pub fn list(harness: &TapeHarness, expected: &[&Tree], what: &str) -> Said {
    let kept = crate::harness::Kept::default();
    let (paths, result) = harness.try_list(&kept);
    let said = Said::of(&result, kept.warnings());
    let whole = |tree: &&Tree| tree.keys().all(|path| paths.contains(path));
    assert!(!said.is_silent() || expected.iter().any(whole), "{what}: less, without a word");
    said
}

pub fn verify(harness: &TapeHarness, expected: &[&Tree], what: &str) -> Said {
    let (result, kept) = harness.verify(None);
    let said = Said::of(&result, kept.warnings());
    if let Ok(report) = &result
        && said.is_silent()
    {
        assert!(report.is_sound(), "{what}: damage without a word");
        let files = report.run.files;
        assert!(expected.iter().any(|tree| tree.len() as u64 == files), "{what}: {files} files");
    }
    said
}

/// A set to read, from the volume that is in the drive at first.
struct Situation {
    name: &'static str,
    harness: TapeHarness,
    first: usize,
    expected: Tree,
    /// A cartridge with a set of its own, and the content of the set.
    own: Cartridge,
    others: Tree,
}

fn situations() -> Vec<Situation> {
    let mut situations = Vec::new();
    for (name, compression) in [("plain", "none"), ("zstd", "zstd:1")] {
        let harness = TapeHarness::new(1, 64 << 20);
        let (own, others) = another_set(&harness);
        let expected = harness.small_tree(8, 9_000);
        harness.write(&harness.plain.path("t"), compression, 16 << 10);
        situations.push(Situation { name, harness, first: 0, expected, own, others });
    }
    // Its first label is gone: it is looked for elsewhere.
    let mut harness = TapeHarness::new(1, 64 << 20);
    let (own, others) = another_set(&harness);
    let expected = harness.small_tree(8, 9_000);
    harness.write(&harness.plain.path("t"), "none", 16 << 10);
    let cartridge = &harness.library.cartridges()[0];
    let mut objects = cartridge.objects().unwrap();
    objects[0] = Object::Block(vec![0; BLOCK_BYTES]);
    cartridge.record(&objects).unwrap();
    // A copy without data in a drive's buffer.
    let cartridges = [cartridge.duplicate().unwrap()];
    harness.library = Library::new(harness.library.drive().clone(), cartridges);
    situations.push(Situation { name: NO_LABEL, harness, first: 0, expected, own, others });
    for name in ["volumes", "volumes from the last"] {
        let harness = TapeHarness::new(6, 180 << 10);
        let (own, others) = another_set(&harness);
        let expected = harness.small_tree(12, 60_000);
        let report = harness.write(&harness.plain.path("t"), "none", 100 << 10);
        let volumes = report.tape.unwrap().volumes as usize;
        let first = if name == "volumes" { 0 } else { volumes - 1 };
        situations.push(Situation { name, harness, first, expected, own, others });
    }
    situations.extend(noted_situations());
    situations
}

/// What the media hold is noted, and nothing more is while they are read.
fn noted_situations() -> Vec<Situation> {
    let mut situations = Vec::new();
    for (name, compression, cartridges) in
        [("noted", "none", 1), ("noted, zstd", "zstd:1", 1), ("noted, volumes", "none", 6)]
    {
        let bytes = if cartridges == 1 { 64 << 20 } else { 180 << 10 };
        let mut harness = TapeHarness::new(cartridges, bytes);
        let (own, others) = another_set(&harness);
        let notes = harness.take_notes();
        let expected = harness.small_tree(12, 60_000);
        let report = harness.write(&harness.plain.path("t"), compression, 100 << 10);
        notes.is_closed.store(true, Ordering::Relaxed);
        let volumes = report.tape.unwrap().volumes as usize;
        assert_eq!(notes.media.lock().unwrap().len(), volumes);
        let first = volumes - 1;
        situations.push(Situation { name, harness, first, expected, own, others });
    }
    situations
}

/// Written where another tree will be, so that it is restored to the same place.
fn another_set(harness: &TapeHarness) -> (Cartridge, Tree) {
    let others = harness.small_tree(5, 7_000);
    let own = Cartridge::of_capacity(64 << 20);
    harness.library.drive().insert(own.clone());
    harness.write(&harness.plain.path("t"), "none", 16 << 10);
    std::fs::remove_dir_all(harness.plain.path("t")).unwrap();
    harness.library.load(0);
    (own.duplicate().unwrap(), others)
}

fn objects(cartridges: &[Cartridge]) -> Vec<Vec<Object>> {
    cartridges.iter().map(|cartridge| cartridge.objects().unwrap()).collect()
}

impl Situation {
    /// Resets everything, with a drive without mishaps.
    fn reset(&mut self) {
        let access_orders = AccessOrders::Offered;
        let settings = DriveSettings { access_orders, ..DriveSettings::default() };
        let drive = VirtualDrive::new("/dev/nst0", settings);
        let cartridges = self.harness.library.cartridges().to_vec();
        self.harness.library = Library::new(drive, cartridges);
        self.harness.library.load(self.first);
        self.harness.clerk = Clerk::Brings;
        self.harness.cancel = Cancel::new();
    }

    fn try_one(&self, run: Run, kind: &Kind, trees: &[&Tree], what: &str) -> Said {
        let mut cartridges = self.harness.library.cartridges().to_vec();
        if let Mishap::Exchanged(other) = &kind.mishap {
            cartridges.push(other.clone());
        }
        let before = objects(&cartridges);
        let said = run(&self.harness, trees, what);
        assert!(objects(&cartridges) == before, "{what}: a medium was written to");
        if let Some(words) = &said.failure {
            // Messages of opening a tape name what was looked for.
            let looked_for = [
                "holds no Takeup set",
                "is blank",
                "is needed",
                "is not ready",
                // A blank medium, or a drive that says so of one that is not.
                FORGOTTEN,
                "no label is there",
                "there is no block where the label was",
                "is not a tar archive",
            ];
            let is_named = |word: &&str| {
                words.contains(*word) && (*word != FORGOTTEN || !words.contains("(sense "))
            };
            let named = kind.words.iter().chain(&looked_for).any(is_named);
            assert!(named, "{what}: {words}");
        }
        said
    }
}

#[test]
#[allow(clippy::print_stdout)]
fn a_mishap_before_every_command_of_a_reading_run() {
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    let runs: [(&str, Run); 4] =
        [("restore", restore), ("restore some", restore_some), ("list", list), ("verify", verify)];
    let (mut count, mut commands, mut failed, mut warned, mut broken) = (0, 0, 0, 0, 0);
    for mut situation in situations() {
        let (mut kinds, others) = (kinds(&situation.own), situation.others.clone());
        if let [_, second, ..] = situation.harness.library.cartridges() {
            // Every label on it is one of the set.
            let cartridge = second.duplicate().unwrap();
            let mishap = Mishap::Exchanged(cartridge);
            kinds.push(Kind { name: "another volume", mishap, words: CHANGED });
        }
        for (run_name, run) in runs {
            situation.reset();
            situation.harness.library.drive().count_commands();
            let expected = situation.expected.clone();
            let said = run(&situation.harness, &[&expected], "without a mishap");
            let is_told = situation.name == NO_LABEL && said.failure.is_none();
            assert!(is_told != said.is_silent(), "{:?} {:?}", said.failure, said.warnings);
            let total = situation.harness.library.drive().commands();
            commands += total;
            for (number, kind) in kinds.iter().enumerate() {
                let step = if is_long { 1 } else { 16 };
                for at in (number as u64 % step..total).step_by(step as usize) {
                    situation.reset();
                    let drive = situation.harness.library.drive().clone();
                    drive.order_mishap(at, Persistence::Times(1), kind.mishap.clone());
                    let (name, mishap) = (situation.name, kind.name);
                    let what = format!("{run_name}, {name}, {mishap} before command {at}");
                    let trees = [&expected, &others];
                    let one = || situation.try_one(run, kind, &trees, &what);
                    count += 1;
                    match catch_unwind(AssertUnwindSafe(one)) {
                        Ok(said) => {
                            failed += u32::from(said.failure.is_some());
                            warned += u32::from(!said.is_silent() && said.failure.is_none());
                        }
                        Err(_) => broken += 1,
                    }
                }
            }
        }
    }
    println!("{commands} commands, {count} runs with a mishap: {failed} failed, {warned} warned");
    assert_eq!(broken, 0, "what is wrong with them is said above");
}
