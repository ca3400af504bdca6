//! The lab's test programs: built on the host by cargo and run one after the other in the guest;
//! and the results of each test from their output.
//!
//! The programs are ordinary test programs of the workspace that look for `TAKEUP_TAPE`; tests that
//! need a real tape are `#[ignore]`d elsewhere. Each program runs once per drive, in one thread,
//! since a drive has one tape; the drives are tested side by side. Tests that need no tape, but a
//! machine of their own, run once, before the drives. The time of a test is that between its line
//! and the one before, as the lines arrive here, by the host's clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::guest::quoted;

/// Package and name of every test program of the lab.
const PROGRAMS: [(&str, &str); 3] =
    [("device", "tape_lab"), ("sim", "tape_scenarios"), ("takeup", "tape_lab")];

/// Package and name of a test program, and the path of its tests that need the guest and no drive:
/// they set the machine's clock.
const WITHOUT_DRIVE: (&str, &str, &str) = ("takeup", "sets", "clock::in_the_guest");

/// All test programs.
pub struct Programs {
    on_drives: Vec<Program>,
    without_drive: Program,
}

/// A test program that was built.
struct Program {
    /// Package and name, `sim::tape_scenarios`.
    name: String,
    /// Its path, on the host and in the guest.
    path: PathBuf,
    /// All executables built with it, including itself.
    executables: Vec<PathBuf>,
}

/// Builds the test programs and all programs that they start.
///
/// # Errors
/// When cargo fails.
pub fn build(repository: &Path) -> anyhow::Result<Programs> {
    let (package, test, _) = WITHOUT_DRIVE;
    let mut tests: BTreeSet<&str> = PROGRAMS.iter().map(|(_, test)| *test).collect();
    tests.insert(test);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // As `cargo test --workspace` builds them: of single packages cargo selects other features of
    // the libraries, and builds them and all above them once more.
    let output = Command::new(cargo)
        .args(["test", "--quiet", "--locked", "--workspace", "--no-run", "--message-format=json"])
        .args(tests.iter().flat_map(|test| ["--test", test]))
        .current_dir(repository)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("start cargo")?;
    if !output.status.success() {
        bail!("cargo cannot build the tests of the lab");
    }
    let executables = executables(&output.stdout);
    let program = |(package, test): (&str, &str)| {
        let path = executable(&output.stdout, package, test)
            .with_context(|| format!("cargo built no program for test {test} of {package}"))?;
        let name = format!("{package}::{test}");
        Ok(Program { name, path, executables: executables.clone() })
    };
    Ok(Programs {
        on_drives: PROGRAMS.into_iter().map(program).collect::<anyhow::Result<_>>()?,
        without_drive: program((package, test))?,
    })
}

/// The path in cargo's message about the test program of that package and name.
fn executable(messages: &[u8], package: &str, test: &str) -> Option<PathBuf> {
    messages.split(|byte| *byte == b'\n').find_map(|line| {
        let message: serde_json::Value = serde_json::from_slice(line).ok()?;
        let target = &message["target"];
        let is_test = target["kind"].as_array()?.iter().any(|kind| kind == "test");
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let path = message["executable"].as_str()?;
        let is_it = is_test && target["name"] == test && folder.ends_with(package);
        is_it.then(|| PathBuf::from(path))
    })
}

/// The drives of the guest: their names, their devices, and the tests that they skip. Tests with
/// `on_sim_drive` in their path need faults or commands that tgtd does not have, and so on.
const DRIVES: [(&str, &str, &str); 2] =
    [("tgtd", "/dev/nst0", "on_sim_drive"), ("sim", "/dev/nst1", "on_tgtd_drive")];

/// Scenarios in a folder of `sim`: they do not use the lab's tape, and run on the host as well.
const ON_THE_HOST: &str = "folder::";

/// Every executable in cargo's messages.
fn executables(messages: &[u8]) -> Vec<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}

/// The values of `--drive`.
pub fn drive_names() -> [&'static str; 2] {
    DRIVES.map(|(name, _, _)| name)
}

/// Part of the path of tests that need the packages of the long lab.
const IN_THE_LONG_LAB: &str = "in_the_long_lab";

