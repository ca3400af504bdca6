//! What is typed to set a factor to a level, by program, and what sets it back: one table.
//!
//! A recommendation that nobody can carry out is none: what no program here lets one choose is told
//! as a finding. Lines are complete where the experiment knows their places; a tape drive, a disk
//! and a path are those that were measured. Not here: which level is the right one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Sentence, Subject};
use crate::quantities::settings;
use crate::record::{Level, RunRecord};

/// What a sentence of what to set is about: a factor, its level in force, and the one to set.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The factor.
    pub factor: String,
    /// As it is.
    pub from: Level,
    /// As it should be.
    pub to: Level,
}

/// How one program does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Typed {
    /// Which program, and for how long where that is not for one run.
    pub program: &'static str,
    /// What is typed.
    pub line: String,
    /// What sets it back.
    pub undo: String,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Whether commands were run: what is typed is what was typed.
    is_of_commands: bool,
    /// `tape` where the runs kept a drive, else `disk`.
    is_tape: bool,
    path: String,
    /// Name of the block device, where there is one.
    device: Option<String>,
    /// Names of the disks at its bottom that have queues.
    queues: Vec<String>,
}

impl Place {
    /// From what the runs kept.
    pub fn of(runs: &[RunRecord]) -> Place {
        let none = BTreeMap::new();
        let kept = runs.first().map_or(&none, |run| &run.environment);
        let get = |name: &str| kept.get(name).cloned();
        let has_queue = kept.contains_key("queue read_ahead_kb");
        Place {
            is_of_commands: kept.contains_key("start of the shell"),
            is_tape: kept.contains_key("drive block bytes max")
                || runs.iter().any(|run| run.measures.contains_key("filemark_seconds")),
            path: get("path").unwrap_or_default(),
            device: get("device").filter(|_| has_queue),
            queues: words(get("queues").as_deref()),
        }
    }

    fn path_or(&self, otherwise: &str) -> String {
        match self.path.as_str() {
            "" => otherwise.to_owned(),
            path => quoted(path),
        }
    }
}

/// One way to set one factor.
struct Row {
    factor: &'static str,
    program: &'static str,
    line: fn(&Level, &Place) -> Option<String>,
    /// What sets it back, where that is not the same line with the other level.
    undo: Option<&'static str>,
}

const fn row(
    factor: &'static str,
    program: &'static str,
    line: fn(&Level, &Place) -> Option<String>,
) -> Row {
    Row { factor, program, line, undo: None }
}

const UNTIL_RESTART: &str = "until the next start";
const BY_UDEV: &str = "for good, by udev";

/// Writes a setting of the queue of each disk.
fn now(file: &str, value: &str, place: &Place) -> Option<String> {
    match &place.queues[..] {
        [] => None,
        [disk] => Some(format!("echo {value} > /sys/block/{disk}/queue/{file}")),
        disks => Some(format!(
            "for disk in {}; do echo {value} > /sys/block/$disk/queue/{file}; done",
            disks.join(" ")
        )),
    }
}

/// A udev rule that does. The kernel sets `nr_requests` anew with the scheduler, so the file of
/// that one has a number behind the others'.
fn for_good(file: &str, value: &str, place: &Place, rules: &str) -> Option<String> {
    if place.queues.is_empty() {
        return None;
    }
    Some(format!(
        "echo 'ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{}\", \
         ATTR{{queue/{file}}}=\"{value}\"' > /etc/udev/rules.d/{rules}.rules",
        place.queues.join("|")
    ))
}

const UDEV_FILE: &str = "/etc/udev/rules.d/61-read-ahead.rules";

