//! Lines of prose in documents are short enough to be read, and to be compared line by line.

use super::rules::Finding;

/// Most columns of a line of prose.
const COLUMNS_MAX: usize = 140;
/// A list of one line for each change, and a page that a chore writes.
const NOT_CHECKED: [&str; 2] = ["docs/changes.md", "docs/replay.md"];

/// Lines of prose that are too long. Tables, transcripts, pictures and HTML cannot be broken.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if NOT_CHECKED.contains(&path) {
        return Vec::new();
    }
    let mut is_transcript = false;
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_transcript = !is_transcript;
            continue;
        }
        let cannot_be_broken = ["|", "    ", "<", "!["].iter().any(|start| line.starts_with(start));
        let columns = line.chars().count();
        if !is_transcript && !cannot_be_broken && columns > COLUMNS_MAX {
            let message = format!("a line of {columns} columns, {COLUMNS_MAX} at most");
            findings.push(Finding::new("prose", path, at + 1, &message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_prose_are_found_and_no_others() {
        let long = "word ".repeat(40);
        let text = format!("{long}\n| {long}\n    {long}\n```\n{long}\n```\nshort\n{long}\n");
        let lines: Vec<usize> = check("docs/a.md", &text).iter().map(|it| it.line).collect();
        assert_eq!(lines, [1, 8]);
        assert!(check("docs/changes.md", &text).is_empty());
    }
}
