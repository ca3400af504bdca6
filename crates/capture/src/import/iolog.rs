//! I/O logs of fio (`write_iolog`), version 2 and 3.
//!
//! A line is `FILE ACTION [OFFSET LENGTH]`, in version 3 with the time in µs in front (measured
//! with fio 3.33: pauses of 100 ms are 100,000 apart). Version 2 has pauses (`wait`, in µs)
//! instead, by which time passes. What a log does not have: how long anything took, what was in
//! flight, which engine.

use std::collections::HashMap;
use std::io::BufRead;

use super::super::operation::{
    Asked, Engine, FileKind, FileNumber, FileOperation, OpenedFile, Recording, SyncCall, Unknown,
};
use super::{Imported, KEPT_MAX, Lines, RecordingError};

/// Hands all operations of `input` to `recording`.
pub fn import(
    input: impl BufRead,
    recording: &mut dyn Recording,
) -> Result<Imported, RecordingError> {
    let mut lines = Lines::of(input);
    let mut imported = Imported::default();
    let version = match lines.next()?.as_deref().map(str::trim_end) {
        Some("fio version 2 iolog") => 2,
        Some("fio version 3 iolog") => 3,
        _ => {
            lines.number = 1;
            let what = "not the first line of a fio I/O log, `fio version 2 iolog` or 3";
            return Err(lines.error(what));
        }
    };
    let mut log = Log { files: HashMap::new(), clock_ns: 0, recording };
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let is_operation = if version == 3 { log.timed(&words) } else { log.entry(&words) };
        imported.operations += u64::from(is_operation.map_err(|what| lines.error(what))?);
    }
    imported.lines = lines.number;
    if imported.operations == 0 {
        let hint = "make one with `fio --write_iolog=FILE`";
        return Err(RecordingError::Nothing { lines: imported.lines, hint });
    }
    imported.unseen.push(
        "an I/O log of fio has no engines, no durations and no number of requests in flight"
            .to_owned(),
    );
    Ok(imported)
}

struct Log<'a> {
    files: HashMap<String, FileNumber>,
    clock_ns: u64,
    recording: &'a mut dyn Recording,
}

impl Log<'_> {
    fn timed(&mut self, words: &[&str]) -> Result<bool, String> {
        self.clock_ns = number(words[0], "the time")?
            .checked_mul(1000)
            .ok_or_else(|| format!("the time {} is too large", words[0]))?;
        self.entry(&words[1..])
    }

    /// Whether it was an operation.
    fn entry(&mut self, words: &[&str]) -> Result<bool, String> {
        let (path, action, offset, length) = match *words {
            [path, action] => (path, action, None, None),
            [path, action, offset, length] => (path, action, Some(offset), Some(length)),
            _ => return Err("it has neither two nor four words".to_owned()),
        };
        let asked = match (action, offset) {
            ("add" | "open" | "close", None) => {
                self.file(path)?;
                return Ok(false);
            }
            ("wait", Some(microseconds)) => {
                let wait_ns = number(microseconds, "the pause")?.saturating_mul(1000);
                self.clock_ns = self.clock_ns.saturating_add(wait_ns);
                return Ok(false);
            }
            ("read", Some(_)) => Asked::Read,
            ("write", Some(_)) => Asked::Write,
            ("sync", _) => Asked::Sync(SyncCall::Fsync),
            ("datasync", _) => Asked::Sync(SyncCall::Fdatasync),
            ("trim", Some(_)) => Asked::Discard,
            _ => return Err(format!("unknown action {action:?} for a line of this many words")),
        };
        let offset_bytes = offset.map(|it| number(it, "the offset")).transpose()?.unwrap_or(0);
        let bytes = length.map(|it| number(it, "the length")).transpose()?.unwrap_or(0);
        let file = self.file(path)?;
        self.recording.operation(&FileOperation {
            start_ns: self.clock_ns,
            duration_ns: Err(Unknown::NotRecorded),
            process: 0,
            thread: 0,
            file,
            engine: Engine::Unknown,
            asked,
            offset_bytes: Ok(offset_bytes),
            asked_bytes: Ok(bytes),
            // What failed is in no log.
            done_bytes: Ok(if matches!(asked, Asked::Sync(_)) { 0 } else { bytes }),
            synchronous: false,
            in_flight: Err(Unknown::NotRecorded),
            error: 0,
        });
        Ok(true)
    }

    fn file(&mut self, path: &str) -> Result<FileNumber, String> {
        if let Some(number) = self.files.get(path) {
            return Ok(*number);
        }
        let number = FileNumber::try_from(self.files.len()).unwrap_or(FileNumber::MAX);
        if self.files.len() >= KEPT_MAX {
            return Err(format!("it names more than {KEPT_MAX} files"));
        }
        self.files.insert(path.to_owned(), number);
        let kind =
            if path.starts_with("/dev/") { FileKind::BlockDevice } else { FileKind::Regular };
        self.recording.file(
            number,
            &OpenedFile {
                path: Ok(path.to_owned()),
                kind,
                deleted: false,
                direct: Err(Unknown::NotRecorded),
                synchronous: Err(Unknown::NotRecorded),
                append: Err(Unknown::NotRecorded),
                size_bytes: Err(Unknown::NotRecorded),
            },
        );
        Ok(number)
    }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{what} {text:?} is not a number"))
}
