//! A text, line by line, as what was recognised.
//!
//! Each reader looks at one line. If that begins like its own and is not whole, it gets the next
//! lines, too: mail programs wrap. What stays incomplete is refused with its line.

mod btape;
mod calls;
mod clock;
mod command;
mod covered;
mod document;
mod fio;
mod iostat;
mod job_report;
mod layers;
mod moved;
mod number;
mod queue;
mod sar;
mod sizes;
mod summary;
mod tape_log;
mod tape_status;

use crate::piece::{Command, JobReport, Piece, What};

/// Longest text that is read.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Most lines that one piece was wrapped into.
const WRAPPED_MAX: usize = 6;
/// Most lines that are refused by name.
pub const REFUSED_MAX: usize = 1000;

/// What was read of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// In the order of the text.
    pub pieces: Vec<Piece>,
    pub refused: Vec<Refused>,
    /// Lines that are neither, blank ones not counted.
    pub passed_lines: u64,
}

/// A line that begins like something known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// From 1.
    pub line: u32,
    pub why: String,
}

/// What a reader says of a line.
#[derive(Clone, Debug, PartialEq)]
enum Met {
    /// Nothing of its own.
    Nothing,
    /// It begins like its own; the reason if it stays so, or nothing if that is no matter.
    Begun(String),
    Whole(What),
}

impl Met {
    fn begun(why: &str) -> Met {
        Met::Begun(why.to_owned())
    }

    fn of(what: Option<What>) -> Met {
        what.map_or(Met::Nothing, Met::Whole)
    }
}

/// What earlier lines say of later ones.
#[derive(Clone, Debug, Default)]
struct Before {
    columns: Option<iostat::Columns>,
    sar: Option<sar::Columns>,
    layers: Option<layers::Columns>,
    /// A queue setting that was asked for and comes in the next line.
    asked: Option<(String, String)>,
    /// The machine of the last prompt.
    machine: String,
    /// Machines that `ssh` has logged in to, from prompts that do not name theirs.
    logins: Vec<String>,
    /// The text is in a file of jobs.
    in_job_file: bool,
    /// The text is in a list of flags of TapeAlert.
    in_alerts: bool,
    /// The line before was the head of numbers of the processors.
    processors: bool,
    /// Lines that are not known came since the last piece.
    has_text: bool,
    /// Bytes in which ends of documents were looked for.
    searched_bytes: usize,
}

/// A line as it was printed.
struct Line {
    text: String,
    quoted: u32,
}

/// Reads a text. Longer ones than [`TEXT_BYTES_MAX`] are cut there.
pub fn read(text: &str) -> Read {
    let lines: Vec<Line> = text.lines().map(cleaned).collect();
    let mut read = Read::default();
    let mut before = Before::default();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].text.trim().is_empty() {
            // The next table of sar has its own columns.
            before.sar = None;
            before.in_alerts = false;
            at += 1;
            continue;
        }
        at += match document::at(&lines[at..], &mut before) {
            Some(found) => read.document(found, &lines[at], at, &mut before),
            None => read.one(&lines[at..], at, &mut before),
        };
    }
    if !text.ends_with('\n') {
        read.doubt_the_end(&lines);
    }
    read
}

impl Read {
    /// A number at the end of a text may have lost digits, and a word letters.
    fn doubt_the_end(&mut self, lines: &[Line]) {
        let last = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let ends_in_digit =
            lines.last().is_some_and(|it| it.text.ends_with(|it: char| is_of_number(it)));
        let may_go_on = |what: &What| {
            let is_name = matches!(what, What::JobValue(_) | What::DiskReport(_) | What::Layer(_));
            let is_time = matches!(what, What::JobReport(JobReport::Elapsed(_)));
            is_name || is_time || matches!(what, What::Setting(_))
        };
        let is_doubtful =
            |piece: &mut Piece| piece.lines.1 == last && (ends_in_digit || may_go_on(&piece.what));
        if self.pieces.pop_if(is_doubtful).is_some() {
            let why = "the text ends in this value, which may be cut: end it with a new line";
            self.refused.push(Refused { line: last, why: why.to_owned() });
        }
    }

    /// Takes a document; how many lines it has.
    fn document(
        &mut self,
        found: document::Found,
        first: &Line,
        at: usize,
        before: &mut Before,
    ) -> usize {
        let line_of = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        match found.what {
            Ok(what) => {
                let lines = (line_of(at), line_of(at + found.lines - 1));
                let after_text = std::mem::take(&mut before.has_text);
                self.pieces.push(Piece { lines, quoted: first.quoted, after_text, what });
            }
            Err(why) => {
                before.has_text = true;
                self.refuse(line_of(at), why);
            }
        }
        found.lines
    }