/// Which tests to run.
pub struct Tests<'name> {
    drive: Option<&'name str>,
    long: bool,
}

impl<'name> Tests<'name> {
    /// All tests that need only the usual packages, on one drive or on both.
    pub fn on(drive: Option<&'name str>) -> Tests<'name> {
        Tests { drive, long: false }
    }

    /// Tests of the long lab. They need no tape, and run once.
    pub fn long() -> Tests<'name> {
        Tests { drive: Some("sim"), long: true }
    }

    /// Arguments of the test programs for this choice.
    fn filters(&self, words: &[String]) -> String {
        let quoted: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        match (self.long, quoted.is_empty()) {
            (true, true) => IN_THE_LONG_LAB.to_owned(),
            (true, false) => quoted.join(" "),
            (false, _) => format!("--skip {IN_THE_LONG_LAB} {}", quoted.join(" ")),
        }
    }
}

/// The guest's command: the tests without a drive, then every program in turn, for one drive or
/// all, also after a failed one. The drives are tested side by side, one per processor of the
/// guest; each line starts with its drive.
pub fn command(programs: &Programs, tests: &Tests<'_>, words: &[String]) -> String {
    let mut script = String::new();
    let all = programs.on_drives.iter().chain([&programs.without_drive]);
    let executables: BTreeSet<&PathBuf> = all.flat_map(|program| &program.executables).collect();
    for executable in executables {
        // Opening a file for writing copies it to the layer in memory: a later build on the host
        // that replaces it is not seen by the running tests.
        script.push_str(&format!(": >>{}\n", quoted(&executable.display().to_string())));
    }
    let (_, _, path) = WITHOUT_DRIVE;
    if !tests.long && (words.is_empty() || words.iter().any(|word| path.contains(&**word))) {
        let program = &programs.without_drive;
        script.push_str(&format!(
            "{{ echo {PROGRAM_MARK}{}; {} --test-threads=1 --include-ignored {path} || \
             : >\"$LAB/failed\"; }} 2>&1 | sed -u 's/^/guest{DRIVE_END}/'\n",
            program.name,
            quoted(&program.path.display().to_string()),
        ));
    }
    let filters = tests.filters(words);
    let drives = DRIVES.iter().filter(|(drive, ..)| tests.drive.is_none_or(|it| it == *drive));
    for (drive, device, spared) in drives {
        script.push_str("{\n");
        for program in &programs.on_drives {
            script.push_str(&format!(
                "echo {PROGRAM_MARK}{}@{drive}\n\
                 TAKEUP_TAPE={device} TAKEUP_TAPE_OPERATOR=cartridge LAB_DRIVE={drive} \
                 {} --test-threads=1 --include-ignored --skip {spared} --skip {ON_THE_HOST} \
                 {filters} || : >\"$LAB/failed\"\n",
                program.name,
                quoted(&program.path.display().to_string()),
            ));
        }
        script.push_str(&format!("}} 2>&1 | sed -u 's/^/{drive}{DRIVE_END}/' &\n"));
    }
    script.push_str("wait\n! [ -e \"$LAB/failed\" ]\n");
    script
}

const PROGRAM_MARK: &str = "lab-program:";
/// Separates the name of a drive from a line about it.
const DRIVE_END: &str = "| ";

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// Program and test, `takeup::tape_lab append`.
    pub name: String,
    /// `ok`, `FAILED`, `ignored`.
    pub verdict: String,
    /// Time since the line before.
    pub time: Duration,
}

/// Reads the programs' output as it comes.
pub struct Watch {
    line: Vec<u8>,
    rounds: BTreeMap<String, Round>,
    /// All tests so far.
    pub results: Vec<TestResult>,
}

/// The state of the tests on one drive.
struct Round {
    program: String,
    last: Instant,
    last_test: String,
}

impl Watch {
    /// A reader without output yet.
    pub fn new() -> Watch {
        Watch { line: Vec::new(), rounds: BTreeMap::new(), results: Vec::new() }
    }

