//! Tables with aligned columns and without lines, so that they can be cut and sorted.

use base::escape::escape_controls;

/// The edge to which the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
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

/// A table with a head.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<(Vec<String>, Emphasis)>,
}

/// How much a row stands out, where colour is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Like all others.
    None,
    /// Bold.
    Strong,
}

/// A line that stands out, where colour is allowed.
pub fn strong(line: &str, colour: Colour) -> String {
    match colour {
        Colour::Ansi => format!("\x1b[1m{line}\x1b[0m"),
        Colour::Plain => line.to_owned(),
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| (escape_controls(name), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Appends a row: one cell for each column. Control characters are escaped.
    pub fn row(&mut self, cells: Vec<String>, emphasis: Emphasis) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        let cells = cells.iter().map(|cell| escape_controls(cell)).collect();
        self.rows.push((cells, emphasis));
    }

    /// The lines, each with a line end, without trailing blanks.
    pub fn render(&self, colour: Colour) -> String {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|(cells, _)| &cells[column]);
            cells.chain([&head[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = self.line(&head, &widths) + "\n";
        for (cells, emphasis) in &self.rows {
            let line = self.line(cells, &widths);
            let line = match emphasis {
                Emphasis::Strong => strong(&line, colour),
                Emphasis::None => line,
            };
            text.push_str(&(line + "\n"));
        }
        text
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

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[("stage", Align::Left), ("rate", Align::Right)]);
        table.row(vec!["read".into(), "1670 MB/s".into()], Emphasis::None);
        table.row(vec!["compress".into(), "9 MB/s".into()], Emphasis::Strong);
        insta::assert_snapshot!(table.render(Colour::Plain));
        assert!(table.render(Colour::Ansi).contains("\x1b[1mcompress"));
    }
}