/// Every factor that an experiment may recommend and every program that lets one choose it.
const TABLE: &[Row] = &[
    row("read_ahead_bytes", UNTIL_RESTART, |level, place| {
        let kib = number(level)? / 1024;
        Some(match &place.device {
            Some(device) => format!("blockdev --setra {} /dev/{device}", kib * 2),
            None => format!(
                "echo {kib} > /sys/class/bdi/$(mountpoint -d \"$(stat -c %m {})\")/read_ahead_kb",
                place.path_or("PATH")
            ),
        })
    }),
    Row {
        undo: Some("rm /etc/udev/rules.d/61-read-ahead.rules"),
        ..row("read_ahead_bytes", BY_UDEV, |level, place| {
            let (kib, device) = (number(level)? / 1024, place.device.as_ref()?);
            Some(format!(
                "echo 'ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{device}\", \
                 ATTR{{queue/read_ahead_kb}}=\"{kib}\"' > {UDEV_FILE}"
            ))
        })
    },
    row("scheduler", UNTIL_RESTART, |level, place| now("scheduler", word(level)?, place)),
    Row {
        undo: Some("rm /etc/udev/rules.d/61-scheduler.rules"),
        ..row("scheduler", BY_UDEV, |level, place| {
            for_good("scheduler", word(level)?, place, "61-scheduler")
        })
    },
    row("max_sectors_bytes", UNTIL_RESTART, |level, place| {
        now("max_sectors_kb", &(number(level)? / 1024).to_string(), place)
    }),
    Row {
        undo: Some("rm /etc/udev/rules.d/61-max-sectors.rules"),
        ..row("max_sectors_bytes", BY_UDEV, |level, place| {
            let kib = (number(level)? / 1024).to_string();
            for_good("max_sectors_kb", &kib, place, "61-max-sectors")
        })
    },
    row("nomerges", UNTIL_RESTART, |level, place| {
        now("nomerges", &number(level)?.to_string(), place)
    }),
    Row {
        undo: Some("rm /etc/udev/rules.d/61-nomerges.rules"),
        ..row("nomerges", BY_UDEV, |level, place| {
            for_good("nomerges", &number(level)?.to_string(), place, "61-nomerges")
        })
    },
    row("nr_requests", UNTIL_RESTART, |level, place| {
        now("nr_requests", &number(level)?.to_string(), place)
    }),
    Row {
        undo: Some("rm /etc/udev/rules.d/62-nr-requests.rules"),
        ..row("nr_requests", BY_UDEV, |level, place| {
            for_good("nr_requests", &number(level)?.to_string(), place, "62-nr-requests")
        })
    },
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
            format!("dd obs={bytes} of={}", place.path_or("/dev/nst0"))
        } else {
            format!("dd ibs={bytes} if={}", place.path_or("PATH"))
        })
    }),
    row("block_bytes", "Bacula, Device in bacula-sd.conf", |level, place| {
        place.is_tape.then_some(())?;
        Some(format!("Maximum Block Size = {}", number(level)?))
    }),
    row("read_block_bytes", "dd", |level, _| Some(format!("dd ibs={} if=SOURCE", number(level)?))),
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
                .then(|| format!("dd iflag=direct bs=1M if={}", place.path_or("PATH")))
        })
    },
];

/// What the programs of the table leave to themselves: they read one stream in one thread.
#[cfg(test)]
const NOBODYS: &[&str] = &["depth", "jobs", "readers", "pages"];

/// All that can be typed for a change.
pub fn typed(change: &Change, place: &Place) -> Vec<Typed> {
    let own = TABLE.iter().filter(|row| row.factor == change.factor);
    let one = |row: &Row| {
        let line = (row.line)(&change.to, place)?;
        let undo = match row.undo {
            Some(undo) => undo.to_owned(),
            None => (row.line)(&change.from, place).unwrap_or_else(|| "leave it out".to_owned()),
        };
        Some(Typed { program: row.program, line, undo })
    };
    own.filter_map(one).collect()
}

