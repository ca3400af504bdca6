//! Links of Markdown files: every file and every heading they point to exists.
//!
//! Only links inside the repository are checked: a chore that needs the network could fail for
//! other reasons. Headings become anchors as on GitHub.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A broken link.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokenLink {
    /// Its line, from 1.
    pub line: usize,
    /// The link as written.
    pub target: String,
}

/// The broken links of the Markdown file at `path`, whose text is `text`.
pub fn broken_links(path: &Path, text: &str) -> Vec<BrokenLink> {
    let folder = path.parent().unwrap_or(Path::new("."));
    links(text)
        .into_iter()
        .filter(|(_, target)| !leads_somewhere(folder, text, target))
        .map(|(line, target)| BrokenLink { line, target })
        .collect()
}

fn leads_somewhere(folder: &Path, text: &str, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() {
        return anchors(text).iter().any(|known| known == anchor);
    }
    let path = folder.join(file);
    if anchor.is_empty() || path.extension().is_none_or(|ending| ending != "md") {
        return path.exists();
    }
    let Ok(other) = fs::read_to_string(&path) else { return false };
    anchors(&other).iter().any(|known| known == anchor)
}

/// Line and target of every `[text](target)`, outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, prose) in prose_lines(text) {
        let mut rest = prose.as_str();
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            // A title may follow the target.
            let target = rest[..end].split(' ').next().unwrap_or_default();
            links.push((line, target.trim_matches(['<', '>']).to_string()));
            rest = &rest[end..];
        }
    }
    links
}

/// Lines outside of fenced code, from 1, with inline code removed.
fn prose_lines(text: &str) -> Vec<(usize, String)> {
    let mut fence = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let marker = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, marker) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                // Even pieces between back quotes are prose, odd ones are code.
                let prose: Vec<&str> = line.split('`').step_by(2).collect();
                lines.push((index + 1, prose.concat()));
            }
            _ => {}
        }
    }
    lines
}

/// Anchors of the headings; the second of two equal ones ends in `-1`.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut fenced = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        let count = seen.entry(slug.clone()).or_default();
        anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found_and_good_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other.md"), "# Byte by byte: `ring`\n## Twice\n## Twice\n")
            .unwrap();
        let text = "\
# Here I am
[a](other.md) [b](other.md#byte-by-byte-ring) [c](#here-i-am) [d](https://example.org/x)
[e](missing.md) and [f](other.md#nowhere)
`[g](code.md)` [h](other.md#twice-1 \"title\") [i](#not-here)
```
[j](fenced.md)
# Not a heading
```
[k](#not-a-heading)
";
        let path = folder.path().join("this.md");
        let found: Vec<_> = broken_links(&path, text)
            .into_iter()
            .map(|broken| (broken.line, broken.target))
            .collect();
        let expected =
            [(3, "missing.md"), (3, "other.md#nowhere"), (4, "#not-here"), (9, "#not-a-heading")];
        assert_eq!(found, expected.map(|(line, target)| (line, target.to_string())));
    }
}
