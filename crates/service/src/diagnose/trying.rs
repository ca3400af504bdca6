//! Makes the first change for a moment, and measures what it brings, in turn with what is in force:
//! a setting is set and put back, and a line runs with its output thrown away.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use diagnosis::chain::{Chain, Target};
use diagnosis::change::Change;
use diagnosis::line::to_nowhere;
use diagnosis::rank::{Ranking, Step, rates};
use diagnosis::source::{Dropped, Found, drop_source, plain_rate};
use diagnosis::station::{Station, stations};
use experiment::judgement::quoted;
use flow::cancel::Cancel;
use rustix::fs::FileType;
use serde_json::json;
use storage::layers::Storage;
use storage::settings::{Guard, Setting, read_ahead_value};

use super::answer::TriedStep;
use super::running;
use crate::explain::{ExplainRequest, ExplainTarget, PipelineRunAnswer, Quiet, explain};
use crate::failure::Failure;
use crate::state;

/// Trials of each setting, in turn.
const ROUNDS: usize = 3;
/// Runs of each line, in turn.
const LINE_ROUNDS: usize = 2;
/// How long a line runs, unless less time is given.
const LINE: Duration = Duration::from_secs(4);
/// A shorter run shows how programs start.
const RUN_SECONDS_MIN: f64 = 0.5;
/// Small files have to be faster than the line by this much, before and after the change: their
/// names stay in memory, and no second run reads them from the disk.
const SMALL_FILES_FASTER: f64 = 2.0;

/// Variables that give options to programs of a line.
const OPTIONS: [&str; 9] = [
    "TAR_OPTIONS",
    "GZIP",
    "PIGZ",
    "BZIP",
    "BZIP2",
    "LBZIP2",
    "XZ_OPT",
    "XZ_DEFAULTS",
    // Then options behind a file are files.
    "POSIXLY_CORRECT",
];

/// What a change is tried with.
pub(super) struct Trial<'a> {
    pub(super) sources: &'a [PathBuf],
    /// The line, where it may run beside what runs now.
    pub(super) line: Option<&'a str>,
    /// The chain as it is.
    pub(super) chain: &'a Chain,
    /// Most time of all runs.
    pub(super) budget: Duration,
}

/// Why a trial did not begin.
fn refused(failure: &Failure) -> TriedStep {
    match failure.hint() {
        Some(hint) => TriedStep::not(&format!("{}: {hint}", failure.message())),
        None => TriedStep::not(failure.message()),
    }
}

