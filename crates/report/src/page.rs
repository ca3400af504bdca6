//! A self-contained page of HTML: text, figures and tables in one file, without network, fonts or
//! libraries. It is readable in light and dark, with the keyboard and by screen readers.
//!
//! The script does one thing: it shows the numbers of the point under the pointer or the focus at
//! once, and the arrow keys go from point to point. Without the script, `<title>` and the tables
//! have the same numbers.

use std::fmt::Write;
use std::path::Path;

use base::escape::escape_path;
use base::format::{counted, size};

use crate::figure::forest::Forest;
use crate::figure::spans::Spans;
use crate::figure::{Figure, STYLE, escaped};
use crate::table::Align;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTable {
    pub caption: String,
    /// Heads, and what their cells hold.
    pub columns: Vec<(String, Cells)>,
    /// Rows, a cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Words, aligned left.
    #[default]
    Words,
    /// Numbers, aligned right.
    Numbers,
    /// Sentences, which wrap where there is no room.
    Sentences,
}

impl Cells {
    /// The alignment of the column on a terminal.
    pub fn align(self) -> Align {
        match self {
            Cells::Words | Cells::Sentences => Align::Left,
            Cells::Numbers => Align::Right,
        }
    }
}

/// A section of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageSection {
    /// Heading.
    pub title: String,
    /// The text under the heading.
    pub text: String,
    /// Ratios against the band of differences too small to matter, over the whole width.
    pub forests: Vec<Forest>,
    /// Time spans of findings, in front of the figures and as wide as each of them.
    pub spans: Vec<Spans>,
    /// The figures, side by side where there is room.
    pub figures: Vec<Figure>,
    /// Tables, open or folded.
    pub tables: Vec<(PageTable, Folding)>,
}

/// Whether a table is open from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// Open from the start.
    Open,
    /// Folded until the reader opens it.
    Folded,
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Title and first heading.
    pub title: String,
    /// The text under the title.
    pub subtitle: String,
    /// What was measured, where, when and with which options: name and value.
    pub facts: Vec<(String, String)>,
    pub sentences: Vec<Conclusion>,
    pub sections: Vec<PageSection>,
}

/// A sentence of the conclusions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conclusion {
    pub subject: String,
    /// The sentence.
    pub text: String,
    /// The verdict, in a word or two.
    pub verdict: Option<String>,
    /// What to type: the program, the line, and the line that undoes it.
    pub typed: Vec<[String; 3]>,
}

const PAGE_STYLE: &str = include_str!("page/page.css");

const SCRIPT: &str = include_str!("page/page.js");

impl Page {
    /// The page as HTML.
    pub fn to_html(&self) -> String {
        let title = escaped(&self.title);
        let skip = match self.sentences.as_slice() {
            [] => "",
            _ => "<a class=\"skip\" href=\"#conclusions\">to the conclusions</a>\n",
        };
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
             <title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n\
             {skip}<main>\n<h1>{title}</h1>\n<p class=\"dim\">{}</p>\n",
            escaped(&self.subtitle)
        );
        self.put_facts(&mut text);
        self.put_sentences(&mut text);
        for section in &self.sections {
            section.put(&mut text);
        }
        let _ = write!(
            text,
            "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        );
        text
    }

    fn put_facts(&self, text: &mut String) {
        if self.facts.is_empty() {
            return;
        }
        text.push_str("<dl class=\"facts\">\n");
        for (name, value) in &self.facts {
            let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
        }
        text.push_str("</dl>\n");
    }

    fn put_sentences(&self, text: &mut String) {
        if self.sentences.is_empty() {
            return;
        }
        text.push_str("<h2 id=\"conclusions\">Conclusions</h2>\n<div class=\"card\"><dl>\n");
        let mut last = "";
        for one in &self.sentences {
            let head = if one.subject == last { "" } else { &one.subject };
            last = &one.subject;
            let _ = write!(text, "<dt>{}</dt><dd>{}", escaped(head), escaped(&one.text));
            if let Some(verdict) = &one.verdict {
                let _ = write!(text, " <span class=\"verdict\">{}</span>", escaped(verdict));
            }
            if !one.typed.is_empty() {
                text.push_str(
                    "<table class=\"typed\"><thead><tr><th scope=\"col\">with</th>\
                    <th scope=\"col\">type</th><th scope=\"col\">and back</th></tr></thead><tbody>",
                );
            }
            for [program, line, undo] in &one.typed {
                let _ = write!(
                    text,
                    "<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                    escaped(program),
                    escaped(line),
                    escaped(undo)
                );
            }
            if !one.typed.is_empty() {
                text.push_str("</tbody></table>");
            }
            text.push_str("</dd>\n");
        }
        text.push_str("</dl></div>\n");
    }
}