    /// Processes the next piece of output.
    pub fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.take_line(&String::from_utf8_lossy(&line));
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(*byte);
            }
        }
    }

    /// The last test of each drive when the output ended.
    pub fn unfinished(&self) -> String {
        let place = |round: &Round| format!("{} after {}", round.program, round.last_test);
        self.rounds.values().map(place).collect::<Vec<_>>().join(" and ")
    }

    fn take_line(&mut self, line: &str) {
        let Some((drive, line)) = line.split_once(DRIVE_END) else { return };
        if let Some(program) = line.strip_prefix(PROGRAM_MARK) {
            let last_test = "the start".to_owned();
            let round = Round { program: program.to_owned(), last: Instant::now(), last_test };
            self.rounds.insert(drive.to_owned(), round);
            return;
        }
        let Some(round) = self.rounds.get_mut(drive) else { return };
        if line.starts_with("running ") && line.contains(" test") {
            round.last = Instant::now();
        } else if let Some((name, verdict)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            let now = Instant::now();
            self.results.push(TestResult {
                name: format!("{} {name}", round.program),
                // The test's own output can come between its name and the verdict.
                verdict: verdict.split_whitespace().last().unwrap_or("").to_owned(),
                time: now - round.last,
            });
            round.last = now;
            name.clone_into(&mut round.last_test);
        }
    }
}

/// Longer lines are cut: no name of a test is this long.
const LINE_BYTES_MAX: usize = 4096;

/// The table of all tests: failed ones first, then by time.
pub fn table(results: &[TestResult]) -> String {
    let mut sorted: Vec<_> = results.iter().collect();
    sorted.sort_by_key(|result| (result.verdict == "ok", std::cmp::Reverse(result.time)));
    let width = sorted.iter().map(|result| result.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for result in sorted {
        text.push_str(&format!(
            "{:width$}  {:>7.1} s  {}\n",
            result.name,
            result.time.as_secs_f64(),
            result.verdict,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_in_pieces() {
        let mut watch = Watch::new();
        let output = "a| lab-program:sim::tape@a\nb| lab-program:sim::tape@b\na| \n\
            a| running 3 tests\na| test a::b ... ok\nb| running 1 test\nsh: noise\n\
            a| test c ... FAILED\nb| test a::b ... ok\na| noise\n\
            a| test d ... said something ok\na| test result: FAILED. 2 passed; 1 failed\n";
        for piece in output.as_bytes().chunks(7) {
            watch.take(piece);
        }
        let seen: Vec<_> = watch
            .results
            .iter()
            .map(|result| (result.name.as_str(), result.verdict.as_str()))
            .collect();
        let expected = [
            ("sim::tape@a a::b", "ok"),
            ("sim::tape@a c", "FAILED"),
            ("sim::tape@b a::b", "ok"),
            ("sim::tape@a d", "ok"),
        ];
        assert_eq!(seen, expected);
        let unfinished = "sim::tape@a after d and sim::tape@b after a::b";
        assert_eq!(watch.unfinished(), unfinished);
    }

    #[test]
    fn the_program_is_found_among_messages() {
        let message = |kind: &str, path: &str| {
            let target = format!(r#""target":{{"kind":["{kind}"],"name":"x"}}"#);
            let package = path.split('/').next_back().unwrap_or("").trim_end_matches('"');
            let manifest = format!(r#""manifest_path":"/crates/{package}/Cargo.toml""#);
            format!(
                "{{\"reason\":\"compiler-artifact\",{target},{manifest},\"executable\":{path}}}\n"
            )
        };
        let messages = [
            message("lib", "null"),
            message("bin", "\"/bin/a\""),
            message("test", "\"/test/b\""),
            message("test", "\"/test/a\""),
            "not json".to_owned(),
        ]
        .concat();
        let messages = messages.as_bytes();
        assert_eq!(executable(messages, "a", "x"), Some(PathBuf::from("/test/a")));
        assert_eq!(executable(messages, "b", "x"), Some(PathBuf::from("/test/b")));
        assert_eq!(executable(messages, "a", "y"), None);
        assert_eq!(executables(messages), ["/bin/a", "/test/b", "/test/a"].map(PathBuf::from));
    }
}
