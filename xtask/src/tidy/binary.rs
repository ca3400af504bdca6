//! The binary is terminal, progress and exit codes: what a command does is in `service`, its words
//! are in `report`, its options in `arguments`. A ceiling keeps that so.

use super::rules::Finding;

/// Most lines of code of the binary, without comments, blank lines and unit tests.
const CODE_LINES_MAX: usize = 8_000;
/// Its folder.
const FOLDER: &str = "crates/takeup/src/";

/// A finding where the binary has grown too large.
pub fn check(sources: &[(String, String)]) -> Vec<Finding> {
    let own = sources.iter().filter(|(path, _)| path.starts_with(FOLDER));
    let lines: usize = own.map(|(_, text)| code_lines(text)).sum();
    if lines <= CODE_LINES_MAX {
        return Vec::new();
    }
    let message = format!(
        "the binary has {lines} lines of code, {CODE_LINES_MAX} at most: move policy to service, \
         words to report, options to arguments"
    );
    vec![Finding::new("binary", FOLDER, 0, &message)]
}

fn code_lines(text: &str) -> usize {
    let before_tests = text.lines().take_while(|line| *line != "mod tests {");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    before_tests.filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_counted_and_neither_comments_nor_tests() {
        let text = "//! A file.\n\nuse std::fs;\n\n/// A function.\nfn a() {\n    // Why.\n    \
                    b();\n}\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        assert_eq!(code_lines(text), 5);
        let file = |path: &str, lines: usize| (path.to_owned(), "a();\n".repeat(lines));
        assert!(check(&[file("crates/takeup/src/main.rs", CODE_LINES_MAX)]).is_empty());
        assert!(check(&[file("crates/service/src/lib.rs", CODE_LINES_MAX + 1)]).is_empty());
        let found = check(&[file("crates/takeup/src/main.rs", CODE_LINES_MAX + 1)]);
        assert!(found[0].message.contains("8001 lines"), "{}", found[0].message);
    }
}
