//! How a finding is printed, the same for all commands.

use base::finding::{Finding, Severity};

use base::escape::escape_controls;

/// A list of findings: under each one its bounds, its gain and the action.
pub fn list(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Information => String::new(),
            severity => format!("{}: ", severity.name()),
        };
        let mut head = format!("- {severity}");
        for part in finding.parts() {
            text.push_str(&format!("{head}{}\n", escape_controls(&part)));
            "  ".clone_into(&mut head);
        }
    }
    text
}

/// Lines after their head, which is printed once for several findings. Further lines of one finding
/// are indented. Control characters in a line are escaped.
pub fn lines_under_heads(findings: &[(&str, Vec<String>)]) -> String {
    let width = findings.iter().map(|(head, _)| head.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = "";
    for (head, lines) in findings {
        let mut shown = if *head == last { "" } else { head };
        for (number, line) in lines.iter().enumerate() {
            let set_in = if number == 0 { "" } else { "  " };
            let line = escape_controls(line);
            text.push_str(&format!("{shown:<width$}  {set_in}{line}\n"));
            shown = "";
        }
        last = head;
    }
    text
}