    /// Reads what begins at the first of these lines; how many it takes.
    fn one(&mut self, lines: &[Line], at: usize, before: &mut Before) -> usize {
        let line_of = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        let mut text = lines[0].text.clone();
        let mut why = None;
        for taken in 1..=WRAPPED_MAX.min(lines.len()) {
            if taken > 1 {
                let next = &lines[taken - 1];
                if !goes_on(next, &lines[0], before) {
                    break;
                }
                text = format!("{text} {}", next.text.trim_start());
            }
            match recognised(&text, before) {
                Met::Whole(What::Passed) => return taken,
                Met::Whole(what) => {
                    let what = match (what, lines.get(taken)) {
                        (what, Some(next)) if is_cut(&what, &lines[taken - 1], next, before) => {
                            if let What::Command(command) = what {
                                // Its options are not known.
                                What::Command(Command { stages: Vec::new(), ..command })
                            } else {
                                self.refuse(line_of(at), "a line that is cut in two".to_owned());
                                return taken;
                            }
                        }
                        (what, _) => what,
                    };
                    let lines_of_it = (line_of(at), line_of(at + taken - 1));
                    let after_text = std::mem::take(&mut before.has_text);
                    let quoted = lines[0].quoted;
                    let piece = Piece { lines: lines_of_it, quoted, after_text, what };
                    self.pieces.push(piece);
                    return taken;
                }
                Met::Begun(reason) => {
                    why.get_or_insert(reason);
                }
                Met::Nothing => break,
            }
        }
        before.has_text |= text.contains(char::is_alphanumeric);
        if text.ends_with("ermission denied") {
            // `sudo echo 2 > PATH` writes nothing.
            let is_set = |piece: &mut Piece| matches!(&piece.what, What::Setting(it) if it.is_set);
            self.pieces.pop_if(is_set);
        }
        match why.filter(|why| !why.is_empty()) {
            Some(why) => self.refuse(line_of(at), why),
            None => self.passed_lines += 1,
        }
        1
    }

    fn refuse(&mut self, line: u32, why: String) {
        let why = match self.refused.len() {
            0..REFUSED_MAX => why,
            REFUSED_MAX => "further lines that are not whole are not listed".to_owned(),
            _ => return,
        };
        self.refused.push(Refused { line, why });
    }
}

fn is_of_number(letter: char) -> bool {
    letter.is_numeric() || matches!(letter, '.' | ',' | ':')
}

/// Lines that are shorter were not cut at the edge of a screen.
const CUT_COLUMNS_MIN: usize = 72;

/// Whether a line that is whole by itself seems to go on in the next one.
fn is_cut(what: &What, line: &Line, next: &Line, before: &Before) -> bool {
    let word = next.text.trim_start().split(' ').next().unwrap_or_default();
    if matches!(what, What::Command(_)) {
        let is_option = word.starts_with('-') && word.len() > 1 && !word.starts_with("--- ");
        let is_value = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase())
        });
        let is_rest = line.text.len() >= CUT_COLUMNS_MIN && !word.contains(':');
        let seems = is_option || is_value || (is_rest && begins_low(word));
        return seems && goes_on(next, line, before);
    }
    if matches!(what, What::JobReport(JobReport::Elapsed(_))) {
        return begins_low(word) && goes_on(next, line, before);
    }
    if matches!(what, What::Layer(layer) if layer.mounted_at.is_empty()) {
        return next.text.starts_with(['/', '[']) && goes_on(next, line, before);
    }
    let ends_in_value = matches!(what, What::Job(_) | What::Call(_));
    let is_long = line.text.len() >= CUT_COLUMNS_MIN;
    let seems = ends_in_value && is_long && line.text.ends_with(char::is_alphanumeric);
    seems && begins_low(word) && goes_on(next, line, before)
}

/// As the rest of a word or a number does. fio prints its version behind a job.
fn begins_low(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit())
        && !word.starts_with("fio-")
}

/// Whether a line can be the rest of the one before: it is nothing by itself.
fn goes_on(next: &Line, first: &Line, before: &Before) -> bool {
    let is_text = !next.text.trim().is_empty() && next.quoted == first.quoted;
    is_text && matches!(recognised(&next.text, &mut before.clone()), Met::Nothing)
}

/// What a line is. The first reader to whom it says something decides.
fn recognised(text: &str, before: &mut Before) -> Met {
    let readers: [fn(&str, &mut Before) -> Met; 16] = [
        fio::job_file,
        command::typed,
        tape_status::line,
        btape::speed,
        sar::row,
        layers::row,
        iostat::row,
        calls::call,
        sizes::copied,
        clock::timed,
        fio::printed,
        queue::value,
        tape_log::line,
        moved::totals,
        covered::line,
        job_report::line,
    ];
    for reader in readers {
        match reader(text, before) {
            Met::Nothing => {}
            met => return met,
        }
    }
    Met::of(summary::line(text).map(What::Summary))
}

/// A line without what a terminal or a mail adds: colours, marks of quoting.
fn cleaned(line: &str) -> Line {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                while letters.next_if(|it| !it.is_ascii_alphabetic()).is_some() {}
                letters.next();
            }
            // The title of a window.
            '\u{1b}' if letters.peek() == Some(&']') => {
                while letters.next_if(|it| !matches!(it, '\u{7}' | '\\')).is_some() {}
                letters.next();
            }
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            // A program that overwrites its line has printed all of them.
            '\t' | '\r' => plain.push(letter),
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    let plain = plain.trim_end();
    let plain = plain.rsplit('\r').next().unwrap_or(plain);
    let (mut rest, mut quoted) = (plain, 0);
    while let Some(inner) = rest.trim_start().strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
        quoted += 1;
    }
    Line { text: rest.trim_end().to_owned(), quoted }
}

#[cfg(test)]
mod tests;
