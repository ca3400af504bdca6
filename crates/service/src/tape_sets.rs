//! What this user knows of sets of chains on tape without a tape: a copy of each set's index, and
//! which medium holds what.
//!
//! The tapes have all of it. The copies spare the way there: a run needs the index of the set
//! before it, which may lie on another tape than that in the drive, and a restore asks for the
//! media that it needs alone. Copies that are lost are made again from the tapes.

pub(crate) mod account;

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use archive::index::About;
use archive::label::{HostName, hex};
use base::escape::escape_path;
use catalogue::{FolderSet, INDEX_COPY_END, SetsFolder};
use device::tape::drive::TapeDrive;
use device::target::{Existing, FileMode, Target};
use flow::cancel::Cancel;
use runs::backup::IndexCopy;
use runs::list::ListError;
use runs::origin::Origin;
use runs::read::ReadFailure;
use runs::restore::{Chain, ChainPart, LostParts};
use tapeset::{
    KnownIndex, NamedMedium, SetChoice, SetOnVolume, TapeIndex, TapeOrigin, TapeReadFailure,
    Wanted, copy_indexes,
};

pub(crate) use account::{Account, Log, MediumAccount};

use crate::change::NoChanger;
use crate::failure::Failure;
use crate::journal::{self, CarriedJournals, TAPE_PLACE};
use crate::scratch::Scratch;
use crate::sets::{self, FolderLock, Gaps, SetSelection, WantedChain};
use crate::state;
use crate::tape_memory::{self, Copies};
use crate::tape_source::{SetWanted, motion_of};

/// A folder that can be neither there nor made.
const NOWHERE: &str = "/dev/null/tape-sets";

/// A set on tape that is to be restored.
pub(crate) struct OnTape {
    pub(crate) about: About,
    index: TapeIndex,
    /// The sets that are known besides.
    known: SetsFolder,
    /// What the user has to know of the choice.
    pub(crate) doubts: Option<WantedChain>,
    /// Holds copies of indexes that were read from the tape in the drive.
    _scratch: Option<Scratch>,
}

/// Which sets on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those that this machine wrote.
    Ours,
    Anybodys,
}

/// The copies of indexes of a user.
#[derive(Clone, Debug)]
pub(crate) struct TapeSets {
    folder: PathBuf,
}

impl TapeSets {
    /// Those of this user, or of the machine for root.
    ///
    /// # Errors
    /// When there is no folder for them.
    pub(crate) fn of_this_user() -> Result<TapeSets, Failure> {
        let folder = state::tape_sets().ok_or_else(|| {
            let hint = "set XDG_STATE_HOME or HOME to a folder of yours";
            Failure::of("there is no folder for what is known of tapes", Some(hint))
        })?;
        Ok(TapeSets { folder })
    }

    /// The same, for those who can do without: where there is no folder, nothing is known.
    pub(crate) fn for_reading() -> TapeSets {
        // Nothing can ever be below it.
        TapeSets::of_this_user().unwrap_or_else(|_| TapeSets { folder: NOWHERE.into() })
    }

    /// The folder with the copies.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether anything was ever noted.
    pub(crate) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    /// Locks the sets of a job. The folder is made if it is missing.
    ///
    /// # Errors
    /// When it cannot be made, or another run of the job is going on.
    pub(crate) fn lock(&self, job: &str) -> Result<FolderLock, Failure> {
        self.make()?;
        FolderLock::take_for_job(&self.folder, job)
    }

    /// The same; `None` where the folder cannot be written to: then nothing is noted, either.
    ///
    /// # Errors
    /// When another run of the job is going on.
    pub(crate) fn lock_if_possible(&self, job: &str) -> Result<Option<FolderLock>, Failure> {
        let access = || rustix::fs::access(&self.folder, rustix::fs::Access::WRITE_OK);
        if self.make().is_err() || access().is_err() {
            return Ok(None);
        }
        self.lock(job).map(Some)
    }