impl PageSection {
    /// All drawings of the section, each as a self-contained SVG file.
    pub fn files(&self) -> Vec<String> {
        let forests = self.forests.iter().filter(|forest| !forest.rows.is_empty());
        let spans = self.drawn_spans().map(Spans::to_file);
        let figures = self.drawn_figures().map(Figure::to_file);
        forests.map(Forest::to_file).chain(spans).chain(figures).collect()
    }

    /// The figures with something in them: an empty one would only take room.
    fn drawn_figures(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| !figure.is_empty())
    }

    fn drawn_spans(&self) -> impl Iterator<Item = &Spans> {
        self.spans.iter().filter(|spans| !spans.lanes.is_empty())
    }

    fn put(&self, text: &mut String) {
        let _ = writeln!(text, "<section>\n<h2>{}</h2>", escaped(&self.title));
        if !self.text.is_empty() {
            let _ = writeln!(text, "<p class=\"dim\">{}</p>", escaped(&self.text));
        }
        for forest in self.forests.iter().filter(|forest| !forest.rows.is_empty()) {
            let _ = writeln!(
                text,
                "<figure class=\"card wide\"><div class=\"scroll\">{}</div></figure>",
                forest.to_part()
            );
        }
        let spans = self.drawn_spans().map(Spans::to_part);
        let drawn: Vec<String> = spans.chain(self.drawn_figures().map(Figure::to_part)).collect();
        if !drawn.is_empty() {
            text.push_str("<div class=\"figures\">\n");
            for figure in drawn {
                let _ = writeln!(text, "<figure class=\"card\">{figure}</figure>");
            }
            text.push_str("</div>\n");
        }
        for (table, folding) in &self.tables {
            match folding {
                Folding::Open => table.put(text),
                Folding::Folded => {
                    let caption = escaped(&table.caption);
                    let _ = writeln!(text, "<details><summary>{caption}</summary>");
                    table.put(text);
                    text.push_str("</details>\n");
                }
            }
        }
        text.push_str("</section>\n");
    }
}

