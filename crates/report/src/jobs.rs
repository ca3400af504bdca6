//! What became of jobs, and the sets of a folder, for people.

use std::fmt::Write as _;
use std::path::Path;

use base::calendar::{date_text, time_text};
use base::escape::{escape, escape_path};
use base::format::{count, counted, duration, long_time, size};
use jobs::RunResult;
use service::folder_sets::{FolderSetsDone, ListedSet};
use service::jobs::{
    CheckedConfig, ComparedSource, JobDone, JobRunAnswer, JobStatus, JobsHistoryAnswer, StatusDone,
    TrialDone, UnitsDone, VerifiedArchive,
};
use service::retention::{ForgetDone, Lost, SetFate};
use service::verify_sets::VerifySetsDone;

use crate::table::Style;

/// Paths that are named where an archive differs from its source.
const PATHS_NAMED: usize = 3;

/// The end of a run of a job.
pub fn ran(done: &JobDone, style: Style) -> String {
    let mut text = String::new();
    match &done.backup {
        Some(backup) => text.push_str(&crate::backup::end(backup).short(style)),
        None => {
            let why = done.error.as_deref().unwrap_or("it is not known why");
            let _ = writeln!(text, "FAILED: there is no backup of {}: {why}", done.job);
            if let Some(hint) = &done.hint {
                let _ = writeln!(text, "hint: {hint}");
            }
        }
    }
    text.push_str(&read_back(&done.verified));
    if let [_, ..] = &done.forgotten[..] {
        let bytes: u64 = done.forgotten.iter().map(|it| it.bytes).sum();
        let archives = counted(done.forgotten.len() as u64, "archive", "archives");
        let _ = writeln!(text, "removed {archives} that the job does not keep, {}", size(bytes));
    }
    for warning in &done.warnings {
        let _ = writeln!(text, "look at: {}", warning);
    }
    if done.result() == RunResult::Failed && done.backup.is_some() {
        let differs = |it: &VerifiedArchive| it.source.as_ref().is_some_and(|it| it.differs > 0);
        text.push_str(if done.verified.iter().any(differs) {
            "DIFFERENT: the new set is not what the source has, which did not change since; the \
             next set is a full one\n"
        } else {
            "DAMAGED: an archive is not as it was written; the next set is a full one\n"
        });
    }
    text
}

/// What was read back, and compared.
fn read_back(verified: &[VerifiedArchive]) -> String {
    let mut text = String::new();
    if verified.is_empty() {
        return text;
    }
    let bytes: u64 = verified.iter().map(|it| it.bytes).sum();
    let read = match verified.iter().filter(|it| it.part.is_some()).count() as u64 {
        0 => counted(verified.len() as u64, "archive", "archives"),
        parts => {
            let parts = counted(parts, "part of an archive", "parts of archives");
            match verified.iter().filter(|it| it.part.is_none()).count() as u64 {
                0 => parts,
                whole => format!("{parts} and {}", counted(whole, "archive", "archives")),
            }
        }
    };
    let sound = match verified.iter().filter(|it| !it.sound).count() {
        0 => "sound".to_owned(),
        bad if verified.iter().all(|it| it.sound || it.unread) => {
            format!("{bad} of them NOT READ")
        }
        bad => format!("{bad} of them NOT SOUND"),
    };
    let _ = writeln!(text, "read back {read}, {}, {sound}", size(bytes));
    for source in verified.iter().filter_map(|it| it.source.as_ref()) {
        text.push_str(&compared(source));
    }
    text
}

/// What the comparison with the source found.
fn compared(source: &ComparedSource) -> String {
    if source.compared == 0 {
        return "the new set stores no object to compare with the source\n".to_owned();
    }
    let counts = [
        (source.differs, "DIFFERENT although not touched"),
        (source.not_compared, "not compared"),
        (source.changed, "changed since the backup"),
        (source.gone, "gone since the backup"),
    ];
    let found = counts.iter().filter(|(number, _)| *number > 0);
    let mut found: Vec<String> =
        found.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    if found.is_empty() {
        found.push("all as in the set".to_owned());
    }
    let all = counted(source.compared, "object", "objects");
    let mut text = format!("compared {all} with the source: {}", found.join(", "));
    let named: Vec<&str> = source.first.iter().take(PATHS_NAMED).map(String::as_str).collect();
    if !named.is_empty() {
        let _ = write!(text, " ({})", named.join(", "));
    }
    text + "\n"
}

/// The end of a trial restore.
pub fn tried(done: &TrialDone) -> String {
    let (files, bytes) = (counted(done.files, "file", "files"), size(done.bytes));
    let of = escape(done.archive.as_bytes());
    let mut text = match (done.wrong.len(), done.files) {
        (0, 0) => format!("nothing was tried of {of}\n"),
        (0, _) => format!("came back as it was: {files}, {bytes}, of {of}\n"),
        (wrong, _) => {
            let wrong = counted(wrong as u64, "file is", "files are");
            format!("DAMAGED: {wrong} not what was backed up, of {of}\n")
        }
    };
    for line in done.wrong.iter().chain(&done.warnings) {
        let _ = writeln!(text, "{}", line);
    }
    text
}

