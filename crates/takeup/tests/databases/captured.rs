//! The profile that `takeup capture` makes of a server under load.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::servers::{Load, Server};

/// How long a load is captured.
const SPAN: &str = "2s";

/// The program, without the settings of the user who runs the tests.
pub fn takeup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    // fio is found there.
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The profile of a server under this load.
#[track_caller]
pub fn capture(server: &Server, load: Command) -> Captured {
    capture_with(server, load, &[])
}

/// The same, with more options.
#[track_caller]
pub fn capture_with(server: &Server, load: Command, options: &[&str]) -> Captured {
    let mut load = Load::of(load);
    // The first work of the server, such as reading its catalogue, is not part of the test.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = server.pid().to_string();
    let mut command = takeup();
    let output =
        command.args(["capture", "--pid", &pid, "--for", SPAN, "--json"]).args(options).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    load.goes_on();
    let mut profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Leaves out hundreds of lines that would hide another error.
    for file in profile["files"].as_array_mut().unwrap() {
        file.as_object_mut().unwrap().remove("series").unwrap();
    }
    Captured(profile)
}

/// A profile.
pub struct Captured(pub Value);

impl Captured {
    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &Value> {
        self.0["files"].as_array().unwrap().iter()
    }

    /// Of the files whose paths contain this, the one with the most calls.
    #[track_caller]
    pub fn busiest(&self, part: &str) -> &Value {
        let of_it = self.files().filter(|file| {
            Path::new(file["path"].as_str().unwrap_or_default()).to_string_lossy().contains(part)
        });
        let found = of_it.max_by_key(|file| file["calls"].as_u64());
        found.unwrap_or_else(|| panic!("no {part}: {:#}", self.0))
    }

    /// Bytes read and written in files whose paths contain this.
    pub fn bytes(&self, part: &str) -> (u64, u64) {
        let of_it =
            self.files().filter(|it| it["path"].as_str().unwrap_or_default().contains(part));
        let sum = |(read, written), file: &Value| {
            let bytes = |name: &str| file[name].as_u64().unwrap_or(0);
            (read + bytes("read_bytes"), written + bytes("written_bytes"))
        };
        of_it.fold((0, 0), sum)
    }
}

/// The fio job repeats the captured load of the log, each property to 90 % or better.
#[track_caller]
pub fn validates(captured: &Captured) {
    comes_back(&captured.0["validation"], 90.0);
}

/// The same for a load that partly uses a ring. Its depth depends on how fast the disk answers
/// while the job runs, which is later: ten runs had 87 to 100 %.
#[track_caller]
pub fn validates_beside_a_ring(captured: &Captured) {
    comes_back(&captured.0["validation"], 75.0);
}

/// The same for the group of one file.
#[track_caller]
pub fn validates_file(captured: &Captured, part: &str) {
    let groups = captured.0["validation"]["groups"].as_array().unwrap();
    let has = |path: &Value| path.as_str().unwrap().contains(part);
    let is_it = |group: &&Value| group["paths"].as_array().unwrap().iter().any(has);
    let group = groups.iter().find(is_it).unwrap_or_else(|| panic!("no {part}: {groups:#?}"));
    comes_back(group, 90.0);
}

#[track_caller]
fn comes_back(judged: &Value, least_depth: f64) {
    let properties = judged["properties"].as_object().unwrap();
    let known =
        properties.iter().filter_map(|(name, score)| Some((name, score["percent"].as_f64()?)));
    let known: Vec<(&String, f64)> = known.collect();
    assert_eq!(known.len(), 7, "{judged:#}");
    let least = |name: &str| if name == "depth" { least_depth } else { 90.0 };
    assert!(known.iter().all(|(name, percent)| *percent >= least(name)), "{judged:#}");
}

/// A number of a file, which must be known.
#[track_caller]
pub fn number(file: &Value, name: &str) -> f64 {
    file[name].as_f64().unwrap_or_else(|| panic!("no {name}: {file:#}"))
}

/// A log to which each transaction is written and synchronised separately: one writer, one write
/// for each sync, and each write starts in the last block of the one before.
#[track_caller]
pub fn is_log_of_single_rows(log: &Value) {
    assert_eq!(log["class"], "write_ahead_log", "{log:#}");
    assert_eq!(log["engine"], "psync", "{log:#}");
    assert_eq!(log["depth"], 1.0, "{log:#}");
    assert_eq!(log["sync"]["call"], "fdatasync", "{log:#}");
    assert_eq!(log["sync"]["operations_between"], 1.0, "{log:#}");
    assert_eq!(log["read_share"], 0.0, "{log:#}");
    assert!(number(log, "rewrite_share") > 0.9, "{log:#}");
    assert!(number(log, "calls") > 100.0, "{log:#}");
}