    fn make(&self) -> Result<(), Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| sets::unusable("cannot make the folder", &self.folder, &error))
    }

    /// The sets whose media were not written over. Nothing is known where there is no folder.
    ///
    /// # Errors
    /// When the folder or the account cannot be read.
    pub(crate) fn read(&self) -> Result<SetsFolder, Failure> {
        if !self.exists() {
            return Ok(SetsFolder::default());
        }
        let account = self.account()?;
        let mut known = sets::read_folder(&self.folder)?;
        known.sets.retain(|set| !account.is_written_over(set.about.set));
        Ok(known)
    }

    /// The sets all of whose chain is left. What a set counts on and was written over never comes
    /// back, so nothing waits for it.
    ///
    /// # Errors
    /// As [`TapeSets::read`].
    pub(crate) fn restorable(&self) -> Result<SetsFolder, Failure> {
        let mut known = self.read()?;
        if self.exists() {
            let account = self.account()?;
            known.sets.retain(|set| !has_lost_a_part(set, &account));
        }
        Ok(known)
    }

    /// Removes the copies of indexes of sets that were written over. What is left is passed over.
    pub(crate) fn remove_written_over(&self) {
        let (Ok(account), Ok(known)) = (self.account(), sets::read_folder(&self.folder)) else {
            return;
        };
        for set in known.sets.iter().filter(|set| account.is_written_over(set.about.set)) {
            let _ = std::fs::remove_file(&set.path);
        }
    }

    /// What became of media.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn account(&self) -> Result<Account, Failure> {
        Account::read(&self.folder)
    }

    /// Media none of whose sets is kept; `goes` says so of a set that is known.
    ///
    /// # Errors
    /// When the account cannot be read.
    pub(crate) fn freed(&self, goes: impl Fn(&str) -> bool) -> Result<Vec<[u8; 16]>, Failure> {
        let account = self.account()?;
        let known = self.read()?;
        let lost = known.sets.iter().filter(|set| has_lost_a_part(set, &account));
        let lost: HashSet<String> = lost.map(|set| hex(&set.about.set)).collect();
        let goes = |set: &str| goes(set) || lost.contains(set);
        let digits = |medium: &&MediumAccount| u128::from_str_radix(&medium.medium, 16).ok();
        let freed = account.freed(goes);
        Ok(freed.iter().filter_map(digits).map(u128::to_be_bytes).collect())
    }

    /// Who writes down what becomes of media in a run of a job, or outside of jobs.
    pub(crate) fn log(&self, job: Option<&str>) -> Arc<Log> {
        Arc::new(Log::new(&self.folder, job))
    }

    /// Begins the copy of the index that a run writes.
    ///
    /// # Errors
    /// When no file can be made there.
    pub(crate) fn begin_copy(&self, name: &str) -> Result<Copy, Failure> {
        let path = self.path_of(name);
        let target = Target::open(path.as_os_str(), Existing::Replace, FileMode::Exactly(0o600));
        let target = target.map_err(|error| Failure::new(&error, None))?;
        let file = target.file.try_clone();
        let file = file.map_err(|error| sets::unusable("cannot write", &path, &error))?;
        Ok(Copy { copy: IndexCopy::into_file(File::from(file)), target, path })
    }

    /// Keeps a copy of an index that was read from tape. What a tape says is not trusted: a copy
    /// that is there already stays, and no name leads out of the folder.
    ///
    /// # Errors
    /// When it cannot be written, or read.
    fn adopt(&self, index: &TapeIndex, here: &SetOnVolume) -> Result<(), Failure> {
        let about = index.index.about().map_err(|error| Failure::new(&error, None))?;
        let Some(about) = about.filter(|about| hex(&about.set) == here.id) else { return Ok(()) };
        self.make()?;
        let name = about.chain.last().map(|link| &*link.name).unwrap_or_default();
        let path = self.path_of(&file_name(name, about.set));
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let failed = |error: std::io::Error| sets::unusable("cannot write", &path, &error);
        let target = Target::open(path.as_os_str(), Existing::Keep, FileMode::Exactly(0o600));
        let target = target.map_err(|error| Failure::new(&error, None))?;
        let mut to = File::from(target.file.try_clone().map_err(failed)?);
        let from = File::from(index.file.try_clone().map_err(failed)?);
        std::io::copy(&mut FromStart { file: from, at: 0 }, &mut to).map_err(failed)?;
        let log = self.log(Some(&about.job));
        for (volume, medium) in index.media().into_iter().chain([(here.volume, here.medium)]) {
            let name = here.medium_name.filter(|_| medium == here.medium);
            tapeset::MediaLog::takes(&*log, NamedMedium { medium, name }, about.set, volume);
        }
        log.outcome()?;
        target.complete().map(|_| ()).map_err(|error| Failure::new(&error, None))
    }

    /// Where no set of a job is known, reads from the tape in a drive the index of its last set, so
    /// that the next one can count from it.
    ///
    /// # Errors
    /// When the tape cannot be read, or the copy not be kept.
    pub(crate) fn know_last_of(
        &self,
        drive: Arc<dyn TapeDrive>,
        job: &str,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        if self.read()?.sets.iter().any(|set| set.about.job == job) {
            return Ok(());
        }
        let of_job = |set: &SetOnVolume| {
            let is_it = is_ours(set) && set.chain.is_some_and(|chain| chain.job.as_str() == job);
            if is_it { Wanted::YesAndNoMore } else { Wanted::No }
        };
        self.adopt_from(&origin(drive), cancel, of_job).map(|_| ())
    }

    /// Reads from the tape in a drive the indexes of sets of chains that are not among these.
    ///
    /// # Errors
    /// When the tape cannot be read, or a copy not be kept.
    pub(crate) fn adopt_unknown(
        &self,
        drive: Arc<dyn TapeDrive>,
        known: &SetsFolder,
        whose: Whose,
        cancel: &Cancel,
    ) -> Result<u64, Failure> {
        let is_known = |set: &SetOnVolume| known.sets.iter().any(|it| hex(&it.about.set) == set.id);
        let unknown = |set: &SetOnVolume| {
            let is_meant = set.chain.is_some() && (whose == Whose::Anybodys || is_ours(set));
            if is_meant && !is_known(set) { Wanted::Yes } else { Wanted::No }
        };
        self.adopt_from(&origin(drive), cancel, unknown)
    }

    fn adopt_from(
        &self,
        origin: &TapeOrigin,
        cancel: &Cancel,
        mut choose: impl FnMut(&SetOnVolume) -> Wanted,
    ) -> Result<u64, Failure> {
        let found = match copy_indexes(origin, cancel, &mut choose) {
            // What is no tape of ours, or not there, has no sets.
            Err(TapeReadFailure::Open(_) | TapeReadFailure::Label { .. }) => return Ok(0),
            found => {
                found.map_err(|error| Failure::from(ListError::from(ReadFailure::from(error))))?
            }
        };
        for (here, index) in &found {
            self.adopt(index, here)?;
        }
        let mut carried = CarriedJournals::default();
        for (_, index) in found.iter().filter(|(here, _)| is_ours(here)) {
            if let Ok(Some(about)) = index.index.about() {
                carried.look_at(&about, &index.index, TAPE_PLACE);
            }
        }
        carried.take_in()?;
        Ok(found.len() as u64)
    }

    /// The chain of a set, each part with what is known of where it is.
    ///
    /// # Errors
    /// When one was written over, unless the rest is wanted without it.
    pub(crate) fn chain(
        &self,
        wanted: &OnTape,
        tape: &TapeOrigin,
        lost: LostParts,
    ) -> Result<Chain, Failure> {
        let account = self.account().unwrap_or_default();
        let about = &wanted.about;
        let mut parts = Vec::new();
        for link in &about.chain {
            let name = link.name.clone();
            if account.is_written_over(link.set) {
                if lost == LostParts::End {
                    return Err(written_over(about, &name));
                }
                parts.push(ChainPart { name, from: None });
                continue;
            }
            let known = if link.set == about.set {
                Some(KnownIndex::Read(Box::new(wanted.index.clone())))
            } else {
                // What is not known is looked for on the tapes.
                wanted.known.of(link.set).map(|set| KnownIndex::Copy(set.path.clone()))
            };
            let set = SetChoice::Anywhere(link.set);
            let from = Origin::Tape(TapeOrigin { set, known, ..tape.clone() });
            parts.push(ChainPart { name, from: Some(from) });
        }
        Ok(Chain { index: wanted.index.index.clone(), parts, lost })
    }

    /// The set whose index was read from the tape in the drive.
    ///
    /// # Errors
    /// When the index does not say which set it is.
    pub(crate) fn read_from_tape(&self, index: TapeIndex) -> Result<OnTape, Failure> {
        let about = index.index.about().map_err(|error| Failure::new(&error, None))?;
        let about = about.ok_or_else(|| Failure::of("the set on tape is of no chain", None))?;
        let known = self.read().unwrap_or_default();
        Ok(OnTape { about, index, known, doubts: None, _scratch: None })
    }

    /// The set that a restore from tape means, where something else than the tape in the drive says
    /// which: a day, a job, or an identity that is known.
    ///
    /// # Errors
    /// When there is none, or the tape cannot be read.
    pub(crate) fn wanted(
        &self,
        drive: Arc<dyn TapeDrive>,
        set: Option<&SetWanted>,
        selection: &SetSelection,
        cancel: &Cancel,
    ) -> Result<Option<OnTape>, Failure> {
        let mut scratch = None;
        let by_selection = *selection != SetSelection::default();
        let is_named = matches!(set, Some(SetWanted::Id(_)));
        if !by_selection && !is_named {
            return Ok(None);
        }
        let mut known = self.read().unwrap_or_default();
        let find =
            |known: SetsFolder| sets::chain_in(known, &self.folder, set, selection, Gaps::Accept);
        if find(known.clone()).is_err() {
            if !by_selection {
                // The tape in the drive may have it.
                return Ok(None);
            }
            // Sets of other machines do not become sets of this one.
            let made = Scratch::make("sets")?;
            let here = TapeSets { folder: made.0.clone() };
            here.adopt_unknown(drive, &known, Whose::Anybodys, cancel)?;
            known = known.joined(here.read()?);
            scratch = Some(made);
        }
        let doubts = find(known.clone())?;
        let last = doubts.sets.last().cloned();
        let last = last.ok_or_else(|| Failure::of("there is no such set on tape", None))?;
        let index = copy_of(&last).ok_or_else(|| {
            let message = format!("the copy of the index of {} cannot be used", last.name());
            let hint = format!("remove {}: the tape has it", escape_path(&last.path));
            Failure::of(message, Some(&hint))
        })?;
        let (about, doubts) = (last.about, Some(doubts));
        Ok(Some(OnTape { about, index, known, doubts, _scratch: scratch }))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{INDEX_COPY_END}"))
    }
}

