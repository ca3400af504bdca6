//! What the values of the file with the jobs may be. A value that may not be is refused while the
//! file is read, so that the error has its line and column.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use archive::chunk::Compression;
use base::drive_names::is_non_rewinding;
use base::quantity::Size;
use jiff::{Span, SpanRelativeTo, Unit};
use serde::Deserialize;
use tree::{ChangesFrom, Excludes};

/// Letters of the name of a job at most.
const NAME_BYTES_MAX: usize = 64;

/// The name of a job: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct JobName(String);

impl JobName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JobName {
    type Error = String;

    fn try_from(name: String) -> Result<JobName, String> {
        let is_letter =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.starts_with(['.', '-'])
            && name.chars().all(is_letter);
        if is_name {
            return Ok(JobName(name));
        }
        Err(format!(
            "{name:?} cannot be the name of a job: letters, digits, `-`, `_` and `.`, at most \
             {NAME_BYTES_MAX} bytes"
        ))
    }
}

impl std::fmt::Display for JobName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path from the root: a timer starts a job in another folder than its user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AbsolutePath(PathBuf);

impl AbsolutePath {
    /// As a path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for AbsolutePath {
    type Error = String;

    fn try_from(path: String) -> Result<AbsolutePath, String> {
        let text = path;
        let path = PathBuf::from(&text);
        if path.is_absolute() {
            return Ok(AbsolutePath(path));
        }
        let home = if text.starts_with('~') { "; ~ is not replaced" } else { "" };
        Err(format!("{text:?} is no path from the root: it has to begin with /{home}"))
    }
}

/// Where sets go, as behind `backup --to`: a folder, whose path ends with a slash, or a tape drive.
/// Both are paths from the root.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TargetPath(PathBuf);

impl TargetPath {
    /// As a path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether the sets go to tape.
    pub fn is_tape(&self) -> bool {
        is_non_rewinding(&self.0)
    }
}

impl TryFrom<String> for TargetPath {
    type Error = String;

    fn try_from(path: String) -> Result<TargetPath, String> {
        if !path.ends_with('/') && !is_non_rewinding(Path::new(&path)) {
            return Err(format!("{path:?} is no folder of sets: end its name with /"));
        }
        Ok(TargetPath(AbsolutePath::try_from(path)?.0))
    }
}

/// Where a list of changes comes from, as behind `backup --changed-from`. Paths are from the root.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ChangesSource(PathBuf);

impl ChangesSource {
    /// As the option has it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for ChangesSource {
    type Error = String;

    fn try_from(text: String) -> Result<ChangesSource, String> {
        let path = match ChangesFrom::of(Path::new(&text)) {
            ChangesFrom::List(path) => Some(path),
            ChangesFrom::Btrfs { subvolume, .. } => Some(subvolume),
            ChangesFrom::Zfs(_) => None,
            ChangesFrom::NoSnapshot => {
                return Err(format!("{text:?} names no snapshot: zfs:POOL/FS@FROM..@UNTIL"));
            }
        };
        if let Some(path) = path {
            AbsolutePath::try_from(path.to_string_lossy().into_owned())?;
        }
        Ok(ChangesSource(PathBuf::from(text)))
    }
}

/// Where a ping goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(String);

impl Address {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Address, String> {
        let is_address = ["http://", "https://"].iter().any(|it| text.starts_with(it));
        if is_address && !text.chars().any(|it| it.is_whitespace() || it.is_control()) {
            return Ok(Address(text));
        }
        // The text may have a secret in it.
        Err("this is no address: it has to begin with http:// or https://".to_owned())
    }
}

/// A glob of files that are left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob(String);

impl Glob {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(glob: String) -> Result<Glob, String> {
        match Excludes::new(&[&glob]) {
            Ok(_) => Ok(Glob(glob)),
            Err(error) => Err(base::failures::with_causes(&error)),
        }
    }
}

/// A method of compression, with a level or without.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Method(String);

impl Method {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(method: String) -> Result<Method, String> {
        match Compression::from_str(&method) {
            Ok(_) => Ok(Method(method)),
            Err(error) => Err(base::failures::with_causes(&error)),
        }
    }
}

/// A shell command that is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Command(String);

impl Command {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Command {
    type Error = String;

    fn try_from(command: String) -> Result<Command, String> {
        if command.trim().is_empty() {
            return Err("an empty command does nothing".to_owned());
        }
        Ok(Command(command))
    }
}

/// A number of bytes, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Quantity(u64);

impl Quantity {
    /// In bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for Quantity {
    type Error = String;

