//! A run of a job: backup, verification and retention, in this order, with the user's commands
//! around them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::label::hex;
use base::escape::{escape, escape_path};
use base::format::size;
use catalogue::{FolderSet, SetsFolder};
use flow::cancel::Cancel;
use flow::monitor::{Level, Notice};
use jobs::{After, Event, Exceeded, Job, JobName, Journaled, Keep, RunResult, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hooks::{Moment, call};
use super::status::{Archives, Verifications, left};
use super::{ComparedSource, ForgottenArchive, VerifiedArchive, sample};
use crate::backup::{BackupDone, BackupRequest, Caller, TapeTargetSettings, backup_for};
use crate::change::{self, SharedChanger};
use crate::failure::Failure;
use crate::journal::{self, note};
use crate::outcome::Outcome;
use crate::retention::{Damaged, forget_by_rule, freed_media, kept_bytes};
use crate::run::{EngineChoice, ReadOrderChoice, RunObserver, TargetSettings};
use crate::sets::{self, FolderLock, LockWait, SetSettings};
use crate::tape_end::{self, Then};
use crate::tape_sets::TapeSets;
use crate::verify_sets::{ReadBack, verify_against_source, verify_one};

/// Slack of a full set's age: timers begin a little earlier or later each day.
const SLACK_SECONDS: u64 = 3600;

/// Sentences of a run that the journal keeps.
const NOTES_MAX: usize = 5;
/// Folders that are named where a quota is exceeded.
const FOLDERS_NAMED: usize = 3;

/// Which job, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobRequest {
    pub job: String,
    /// The file with the jobs; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// Whether the set is a full one whatever the job says.
    #[serde(default)]
    pub full: bool,
    /// Whether a source may be empty now, or lie on another file system than in the last set.
    #[serde(default)]
    pub source_may_change: bool,
    /// Whether the folder may have none of the sets that the last run left there.
    #[serde(default)]
    pub target_may_change: bool,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
}

/// The end of a run.
#[derive(Debug, Default)]
pub struct JobDone {
    pub job: String,
    pub to: PathBuf,
    /// What was written.
    pub backup: Option<BackupDone>,
    /// Why there is no backup.
    pub error: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Archives that were read back.
    pub verified: Vec<VerifiedArchive>,
    /// Archives that were removed.
    pub forgotten: Vec<ForgottenArchive>,
    /// What is to be looked at besides.
    pub warnings: Vec<String>,
    pub seconds: f64,
}

impl JobDone {
    /// The result in one word.
    pub fn result(&self) -> RunResult {
        match &self.backup {
            None => RunResult::Failed,
            Some(_) if self.verified.iter().any(|it| !it.sound) => RunResult::Failed,
            Some(done) if done.outcome() == Outcome::Done && self.warnings.is_empty() => {
                RunResult::Done
            }
            Some(_) => RunResult::Warned,
        }
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        match self.result() {
            RunResult::Done => Outcome::Done,
            RunResult::Warned => Outcome::Warned,
            RunResult::Failed => Outcome::Bad,
        }
    }

    fn journaled(&self) -> Journaled {
        let summary = self.backup.as_ref().map(|done| &done.summary);
        let set = self.backup.as_ref().and_then(|done| done.set.as_ref());
        Journaled {
            result: self.result(),
            set: set.map(|set| hex(&set.set)),
            archive: set.and_then(|set| set.chain.last()).map(|link| link.name.clone()),
            level: set.map(|set| set.level),
            files: summary.map_or(0, |it| it.run.files),
            bytes: summary.map_or(0, |it| it.run.target_bytes),
            seconds: self.seconds,
            warnings: summary.map_or(0, |it| it.warnings_total) + self.warnings.len() as u64,
            limit: summary.and_then(|it| it.limit_in_short.clone()),
            error: self.error.clone(),
            notes: self.notes(),
        }
    }

    /// What is to be looked at, the first few.
    fn notes(&self) -> Vec<String> {
        let verdict = self.backup.as_ref().filter(|done| done.outcome() != Outcome::Done);
        let verdict = verdict.map(|done| done.summary.verdict.text.clone());
        verdict.into_iter().chain(self.warnings.iter().cloned()).take(NOTES_MAX).collect()
    }
}

