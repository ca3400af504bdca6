//! `takeup explain` of pipelines that are built to have a known limit.
//!
//! All of them run for ever, and the test ends them: what they do does not depend on the speed of
//! the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::{document, run, takeup};

/// How long each pipeline is watched.
const SPAN: &str = "1200ms";

/// A source that sends a little and then sleeps.
const PACED_SOURCE: &str = "sh -c 'while :; do head -c 64k /dev/zero; sleep 0.02; done'";
/// A target that reads a little and then sleeps.
const PACED_TARGET: &str = "sh -c 'while :; do head -c 64k >/dev/null; sleep 0.02; done'";

/// Pipelines and the stage that limits each.
fn known() -> Vec<(String, u64)> {
    let source = PACED_SOURCE;
    let target = PACED_TARGET;
    let zeros = "cat /dev/zero";
    let noise = "cat noise noise noise noise noise noise noise noise noise noise noise noise";
    let small_pipe = "perl -e 'fcntl(STDOUT, 1031, 4096); exec \"cat\", \"/dev/zero\"'";
    [
        // A slow source.
        (format!("{source} | cat >/dev/null"), 1),
        (format!("{source} | gzip -1 | cat >/dev/null"), 1),
        (format!("{source} | dd obs=512k | gzip | cat >/dev/null"), 1),
        ("takeup pipe --from /dev/zero --rate-limit 8M | gzip -1 >/dev/null".to_owned(), 1),
        // A slow compressor.
        (format!("{zeros} | gzip -9 | cat >/dev/null"), 2),
        (format!("{zeros} | gzip -9 >/dev/null"), 2),
        (format!("{zeros} | cat | gzip -9 | cat >/dev/null"), 3),
        (format!("{noise} | gzip -6 | dd bs=64k of=/dev/null"), 2),
        (format!("{zeros} | xz -6 -T1 | cat >/dev/null"), 2),
        (format!("{zeros} | xz -6 -T1 | gzip | cat >/dev/null"), 2),
        (format!("{noise} | zstd -19 -T1 | cat >/dev/null"), 2),
        ("gzip -9 -c /dev/zero | cat | cat >/dev/null".to_owned(), 1),
        // A slow target.
        (format!("{zeros} | {target}"), 2),
        (format!("{zeros} | cat | {target}"), 3),
        (format!("{zeros} | takeup pipe --rate-limit 8M >/dev/null"), 2),
        (format!("{zeros} | pv -qL 4M >/dev/null"), 2),
        (format!("{zeros} | pv -qL 4M | cat >/dev/null"), 2),
        (format!("cat /dev/urandom | gzip -1 | {target}"), 3),
        // Small blocks.
        ("dd if=/dev/zero bs=16 | cat >/dev/null".to_owned(), 1),
        (format!("{zeros} | dd bs=16 of=/dev/null"), 2),
        (format!("{zeros} | dd ibs=16 obs=512k | cat >/dev/null"), 2),
        // Loops, groups, and programs that run beside the pipeline.
        ("while :; do gzip -9 -c noise; done | cat >/dev/null".to_owned(), 1),
        (format!("{zeros} | (gzip -9) | cat >/dev/null"), 2),
        (format!("sleep 9 & {zeros} | gzip -9 | cat >/dev/null"), 2),
        // A small pipe before a slow stage.
        (format!("{small_pipe} | gzip -9 | cat >/dev/null"), 2),
    ]
    .into()
}

/// A folder with the files that the pipelines read.
fn scene() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let noise = testkit::samples::noise(7, 16 << 20);
    fs::write(directory.path().join("noise"), noise).unwrap();
    directory
}