impl Trial<'_> {
    /// Tries the first change.
    pub(super) fn first(
        &self,
        ranking: &Ranking,
        found: &Found,
        cancel: &Cancel,
    ) -> Result<TriedStep, Failure> {
        let Some(step) = ranking.steps.first() else {
            return Ok(TriedStep::not("nothing was found to change"));
        };
        match step.changed.change {
            Change::ReadAhead { bytes } => self.read_ahead(step, bytes, found, cancel),
            Change::AllCores { .. } | Change::WithoutRate { .. } | Change::FastestLevel { .. } => {
                self.lines(step, cancel)
            }
            Change::TakeupBackup | Change::OwnCompression { .. } => {
                let changed = step.changed.line.as_deref().and_then(|it| self.to_pipe(it));
                self.in_turn(step, changed, cancel)
            }
            Change::Blocks { .. } | Change::Buffer => Ok(TriedStep::not(
                "it is about how the target is written, and nothing is written to it here; \
                 `takeup explain --try` runs the line both ways, and writes it",
            )),
        }
    }

    /// `takeup backup` of a proposed line, by this program, into a pipe in the place of its target.
    fn to_pipe(&self, line: &str) -> Option<String> {
        let own = std::env::current_exe().ok()?;
        self.to_pipe_by(own.to_str()?, line)
    }

    fn to_pipe_by(&self, program: &str, line: &str) -> Option<String> {
        let sources = self.sources.iter().map(|path| quoted(&path.to_string_lossy()));
        let sources: Vec<String> = sources.collect();
        let sources = sources.join(" ");
        // The option is the last word of such a line; a path behind it would be another's text.
        let is_name =
            |it: &&str| it.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == ':');
        let compressed = line.rsplit_once(" --compress=").map(|it| it.1).filter(is_name);
        let option = compressed.map_or(String::new(), |it| format!(" --compress={it}"));
        Some(format!("{} backup {sources} --to -{option} | cat > /dev/null", quoted(program)))
    }

    /// Runs the line and the changed one, in turn, with their output thrown away.
    fn lines(&self, step: &Step, cancel: &Cancel) -> Result<TriedStep, Failure> {
        let changed = step.changed.line.as_deref().and_then(to_nowhere);
        self.in_turn(step, changed, cancel)
    }

    fn in_turn(
        &self,
        step: &Step,
        changed: Option<String>,
        cancel: &Cancel,
    ) -> Result<TriedStep, Failure> {
        let (Some(line), Some(_)) = (self.line, &step.changed.line) else {
            return Ok(TriedStep::not("the job runs; give its line to try a change of it"));
        };
        let [Some(line), Some(changed)] = [to_nowhere(line), changed] else {
            return Ok(TriedStep::not(
                "it is not certain that the line writes nothing but its target; \
                 `takeup explain --try` runs it both ways, and writes it",
            ));
        };
        let chain = Chain { target: Target::Nowhere, ..step.changed.chain.clone() };
        let predicted = rates(&chain).map_err(|error| Failure::new(&error, None))?.bytes;
        let before = rates(&Chain { target: Target::Nowhere, ..self.chain.clone() });
        let before = before.map_err(|error| Failure::new(&error, None))?.bytes;
        let is_of_names =
            |chain: &Chain, rate: f64| small_files_rate(chain) < SMALL_FILES_FASTER * rate;
        if is_of_names(&chain, predicted.typical) || is_of_names(self.chain, before.typical) {
            return Ok(TriedStep::not(
                "its small files lie in memory behind the first run; compare two nights",
            ));
        }
        if let Some(why) = self.cannot_run() {
            return Ok(TriedStep::not(&why));
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for _ in 0..LINE_ROUNDS {
            let turns = [(&line, self.chain, &mut before), (&changed, &chain, &mut after)];
            for (line, chain, rates) in turns {
                match self.run(line, chain, cancel) {
                    Ok(rate) => rates.push(rate),
                    Err(why) => return Ok(TriedStep::not(&why)),
                }
            }
        }
        let of = |rates: &[f64]| diagnosis::amount::Amount::of_trials(rates);
        let (Some(before), Some(after)) = (of(&before), of(&after)) else {
            return Ok(TriedStep::not("nothing was measured"));
        };
        let tried = TriedStep {
            lines: Some([line, changed]),
            ..TriedStep::measured(&predicted, &before, &after)
        };
        remember(step, &tried);
        Ok(tried)
    }

    /// The rate of a line that runs for some seconds, in bytes that its first program reads, or why
    /// it is not known.
    fn run(&self, line: &str, chain: &Chain, cancel: &Cancel) -> Result<f64, String> {
        if drop_source(self.sources, cancel) == Dropped::Part {
            return Err("there are more files than can be dropped from memory".to_owned());
        }
        let limit = Some(self.limit());
        let request = ExplainRequest {
            // Other shells write `> FILE | PROGRAM` to both.
            shell: Some("/bin/sh".to_owned()),
            ..running::request(ExplainTarget::Pipeline(line.to_owned()), limit)
        };
        match explain(&request, cancel, &mut Quiet) {
            Ok(explained) => rate_of(&explained.answer().run, chain, line),
            Err(failure) => Err(format!("{line:?} could not be run: {}", failure.message())),
        }
    }

    fn limit(&self) -> Duration {
        LINE.min(self.budget / (2 * LINE_ROUNDS) as u32)
    }

    /// Why no line can be run for a moment.
    fn cannot_run(&self) -> Option<String> {
        if self.limit().as_secs_f64() < 2.0 * RUN_SECONDS_MIN {
            return Some("--budget leaves less than a second for each run".to_owned());
        }
        if let Some(name) = OPTIONS.iter().find(|it| std::env::var_os(it).is_some()) {
            return Some(format!("{name} changes what the line means"));
        }
        for path in self.sources {
            let kind = rustix::fs::stat(path).map(|it| FileType::from_raw_mode(it.st_mode));
            // Reading moves a tape, and takes what is in a pipe.
            let rests = [FileType::RegularFile, FileType::Directory, FileType::BlockDevice];
            if !kind.is_ok_and(|kind| rests.contains(&kind)) {
                return Some(format!("{} is changed by reading it", path.display()));
            }
            if crate::tune::read_ahead::has_own_reader(path) {
                return Some(format!(
                    "the file system of {} has a memory of its own",
                    path.display()
                ));
            }
        }
        None
    }

    fn read_ahead(
        &self,
        step: &Step,
        bytes: u64,
        found: &Found,
        cancel: &Cancel,
    ) -> Result<TriedStep, Failure> {
        let Some(path) = self.sources.first() else {
            return Ok(TriedStep::not("there is no source"));
        };
        let storage = Storage::of(path).map_err(|error| Failure::new(&error, None))?;
        let Some(file) = storage.read_ahead.as_deref() else {
            return Ok(TriedStep::not("this file system has no read-ahead of its own"));
        };
        let failed = |error: storage::StorageError| {
            let hint = state::guard_hint(&error);
            Failure::new(&error, hint)
        };
        let setting = Setting::read_ahead(file);
        let present = setting.value().map_err(failed)?;
        let journal = state::journal();
        let guard = Guard::new(journal.as_deref(), std::slice::from_ref(&setting));
        let mut guard = match guard.map_err(failed) {
            Ok(guard) => guard,
            // Nothing was set, and what was found stays.
            Err(failure) => return Ok(refused(&failure)),
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut is_refused = false;
        for round in 0..ROUNDS {
            for (value, rates) in
                [(present.clone(), &mut before), (read_ahead_value(bytes), &mut after)]
            {
                if cancel.check().is_err() {
                    break;
                }
                if guard.set(&setting, &value).is_err() {
                    is_refused = true;
                    break;
                }
                rates.extend(plain_rate(found, round, bytes, cancel));
            }
        }
        guard.put_back().map_err(failed)?;
        if is_refused {
            return Ok(TriedStep::not("it cannot be set: run as root"));
        }
        let of = |rates: &[f64]| diagnosis::amount::Amount::of_trials(rates);
        let (Some(before), Some(after)) = (of(&before), of(&after)) else {
            return Ok(TriedStep::not("the files are too small to measure it"));
        };
        let predicted = step.changed.chain.source.stream.as_ref().map_or(after, |it| it.now);
        let tried = TriedStep::measured(&predicted, &before, &after);
        remember(step, &tried);
        Ok(tried)
    }
}

/// What small files give by themselves; any rate where there are none.
fn small_files_rate(chain: &Chain) -> f64 {
    let all = stations(chain);
    let small = all.iter().find(|it| it.station == Station::SmallFiles);
    small.and_then(|it| it.now).map_or(f64::INFINITY, |it| it.typical)
}

fn rate_of(run: &PipelineRunAnswer, chain: &Chain, line: &str) -> Result<f64, String> {
    if let Some(how) = &run.failed {
        return Err(format!("{line:?} failed: {how}"));
    }
    if run.is_stopped {
        return Err("it was stopped".to_owned());
    }
    if run.seconds < RUN_SECONDS_MIN {
        return Err("the source is read so fast that only the start would be measured".to_owned());
    }
    let rate = running::read_bytes(run, chain).map(|bytes| bytes / run.seconds);
    let rate = rate.filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| "what the line read is not known".to_owned())
}

