//! Imports a table of other measurements as an experiment: rows become runs, columns factors.
//!
//! The table is CSV as spreadsheets write it: a first line with the names of the columns, one row
//! for each run after it; commas, semicolons or tabs between fields, quotes where a field needs
//! them. Lines that begin with `#` are comments. The name of a column sets its meaning: a few are
//! the numbers of a run ([`Known`]), those that begin with `measure.` are other measures, and all
//! others are factors.
//!
//! The import makes nothing up. A row needs two of bytes, seconds and rate, or one of them if the
//! caller gives the bytes of every run. If a row has all three, the rate is kept as a printed one,
//! so that the judgement can check it against the other two.

use std::collections::{BTreeMap, BTreeSet};

use crate::quantities::Unit;
use base::names::{meant, there_are};

use crate::record::{Cell, Experiment, FORMAT, Factor, Header, Level, Role, RunRecord, Value};

/// Longest table that is read.
pub const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Largest number of columns and rows.
const COLUMNS_MAX: usize = 1000;
const ROWS_MAX: usize = 1_000_000;
/// Prefix of columns that are other measures.
const MEASURE: &str = "measure.";

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Title of the experiment.
    pub title: String,
    /// Bytes of each run, if the table does not have them.
    pub bytes: Option<u64>,
    /// Columns that are loads: the given work.
    pub loads: Vec<String>,
    /// Column and level in force, which gains are relative to.
    pub present: Vec<(String, String)>,
}

/// Why a table cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A field cannot be parsed.
    #[error("line {line}, column {column} ({name}): {why}")]
    Field {
        /// Counted from 1, with comments and the head.
        line: usize,
        /// From 1.
        column: usize,
        /// The head of the column.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A line cannot be parsed.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The table as a whole is wrong.
    #[error("{0}")]
    Table(String),
}

/// A column with a fixed meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Bytes,
    Seconds,
    /// A rate, in units of this many bytes per second.
    Rate(u64),
    Repeat,
    Note,
    Error,
}

/// The columns with a fixed meaning, for messages and the help.
pub const KNOWN_COLUMNS: &str = "bytes, seconds, bytes_per_second, kb_s, mb_s, gb_s, kib_s, mib_s, \
                                 gib_s, repeat, note, error";

impl Known {
    fn of(name: &str) -> Option<Known> {
        Some(match name {
            "bytes" => Known::Bytes,
            "seconds" => Known::Seconds,
            "bytes_per_second" => Known::Rate(1),
            "kb_s" => Known::Rate(1000),
            "mb_s" => Known::Rate(1_000_000),
            "gb_s" => Known::Rate(1_000_000_000),
            "kib_s" => Known::Rate(1 << 10),
            "mib_s" => Known::Rate(1 << 20),
            "gib_s" => Known::Rate(1 << 30),
            "repeat" => Known::Repeat,
            "note" => Known::Note,
            "error" => Known::Error,
            _ => return None,
        })
    }
}

/// What a column is.
enum Column {
    Known(Known),
    Measure(String),
    Factor(String),
}

/// Reads a table. `size` parses sizes with a suffix, as levels of factors in bytes may have.
///
/// # Errors With the line and the column that cannot be parsed.
pub fn import<E: std::fmt::Display>(
    text: &str,
    options: &ImportOptions,
    size: impl Fn(&str) -> Result<u64, E>,
) -> Result<Experiment, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let separator = separator(text);
    let mut rows = rows(text, separator)?.into_iter();
    let empty =
        || ImportError::Table("the table is empty: its first line must name the columns".into());
    let (head_line, head) = rows.next().ok_or_else(empty)?;
    let table = Table::new(head_line, &head, separator, options)?;
    let mut runs: Vec<RunRecord> = Vec::new();
    let mut repeats: BTreeMap<Cell, u64> = BTreeMap::new();
    let mut seen: BTreeSet<(Cell, u64)> = BTreeSet::new();
    for (line, fields) in rows {
        let mut run = table.run(line, &fields, &size)?;
        let counted = repeats.entry(run.cell.clone()).or_default();
        *counted = if run.repeat > 0 { run.repeat } else { *counted + 1 };
        run.repeat = *counted;
        if !seen.insert((run.cell.clone(), run.repeat)) {
            let why = format!("repeat {} of this combination is already in the table", run.repeat);
            return Err(ImportError::Line { line, why });
        }
        run.order = runs.len() as u64 + 1;
        runs.push(run);
    }
    if runs.is_empty() {
        return Err(ImportError::Table("the table has no rows".to_owned()));
    }
    let header = Header {
        format: FORMAT,
        kind: "import".to_owned(),
        title: options.title.clone(),
        factors: table.factors(&runs, &size)?,
        value: Value::Rate,
        plan: serde_json::Value::Null,
        seed: 0,
        started_unix_seconds: 0,
    };
    Ok(Experiment { header, runs, torn_bytes: 0 })
}

