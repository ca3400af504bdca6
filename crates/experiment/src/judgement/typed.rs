//! A table of the commands that set a factor to a level, by program, and that restore it.
//!
//! A recommendation without a command is useless: if no program here has an option for a factor, it
//! becomes a finding. Commands name the tape drive, disk and path that were measured, as far as the
//! experiment knows them. This module does not decide which level is the right one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::keep::why_not_kept;

use super::{Sentence, Subject};
use crate::environment::{LASTING_PATH, kept_by};
use crate::quantities::settings;
use crate::record::{Level, RunRecord};

/// The change that a sentence recommends: a factor, its level in force, and the level to set.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingToType {
    pub factor: String,
    /// The level in force.
    pub from: Level,
    /// The level to set.
    pub to: Level,
}

/// The command of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Typed {
    /// The program, and for how long the setting lasts if longer than one run.
    pub program: Cow<'static, str>,
    /// The command.
    pub line: String,
    /// The command that restores the old value.
    pub undo: String,
}

/// The object of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredOn {
    /// Whether the user's own commands were run, which need no translation.
    is_of_commands: bool,
    /// Whether the runs recorded a tape drive; otherwise it was a disk.
    is_tape: bool,
    path: String,
    /// The paths for settings: devices by persistent names, if they have them.
    set: Vec<String>,
    /// The environment that the runs recorded. Newer records have what keeps settings over a
    /// restart.
    keepers: BTreeMap<String, String>,
}

impl MeasuredOn {
    /// From the environment of the first run.
    pub fn of(runs: &[RunRecord]) -> MeasuredOn {
        let none = BTreeMap::new();
        let kept = runs.first().map_or(&none, |run| &run.environment);
        let get = |name: &str| kept.get(name).cloned();
        let path = get("path").unwrap_or_default();
        // A job on several devices has its paths in one string, like their names.
        let is_one = !kept.get("device").is_some_and(|device| device.contains(", "));
        let set = match get(LASTING_PATH) {
            Some(lasting) => vec![lasting],
            None if path.is_empty() => vec!["PATH".to_owned()],
            None if is_one => vec![path.clone()],
            None => path.split(", ").map(str::to_owned).collect(),
        };
        MeasuredOn {
            is_of_commands: kept.contains_key("start of the shell"),
            is_tape: kept.contains_key("drive block bytes max")
                || runs.iter().any(|run| run.measures.contains_key("filemark_seconds")),
            path,
            set,
            keepers: kept.clone(),
        }
    }

    fn path_or(&self, otherwise: &str) -> String {
        match self.path.as_str() {
            "" => otherwise.to_owned(),
            path => quoted(path),
        }
    }

    /// The command that sets a kernel setting until the next start.
    fn set(&self, setting: &str, value: &str) -> Option<String> {
        let one = |path: &String| set_line(path, &[(setting, value)]);
        Some(self.set.iter().map(one).collect::<Vec<_>>().join(" && "))
    }

    /// The reason why nothing keeps a setting over a restart.
    fn why_not_kept(&self, setting: &str) -> Option<&str> {
        why_not_kept(self.keepers.get(&kept_by(setting))?)
    }

    /// The command that keeps a setting over a restart once it is set.
    fn keep(&self, setting: &str) -> Option<String> {
        self.why_not_kept(setting).is_none().then(|| KEEP.to_owned())
    }
}

/// The command that sets kernel settings for a path, the same in `takeup tune` and in every
/// experiment.
pub fn set_line(path: &str, settings: &[(&str, &str)]) -> String {
    let typed: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    format!("takeup tune set {} {}", quoted(path), typed.join(" "))
}

/// The command that reverts settings.
pub const UNDO: &str = "takeup tune revert";
/// The command that keeps a setting over a restart, once it is set.
pub const KEEP: &str = "takeup tune persist";
/// The command that stops keeping it.
const UNDO_KEEP: &str = "takeup tune persist --remove";

/// One way to set one factor.
struct Row {
    factor: &'static str,
    program: &'static str,
    line: fn(&Level, &MeasuredOn) -> Option<String>,
    /// The command that restores the old value, if it is not the same command with the old level.
    undo: Option<&'static str>,
}