/// The pipelines find `takeup` by its name.
fn path() -> String {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_takeup"));
    format!("{}:{}", own.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

fn explained(directory: &Path, arguments: &[&str]) -> Value {
    let mut command = takeup();
    command.env("PATH", path()).current_dir(directory).arg("explain").args(arguments);
    let output = command.args(["--shell", "/bin/sh", "--json"]).output().unwrap();
    let tries = arguments.contains(&"--try");
    assert!(output.status.success() || (tries && output.status.code() == Some(2)), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The times of a stage add up to its total, and bytes pass from one stage to the next.
fn is_consistent(found: &Value, line: &str) {
    let stages = found["stages"].as_array().unwrap();
    let used: f64 = stages.iter().map(|it| it["processor_seconds"].as_f64().unwrap()).sum();
    let cores = found["cores"].as_f64().unwrap();
    // Less than 1 %, plus the time of the start; one sample can be above.
    let looking = found["looking_seconds"].as_f64().unwrap();
    let one = looking / found["looks"].as_f64().unwrap();
    let allowed = 0.01 * found["seconds"].as_f64().unwrap() + 0.05 + 4.0 * one;
    assert!(looking <= allowed, "{line}: {found:#}");
    assert!(used <= cores * found["seconds"].as_f64().unwrap() + 0.1, "{line}: {found:#}");
    for stage in stages {
        let seconds = |name: &str| stage[format!("{name}_seconds")].as_f64().unwrap();
        let kinds = ["working", "starved", "blocked", "device", "other"].map(seconds);
        let sum: f64 = kinds.iter().sum();
        assert!((sum - seconds("lifetime")).abs() < 1e-6, "{line}: {stage}");
        assert!(kinds.iter().all(|&it| it >= 0.0), "{line}: {stage}");
    }
    // No pipeline is faster than its slowest stage alone; a program with a rate limit catches up
    // after a wait.
    let busy: f64 = stages
        .iter()
        .map(|it| {
            let of = |kind: &str| it[format!("{kind}_seconds")].as_f64().unwrap();
            ["working", "device", "other"].map(of).iter().sum::<f64>() - of("clock") - of("flush")
        })
        .fold(0.0, f64::max);
    let floor = found["longest_stage_seconds"].as_f64();
    assert!(floor.is_none_or(|floor| floor >= busy - 1e-6), "{line}: {found:#}");
    has_advice_or_a_reason(found, line);
}

/// Every finding has an action, or the reason why there is none.
fn has_advice_or_a_reason(found: &Value, line: &str) {
    let findings = found["findings"].as_array().unwrap();
    let says =
        findings.iter().any(|it| it["action"].is_string() || it["rule"] == "pipeline.no-advice");
    assert!(says, "{line}: {found:#}");
}

/// A program that holds a rate is no faster than that, however it bursts and wherever in the
/// pipeline it is.
#[test]
fn no_time_is_told_below_the_rate_that_is_held() {
    let scene = scene();
    let noise = "cat noise noise";
    // The line, and the seconds that 32 MiB take at its rate.
    let held = [
        (format!("({noise} | pv -qL 16m) | gzip -1 >/dev/null"), 2.0),
        (format!("{noise} | pv -qL 16m | gzip -1 >/dev/null"), 2.0),
        (format!("{noise} | pv -qL 16m | gzip -9 >/dev/null"), 2.0),
        (format!("{noise} | pv -qL 12m | zstd -19 -T1 >/dev/null"), 2.66),
        (format!("{noise} | gzip -1 | pv -qL 16m >/dev/null"), 2.0),
        (format!("{noise} | mbuffer -q -m 1M -R 16M | gzip -1 >/dev/null"), 2.0),
    ];
    for (line, seconds) in held {
        let found = explained(scene.path(), &[&line]);
        // It lets a little pass at its start.
        let least = 0.85 * seconds;
        let floor = found["longest_stage_seconds"].as_f64();
        assert!(floor.is_none_or(|floor| floor >= least), "{line}: {found:#}");
        has_advice_or_a_reason(&found, &line);
        if let Some(predicted) = found["predicted"].as_object() {
            let command = predicted["command"].as_str().unwrap_or("");
            let is_left_out = !command.contains("16") && !command.contains("12m");
            let is_below = predicted["seconds"].as_f64().unwrap() < least;
            assert!(is_left_out || !is_below, "{line}: {found:#}");
        }
    }
}

/// Without quotes, the shell has already taken the line apart.
#[test]
fn words_without_quotes_are_the_line() {
    let scene = scene();
    fs::write(scene.path().join("a b"), "content").unwrap();
    let found = explained(scene.path(), &["tar", "cf", "/dev/zero", "a b", "noise"]);
    assert_eq!(found["pipeline"], "tar cf /dev/zero 'a b' noise");
    assert_eq!(found["failed"], Value::Null);
    let output = run(scene.path(), &["explain", "cat noise | cat", "more"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("takeup: unexpected argument \"more\"\nhint: "), "{text}");
}

/// A predicted gain can be tried.
#[test]
fn a_forecast_for_dd_and_tar_can_be_typed() {
    let scene = scene();
    let copies = [
        ("dd if=noise bs=64k | dd bs=64k iflag=fullblock of=copy", "of=copy"),
        ("dd if=noise of=copy bs=64k", "of=copy"),
        ("tar -cf copy noise", "-cf copy"),
    ];
    for (line, target) in copies {
        let stages = pipeline::line::stages(line).unwrap();
        let changed = pipeline::line::buffered(&stages).unwrap();
        assert!(!changed.contains(target), "{changed}");
        // The first run left its file.
        for line in [line, &changed] {
            let found = explained(scene.path(), &[line]);
            assert_eq!(found["failed"], Value::Null, "{line}");
            assert!(scene.path().join("copy").exists(), "{line}");
        }
    }
}

/// A virtual drive as `drive/nst0`, until this is dropped.
struct Drive {
    child: Child,
}

impl Drive {
    /// Each write takes two milliseconds beside its bytes, whatever else the machine does.
    fn mount(directory: &Path) -> Drive {
        let folder = directory.join("drive");
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
        command.args(["sim", "tape"]).arg(&folder).args(["--drive", "lto3", "--compression"]);
        command.args(["off", "--set", "command_overhead_ns=2ms"]);
        command.args(["--set", "synchronise_ns=1ms"]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let drive = Drive { child };
        for _ in 0..1000 {
            if folder.join("status").exists() {
                return drive;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the drive did not appear");
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).output();
        let _ = self.child.wait();
    }
}

/// Small writes to a tape are counted, and larger ones are proposed with the options of each
/// program.
#[test]
fn small_writes_to_a_tape_are_named() {
    testkit::require!(Fuse);
    let scene = scene();
    fs::write(scene.path().join("few"), testkit::samples::noise(8, 4 << 20)).unwrap();
    fs::write(scene.path().join("list"), "few\n").unwrap();
    let drive = Drive::mount(scene.path());
    let lines = [
        ("tar -b 20 -cf drive/nst0 noise", 10240.0, "tar -b 128 -cf drive/nst0 noise"),
        (
            "cat noise | dd obs=10k of=drive/nst0",
            10240.0,
            "cat noise | dd ibs=64k obs=64k of=drive/nst0",
        ),
        (
            "cpio -o -B -H newc -O drive/nst0 <list",
            5120.0,
            "cpio -C 65536 -o -H newc -O drive/nst0 <list",
        ),
    ];
    for (line, bytes, command) in lines {
        let found = explained(scene.path(), &[line]);
        let findings = found["findings"].as_array().unwrap();
        let small = findings.iter().find(|it| it["rule"] == "pipeline.small-tape-writes");
        let small = small.unwrap_or_else(|| panic!("{line}: {found:#}"));
        let each = small["numbers"][0]["value"].as_f64().unwrap();
        assert!((each / bytes - 1.0).abs() < 0.02, "{line}: {found:#}");
        assert_eq!(found["predicted"]["command"], command, "{found:#}");
        let [before, after] =
            [&found, &found["predicted"]].map(|it| it["seconds"].as_f64().unwrap());
        assert!(after < 0.7 * before, "{line}: {found:#}");
    }
    drop(drive);
}

/// A program that is not installed is not proposed.
#[test]
fn a_program_that_is_not_installed_is_not_named() {
    let scene = scene();
    let programs = scene.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let folders = path();
    for program in ["cat", "gzip"] {
        let mut all = std::env::split_paths(&folders).map(|it| it.join(program));
        let found = all.find(|it| it.exists()).unwrap();
        std::os::unix::fs::symlink(found, programs.join(program)).unwrap();
    }
    let mut command = takeup();
    command.env("PATH", &programs).current_dir(scene.path()).arg("explain");
    command.args(["cat /dev/zero | gzip -1 | cat >/dev/null", "--for", SPAN, "--json"]);
    let output = command.args(["--shell", "/bin/sh"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains("pigz"), "{text}");
    let found: Value = serde_json::from_str(&text).unwrap();
    has_advice_or_a_reason(&found, "gzip without pigz");
}

#[test]
fn the_stage_that_is_known_to_be_slow_is_named() {
    let scene = scene();
    let known = known();
    assert!(known.len() >= 20);
    for (line, limit) in known {
        let mut found = explained(scene.path(), &[&line, "--for", SPAN]);
        if found["limit"] != limit {
            // Beside other tests, this pipeline may get hardly any core for a second.
            found = explained(scene.path(), &[&line, "--for", "5s"]);
        }
        assert_eq!(found["limit"], limit, "{line}: {found:#}");
        is_consistent(&found, &line);
        if line.starts_with("perl") {
            let rules: Vec<&str> = rules(&found);
            assert!(rules.contains(&"pipeline.small-pipe"), "{found:#}");
        }
    }
}

fn rules(found: &Value) -> Vec<&str> {
    let findings = found["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

/// A pipeline that another process has started.
struct Running {
    shell: Child,
}

impl Running {
    fn start(directory: &Path, line: &str) -> Running {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).env("PATH", path()).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running { shell: command.process_group(0).spawn().unwrap() }
    }

    /// Its stages, once all of them run their programs.
    fn stages(&self, count: usize) -> Vec<u32> {
        for _ in 0..500 {
            let path = format!("/proc/{0}/task/{0}/children", self.shell.id());
            let text = fs::read_to_string(path).unwrap();
            let all: Vec<u32> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
            let is_line = |pid: &u32| {
                let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                words.starts_with("/bin/sh\0-c") || words.is_empty()
            };
            if all.len() == count && !all.iter().any(is_line) {
                return all;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the pipeline did not begin");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.shell.id());
        // The pipeline may have ended already.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).output();
        let _ = self.shell.wait();
    }
}

/// Any of its processes can be named; all pipelines of three stages in a long run.
#[test]
fn what_runs_already_is_attached_to() {
    let scene = scene();
    let all = known().into_iter().filter(|(line, _)| {
        line.matches(" | ").count() == 2 && !line.contains('&') && !line.contains('(')
    });
    let few = if testkit::needs::is_long_run(module_path!()) { usize::MAX } else { 4 };
    for (number, (line, limit)) in all.take(few).enumerate() {
        let running = Running::start(scene.path(), &line);
        let found = attached(running.stages(3)[number % 3]);
        assert_eq!(found["stages"].as_array().unwrap().len(), 3, "{line}: {found:#}");
        assert_eq!(found["limit"], limit, "{line}: {found:#}");
    }
}

/// A named pipe works like one of the shell, whatever its descriptors are.
#[test]
fn a_pipe_with_a_name_joins_stages() {
    let scene = scene();
    // Each side opens the pipe itself: neither end is a standard input or output.
    let running = Running::start(
        scene.path(),
        "mkfifo named; tee named </dev/zero >/dev/null & sha512sum named & wait",
    );
    for pid in running.stages(2) {
        let found = attached(pid);
        assert_eq!(found["stages"].as_array().unwrap().len(), 2, "{found:#}");
        assert_eq!(found["stages"][1]["command"], "sha512sum named", "{found:#}");
        assert_eq!(found["limit"], 2, "{found:#}");
    }
}

fn attached(pid: u32) -> Value {
    let mut command = takeup();
    let output = command.args(["explain", "--pid", &pid.to_string(), "--for", SPAN, "--json"]);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A stage that its CPU quota stops looks as if it ran.
#[test]
fn a_stage_that_a_quota_holds_back_is_told_so() {
    testkit::require!(ProcessorQuota);
    let scene = scene();
    let quota = testkit::needs::ControlGroup::with_a_fifth_of_a_core().unwrap();
    let running = Running::start(scene.path(), "cat /dev/zero | gzip -1 | cat >/dev/null");
    let stages = running.stages(3);
    let check = |is_held: bool| {
        let found = attached(stages[0]);
        assert_eq!(found["limit"], 2, "{found:#}");
        assert_eq!(rules(&found).contains(&"pipeline.quota"), is_held, "{found:#}");
    };
    check(false);
    quota.holds(stages[1]).unwrap();
    check(true);
    drop(running);
}

/// explain holds no end of the pipe: the writer gets SIGPIPE when its reader has gone, and the
/// reader gets the end of the data.
#[test]
fn a_reader_that_is_killed_meanwhile_ends_the_pipeline() {
    let scene = scene();
    let mut running = Running::start(scene.path(), "yes | cat >/dev/null");
    let stages = running.stages(2);
    let mut command = takeup();
    command.args(["explain", "--pid", &stages[0].to_string(), "--json"]);
    let looking = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let killed = Command::new("kill").args(["-KILL", &stages[1].to_string()]).status().unwrap();
    assert!(killed.success());
    // Both end by themselves: the writer by SIGPIPE, explain because no stage is left.
    assert!(running.shell.wait().is_ok());
    let output = looking.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Resources that a process used before explain started do not count, nor do explain's own.
#[test]
fn a_shell_that_asks_about_itself_does_nothing() {
    let scene = scene();
    let line = "gzip -9 -c noise noise >/dev/null; takeup explain --pid $$ --for 500ms --json";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{line}; true")]).env("PATH", path());
    let output = command.current_dir(scene.path()).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stage = &found["stages"][0];
    assert!(stage["processor_seconds"].as_f64().unwrap() < 0.4, "{found:#}");
    assert!(stage["other_seconds"].as_f64().unwrap() > 0.0, "{found:#}");
}

/// An interrupt prints the results so far, and leaves no processes or files.
#[test]
fn stopped_it_tells_what_it_saw() {
    let scene = scene();
    let mut command = takeup();
    command.args(["explain", "--shell", "/bin/sh", "cat /dev/zero | gzip -9 | cat >/dev/null"]);
    command.current_dir(scene.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("2 gzip -9"), "{text}");
}

/// Text in quotes is printed as it must be typed.
#[test]
fn a_line_is_shown_as_it_was_typed() {
    let scene = scene();
    let line = r"sed 's/\./x/' noise | gzip -9 >/dev/null";
    let output = run(scene.path(), &["explain", "--shell", "/bin/sh", line]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("{line}\n")), "{text}");
}

#[test]
fn a_change_is_tried_and_its_gain_told() {
    let scene = scene();
    let line = "cat noise noise noise noise | gzip -9 | cat >/dev/null";
    let found = explained(scene.path(), &[line, "--try", "--baseline"]);
    assert_eq!(found["limit"], 2, "{found:#}");
    let cores = found["cores"].as_u64().unwrap();
    assert!(found["user_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(
        found["baseline"]["pipeline"],
        "cat noise noise noise noise | gzip -9 | cat >/dev/null"
    );
    // With one core, or where another program uses the second, nothing is proposed.
    assert!(cores > 1 || found["predicted"].is_null());
    if let Some(predicted) = found["predicted"].as_object() {
        assert_eq!(predicted["command"], "cat noise noise noise noise | pigz -9 | cat >/dev/null");
        let tried = &found["tried"];
        assert_eq!(tried["pipeline"], "cat noise noise noise noise | pigz -9 | cat >/dev/null");
        assert_eq!(tried["failed"], Value::Null);
    }
}

#[test]
fn what_cannot_be_explained_says_why() {
    let scene = scene();
    let said = |arguments: &[&str]| {
        let arguments = [&["explain", "--shell", "/bin/sh"], arguments].concat();
        let output = run(scene.path(), &arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text.trim().to_owned())
    };
    let (code, text) = said(&["nosuchprogram | cat"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("no program nosuchprogram"), "{text}");
    let (code, text) = said(&["cat nosuchfile | gzip >/dev/null; exit 3"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("the pipeline failed: status 3"), "{text}");
    assert!(text.contains("nosuchfile"), "{text}");
    let (code, text) = said(&["true", "--baseline"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("the pipeline has no last stage to remove"), "{text}");
    let output = run(scene.path(), &["explain", "--pid", "4194999"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("takeup: there is no process 4194999\nhint: "), "{text}");
    let found = document(scene.path(), &["explain", "true", "--json"]);
    assert_eq!((found["limit"].clone(), rules(&found)), (Value::Null, vec!["pipeline.short"]));
}