/// Runs a job. What fails in it is in the result.
///
/// # Errors
/// When the file with the jobs cannot be used, or another run of the job is going on: then nothing
/// has happened, and no command of the user was run.
pub fn run_job(
    request: &JobRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<JobDone, Failure> {
    let begun = Instant::now();
    let (config, path) = super::read_config(request.config.as_deref())?;
    let (name, job) = config.job(&request.job, &path).map_err(|error| super::failure(&error))?;
    let to = job.to.as_path();
    let mut done = JobDone { job: name.to_string(), to: to.to_owned(), ..JobDone::default() };
    let lock = match lock(name, job, request, (observer, cancel)) {
        Ok(lock) => lock,
        Err(failure) => {
            // So that the next look at the jobs tells of it. Where that fails, too, this tells.
            done.error = Some(failure.message().to_owned());
            let _ = note(name.as_str(), to, Event::Run(Box::new(done.journaled())));
            return Err(failure);
        }
    };
    let changer =
        change::chosen(job.change_command.as_ref().map(|it| it.as_str()), changer, cancel);
    let mut run = Run { name, job, request, lock, observer, cancel, has_failed_hook: false, done };
    run.back_up(&changer);
    if run.done.backup.is_some() {
        run.look_after(&changer);
        // Not by the backup itself: what it wrote may be read back.
        if job.eject
            && let (_, Err(why)) = tape_end::look(to, Then::Eject)
        {
            run.warn(why);
        }
    }
    run.done.seconds = begun.elapsed().as_secs_f64();
    let event = Event::Run(Box::new(run.done.journaled()));
    if let Err(failure) = note(name.as_str(), job.to.as_path(), event) {
        run.warn(failure.message().to_owned());
    }
    let document = crate::document(&run.done.answer()).to_string();
    run.call_always(Moment::After, Some(&document));
    // Last, and whatever has happened: it takes its time, and what fails is no failure of the job.
    if cancel.check().is_ok()
        && let Some(why) = crate::catalog::after_run(job.to.as_path())
    {
        run.warn(why);
    }
    Ok(run.done)
}

/// Locks the folder, if it is the one that it was; another job that has it is waited for.
fn lock(
    name: &JobName,
    job: &Job,
    request: &JobRequest,
    (observer, cancel): (&dyn RunObserver, &Cancel),
) -> Result<FolderLock, Failure> {
    let to = job.to.as_path();
    if journal::is_tape_drive(to) {
        return TapeSets::of_this_user()?.lock(name.as_str());
    }
    if !request.target_may_change {
        check_target(name, to)?;
    }
    let tell = |text| observer.notice(Notice { level: Level::Notable, object: Vec::new(), text });
    let longest = Duration::from_secs(job.wait_for_target.seconds());
    let wait = LockWait { longest, cancel, tell: &tell };
    FolderLock::wait(to, &wait)
}

/// Refuses a folder that has none of the sets that the journal knows: its disk is likely not there,
/// and what is below its place would get a full set.
fn check_target(name: &JobName, to: &Path) -> Result<(), Failure> {
    let known = if to.exists() { sets::read(to)? } else { SetsFolder::default() };
    let is_there = known.sets.iter().any(|set| set.about.job == name.as_str());
    if is_there || !known.unusable.is_empty() {
        return Ok(());
    }
    let hint = "mount it, or add --target-may-change once if it is right";
    let unknown = |failure: &Failure| {
        let message = format!(
            "{} has no set of {name}, and nobody knows whether it had one: {}",
            escape_path(to),
            failure.message()
        );
        Failure::of(message, Some(hint))
    };
    let journal = journal::journal().map_err(|failure| unknown(&failure))?;
    let entries = journal.read().map_err(|error| unknown(&Failure::new(&error, None)))?.0;
    let Some(left) = left(name, &journal::place(to), &entries) else { return Ok(()) };
    let message = format!(
        "{} has no set of {name}, and had {left}: its disk may not be mounted",
        escape_path(to)
    );
    Err(Failure::of(message, Some(hint)))
}

/// A run that goes on.
struct Run<'a> {
    name: &'a JobName,
    job: &'a Job,
    request: &'a JobRequest,
    lock: FolderLock,
    observer: &'a dyn RunObserver,
    cancel: &'a Cancel,
    has_failed_hook: bool,
    done: JobDone,
}

