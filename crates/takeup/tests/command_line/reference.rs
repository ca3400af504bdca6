//! `docs/command-line.md` is generated from the same definitions as the help, and is the snapshot
//! of all help pages. `TAKEUP_UPDATE=1 cargo test -p takeup` writes it anew.

use std::fs;
use std::path::Path;

use crate::run;

const COMMANDS: [&str; 12] = [
    "backup",
    "restore",
    "list",
    "verify",
    "pipe",
    "plan",
    "probe",
    "sim",
    "bench",
    "compare",
    "report",
    "completions",
];

/// Commands of `takeup sim`.
const SIMULATIONS: [&str; 5] = ["tape", "disk", "status", "load", "eject"];

/// Commands of `takeup bench`.
const EXPERIMENTS: [&str; 4] = ["read", "disk", "tape", "put-back"];

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
        section(&format!("takeup {command}"), &[command, "--help"]);
    }
    for command in EXPERIMENTS {
        section(&format!("takeup bench {command}"), &["bench", command, "--help"]);
    }
    for command in SIMULATIONS {
        section(&format!("takeup sim {command}"), &["sim", command, "--help"]);
    }
    text
}

#[test]
fn the_reference_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let now = reference();
    if std::env::var_os("TAKEUP_UPDATE").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "docs/command-line.md is out of date: TAKEUP_UPDATE=1 writes it");
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
