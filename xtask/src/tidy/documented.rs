//! What is public says what it is, and no comment repeats a name.
//!
//! The compiler's `missing_docs` asks for a comment on each field and variant, too, which gives
//! comments such as "The path." above `path`. Here functions, types, constants and modules need a
//! comment; fields and variants have one where it says more than their names do: a unit, a source,
//! a bound, what `None` means.

use super::rules::Finding;

/// What needs a comment when it is `pub`.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
/// What may stand between `pub` and the word above.
const QUALIFIERS: [&str; 4] = ["const", "async", "unsafe", "extern"];
/// Words that say nothing beside the name of a field.
const EMPTY_WORDS: [&str; 34] = [
    "a", "all", "an", "and", "are", "as", "at", "by", "for", "from", "had", "has", "how", "if",
    "in", "is", "it", "its", "many", "number", "of", "on", "s", "that", "the", "their", "them",
    "they", "this", "to", "was", "what", "whether", "which",
];
/// Words that say nothing of what is called `source` or `cause`.
const WORDS_FOR_CAUSES: [&str; 6] = ["cause", "error", "failed", "kernel", "why", "underlying"];

/// Public items of a crate's source without a comment, and comments that repeat the name.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.contains("/src/") || path.contains("/tests/") {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "mod tests {").collect();
    // Clap makes help of comments.
    let is_help = text.contains("clap::");
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let comment = comment_above(&lines, at);
        if comment.is_empty()
            && let Some(name) = public_item(line)
            && !has_own_file(line)
        {
            let message = format!("`{name}` is public and has no comment");
            findings.push(Finding::new("documented", path, at + 1, &message));
        }
        if let [only] = comment[..]
            && let Some(names) = field_or_variant(line)
            && !is_help
            && says_nothing(lines[only], names)
        {
            let message = format!("repeats the name: {}", lines[only].trim());
            findings.push(Finding::new("repeats", path, only + 1, &message));
        }
    }
    findings
}

/// The lines of the documentation of the item at line `at`, behind its attributes.
fn comment_above(lines: &[&str], at: usize) -> Vec<usize> {
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("#[doc");
    let mut above = Vec::new();
    let mut is_in_attribute = false;
    for above_at in (0..at).rev() {
        let line = lines[above_at].trim();
        if is_comment(line) {
            above.push(above_at);
        } else if above.is_empty() && (is_in_attribute || line.ends_with(']') || line == ")]") {
            // An attribute may have several lines: it begins where `#[` stands.
            is_in_attribute = !line.starts_with("#[");
        } else {
            break;
        }
    }
    above
}

/// The name of what a line makes public: `pub`, not `pub(crate)`.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let mut words = rest.split([' ', '<', '(', ':', ';', '{', '=']).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    let mut next = words.next()?;
    while QUALIFIERS.contains(&word) && (ITEMS.contains(&next) || QUALIFIERS.contains(&next)) {
        word = next;
        next = words.next()?;
    }
    // What `new` gives is said by the type.
    (ITEMS.contains(&word) && next != "new").then_some(next)
}

/// A module in a file of its own has its comment there.
fn has_own_file(line: &str) -> bool {
    line.trim_start().starts_with("pub mod ") && line.ends_with(';')
}

/// Name and type of a field, or name and contents of a variant.
fn field_or_variant(line: &str) -> Option<&str> {
    let line = line.trim();
    let name = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "));
    let name = name.unwrap_or(line);
    let end = name.find(|character: char| !character.is_alphanumeric() && character != '_')?;
    let is_keyword =
        ["fn", "impl", "let", "use", "struct", "enum", "trait", "type", "const", "mod"]
            .contains(&&name[..end]);
    let rest = &name[end..];
    let is_field = rest.starts_with(": ") && line.ends_with(',');
    let is_variant = name.starts_with(|first: char| first.is_ascii_uppercase())
        && (rest == "," || rest.starts_with('(') || rest.starts_with(" {"));
    (!is_keyword && (is_field || is_variant)).then_some(name)
}

/// Whether every word of `comment` is a word of `names`, or an empty one.
fn says_nothing(comment: &str, names: &str) -> bool {
    let comment = comment.trim().trim_start_matches('/');
    if comment.contains(['`', '[', '#']) || comment.chars().any(|letter| letter.is_ascii_digit()) {
        return false;
    }
    let known = words_of(names);
    let is_cause = known.iter().any(|word| word == "source" || word == "error");
    words_of(comment).iter().all(|word| {
        EMPTY_WORDS.contains(&word.as_str())
            || known.contains(word)
            || (is_cause && WORDS_FOR_CAUSES.contains(&word.as_str()))
    })
}

/// The words of `some_name`, `SomeName` and of a sentence, in lower case and without plural.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in text.chars() {
        if !character.is_alphabetic() || (was_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        if character.is_alphabetic() {
            words.last_mut().expect("begins with one").extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    let singular =
        |word: &String| word.strip_suffix('s').filter(|rest| rest.len() > 2).map(str::to_owned);
    words.iter().map(|word| singular(word).unwrap_or_else(|| word.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, usize)> {
        check("crates/a/src/b.rs", text).iter().map(|it| (it.rule, it.line)).collect()
    }

    #[test]
    fn public_items_without_a_comment_are_found() {
        let text = "pub fn a() {}

/// Does it.
#[must_use]
#[cfg_attr(
    test,
    inline
)]
pub const fn b() {}
pub(crate) struct C;
pub enum D {
}
pub mod e;
pub use f::G;
pub const H: u8 = 0;
pub fn new() -> D {}
";
        let rule = "documented";
        assert_eq!(found(text), [(rule, 1), (rule, 11), (rule, 15)]);
        assert!(check("crates/a/tests/b.rs", "pub fn a() {}\n").is_empty());
    }

    #[test]
    fn comments_that_repeat_a_name_are_found() {
        let text = "/// A file.
pub struct File {
    /// The paths.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The size, in bytes.
    pub size_bytes: u64,
    /// The kernel's error.
    source: io::Error,
    /// `None` without one.
    pub name: Option<String>,
    /// Random reads.
    RandomReads,
    /// Of the path.
    /// And more.
    pub more: Path,
}
";
        let rule = "repeats";
        assert_eq!(found(text), [(rule, 3), (rule, 7), (rule, 9), (rule, 13)]);
        assert!(check("crates/a/src/b.rs", &format!("use clap::Args;\n{text}")).is_empty());
    }
}