const fn row(
    factor: &'static str,
    program: &'static str,
    line: fn(&Level, &MeasuredOn) -> Option<String>,
) -> Row {
    Row { factor, program, line, undo: None }
}

/// A kernel setting until the next start.
const fn now(factor: &'static str, line: fn(&Level, &MeasuredOn) -> Option<String>) -> Row {
    Row { factor, program: "until the next start", line, undo: Some(UNDO) }
}

/// The same setting over a restart; it follows the command above. The rule then names the device at
/// hand.
const fn kept(factor: &'static str, line: fn(&Level, &MeasuredOn) -> Option<String>) -> Row {
    Row { factor, program: "then, over a restart", line, undo: Some(UNDO_KEEP) }
}

/// Kernel settings by the names of their factors.
const SETTINGS: [(&str, &str); 5] = [
    ("read_ahead_bytes", "read_ahead_kb"),
    ("scheduler", "scheduler"),
    ("max_sectors_bytes", "max_sectors_kb"),
    ("nomerges", "nomerges"),
    ("nr_requests", "nr_requests"),
];

fn kib(level: &Level) -> Option<String> {
    Some((number(level)? / 1024).to_string())
}

/// Every factor that an experiment may recommend, with every program that has an option for it.
const TABLE: &[Row] = &[
    now("read_ahead_bytes", |level, place| place.set("read_ahead_kb", &kib(level)?)),
    kept("read_ahead_bytes", |_, place| place.keep("read_ahead_kb")),
    now("scheduler", |level, place| place.set("scheduler", word(level)?)),
    kept("scheduler", |_, place| place.keep("scheduler")),
    now("max_sectors_bytes", |level, place| place.set("max_sectors_kb", &kib(level)?)),
    kept("max_sectors_bytes", |_, place| place.keep("max_sectors_kb")),
    now("nomerges", |level, place| place.set("nomerges", &number(level)?.to_string())),
    kept("nomerges", |_, place| place.keep("nomerges")),
    now("nr_requests", |level, place| place.set("nr_requests", &number(level)?.to_string())),
    kept("nr_requests", |_, place| place.keep("nr_requests")),
    row("block_bytes", "takeup", |level, place| {
        let to = place.is_tape.then(|| place.path_or("/dev/nst0"))?;
        Some(format!("takeup backup SOURCE --to {to} --block-size {}", number(level)?))
    }),
    row("block_bytes", "tar", |level, place| {
        let to = place.is_tape.then(|| place.path_or("/dev/nst0"))?;
        let bytes = number(level).filter(|bytes| bytes.is_multiple_of(512))?;
        Some(format!("tar -b {} -cf {to} SOURCE", bytes / 512))
    }),
    row("block_bytes", "dd", |level, place| {
        let bytes = number(level)?;
        Some(if place.is_tape {
            format!("dd if=SOURCE obs={bytes} of={}", place.path_or("/dev/nst0"))
        } else {
            format!("dd ibs={bytes} if={} of=TARGET", place.path_or("PATH"))
        })
    }),
    row("block_bytes", "Bacula, Device in bacula-sd.conf", |level, place| {
        place.is_tape.then_some(())?;
        Some(format!("Maximum Block Size = {}", number(level)?))
    }),
    row("read_block_bytes", "dd", |level, _| {
        Some(format!("dd ibs={} if=SOURCE of=TARGET", number(level)?))
    }),
    row("ring_bytes", "takeup", |level, place| {
        let bytes = number(level).filter(|&bytes| bytes > 0)?;
        Some(format!("takeup backup SOURCE --to {} --ring {bytes}", place.path_or("/dev/nst0")))
    }),
    row("ring_bytes", "mbuffer", |level, place| {
        let bytes = number(level).filter(|&bytes| bytes > 0)?;
        Some(format!("mbuffer -m {bytes}b -o {}", place.path_or("/dev/nst0")))
    }),
    row("drive_compression", "takeup", |level, place| {
        let to = place.path_or("/dev/nst0");
        Some(format!("takeup backup SOURCE --to {to} --drive-compression {}", word(level)?))
    }),
    row("drive_compression", "mt, until the drive is reset", |level, place| {
        let switch = if word(level)? == "on" { 1 } else { 0 };
        Some(format!("mt -f {} compression {switch}", place.path_or("/dev/nst0")))
    }),
    row("engine", "takeup", |level, _| {
        let engine = match word(level)? {
            "io_uring" => "io_uring",
            "psync" => "pread",
            _ => return None,
        };
        Some(format!("takeup backup SOURCE --to TARGET --engine {engine}"))
    }),
    Row {
        undo: Some("without iflag=direct"),
        ..row("cache", "dd", |level, place| {
            (word(level)? == "direct")
                .then(|| format!("dd iflag=direct bs=1M if={} of=TARGET", place.path_or("PATH")))
        })
    },
];

