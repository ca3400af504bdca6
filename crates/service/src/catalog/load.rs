//! Archives that come into a catalogue, by their indexes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use archive::index::{About, FileRecord, IndexError, IndexSection};
use base::escape::escape_path;
use catalogue::{
    Catalogue, CatalogueError, IndexFile, Loaded, Look, Places, SetDescription, SetRecord, Sources,
    is_index_copy,
};
use device::source::Source;
use flow::cancel::Cancel;

use super::candidates::Candidate;
use super::members::{Members, NoMembers};
use super::{CatalogLoadRequest, ExistingCatalogue, LeftOutArchive, failure, place};
use crate::failure::{Failure, with_causes};
use crate::journal::{CarriedJournal, CarriedJournals, TAPE_PLACE};
use crate::outcome::Outcome;

/// Most sources of an archive; one with more is said to have these.
const SOURCES_MAX: usize = 10_000;
/// Files whose looks are noted together.
const LOOKS: usize = 1000;

/// How archives came into a catalogue.
#[derive(Clone, Debug)]
pub struct CatalogLoaded {
    /// The catalogue.
    pub path: PathBuf,
    pub existing: ExistingCatalogue,
    /// Its length now.
    pub bytes: u64,
    /// Sets that are new.
    pub added: u64,
    /// Objects and files of these.
    pub members: u64,
    pub files: u64,
    /// Sets that it had before.
    pub known: u64,
    /// Objects that sets have which are not in the catalogue, and which the new ones count on.
    pub elsewhere: u64,
    /// Files in the named folders that have no index.
    pub without_index: u64,
    /// Archives without an index that were read as a whole.
    pub read_through: u64,
    /// What was to come in and did not.
    pub left_out: Vec<LeftOutArchive>,
    /// What the journal of jobs had lost, and the sets had.
    pub journals: Vec<CarriedJournal>,
    pub seconds: f64,
}

impl CatalogLoaded {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        if self.left_out.is_empty() { Outcome::Done } else { Outcome::Warned }
    }
}

