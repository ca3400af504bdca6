//! The list of exceptions: which rule does not apply where, and why.
//!
//! One exception per line, `RULE PATH[:NAME] -- REASON`; empty lines and lines that start with `#`
//! are ignored. A name limits the exception to one function. An exception that is no longer needed
//! is a finding, so the list stays correct.

use std::cell::Cell;

use super::rules::Finding;

/// One exception.
struct Exception {
    line: usize,
    rule: String,
    path: String,
    name: Option<String>,
    used: Cell<bool>,
}

/// All exceptions of a file.
pub struct Allowed {
    path: String,
    exceptions: Vec<Exception>,
    malformed: Vec<Finding>,
}

impl Allowed {
    /// Reads the list; `path` is its name in findings about it.
    pub fn parse(path: &str, text: &str) -> Self {
        let mut allowed =
            Self { path: path.to_string(), exceptions: Vec::new(), malformed: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line_number, line) {
                Some(exception) => allowed.exceptions.push(exception),
                None => allowed.malformed.push(Finding::new(
                    "allow-list",
                    path,
                    line_number,
                    "must read: RULE PATH[:NAME] -- REASON",
                )),
            }
        }
        allowed
    }

    /// Removes the excepted findings and adds those about the list itself.
    pub fn apply(self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut left: Vec<Finding> =
            findings.into_iter().filter(|finding| !self.excepts(finding)).collect();
        left.extend(self.malformed);
        for exception in self.exceptions.iter().filter(|exception| !exception.used.get()) {
            let message = format!("not needed any more: {} {}", exception.rule, exception.path);
            left.push(Finding::new("allow-list", &self.path, exception.line, &message));
        }
        left
    }

    fn excepts(&self, finding: &Finding) -> bool {
        let mut found = false;
        for exception in &self.exceptions {
            let same_name = exception.name.is_none() || exception.name == finding.name;
            if exception.rule == finding.rule && exception.path == finding.path && same_name {
                exception.used.set(true);
                found = true;
            }
        }
        found
    }
}

fn parse_line(line: usize, text: &str) -> Option<Exception> {
    let (what, reason) = text.split_once(" -- ")?;
    let (rule, place) = what.trim().split_once(' ')?;
    if reason.trim().is_empty() {
        return None;
    }
    let (path, name) = match place.trim().split_once(':') {
        Some((path, name)) => (path, Some(name.to_string())),
        None => (place.trim(), None),
    };
    Some(Exception {
        line,
        rule: rule.to_string(),
        path: path.to_string(),
        name,
        used: Cell::new(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_take_findings_away_and_must_be_needed() {
        let text = "\
# why this list is here

function-lines a.rs:table -- a table
line-columns b.rs -- long names
line-columns c.rs -- was needed once
no reason here
";
        let mut of_table = Finding::new("function-lines", "a.rs", 1, "too long");
        of_table.name = Some("table".to_string());
        let mut of_other = Finding::new("function-lines", "a.rs", 90, "too long");
        of_other.name = Some("other".to_string());
        let columns = Finding::new("line-columns", "b.rs", 3, "too wide");
        let left = Allowed::parse("allow.txt", text).apply(vec![of_table, of_other, columns]);
        let lines: Vec<_> = left.iter().map(|f| (f.rule, f.path.as_str(), f.line)).collect();
        let expected = [
            ("function-lines", "a.rs", 90),
            ("allow-list", "allow.txt", 6),
            ("allow-list", "allow.txt", 5),
        ];
        assert_eq!(lines, expected);
    }
}