    fn try_from(text: String) -> Result<Quantity, String> {
        Size::from_str(&text).map(|size| Quantity(size.0)).map_err(|error| error.to_string())
    }
}

/// A share of a whole, to a tenth of a percent: `10 %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Share(u32);

impl Share {
    /// A number of whole percent.
    pub const fn percent(percent: u32) -> Share {
        Share(percent * 10)
    }

    /// In thousandths, from 1 to 1000.
    pub fn permille(self) -> u32 {
        self.0
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Share, String> {
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        let percent: Option<f64> = number.and_then(|number| number.parse().ok());
        let permille = percent.map(|percent| (percent * 10.0).round());
        match permille {
            Some(permille) if (1.0..=1000.0).contains(&permille) => Ok(Share(permille as u32)),
            _ => Err(format!(
                "{text:?} is no share: write it as \"10 %\", from \"0.1 %\" to \"100 %\""
            )),
        }
    }
}

/// A span of days, weeks, hours or minutes: `90 days`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Period(u64);

/// A century: what is longer is a mistake.
const PERIOD_SECONDS_MAX: f64 = 100.0 * 366.0 * 86_400.0;

impl Period {
    /// A number of hours.
    pub const fn hours(hours: u64) -> Period {
        Period(hours * 3600)
    }

    /// In seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Period, String> {
        let days = SpanRelativeTo::days_are_24_hours();
        let span = text.parse::<Span>().ok();
        let seconds = span.and_then(|span| span.total((Unit::Second, days)).ok());
        match seconds {
            Some(seconds) if (1.0..=PERIOD_SECONDS_MAX).contains(&seconds) => {
                Ok(Period(seconds as u64))
            }
            _ => Err(format!(
                "{text:?} is no span of time: write it as \"90 days\", \"4 weeks\" or \"12 hours\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(text: &str) -> Option<u64> {
        Period::try_from(text.to_owned()).ok().map(Period::seconds)
    }

    #[test]
    fn spans_of_time() {
        assert_eq!(period("90 days"), Some(90 * 86_400));
        assert_eq!(period("1 week"), Some(7 * 86_400));
        assert_eq!(period("36h"), Some(36 * 3600));
        assert_eq!(period("1 day 12 hours"), Some(36 * 3600));
        // A month has no length of its own.
        for bad in ["", "90", "3 months", "-1 day", "soon", "0 days", "900 years", "1e99 days"] {
            assert_eq!(period(bad), None, "{bad}");
        }
    }

    #[test]
    fn shares() {
        let share = |text: &str| Share::try_from(text.to_owned()).ok().map(Share::permille);
        assert_eq!(
            (share("10 %"), share("2.5%"), share("100 %")),
            (Some(100), Some(25), Some(1000))
        );
        for bad in ["", "10", "0 %", "101 %", "-1 %", "NaN %", "%", "a tenth"] {
            assert_eq!(share(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_jobs() {
        assert!(JobName::try_from("homes-2.daily_x".to_owned()).is_ok());
        for bad in ["", "a/b", "../x", "-x", ".x", "a b"] {
            assert!(JobName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn changes_come_from_the_root_too() {
        for good in ["/run/changed", "btrfs:/data", "btrfs:/data@17", "zfs:tank/home@a..@b"] {
            let source = ChangesSource::try_from(good.to_owned()).unwrap();
            assert_eq!(source.as_path(), Path::new(good));
        }
        for bad in ["changed", "-", "btrfs:data", "btrfs:"] {
            let error = ChangesSource::try_from(bad.to_owned()).unwrap_err();
            assert!(error.contains("is no path from the root"), "{error}");
        }
        let error = ChangesSource::try_from("zfs:tank".to_owned()).unwrap_err();
        assert!(error.contains("names no snapshot"), "{error}");
    }

    #[test]
    fn paths_begin_at_the_root() {
        assert!(AbsolutePath::try_from("/srv".to_owned()).is_ok());
        let error = AbsolutePath::try_from("~/x".to_owned()).unwrap_err();
        assert!(error.contains("~ is not replaced"), "{error}");
        assert!(TargetPath::try_from("/mnt/sets/".to_owned()).is_ok());
        assert!(TargetPath::try_from("/mnt/sets".to_owned()).is_err());
        assert!(TargetPath::try_from("sets/".to_owned()).is_err());
        // A drive is known by its name, also while it is not there.
        let is_tape = |path: &str| TargetPath::try_from(path.to_owned()).map(|it| it.is_tape());
        assert_eq!(is_tape("/dev/nst0"), Ok(true));
        assert_eq!(is_tape("/dev/tape/by-id/scsi-35000e1-nst"), Ok(true));
        assert_eq!(is_tape("/mnt/nst0/"), Ok(false));
        assert!(is_tape("/dev/st0").is_err() && is_tape("nst0").is_err());
    }
}
