//! Builds the copy with a mutant in it and runs the tests of its subject.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal};
use serde::Deserialize;

use super::copy::{Copy, UNFINISHED};
use super::mutant::Mutant;
use super::outcome::{Fate, Outcome};
use super::subject::Subject;

/// Far longer than any build.
const BUILD_MAX: Duration = Duration::from_secs(1800);
/// Limit for tests, as a multiple of their time without a mutant, and its minimum: other programs
/// may use the machine.
const SLOWER: f64 = 6.0;
const TESTS_MIN: Duration = Duration::from_secs(40);
/// Limit for a test program without a mutant.
const WITHOUT_MUTANT_MAX: Duration = Duration::from_secs(1800);
/// A mutant that allocates memory without end must not bring the machine down.
const MEMORY_BYTES: u64 = 12 << 30;

/// A test program built by cargo.
#[derive(Clone, Debug)]
struct Tests {
    /// A name such as `archive tar`, the same in every build.
    name: String,
    program: PathBuf,
    folder: PathBuf,
}

/// How long a test program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    End,
    /// Until a test has failed.
    Failure,
}

/// The end of a test program.
enum Ended {
    Passed,
    /// The names of the failed tests; `None` if the program ended before it printed them.
    Failed(Vec<String>),
    OutOfTime,
}

/// The tests of a subject, which pass without a mutant.
pub struct Trial<'a> {
    subject: Subject,
    copy: &'a Copy,
    folder: &'a Path,
    /// Time of each test program without a mutant, in seconds.
    usual: BTreeMap<String, f64>,
}

impl<'a> Trial<'a> {
    /// Runs the tests without a mutant, or uses the earlier times if the copy is the same.
    ///
    /// # Errors
    /// When the copy does not compile or a test fails: then mutants cannot be judged.
    pub fn begin(subject: Subject, copy: &'a Copy, folder: &'a Path) -> anyhow::Result<Self> {
        let kept = folder.join(format!("{subject}-usual.json"));
        let mut trial = Trial { subject, copy, folder, usual: BTreeMap::new() };
        if copy.is_new {
            for other in Subject::all() {
                // The kept times of all subjects are outdated now.
                let _ = std::fs::remove_file(folder.join(format!("{other}-usual.json")));
            }
        } else if let Ok(text) = std::fs::read(&kept) {
            trial.usual = serde_json::from_slice(&text).context("read what tests took")?;
            return Ok(trial);
        }
        println!("{subject}: building, and running the tests without a mutant");
        let Some(all) = trial.build()? else { bail!("{subject} does not compile") };
        for tests in all {
            let start = Instant::now();
            let mut ended = trial.run(&tests, &[], Until::End, WITHOUT_MUTANT_MAX)?;
            if let Ended::Failed(names) = &ended {
                println!("run again, failed without a mutant: {}", names.join(", "));
                ended = trial.run(&tests, &[], Until::End, WITHOUT_MUTANT_MAX)?;
            }
            match ended {
                Ended::Passed => {}
                Ended::Failed(names) => {
                    bail!("{}: fails without a mutant: {}", tests.name, names.join(", "))
                }
                Ended::OutOfTime => bail!("{}: does not end", tests.name),
            }
            println!("  {:>5.1} s  {}", start.elapsed().as_secs_f64(), tests.name);
            trial.usual.insert(tests.name, start.elapsed().as_secs_f64());
        }
        let text = serde_json::to_vec(&trial.usual).context("write what tests took")?;
        std::fs::write(&kept, text).with_context(|| format!("write {}", kept.display()))?;
        Ok(trial)
    }

    /// Tests one mutant. The copy is unchanged when this returns.
    ///
    /// # Errors
    /// When the source cannot be changed or a program cannot be started.
    pub fn put(&mut self, mutant: &Mutant) -> anyhow::Result<Outcome> {
        let path = self.copy.tree.join(&mutant.file);
        let source =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let mutated = mutant.apply(&source).with_context(|| format!("no place for {mutant}"))?;
        let mark = self.folder.join(UNFINISHED);
        create(&mark)?;
        std::fs::write(&path, mutated).with_context(|| format!("write {}", path.display()))?;
        let start = Instant::now();
        let mut outcome = Outcome {
            mutant: mutant.name.clone(),
            fate: Fate::Unviable,
            by: None,
            unsteady: Vec::new(),
            seconds: 0.0,
        };
        let result = self.look(&mut outcome);
        std::fs::write(&path, source).with_context(|| format!("write {}", path.display()))?;
        std::fs::remove_file(&mark).with_context(|| format!("remove {}", mark.display()))?;
        outcome.seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        result.map(|()| outcome)
    }

