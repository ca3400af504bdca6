//! The outcome of a case, and the file that keeps outcomes.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The outcome of a case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The number of the case.
    pub number: u64,
    /// The case as a command line.
    pub case: String,
    /// Its truth, measured or by construction.
    pub truth: String,
    /// The program's answer.
    pub said: String,
    /// Properties of the answer that are right or wrong.
    pub checks: Vec<Check>,
    /// Sentences of the answer that can be true or false.
    pub claims: Vec<Claim>,
    /// Why the case shows nothing about the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_made: Option<String>,
}

/// One property of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its name, as in [`super::Asked::property`].
    pub property: String,
    /// Whether the answer has it.
    pub right: bool,
    /// The numbers or words that show it.
    pub because: String,
}

/// A sentence of the program, and whether it is true.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The sentence without its numbers and names, so that equal ones are counted together.
    pub sentence: String,
    pub is_true: bool,
    /// The sentence in full, and the truth.
    pub because: String,
}

impl Outcome {
    /// A case that could not be made.
    #[must_use]
    pub fn not_made(number: u64, error: &anyhow::Error) -> Outcome {
        Outcome { number, not_made: Some(format!("{error:#}")), ..Outcome::default() }
    }

    /// Adds a property.
    pub fn check(&mut self, property: &str, right: bool, because: impl Into<String>) {
        self.checks.push(Check { property: property.to_owned(), right, because: because.into() });
    }

    /// Adds a sentence.
    pub fn claim(&mut self, sentence: &str, is_true: bool, because: impl Into<String>) {
        self.claims.push(Claim { sentence: sentence.to_owned(), is_true, because: because.into() });
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.not_made {
            return write!(f, "{:>4}  not made: {reason}", self.number);
        }
        write!(f, "{:>4}  {}", self.number, self.case)?;
        for check in self.checks.iter().filter(|check| !check.right) {
            write!(f, "\n      wrong {}: {}", check.property, check.because)?;
        }
        for claim in self.claims.iter().filter(|claim| !claim.is_true) {
            write!(f, "\n      false: {}", claim.because)?;
        }
        Ok(())
    }
}

/// The outcomes in a file; none without a file. A truncated last line is ignored, so that its case
/// runs again.
///
/// # Errors
///
/// When the file cannot be read, or a line before the last is invalid.
pub fn read(path: &Path) -> anyhow::Result<Vec<Outcome>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(line, text): (usize, &str)| {
        serde_json::from_str(text)
            .with_context(|| format!("{}, line {}: not an outcome", path.display(), line + 1))
    };
    whole.lines().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outcomes");
        assert!(read(&path).unwrap().is_empty());
        let line = serde_json::to_string(&Outcome { number: 3, ..Outcome::default() }).unwrap();
        std::fs::write(&path, format!("{line}\n{}", &line[..9])).unwrap();
        let numbers: Vec<u64> = read(&path).unwrap().iter().map(|one| one.number).collect();
        assert_eq!(numbers, [3]);
        std::fs::write(&path, format!("nonsense\n{line}\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 1: not an outcome"));
    }
}
