//! The state of the jobs: what can be restored, what was verified, what is overdue.
//!
//! What can be restored is read from the folder; the journal adds what was read back, and how runs
//! ended that left nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use archive::label::hex;
use base::escape::escape_path;
use base::format::{counted, long_time, size};
use catalogue::{FolderSet, SetsFolder};
use jobs::{Entry, Event, Job, JobName, Journaled, PartState, Readings, RunResult, VerifyPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::journal::{journal, place};
use crate::outcome::Outcome;
use crate::retention::{Damaged, kept_bytes};
use crate::sets;

const DAY_SECONDS: u64 = 86_400;
/// What lies less ahead is the clock of another machine.
const FUTURE_SECONDS: u64 = 3600;
/// A job that ran seldom reads at most what these days would have needed.
const DAYS_AT_ONCE_MAX: u64 = 7;

/// Which jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusRequest {
    /// `None`: all of the file.
    #[serde(default)]
    pub job: Option<String>,
    /// The file with the jobs; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
}

/// The state of the jobs.
#[derive(Clone, Debug)]
pub struct StatusDone {
    pub jobs: Vec<JobStatus>,
    /// The file with the jobs, if one was named.
    pub config: Option<PathBuf>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
}

/// The state of a job.
#[derive(Clone, Debug, Default)]
pub struct JobStatus {
    pub job: String,
    pub to: PathBuf,
    /// When the last set that can be restored was begun, in seconds since 1970.
    pub last_success_seconds: Option<u64>,
    /// The same of the last one all of whose archives were read back and are sound.
    pub last_verified_success_seconds: Option<u64>,
    pub last_result: Option<RunResult>,
    pub last_error: Option<String>,
    pub is_overdue: bool,
    /// Sets that can be restored.
    pub sets: u64,
    pub bytes: u64,
    /// Archives that were not read within the time that the job promises.
    pub unread: u64,
    /// What is wrong, a sentence each.
    pub problems: Vec<String>,
}

impl StatusDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let is_fine = self.jobs.iter().all(|job| job.problems.is_empty());
        if is_fine && self.warnings.is_empty() { Outcome::Done } else { Outcome::Warned }
    }
}

/// The state of the jobs of a file.
///
/// # Errors
/// When the file with the jobs cannot be used, or the journal not be read.
pub fn status(request: &StatusRequest) -> Result<StatusDone, Failure> {
    let (config, path) = super::read_config(request.config.as_deref())?;
    let wanted: Vec<(&JobName, &Job)> = match &request.job {
        Some(name) => vec![config.job(name, &path).map_err(|error| super::failure(&error))?],
        None => config.jobs.iter().collect(),
    };
    let journal = journal()?;
    let (entries, unreadable) = journal.read().map_err(|error| Failure::new(&error, None))?;
    let jobs = wanted.into_iter().map(|(name, job)| job_status(name, job, &entries)).collect();
    let mut warnings = Vec::new();
    if unreadable > 0 {
        let lines = counted(unreadable, "line", "lines");
        let journal = journal.path().display();
        warnings.push(format!("{lines} of the journal {journal} cannot be read"));
    }
    Ok(StatusDone { jobs, config: request.config.clone(), warnings })
}

fn job_status(name: &JobName, job: &Job, entries: &[Entry]) -> JobStatus {
    let to = job.to.as_path();
    let mut status = JobStatus { job: name.to_string(), to: to.to_owned(), ..JobStatus::default() };
    let place = place(to);
    let last = last_run(name, &place, entries);
    status.last_result = last.map(|run| run.result);
    status.last_error = last.and_then(|run| run.error.clone());
    let archives = match Archives::from_entries(name.as_str(), to, entries) {
        Ok(archives) => archives,
        Err(_) if !to.exists() => {
            status.is_overdue = true;
            let what = match left(name, &place, entries) {
                None => "and no run was so far".to_owned(),
                Some(archive) => {
                    format!("and {archive} was left there: its disk may not be mounted")
                }
            };
            status.problems.push(format!("{} is not there, {what}", escape_path(to)));
            return status;
        }
        Err(failure) => {
            status.problems.push(failure.message().to_owned());
            return status;
        }
    };
    archives.fill(&mut status, job);
    if let Some(run) = last {
        status.problems.splice(0..0, told(run));
    }
    status.problems.extend(failed_trial(name, &place, entries));
    status
}

/// What the last run left to look at.
fn told(run: &Journaled) -> Vec<String> {
    match run.result {
        RunResult::Done => Vec::new(),
        RunResult::Warned => run.notes.iter().map(|note| format!("the last run: {note}")).collect(),
        RunResult::Failed => {
            let why = run.error.clone().unwrap_or_else(|| "an archive is not sound".to_owned());
            vec![format!("the last run failed: {why}")]
        }
    }
}

