//! The outcome of a mutant, and the file that keeps it.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The outcome of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// A test failed.
    Caught,
    /// All tests passed.
    Missed,
    /// It does not compile.
    Unviable,
    /// The tests did not end.
    Timeout,
}

/// A mutant that was tested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the mutant.
    pub mutant: String,
    /// Its outcome.
    pub fate: Fate,
    /// The test that detected it, or the test binary that ended before its tests did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Tests that failed once and passed when repeated: they show nothing about the mutant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<String>,
    /// Time of building and testing, in seconds.
    pub seconds: f64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = format!("{:?}", self.fate).to_lowercase();
        write!(f, "{fate:<8} {:>4.0} s  {}", self.seconds, self.mutant)?;
        if let Some(by) = &self.by {
            write!(f, "\n                 by {by}")?;
        }
        for test in &self.unsteady {
            write!(f, "\n                 passed when run again: {test}")?;
        }
        Ok(())
    }
}

/// The latest outcome of a mutant: one that was tried again has several lines.
#[must_use]
pub fn latest<'a>(outcomes: &'a [Outcome], name: &str) -> Option<&'a Outcome> {
    outcomes.iter().rev().find(|outcome| outcome.mutant == name)
}

/// The outcomes in a file; none without a file. A truncated last line is removed, so that its
/// mutant is tried again.
///
/// # Errors
/// When the file cannot be read or repaired, or a line before the last is invalid.
pub fn read(path: &Path) -> anyhow::Result<Vec<Outcome>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    if whole.len() < text.len() {
        std::fs::write(path, whole).with_context(|| format!("write {}", path.display()))?;
    }
    let parse = |(line, text): (usize, &str)| {
        serde_json::from_str(text)
            .with_context(|| format!("{}, line {}: not an outcome", path.display(), line + 1))
    };
    whole.lines().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(mutant: &str, fate: Fate) -> Outcome {
        Outcome { mutant: mutant.to_string(), fate, by: None, unsteady: vec![], seconds: 1.0 }
    }

    #[test]
    fn a_line_that_was_cut_off_is_no_outcome_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outcomes");
        assert!(read(&path).unwrap().is_empty());
        let line = serde_json::to_string(&outcome("a", Fate::Missed)).unwrap();
        std::fs::write(&path, format!("{line}\n{}", &line[..9])).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{line}\n"));
        std::fs::write(&path, format!("nonsense\n{line}\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 1: not an outcome"));
    }

    #[test]
    fn of_a_mutant_that_was_tried_again_the_last_line_counts() {
        let all =
            [outcome("a", Fate::Missed), outcome("b", Fate::Unviable), outcome("a", Fate::Caught)];
        assert_eq!(latest(&all, "a").map(|one| one.fate), Some(Fate::Caught));
        assert_eq!(latest(&all, "b").map(|one| one.fate), Some(Fate::Unviable));
        assert!(latest(&all, "c").is_none());
    }
}