impl Run<'_> {
    fn to(&self) -> &Path {
        self.job.to.as_path()
    }

    fn warn(&mut self, text: String) {
        self.done.warnings.push(text);
    }

    fn fail(&mut self, failure: &Failure) {
        self.done.error = Some(failure.message().to_owned());
        self.done.hint = failure.hint().map(str::to_owned);
    }

    /// Runs a command that runs whatever has happened, also after the user has stopped the run:
    /// what was frozen must not stay so.
    fn call_always(&mut self, moment: Moment, input: Option<&str>) {
        let place = (self.name, self.job.to.as_path());
        if let Some(how) = call(moment, &self.job.hooks, place, input, &Cancel::new()) {
            self.has_failed_hook = true;
            self.warn(how);
        }
    }

    /// The backup, with the commands before and behind it.
    fn back_up(&mut self, changer: &SharedChanger) {
        if let Err(failure) = self.check_quota() {
            return self.fail(&failure);
        }
        let place = (self.name, self.job.to.as_path());
        if let Some(how) = call(Moment::Before, &self.job.hooks, place, None, self.cancel) {
            let hint = "the backup was not begun";
            self.fail(&Failure::of(how, Some(hint)));
        } else {
            let freed = self.freed_media();
            let result = self.backup_request().and_then(|request| {
                let caller = Caller { held: Some(&self.lock), freed };
                let changer = changer.clone();
                backup_for(&request, &caller, self.observer, self.cancel, changer)
            });
            match result {
                Ok(done) => self.done.backup = Some(done),
                Err(failure) => self.fail(&failure),
            }
        }
        self.call_always(Moment::AfterBackup, None);
    }

    /// Media that the run may write over: those of which the rule keeps nothing, as it is before
    /// the run.
    fn freed_media(&mut self) -> Vec<[u8; 16]> {
        let Some(keep) = self.job.keep.filter(|_| self.job.to.is_tape()) else { return Vec::new() };
        let freed = sets::read(self.to())
            .and_then(|known| freed_media(&known, self.name.as_str(), self.to(), &keep));
        freed.unwrap_or_else(|failure| {
            self.warn(format!("no medium is written over: {}", failure.message()));
            Vec::new()
        })
    }

    /// Refuses to write more where the job says so.
    fn check_quota(&self) -> Result<(), Failure> {
        let Some(quota) = self.job.quota.filter(|it| it.exceeded == Exceeded::Refuse) else {
            return Ok(());
        };
        let known = sets::read(self.to())?;
        let bytes = kept_bytes(&known, self.name.as_str());
        match quota.kept {
            Some(most) if bytes >= most.bytes() => {
                let message = format!(
                    "the sets of {} have {}, and its quota is {}",
                    self.name,
                    size(bytes),
                    size(most.bytes())
                );
                let hint = "remove old sets with `takeup catalog forget`, or raise `kept` in the \
                            job's quota";
                Err(Failure::of(message, Some(hint)))
            }
            _ => Ok(()),
        }
    }

    fn backup_request(&self) -> Result<BackupRequest, Failure> {
        let job = self.job;
        if job.to.is_tape()
            && let Some(drive) = device::tape::find(self.to())
        {
            // Where nothing is known of the job's sets, the tape is asked.
            TapeSets::of_this_user()?.know_last_of(
                Arc::new(drive),
                self.name.as_str(),
                self.cancel,
            )?;
        }
        let known = sets::read(self.to())?;
        let damaged = Verifications::of(self.to()).map(|it| it.damaged()).unwrap_or_default();
        self.tell_damage(&known, &damaged);
        let incremental = !self.request.full && !is_full_due(job, self.name, &known, &damaged);
        let changed_from = job.changed_from.as_ref().map(|path| path.as_path().to_owned());
        let set = SetSettings {
            incremental,
            changed_from: changed_from.filter(|_| incremental),
            audit_every: job.audit_every.filter(|_| incremental),
            job: Some(self.name.to_string()),
            source_may_change: self.request.source_may_change,
            ..SetSettings::default()
        };
        Ok(BackupRequest {
            sources: job.sources.iter().map(|source| source.as_path().to_owned()).collect(),
            to: self.to().to_owned(),
            compress: job.compress.as_ref().map(|method| method.as_str().to_owned()),
            compress_threads: None,
            read_threads: None,
            read_order: ReadOrderChoice::Auto,
            read_window_bytes: None,
            exclude: job.exclude.iter().map(|glob| glob.as_str().to_owned()).collect(),
            one_file_system: job.one_file_system,
            no_xattrs: false,
            target: TargetSettings::default(),
            force: false,
            set,
            tape: TapeTargetSettings {
                change_command: job.change_command.as_ref().map(|it| it.as_str().to_owned()),
                ..TapeTargetSettings::default()
            },
            engine: self.request.engine,
            record: None,
        })
    }

    /// Says why the set is a full one where nothing may count on the last.
    fn tell_damage(&self, known: &SetsFolder, damaged: &Damaged) {
        let last = known.sets.iter().rfind(|set| set.about.job == self.name.as_str());
        let mut chain = last.iter().flat_map(|set| &set.about.chain);
        if let Some(link) = chain.find(|link| damaged.contains(&link.set)) {
            let text = format!("a full set is written: {} was damaged when last read", link.name);
            let object = self.to().as_os_str().as_bytes().to_vec();
            self.observer.notice(Notice { level: Level::Notable, object, text });
        }
    }

    /// What comes after a backup: verification, retention, quotas.
    fn look_after(&mut self, changer: &SharedChanger) {
        let known = match sets::read(self.to()) {
            Ok(known) => known,
            Err(failure) => return self.warn(failure.message().to_owned()),
        };
        let written = self.done.backup.as_ref().and_then(|done| done.set.as_ref());
        let written = written.and_then(|about| known.of(about.set));
        if let Some(set) = written.filter(|_| self.job.verify.after.reads_new()) {
            self.verify(set, self.job.verify.after, changer);
        }
        if let Some(share) = self.job.verify.sampled() {
            self.verify_sample(share);
        }
        if let Some(keep) = self.job.keep.filter(|_| !self.job.to.is_tape()) {
            self.forget(&known, &keep);
        }
        if self.job.verify.within.is_some() {
            self.verify_due(changer);
        }
        self.measure(written);
    }

    /// Removes what the rule does not keep. What replaces others has to be good.
    fn forget(&mut self, known: &SetsFolder, keep: &Keep) {
        let backup = self.done.backup.as_ref();
        let set = backup.and_then(|done| done.set.as_ref()).map(|about| hex(&about.set));
        let is_read = |set: &String| self.done.verified.iter().any(|it| it.set == *set && it.sound);
        let why = if self.cancel.check().is_err() {
            Some("the run was stopped")
        } else if self.has_failed_hook {
            Some("a command of the job failed")
        } else if backup.is_none_or(|done| done.unread > 0) {
            Some("something could not be read, and earlier sets may have it")
        } else if self.job.verify.after.reads_new() && !set.as_ref().is_some_and(is_read) {
            Some("the new set was not read back as sound")
        } else if self.done.verified.iter().any(|it| !it.sound && !it.unread) {
            Some("an archive is damaged")
        } else if self.done.verified.iter().any(|it| it.unread) {
            Some("an archive could not be read back")
        } else {
            None
        };
        if let Some(why) = why {
            return self.warn(format!("no set was removed: {why}"));
        }
        match forget_by_rule(known, self.name.as_str(), self.to(), keep) {
            Ok(removed) => {
                self.done.forgotten = removed.archives;
                self.done.warnings.extend(removed.failure.map(|it| it.message().to_owned()));
            }
            Err(failure) => self.warn(failure.message().to_owned()),
        }
    }

    /// Says where a quota is exceeded.
    fn measure(&mut self, written: Option<&FolderSet>) {
        let Some(quota) = self.job.quota else { return };
        let bytes = written.map_or(0, |set| set.length_bytes);
        if let Some(most) = quota.set.filter(|most| bytes > most.bytes()) {
            let (bytes, most) = (size(bytes), size(most.bytes()));
            let folders = written.map(most_in).unwrap_or_default();
            self.warn(format!("the set has {bytes}, and the quota of a set is {most}{folders}"));
        }
        let Ok(known) = sets::read(self.to()) else { return };
        let bytes = kept_bytes(&known, self.name.as_str());
        if let Some(most) = quota.kept.filter(|most| bytes > most.bytes()) {
            let next = match quota.exceeded {
                Exceeded::Warn => "",
                Exceeded::Refuse => ": the next run will not begin",
            };
            let (bytes, most) = (size(bytes), size(most.bytes()));
            self.warn(format!("the kept sets have {bytes}, and their quota is {most}{next}"));
        }
    }

    fn verify(&mut self, set: &FolderSet, how: After, changer: &SharedChanger) {
        let verify = if how == After::Source { verify_against_source } else { verify_one };
        let place = self.job.to.as_path();
        let how = ReadBack { engine: self.request.engine, ..ReadBack::default() };
        let result = verify(set, place, &how, self.observer, self.cancel, changer.clone());
        self.enter_verified(&set.name(), result);
    }

    /// Reads the parts of the job's archives whose turn it is.
    fn verify_sample(&mut self, share: Share) {
        let (parts, failed) = match Archives::of(self.name.as_str(), self.to()) {
            Ok(archives) => sample::choose(&archives, share),
            Err(failure) => return self.warn(failure.message().to_owned()),
        };
        self.done.warnings.extend(failed);
        for part in parts {
            if self.cancel.check().is_err() {
                return;
            }
            let result = sample::read(&part, self.request.engine, self.observer, self.cancel);
            self.enter_verified(&part.archive(), result);
        }
    }

    fn enter_verified(
        &mut self,
        archive: &str,
        result: Result<(VerifiedArchive, Option<Failure>), Failure>,
    ) {
        match result {
            Ok((verified, failure)) => {
                if let Some(failure) = failure {
                    self.warn(failure.message().to_owned());
                }
                if !verified.sound {
                    self.warn(format!("{}: {}", verified.archive, verified.text));
                }
                let source = verified.source.as_ref();
                self.done.warnings.extend(source.and_then(ComparedSource::not_whole));
                self.done.verified.push(verified);
            }
            Err(failure) => {
                self.warn(format!("{archive} was not verified: {}", failure.message()));
            }
        }
    }

    /// Reads as much as keeps the promise of the job, the longest unread first.
    fn verify_due(&mut self, changer: &SharedChanger) {
        let due = match Archives::of(self.name.as_str(), self.to()) {
            Ok(archives) => archives.to_verify(&self.job.verify),
            Err(failure) => return self.warn(failure.message().to_owned()),
        };
        for set in due {
            if self.cancel.check().is_err() {
                return;
            }
            self.verify(&set, After::Checksums, changer);
        }
    }
}

