//! Tables with aligned columns and without lines, so that they can be cut and sorted.
//!
//! On a terminal a table is no wider than the terminal: words are shortened first, then columns are
//! left out. A wrapped row could not be read. In a file or a pipe a table is whole.

use base::escape::escape_controls;

use crate::prose::{columns_of, width};

/// The edge to which the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Whether text may carry colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Escape sequences of a terminal.
    Ansi,
    /// Plain text.
    Plain,
}

/// How text is printed: with colour or without, and how wide it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether it may carry colour.
    pub colour: Colour,
    /// Columns of the terminal; `None` where there is none.
    pub columns: Option<usize>,
}

impl Style {
    /// Text for a file, a pipe or a record.
    pub const PLAIN: Style = Style { colour: Colour::Plain, columns: None };
    /// Text for a terminal of any width.
    pub const ANSI: Style = Style { colour: Colour::Ansi, columns: None };
}

/// A table with a head.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<(Vec<String>, Emphasis)>,
    /// Columns that are left out first where the terminal is narrow.
    least: Vec<usize>,
}

/// The columns of a table that are shown, and their widths.
struct Layout {
    shown: Vec<(usize, usize)>,
}

/// Words of a narrow table are not shortened to fewer columns.
const WORDS_WIDTH_MIN: usize = 24;
/// In the place of what is left out of a cell.
const CUT: &str = "...";
/// Blanks between two columns.
const GAP: usize = 2;

/// How much a row stands out, where colour is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Like all others.
    None,
    /// Bold.
    Strong,
}

/// What a line means for the user, and so its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well: green.
    Good,
    /// Something was left out, or needs a look: yellow.
    Warning,
    /// Data are damaged, or nothing works: red.
    Bad,
}

/// A line that stands out, where colour is allowed.
pub fn strong(line: &str, style: Style) -> String {
    dressed(line, "\x1b[1m", style)
}

/// A line that stands out in the colour of its meaning, where colour is allowed.
pub fn toned(line: &str, tone: Tone, style: Style) -> String {
    let code = match tone {
        Tone::Good => "\x1b[1;32m",
        Tone::Warning => "\x1b[1;33m",
        Tone::Bad => "\x1b[1;31m",
    };
    dressed(line, code, style)
}

fn dressed(line: &str, code: &str, style: Style) -> String {
    match style.colour {
        Colour::Ansi => format!("{code}{line}\x1b[0m"),
        Colour::Plain => line.to_owned(),
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| (escape_controls(name), *align)).collect();
        Table { columns, rows: Vec::new(), least: Vec::new() }
    }

    /// Appends a row: one cell for each column. Control characters are escaped.
    pub fn row(&mut self, cells: Vec<String>, emphasis: Emphasis) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        let cells = cells.iter().map(|cell| escape_controls(cell)).collect();
        self.rows.push((cells, emphasis));
    }

    /// Names the columns that are left out first where the terminal is narrow. The others follow
    /// from the last one on; the first column always stays.
    #[must_use]
    pub fn leaving_out_first(mut self, names: &[&str]) -> Table {
        let number = |name: &&str| self.columns.iter().position(|(column, _)| column == name);
        self.least = names.iter().filter_map(number).collect();
        self
    }

    /// The lines, each with a line end, without trailing blanks.
    pub fn render(&self, style: Style) -> String {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let layout = self.layout(&head, style.columns.unwrap_or(usize::MAX));
        let mut text = self.line(&head, &layout) + "\n";
        for (cells, emphasis) in &self.rows {
            let line = self.line(cells, &layout);
            let line = match emphasis {
                Emphasis::Strong => strong(&line, style),
                Emphasis::None => line,
            };
            text.push_str(&(line + "\n"));
        }
        text
    }

    /// The columns that fit: words are shortened first, then columns are left out.
    fn layout(&self, head: &[String], columns: usize) -> Layout {
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|(cells, _)| &cells[column]);
            cells.chain([&head[column]]).map(|cell| width(cell)).max().unwrap_or(0)
        };
        let mut shown: Vec<(usize, usize)> =
            (0..self.columns.len()).map(|column| (column, widest(column))).collect();
        let mut least = self.least.iter();
        loop {
            let mut narrowed = self.narrowed(&shown, head, columns);
            if let [(_, width)] = &mut *narrowed {
                *width = columns.min(*width);
            }
            if total(&narrowed) <= columns {
                return Layout { shown: narrowed };
            }
            let left_out =
                least.next().copied().or_else(|| shown.last().map(|(column, _)| *column));
            shown.retain(|(column, _)| Some(*column) != left_out || *column == 0);
        }
    }

    /// The same columns, with words as far shortened as it takes.
    fn narrowed(
        &self,
        shown: &[(usize, usize)],
        head: &[String],
        columns: usize,
    ) -> Vec<(usize, usize)> {
        let mut narrowed = shown.to_vec();
        loop {
            let excess = total(&narrowed).saturating_sub(columns);
            let least = |column: usize| width(&head[column]).max(WORDS_WIDTH_MIN);
            let words = narrowed.iter_mut().filter(|(column, width)| {
                self.columns[*column].1 == Align::Left && *width > least(*column)
            });
            let widest = words.max_by_key(|(_, width)| *width);
            let (Some((column, width)), true) = (widest, excess > 0) else { return narrowed };
            *width = least(*column).max(width.saturating_sub(excess));
        }
    }

    /// The table in Markdown, with padded columns so that the source is readable too.
    pub fn markdown(&self) -> String {
        // A pipe would end the cell.
        let text = |cell: &String| cell.replace('|', "\\|");
        let head: Vec<String> = self.columns.iter().map(|(name, _)| text(name)).collect();
        let cells = self.rows.iter().map(|(cells, _)| cells.iter().map(text).collect());
        let cells: Vec<Vec<String>> = cells.collect();
        let width = |column: usize| {
            let all = cells.iter().chain([&head]).map(|row| row[column].chars().count());
            all.max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let rule = widths.iter().zip(&self.columns).map(|(width, (_, align))| match align {
            Align::Left => "-".repeat(*width),
            Align::Right => "-".repeat(width - 1) + ":",
        });
        let rule: Vec<String> = rule.collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths);
            let padded: Vec<String> =
                padded.map(|(cell, width)| format!("{cell:<width$}")).collect();
            format!("| {} |\n", padded.join(" | "))
        };
        [&head, &rule].into_iter().chain(&cells).map(line).collect()
    }

    fn line(&self, cells: &[String], layout: &Layout) -> String {
        let mut line = String::new();
        for (column, room) in layout.shown.iter().copied() {
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shortened(&cells[column], room);
            let blanks = " ".repeat(room.saturating_sub(width(&cell)));
            match self.columns[column].1 {
                Align::Left => line.push_str(&(cell + &blanks)),
                Align::Right => line.push_str(&(blanks + &cell)),
            }
        }
        line.trim_end().to_owned()
    }
}

