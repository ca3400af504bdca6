//! The rules of style that a machine can check in one file.
//!
//! Each rule takes the text of a file and returns findings; none reads a file or prints. Checks of
//! rustc, clippy and rustfmt are not repeated.

use super::source;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the rule, as in the list of exceptions.
    pub rule: &'static str,
    /// Path from the root of the repository.
    pub path: String,
    /// Line, from 1; 0 when it concerns the whole file.
    pub line: usize,
    /// The function, if any.
    pub name: Option<String>,
    /// The problem.
    pub message: String,
}

impl Finding {
    /// A finding about no particular function.
    pub fn new(rule: &'static str, path: &str, line: usize, message: &str) -> Self {
        Self { rule, path: path.to_string(), line, name: None, message: message.to_string() }
    }
}

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
/// Names without a meaning.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager"];
/// Notes to oneself. In two pieces, so that this file passes its own check.
const NOTES: &[&str] = &[concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
/// Words that talk down to the reader.
const BELITTLING: &[&str] = &[concat!("sim", "ply"), concat!("obvi", "ously")];
const UNFINISHED: &[&str] = &[concat!("to", "do!"), concat!("unimple", "mented!")];

/// The old way of tests to skip. In two pieces, see above.
const LEFT_OUT: &[&str] = &[
    concat!("\"not te", "sted"),
    concat!("\"not r", "un"),
    concat!("\"skip", "ped:"),
    concat!("\"left o", "ut:"),
    concat!("geteuid().is_", "root()"),
];

/// All rules for a Rust file.
pub fn check_rust(path: &str, text: &str) -> Vec<Finding> {
    let code = source::code_only(text);
    let mut findings = check_columns(path, text);
    findings.extend(check_words(path, text));
    if !text.starts_with("//!") {
        let message = "must open with //!: what it is, why it is so, what is not here";
        findings.push(Finding::new("opening", path, 1, message));
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let message = format!("{lines} lines, more than {FILE_LINES_MAX}: look for a seam");
        findings.push(Finding::new("file-lines", path, 0, &message));
    }
    findings.extend(check_functions(path, &code));
    findings.extend(check_tests(path, text, &code));
    findings.extend(check_names(path, &code));
    findings.extend(check_programs(path, text, &code));
    findings.extend(check_printers(path, &code));
    for word in UNFINISHED {
        for (at, _) in code.match_indices(word) {
            let message = format!("{word} is not finished work");
            findings.push(Finding::new("unfinished", path, source::line_of(&code, at), &message));
        }
    }
    for at in source::words(&code, "unsafe") {
        let message = "outside of the places that may hold unsafe code";
        findings.push(Finding::new("unsafe", path, source::line_of(&code, at), message));
    }
    findings
}

/// Rules for a Markdown file, links aside.
pub fn check_markdown(path: &str, text: &str) -> Vec<Finding> {
    check_words(path, text)
}

/// Rules for a shell script.
pub fn check_script(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = check_columns(path, text);
    findings.extend(check_words(path, text));
    findings
}

/// Raw measurements must not contain paths of the machine that they come from.
pub fn check_records(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| line.contains("\"/"))
        .map(|(index, _)| Finding::new("machine-path", path, index + 1, "holds an absolute path"))
        .collect()
}