/// The folders with most of what a set stored; empty where that is not known.
fn most_in(set: &FolderSet) -> String {
    let entries = sets::entries(set).ok();
    let found = entries.and_then(|it| runs::backup::most_stored(it, &set.about).ok());
    let folders = found.map(|(folders, _)| folders).unwrap_or_default();
    let named = |folder: &runs::backup::StoredFolder| {
        format!("{}/ ({})", escape(&folder.path), size(folder.bytes))
    };
    let named: Vec<String> = folders.iter().take(FOLDERS_NAMED).map(named).collect();
    if named.is_empty() { String::new() } else { format!("; most of it in {}", named.join(", ")) }
}

/// Whether the last full set is too old to be followed, or an archive of the chain was damaged when
/// it was last read.
fn is_full_due(job: &Job, name: &JobName, known: &SetsFolder, damaged: &Damaged) -> bool {
    let of_job = |set: &&FolderSet| set.about.job == name.as_str();
    let Some(last) = known.sets.iter().rfind(of_job) else { return true };
    if last.about.chain.iter().any(|link| damaged.contains(&link.set)) {
        // Nothing may count on it.
        return true;
    }
    let is_full = |set: &&FolderSet| set.about.level == 0 && set.about.job == name.as_str();
    let full = known.sets.iter().rfind(is_full).map(|full| full.about.begun_seconds);
    // On tape it need not be known, but for its time.
    let begun = full.or_else(|| last.about.chain.first().map(|full| full.begun_seconds));
    let Some(begun_seconds) = begun else { return true };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    let Some(age) = now.checked_sub(begun_seconds) else {
        // The clock was wrong, then or now. One full set too many costs little.
        return true;
    };
    age + SLACK_SECONDS.min(job.full_every.seconds() / 10) >= job.full_every.seconds()
}
