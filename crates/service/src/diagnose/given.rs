//! What other programs printed, read and put together. Nothing of it is run.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use base::finding::Finding;
use given::conclude::conclude;
use given::read::{Read, TEXT_BYTES_MAX, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseGivenRequest {
    /// Files with text; `-` is standard input.
    pub given: Vec<PathBuf>,
}

/// What texts show together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseGivenAnswer {
    /// What follows, each with the lines that it rests on.
    pub shown: Vec<ShownByText>,
    /// What would decide more.
    pub missing: Vec<MissingText>,
    /// Kinds of output that were found.
    pub read: Vec<ReadKind>,
    /// Lines that begin like something known, and were not read.
    pub refused: Vec<RefusedLine>,
    /// Lines of anything else.
    pub passed_lines: u64,
}

/// A finding, and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownByText {
    pub finding: Finding,
    pub from: LineOfText,
    pub to: LineOfText,
}

/// A line of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineOfText {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// Something that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingText {
    /// What it would decide.
    pub what: String,
    /// What to send: the output of this.
    pub send: String,
}

/// How much of a kind was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadKind {
    pub kind: String,
    /// Rows, calls or commands.
    pub count: u64,
}

/// A line that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedLine {
    pub at: LineOfText,
    pub why: String,
}

impl Answer for DiagnoseGivenAnswer {
    const COMMAND: &'static str = "diagnose given";
}

impl DiagnoseGivenAnswer {
    /// Lines that were left out make it incomplete.
    pub fn outcome(&self) -> Outcome {
        if self.refused.is_empty() { Outcome::Done } else { Outcome::Warned }
    }
}

/// Texts one behind the other, and where each begins.
#[derive(Debug, Default)]
struct Texts {
    all: String,
    /// The line before each file, and its name.
    begins: Vec<(u32, String)>,
}

impl Texts {
    fn add(&mut self, name: String, text: &str) {
        let lines = u32::try_from(self.all.lines().count()).unwrap_or(u32::MAX);
        self.begins.push((lines, name));
        self.all.push_str(text);
        if !text.ends_with('\n') {
            self.all.push('\n');
        }
    }

    fn place(&self, line: u32) -> LineOfText {
        let begin = self.begins.iter().rfind(|(begin, _)| *begin < line);
        let (begin, file) = begin.cloned().unwrap_or_default();
        LineOfText { file, line: line - begin }
    }
}

/// Reads the texts, and says what they mean together.
///
/// # Errors
/// When one cannot be read, or none has anything that is known.
pub fn diagnose_given(request: &DiagnoseGivenRequest) -> Result<DiagnoseGivenAnswer, Failure> {
    let mut texts = Texts::default();
    for path in &request.given {
        let text = text_of(path)?;
        if texts.all.len() + text.len() > TEXT_BYTES_MAX {
            let message = format!("the texts have more than {} MiB", TEXT_BYTES_MAX >> 20);
            return Err(Failure::of(message, Some("send the part that is asked about")));
        }
        texts.add(path.display().to_string(), &text);
    }
    let read = read(&texts.all);
    if read.pieces.is_empty() && read.refused.is_empty() {
        let message = "nothing in the text is known";
        return Err(Failure::of(message, Some(KNOWN)));
    }
    Ok(answer(&texts, &read))
}

/// What can be read, for those who sent something else.
const KNOWN: &str = "known are: iostat -x with its line of columns (or as JSON), sar -d, fio (its \
                     output, JSON or its job), dd, time, strace, tar --totals, pv, rsync, restic, \
                     mt status, tapeinfo, sg_logs, btape speed, lsblk, cat and echo of \
                     /sys/block/*/queue, job reports of Bacula and Bareos, and size, time and rate \
                     of a backup's summary";

fn answer(texts: &Texts, read: &Read) -> DiagnoseGivenAnswer {
    let conclusions = conclude(&read.pieces);
    let shown = conclusions.conclusions.into_iter().map(|it| ShownByText {
        finding: it.finding,
        from: texts.place(it.lines.0),
        to: texts.place(it.lines.1),
    });
    let missing = conclusions.missing.into_iter();
    let refused = read.refused.iter();
    DiagnoseGivenAnswer {
        shown: shown.collect(),
        missing: missing.map(|it| MissingText { what: it.what, send: it.command }).collect(),
        read: kinds(read),
        refused: refused
            .map(|it| RefusedLine { at: texts.place(it.line), why: it.why.clone() })
            .collect(),
        passed_lines: read.passed_lines,
    }
}

fn kinds(read: &Read) -> Vec<ReadKind> {
    let mut kinds: Vec<ReadKind> = Vec::new();
    for piece in &read.pieces {
        let kind = piece.what.kind();
        match kinds.iter_mut().find(|it| it.kind == kind) {
            Some(known) => known.count += 1,
            None => kinds.push(ReadKind { kind: kind.to_owned(), count: 1 }),
        }
    }
    kinds
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        let failure = Failure::new(&error, None);
        Failure::of(format!("cannot read {}: {}", path.display(), failure.message()), None)
    };
    let mut bytes = Vec::new();
    let limit = TEXT_BYTES_MAX as u64 + 1;
    if path == Path::new("-") {
        let input = io::stdin();
        if input.is_terminal() {
            let message = "the text is to come from a terminal";
            let hint = "name a file, or send it through a pipe";
            return Err(Failure::of(message, Some(hint)));
        }
        input.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    // What a terminal printed may have any bytes; those that are no text are no number either.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
