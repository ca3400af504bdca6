//! The map of a crate: each module that `lib.rs` declares has a line in its opening comment, so
//! that a newcomer finds it.

use super::rules::Finding;

/// The heading of the section.
const HEADING: &str = "//! # Map";

/// Modules without a line in the map, of the `lib.rs` of a crate.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.starts_with("crates/") || !path.ends_with("/src/lib.rs") {
        return Vec::new();
    }
    let opening = text.lines().take_while(|line| line.starts_with("//!"));
    let map: Vec<&str> = opening.skip_while(|line| *line != HEADING).collect();
    let has_line = |module: &str| {
        // A macro or a crate of the same name makes the link ambiguous without `mod@`.
        let public = ["", "mod@"].map(|kind| format!("//! - [`{kind}{module}`]"));
        let private = format!("//! - `{module}`: ");
        map.iter().any(|line| {
            line.starts_with(&private) || public.iter().any(|public| line.starts_with(public))
        })
    };
    let declared = text.lines().enumerate().filter_map(|(at, line)| Some((at, module(line)?)));
    let missing = declared.filter(|(_, module)| *module != "tests" && !has_line(module));
    let finding = |(at, module): (usize, &str)| {
        let message = format!("module {module} has no line in the map, below {HEADING:?}");
        Finding::new("map", path, at + 1, &message)
    };
    missing.map(finding).collect()
}

/// The name of a module that this line declares.
fn module(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_a_line_is_found() {
        let text = "//! What it is.\n//!\n//! # Map\n//!\n//! - [`one`]: the first.\n//! - `two`: \
                    the second.\n\npub mod one;\nmod two;\nmod three;\nmod tests;\n";
        let found = check("crates/a/src/lib.rs", text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].rule), (10, "map"));
        assert!(found[0].message.contains("three"), "{}", found[0].message);
        assert!(check("crates/a/src/one.rs", text).is_empty());
        assert_eq!(check("crates/a/src/lib.rs", &text.replace("# Map", "Map")).len(), 3);
    }
}
