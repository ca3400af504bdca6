//! Every stage of every run panics at its n-th step. The run must end as a failure that names the
//! stage, at once and not by the watchdog, and leave nothing unfinished.
//!
//! The trap is in debug builds only, see `flow::trap`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::samples::noise;

use crate::command::{Case, Done, Running, names_in, takeup};

/// A run with the stages that it has.
struct Way {
    name: &'static str,
    stages: &'static [&'static str],
    command: fn(&Place) -> Command,
    /// What is sent to its standard input.
    input: Option<&'static str>,
}

/// What the runs work on.
struct Place {
    case: Case,
}

impl Place {
    fn new() -> Place {
        let case = Case::new(40, 3000);
        for number in 0..6 {
            let folder = case.tree.join(format!("folder {number}"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("medium"), noise(100 + number, 300_000)).unwrap();
            fs::write(folder.join("empty"), b"").unwrap();
        }
        fs::write(case.tree.join("large"), noise(200, 5_000_000)).unwrap();
        let place = Place { case };
        for (name, options) in [("plain", &[][..]), ("zstd", &["--compress", "zstd"])] {
            let done = Running::start(place.case.backup(&place.archive(name)).args(options)).wait();
            assert_eq!(done.code, Some(0), "{}", done.errors);
        }
        place
    }

    fn archive(&self, name: &str) -> PathBuf {
        self.case.folder.path().join(name)
    }

    fn destination(&self) -> PathBuf {
        self.case.folder.path().join("destination")
    }

    fn backup(&self, options: &[&str]) -> Command {
        let mut command = self.case.backup(&self.case.target());
        command.args(["-q", "--block-size", "64k"]).args(options);
        command
    }

    fn reading(&self, command: &str, archive: &str) -> Command {
        let mut reading = takeup();
        let from = if archive == "-" { "-".into() } else { self.archive(archive) };
        reading.arg(command).arg(from).arg("-q");
        reading
    }

    fn restore(&self, archive: &str) -> Command {
        let mut command = self.reading("restore", archive);
        command.arg("--into").arg(self.destination()).arg("--no-sync");
        command
    }

    fn pipe(&self) -> Command {
        let mut command = takeup();
        command.args(["pipe", "-q", "--block-size", "64k"]);
        command.arg("--from").arg(self.archive("plain")).arg("--to").arg(self.case.target());
        command
    }
}

const WAYS: &[Way] = &[
    Way {
        name: "backup",
        stages: &["scan", "read", "hash", "write"],
        command: |place| place.backup(&[]),
        input: None,
    },
    Way {
        name: "backup --compress",
        stages: &["scan", "read", "hash", "compress", "write", "io"],
        command: |place| place.backup(&["--compress", "zstd", "--engine", "pread"]),
        input: None,
    },
    Way {
        // 5 MB from the page cache: several threads copy and hash the blocks.
        name: "backup, small ring",
        stages: &["read", "hash"],
        command: |place| place.backup(&["--ring", "256k"]),
        input: None,
    },
    Way {
        name: "restore",
        stages: &["read", "parse", "create"],
        command: |place| place.restore("plain"),
        input: None,
    },
    Way {
        name: "restore, compressed",
        stages: &["read", "decompress", "parse", "create"],
        command: |place| place.restore("zstd"),
        input: None,
    },
    Way {
        name: "restore from a pipe",
        stages: &["read", "decompress", "parse", "create"],
        command: |place| place.restore("-"),
        input: Some("zstd"),
    },
    Way {
        name: "verify",
        stages: &["read", "decompress", "parse", "hash"],
        command: |place| place.reading("verify", "zstd"),
        input: None,
    },
    Way {
        name: "verify --against",
        stages: &["read", "parse", "compare"],
        command: |place| {
            let mut command = place.reading("verify", "plain");
            // Paths from the root on, without its slash.
            command.args(["--against", "/"]);
            command
        },
        input: None,
    },
    Way {
        name: "list from a pipe",
        stages: &["read", "decompress", "parse"],
        command: |place| place.reading("list", "-"),
        input: Some("zstd"),
    },
    Way { name: "pipe", stages: &["read", "write"], command: |place| place.pipe(), input: None },
];

#[test]
fn a_stage_that_breaks_down_ends_the_run() {
    let long = std::env::var_os("TAKEUP_LONG").is_some();
    let passes: Vec<u64> = if long { (1..120).collect() } else { vec![1, 2, 3, 9, 120] };
    let place = Place::new();
    let (mut runs, mut broke) = (0, 0);
    for way in WAYS {
        for stage in way.stages {
            let mut caught = 0;
            for pass in &passes {
                let _ = fs::remove_dir_all(place.destination());
                let _ = fs::remove_file(place.case.target());
                let mut command = (way.command)(&place);
                command.env("TAKEUP_TRAP", format!("{stage}:{pass}"));
                let done = run_with_input(&mut command, way.input.map(|name| place.archive(name)));
                runs += 1;
                if !done.errors.contains("the trap of") {
                    assert_eq!(done.code, Some(0), "{}: {}", way.name, done.errors);
                    break;
                }
                caught += 1;
                assert_broke_down(&done, way.name, stage);
                assert_eq!(names_in(&place.case.targets()), [""; 0], "{} {stage}", way.name);
                assert_whole(&place.destination(), Path::new("/"));
            }
            assert!(caught > 0, "{}: the stage {stage} was never trapped", way.name);
            broke += caught;
        }
    }
    eprintln!("{runs} runs, in {broke} of them a stage broke down");
}

fn run_with_input(command: &mut Command, input: Option<PathBuf>) -> Done {
    let Some(input) = input else { return Running::start(command).wait() };
    let mut cat = Command::new("cat").arg(input).stdout(Stdio::piped()).spawn().unwrap();
    let output = cat.stdout.take().unwrap();
    let done = Running::start_with(command, output.into()).wait();
    // The reader may end before the list is complete.
    let _ = cat.kill();
    cat.wait().unwrap();
    done
}

fn assert_broke_down(done: &Done, way: &str, stage: &str) {
    assert_eq!(done.code, Some(1), "{way} {stage}: {}", done.errors);
    let what = format!("the {stage} stage broke down, which is a defect of takeup: ");
    let told = done.errors.lines().find(|line| line.starts_with("takeup: "));
    assert!(told.is_some_and(|line| line.contains(&what)), "{way} {stage}: {}", done.errors);
}

/// Every restored file has its original content.
fn assert_whole(restored: &Path, original: &Path) {
    let Ok(entries) = fs::read_dir(restored) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let original = original.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            assert_whole(&entry.path(), &original);
        } else {
            let expected = fs::read(&original)
                .unwrap_or_else(|_| panic!("{} is left behind", entry.path().display()));
            assert!(fs::read(entry.path()).unwrap() == expected, "{}", original.display());
        }
    }
}