    /// Builds, and runs one test program after the other until one detects the mutant.
    fn look(&self, outcome: &mut Outcome) -> anyhow::Result<()> {
        let Some(mut all) = self.build()? else { return Ok(()) };
        outcome.fate = Fate::Missed;
        let usual = |tests: &Tests| self.usual.get(&tests.name).copied().unwrap_or(60.0);
        all.sort_by(|a, b| usual(a).total_cmp(&usual(b)));
        for tests in all {
            let limit = Duration::from_secs_f64(usual(&tests) * SLOWER).max(TESTS_MIN);
            if let Some((fate, by)) = self.seen_by(&tests, limit, outcome)? {
                outcome.fate = fate;
                outcome.by = Some(by);
                break;
            }
        }
        Ok(())
    }

    /// The result of one test program; `None` if it passes.
    fn seen_by(
        &self,
        tests: &Tests,
        limit: Duration,
        outcome: &mut Outcome,
    ) -> anyhow::Result<Option<(Fate, String)>> {
        for until in [Until::Failure, Until::End] {
            let names = match self.run(tests, &[], until, limit)? {
                Ended::Passed => return Ok(None),
                Ended::OutOfTime => return Ok(Some((Fate::Timeout, tests.name.clone()))),
                Ended::Failed(names) => names,
            };
            let Some(first) = names.first() else {
                return Ok(Some((Fate::Caught, tests.name.clone())));
            };
            let by = format!("{}: {first}", tests.name);
            // Another program on the machine can make a test fail, too.
            if !matches!(self.run(tests, &names, Until::End, limit)?, Ended::Passed) {
                return Ok(Some((Fate::Caught, by)));
            }
            outcome.unsteady.extend(names);
        }
        Ok(None)
    }

    /// Builds the tests; `None` if the copy does not compile.
    fn build(&self) -> anyhow::Result<Option<Vec<Tests>>> {
        let messages = self.folder.join("build.json");
        let said = self.folder.join("build.txt");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(["test", "--no-run", "--locked", "--message-format=json", "--color=never"])
            // Backtraces of panics are not needed, and linking is faster without.
            .args(["--config", "profile.dev.debug=false"])
            .args(self.subject.tests())
            .current_dir(&self.copy.tree)
            .env("CARGO_TARGET_DIR", &self.copy.build)
            .env("CARGO_INCREMENTAL", "1")
            .stdout(create(&messages)?)
            .stderr(create(&said)?);
        match wait(command, BUILD_MAX, || false).context("start cargo")? {
            Some(status) if status.success() => {}
            Some(_) => return Ok(None),
            None => bail!("the build did not end; see {}", said.display()),
        }
        let text = std::fs::read_to_string(&messages)
            .with_context(|| format!("read {}", messages.display()))?;
        Ok(Some(programs(&text)))
    }

    /// Runs a test program: all of its tests, or the named ones.
    fn run(
        &self,
        tests: &Tests,
        names: &[String],
        until: Until,
        limit: Duration,
    ) -> anyhow::Result<Ended> {
        let scratch = self.folder.join("scratch");
        let output = self.folder.join("tests.txt");
        std::fs::create_dir_all(&scratch)
            .with_context(|| format!("create {}", scratch.display()))?;
        let mut command = confined(&tests.program);
        if names.is_empty() {
            command.args(self.subject.filters(&tests.name));
        } else {
            command.arg("--exact").args(names);
        }
        let file = create(&output)?;
        command
            .current_dir(&tests.folder)
            .env("CARGO_MANIFEST_DIR", &tests.folder)
            .env("TMPDIR", &scratch)
            // Failing cases of a mutant must not be saved and tried with later mutants.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("INSTA_UPDATE", "no")
            .stdin(Stdio::null())
            .stderr(file.try_clone().context("clone a file")?)
            .stdout(file);
        let failed = || {
            let said = || std::fs::read(&output).unwrap_or_default();
            until == Until::Failure && !failures(&String::from_utf8_lossy(&said())).is_empty()
        };
        let ended = wait(command, limit, failed);
        let status = ended.with_context(|| format!("start {}", tests.name))?;
        // Removes what ended tests have left; the rest does no harm.
        let _ = std::fs::remove_dir_all(&scratch);
        let text = std::fs::read(&output).with_context(|| format!("read {}", output.display()))?;
        let names = failures(&String::from_utf8_lossy(&text));
        Ok(match status {
            None if names.is_empty() => Ended::OutOfTime,
            Some(status) if status.success() => Ended::Passed,
            _ => Ended::Failed(names),
        })
    }
}