/// The name that a set gives itself, if it is one that sets are given, else its identity.
fn file_name(name: &str, set: [u8; 16]) -> String {
    let is_plain = catalogue::is_named_as_set(name) && !name.contains('/') && name.len() < 200;
    let is_shown = !name.starts_with('.');
    if is_plain && is_shown { name.to_owned() } else { hex(&set) }
}

fn has_lost_a_part(set: &FolderSet, account: &Account) -> bool {
    set.about.chain.iter().any(|link| account.is_written_over(link.set))
}

fn written_over(about: &About, needed: &str) -> Failure {
    let set = about.chain.last().map(|link| &*link.name).unwrap_or_default();
    let message = format!("the set {set} needs the set {needed}, whose medium was written over");
    let hint = "restore an earlier set, or add --partial for what is left of this one";
    Failure::of(message, Some(hint))
}

/// Whether this machine wrote a set.
fn is_ours(set: &SetOnVolume) -> bool {
    let host = journal::this_host();
    set.host.as_deref() == host.as_ref().map(HostName::as_str)
}

/// The index of a set that is known.
fn copy_of(set: &FolderSet) -> Option<TapeIndex> {
    TapeIndex::of_copy(File::open(&set.path).ok()?).ok()?
}

/// The tape in a drive; no other is asked for.
fn origin(drive: Arc<dyn TapeDrive>) -> TapeOrigin {
    let motion = motion_of(Path::new(drive.name()));
    TapeOrigin {
        drive,
        set: SetChoice::Last,
        file_number: None,
        without_volumes: Vec::new(),
        known: None,
        memory: tape_memory::of_this_user(Copies::OutsideOfChains),
        motion,
        changer: Arc::new(Mutex::new(NoChanger)),
    }
}

