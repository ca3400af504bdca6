//! A mutant: its place, and a name that stays valid when lines above it change.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

/// A small defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The file, the change, and the text of the line. Without the line's number, outcomes and
    /// reasons still belong to the mutant when lines are added above.
    pub name: String,
    /// The file below the tree.
    pub file: String,
    /// The line in the source as it is now, from 1.
    pub line: usize,
    start: Place,
    end: Place,
    replacement: String,
}

/// A position in a source: from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

/// A mutant as `cargo mutants --list --json` prints it.
#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    span: Span,
    replacement: String,
    genre: String,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

/// The mutants of a listing, whose sources lie below `tree`.
///
/// # Errors
/// When the listing is not such JSON, or a source cannot be read.
pub fn parse(json: &[u8], tree: &Path) -> anyhow::Result<Vec<Mutant>> {
    let listed: Vec<Listed> = serde_json::from_slice(json).context("read the list of mutants")?;
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut mutants = Vec::new();
    for one in listed {
        if !sources.contains_key(&one.file) {
            let path = tree.join(&one.file);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("read {}", path.display()))?;
            sources.insert(one.file.clone(), text);
        }
        let mut mutant = named(one, &sources);
        let times = seen.entry(mutant.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            mutant.name = format!("{} #{times}", mutant.name);
        }
        mutants.push(mutant);
    }
    Ok(mutants)
}

fn named(one: Listed, sources: &BTreeMap<String, String>) -> Mutant {
    let Place { line, column } = one.span.start;
    let place = format!(":{line}:{column}: ");
    let mut name = one.name.replacen(&place, ": ", 1);
    // A whole function has its name; an operator is known by its line.
    if one.genre != "FnValue" {
        let text = sources.get(&one.file).and_then(|source| source.lines().nth(line - 1));
        name = format!("{name} | {}", text.unwrap_or_default().trim());
    }
    Mutant {
        name: name.split_whitespace().collect::<Vec<_>>().join(" "),
        file: one.file,
        line,
        start: one.span.start,
        end: one.span.end,
        replacement: one.replacement,
    }
}

impl Mutant {
    /// The source with the mutant in it; `None` if the source has no such place.
    #[must_use]
    pub fn apply(&self, source: &str) -> Option<String> {
        let (start, end) = (offset(source, self.start)?, offset(source, self.end)?);
        let (front, behind) = (source.get(..start)?, source.get(end..)?);
        Some(format!("{front}{} /* mutant */{behind}", self.replacement))
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The byte offset of a position.
fn offset(source: &str, place: Place) -> Option<usize> {
    let line_start = match place.line.checked_sub(2) {
        None => 0,
        Some(nth) => source.match_indices('\n').nth(nth)?.0 + 1,
    };
    let rest = &source[line_start..];
    let column = place.column.checked_sub(1)?;
    let inside = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column)?;
    Some(line_start + inside)
}

/// A number of the mutants, picked by the seed. Adding or removing a mutant does not change the
/// order of the others, so that a campaign can continue after a change of the source.
#[must_use]
pub fn sample(mut all: Vec<Mutant>, seed: u64, count: usize) -> Vec<Mutant> {
    all.sort_by_cached_key(|mutant| (rank(seed, &mutant.name), mutant.name.clone()));
    all.truncate(count);
    all
}

/// FNV-1a of the name, stirred with the seed.
fn rank(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    testkit::samples::Random::numbered(seed).branch(hash).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn a() {\n    let ö = 1 + 2;\n    let ö = 1 + 2;\n}\n";

    fn listing() -> String {
        let plus = |line: usize| {
            format!(
                r#"{{"name": "a.rs:{line}:15: replace + with - in a", "file": "a.rs",
                "genre": "BinaryOperator", "replacement": "-", "package": "a",
                "span": {{"start": {{"line": {line}, "column": 15}},
                          "end": {{"line": {line}, "column": 16}}}}}}"#
            )
        };
        format!("[{}, {}]", plus(2), plus(3))
    }

    fn mutants() -> Vec<Mutant> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rs"), SOURCE).unwrap();
        parse(listing().as_bytes(), folder.path()).unwrap()
    }

    #[test]
    fn a_name_has_no_line_number_and_equal_names_are_counted() {
        let names: Vec<_> = mutants().into_iter().map(|mutant| mutant.name).collect();
        let name = "a.rs: replace + with - in a | let ö = 1 + 2;";
        assert_eq!(names, [name.to_string(), format!("{name} #2")]);
    }

    #[test]
    fn a_mutant_changes_its_place_only() {
        let mutants = mutants();
        let changed = mutants[1].apply(SOURCE).unwrap();
        let expected = SOURCE.replacen("1 + 2;\n}", "1 - /* mutant */ 2;\n}", 1);
        assert_eq!(changed, expected);
        assert_eq!(mutants[1].apply("fn a() {}\n"), None);
    }

    impl Mutant {
        /// A mutant for which only the name and the line matter.
        pub fn at(name: &str, line: usize) -> Mutant {
            let place = Place { line, column: 1 };
            Mutant {
                name: name.to_string(),
                file: "a.rs".to_string(),
                line,
                start: place,
                end: place,
                replacement: String::new(),
            }
        }
    }

    fn numbered(numbers: std::ops::Range<usize>) -> Vec<Mutant> {
        numbers.map(|number| Mutant::at(&format!("mutant {number}"), 1)).collect()
    }

    fn names(mutants: &[Mutant]) -> Vec<&str> {
        mutants.iter().map(|mutant| mutant.name.as_str()).collect()
    }

    #[test]
    fn a_seed_picks_the_same_mutants_whatever_their_order() {
        let picked = sample(numbered(0..500), 7, 60);
        let mut turned = numbered(0..500);
        turned.reverse();
        assert_eq!(names(&picked), names(&sample(turned, 7, 60)));
        assert_eq!(picked.len(), 60);
        assert_ne!(names(&picked), names(&sample(numbered(0..500), 8, 60)));
        assert_eq!(sample(numbered(0..5), 7, 60).len(), 5);
    }

    #[test]
    fn a_new_mutant_displaces_one_at_most() {
        let before = sample(numbered(0..500), 7, 60);
        let after = sample(numbered(0..501), 7, 60);
        let (before, after) = (names(&before), names(&after));
        let kept = before.iter().filter(|name| after.contains(name)).count();
        assert!(kept >= 59, "{kept} of 60 kept");
    }

    #[test]
    fn a_sample_is_spread_over_all_mutants() {
        let picked = sample(numbered(0..1000), 3, 200);
        let number = |mutant: &Mutant| mutant.name["mutant ".len()..].parse::<usize>().unwrap();
        for quarter in 0..4 {
            let inside = picked.iter().filter(|one| number(one) / 250 == quarter).count();
            assert!((30..=70).contains(&inside), "{inside} of 200 in quarter {quarter}");
        }
    }
}