fn failed_trial(name: &JobName, place: &str, entries: &[Entry]) -> Option<String> {
    let last = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Tried { sound, text, .. } if entry.job == name.as_str() && entry.to == place => {
            Some((*sound, text))
        }
        _ => None,
    });
    let (_, text) = last.filter(|(sound, _)| !sound)?;
    Some(format!("the last trial restore failed: {text}"))
}

/// The last archive that a run left in the folder.
pub(super) fn left(name: &JobName, place: &str, entries: &[Entry]) -> Option<String> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Run(run) if entry.job == name.as_str() && entry.to == place => run.archive.clone(),
        _ => None,
    })
}

/// Seconds from a time to now. Of a time of the future nothing is known, but for the clocks of two
/// machines.
fn age(now: u64, then: u64) -> u64 {
    match now.checked_sub(then) {
        Some(age) => age,
        None if then - now < FUTURE_SECONDS => 0,
        None => u64::MAX,
    }
}

fn last_run<'a>(name: &JobName, place: &str, entries: &'a [Entry]) -> Option<&'a Journaled> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Run(run) if entry.job == name.as_str() && entry.to == place => Some(&**run),
        _ => None,
    })
}

/// What is known of the archives of a folder that were read back there. A copy elsewhere says
/// nothing of these.
#[derive(Default)]
pub(crate) struct Verifications {
    /// Of each set: which parts, when, and whether they were sound.
    last: HashMap<String, Readings>,
}

impl Verifications {
    /// Those of a folder.
    pub(crate) fn of(folder: &Path) -> Result<Verifications, Failure> {
        let (entries, _) = journal()?.read().map_err(|error| Failure::new(&error, None))?;
        Ok(Verifications::at(&place(folder), &entries))
    }

    fn at(place: &str, entries: &[Entry]) -> Verifications {
        let mut last: HashMap<String, Readings> = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.to == place) {
            let seconds = u64::try_from(entry.at.as_second()).unwrap_or(0);
            let (good, bad) = (PartState::Sound { seconds }, PartState::Damaged { seconds });
            let state = |sound: bool| if sound { good } else { bad };
            match &entry.event {
                Event::Verified { set, sound, .. } => {
                    last.entry(set.clone()).or_default().read_all(state(*sound));
                }
                Event::Sampled { set, sound, from_bytes, to_bytes, archive_bytes, .. } => {
                    let readings = last.entry(set.clone()).or_default();
                    readings.read_part(&(*from_bytes..*to_bytes), *archive_bytes, state(*sound));
                }
                _ => {}
            }
        }
        Verifications { last }
    }

    /// Since when all of the archive of a set was read back, and whether it was sound; `None` where
    /// a part of it was not read so far, and none was damaged.
    pub(crate) fn of_set(&self, set: [u8; 16]) -> Option<(u64, bool)> {
        self.last.get(&hex(&set)).and_then(Readings::whole)
    }

    /// Which parts of the archive of a set were read back.
    pub(crate) fn readings(&self, set: [u8; 16]) -> Readings {
        self.last.get(&hex(&set)).cloned().unwrap_or_default()
    }

    /// Sets whose archives were not sound when they were last read.
    pub(crate) fn damaged(&self) -> Damaged {
        let is_bad = |readings: &Readings| readings.whole().is_some_and(|(_, sound)| !sound);
        let bad = self.last.iter().filter(|(_, readings)| is_bad(readings));
        bad.filter_map(|(set, _)| unhex(set)).collect()
    }
}

