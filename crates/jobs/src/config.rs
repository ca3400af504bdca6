//! The file with the jobs.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::values::{
    AbsolutePath, Address, ChangesSource, Command, Glob, JobName, Method, Period, Quantity, Share,
    TargetPath,
};

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a run reads where a sample is wanted and nothing is said of its size.
const SAMPLE: Share = Share::percent(10);

/// The jobs of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub jobs: BTreeMap<JobName, Job>,
}

/// A backup that runs again and again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Job {
    #[serde(deserialize_with = "at_least_one")]
    pub sources: Vec<AbsolutePath>,
    pub to: TargetPath,
    #[serde(default)]
    pub exclude: Vec<Glob>,
    /// Puts another volume into a tape drive.
    #[serde(default)]
    pub change_command: Option<Command>,
    /// Whether the medium is ejected at the end of a run that wrote to it.
    #[serde(default)]
    pub eject: bool,
    #[serde(default)]
    pub compress: Option<Method>,
    /// Whether other file systems are not entered.
    #[serde(default)]
    pub one_file_system: bool,
    /// Age of a full set at which the next set is a full one.
    #[serde(default = "month")]
    pub full_every: Period,
    /// A file with the paths that have changed since the last set, or `btrfs:SUBVOLUME`; only these
    /// paths are looked at.
    #[serde(default)]
    pub changed_from: Option<ChangesSource>,
    /// Every so many sets, everything is looked at in spite of it.
    #[serde(default)]
    pub audit_every: Option<NonZero<u32>>,
    /// When a timer starts it, in systemd's words.
    #[serde(default = "daily")]
    pub schedule: String,
    /// Age of the last success from which on a job is overdue.
    #[serde(default = "two_days")]
    pub overdue_after: Period,
    /// How long a run waits for another one that writes into the same folder.
    #[serde(default = "an_hour")]
    pub wait_for_target: Period,
    /// `None`: nothing is ever removed.
    #[serde(default)]
    pub keep: Option<Keep>,
    #[serde(default)]
    pub quota: Option<Quota>,
    #[serde(default)]
    pub verify: VerifyPolicy,
    #[serde(default)]
    pub hooks: Hooks,
    #[serde(default)]
    pub tell: Tell,
}

/// Who is told of each run besides the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tell {
    /// A file for numbers, as Prometheus reads them.
    pub metrics: Option<AbsolutePath>,
    /// Where the start, success and failure are told.
    pub ping: Option<Address>,
}

/// Which sets are kept, by the days on which they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// The last sets.
    pub last: u32,
    /// The last set of each of the last days that have one; weeks, months and years likewise.
    pub daily: u32,
    pub weekly: u32,
    pub monthly: u32,
    pub yearly: u32,
}

/// How much a job may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Bytes of one archive.
    #[serde(default)]
    pub set: Option<Quantity>,
    /// Bytes of all archives of the job in its folder.
    #[serde(default)]
    pub kept: Option<Quantity>,
    #[serde(default)]
    pub exceeded: Exceeded,
}

/// What happens where a quota is exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exceeded {
    /// It is said.
    #[default]
    Warn,
    /// The next run does not begin.
    Refuse,
}

/// What is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerifyPolicy {
    /// What after each backup.
    pub after: After,
    /// Of `sample`: how much of all bytes of the job's archives a run reads.
    pub sample: Option<Share>,
    /// The longest time that no archive that is kept goes unread.
    pub within: Option<Period>,
}

/// What is read back after a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    #[default]
    Nothing,
    /// Of all archives of the job the parts that were unread the longest.
    Sample,
    /// All of the new archive, against the checksums.
    Checksums,
    /// All of the new archive, and each of its members is compared with the source.
    Source,
}

impl After {
    /// Whether all of the new archive is read back.
    pub fn reads_new(self) -> bool {
        matches!(self, After::Checksums | After::Source)
    }
}

impl VerifyPolicy {
    /// What each run reads of the job's archives, where that is wanted.
    pub fn sampled(&self) -> Option<Share> {
        let share = self.sample.unwrap_or(SAMPLE);
        (self.after == After::Sample).then_some(share)
    }
}

/// Commands around a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Hooks {
    /// Before anything is read. If it fails, there is no backup.
    pub before: Option<Command>,
    /// As soon as the sources are read, whatever became of the backup: what was frozen thaws.
    pub after_backup: Option<Command>,
    /// At the end, whatever became of the run; its result comes on standard input, as JSON.
    pub after: Option<Command>,
    /// Longest time that each may take.
    pub timeout: Period,
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks { before: None, after_backup: None, after: None, timeout: Period::hours(1) }
    }
}

fn month() -> Period {
    Period::hours(30 * 24)
}

fn an_hour() -> Period {
    Period::hours(1)
}

fn two_days() -> Period {
    Period::hours(48)
}

fn daily() -> String {
    "daily".to_owned()
}

