//! What texts show together, for people: the answer first, then what to send, then what was read.

use base::escape::escape_controls;
use base::format::{count, counted};
use service::diagnose::{DiagnoseAnswer, LineOfText, ShownByText};

use crate::prose::fitted;
use crate::table::Style;

/// Lines that are refused by name.
const REFUSED_SHOWN: usize = 10;

/// The answer.
pub fn text(answer: &DiagnoseAnswer, style: Style) -> String {
    let mut text = String::new();
    for shown in &answer.shown {
        let [head, rest @ ..] = &shown.finding.parts()[..] else { continue };
        text += &format!("- {} ({})\n", escape_controls(head), place(shown));
        rest.iter().for_each(|part| text += &format!("  {}\n", escape_controls(part)));
    }
    if answer.shown.is_empty() {
        text += "what was read shows no limit by itself\n";
    }
    for missing in &answer.missing {
        let (what, send) = (escape_controls(&missing.what), escape_controls(&missing.send));
        text += &format!("not known: {what}; send: {send}\n");
    }
    let kinds = answer.read.iter().map(|it| format!("{} ({})", it.kind, count(it.count)));
    let kinds: Vec<String> = kinds.collect();
    let passed = counted(answer.passed_lines, "other line", "other lines");
    text += &format!("read: {}; {passed}\n", kinds.join(", "));
    for refused in answer.refused.iter().take(REFUSED_SHOWN) {
        let LineOfText { file, line } = &refused.at;
        let why = escape_controls(&refused.why);
        text += &format!("not read: {}:{line}: {why}\n", escape_controls(file));
    }
    if let Some(more) = answer.refused.len().checked_sub(REFUSED_SHOWN).filter(|more| *more > 0) {
        text += &format!("not read: {} more\n", counted(more as u64, "line", "lines"));
    }
    fitted(&text, style)
}

/// `mail.txt:12-18`
fn place(shown: &ShownByText) -> String {
    let ShownByText { from, to, .. } = shown;
    let file = escape_controls(&from.file);
    if from.file != to.file {
        return format!("{file}:{} to {}:{}", from.line, escape_controls(&to.file), to.line);
    }
    if from.line == to.line {
        format!("{file}:{}", from.line)
    } else {
        format!("{file}:{}-{}", from.line, to.line)
    }
}
