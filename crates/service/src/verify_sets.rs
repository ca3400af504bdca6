//! The archives of a folder of sets, or the sets of a tape, read back one after the other.

mod of_tape;

use std::path::{Path, PathBuf};
use std::time::Instant;

use archive::label::hex;
use base::escape::{escape, escape_path};
use catalogue::FolderSet;
use flow::cancel::Cancel;
use jobs::Event;
use runs::verdict::RunState;
use runs::verify::{Differing, VerifyReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::change::SharedChanger;
use crate::failure::Failure;
use crate::jobs::{ComparedSource, VerifiedArchive};
use crate::journal::{self, note};
use crate::outcome::Outcome;
use crate::run::{ArchiveSettings, EngineChoice, ReadOrderChoice, RunObserver};
use crate::sets::{self, SetSelection};
use crate::tape_source::{SetWanted, TapeSourceSettings};
use crate::verify::{VerifyRequest, try_verify};

/// Paths that are named where an archive differs from its source.
const FIRST_NAMED: usize = 10;

/// Which sets of a folder are verified; of a tape drive, all sets of its medium.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifySetsRequest {
    /// The folder, or the tape drive.
    pub from: PathBuf,
    /// Only what this set needs; `None`: every archive in the folder.
    #[serde(default)]
    pub set: Option<SetWanted>,
    /// Only what the set of this day, or of this job, needs.
    #[serde(default)]
    pub selection: SetSelection,
    /// How each archive is read.
    #[serde(default)]
    pub archive: ArchiveSettings,
    /// What only tapes need.
    #[serde(default)]
    pub tape: TapeSourceSettings,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
}

/// How archives are read back.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadBack {
    pub(crate) archive: ArchiveSettings,
    pub(crate) engine: EngineChoice,
}

/// What became of the archives of a folder.
#[derive(Clone, Debug)]
pub struct VerifySetsDone {
    pub from: PathBuf,
    /// In the order in which they were made.
    pub verified: Vec<VerifiedArchive>,
    /// What is named like a set and cannot be read as one, and what a set needs and is not there.
    pub lost: Vec<String>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
    pub seconds: f64,
}

/// What became of the archives of a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifySetsAnswer {
    /// Whether every archive is sound, and every set can be restored.
    pub sound: bool,
    pub archives: Vec<VerifiedArchive>,
    /// What is named like a set and cannot be read as one, and what a set needs and is not there.
    pub lost: Vec<String>,
    pub warnings: Vec<String>,
    pub seconds: f64,
}

impl Answer for VerifySetsAnswer {
    const COMMAND: &'static str = "verify sets";

    fn command(&self) -> &str {
        "verify"
    }
}

impl VerifySetsDone {
    /// Whether every archive is sound, and every set can be restored.
    pub fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.verified.iter().all(|it| it.sound)
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        match (self.is_sound(), self.warnings.is_empty()) {
            (false, _) => Outcome::Bad,
            (true, false) => Outcome::Warned,
            (true, true) => Outcome::Done,
        }
    }

    /// As an answer.
    pub fn answer(&self) -> VerifySetsAnswer {
        VerifySetsAnswer {
            sound: self.is_sound(),
            archives: self.verified.clone(),
            lost: self.lost.clone(),
            warnings: self.warnings.clone(),
            seconds: self.seconds,
        }
    }
}

/// Reads archives of a folder, or the sets of a tape, and notes in the journal what became of
/// each.
///
/// # Errors
/// When the folder or the tape cannot be read or has no such set, or the run was stopped. Damage is
/// in the result.
pub fn verify_sets(
    request: &VerifySetsRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: &SharedChanger,
) -> Result<VerifySetsDone, Failure> {
    if device::tape::find(&request.from).is_some() {
        return of_tape::verify_sets(request, observer, cancel, changer);
    }
    let begun = Instant::now();
    let known = sets::read(&request.from)?;
    let mut lost = Vec::new();
    for (path, why) in &known.unusable {
        lost.push(format!("{} cannot be read as a set: {why}", escape_path(path)));
    }
    let mut copies = Vec::new();
    let chosen = if request.set.is_some() || request.selection != SetSelection::default() {
        sets::chain(&request.from, request.set.as_ref(), &request.selection)?.sets
    } else {
        let missing = known.sets.iter().filter_map(|set| known.chain_of(set).err());
        lost.extend(missing.map(|error| error.to_string()));
        copies = known.copies;
        known.sets
    };
    if chosen.is_empty() && lost.is_empty() {
        return Err(Failure::of(
            format!("{} has no set of backups", escape_path(&request.from)),
            Some("sets are made with `takeup backup SOURCE --to FOLDER/`"),
        ));
    }
    let (mut verified, mut warnings) = (Vec::new(), Vec::new());
    let how = ReadBack { archive: request.archive.clone(), engine: request.engine };
    for set in &chosen {
        let place = set.path.parent().unwrap_or(Path::new("."));
        let one = verify_one(set, place, &how, observer, cancel, changer.clone());
        let (archive, failure) = one?;
        warnings.extend(failure.map(|failure| failure.message().to_owned()));
        verified.push(archive);
    }
    // Of a further copy nothing follows for the set.
    for copy in &copies {
        let request_of = of_archive(copy, &how);
        let name = Named::of(copy);
        verified.push(read_back(name, &request_of, observer, cancel, changer.clone())?);
    }
    warnings.dedup();
    let seconds = begun.elapsed().as_secs_f64();
    Ok(VerifySetsDone { from: request.from.clone(), verified, lost, warnings, seconds })
}