/// The runs of the jobs, a line each.
pub fn history(answer: &JobsHistoryAnswer) -> String {
    let mut text = String::new();
    for job in &answer.jobs {
        let _ = writeln!(text, "{} to {}", job.job, job.to);
        for run in &job.runs {
            text.push_str(&run_line(run));
        }
        if let Some(trend) = &job.trend {
            let _ = writeln!(text, "  SLOWER: {trend}");
        }
    }
    text
}

fn run_line(run: &JobRunAnswer) -> String {
    let level = match run.level {
        None => "-".to_owned(),
        Some(0) => "full".to_owned(),
        Some(level) => format!("level {level}"),
    };
    let mut line = format!(
        "  {} UTC  {:<6}  {level:<8} {:>8} files  {:>8}  {:>8}",
        time_text(run.ended_seconds),
        run.result,
        count(run.files),
        size(run.bytes),
        duration(run.seconds),
    );
    if run.warnings > 0 {
        let _ = write!(line, "  {}", counted(run.warnings, "warning", "warnings"));
    }
    if let Some(why) = run.error.as_ref().or(run.limit.as_ref()) {
        let _ = write!(line, "  {}", escape(why.as_bytes()));
    }
    line + "\n"
}

/// The state of the jobs.
pub fn status(done: &StatusDone, now_seconds: u64) -> String {
    let mut text = String::new();
    let config = done.config.as_deref().map(|path| format!(" --config {}", typed(path)));
    let config = config.unwrap_or_default();
    for job in &done.jobs {
        text.push_str(&job_status(job, &config, now_seconds));
    }
    for warning in &done.warnings {
        let _ = writeln!(text, "{}", warning);
    }
    text
}

