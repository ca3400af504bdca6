//! `docs/command-line.md` has all help pages, generated from the program; `docs/rules.md` has the
//! list of rules. `TAKEUP_UPDATE=1 cargo test -p takeup` updates both.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{document, run};

const COMMANDS: [&str; 25] = [
    "diagnose",
    "backup",
    "restore",
    "list",
    "verify",
    "catalog",
    "browse",
    "run",
    "status",
    "check-config",
    "units",
    "pipe",
    "plan",
    "probe",
    "watch",
    "explain",
    "capture",
    "sim",
    "tune",
    "bench",
    "compare",
    "report",
    "doctor",
    "rules",
    "completions",
];

/// Commands of `takeup sim`.
const SIMULATIONS: [&str; 5] = ["tape", "disk", "status", "load", "eject"];

/// Commands of `takeup tune`.
const CATALOGUES: [&str; 11] =
    ["add", "rebuild", "find", "ls", "sets", "du", "why", "diff", "forget", "jobs", "media"];
const TUNINGS: [&str; 7] = ["readahead", "queue", "set", "show", "revert", "confirm", "persist"];

/// Commands of `takeup bench`.
const EXPERIMENTS: [&str; 7] = ["read", "disk", "tape", "run", "import", "power", "put-back"];

fn help(arguments: &[&str]) -> String {
    let output = run(Path::new("/"), arguments);
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

fn reference() -> String {
    let mut text = String::from(
        "# Command line\n\nGenerated from the program: this is what `takeup COMMAND --help` \
         prints.\n",
    );
    let mut section = |title: &str, arguments: &[&str]| {
        let help = help(arguments);
        text.push_str(&format!("\n## {title}\n\n```text\n{help}\n```\n"));
    };
    section("takeup", &["--help"]);
    for command in COMMANDS {
        // The long help lists the rules, which have their own document.
        let help = if command == "rules" { "-h" } else { "--help" };
        section(&format!("takeup {command}"), &[command, help]);
    }
    for command in CATALOGUES {
        section(&format!("takeup catalog {command}"), &["catalog", command, "--help"]);
    }
    for command in EXPERIMENTS {
        section(&format!("takeup bench {command}"), &["bench", command, "--help"]);
    }
    for command in SIMULATIONS {
        section(&format!("takeup sim {command}"), &["sim", command, "--help"]);
    }
    for command in TUNINGS {
        section(&format!("takeup tune {command}"), &["tune", command, "--help"]);
    }
    text
}

/// `docs/rules.md`, from the output of `takeup rules --json`.
fn rules() -> String {
    let mut text = String::from(
        "# Rules\n\nThe rules behind all findings, generated from the program: `takeup help rules` \
         prints the same. Each finding in the output\nof `--json` names its rule, and has its \
         numbers, its sentence and its certainty.\n",
    );
    let words = |value: &Value| value.as_str().unwrap().replace('|', "\\|");
    for room in document(Path::new("/"), &["rules", "--json"])["rooms"].as_array().unwrap() {
        text.push_str(&format!("\n## {}\n\n", words(&room["title"])));
        text.push_str(&format!("Reported by `{}`.\n\n", words(&room["told_by"])));
        text.push_str("| rule | checks | reports when | source |\n|---|---|---|---|\n");
        for rule in room["rules"].as_array().unwrap() {
            let [id, looks_at, speaks_when, source] =
                ["id", "looks_at", "speaks_when", "source"].map(|name| words(&rule[name]));
            text.push_str(&format!("| `{id}` | {looks_at} | {speaks_when} | {source} |\n"));
        }
    }
    text
}

#[track_caller]
fn check(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("TAKEUP_UPDATE").is_some() {
        fs::write(&path, now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "docs/{name} is out of date: TAKEUP_UPDATE=1 writes it");
}

#[test]
fn the_reference_is_what_the_program_says() {
    check("command-line.md", &reference());
}

#[test]
fn the_list_of_rules_is_what_the_program_says() {
    check("rules.md", &rules());
    let help = help(&["help", "rules"]);
    assert!(help.contains("  limit.stage\n    checks "), "{help}");
}

/// The section of a manual page, as its text is typed.
fn section(page: &str, name: &str) -> Option<String> {
    let after = page.split(&format!(".SH {name}\n")).nth(1)?;
    let text = after.split("\n.SH ").next()?;
    let escapes = [
        ("\\-", "-"),
        ("\\*(Aq", "'"),
        ("\\(ga", "`"),
        ("\\(ti", "~"),
        ("\\(ha", "^"),
        ("\\e", "\\"),
    ];
    Some(escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)))
}

/// The text behind the options was one filled paragraph of a section EXTRA.
#[test]
fn every_manual_page_has_examples_as_typed_and_exit_status() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run(directory.path(), &["man", "."]).status.success());
    let mut pages = 0;
    for entry in fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let name = path.display();
        let examples = section(&page, "EXAMPLES").unwrap_or_else(|| panic!("{name}: no examples"));
        assert!(examples.starts_with(".EX\n") && examples.contains("takeup "), "{name}");
        let status =
            section(&page, "\"EXIT STATUS\"").unwrap_or_else(|| panic!("{name}: no exit status"));
        assert_eq!(status.matches(".TP 4").count(), 4, "{name}");
        assert!(!page.contains(".SH EXTRA") && !page.contains("Exit codes"), "{name}");
        pages += 1;
    }
    let below = [&CATALOGUES[..], &SIMULATIONS, &TUNINGS, &EXPERIMENTS].map(<[_]>::len);
    assert_eq!(pages, 1 + COMMANDS.len() + below.iter().sum::<usize>());
    let page = fs::read_to_string(directory.path().join("takeup-explain.1")).unwrap();
    let typed = "takeup explain 'pg_dump shop | gzip > shop.gz' --json | \
                 jq '.limit, .findings[].sentence'\n";
    assert!(section(&page, "EXAMPLES").unwrap().contains(typed), "{page}");
}

/// `-h` is read on a screen; `--help` has everything.
#[test]
fn the_short_help_fits_on_a_screen() {
    const LINES_MAX: usize = 50;
    let below = |name: &'static str, commands: &'static [&'static str]| {
        commands.iter().map(move |command| vec![name, command, "-h"])
    };
    let of_takeup = COMMANDS.iter().map(|command| vec![*command, "-h"]);
    let all = of_takeup
        .chain(below("catalog", &CATALOGUES))
        .chain(below("bench", &EXPERIMENTS))
        .chain(below("sim", &SIMULATIONS))
        .chain(below("tune", &TUNINGS));
    for command in std::iter::once(vec!["-h"]).chain(all) {
        let lines = help(&command).lines().count();
        assert!(lines <= LINES_MAX, "takeup {} has {lines} lines", command.join(" "));
    }
}

#[test]
fn every_command_has_help_a_manual_page_and_completions() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["man", "."]);
    assert!(output.status.success(), "{output:?}");
    for command in COMMANDS {
        let page = directory.path().join(format!("takeup-{command}.1"));
        assert!(page.exists(), "{}", page.display());
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = run(directory.path(), &["completions", shell]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        COMMANDS.iter().for_each(|command| assert!(text.contains(command), "{shell} {command}"));
    }
}