/// Reads one archive from its medium, and notes what became of it. The failure is that of the note.
///
/// # Errors
/// When the run was stopped. An archive that cannot be read is not sound.
pub(crate) fn verify_one(
    set: &FolderSet,
    place: &Path,
    how: &ReadBack,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<(VerifiedArchive, Option<Failure>), Failure> {
    let request = request_of(set, place, how);
    read_and_note(set, place, &request, observer, cancel, changer)
}

/// Reads one archive from its medium, compares each of its members with the source, and notes what
/// became of it. What an earlier set of the chain has is not in it, and is not compared.
///
/// # Errors
/// When the run was stopped. An archive that cannot be read, or differs from a source that did not
/// change, is not sound.
pub(crate) fn verify_against_source(
    set: &FolderSet,
    place: &Path,
    how: &ReadBack,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<(VerifiedArchive, Option<Failure>), Failure> {
    let request = VerifyRequest {
        // Sources of jobs are paths from the root, and the archive has them without it.
        against: Some(PathBuf::from("/")),
        no_owners: false,
        no_xattrs: false,
        no_extra: true,
        ..request_of(set, place, how)
    };
    read_and_note(set, place, &request, observer, cancel, changer)
}

fn request_of(set: &FolderSet, place: &Path, how: &ReadBack) -> VerifyRequest {
    if journal::is_tape_drive(place) { on_tape(set, place, how) } else { of_archive(set, how) }
}

fn read_and_note(
    set: &FolderSet,
    place: &Path,
    request: &VerifyRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<(VerifiedArchive, Option<Failure>), Failure> {
    let archive = read_back(Named::of(set), request, observer, cancel, changer)?;
    if archive.unread {
        return Ok((archive, None));
    }
    let event = Event::Verified {
        set: archive.set.clone(),
        archive: archive.archive.clone(),
        sound: archive.sound,
        bytes: archive.bytes,
        text: archive.text.clone(),
    };
    let noted = note(&set.about.job, place, event).err();
    Ok((archive, noted))
}

/// A set on tape, wherever it is.
fn on_tape(set: &FolderSet, drive: &Path, how: &ReadBack) -> VerifyRequest {
    let set_wanted = Some(SetWanted::Id(hex(&set.about.set)));
    VerifyRequest {
        from: drive.to_owned(),
        tape: TapeSourceSettings { set: set_wanted, ..TapeSourceSettings::default() },
        ..of_archive(set, how)
    }
}

fn of_archive(set: &FolderSet, how: &ReadBack) -> VerifyRequest {
    let archive = ArchiveSettings { require_index: true, ..how.archive.clone() };
    by_itself(set.path.clone(), archive, how.engine)
}

/// An archive that is read from its medium and compared with nothing.
fn by_itself(from: PathBuf, archive: ArchiveSettings, engine: EngineChoice) -> VerifyRequest {
    VerifyRequest {
        from,
        cached: false,
        against: None,
        no_owners: true,
        no_xattrs: true,
        no_extra: false,
        read_order: ReadOrderChoice::Auto,
        read_window_bytes: None,
        archive,
        tape: TapeSourceSettings::default(),
        engine,
        record: None,
    }
}

/// How an archive is called.
struct Named {
    /// The id of its set.
    set: String,
    archive: String,
}

impl Named {
    fn of(set: &FolderSet) -> Named {
        Named { set: hex(&set.about.set), archive: set.name() }
    }
}

/// Reads one archive from its medium.
fn read_back(
    named: Named,
    request: &VerifyRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<VerifiedArchive, Failure> {
    // An archive that cannot be read does not stop the others.
    let result = try_verify(request, observer, &cancel.part(), changer);
    let mut archive = VerifiedArchive {
        set: named.set,
        archive: named.archive,
        sound: false,
        unread: false,
        text: String::new(),
        bytes: 0,
        seconds: 0.0,
        part: None,
        source: None,
    };
    match result {
        Ok(done) => {
            let run = &done.summary.run;
            archive.source = done.against.as_ref().map(|_| compared(&done.report));
            // What was touched since the backup says nothing of the archive.
            let differs = archive.source.as_ref().is_some_and(|source| source.differs > 0);
            let is_whole = match done.summary.verdict.state {
                RunState::Different => archive.source.is_some() && !differs,
                _ => done.outcome() == Outcome::Done,
            };
            archive.sound = done.report.is_sound() && is_whole;
            archive.unread = done.summary.verdict.state == RunState::Later;
            archive.text = done.summary.verdict.text.clone();
            (archive.bytes, archive.seconds) = (run.target_bytes, run.seconds);
        }
        Err(error) if cancel.check().is_err() => return Err(error.failure),
        Err(error) => {
            archive.unread = !error.is_of_the_archive;
            archive.text = error.failure.message().to_owned();
        }
    }
    Ok(archive)
}

/// What the comparison with the source found.
fn compared(report: &VerifyReport) -> ComparedSource {
    let differing =
        |list: &[Differing]| -> Vec<Vec<u8>> { list.iter().map(|it| it.path.clone()).collect() };
    let not_compared = report.not_compared.items.iter().map(|it| it.path.clone());
    let first = differing(&report.differs.items)
        .into_iter()
        .chain(not_compared)
        .chain(differing(&report.changed.items))
        .chain(report.missing.items.iter().cloned());
    ComparedSource {
        compared: report.checked.compared,
        changed: report.changed.total,
        gone: report.missing.total,
        differs: report.differs.total,
        not_compared: report.not_compared.total,
        elsewhere: report.elsewhere.is_some(),
        first: first.take(FIRST_NAMED).map(|path| escape(&path)).collect(),
    }
}