/// A path as an argument in a shell.
fn typed(path: &Path) -> String {
    let text = escape_path(path);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// `config` goes behind the commands to type.
fn job_status(job: &JobStatus, config: &str, now_seconds: u64) -> String {
    let when = |seconds: Option<u64>, none: &str| match seconds {
        None => none.to_owned(),
        Some(seconds) => {
            let ago = match now_seconds.checked_sub(seconds) {
                None => "in the future by this clock".to_owned(),
                Some(0..60) => "just now".to_owned(),
                Some(age) => format!("{} ago", long_time(age as f64)),
            };
            format!("{} UTC, {ago}", time_text(seconds as i64))
        }
    };
    let sets = counted(job.sets, "set", "sets");
    let mut text = format!(
        "{}: {}, {} in {}\n  last success           {}\n  last verified success  {}\n",
        job.job,
        sets,
        size(job.bytes),
        escape_path(&job.to),
        when(job.last_success_seconds, "none"),
        when(job.last_verified_success_seconds, "none"),
    );
    if job.sets > 0 && job.last_verified_success_seconds.is_none() {
        let _ = writeln!(text, "  read all back: takeup verify {}", escape_path(&job.to));
    }
    for problem in &job.problems {
        let _ = writeln!(text, "  PROBLEM: {}", problem);
    }
    if job.is_overdue {
        let _ = writeln!(text, "  run it: takeup run {}{config}", job.job);
    }
    text
}

/// The jobs of a file, and what would go wrong today.
pub fn checked(checked: &CheckedConfig) -> String {
    let problems: usize = checked.jobs.iter().map(|job| job.problems.len()).sum();
    let jobs = counted(checked.jobs.len() as u64, "job", "jobs");
    let path = escape_path(&checked.path);
    let mut text = match problems {
        0 => format!("{path} is right: {jobs}\n"),
        some => {
            let problems = counted(some as u64, "problem", "problems");
            format!("{path} can be read: {jobs}, {problems}\n")
        }
    };
    for job in &checked.jobs {
        let sources: Vec<String> = job.sources.iter().map(|it| escape_path(it)).collect();
        let to = escape_path(&job.to);
        let schedule = escape(job.schedule.as_bytes());
        let _ = writeln!(text, "{}: {} to {to}, {schedule}", job.job, sources.join(" "));
        for problem in &job.problems {
            let _ = writeln!(text, "  PROBLEM: {}", problem);
        }
    }
    text
}

/// The units of a job, or where they are.
pub fn units(done: &UnitsDone) -> String {
    let (service, timer) = (done.service_name(), done.timer_name());
    let user = if done.is_users { " --user" } else { "" };
    match &done.written_to {
        Some(folder) => format!(
            "wrote {service} and {timer} into {}\nnow type: systemctl{user} daemon-reload && \
             systemctl{user} enable --now {timer}\n",
            escape_path(folder)
        ),
        None => {
            format!("# {service}\n{}\n# {timer}\n{}", done.service, done.timer)
        }
    }
}

/// The sets of a folder, a line each.
pub fn folder_sets(done: &FolderSetsDone) -> String {
    let mut text = String::new();
    let mut job = None;
    for set in &done.sets {
        if job != Some(&set.about.job) {
            job = Some(&set.about.job);
            let _ = writeln!(text, "job {}", set.about.job);
        }
        text.push_str(&set_line(set));
    }
    for copy in &done.copies {
        let _ = writeln!(text, "{copy}");
    }
    for unusable in &done.unusable {
        let _ = writeln!(text, "LOST: {}", unusable);
    }
    text
}

fn set_line(set: &ListedSet) -> String {
    let about = &set.about;
    let level = match about.level {
        0 => "full".to_owned(),
        level => format!("level {level}"),
    };
    let stored: u64 = about.stored.iter().map(|(_, objects)| objects).sum();
    let verified = match (&set.missing, set.verified) {
        (Some(_), _) => ", CANNOT BE RESTORED".to_owned(),
        (None, Some((_, false))) => ", DAMAGED".to_owned(),
        (None, Some((seconds, true))) => format!(", verified {}", date_text(seconds as i64)),
        (None, None) => String::new(),
    };
    let mut line = format!(
        "{:>5} {} UTC  {level:<8} {:>8}, {} stored{verified}  {}\n",
        about.number,
        time_text(about.begun_seconds as i64),
        size(set.bytes),
        count(stored),
        set.archive,
    );
    if let Some(missing) = &set.missing {
        let _ = writeln!(line, "      {}", missing);
    }
    line
}

/// The archives of a folder, read back.
pub fn verified_sets(done: &VerifySetsDone) -> String {
    let bytes: u64 = done.verified.iter().map(|it| it.bytes).sum();
    let archives = counted(done.verified.len() as u64, "archive", "archives");
    let unread = done.verified.iter().filter(|it| it.unread).count() as u64;
    let bad = done.verified.iter().filter(|it| !it.sound).count() as u64 - unread;
    let mut text = match (bad, done.lost.len()) {
        (0, _) if unread > 0 => format!("NOT READ: {} of {archives}", count(unread)),
        (0, 0) => format!("all sound: {archives}, {}", size(bytes)),
        (0, _) => format!("LOST: not all that was there can be read; {archives} are sound"),
        (bad, _) => format!("DAMAGED: {} of {archives}", count(bad)),
    };
    let _ = writeln!(text, ", read in {}", duration(done.seconds));
    for lost in &done.lost {
        let _ = writeln!(text, "{}", lost);
    }
    for archive in &done.verified {
        let VerifiedArchive { archive, text: said, .. } = archive;
        let _ = writeln!(text, "{}: {}", escape(archive.as_bytes()), escape(said.as_bytes()));
    }
    for warning in &done.warnings {
        let _ = writeln!(text, "{}", warning);
    }
    text
}

/// Which sets go, and what goes with them.
pub fn forgotten(done: &ForgetDone) -> String {
    let going = done.going().count() as u64;
    let sets = counted(going, "set", "sets");
    let (of, bytes) = (count(done.sets.len() as u64), size(done.freed_bytes()));
    let mut text = match (done.applied, going) {
        (_, 0) if done.sets.len() == 1 => format!("nothing goes: {} has one set\n", done.job),
        (_, 0) => format!("nothing goes: all {of} sets of {} are kept\n", done.job),
        (true, _) => format!("removed {sets} of {of}, {bytes}\n"),
        (false, _) if done.error.is_some() => {
            let removed = counted(done.removed.len() as u64, "set", "sets");
            let bytes = size(done.removed.iter().map(|it| it.bytes).sum());
            let names = done.removed.iter().map(|it| escape(it.archive.as_bytes()));
            let names = names.collect::<Vec<_>>().join(", ");
            let why = done.error.as_deref().unwrap_or_default();
            format!("FAILED after {removed} of {going} that go, {bytes}: {why}\ngone: {names}\n")
        }
        (false, 1) => format!("{sets} of {of} would go, {bytes}; --yes removes it\n"),
        (false, _) => format!("{sets} of {of} would go, {bytes}; --yes removes them\n"),
    };
    for set in &done.sets {
        text.push_str(&fate_line(set));
    }
    for warning in &done.warnings {
        let _ = writeln!(text, "{}", warning);
    }
    text
}

fn fate_line(set: &SetFate) -> String {
    let (number, begun) = (set.about.number, time_text(set.about.begun_seconds as i64));
    let what = match (&set.kept[..], &set.lost) {
        ([_, ..], _) => format!("kept: {}", set.kept.join(", ")),
        ([], None) => "goes".to_owned(),
        ([], Some(Lost { versions: 0, .. })) => "goes: kept sets have all that is in it".to_owned(),
        ([], Some(Lost { versions, names })) => {
            let files = counted(*versions, "version of a file is", "versions of files are");
            let more = if *versions > names.len() as u64 { " and others" } else { "" };
            format!("goes: {files} lost with it: {}{more}", names.join(", "))
        }
    };
    format!("{number:>5} {begun} UTC  {:>8}  {what}\n", size(set.bytes))
}
