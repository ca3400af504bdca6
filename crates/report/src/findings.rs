//! Findings as text: one way to write them, whoever found them.

use finding::{Finding, Severity};

use crate::escape::escape;

/// What there is to read of a finding, in that order.
fn parts(finding: &Finding) -> Vec<String> {
    let rest = [&finding.caveat, &finding.gain, &finding.action];
    let mut parts = vec![finding.sentence()];
    parts.extend(rest.into_iter().flatten().cloned());
    parts
}

/// All of it in one line.
pub fn line(finding: &Finding) -> String {
    parts(finding).join("; ")
}

/// Points of a list, below each what bounds it, what it would bring and what to do.
pub fn list(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Information => String::new(),
            severity => format!("{}: ", severity.name()),
        };
        let mut head = format!("- {severity}");
        for part in parts(finding) {
            text.push_str(&format!("{head}{}\n", escape(part.as_bytes())));
            "  ".clone_into(&mut head);
        }
    }
    text
}

/// One finding a line behind the head that it stands under, which is written once.
pub fn under_heads<'a>(findings: impl Iterator<Item = (&'a str, &'a Finding)> + Clone) -> String {
    let width = findings.clone().map(|(head, _)| head.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = "";
    for (head, finding) in findings {
        let shown = if head == last { "" } else { head };
        text.push_str(&format!("{shown:<width$}  {}\n", line(finding)));
        last = head;
    }
    text
}
