//! What a label says for people: the machine, the job, the level.

use std::fmt::Write as _;

use super::{hex, id};
use crate::escaped::{escaped, unescaped};

/// Longest name: that of a machine in Linux (`HOST_NAME_MAX`, gethostname(2)), and of a job.
const NAME_BYTES_MAX: usize = 64;

/// A short text that is copied with its label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ShortText<const BYTES_MAX: usize> {
    bytes: [u8; BYTES_MAX],
    length: u8,
}

impl<const BYTES_MAX: usize> ShortText<BYTES_MAX> {
    /// `None` if it is empty or too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; BYTES_MAX];
        bytes.get_mut(..text.len()).filter(|_| !text.is_empty())?.copy_from_slice(text);
        Some(ShortText { bytes, length: text.len() as u8 })
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length));
        bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// The name of a machine, in the form of a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostName(ShortText<NAME_BYTES_MAX>);

impl HostName {
    /// `None` if it is not a machine's name: empty, more than 64 bytes, or not printable ASCII
    /// without blanks.
    pub fn new(name: &[u8]) -> Option<HostName> {
        let is_name = name.iter().all(u8::is_ascii_graphic);
        ShortText::new(name).filter(|_| is_name).map(HostName)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::fmt::Debug for HostName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("HostName").field(&self.as_str()).finish()
    }
}

/// Longest name of a medium: that of a bar code in the memory of a cartridge (SPC-4, 7.4.2.4.8).
const MEDIUM_NAME_BYTES_MAX: usize = 32;

/// What people call a medium: its bar code, or what is written on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediumName(ShortText<MEDIUM_NAME_BYTES_MAX>);

impl MediumName {
    /// `None` if it is empty, more than 32 bytes, or not printable ASCII without blanks.
    pub fn new(name: &str) -> Option<MediumName> {
        let is_name = name.bytes().all(|byte| byte.is_ascii_graphic());
        ShortText::new(name.as_bytes()).filter(|_| is_name).map(MediumName)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::fmt::Debug for MediumName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("MediumName").field(&self.as_str()).finish()
    }
}

impl std::fmt::Display for MediumName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The name of a job, in the form of a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobText(ShortText<NAME_BYTES_MAX>);

impl JobText {
    /// `None` if it is empty, or has more than 64 bytes or control characters.
    pub fn new(name: &str) -> Option<JobText> {
        let is_name = !name.chars().any(char::is_control);
        ShortText::new(name.as_bytes()).filter(|_| is_name).map(JobText)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::fmt::Debug for JobText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("JobText").field(&self.as_str()).finish()
    }
}

/// Which set of a chain a label belongs to, so that it can be chosen without its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledSet {
    pub job: JobText,
    /// Its number among the sets of the job, from 1.
    pub number: u64,
    /// 0: a full set.
    pub level: u8,
    /// The set that changes count from.
    pub parent: Option<[u8; 16]>,
}

impl LabelledSet {
    /// For people: `homes full`.
    pub(super) fn words(&self) -> String {
        let job = escaped(self.job.as_str().as_bytes());
        match self.level {
            0 => format!("{job} full"),
            level => format!("{job} level {level}"),
        }
    }

    /// The fields of a label, each with a space behind it.
    pub(super) fn push_fields(&self, text: &mut String) {
        let job = escaped(self.job.as_str().as_bytes());
        write!(text, "job={job} number={} level={} ", self.number, self.level)
            .expect("a string takes any text");
        if let Some(parent) = &self.parent {
            write!(text, "parent={} ", hex(parent)).expect("a string takes any text");
        }
    }

    /// What the fields of a label say; `None` if it is of no chain.
    pub(super) fn of_fields<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<LabelledSet> {
        let job = String::from_utf8(unescaped(field("job")?)?).ok()?;
        Some(LabelledSet {
            job: JobText::new(&job)?,
            number: field("number")?.parse().ok()?,
            level: field("level")?.parse().ok()?,
            parent: field("parent").and_then(|text| id(text).ok()),
        })
    }
}