impl PageTable {
    fn put(&self, text: &mut String) {
        let _ = write!(
            text,
            "<div class=\"card scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\
             <caption>{0}</caption>\n<thead><tr>",
            escaped(&self.caption)
        );
        let class = |cells: &Cells| match cells {
            Cells::Words => "",
            Cells::Numbers => " class=\"number\"",
            Cells::Sentences => " class=\"prose\"",
        };
        for (name, cells) in &self.columns {
            let _ = write!(text, "<th scope=\"col\"{}>{}</th>", class(cells), escaped(name));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            text.push_str("<tr>");
            for (cell, (_, cells)) in row.iter().zip(&self.columns) {
                let _ = write!(text, "<td{}>{}</td>", class(cells), escaped(cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>\n");
    }

    /// The table without columns that are empty in every row.
    #[must_use]
    pub fn without_empty_columns(mut self) -> PageTable {
        let is_filled = |at: usize| self.rows.iter().any(|row| !row[at].is_empty());
        let filled: Vec<bool> = (0..self.columns.len()).map(is_filled).collect();
        let mut kept = filled.iter();
        self.columns.retain(|_| kept.next() == Some(&true));
        for row in &mut self.rows {
            let mut kept = filled.iter();
            row.retain(|_| kept.next() == Some(&true));
        }
        self
    }
}

/// The line about a file that a command wrote beside its text.
pub fn wrote(path: &Path, bytes: u64) -> String {
    format!("wrote {}: {}\n", escape_path(path), size(bytes))
}

/// The line about a folder with figures.
pub fn wrote_figures(folder: &Path, count: usize) -> String {
    format!("wrote {} to {}\n", counted(count as u64, "figure", "figures"), escape_path(folder))
}

/// A line of CSV (RFC 4180) with `\n` at its end. A field that a spreadsheet would read as a
/// formula gets an apostrophe in front, which makes it text.
pub fn csv_line<'a>(fields: impl IntoIterator<Item = &'a String>) -> String {
    let mut line = String::new();
    for (field, number) in fields.into_iter().zip(0..) {
        let may_be_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let apostrophe = if may_be_formula && field.parse::<f64>().is_err() { "'" } else { "" };
        let comma = if number > 0 { "," } else { "" };
        if field.contains([',', '"', '\n', '\r']) {
            let field = field.replace('"', "\"\"");
            let _ = write!(line, "{comma}\"{apostrophe}{field}\"");
        } else {
            let _ = write!(line, "{comma}{apostrophe}{field}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, FigureGroup, Marks, Value};

    #[test]
    fn nothing_comes_from_elsewhere_and_nothing_gets_out_of_its_place() {
        let evil = "<script>alert(1)</script>\"'&";
        let columns = vec![(evil.to_owned(), Cells::Numbers)];
        let rows = vec![vec![evil.to_owned()]];
        let table = PageTable { caption: evil.to_owned(), columns, rows };
        let page = Page {
            title: evil.to_owned(),
            subtitle: evil.to_owned(),
            facts: vec![(evil.to_owned(), evil.to_owned())],
            sentences: vec![Conclusion {
                subject: evil.to_owned(),
                text: evil.to_owned(),
                verdict: Some(evil.to_owned()),
                typed: vec![[evil.to_owned(), evil.to_owned(), evil.to_owned()]],
            }],
            sections: vec![PageSection {
                title: evil.to_owned(),
                text: evil.to_owned(),
                forests: Vec::new(),
                spans: Vec::new(),
                figures: Vec::new(),
                tables: vec![(table, Folding::Folded)],
            }],
        };
        let text = page.to_html();
        assert_eq!(text.matches("<script>").count(), 1);
        assert!(
            !text.contains("http://") && !text.contains("https://") && !text.contains("src=\"")
        );
        assert_eq!(text.matches("<section>").count(), text.matches("</section>").count());
    }

    #[test]
    fn without_conclusions_there_is_no_place_for_them() {
        let with = |sentences| Page { sentences, ..Page::default() }.to_html();
        let one =
            Conclusion { subject: "set".into(), text: "1 MiB".into(), ..Conclusion::default() };
        assert!(with(vec![one]).contains(">Conclusions<"));
        assert!(!with(Vec::new()).contains("onclusions"));
    }

    /// A figure without a value was drawn as an empty tile.
    #[test]
    fn a_figure_without_a_value_takes_no_room() {
        let figure = |values: Vec<Value>| Figure {
            title: "rate".into(),
            x_name: "time".into(),
            y_name: "MB/s".into(),
            axis: Axis::Linear,
            y_least: 0.0,
            places: Vec::new(),
            groups: vec![FigureGroup {
                name: "read".into(),
                values,
                curve: Vec::new(),
                marks: Marks::Each,
            }],
        };
        let at = |y| Value { x: 1.0, y, range: None, label: String::new() };
        let figures = vec![figure(Vec::new()), figure(vec![at(f64::NAN)])];
        let section = |figures| PageSection { figures, ..PageSection::default() };
        let mut text = String::new();
        section(figures.clone()).put(&mut text);
        assert!(!text.contains("<figure") && section(figures).files().is_empty(), "{text}");
        assert_eq!(section(vec![figure(vec![at(0.0)])]).files().len(), 1);
    }

    #[test]
    fn csv_keeps_what_is_in_a_field() {
        let line = |fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
            csv_line(&fields)
        };
        assert_eq!(line(&["a,b", "c"]), "\"a,b\",c\n");
        assert_eq!(line(&["", ""]), ",\n");
        assert_eq!(line(&["say \"x\"", "1\n2"]), "\"say \"\"x\"\"\",\"1\n2\"\n");
        let formulas = ["=cmd|' /C calc'!A0", "+1+2", "-1.5e3", "@sum", "--fast", "-"];
        let expected = "'=cmd|' /C calc'!A0,'+1+2,-1.5e3,'@sum,'--fast,'-\n";
        assert_eq!(line(&formulas), expected);
        assert_eq!(line(&["=a,b"]), "\"'=a,b\"\n");
    }
}
