//! What Takeup remembers: settings that it has changed, jobs, and their last runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jobs::{Entry, Event, Journaled};
use rustix::fs::Access;

use super::{Names, RecordsAnswer, RunRecordAnswer, SettingsAnswer};
use crate::failure::{Failure, with_causes};
use crate::jobs::run_answer;
use crate::state;
use crate::tune::show::{TuneShown, show};

/// More runs are not in the answer.
const RUNS_MAX: usize = 20;
/// Stands for a message that may name files.
pub(super) const MESSAGE_LEFT_OUT: &str = "the message is left out (--with-names shows it)";

/// The settings that Takeup has changed.
pub(super) fn settings(names: Names) -> SettingsAnswer {
    match show() {
        Ok(shown) => changed(&shown, names),
        Err(failure) => {
            SettingsAnswer { unreadable: Some(message(&failure, names)), ..Default::default() }
        }
    }
}

fn message(failure: &Failure, names: Names) -> String {
    match names {
        Names::Shown => failure.message().to_owned(),
        Names::LeftOut => MESSAGE_LEFT_OUT.to_owned(),
    }
}

fn changed(shown: &TuneShown, names: Names) -> SettingsAnswer {
    let all = shown.changes.iter().flat_map(|change| &change.now);
    let set: Vec<_> = all.filter(|now| now.changed.set.is_some()).collect();
    let line = |now: &&storage::settings::changes::Now| {
        let kind = now.changed.kind.file_name();
        let device = device_name(&now.changed.device.name, names);
        let to = now.changed.set.as_deref().unwrap_or_default();
        let value = now.value.as_deref().unwrap_or("not readable");
        format!("{device} {kind}: {} before, set to {to}, now {value}", now.changed.before)
    };
    let pending = shown.pending.as_ref().filter(|pending| !pending.runs);
    SettingsAnswer {
        changed: set.iter().map(line).collect(),
        lost: set.iter().filter(|now| !now.holds()).count() as u64,
        left: pending.map(|pending| pending.what.clone()),
        unreadable: None,
    }
}

/// A btrfs is called by its UUID, and arrays as their administrator likes.
fn device_name(name: &str, names: Names) -> &str {
    match names {
        Names::Shown => name,
        Names::LeftOut if name.starts_with("btrfs ") => "btrfs",
        Names::LeftOut if name.starts_with("md_") => "an array",
        Names::LeftOut => name,
    }
}

/// Jobs, their last runs, and the state of Takeup.
pub(super) fn records(names: Names) -> RecordsAnswer {
    let mut answer = RecordsAnswer::default();
    let mut known: Option<BTreeSet<String>> = None;
    if state::jobs().is_some_and(|path| path.exists()) {
        match crate::jobs::read_config(None) {
            Ok((config, _)) => {
                answer.jobs = Some(config.jobs.len() as u64);
                known = Some(config.jobs.keys().map(ToString::to_string).collect());
            }
            Err(failure) => answer.jobs_unreadable = Some(message(&failure, names)),
        }
    }
    let catalogue = state::catalogue();
    answer.catalogue_bytes =
        catalogue.as_deref().and_then(|path| path.metadata().ok()).map(|found| found.len());
    answer.state_refused = match catalogue.as_deref().and_then(Path::parent) {
        Some(folder) => refused(folder).or_else(|| catalogue.as_deref().and_then(refused)),
        None => Some("there is no folder for it".to_owned()),
    };
    let journal = crate::journal::journal();
    let read = |journal: jobs::Journal| journal.read().map_err(|error| Failure::new(&error, None));
    match journal.and_then(read) {
        Ok((entries, unreadable)) => {
            let runs = runs(&entries, names);
            answer.failed = failed(&runs, known.as_ref());
            let runs = runs.into_iter().map(|(_, run)| run).collect::<Vec<_>>();
            answer.runs = runs[runs.len().saturating_sub(RUNS_MAX)..].to_vec();
            answer.unreadable_lines = unreadable;
        }
        Err(failure) => answer.journal_unreadable = Some(message(&failure, names)),
    }
    answer
}

/// Why nothing can be written into a folder, or into the nearest one above it that is there.
fn refused(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let error = rustix::fs::access(there, Access::WRITE_OK).err()?;
    Some(crate::failure::without_error_numbers(&with_causes(&std::io::Error::from(error))))
}

/// The last run of each job, where it failed. A job that the file no longer has is left out.
fn failed(
    runs: &[(&str, RunRecordAnswer)],
    known: Option<&BTreeSet<String>>,
) -> Vec<RunRecordAnswer> {
    let mut last: BTreeMap<&str, &RunRecordAnswer> = BTreeMap::new();
    for (name, run) in runs {
        last.insert(name, run);
    }
    let is_known = |name: &str| known.is_none_or(|known| known.contains(name));
    let failed =
        last.into_iter().filter(|(name, run)| is_known(name) && run.run.result == "failed");
    failed.map(|(_, run)| run.clone()).collect()
}

