//! Tests that this test runs in an environment without programs, where they must fail, be left out,
//! or pass; and the summary of the scripts.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

/// The result of the tests below when all needs are met.
fn has_run() {
    if let Some(path) = std::env::var_os("TAKEUP_TEST_RAN") {
        std::fs::write(path, "ran").unwrap();
    }
}

#[test]
#[ignore = "another test runs it"]
fn that_needs_a_browser() {
    testkit::require!(Chromium);
    has_run();
}

#[test]
#[ignore = "another test runs it"]
fn that_asserts_less_without_a_browser() {
    let _ = testkit::fully!(Chromium) && testkit::fully!(Chromium);
    has_run();
}

#[test]
#[ignore = "another test runs it"]
fn that_takes_long() {
    testkit::long_run!();
    has_run();
}

struct Ran {
    output: Output,
    has_run: bool,
    left_out: String,
}

fn run(test: &str, environment: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let (ran, left_out) = (folder.path().join("ran"), folder.path().join("left-out"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]);
    // No program is found in an empty folder.
    command.env("PATH", folder.path()).env("TAKEUP_TEST_RAN", &ran);
    command.env_remove("CI").env_remove("TAKEUP_TESTS_WITHOUT").env_remove("TAKEUP_LONG");
    command.env("TAKEUP_TESTS_LEFT_OUT", &left_out).envs(environment.iter().copied());
    let output = command.output().unwrap();
    let left_out = std::fs::read_to_string(left_out).unwrap_or_default();
    Ran { output, has_run: ran.exists(), left_out }
}

#[test]
fn a_missing_need_leaves_a_test_out_and_says_so() {
    let ran = run("that_needs_a_browser", &[]);
    assert!(ran.output.status.success() && !ran.has_run);
    let why = "chromium: No such file or directory (os error 2)";
    let line = format!("left out\truns::that_needs_a_browser\tchromium\t{why}\n");
    assert_eq!(ran.left_out, line);
    let errors = String::from_utf8(ran.output.stderr).unwrap();
    let said = format!("left out: runs::that_needs_a_browser: needs chromium: {why}\n");
    assert_eq!(errors, said, "although the test passed");
}

#[test]
fn a_missing_need_fails_under_ci_unless_it_is_waived() {
    let ran = run("that_needs_a_browser", &[("CI", "true")]);
    assert!(!ran.output.status.success() && !ran.has_run);
    let text = String::from_utf8(ran.output.stdout).unwrap();
    assert!(text.contains("this test needs chromium, which is not here: chromium: No"), "{text}");
    assert!(text.contains("hint: package chromium; or waive it"), "{text}");
    assert_eq!(ran.left_out, "");
    let waived = [("CI", "true"), ("TAKEUP_TESTS_WITHOUT", "fio,chromium")];
    let ran = run("that_needs_a_browser", &waived);
    assert!(ran.output.status.success() && !ran.has_run);
    assert_eq!(ran.left_out.lines().count(), 1);
    let wrong = [("TAKEUP_TESTS_WITHOUT", "chrome")];
    assert!(!run("that_needs_a_browser", &wrong).output.status.success());
}

#[test]
fn a_test_in_part_is_told_once_and_fails_under_ci() {
    let ran = run("that_asserts_less_without_a_browser", &[]);
    assert!(ran.output.status.success() && ran.has_run);
    assert!(ran.left_out.starts_with("in part\t"), "{}", ran.left_out);
    assert_eq!(ran.left_out.lines().count(), 1, "{}", ran.left_out);
    let ran = run("that_asserts_less_without_a_browser", &[("CI", "true")]);
    assert!(!ran.output.status.success() && !ran.has_run);
}

#[test]
fn a_long_run_is_left_out_by_name() {
    let ran = run("that_takes_long", &[("CI", "true")]);
    assert!(ran.output.status.success() && !ran.has_run);
    assert!(ran.left_out.contains("\ta long run\tTAKEUP_LONG=1"), "{}", ran.left_out);
    let ran = run("that_takes_long", &[("TAKEUP_LONG", "1")]);
    assert!(ran.has_run && ran.left_out.is_empty());
}

/// A script with these steps.
fn script(steps: &str) -> Output {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/steps");
    let script = format!("source {}\n{steps}\nsummary", file.display());
    Command::new("bash").args(["-c", &script]).output().unwrap()
}

#[test]
fn a_step_that_could_not_be_done_has_not_passed() {
    let output = script("look() { not_run advisories 'no network'; }\nstep a true\nstep b look");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{text}");
    assert_eq!(text.matches("==> not run: advisories: no network\n").count(), 2, "{text}");
    assert_eq!(text.lines().last(), Some("1 passed, 1 failed"), "{text}");
    let output = script("step a true\nstep b false\nstep c true");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && text.ends_with("1 passed, 1 failed\n"), "{text}");
}

/// The summary of a script with this output of `cargo test`.
fn summary(cargo: &str) -> Output {
    script(&format!("cargo() {{ {cargo}\n}}\nstep tests cargo test\nstep other true"))
}

#[test]
fn a_script_says_how_many_were_left_out_and_why() {
    let cargo = "
        printf 'left out\\ta::b\\tchromium\\tnot there\\n' >>\"$TAKEUP_TESTS_LEFT_OUT\"
        printf 'left out\\ta::c\\tfuse\\tno right\\n' >>\"$TAKEUP_TESTS_LEFT_OUT\"
        printf 'left out\\ta::d\\tchromium\\tnot there\\n' >>\"$TAKEUP_TESTS_LEFT_OUT\"
        printf 'in part\\ta::e\\troot\\tuser\\n' >>\"$TAKEUP_TESTS_LEFT_OUT\"
        echo 'test result: ok. 10 passed; 0 failed; 0 ignored'";
    let output = summary(cargo);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("==> 3 tests left out, 1 in part\n"), "{text}");
    assert!(text.contains("    2  left out: needs chromium: not there\n"), "{text}");
    assert!(text.contains("    1  in part: needs root: user\n"), "{text}");
    // A test that was left out has not passed.
    assert_eq!(text.lines().last(), Some("8 passed, 0 failed"), "{text}");
    let output = summary("echo 'test result: ok. 10 passed; 0 failed; 0 ignored'");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("==> no test was left out\n"), "{text}");
    assert_eq!(text.lines().last(), Some("11 passed, 0 failed"), "{text}");
}
