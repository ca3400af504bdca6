//! The mutants that no test can detect because they change nothing observable, with reasons.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::mutant::Mutant;
use super::subject::Subject;

/// The file of the list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivors {
    #[serde(default)]
    survivor: Vec<Survivor>,
}

/// An entry of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    subject: String,
    mutant: String,
    reason: String,
}

impl Survivors {
    /// Reads the list; a missing file is an empty list.
    ///
    /// # Errors
    /// When it cannot be read, or an entry has no reason.
    pub fn read(path: &Path) -> anyhow::Result<Survivors> {
        if !path.exists() {
            return Ok(Survivors::default());
        }
        let text =
            std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Survivors::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses the list.
    ///
    /// # Errors
    /// When the text is not such a list, or an entry has no reason.
    pub fn parse(text: &str) -> anyhow::Result<Survivors> {
        let list: Survivors = toml::from_str(text).context("not a list of survivors")?;
        for one in &list.survivor {
            if one.reason.trim().is_empty() {
                bail!("no reason: {}", one.mutant);
            }
        }
        Ok(list)
    }

    /// Why a mutant changes nothing observable; `None` if it is not in the list.
    #[must_use]
    pub fn reason(&self, mutant: &str) -> Option<&str> {
        let found = self.survivor.iter().find(|one| one.mutant == mutant);
        found.map(|one| one.reason.trim())
    }

    /// Entries of a subject that are no longer among its mutants.
    #[must_use]
    pub fn gone(&self, subject: Subject, all: &[Mutant]) -> Vec<String> {
        let subject = subject.to_string();
        let of_subject = self.survivor.iter().filter(|one| one.subject == subject);
        let gone = of_subject.filter(|one| !all.iter().any(|mutant| mutant.name == one.mutant));
        gone.map(|one| one.mutant.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "
[[survivor]]
subject = 'flow'
mutant = 'a.rs: replace < with <= in a | a < b'
reason = 'a is never b'
";

    #[test]
    fn a_survivor_has_a_reason() {
        let list = Survivors::parse(LIST).unwrap();
        let reason = list.reason("a.rs: replace < with <= in a | a < b");
        assert_eq!(reason, Some("a is never b"));
        assert_eq!(list.reason("another"), None);
        let without = LIST.replace("a is never b", " ");
        assert!(Survivors::parse(&without).unwrap_err().to_string().contains("no reason"));
        assert!(Survivors::parse("").unwrap().survivor.is_empty());
    }

    #[test]
    fn a_survivor_that_is_no_mutant_now_is_found_in_its_subject() {
        let list = Survivors::parse(LIST).unwrap();
        assert_eq!(list.gone(Subject::Flow, &[]).len(), 1);
        assert!(list.gone(Subject::Tree, &[]).is_empty());
    }

    #[test]
    fn the_list_of_the_tree_can_be_read() {
        let path = crate::folders::repository().join(super::super::SURVIVORS);
        let list = Survivors::read(&path).unwrap();
        let subjects: Vec<String> = Subject::all().iter().map(ToString::to_string).collect();
        for one in &list.survivor {
            assert!(subjects.contains(&one.subject), "no such subject: {}", one.subject);
        }
    }
}