/// All runs with the names of their jobs. In the answer a job without its name has the number in
/// which it first appears.
fn runs(entries: &[Entry], names: Names) -> Vec<(&str, RunRecordAnswer)> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs = Vec::new();
    for entry in entries {
        let Event::Run(run) = &entry.event else { continue };
        let next = numbers.len() + 1;
        let number = *numbers.entry(&entry.job).or_insert(next);
        let job = match names {
            Names::Shown => entry.job.clone(),
            Names::LeftOut => format!("job {number}"),
        };
        runs.push((entry.job.as_str(), record(entry, run, job, names)));
    }
    runs
}

fn record(entry: &Entry, run: &Journaled, job: String, names: Names) -> RunRecordAnswer {
    let mut run = run_answer(entry, run);
    if names == Names::LeftOut {
        run.archive = None;
        run.limit = run.limit.as_deref().map(without_paths);
        run.error = run.error.map(|_| MESSAGE_LEFT_OUT.to_owned());
    }
    RunRecordAnswer { job, run }
}

/// Words of a sentence that are paths, but for those of devices, become `PATH`.
fn without_paths(text: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_start_matches(['"', '\'', '(']);
        let is_path = bare.contains('/') && bare.bytes().any(|byte| byte.is_ascii_alphabetic());
        let is_rate = bare.starts_with("MB/s") || bare.starts_with("GB/s");
        let is_device = bare.starts_with("/dev/nst") || bare.starts_with("/dev/st");
        if is_path && !is_rate && !is_device { "PATH".to_owned() } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jobs::RunResult;

    fn entry(job: &str, to: &str, second: i64) -> Entry {
        let run = Journaled {
            result: RunResult::Failed,
            set: Some("secret-set".into()),
            archive: Some("secret-archive".into()),
            level: Some(0),
            files: 3,
            bytes: 1000,
            seconds: 2.0,
            warnings: 1,
            limit: Some("reading /srv/secret at 40.0 MB/s".into()),
            error: Some("cannot read /srv/secret".into()),
            notes: vec!["/srv/secret/note".into()],
        };
        let at = Timestamp::from_second(second).unwrap();
        Entry { at, job: job.into(), to: to.into(), event: Event::Run(Box::new(run)) }
    }

    #[test]
    fn no_name_is_in_a_record_unless_asked_for() {
        let entries = [
            entry("secret-job", "/secret/a", 0),
            entry("other-secret", "/secret/a", 60),
            entry("secret-job", "/secret/a", 120),
        ];
        let shown = |names| runs(&entries, names).into_iter().map(|it| it.1).collect::<Vec<_>>();
        let found = shown(Names::LeftOut);
        let text = serde_json::to_string(&found).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let jobs: Vec<&str> = found.iter().map(|run| run.job.as_str()).collect();
        assert_eq!(jobs, ["job 1", "job 2", "job 1"]);
        assert_eq!(found[1].run.ended_seconds, 60);
        assert_eq!(found[0].run.limit.as_deref(), Some("reading PATH at 40.0 MB/s"));
        let shown = shown(Names::Shown);
        assert_eq!(shown[0].job, "secret-job");
        assert_eq!(shown[0].run.error.as_deref(), Some("cannot read /srv/secret"));
    }

    /// However many runs of other jobs came after it.
    #[test]
    fn the_last_run_of_each_job_counts() {
        let mut entries = vec![entry("weekly", "/a", 0), entry("gone", "/a", 1)];
        entries.extend((2..50).map(|at| entry("hourly", "/b", at)));
        let Event::Run(last) = &mut entries.last_mut().unwrap().event else { panic!("a run") };
        last.result = RunResult::Done;
        let known: BTreeSet<String> = ["weekly", "hourly"].map(str::to_owned).into();
        let runs = runs(&entries, Names::Shown);
        let of = |known| failed(&runs, known).into_iter().map(|run| run.job).collect::<Vec<_>>();
        assert_eq!(of(Some(&known)), ["weekly"]);
        assert_eq!(of(None), ["gone", "weekly"]);
    }

    #[test]
    fn devices_without_what_they_are_called_by() {
        assert_eq!(device_name("btrfs 3f1c-99", Names::LeftOut), "btrfs");
        assert_eq!(device_name("md_annas-photos", Names::LeftOut), "an array");
        assert_eq!(device_name("md_annas-photos", Names::Shown), "md_annas-photos");
        assert_eq!(device_name("sda", Names::LeftOut), "sda");
    }

    #[test]
    fn paths_in_a_sentence() {
        let check =
            |text: &str, expected: &str| assert_eq!(without_paths(text), expected, "{text}");
        check("the drive /dev/nst0 at 40.0 MB/s", "the drive /dev/nst0 at 40.0 MB/s");
        check("reading (/srv/x)", "reading PATH");
        check("srv/x is slow", "PATH is slow");
        check("/dev/mapper/vault-anna is slow", "PATH is slow");
        check("the processor (zstd)", "the processor (zstd)");
    }
}