/// Puts to each sentence of what to set what is typed for it; what nobody can set is a finding.
pub fn attach(sentences: &mut [Sentence], runs: &[RunRecord]) {
    let place = Place::of(runs);
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
            Some(first) => sentence.finding.command = Some(first.line.clone()),
            // A factor of somebody's own: how it is set is in the names of its levels.
            None if !settings().any(|name| name == change.factor) => {}
            None => {
                sentence.subject = Subject::Finding;
                let caveat = "takeup, tar, dd and Bacula do not let one choose it";
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

fn words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn word(level: &Level) -> Option<&str> {
    match level {
        Level::Text(text) => Some(text),
        Level::Number(_) => None,
    }
}

/// As a shell takes it for one word.
pub fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn tape() -> Place {
        Place { is_tape: true, path: "/dev/nst0".into(), ..Place::default() }
    }

    fn disk() -> Place {
        Place { path: "/srv/big file".into(), device: Some("sdb".into()), ..Place::default() }
    }

    fn lines(factor: &str, from: Level, to: Level, place: &Place) -> Vec<(String, String)> {
        let change = Change { factor: factor.into(), from, to };
        typed(&change, place).into_iter().map(|one| (one.line, one.undo)).collect()
    }

    fn text(word: &str) -> Level {
        Level::Text(word.into())
    }

    /// Whatever may be recommended is in the table, or is known to be nobody's to choose.
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
                ("blockdev --setra 8192 /dev/sdb", "blockdev --setra 256 /dev/sdb"),
                (
                    "echo 'ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sdb\", \
                     ATTR{queue/read_ahead_kb}=\"4096\"' > /etc/udev/rules.d/61-read-ahead.rules",
                    "rm /etc/udev/rules.d/61-read-ahead.rules",
                ),
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
                ("dd obs=4194304 of=/dev/nst0", "dd obs=131072 of=/dev/nst0"),
                ("Maximum Block Size = 4194304", "Maximum Block Size = 131072"),
            ],
        );
        let read = ("dd ibs=4194304 if='/srv/big file'", "dd ibs=131072 if='/srv/big file'");
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
        let direct = ("dd iflag=direct bs=1M if='/srv/big file'", "without iflag=direct");
        check(lines("cache", text("buffered"), text("direct"), &disk()), &[direct]);
        assert_eq!(lines("engine", text("psync"), text("mmap"), &disk()), []);
    }

    #[test]
    fn a_setting_of_the_queue_is_typed_for_all_its_disks() {
        let queue = |factor, from, to, disks: &[&str]| {
            let queues = disks.iter().map(|disk| (*disk).to_owned()).collect();
            lines(factor, from, to, &Place { queues, ..disk() })
        };
        let found = queue("scheduler", text("none"), text("mq-deadline"), &["sdb"]);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(line, undo)| (&line[..], &undo[..])).collect();
        assert_eq!(
            found,
            [
                (
                    "echo mq-deadline > /sys/block/sdb/queue/scheduler",
                    "echo none > /sys/block/sdb/queue/scheduler",
                ),
                (
                    "echo 'ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sdb\", \
                     ATTR{queue/scheduler}=\"mq-deadline\"' > \
                     /etc/udev/rules.d/61-scheduler.rules",
                    "rm /etc/udev/rules.d/61-scheduler.rules",
                ),
            ],
        );
        let (large, small) = (Level::Number(1 << 20), Level::Number(256 << 10));
        let first = &queue("max_sectors_bytes", large, small, &["sda", "sdb"])[0];
        assert_eq!(
            first.0,
            "for disk in sda sdb; do echo 256 > /sys/block/$disk/queue/max_sectors_kb; done"
        );
        assert_eq!(queue("nomerges", Level::Number(0), Level::Number(2), &[]), []);
    }

    /// What is printed is what the programs take: tar and dd write blocks of that size.
    #[test]
    fn programs_take_what_is_printed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("SOURCE"), vec![1; 100]).unwrap();
        let place = Place { path: "archive".into(), ..tape() };
        let found = lines("block_bytes", Level::Number(512), Level::Number(65536), &place);
        let sizes = [("tar ", 65536u64, true), ("dd ", 100, false)];
        for (program, bytes, is_whole) in sizes {
            let (line, _) = found.iter().find(|(line, _)| line.starts_with(program)).unwrap();
            let input = if is_whole { "" } else { " <SOURCE" };
            let done = Command::new("sh")
                .args(["-c", &format!("{line}{input}")])
                .current_dir(directory.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
            let written = directory.path().join("archive").metadata().unwrap().len();
            assert_eq!(written, bytes, "{line}");
        }
    }
}