fn total(shown: &[(usize, usize)]) -> usize {
    shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// The first characters that fit.
fn that_fit(letters: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut room = columns;
    letters.take_while(move |letter| {
        let fits = columns_of(*letter) <= room;
        room = room.saturating_sub(columns_of(*letter));
        fits
    })
}

/// A cell without its middle where it is too wide: a path is known by both of its ends.
fn shortened(cell: &str, columns: usize) -> String {
    if width(cell) <= columns {
        return cell.to_owned();
    }
    let kept = columns.saturating_sub(CUT.len());
    let front: String = that_fit(cell.chars(), kept.div_ceil(2)).collect();
    let end: Vec<char> = that_fit(cell.chars().rev(), kept / 2).collect();
    front + CUT + &end.iter().rev().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[("stage", Align::Left), ("rate", Align::Right)]);
        table.row(vec!["read".into(), "1670 MB/s".into()], Emphasis::None);
        table.row(vec!["compress".into(), "9 MB/s".into()], Emphasis::Strong);
        insta::assert_snapshot!(table.render(Style::PLAIN));
        assert!(table.render(Style::ANSI).contains("\x1b[1mcompress"));
    }

    fn wide() -> Table {
        let mut table = Table::new(&[
            ("file", Align::Left),
            ("threads", Align::Right),
            ("processor", Align::Right),
            ("rate", Align::Right),
            ("what it waits for", Align::Left),
        ]);
        let name = "/srv/data/projects/2026/experiments/first.tar.zst";
        let waits = "the disk of the tree, and the program behind it";
        table.row(
            [name, "32", "1.20 s", "1670 MB/s", waits].map(str::to_owned).to_vec(),
            Emphasis::Strong,
        );
        table.leaving_out_first(&["processor"])
    }

    /// On a terminal of any width every line fits, and the first column is there.
    #[test]
    fn a_table_is_as_wide_as_the_terminal_at_most() {
        for columns in 20..200 {
            let text = wide().render(Style { colour: Colour::Plain, columns: Some(columns) });
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns && text.starts_with("file"), "{columns}:\n{text}");
        }
        let widths = [None, Some(120), Some(80), Some(60), Some(40)];
        let shown = widths.map(|columns| {
            let text = wide().render(Style { columns, ..Style::PLAIN });
            format!("{columns:?}\n{text}")
        });
        insta::assert_snapshot!(shown.join("\n"));
    }

    /// A character of two columns moves what stands behind it, and may not be cut in half.
    #[test]
    fn wide_characters_keep_the_columns() {
        let mut table = Table::new(&[("file", Align::Left), ("bytes", Align::Right)]);
        let names = ["a.txt".to_owned(), "\u{5199}\u{771f}".repeat(12)];
        for name in names {
            table.row(vec![name, "1 kB".to_owned()], Emphasis::None);
        }
        for columns in [None, Some(70), Some(51), Some(36), Some(35)] {
            let text = table.render(Style { columns, ..Style::PLAIN });
            let ends: Vec<usize> = text.lines().map(width).collect();
            assert!(ends.iter().all(|end| *end == ends[0]), "{columns:?}: {ends:?}\n{text}");
            assert!(columns.is_none_or(|columns| ends[0] <= columns), "{columns:?}:\n{text}");
        }
    }

    #[test]
    fn a_tone_is_a_colour_where_that_is_allowed() {
        assert_eq!(toned("OK", Tone::Good, Style::ANSI), "\x1b[1;32mOK\x1b[0m");
        assert_eq!(toned("INCOMPLETE", Tone::Warning, Style::ANSI), "\x1b[1;33mINCOMPLETE\x1b[0m");
        assert_eq!(toned("DAMAGED", Tone::Bad, Style::ANSI), "\x1b[1;31mDAMAGED\x1b[0m");
        assert_eq!(toned("DAMAGED", Tone::Bad, Style::PLAIN), "DAMAGED");
    }
}