/// Names of dependencies that the document does not mention.
pub fn unnamed_dependencies(names: &[String], document: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let mentioned = |name: &str| {
        document.match_indices(name).any(|(start, _)| {
            let before = document[..start].chars().next_back();
            let after = document[start + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    };
    names.iter().filter(|name| !mentioned(name)).cloned().collect()
}

/// Names of dependencies that the sources of a crate do not mention.
pub fn unused_dependencies(names: &[String], sources: &str) -> Vec<String> {
    let identifier = |name: &String| name.replace('-', "_");
    let identifiers: Vec<String> = names.iter().map(identifier).collect();
    let unused = unnamed_dependencies(&identifiers, sources);
    names.iter().filter(|name| unused.contains(&identifier(name))).cloned().collect()
}

/// Keys of `[workspace.dependencies]` in the manifest `text`.
pub fn workspace_dependencies(text: &str) -> Vec<String> {
    let section = text.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| !key.starts_with(['#', ' ']))
        .map(|(key, _)| key.trim().to_string())
        .collect()
}

fn check_columns(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().map(|line| line.chars().count()).enumerate();
    lines
        .filter(|(_, columns)| *columns > COLUMNS_MAX)
        .map(|(index, columns)| {
            let message = format!("{columns} columns, more than {COLUMNS_MAX}");
            Finding::new("line-columns", path, index + 1, &message)
        })
        .collect()
}

fn check_words(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |text: &str, word: &str, message: &str| {
        for at in source::words(text, word) {
            let message = format!("{word}: {message}");
            findings.push(Finding::new("word", path, source::line_of(text, at), &message));
        }
    };
    for word in NOTES {
        find(text, word, "finish it or open an issue");
    }
    // Only ASCII letters change their case, so byte offsets stay the same.
    let lowercase = text.to_ascii_lowercase();
    for word in BELITTLING {
        find(&lowercase, word, "what is easy for one is not for another");
    }
    findings
}

fn check_functions(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in source::functions(code) {
        let mut find = |rule, message: String| {
            let mut finding = Finding::new(rule, path, function.line, &message);
            finding.name = Some(function.name.clone());
            findings.push(finding);
        };
        if function.lines > FUNCTION_LINES_MAX {
            let (name, lines) = (&function.name, function.lines);
            find("function-lines", format!("{name}: {lines} lines, over {FUNCTION_LINES_MAX}"));
        }
        let mut parameters = function.parameters.split(',');
        let is_boolean =
            |text: &str| text.rsplit_once(':').is_some_and(|(_, t)| t.trim() == "bool");
        if function.is_public && parameters.any(is_boolean) {
            find("boolean", format!("{}: a boolean parameter, make it an enum", function.name));
        }
    }
    findings
}

/// Output of the product goes through `base::escape::Printable`, so that no control sequence
/// reaches a terminal.
fn check_printers(path: &str, code: &str) -> Vec<Finding> {
    let Some(product) = product(path, code) else { return Vec::new() };
    let message = "a way to a terminal: print with to_standard_output or to_standard_error";
    let printed = product.lines().enumerate().filter(|(_, line)| {
        let is_stream = ["io::stdout()", "io::stderr()"].iter().any(|it| line.contains(it));
        let is_asked =
            ["is_terminal", "colour(", "style(", "stdio::"].iter().any(|it| line.contains(it));
        is_stream && !is_asked
    });
    printed.map(|(index, _)| Finding::new("printer", path, index + 1, message)).collect()
}

/// The part of a file that is shipped.
fn product<'a>(path: &str, code: &'a str) -> Option<&'a str> {
    let (krate, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = file.ends_with("tests.rs") || file.contains("tests/");
    // A module of tests inside the file is at its end; a module in another file, or an import, may
    // be anywhere.
    let is_module = |at: &usize| {
        let item = code[*at..].trim_start_matches("#[cfg(test)]").trim_start();
        item.starts_with("mod ")
            && item.find(['{', ';']).is_some_and(|at| item[at..].starts_with('{'))
    };
    let tests = code.match_indices("#[cfg(test)]").map(|(at, _)| at).find(is_module);
    let end = tests.unwrap_or(code.len());
    (!NOT_SHIPPED.contains(&krate) && !is_test).then_some(&code[..end])
}

/// Crates with `src` that are not shipped.
const NOT_SHIPPED: &[&str] = &["peers", "testkit"];

/// The product starts programs by an absolute path: a name would be searched in PATH, which may
/// contain the working directory, where anybody could have placed a program.
fn check_programs(path: &str, text: &str, code: &str) -> Vec<Finding> {
    let Some(product) = product(path, code) else { return Vec::new() };
    let starts = product.match_indices("Command::new(");
    let by_name = starts.map(|(at, word)| at + word.len()).filter(|&at| {
        let argument = text.get(at..).unwrap_or_default().trim_start();
        !argument.starts_with("\"/")
    });
    let message = "a program that is looked up: machine::programs::command, or an absolute path";
    by_name.map(|at| Finding::new("program", path, source::line_of(code, at), message)).collect()
}

/// Tests that return early look like passed tests, so they report a missing need with
/// `testkit::needs`.
fn check_tests(path: &str, text: &str, code: &str) -> Vec<Finding> {
    // `testkit` tests itself, and this list is here.
    if path.starts_with("crates/testkit/") {
        return Vec::new();
    }
    let is_test_file = path.contains("/tests/") || path.ends_with("/tests.rs");
    let begin = if is_test_file { Some(0) } else { code.find("#[cfg(test)]") };
    let Some(begin) = begin else { return Vec::new() };
    let mut findings = Vec::new();
    let mut find = |line: usize, name: Option<&str>, message: &str| {
        let mut finding = Finding::new("leaves-early", path, line, message);
        finding.name = name.map(str::to_owned);
        findings.push(finding);
    };
    let lines: Vec<&str> = code.lines().collect();
    let functions = source::functions(code);
    let first_line = source::line_of(code, begin);
    let inside =
        |line: usize| functions.iter().rfind(|it| (it.line..it.line + it.lines).contains(&line));
    for (at, line) in lines.iter().enumerate().skip(first_line - 1) {
        let function = inside(at + 1);
        let leaves = function.is_some_and(|function| is_test(&lines, function.line))
            && source::words(line, "return").any(|at| gives_nothing(&line[at + 6..]));
        if leaves {
            let message = "a test that ends early looks like one that passed: testkit::require!";
            find(at + 1, function.map(|function| &*function.name), message);
        }
    }
    for word in LEFT_OUT {
        for (at, _) in text.match_indices(word).filter(|(at, _)| *at >= begin) {
            let line = source::line_of(text, at);
            let message = format!("{word}: what a test needs is said by testkit::require!");
            find(line, inside(line).map(|function| &*function.name), &message);
        }
    }
    findings
}

/// Whether `return` has no value; a closure in a test may have one.
fn gives_nothing(rest: &str) -> bool {
    let rest = rest.trim_start();
    let prints = ["println!", "eprintln!"].iter().any(|word| rest.starts_with(word));
    rest.is_empty() || rest.starts_with([';', ',', '}']) || prints
}

/// Whether the attributes above the line of a function, from 1, make it a test.
fn is_test(lines: &[&str], line: usize) -> bool {
    let above = lines[..line - 1].iter().rev();
    let mut attributes = above
        .map(|line| line.trim())
        .take_while(|line| line.is_empty() || line.starts_with("#[") || line.ends_with(")]"));
    attributes.any(|line| line == "#[test]")
}

fn check_names(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |name: &str, line| {
        if EMPTY_NAMES.contains(&name) {
            let message = format!("a module named {name} can hold anything, so it will");
            findings.push(Finding::new("module-name", path, line, &message));
        }
    };
    let pieces: Vec<&str> = path.trim_end_matches(".rs").rsplit('/').take(2).collect();
    for piece in pieces {
        find(piece, 0);
    }
    for at in source::words(code, "mod") {
        let rest = code[at + 3..].trim_start();
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        // `mod name;` has its own file, which is recognised by its path.
        if let Some(end) = end
            && rest[end..].trim_start().starts_with('{')
        {
            find(&rest[..end], source::line_of(code, at));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(findings: &[Finding]) -> Vec<(&'static str, usize)> {
        findings.iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    fn check(text: &str, expected: &[(&'static str, usize)]) {
        assert_eq!(rules(&check_rust("crates/flow/src/ring.rs", text)), expected, "{text}");
    }

    #[test]
    fn a_tidy_file_has_no_findings() {
        check("//! The ring.\n\n/// Opens.\npub fn open(config: &Config) {}\n", &[]);
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        check("// The ring.\n", &[("opening", 1)]);
        check(&format!("//! Ring.\n// {}\n", "ü".repeat(98)), &[("line-columns", 2)]);
        check(&format!("//! Ring.\n// {}\n", "ü".repeat(97)), &[]);
        check("//! Ring.\npub fn open(a: u8, fast: bool) {}\n", &[("boolean", 2)]);
        check("//! Ring.\nfn open(fast: bool) {}\npub fn f(g: fn(bool) -> bool) {}\n", &[]);
        check("//! Ring.\nmod helpers {}\nmod tests {}\n", &[("module-name", 2)]);
        check("//! Ring.\nfn f() { unsafe { g() } }\n", &[("unsafe", 2)]);
        check("//! Ring.\n// unsafe is a word here.\n", &[]);
        check(&format!("//! Ring.\nfn f() {{ {}() }}\n", UNFINISHED[0]), &[("unfinished", 2)]);
        check(&format!("//! Ring.\n\n// {}: later\n", NOTES[0]), &[("word", 3)]);
        check(&format!("//! Ring, {}.\n", BELITTLING[0].to_uppercase()), &[("word", 1)]);
        let util = check_rust("crates/flow/src/util.rs", "//! Ring.\n");
        assert_eq!(rules(&util), [("module-name", 0)]);
    }

    #[test]
    fn the_product_starts_programs_by_an_absolute_path() {
        let found = |path: &str, text: &str| {
            let text = format!("//! Code.\n{text}\n");
            rules(&check_rust(path, &text)).contains(&("program", 2))
        };
        let product = "crates/tree/src/accounts.rs";
        assert!(found(product, "fn f() { Command::new(\"getent\"); }"));
        assert!(found(product, "fn f() { std::process::Command::new(program); }"));
        assert!(!found(product, "fn f() { Command::new(\"/bin/sh\"); }"));
        assert!(!found(product, "// Command::new(program)"));
        assert!(!found("crates/tree/tests/tree/scan.rs", "fn f() { Command::new(\"rm\"); }"));
        assert!(!found("crates/peers/src/lib.rs", "fn f() { Command::new(cargo); }"));
        let test = "#[cfg(test)] mod tests { fn f() { Command::new(\"true\"); } }";
        assert!(!found(product, test));
        // Tests in their own file do not end the code.
        let elsewhere = "#[cfg(test)] mod tests; fn f() { Command::new(\"getent\"); }";
        assert!(found(product, elsewhere));
    }

    #[test]
    fn the_product_prints_through_its_printers() {
        let found = |text: &str| {
            let text = format!("//! Code.\n{text}\n");
            rules(&check_rust("crates/takeup/src/run.rs", &text)).contains(&("printer", 2))
        };
        assert!(found("fn f() { std::io::stdout().write_all(b\"\"); }"));
        assert!(found("fn f() { let mut out = io::stderr().lock(); }"));
        assert!(!found("fn f() { std::io::stderr().is_terminal() }"));
        assert!(!found("fn f() { let it = colour(&std::io::stdout()); }"));
        assert!(!found("// io::stdout()"));
        assert!(!found("#[cfg(test)] mod tests { fn f() { io::stdout(); } }"));
    }

    #[test]
    fn tests_do_not_end_early() {
        let check = |path: &str, body: &str, expected: &[(&'static str, usize)]| {
            let text = format!("//! Tests.\n#[test]\n#[ignore = \"x\"]\nfn f() {{\n{body}\n}}\n");
            assert_eq!(rules(&check_rust(path, &text)), expected, "{body}");
        };
        let tests = "crates/flow/tests/flow/ring.rs";
        let found = [("leaves-early", 5)];
        check(tests, "testkit::require!(Fuse);", &[]);
        check(tests, "if !is_there() { return; }", &found);
        check(tests, "let Some(drive) = Drive::new() else { return };", &found);
        check(tests, "match fio() { Err(_) => return, Ok(it) => it.run() }", &found);
        check(tests, &format!("say({} here\");", LEFT_OUT[0]), &found);
        check(tests, &format!("let is_root = {};", LEFT_OUT[4]), &found);
        check("crates/loads/src/disk/tests.rs", "return;", &found);
        check("crates/testkit/tests/runs.rs", "return;", &[]);
        check(tests, "return eprintln!(\"no fio\");", &found);
        check(tests, "let f = |x| { return Some(x) };", &[]);
        // Programs may check who runs them, and functions may return.
        check("crates/tree/src/capture.rs", LEFT_OUT[4], &[]);
        let helper = "//! Tests.\nfn f() -> u8 {\nreturn 1;\n}\n#[test]\nfn g() { f(); }\n";
        assert_eq!(rules(&check_rust(tests, helper)), []);
        let mixed = "//! Code.\nfn f() { let Some(_) = g() else { return }; }\n#[cfg(test)]\n\
                     mod tests {\n#[test]\nfn h() { return; }\n}\n";
        let found = [("leaves-early", 6)];
        assert_eq!(rules(&check_rust("crates/flow/src/ring.rs", mixed)), found);
    }

    #[test]
    fn lengths_count_from_signature_to_brace() {
        let function = |lines: usize| format!("//! R.\nfn f() {{\n{}}}\n", "\n".repeat(lines - 2));
        check(&function(70), &[]);
        check(&function(71), &[("function-lines", 2)]);
        check(&format!("//! R.\n{}", "\n".repeat(599)), &[]);
        check(&format!("//! R.\n{}", "\n".repeat(600)), &[("file-lines", 0)]);
    }

    #[test]
    fn dependencies_must_be_named_as_whole_words() {
        let names = ["zstd", "clap", "clap_complete", "io-uring"].map(str::to_string);
        let document = "We use `clap_complete`, and zstd-safe through `io-uring`.";
        assert_eq!(unnamed_dependencies(&names, document), ["zstd", "clap"]);
        let manifest =
            "[workspace.dependencies]\na = \"1\"\n\nb = { path = \"b\" }\n[profile.dev]\nc = 1\n";
        assert_eq!(workspace_dependencies(manifest), ["a", "b"]);
    }

    #[test]
    fn dependencies_must_be_used() {
        let names = ["io-uring", "zstd", "libc"].map(str::to_string);
        let sources =
            "use io_uring::opcode;\nuse zstd_frame::Frame;\nfn libc_is() { libc::read() }";
        assert_eq!(unused_dependencies(&names, sources), ["zstd"]);
    }

    #[test]
    fn records_hold_no_paths() {
        let found = check_records("benchmarks/a.ndjson", "{\"a\":\"b/c\"}\n{\"a\":\"/srv/c\"}\n");
        assert_eq!(rules(&found), [("machine-path", 2)]);
    }
}
