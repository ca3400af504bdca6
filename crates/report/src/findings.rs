//! How a finding is printed, the same for all commands.

use base::finding::{Finding, Severity};

use base::escape::escape_controls;

use crate::prose::{fitted, fitted_behind};
use crate::table::{Style, Tone, toned};

/// Heads whose lines are commands.
const TYPED: [&str; 4] = ["apply", "keep", "undo", "measure"];

/// A list of findings: under each one its bounds, its gain and the action. The first line has the
/// colour of its severity.
pub fn list(findings: &[Finding], style: Style) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Information => String::new(),
            severity => format!("{}: ", severity.name()),
        };
        let tone = match finding.severity {
            Severity::Information => None,
            Severity::Warning => Some(Tone::Warning),
            Severity::Critical => Some(Tone::Bad),
        };
        let mut head = format!("- {severity}");
        for (number, part) in finding.parts().iter().enumerate() {
            let line = format!("{head}{}", escape_controls(part));
            let line = match tone.filter(|_| number == 0) {
                Some(tone) => toned(&line, tone, style),
                None => line,
            };
            text.push_str(&(line + "\n"));
            "  ".clone_into(&mut head);
        }
    }
    fitted(&text, style)
}

/// Lines after their head, which is printed once for several findings. Further lines of one finding
/// are indented. Control characters in a line are escaped. On a terminal the first line of a
/// finding is wrapped; the others, and those below the heads `TYPED`, are commands, which must stay
/// whole.
pub fn lines_under_heads(findings: &[(&str, Vec<String>)], style: Style) -> String {
    let width = findings.iter().map(|(head, _)| head.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = "";
    for (head, lines) in findings {
        let mut shown = if *head == last { "" } else { head };
        for (number, line) in lines.iter().enumerate() {
            let set_in = if number == 0 { "" } else { "  " };
            let line = escape_controls(line);
            let line = format!("{shown:<width$}  {set_in}{line}");
            let is_typed = number > 0 || TYPED.contains(head);
            let line = if is_typed { line } else { fitted_behind(&line, width + 2, style) };
            text.push_str(&(line + "\n"));
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