/// A row with the number of its line.
type Row = (usize, Vec<String>);

/// The separator of fields: the one that is most frequent in the first line that is not a comment.
fn separator(text: &str) -> char {
    let head = text.lines().find(|line| !is_comment(line)).unwrap_or_default();
    let count = |separator: char| head.matches(separator).count();
    // In a tie the comma wins.
    [',', ';', '\t'].into_iter().rev().max_by_key(|one| count(*one)).unwrap_or(',')
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// The fields of all rows, without comments and blank lines.
fn rows(text: &str, separator: char) -> Result<Vec<Row>, ImportError> {
    let mut rows = Vec::new();
    let mut lines = (1..).zip(text.split('\n'));
    while let Some((first, line)) = lines.next() {
        if is_comment(line) {
            continue;
        }
        let mut whole = line.to_owned();
        // A quoted field may contain the end of a line.
        let quotes = |line: &str| line.matches('"').count();
        let mut opened = quotes(line);
        while !opened.is_multiple_of(2) {
            let Some((_, more)) = lines.next() else {
                let why = "a quote is opened and never closed".to_owned();
                return Err(ImportError::Line { line: first, why });
            };
            opened += quotes(more);
            whole.push('\n');
            whole.push_str(more);
        }
        if rows.len() > ROWS_MAX {
            return Err(ImportError::Line {
                line: first,
                why: format!("more than {ROWS_MAX} rows"),
            });
        }
        rows.push((first, fields(whole.strip_suffix('\r').unwrap_or(&whole), separator)));
    }
    Ok(rows)
}

/// The fields of a line whose quotes are even (RFC 4180).
fn fields(line: &str, separator: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        let field = &mut fields[last];
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' => is_quoted = !is_quoted,
            other if other == separator && !is_quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

/// The parsed head of a table.
struct Table<'a> {
    names: Vec<String>,
    columns: Vec<Column>,
    separator: char,
    options: &'a ImportOptions,
}

impl<'a> Table<'a> {
    fn new(
        line: usize,
        head: &[String],
        separator: char,
        options: &'a ImportOptions,
    ) -> Result<Table<'a>, ImportError> {
        let wrong = |column: usize, why: &str| ImportError::Field {
            line,
            column: column + 1,
            name: head[column].clone(),
            why: why.to_owned(),
        };
        if head.len() > COLUMNS_MAX {
            let why = format!("more than {COLUMNS_MAX} columns");
            return Err(ImportError::Line { line, why });
        }
        let names: Vec<String> =
            head.iter().map(|name| name.to_lowercase().replace([' ', '-'], "_")).collect();
        for (column, name) in names.iter().enumerate() {
            let measure = name.strip_prefix(MEASURE);
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if !measure.unwrap_or(name).bytes().all(is_word) || measure.unwrap_or(name).is_empty() {
                return Err(wrong(column, "the name of a column is letters, digits and _"));
            }
            if names[..column].contains(name) {
                return Err(wrong(column, "this column is given twice"));
            }
        }
        let columns: Vec<Column> = names
            .iter()
            .map(|name| match (Known::of(name), name.strip_prefix(MEASURE)) {
                (Some(known), _) => Column::Known(known),
                (None, Some(measure)) => Column::Measure(measure.to_owned()),
                (None, None) => Column::Factor(name.clone()),
            })
            .collect();
        let table = Table { names, columns, separator, options };
        table.check(line)?;
        Ok(table)
    }

    fn has(&self, wanted: fn(&Known) -> bool) -> bool {
        self.columns.iter().any(|column| matches!(column, Column::Known(known) if wanted(known)))
    }

    /// Checks that the columns give a rate, and that the columns of the options exist.
    fn check(&self, line: usize) -> Result<(), ImportError> {
        let [bytes, seconds, rate] = [
            self.has(|known| *known == Known::Bytes) || self.options.bytes.is_some(),
            self.has(|known| *known == Known::Seconds),
            self.has(|known| matches!(known, Known::Rate(_))),
        ];
        let factors = self.varied();
        let why = if [bytes, seconds, rate].into_iter().filter(|it| *it).count() < 2 {
            format!(
                "two of bytes, seconds and a rate (mb_s) are needed, or --bytes with one of them; \
                 {}",
                self.taken_for()
            )
        } else if factors.is_empty() {
            format!("no column says what was varied; the columns are {}", self.names.join(", "))
        } else {
            let present = self.options.present.iter().map(|(name, _)| name);
            let mut asked = self.options.loads.iter().chain(present);
            let unknown = asked.find(|name| !factors.contains(&name.as_str()));
            return unknown.map_or(Ok(()), |name| {
                let there_are = there_are(name, &factors);
                let why = format!("no varied column {name}: {there_are}");
                Err(ImportError::Table(why))
            });
        };
        Err(ImportError::Line { line, why })
    }

    /// The columns that are factors.
    fn varied(&self) -> Vec<&str> {
        let columns = self.columns.iter();
        let factors = columns.filter_map(|column| match column {
            Column::Factor(name) => Some(name.as_str()),
            Column::Known(_) | Column::Measure(_) => None,
        });
        factors.collect()
    }

    /// The columns, and which of the factors may be misspelt numbers of a run.
    fn taken_for(&self) -> String {
        let known =
            || KNOWN_COLUMNS.split(", ").filter(|name| !self.names.iter().any(|own| own == name));
        let meant = |name: &&str| Some(format!("{} instead of {name}", meant(name, known())?));
        let meant: Vec<String> = self.varied().iter().filter_map(meant).collect();
        let columns = format!("the columns are {}", self.names.join(", "));
        match &meant[..] {
            [] => columns,
            some => format!("{columns}; did you mean {}?", some.join(", ")),
        }
    }

    /// One row.
    fn run<E: std::fmt::Display>(
        &self,
        line: usize,
        fields: &[String],
        size: &impl Fn(&str) -> Result<u64, E>,
    ) -> Result<RunRecord, ImportError> {
        if fields.len() != self.columns.len() {
            let (found, wanted) = (fields.len(), self.columns.len());
            let names = self.names.join(", ");
            let why = format!("{found} fields, but the first line names {wanted} columns: {names}");
            return Err(ImportError::Line { line, why });
        }
        let mut run = RunRecord::default();
        let (mut bytes, mut seconds, mut rate) = (None, None, None);
        for (at, (field, column)) in fields.iter().zip(&self.columns).enumerate() {
            let wrong = |why: String| ImportError::Field {
                line,
                column: at + 1,
                name: self.names[at].clone(),
                why,
            };
            if field.is_empty() {
                continue;
            }
            match column {
                Column::Known(Known::Bytes) => {
                    bytes = Some(size(field).map_err(|why| wrong(format!("{field:?}: {why}")))?);
                }
                Column::Known(Known::Seconds) => seconds = Some(self.above_zero(field, wrong)?),
                Column::Known(Known::Rate(unit)) => {
                    rate = Some(self.above_zero(field, wrong)? * *unit as f64);
                }
                Column::Known(Known::Repeat) => {
                    let whole = field.parse().ok().filter(|repeat| *repeat > 0);
                    let why = || wrong(format!("{field:?} is not a repeat number (1 or more)"));
                    run.repeat = whole.ok_or_else(why)?;
                }
                Column::Known(Known::Note) => run.notes.push(field.clone()),
                Column::Known(Known::Error) => run.error = Some(field.clone()),
                Column::Measure(name) => {
                    run.measures.insert(name.clone(), self.number(field, wrong)?);
                }
                Column::Factor(name) => {
                    let level = level(name, field, size).map_err(wrong)?;
                    run.cell.insert(name.clone(), level);
                }
            }
        }
        self.measured(line, run, (bytes.or(self.options.bytes), seconds, rate))
    }

    /// Computes the third of bytes, seconds and rate from the other two.
    fn measured(
        &self,
        line: usize,
        run: RunRecord,
        (bytes, seconds, rate): (Option<u64>, Option<f64>, Option<f64>),
    ) -> Result<RunRecord, ImportError> {
        let printed_bytes_per_second = rate.filter(|_| bytes.is_some() && seconds.is_some());
        let (bytes, seconds) = match (bytes, seconds, rate) {
            (Some(bytes), Some(seconds), _) => (bytes, seconds),
            (Some(bytes), None, Some(rate)) => (bytes, bytes as f64 / rate),
            (None, Some(seconds), Some(rate)) => ((rate * seconds).round() as u64, seconds),
            _ if run.error.is_some() => (0, 0.0),
            _ => {
                let why = "two of bytes, seconds and a rate are needed, or an error".to_owned();
                return Err(ImportError::Line { line, why });
            }
        };
        if bytes == 0 && run.error.is_none() {
            let why = "a run of 0 bytes; put the reason into the column error".to_owned();
            return Err(ImportError::Line { line, why });
        }
        Ok(RunRecord { bytes, seconds, printed_bytes_per_second, ..run })
    }

    fn above_zero(
        &self,
        field: &str,
        wrong: impl Fn(String) -> ImportError,
    ) -> Result<f64, ImportError> {
        let number = self.number(field, &wrong)?;
        if number > 0.0 { Ok(number) } else { Err(wrong(format!("{field:?} is not above 0"))) }
    }

    /// A number; if commas do not separate fields, one may be a decimal comma.
    fn number(
        &self,
        field: &str,
        wrong: impl Fn(String) -> ImportError,
    ) -> Result<f64, ImportError> {
        let is_decimal_comma = self.separator != ',' && field.matches(',').count() == 1;
        let plain = if is_decimal_comma { field.replace(',', ".") } else { field.to_owned() };
        let number = plain.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| wrong(format!("{field:?} is not a number")))
    }

    /// The factors with their levels: numbers from the smallest, words in the order of the table.
    fn factors<E: std::fmt::Display>(
        &self,
        runs: &[RunRecord],
        size: &impl Fn(&str) -> Result<u64, E>,
    ) -> Result<Vec<Factor>, ImportError> {
        let mut factors = Vec::new();
        for name in self.columns.iter().filter_map(|column| match column {
            Column::Factor(name) => Some(name),
            _ => None,
        }) {
            let mut levels: Vec<Level> = Vec::new();
            for level in runs.iter().filter_map(|run| run.cell.get(name)) {
                if !levels.contains(level) {
                    levels.push(level.clone());
                }
            }
            if levels.iter().all(|level| matches!(level, Level::Number(_))) {
                levels.sort();
            }
            let mut factor = Factor::new(name, levels);
            if self.options.loads.contains(name) {
                factor.role = Role::Load;
            }
            if let Some((_, text)) = self.options.present.iter().find(|(known, _)| known == name) {
                let level = level(name, text, size).map_err(ImportError::Table)?;
                if !factor.levels.contains(&level) {
                    let known: Vec<String> =
                        factor.levels.iter().map(|level| level.shown(name)).collect();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let there_are = there_are(text, &known);
                    return Err(ImportError::Table(format!(
                        "no row has {name} {text}: {there_are}"
                    )));
                }
                factor.present = Some(level);
            }
            factors.push(factor);
        }
        Ok(factors)
    }
}

/// The level of a factor: a number, in bytes possibly with a suffix, or a word.
fn level<E: std::fmt::Display>(
    name: &str,
    field: &str,
    size: &impl Fn(&str) -> Result<u64, E>,
) -> Result<Level, String> {
    if Unit::of(name) == Unit::Bytes {
        return size(field).map(Level::Number).map_err(|why| format!("{field:?}: {why}"));
    }
    Ok(field.parse().map_or_else(|_| Level::Text(field.to_owned()), Level::Number))
}

#[cfg(test)]
mod tests;