/// The identity of a set from its digits.
fn unhex(digits: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

/// The archives of a job, and what is known of them.
pub(crate) struct Archives {
    known: SetsFolder,
    job: String,
    verified: Verifications,
    /// When the run before this one ended.
    last_run_seconds: Option<u64>,
    now: u64,
}

impl Archives {
    /// Those of a folder.
    pub(crate) fn of(job: &str, to: &Path) -> Result<Archives, Failure> {
        let (entries, _) = journal()?.read().map_err(|error| Failure::new(&error, None))?;
        Archives::from_entries(job, to, &entries)
    }

    fn from_entries(job: &str, to: &Path, entries: &[Entry]) -> Result<Archives, Failure> {
        let known = sets::read(to)?;
        let place = place(to);
        let is_run = |entry: &&Entry| {
            matches!(entry.event, Event::Run(_)) && entry.job == job && entry.to == place
        };
        let last_run = entries.iter().rev().find(is_run);
        let last_run_seconds = last_run.and_then(|it| u64::try_from(it.at.as_second()).ok());
        let verified = Verifications::at(&place, entries);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        Ok(Archives { known, job: job.to_owned(), verified, last_run_seconds, now })
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &FolderSet> {
        self.known.sets.iter().filter(|set| set.about.job == self.job)
    }

    /// When the archive was last read back, or else written.
    fn last_read(&self, set: &FolderSet) -> u64 {
        let read = self.verified.of_set(set.about.set);
        read.map_or(set.about.begun_seconds, |(seconds, _)| seconds)
    }

    /// Whether all that a set needs was read back and is sound.
    fn is_verified(&self, set: &FolderSet) -> bool {
        let is_sound = |set| self.verified.of_set(set).is_some_and(|(_, sound)| sound);
        set.about.chain.iter().all(|link| is_sound(link.set))
    }

    /// Which parts of the archive of a set were read back.
    pub(super) fn readings(&self, set: &FolderSet) -> Readings {
        self.verified.readings(set.about.set)
    }

    /// What is to be read back now, the longest unread first: what is late, and a share of the rest
    /// that lets nothing become late.
    pub(crate) fn to_verify(&self, policy: &VerifyPolicy) -> Vec<FolderSet> {
        let Some(within) = policy.within else { return Vec::new() };
        let mut sets: Vec<&FolderSet> = self.sets().collect();
        sets.sort_by_key(|set| self.last_read(set));
        let since = self.last_run_seconds.map_or(DAY_SECONDS, |last| self.now.saturating_sub(last));
        let since = since.clamp(1, DAYS_AT_ONCE_MAX * DAY_SECONDS);
        let total: u64 = sets.iter().map(|set| set.length_bytes).sum();
        let share = (total as f64 * since as f64 / within.seconds() as f64).ceil() as u64;
        let mut read = 0;
        let mut due = Vec::new();
        for set in sets {
            let age = age(self.now, self.last_read(set));
            let is_late = age.saturating_add(since) > within.seconds();
            // An archive that was read a moment ago is the first of the next round.
            let is_next = read < share && age > since / 2;
            if is_late || is_next {
                read += set.length_bytes;
                due.push(set.clone());
            }
        }
        due
    }

    fn fill(&self, status: &mut JobStatus, job: &Job) {
        let whole: Vec<&FolderSet> =
            self.sets().filter(|set| self.known.chain_of(set).is_ok()).collect();
        let begun = |set: &&FolderSet| set.about.begun_seconds;
        status.sets = whole.len() as u64;
        status.bytes = kept_bytes(&self.known, &self.job);
        // Not one that is known to be damaged.
        let damaged = self.verified.damaged();
        let is_good =
            |set: &&&FolderSet| !set.about.chain.iter().any(|link| damaged.contains(&link.set));
        status.last_success_seconds = whole.iter().rfind(is_good).map(begun);
        let verified = whole.iter().rfind(|set| self.is_verified(set));
        status.last_verified_success_seconds = verified.map(begun);
        let age = status.last_success_seconds.map(|last| age(self.now, last));
        status.is_overdue = age.is_none_or(|age| age > job.overdue_after.seconds());
        match age {
            None => status.problems.push("there is no set that can be restored".to_owned()),
            Some(u64::MAX) => {
                status.problems.push("the last set is of the future by this clock".to_owned());
            }
            Some(age) if status.is_overdue => {
                let age = long_time(age as f64);
                status.problems.push(format!("overdue: the last success is {age} old"));
            }
            Some(_) => {}
        }
        self.problems(status, job);
    }

    fn problems(&self, status: &mut JobStatus, job: &Job) {
        for set in self.sets() {
            if let Some((_, false)) = self.verified.of_set(set.about.set) {
                status.problems.push(format!("{} was found to be damaged", set.name()));
            }
            if let Err(error) = self.known.chain_of(set) {
                status.problems.push(error.to_string());
            }
        }
        for (path, why) in &self.known.unusable {
            let path = base::escape::escape_path(path);
            status.problems.push(format!("{path} cannot be read as a set: {why}"));
        }
        if let Some(within) = job.verify.within {
            let is_late = |set: &&FolderSet| age(self.now, self.last_read(set)) > within.seconds();
            status.unread = self.sets().filter(is_late).count() as u64;
            if status.unread > 0 {
                let archives = counted(status.unread, "archive was", "archives were");
                let within = long_time(within.seconds() as f64);
                status.problems.push(format!("{archives} not read back within {within}"));
            }
        }
        let kept = job.quota.and_then(|quota| quota.kept);
        if let Some(most) = kept.filter(|most| status.bytes > most.bytes()) {
            let (bytes, most) = (size(status.bytes), size(most.bytes()));
            status.problems.push(format!("the kept sets have {bytes}, and their quota is {most}"));
        }
    }
}