fn at_least_one<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<AbsolutePath>, D::Error> {
    let sources = Vec::<AbsolutePath>::deserialize(deserializer)?;
    if sources.is_empty() {
        return Err(serde::de::Error::custom("a job needs a source"));
    }
    Ok(sources)
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It is longer than any that people write.
    #[error("{} is longer than {} MiB", path.display(), FILE_BYTES_MAX >> 20)]
    TooLong { path: PathBuf },
    /// A value, a name or the syntax is wrong. Line and column count from 1.
    #[error("{}:{line}:{column}: {what}", path.display())]
    Wrong { path: PathBuf, line: usize, column: usize, what: String },
    /// None of its jobs has the wanted name.
    #[error("{} has no job {name}; its jobs are {}", path.display(), there.join(", "))]
    NoSuchJob { path: PathBuf, name: String, there: Vec<String> },
    /// The file is empty, or has only comments.
    #[error("{} has no job", path.display())]
    NoJob { path: PathBuf },
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// All but `NoSuchJob`.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        if !path.metadata().map_err(failed)?.is_file() {
            // A pipe would make it wait for ever.
            return Err(failed(io::Error::other("it is no file")));
        }
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(ConfigError::TooLong { path: path.to_owned() });
        }
        let config = Config::parse(&text, path)?;
        if config.jobs.is_empty() {
            return Err(ConfigError::NoJob { path: path.to_owned() });
        }
        Ok(config)
    }

    /// Reads text that is the content of `path`.
    ///
    /// # Errors
    /// `Wrong`.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let wrong = |at: Option<usize>, what: String| {
            let (line, column) = place_in(text, at.unwrap_or(0));
            ConfigError::Wrong { path: path.to_owned(), line, column, what }
        };
        let config: Config = toml::from_str(text).map_err(|error: toml::de::Error| {
            let what = error.message().lines().next().unwrap_or_default().to_owned();
            wrong(error.span().map(|span| span.start), what)
        })?;
        for (name, job) in &config.jobs {
            if let Some(what) = job.nonsense() {
                return Err(wrong(table(text, name), format!("the job {name}: {what}")));
            }
        }
        Ok(config)
    }

    /// The job of this name.
    ///
    /// # Errors
    /// `NoSuchJob`, with the names of those in the file at `path`.
    pub fn job(&self, name: &str, path: &Path) -> Result<(&JobName, &Job), ConfigError> {
        let found = self.jobs.iter().find(|(known, _)| known.as_str() == name);
        found.ok_or_else(|| ConfigError::NoSuchJob {
            path: path.to_owned(),
            name: name.to_owned(),
            there: self.jobs.keys().map(ToString::to_string).collect(),
        })
    }
}

impl Job {
    /// What no value of its own shows to be wrong.
    fn nonsense(&self) -> Option<String> {
        if self.keep == Some(Keep::default()) {
            return Some(
                "`keep` keeps nothing: say how many with last, daily, weekly, monthly or \
                         yearly"
                    .to_owned(),
            );
        }
        let is_empty = |quota: &Quota| quota.set.is_none() && quota.kept.is_none();
        if self.quota.as_ref().is_some_and(is_empty) {
            return Some("`quota` limits nothing: say how much with set or kept".to_owned());
        }
        if self.audit_every.is_some() && self.changed_from.is_none() {
            return Some("`audit-every` needs `changed-from`, the list to audit".to_owned());
        }
        if self.verify.sample.is_some() && self.verify.after != After::Sample {
            return Some("`verify.sample` needs `verify.after = \"sample\"`".to_owned());
        }
        if self.eject && !self.to.is_tape() {
            return Some("`eject` is for tape drives, and `to` is a folder".to_owned());
        }
        if self.verify.after == After::Sample && self.to.is_tape() {
            return Some(
                "a tape is not read back by samples: `verify.after` can be \"checksums\" or \
                 \"source\" there"
                    .to_owned(),
            );
        }
        None
    }
}

/// Where the table of a job begins.
fn table(text: &str, name: &JobName) -> Option<usize> {
    let begins = ["]", ".", " "].map(|end| format!("[jobs.{name}{end}"));
    let quoted = [format!("[jobs.\"{name}\""), format!("[jobs.'{name}'")];
    begins.iter().chain(&quoted).filter_map(|begin| text.find(begin)).min()
}

/// Line and column of a byte of a text, both from 1. A column is a letter.
pub fn place_in(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("takeup.toml")).map_err(|error| error.to_string())
    }

    const WHOLE: &str = "
[jobs.homes]
sources = ['/home', '/etc']
to = '/mnt/sets/'
exclude = ['*.cache']
compress = 'zstd:3'
one-file-system = true
full-every = '4 weeks'
changed-from = '/run/changed'
audit-every = 7
schedule = 'Mon..Fri 02:30'
overdue-after = '3 days'
wait-for-target = '2 hours'

[jobs.homes.keep]
daily = 14
monthly = 12

[jobs.homes.quota]
set = '100GB'
kept = '1TB'
exceeded = 'refuse'