/// Factors without an option in these programs: they read one stream in one thread.
#[cfg(test)]
const NOBODYS: &[&str] = &["depth", "jobs", "readers", "pages"];

/// All commands for a change.
pub fn typed(change: &SettingToType, place: &MeasuredOn) -> Vec<Typed> {
    let own = TABLE.iter().filter(|row| row.factor == change.factor);
    let one = |row: &Row| {
        let line = (row.line)(&change.to, place)?;
        let undo = match row.undo {
            Some(undo) => undo.to_owned(),
            None => (row.line)(&change.from, place).unwrap_or_else(|| "leave it out".to_owned()),
        };
        Some(Typed { program: Cow::Borrowed(row.program), line, undo })
    };
    own.filter_map(one).collect()
}

/// Adds its commands to each sentence that recommends a change; one without a command becomes a
/// finding.
pub fn attach(sentences: &mut [Sentence], runs: &[RunRecord]) {
    let place = MeasuredOn::of(runs);
    if place.is_of_commands {
        return;
    }
    for sentence in sentences.iter_mut() {
        let Some(change) = sentence.change.as_ref().filter(|change| change.from != change.to)
        else {
            continue;
        };
        sentence.typed = typed(change, &place);
        match sentence.typed.first() {
            Some(first) => {
                sentence.finding.command = Some(first.line.clone());
                let setting = SETTINGS.iter().find(|(factor, _)| *factor == change.factor);
                let why = setting.and_then(|(_, setting)| place.why_not_kept(setting));
                if let (Some(why), None) = (why, &sentence.finding.caveat) {
                    sentence.finding.caveat = Some(format!("not kept over a restart: {why}"));
                }
            }
            // A factor of the user's own: the names of its levels say how to set it.
            None if !settings().any(|name| name == change.factor) => {}
            None => {
                sentence.subject = Subject::Finding;
                let caveat = "takeup, tar, dd and Bacula have no option for it";
                sentence.finding.caveat = Some(caveat.to_owned());
            }
        }
    }
}

fn number(level: &Level) -> Option<u64> {
    match level {
        Level::Number(number) => Some(*number),
        Level::Text(_) => None,
    }
}

fn word(level: &Level) -> Option<&str> {
    match level {
        Level::Text(text) => Some(text),
        Level::Number(_) => None,
    }
}