/// A program in its own process group, with limited memory. As root it also has its own name
/// spaces: mounts and processes that a mutant leaves end with the program.
fn confined(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if rustix::process::geteuid().is_root() {
        command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    }
    command.arg("prlimit").arg(format!("--as={MEMORY_BYTES}")).arg(program);
    command
}

/// Waits for a program in its own process group, or until enough is known; `None` if it had to be
/// ended.
fn wait(
    mut command: Command,
    limit: Duration,
    is_enough: impl Fn() -> bool,
) -> std::io::Result<Option<ExitStatus>> {
    let mut child = command.process_group(0).spawn()?;
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_enough() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    end_group(&mut child)?;
    Ok(None)
}

fn end_group(child: &mut Child) -> std::io::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may have ended in the meantime.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    child.wait().map(|_| ())
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("create {}", path.display()))
}

/// A line of `cargo test --no-run --message-format=json`.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The test programs among cargo's messages.
fn programs(messages: &str) -> Vec<Tests> {
    let parse = |line: &str| {
        let message: Message = serde_json::from_str(line).ok()?;
        let target = message.target.filter(|_| message.profile.is_some_and(|one| one.test))?;
        let folder = message.manifest_path?.parent()?.to_path_buf();
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let kind = target.kind.first().map_or("", String::as_str);
        let name = format!("{package} {kind} {}", target.name);
        Some(Tests { name, program: message.executable?, folder })
    };
    messages.lines().filter_map(parse).collect()
}

/// The tests that failed, as libtest prints them.
fn failures(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.trim_end_matches(" - should panic").to_string())
    };
    output.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_read_from_the_output() {
        let output = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\
                      test d - should panic ... FAILED\nfailures:\n    a::c\n";
        assert_eq!(failures(output), ["a::c", "d"]);
        assert!(failures("memory allocation failed").is_empty());
    }

    #[test]
    fn programs_of_tests_are_told_from_libraries() {
        let artifact = |name: &str, kind: &str, is_test: bool, program: &str| {
            format!(
                r#"{{"reason": "compiler-artifact", "profile": {{"test": {is_test}}},
                "manifest_path": "/t/crates/flow/Cargo.toml", "executable": {program},
                "target": {{"name": "{name}", "kind": ["{kind}"]}}}}"#
            )
            .replace('\n', " ")
        };
        let messages = [
            artifact("flow", "lib", false, "null"),
            artifact("ring", "test", true, "\"/b/ring-1\""),
            r#"{"reason": "build-finished", "success": true}"#.to_string(),
        ];
        let programs = programs(&messages.join("\n"));
        assert_eq!(programs.len(), 1);
        assert_eq!(programs[0].name, "flow test ring");
        assert_eq!(programs[0].program, Path::new("/b/ring-1"));
        assert_eq!(programs[0].folder, Path::new("/t/crates/flow"));
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $! > \"$0\"; wait"]).arg(&file);
        assert!(wait(command, Duration::from_millis(500), || false).unwrap().is_none());
        let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        // The signal takes a moment; the test hangs if the process continues.
        let is_alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_alive() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut command = Command::new("false");
        command.stdin(Stdio::null());
        let status = wait(command, Duration::from_secs(60), || false).unwrap();
        assert_eq!(status.unwrap().code(), Some(1));
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        assert!(wait(command, Duration::MAX, || true).unwrap().is_none());
    }
}