[jobs.homes.verify]
after = 'checksums'
within = '90 days'

[jobs.homes.hooks]
before = 'sync'
after-backup = 'sync'
after = 'cat >/dev/null'
timeout = '10 minutes'
";

    #[test]
    fn everything_that_may_be_said() {
        let config = parse(WHOLE).unwrap();
        let (_, job) = config.job("homes", Path::new("x")).unwrap();
        assert_eq!(job.sources.len(), 2);
        assert_eq!(job.full_every.seconds(), 28 * 86_400);
        let list = job.changed_from.as_ref().unwrap().as_path();
        assert_eq!((list, job.audit_every.unwrap().get()), (Path::new("/run/changed"), 7));
        assert_eq!(job.wait_for_target.seconds(), 2 * 3600);
        let keep = job.keep.unwrap();
        assert_eq!((keep.last, keep.daily, keep.monthly), (0, 14, 12));
        assert_eq!(job.quota.unwrap().kept.unwrap().bytes(), 1_000_000_000_000);
        assert_eq!(job.verify.after, After::Checksums);
        assert_eq!(job.hooks.timeout.seconds(), 600);
        let error = config.job("home", Path::new("takeup.toml")).unwrap_err();
        assert_eq!(error.to_string(), "takeup.toml has no job home; its jobs are homes");
    }

    #[test]
    fn the_least_that_may_be_said() {
        let config = parse("[jobs.x]\nsources = ['/home']\nto = '/mnt/sets/'\n").unwrap();
        let (_, job) = config.job("x", Path::new("x")).unwrap();
        assert_eq!(job.keep, None);
        assert_eq!(job.schedule, "daily");
        assert_eq!(job.hooks, Hooks::default());
        assert_eq!(job.verify.after, After::Nothing);
        assert_eq!(job.verify.sampled(), None);
    }

    #[test]
    fn a_sample_has_a_size() {
        let sampled = |more: &str| {
            let begin = "[jobs.x]\nsources = ['/home']\nto = '/mnt/sets/'\n";
            let config = parse(&format!("{begin}verify.after = 'sample'\n{more}")).unwrap();
            config.jobs.into_values().next().unwrap().verify.sampled().map(Share::permille)
        };
        assert_eq!((sampled(""), sampled("verify.sample = '2.5 %'")), (Some(100), Some(25)));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let begin = "[jobs.x]\nsources = ['/home']\nto = '/mnt/sets/'\n";
        let wrong = [
            (format!("{begin}compres = 'zstd'\n"), "takeup.toml:4:1: unknown field `compres`"),
            (format!("{begin}compress = 'lzma'\n"), "takeup.toml:4:12: "),
            (format!("{begin}exclude = ['a', '[']\n"), "takeup.toml:4:11: bad exclude glob"),
            (format!("{begin}full-every = '30'\n"), "takeup.toml:4:14: \"30\" is no span of time"),
            (format!("{begin}eject = true\n"), "takeup.toml:1:1: the job x: `eject` is for tape"),
            (format!("{begin}keep = {{}}\n"), "takeup.toml:1:1: the job x: `keep` keeps nothing"),
            (format!("{begin}quota = {{}}\n"), "takeup.toml:1:1: the job x: `quota` limits"),
            (
                format!("{begin}audit-every = 7\n"),
                "takeup.toml:1:1: the job x: `audit-every` needs",
            ),
            (
                format!("{begin}verify.sample = '5 %'\n"),
                "takeup.toml:1:1: the job x: `verify.sample` needs",
            ),
            (format!("{begin}verify.sample = '5'\n"), "takeup.toml:4:17: \"5\" is no share"),
            (
                "[jobs.x]\nsources = ['/h']\nto = '/dev/nst0'\nverify.after = 'sample'\n"
                    .to_owned(),
                "takeup.toml:1:1: the job x: a tape is not read back by samples",
            ),
            (format!("{begin}changed-from = 'x'\n"), "takeup.toml:4:16: \"x\" is no path from"),
            (format!("{begin}hooks = {{ before = ' ' }}\n"), "takeup.toml:4:20: an empty command"),
            (
                format!("[jobs.xy]\n{}{begin}quota = {{}}\n", &begin[9..]),
                "takeup.toml:4:1: the job x: `quota` limits",
            ),
            ("[jobs.x]\nsources = []\nto = '/s/'".to_owned(), "takeup.toml:2:11: a job needs a"),
            ("[jobs.x]\nsources = ['x']\n".to_owned(), "takeup.toml:2:11: \"x\" is no path from"),
            ("[jobs.x]\nsources = '/x".to_owned(), "takeup.toml:2:"),
            ("[job.x]\n".to_owned(), "takeup.toml:1:2: unknown field `job`"),
            ("[jobs.'a b']\nsources = ['/h']\nto = '/s/'".to_owned(), "takeup.toml:1:7: \"a b\""),
        ];
        for (text, expected) in wrong {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
    }
}