/// A path as one word for a shell, and no option of a program.
pub fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    if path.starts_with('-') {
        quoted(&format!("./{path}"))
    } else if path.chars().all(is_plain) && !path.is_empty() {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn tape() -> MeasuredOn {
        MeasuredOn { is_tape: true, path: "/dev/nst0".into(), ..MeasuredOn::default() }
    }

    fn disk() -> MeasuredOn {
        let set = vec!["/srv/big file".to_owned()];
        MeasuredOn { path: "/srv/big file".into(), set, ..MeasuredOn::default() }
    }

    fn lines(factor: &str, from: Level, to: Level, place: &MeasuredOn) -> Vec<(String, String)> {
        let change = SettingToType { factor: factor.into(), from, to };
        typed(&change, place).into_iter().map(|one| (one.line, one.undo)).collect()
    }

    fn text(word: &str) -> Level {
        Level::Text(word.into())
    }

    /// Every factor that may be recommended is in the table, or is known to have no option.
    #[test]
    fn every_setting_is_typed_somewhere_or_known_not_to_be() {
        for name in settings() {
            let in_table = TABLE.iter().any(|row| row.factor == name);
            assert!(in_table != NOBODYS.contains(&name), "{name}");
        }
        assert!(TABLE.iter().all(|row| settings().any(|name| name == row.factor)));
        for factor in NOBODYS {
            assert_eq!(lines(factor, Level::Number(1), Level::Number(4), &disk()), []);
        }
    }

    /// Paths of several devices are in one string; a comma in the path of one device belongs to the
    /// path.
    #[test]
    fn the_paths_of_several_devices_are_told_apart() {
        let of = |device: &str, path: &str| {
            let kept = [("device", device), ("path", path)];
            let kept = kept.map(|(name, text)| (name.to_owned(), text.to_owned()));
            MeasuredOn::of(&[RunRecord { environment: kept.into(), ..RunRecord::default() }]).set
        };
        assert_eq!(of("sda", "/srv/a, b"), ["/srv/a, b"]);
        assert_eq!(of("sda, sdb", "/dev/sda, /dev/sdb"), ["/dev/sda", "/dev/sdb"]);
        assert_eq!(of("sda", ""), ["PATH"]);
    }

    #[test]
    fn each_line_has_its_undo() {
        let check = |found: Vec<(String, String)>, expected: &[(&str, &str)]| {
            let found: Vec<(&str, &str)> =
                found.iter().map(|(line, undo)| (&line[..], &undo[..])).collect();
            assert_eq!(found, expected);
        };
        let (small, large) = (Level::Number(128 << 10), Level::Number(4 << 20));
        check(
            lines("read_ahead_bytes", small.clone(), large.clone(), &disk()),
            &[
                ("takeup tune set '/srv/big file' read_ahead_kb=4096", "takeup tune revert"),
                ("takeup tune persist", "takeup tune persist --remove"),
            ],
        );
        check(
            lines("block_bytes", small.clone(), large.clone(), &tape()),
            &[
                (
                    "takeup backup SOURCE --to /dev/nst0 --block-size 4194304",
                    "takeup backup SOURCE --to /dev/nst0 --block-size 131072",
                ),
                ("tar -b 8192 -cf /dev/nst0 SOURCE", "tar -b 256 -cf /dev/nst0 SOURCE"),
                ("dd if=SOURCE obs=4194304 of=/dev/nst0", "dd if=SOURCE obs=131072 of=/dev/nst0"),
                ("Maximum Block Size = 4194304", "Maximum Block Size = 131072"),
            ],
        );
        let read = (
            "dd ibs=4194304 if='/srv/big file' of=TARGET",
            "dd ibs=131072 if='/srv/big file' of=TARGET",
        );
        check(lines("block_bytes", small, large.clone(), &disk()), &[read]);
        check(
            lines("drive_compression", text("on"), text("off"), &tape()),
            &[
                (
                    "takeup backup SOURCE --to /dev/nst0 --drive-compression off",
                    "takeup backup SOURCE --to /dev/nst0 --drive-compression on",
                ),
                ("mt -f /dev/nst0 compression 0", "mt -f /dev/nst0 compression 1"),
            ],
        );
        check(
            lines("ring_bytes", Level::Number(0), large, &tape()),
            &[
                ("takeup backup SOURCE --to /dev/nst0 --ring 4194304", "leave it out"),
                ("mbuffer -m 4194304b -o /dev/nst0", "leave it out"),
            ],
        );
        check(
            lines("engine", text("psync"), text("io_uring"), &disk()),
            &[(
                "takeup backup SOURCE --to TARGET --engine io_uring",
                "takeup backup SOURCE --to TARGET --engine pread",
            )],
        );
        let direct = ("dd iflag=direct bs=1M if='/srv/big file' of=TARGET", "without iflag=direct");
        check(lines("cache", text("buffered"), text("direct"), &disk()), &[direct]);
        assert_eq!(lines("engine", text("psync"), text("mmap"), &disk()), []);
    }

    /// Runs that recorded this environment.
    fn place(environment: &[(&str, &str)]) -> MeasuredOn {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(own).collect();
        MeasuredOn::of(&[RunRecord { environment, ..RunRecord::default() }])
    }

    /// `sdb` may be another disk after the next start: the command names a device by its persistent
    /// name, and only `takeup tune persist` makes the rule that keeps a setting.
    #[test]
    fn no_line_that_lasts_names_a_device_by_a_name_that_does_not() {
        let old = [("path", "/dev/sdb"), ("device", "sdb"), ("queues", "sdb")];
        let by_id = ("path by id", "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4");
        let new = [&old[..], &[by_id, ("restart scheduler", "udev")]].concat();
        let scheduler = |place: &MeasuredOn| lines("scheduler", text("none"), text("bfq"), place);
        let named = "takeup tune set /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 scheduler=bfq";
        assert_eq!(scheduler(&place(&new))[0].0, named);
        // Records of older versions say less, and can still be read.
        assert_eq!(scheduler(&place(&old))[0].0, "takeup tune set /dev/sdb scheduler=bfq");
        let (large, small) = (Level::Number(4 << 20), Level::Number(128 << 10));
        for (factor, from, to) in [
            ("read_ahead_bytes", small.clone(), large.clone()),
            ("scheduler", text("none"), text("bfq")),
            ("max_sectors_bytes", large, small),
            ("nomerges", Level::Number(0), Level::Number(2)),
            ("nr_requests", Level::Number(64), Level::Number(256)),
        ] {
            for place in [place(&old), place(&new), place(&[])] {
                let found = lines(factor, from.clone(), to.clone(), &place);
                assert_eq!(found.len(), 2, "{factor}: {found:?}");
                assert_eq!(found[1].0, KEEP, "{factor}");
                let is_foreign = |line: &String| line.contains("/etc/") || line.contains("KERNEL");
                assert!(!found.iter().any(|(line, undo)| is_foreign(line) || is_foreign(undo)));
            }
        }
        let two = place(&[("path", "/dev/sdb, /dev/sdc"), ("device", "sdb, sdc")]);
        assert_eq!(
            scheduler(&two)[0].0,
            "takeup tune set /dev/sdb scheduler=bfq && takeup tune set /dev/sdc scheduler=bfq"
        );
    }

    #[test]
    fn what_nothing_keeps_is_said_to_be_lost_with_a_restart() {
        let why = "a loop device is made anew for each file, with settings of its own";
        let kept = format!("nothing: {why}");
        let of_loop = [("path", "/dev/loop1"), ("restart max_sectors_kb", kept.as_str())];
        let place = place(&of_loop);
        let found = lines("max_sectors_bytes", Level::Number(4096), Level::Number(8192), &place);
        let set = "takeup tune set /dev/loop1 max_sectors_kb=8";
        assert_eq!(found, [(set.to_owned(), UNDO.to_owned())]);
        assert_eq!(place.why_not_kept("max_sectors_kb"), Some(why));
        assert_eq!(place.why_not_kept("scheduler"), None);
    }

    #[test]
    fn a_path_is_one_word_and_no_option() {
        for (path, word) in [
            ("/srv/a b", "'/srv/a b'"),
            ("it's", "'it'\\''s'"),
            ("-x", "./-x"),
            ("-x y", "'./-x y'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(path), word);
            let said = Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
            assert!(String::from_utf8(said.unwrap().stdout).unwrap().ends_with(path));
        }
    }

    /// The programs accept the printed commands: tar and dd write blocks of that size.
    #[test]
    fn programs_take_what_is_printed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("SOURCE"), vec![1; 100]).unwrap();
        let place = MeasuredOn { path: "archive".into(), ..tape() };
        let found = lines("block_bytes", Level::Number(512), Level::Number(65536), &place);
        let sizes = [("tar ", 65536u64), ("dd ", 100)];
        for (program, bytes) in sizes {
            let (line, _) = found.iter().find(|(line, _)| line.starts_with(program)).unwrap();
            let done = Command::new("sh")
                .args(["-c", line])
                .current_dir(directory.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
            let written = directory.path().join("archive").metadata().unwrap().len();
            assert_eq!(written, bytes, "{line}");
        }
    }
}
