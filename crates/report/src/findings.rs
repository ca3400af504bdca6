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

/// Wraps a sentence to this width, with an indent after the first line. A longer word has its own
/// line, and a number stays with the unit after it.
pub fn wrapped(sentence: &str, width: usize) -> String {
    let mut text = String::with_capacity(sentence.len() + sentence.len() / 8 + 8);
    text.push(' ');
    // Width of the line so far, and whether it is empty.
    let (mut columns, mut is_empty) = (1, true);
    let mut rest = sentence;
    while !rest.is_empty() {
        let is_end = |(at, _): &(usize, &str)| !rest[..*at].ends_with(|it: char| it.is_numeric());
        let end = rest.match_indices(' ').find(is_end).map_or(rest.len(), |(at, _)| at);
        let (words, behind) = rest.split_at(end);
        rest = behind.strip_prefix(' ').unwrap_or_default();
        let wide = words.chars().count();
        if !is_empty && columns + 1 + wide > width {
            text.push_str("\n   ");
            columns = 3;
        }
        text.push(' ');
        text.push_str(words);
        columns += 1 + wide;
        is_empty = false;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_and_no_word_is_lost() {
        let sentence = "reads of 128 KiB, as large as the read-ahead window of 128 KiB";
        assert_eq!(
            wrapped(sentence, 40),
            "  reads of 128 KiB, as large as the\n    read-ahead window of 128 KiB\n"
        );
        assert_eq!(
            wrapped("at most one request of 7.7 KiB and 4.0 KiB", 40),
            "  at most one request of 7.7 KiB and\n    4.0 KiB\n"
        );
        assert_eq!(wrapped(sentence, 64), format!("  {sentence}\n"));
        assert!(wrapped(sentence, 63).ends_with("\n    128 KiB\n"));
        let long = "x".repeat(50);
        assert_eq!(wrapped(&format!("a {long} b"), 40), format!("  a\n    {long}\n    b\n"));
    }
}
