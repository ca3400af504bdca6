//! Two experiments side by side, for the terminal and as a page.

use super::settled;
use crate::figure::forest::{Forest, RATES, Row};
use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};
use base::escape::escape_controls;
use base::format::counted;
use experiment::compare::{Comparison, Pair};
use experiment::judgement::JudgementOptions;
use experiment::record::{Experiment, Value, shown_cell};

/// Pairs as a table.
pub fn comparison_table(comparison: &Comparison) -> PageTable {
    let heads = ["runs", "A", "B", "B / A", "95 % interval", "p", ""];
    let mut columns = vec![("combination".to_owned(), Cells::Words)];
    columns.extend(heads.map(|head| (head.to_owned(), Cells::Numbers)));
    columns[7].1 = Cells::Words;
    let row = |pair: &Pair| {
        vec![
            shown_cell(&pair.cell, &comparison.factors),
            format!("{}, {}", pair.runs.0, pair.runs.1),
            comparison.value.shown(pair.bytes_per_second.0),
            comparison.value.shown(pair.bytes_per_second.1),
            super::digits(pair.interval).number(pair.ratio),
            pair.interval.map_or("-".to_owned(), super::between),
            pair.p_value.map_or("-".to_owned(), |p| {
                if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
            }),
            match pair.direction {
                Some(way) => format!("B is {}", way.name()),
                None => settled::name(pair.verdict, &JudgementOptions::default()),
            },
        ]
    };
    let rows = comparison.pairs.iter().map(row).collect();
    PageTable { caption: "Combination by combination".to_owned(), columns, rows }
}

/// The comparison for the terminal.
pub fn comparison_text(comparison: &Comparison, style: Style) -> String {
    let table = comparison_table(comparison);
    let heads: Vec<(&str, Align)> =
        table.columns.iter().map(|(name, cells)| (name.as_str(), cells.align())).collect();
    let mut shown = Table::new(&heads);
    for row in table.rows {
        shown.row(row, Emphasis::None);
    }
    let mut text = shown.render(style);
    let environment = comparison.environment.iter();
    let differs = environment.map(|(name, a, b)| format!("differs  {name}: {a} in A, {b} in B"));
    for line in comparison.sentences.iter().cloned().chain(differs) {
        // Line ends in a record must not start a new line.
        text.push_str(&fitted(&format!("{}\n", escape_controls(&line)), style));
    }
    text
}

/// The page of a comparison.
pub fn comparison_page(a: &Experiment, b: &Experiment, comparison: &Comparison) -> Page {
    let row = |pair: &Pair| Row {
        name: shown_cell(&pair.cell, &comparison.factors),
        ratio: pair.ratio,
        interval: pair.interval.map(|interval| (interval.low, interval.high)),
        settled: settled::settled(pair.verdict),
    };
    let forest = Forest {
        title: "B against A, combination by combination".to_owned(),
        x_name: match comparison.value {
            Value::Rate => "rate of B by rate of A, each with its own 95 % interval",
            Value::Time => "times as fast as A, each with its own 95 % interval",
        }
        .to_owned(),
        band: JudgementOptions::default().band,
        ways: RATES,
        rows: comparison.pairs.iter().take(ROWS_MAX).map(row).collect(),
    };
    let mut text =
        "Each bar is a 95 % interval of its own. Dot: the whole bar is in the grey band, so the \
         two are practically the same. Square: a difference that chance does not explain among so \
         many combinations. Ring: not settled; the bar may exclude 1 and still be chance."
            .to_owned();
    if comparison.pairs.len() > ROWS_MAX {
        let more = (comparison.pairs.len() - ROWS_MAX) as u64;
        text.push_str(&format!(" The table has {} more.", counted(more, "row", "rows")));
    }
    let plain = |text: &String| Conclusion {
        subject: "finding".to_owned(),
        text: text.clone(),
        ..Conclusion::default()
    };
    let facts = [("A", a), ("B", b)].into_iter().flat_map(|(name, experiment)| {
        let own = settled::facts(experiment).into_iter();
        own.map(move |(fact, value)| (format!("{name}: {fact}"), value))
    });
    let environment = comparison.environment.iter();
    let columns = ["setting", "in A", "in B"].map(|name| (name.to_owned(), Cells::Words));
    let differing = PageTable {
        caption: "Other differences between A and B".to_owned(),
        columns: columns.to_vec(),
        rows: environment.map(|(name, a, b)| vec![name.clone(), a.clone(), b.clone()]).collect(),
    };
    let mut tables = vec![(comparison_table(comparison), Folding::Open)];
    if !differing.rows.is_empty() {
        tables.push((differing, Folding::Open));
    }
    let pairs = counted(comparison.pairs.len() as u64, "combination", "combinations");
    Page {
        title: "takeup compare".to_owned(),
        subtitle: format!("{pairs} in both experiments"),
        facts: facts.collect(),
        sentences: comparison.sentences.iter().map(plain).collect(),
        sections: vec![
            PageSection {
                title: "What is settled".to_owned(),
                text,
                forests: vec![forest],
                ..PageSection::default()
            },
            PageSection { title: "Numbers".to_owned(), tables, ..PageSection::default() },
        ],
    }
}

/// Largest number of rows in the figure.
const ROWS_MAX: usize = 40;
