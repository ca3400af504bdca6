//! Files of a crate that use each other in a circle: three may; more cannot be understood or moved
//! one by one.
//!
//! A file uses another if it imports from it or names a path into it. A re-export (`pub use`) does
//! not count: it only defines where a name is found. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::Finding;
use super::source;

/// Files in one circle.
const FILES_MAX: usize = 3;

/// A module by its path in the crate; the root is empty.
type Module = Vec<String>;

/// Circles of more files than allowed, in all crates of `files`: paths with their texts.
pub fn check(files: &[(String, String)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, (&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        let Some((krate, module)) = place(path) else { continue };
        crates.entry(krate).or_default().insert(module, (path, text));
    }
    crates.values().flat_map(circles).collect()
}

fn place(path: &str) -> Option<(&str, Module)> {
    let (krate, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module: Module = match file.strip_suffix(".rs")? {
        "lib" | "main" => Vec::new(),
        inner => inner.split('/').map(str::to_owned).collect(),
    };
    let is_test = module.iter().any(|name| name == "tests");
    (!is_test).then_some((krate, module))
}

fn circles(modules: &BTreeMap<Module, (&str, &str)>) -> Vec<Finding> {
    let names: Vec<&Module> = modules.keys().collect();
    let number = |module: &[String]| names.iter().position(|name| name.as_slice() == module);
    let mut reaches: Vec<BTreeSet<usize>> = modules
        .iter()
        .map(|(module, (_, text))| {
            let code = source::code_only(text);
            let used = uses(module, without_tests(&code));
            used.iter().filter_map(|path| longest(path, &number)).collect()
        })
        .collect();
    // The relation is transitive.
    for through in 0..names.len() {
        let further = reaches[through].clone();
        for from in &mut reaches {
            if from.contains(&through) {
                from.extend(&further);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for at in 0..names.len() {
        let circle: Vec<usize> = (0..names.len())
            .filter(|other| reaches[at].contains(other) && reaches[*other].contains(&at))
            .collect();
        if circle.len() > FILES_MAX && seen.insert(circle.clone()) {
            let paths: Vec<&str> = circle.iter().map(|&it| modules[names[it]].0).collect();
            let message = format!("{} files use each other: {}", paths.len(), paths.join(", "));
            findings.push(Finding::new("circle", paths[0], 1, &message));
        }
    }
    findings
}

/// The module that a path leads into: the longest prefix that is a module.
fn longest(path: &[String], number: &impl Fn(&[String]) -> Option<usize>) -> Option<usize> {
    (0..=path.len()).rev().find_map(|length| number(&path[..length]))
}

/// The code without a module of tests at its end.
fn without_tests(code: &str) -> &str {
    let is_module = |at: &usize| {
        let mut item = code[*at..].trim_start();
        while let Some(rest) = item.strip_prefix("#[") {
            item = rest.split_once("]\n").map_or("", |(_, rest)| rest.trim_start());
        }
        let item = item.strip_prefix("pub(crate) ").unwrap_or(item);
        let body =
            item.strip_prefix("mod ").and_then(|item| item.find(['{', ';']).map(|at| &item[at..]));
        body.is_some_and(|body| body.starts_with('{'))
    };
    let tests = code.match_indices("#[cfg(test)]").map(|(at, _)| at).find(is_module);
    &code[..tests.unwrap_or(code.len())]
}

/// Paths in this crate that a module names, from the root of the crate.
fn uses(module: &Module, code: &str) -> Vec<Module> {
    let mut paths = Vec::new();
    for at in source::words(code, "use") {
        let line_start = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = code[line_start..at].trim();
        let Some((tree, _)) = code[at + 3..].split_once(';') else { continue };
        if before.is_empty() {
            expand(tree.trim(), &[], &mut paths);
        }
    }
    for word in ["crate", "super"] {
        for at in source::words(code, word) {
            let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
            let path = code[at..].split(|letter| !is_path(letter)).next().unwrap_or_default();
            let line_start = code[..at].rfind('\n').map_or(0, |end| end + 1);
            // Imports were handled above, and a visibility does not use a module.
            let is_import = code[line_start..at].contains("use ");
            let is_within = code[..at].ends_with("in ") || code[..at].ends_with('(');
            let is_inside = code[..at].ends_with("::");
            let is_visibility = is_within && code[line_start..at].contains("pub(");
            if path.contains("::") && !is_import && !is_inside && !is_visibility {
                paths.push(segments(path));
            }
        }
    }
    paths.iter().filter_map(|path| from_root(module, path)).collect()
}

fn segments(path: &str) -> Module {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// All paths of a tree of imports.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Module>) {
    let Some((head, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        paths.push([before, &segments(path)].concat());
        return;
    };
    let before = [before, &segments(head)].concat();
    let inner = inner.rsplit_once('}').map_or("", |(inner, _)| inner);
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    expand(part, &before, paths);
                }
                start = (at + 1).min(inner.len());
            }
            _ => {}
        }
    }
}

fn from_root(module: &Module, path: &Module) -> Option<Module> {
    match path.first().map(String::as_str)? {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            let above = &module[..module.len().checked_sub(up)?];
            Some([above, &path[up..]].concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(of: &[(&str, &str)]) -> Vec<(String, String)> {
        let path = |name: &str| format!("crates/a/src/{name}.rs");
        of.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
    }

    #[test]
    fn four_files_in_a_circle_are_found_and_three_are_not() {
        let four = [
            ("one", "use crate::two::Two;"),
            ("two", "use super::three::{\n    self, Three,\n};"),
            ("three", "fn three() { crate::four::four(); }"),
            ("four", "use crate::{one::One, other};"),
            ("lib", "pub use one::One;\nmod one;"),
        ];
        let found = check(&files(&four));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with("4 files use each other"), "{found:?}");
        assert!(check(&files(&four[..3])).is_empty());
        let mut three = four;
        three[2].1 = "fn three() { crate::one::one(); }";
        assert!(check(&files(&three)).is_empty());
    }

    #[test]
    fn re_exports_and_tests_and_comments_are_no_uses() {
        let four = [
            ("one", "pub use super::two::Two;"),
            ("two", "// crate::three::three()\nuse crate::three::Three;"),
            ("three", "#[cfg(test)]\n#[allow(x)]\nmod tests {\n    use crate::four::Four;\n}"),
            ("four", "pub(in crate::one) fn four() {}\nuse super::one;"),
            ("four/five", "fn five() { super::super::one::one(); }"),
            ("one/one", "use crate::four::five;"),
        ];
        assert!(check(&files(&four)).is_empty());
    }
}