/// Appends what was predicted and what was measured to a file of this user. That it cannot be
/// written does not matter to the answer.
fn remember(step: &Step, tried: &TriedStep) {
    let Some(path) = state::tried_changes() else { return };
    let Some(folder) = path.parent() else { return };
    if std::fs::create_dir_all(folder).is_err() {
        return;
    }
    let line = json!({
        "unix_seconds": experiment::run::unix_seconds(),
        "command": step.changed.command,
        "tried": tried,
    });
    let options = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    if let Ok(mut file) = options {
        let _ = writeln!(file, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use diagnosis::chain::{Reading, Source};

    use super::*;

    #[test]
    fn a_backup_is_tried_into_a_pipe_with_its_sources_and_its_compression() {
        let source = Source {
            shown: String::new(),
            large_bytes: 1,
            small_bytes: 0,
            small_files: 0,
            stream: None,
            small: None,
            reading: Reading::OneByOne,
            is_whole: true,
        };
        let chain = Chain { source, links: Vec::new(), target: Target::Nowhere, processors: 1.0 };
        let of = |path: &str, line: &str| {
            let sources = [PathBuf::from(path)];
            let budget = Duration::from_secs(1);
            let trial = Trial { sources: &sources, line: None, chain: &chain, budget };
            trial.to_pipe_by("/opt/take up", line).unwrap()
        };
        assert_eq!(
            of("/srv/a b", "takeup backup '/srv/a b' --to /dev/nst0 --compress=gzip:6"),
            "'/opt/take up' backup '/srv/a b' --to - --compress=gzip:6 | cat > /dev/null"
        );
        // A part of a name is no option.
        assert_eq!(
            of("/srv/a --compress=x", "takeup backup '/srv/a --compress=x' --to /dev/nst0"),
            "'/opt/take up' backup '/srv/a --compress=x' --to - | cat > /dev/null"
        );
    }
}