/// Puts the indexes of archives into a catalogue.
///
/// # Errors
/// When there is no place for a catalogue, it cannot be written, or a named path cannot be read.
pub fn load(request: &CatalogLoadRequest, cancel: &Cancel) -> Result<CatalogLoaded, Failure> {
    let begun = Instant::now();
    let path = place(request.catalog.as_deref())?;
    let places = Places::of(&path);
    let (candidates, left_out) = candidates(request, &places)?;
    let mut loading = Loading { left_out, ..Loading::default() };
    let fill = |catalogue: &mut Catalogue| -> Result<(), LoadError> {
        loading.take_all(candidates, catalogue, cancel)
    };
    let filled = match request.existing {
        ExistingCatalogue::Kept => {
            let opened = Catalogue::open_or_create(&path).map_err(LoadError::from);
            opened.and_then(|mut catalogue| fill(&mut catalogue))
        }
        ExistingCatalogue::Replaced => Catalogue::rebuild(&path, fill),
    };
    filled.map_err(|error| match error {
        LoadError::Catalogue(error) => failure(&error),
        LoadError::Cancelled => {
            let kept = match request.existing {
                ExistingCatalogue::Kept => "the sets before that are in the catalogue",
                ExistingCatalogue::Replaced => "the catalogue is as it was",
            };
            Failure::of(format!("cancelled: {kept}"), None)
        }
    })?;
    note_places(request, &places, &mut loading.left_out);
    let journals = match request.existing {
        ExistingCatalogue::Kept => Ok(Vec::new()),
        ExistingCatalogue::Replaced => std::mem::take(&mut loading.carried).take_in(),
    };
    let journals = journals.unwrap_or_else(|failure| {
        let (path, why) = ("what the sets have of the journal".to_owned(), failure.message());
        loading.left_out.push(LeftOutArchive { path, why: why.to_owned() });
        Vec::new()
    });
    Ok(CatalogLoaded {
        existing: request.existing,
        bytes: path.metadata().map_or(0, |status| status.len()),
        path,
        added: loading.added,
        members: loading.members,
        files: loading.files,
        known: loading.known,
        elsewhere: loading.elsewhere,
        without_index: loading.without_index,
        read_through: loading.read_through,
        left_out: loading.left_out,
        journals,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// Notes which folders the catalogue is to look at from now on.
fn note_places(request: &CatalogLoadRequest, places: &Places, left_out: &mut Vec<LeftOutArchive>) {
    let folders: Vec<PathBuf> = request.from.iter().filter(|path| path.is_dir()).cloned().collect();
    let noted = match request.existing {
        ExistingCatalogue::Kept => folders.iter().try_for_each(|folder| places.note(folder)),
        // They were taken from the list.
        ExistingCatalogue::Replaced if request.from.is_empty() => Ok(()),
        ExistingCatalogue::Replaced => places.replace(&folders),
    };
    if let Err(error) = noted {
        let why = format!("the catalogue will not look there again: {}", with_causes(&error));
        let path = folders.first().map(|folder| escape_path(folder)).unwrap_or_default();
        left_out.push(LeftOutArchive { path, why });
    }
}

/// Why loading ends.
pub(super) enum LoadError {
    Catalogue(CatalogueError),
    Cancelled,
}

impl From<CatalogueError> for LoadError {
    fn from(error: CatalogueError) -> LoadError {
        LoadError::Catalogue(error)
    }
}

/// Why the records of a set end early.
enum RecordsEnd {
    Index(IndexError),
    Load(LoadError),
}

impl From<CatalogueError> for RecordsEnd {
    fn from(error: CatalogueError) -> RecordsEnd {
        RecordsEnd::Load(LoadError::Catalogue(error))
    }
}

/// The files that may come in.
fn candidates(
    request: &CatalogLoadRequest,
    places: &Places,
) -> Result<(Vec<Candidate>, Vec<LeftOutArchive>), Failure> {
    if !request.from.is_empty() {
        return Candidate::all(&request.from);
    }
    let known = places.read().map_err(|error| Failure::new(&error, None))?;
    if known.is_empty() {
        let hint = "name the archives, or the folders that they are in";
        return Err(Failure::of("the catalogue has no folder to look at", Some(hint)));
    }
    let (candidates, mut left_out) = Candidate::in_places(&known);
    for folder in known.iter().filter(|folder| !folder.is_dir()) {
        let why = "it is not there: the catalogue has none of its sets".to_owned();
        left_out.push(LeftOutArchive { path: escape_path(folder), why });
    }
    Ok((candidates, left_out))
}

/// What has come into a catalogue so far.
#[derive(Default)]
pub(super) struct Loading<'k> {
    pub(super) added: u64,
    members: u64,
    pub(super) files: u64,
    known: u64,
    elsewhere: u64,
    without_index: u64,
    read_through: u64,
    pub(super) left_out: Vec<LeftOutArchive>,
    /// What the sets have of the journal of jobs.
    carried: CarriedJournals,
    /// What was found in files before.
    before: Option<&'k HashMap<PathBuf, Look>>,
    /// What is to be noted of files, at most [`LOOKS`].
    looks: Vec<(PathBuf, Look)>,
}

impl<'k> Loading<'k> {
    /// Of files that were looked at before.
    pub(super) fn again(before: &'k HashMap<PathBuf, Look>) -> Loading<'k> {
        Loading { before: Some(before), ..Loading::default() }
    }

    /// Takes in what these files have, the sets of a chain in the order of the chain.
    pub(super) fn take_all(
        &mut self,
        candidates: Vec<Candidate>,
        catalogue: &mut Catalogue,
        cancel: &Cancel,
    ) -> Result<(), LoadError> {
        let carried = &mut self.carried;
        // A question only takes in what is new.
        let is_question = self.before.is_some();
        let order = |candidate: Candidate| {
            let index = open(&candidate.path).ok().and_then(|source| index_of(&source, &candidate));
            let about = index.as_ref().and_then(|index| index.about().ok().flatten());
            if let (Some(index), Some(about), false) = (&index, &about, is_question) {
                carried.look_at(about, index, &place_of(&candidate.path));
            }
            (about.as_ref().map_or(candidate.time_seconds, order_seconds), candidate)
        };
        let mut candidates: Vec<(i64, Candidate)> = candidates.into_iter().map(order).collect();
        candidates.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
        let looks = if self.before.is_none() { catalogue.looks()? } else { HashMap::new() };
        for (_, candidate) in candidates {
            let look = looks.get(&candidate.path).filter(|look| look.set.is_some());
            if look.is_some_and(|look| Some(look.stamp) == candidate.stamp) {
                self.known += 1;
                continue;
            }
            self.take(&candidate, catalogue, cancel)?;
            if self.looks.len() >= LOOKS {
                catalogue.note_looks(&std::mem::take(&mut self.looks))?;
            }
        }
        Ok(catalogue.note_looks(&std::mem::take(&mut self.looks))?)
    }

    fn take(
        &mut self,
        candidate: &Candidate,
        catalogue: &mut Catalogue,
        cancel: &Cancel,
    ) -> Result<(), LoadError> {
        let source = match open(&candidate.path) {
            Ok(source) => source,
            Err(why) => {
                self.leave_out(candidate, why);
                return Ok(());
            }
        };
        let Some(index) = index_of(&source, candidate) else {
            // A question must not take as long as reading archives.
            if self.before.is_none() && candidate.is_to_be_read() {
                return self.read_members(candidate, catalogue, cancel);
            }
            self.without_index(candidate);
            return Ok(());
        };
        match add(&index, candidate, catalogue, cancel) {
            Ok(added) => self.count(candidate, added),
            Err(RecordsEnd::Index(error)) => {
                self.leave_out(candidate, with_causes(&error));
                self.note(candidate, None);
            }
            Err(RecordsEnd::Load(error)) => return Err(error),
        }
        Ok(())
    }

    /// Takes in an archive without an index, by reading all of it.
    fn read_members(
        &mut self,
        candidate: &Candidate,
        catalogue: &mut Catalogue,
        cancel: &Cancel,
    ) -> Result<(), LoadError> {
        let members = match Members::read(&candidate.path, cancel) {
            Err(NoMembers::Cancelled) => return Err(LoadError::Cancelled),
            Ok(members) if members.members > 0 => members,
            Err(NoMembers::Unreadable(why)) if candidate.is_named => {
                self.leave_out(
                    candidate,
                    format!("it has no whole index, and cannot be read without: {why}"),
                );
                return Ok(());
            }
            _ => {
                self.without_index(candidate);
                return Ok(());
            }
        };
        match add_members(&members, candidate, catalogue, cancel) {
            Ok(added) => self.count(candidate, added),
            Err(RecordsEnd::Index(error)) => self.leave_out(candidate, with_causes(&error)),
            Err(RecordsEnd::Load(error)) => return Err(error),
        }
        self.read_through += 1;
        if let Some(warning) = members.warning {
            self.leave_out(candidate, format!("it came in as far as it can be read: {warning}"));
        }
        Ok(())
    }

    fn count(&mut self, candidate: &Candidate, (loaded, set): (Loaded, Option<i64>)) {
        match loaded {
            Loaded::Added { members, files, elsewhere } => {
                self.elsewhere += elsewhere;
                self.added += 1;
                self.members += members;
                self.files += files;
            }
            Loaded::Known => self.known += 1,
        }
        self.note(candidate, set);
    }

    /// A set whose archive has lost its index stays, since its archive is there.
    fn without_index(&mut self, candidate: &Candidate) {
        let before = self.before.and_then(|before| before.get(&candidate.path));
        let had_set = before.is_some_and(|look| look.set.is_some());
        if candidate.is_named {
            self.leave_out(candidate, "it has no whole index".to_owned());
        } else if had_set || (self.before.is_some() && candidate.is_set()) {
            self.left_out.push(candidate.without_index());
        } else {
            self.without_index += 1;
        }
        if !had_set {
            self.note(candidate, None);
        }
    }

    fn note(&mut self, candidate: &Candidate, set: Option<i64>) {
        if let Some(stamp) = candidate.stamp {
            self.looks.push((candidate.path.clone(), Look { stamp, set }));
        }
    }

    fn leave_out(&mut self, candidate: &Candidate, why: String) {
        self.left_out.push(LeftOutArchive { path: escape_path(&candidate.path), why });
    }
}

/// What the journal calls the place of a set.
fn place_of(archive: &Path) -> String {
    if is_index_copy(archive) {
        return TAPE_PLACE.to_owned();
    }
    // A name without a folder is in this one.
    let folder = archive.parent().filter(|folder| !folder.as_os_str().is_empty());
    crate::journal::place(folder.unwrap_or(Path::new(".")))
}

fn open(path: &Path) -> Result<Source, String> {
    Source::open(path.as_os_str()).map_err(|error| with_causes(&error))
}

/// The index in a file: behind an archive, or the copy of that of a set on tape.
fn index_of(source: &Source, candidate: &Candidate) -> Option<IndexFile> {
    IndexFile::find(source).or_else(|| {
        let is_alone = is_index_copy(&candidate.path);
        let length_bytes = source.length_bytes.filter(|_| is_alone)?;
        IndexFile::alone(Arc::clone(&source.file), length_bytes)
    })
}

/// Adds what was read of an archive without an index.
fn add_members(
    members: &Members,
    candidate: &Candidate,
    catalogue: &mut Catalogue,
    cancel: &Cancel,
) -> Result<(Loaded, Option<i64>), RecordsEnd> {
    let section = IndexSection::Files;
    let records = || {
        let records = members.records();
        records.map_err(|source| RecordsEnd::Index(IndexError::Read { section, source }))
    };
    let index_error = |record: Result<FileRecord, IndexError>| record.map_err(RecordsEnd::Index);
    let set = SetDescription {
        content: members.content,
        time_seconds: candidate.time_seconds,
        order_seconds: candidate.time_seconds,
        place: candidate.path.clone(),
        compression: candidate.compression(),
        archive_bytes: members.archive_bytes,
        sources: sources(records()?.map(|record| index_error(record).map(SetRecord::from)))?,
    };
    let loaded = catalogue.add(
        &set,
        records()?.map(|record| {
            if cancel.check().is_err() {
                return Err(RecordsEnd::Load(LoadError::Cancelled));
            }
            index_error(record)
        }),
    )?;
    Ok((loaded, catalogue.number_of(&set)?))
}

fn add(
    index: &IndexFile,
    candidate: &Candidate,
    catalogue: &mut Catalogue,
    cancel: &Cancel,
) -> Result<(Loaded, Option<i64>), RecordsEnd> {
    let records = || -> Result<_, RecordsEnd> {
        let records = catalogue::set_records(index).map_err(RecordsEnd::Index)?;
        Ok(records.map(|record| {
            if cancel.check().is_err() {
                return Err(RecordsEnd::Load(LoadError::Cancelled));
            }
            record.map_err(RecordsEnd::Index)
        }))
    };
    let about = index.about().map_err(RecordsEnd::Index)?;
    let times = about.as_ref().map(|about| (about.begun_seconds as i64, order_seconds(about)));
    let of_file = (candidate.time_seconds, candidate.time_seconds);
    let (time_seconds, order_seconds) = times.unwrap_or(of_file);
    let set = SetDescription {
        content: match index.trailer.named {
            // Two runs that stored the same are two sets.
            Some(named) => {
                let mut content = [0; 32];
                content[..16].copy_from_slice(&named.set);
                content
            }
            None => index.trailer.set_id,
        },
        time_seconds,
        order_seconds,
        place: candidate.path.clone(),
        compression: index.trailer.compression.to_string(),
        archive_bytes: index.trailer.archive_bytes,
        sources: match about {
            Some(about) => about.sources.into_iter().map(|source| source.archive_path).collect(),
            None => sources(records()?)?,
        },
    };
    let loaded = catalogue.add(&set, records()?)?;
    Ok((loaded, catalogue.number_of(&set)?))
}

/// A set of a chain is behind those before it, whatever the clock said: at least a second behind
/// each, for each step.
fn order_seconds(about: &About) -> i64 {
    let steps = about.chain.iter().rev().zip(0..);
    let times = steps.map(|(set, steps)| set.begun_seconds as i64 + steps);
    times.max().unwrap_or(about.begun_seconds as i64)
}

/// What was backed up.
fn sources<E>(records: impl Iterator<Item = Result<SetRecord, E>>) -> Result<Vec<Vec<u8>>, E> {
    let (mut seen, mut sources) = (Sources::default(), Vec::new());
    for record in records {
        let path = record?.record.path;
        if seen.begins_with(&path) && sources.len() < SOURCES_MAX {
            sources.push(path);
        }
    }
    Ok(sources)
}
