//! Sentences on a terminal: wrapped at its width between words. The one place for that; tables fit
//! by themselves ([`crate::table`]).

use crate::table::Style;

/// No line is wrapped to fewer columns than these.
const COLUMNS_MIN: usize = 30;
/// How far further lines of a sentence are set in.
const SET_IN: usize = 2;

/// The same lines, the longer ones wrapped where there is a terminal. A number stays with the unit
/// behind it, and a command in backquotes stays whole, so that it can be copied.
pub fn fitted(text: &str, style: Style) -> String {
    let Some(columns) = style.columns else { return text.to_owned() };
    let columns = columns.max(COLUMNS_MIN);
    let fitted = |line: &str| {
        let lead = line.len() - line.trim_start().len();
        wrapped(line, lead, lead + SET_IN, columns)
    };
    let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => fitted(line) + "\n",
        None => fitted(line),
    });
    lines.collect()
}

/// A line whose first `head` columns are a head, wrapped behind it where there is a terminal.
pub fn fitted_behind(line: &str, head: usize, style: Style) -> String {
    match style.columns {
        Some(columns) => wrapped(line, head, head + SET_IN, columns.max(COLUMNS_MIN)),
        None => line.to_owned(),
    }
}

/// Wraps what stands behind the first `lead` bytes; further lines begin at `set_in`.
fn wrapped(line: &str, lead: usize, set_in: usize, columns: usize) -> String {
    if visible(line) <= columns {
        return line.to_owned();
    }
    let set_in = " ".repeat(set_in.min(columns / 2));
    let mut text = line[..lead].to_owned();
    let (mut at, mut is_begun) = (lead, false);
    for word in words(&line[lead..]) {
        let wide = visible(word);
        if is_begun && at + 1 + wide > columns {
            text.push('\n');
            text.push_str(&set_in);
            at = set_in.len();
        } else if is_begun {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += wide;
        is_begun = true;
    }
    text
}

/// The words of a sentence; what must not be torn apart is one word.
fn words(sentence: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut is_quoted) = (0, false);
    for (at, letter) in sentence.char_indices() {
        match letter {
            '`' => is_quoted = !is_quoted,
            ' ' if !is_quoted && !is_number_before(&sentence[start..at]) => {
                words.push(&sentence[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&sentence[start..]);
    words
}

/// Whether a word ends in a number, whose unit follows.
fn is_number_before(word: &str) -> bool {
    let last = word.rsplit(' ').next().unwrap_or_default();
    !last.is_empty() && last.chars().all(|it| it.is_ascii_digit() || ".-+".contains(it))
}

/// Columns of a text on a terminal. Characters beyond the alphabets of Europe count as two, which
/// is never too few.
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Columns of one character, as in [`width`].
pub fn columns_of(character: char) -> usize {
    if character < '\u{1100}' { 1 } else { 2 }
}

/// Columns of a text without the codes of its colour.
fn visible(text: &str) -> usize {
    let mut is_code = false;
    let shown = text.chars().filter(|letter| match (is_code, letter) {
        (false, '\x1b') => {
            is_code = true;
            false
        }
        (true, 'm') => {
            is_code = false;
            false
        }
        (is_code, _) => !is_code,
    });
    shown.map(columns_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(columns: usize, text: &str) -> String {
        fitted(text, Style { columns: Some(columns), ..Style::PLAIN })
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        let sentence = "- the read-ahead window of 128 KiB is as large as the reads";
        let expected = "- the read-ahead window of\n  128 KiB is as large as the\n  reads";
        assert_eq!(at(31, sentence), expected);
        assert_eq!(fitted(sentence, Style::PLAIN), sentence, "no terminal");
        assert_eq!(at(80, sentence), sentence);
        let indented = "  run `takeup verify a.tar.zst` before the medium leaves the drive\n";
        let expected =
            "  run `takeup verify a.tar.zst`\n    before the medium leaves the\n    drive\n";
        assert_eq!(at(33, indented), expected);
    }

    #[test]
    fn colour_takes_no_room_and_long_words_stay_whole() {
        let strong = "\x1b[1;31mDAMAGED: the data of 2 files are lost\x1b[0m";
        assert_eq!(at(40, strong), strong);
        let long = "x".repeat(50);
        assert_eq!(at(40, &format!("a {long} b")), format!("a\n  {long}\n  b"));
    }
}