/// A copy of an index that a run makes.
pub(crate) struct Copy {
    pub(crate) copy: IndexCopy,
    target: Target,
    path: PathBuf,
}

impl Copy {
    /// Gives it its name, once the set is complete.
    ///
    /// # Errors
    /// When it is not whole on the disk.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        let Copy { copy, target, path } = self;
        copy.outcome().map_err(|error| sets::unusable("cannot write", &path, &error))?;
        target.complete().map(|_| ()).map_err(|error| Failure::new(&error, None))
    }

    /// What to say where it could not be kept.
    pub(crate) fn not_kept(failure: &Failure, drive: &Path) -> String {
        format!(
            "the set is complete, and the copy of its index was not kept ({}): the next run reads \
             it from {}",
            failure.message(),
            escape_path(drive)
        )
    }
}

/// Reads a file from its beginning, whoever else has read from it.
struct FromStart {
    file: File,
    at: u64,
}

impl std::io::Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = std::os::unix::fs::FileExt::read_at(&self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_tape_leads_out_of_the_folder() {
        let named = |name: &str| file_name(name, [7; 16]);
        let good = "homes-2026-11-27T191653Z-full-91782e7d";
        assert_eq!(named(good), good);
        let long = format!("{}-full-91782e7d", "x".repeat(300));
        for bad in ["../../etc/x-full-91782e7d", "/x-full-91782e7d", ".x-full-91782e7d", "", &long]
        {
            assert_eq!(named(bad), "07".repeat(16), "{bad}");
        }
        assert!(!TapeSets { folder: NOWHERE.into() }.exists());
    }
}
