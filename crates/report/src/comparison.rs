//! The comparison of two records, as a text for the terminal and as a page.

use crate::experiments::{verdict_name, verdict_sign};
use crate::figure::forest::{Forest, Row};
use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};
use crate::table::{Align, Emphasis, Style, Table};
use base::escape::escape;
use base::format::counted;
use base::rounding::Rounding;
use experiment::judgement::JudgementOptions;
use watch::compare::{Comparison, Pair, Said, SentenceChange, Spread};
use watch::history::History;

use crate::findings::wrapped;
use crate::history::{SHOWN, number, share, summary};

/// Width of sentences.
const WIDTH: usize = 80;
/// Maximum number of rows that are easy to survey.
const ROWS_MAX: usize = 40;

/// The comparison for the terminal.
pub fn text(a: &History, b: &History, comparison: &Comparison, style: Style) -> String {
    let mut text = format!("A  {}\nB  {}\n", summary(a), summary(b));
    let (heads, rows) = numbers(comparison);
    if !rows.is_empty() {
        let heads: Vec<(&str, Align)> =
            heads.iter().map(|(name, cells)| (*name, cells.align())).collect();
        let mut table = Table::new(&heads);
        rows.into_iter().for_each(|row| table.row(row, Emphasis::None));
        text.push_str(&table.render(style));
        text.push_str("A and B are medians over the intervals in which a device was busy\n");
    }
    for sentence in sentences(comparison) {
        text.push_str(&wrapped(&escape(sentence.as_bytes()), WIDTH));
    }
    text
}

/// Headings and rows of the compared columns.
type Numbers = (Vec<(&'static str, Cells)>, Vec<Vec<String>>);

fn numbers(comparison: &Comparison) -> Numbers {
    let mut heads = vec![("device", Cells::Words), ("column", Cells::Words)];
    heads.extend(["A", "B", "B / A", "95 % interval", "p"].map(|head| (head, Cells::Numbers)));
    heads.push(("", Cells::Words));
    let row = |pair: &Pair| {
        let (head, factor) = shown(&pair.column);
        let ends = pair.interval.map(|it| (it.low, it.high));
        let digits = Rounding::of(ends);
        let between = |(low, high)| format!("{} to {}", digits.number(low), digits.number(high));
        let p_value = |p: f64| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") };
        vec![
            escape(pair.device.as_bytes()),
            head.to_owned(),
            number(pair.a.median * factor),
            number(pair.b.median * factor),
            pair.ratio.map_or("-".to_owned(), |ratio| digits.number(ratio)),
            ends.map_or("-".to_owned(), between),
            pair.p_value.map_or("-".to_owned(), p_value),
            match pair.direction {
                Some(way) => format!("B is {}", way.name()),
                None => verdict_name(pair.verdict, &JudgementOptions::default()),
            },
        ]
    };
    (heads, comparison.pairs.iter().map(row).collect())
}

/// The heading of a column, and the factor of its values.
fn shown(key: &str) -> (&'static str, f64) {
    let found = SHOWN.iter().find(|(_, known, _)| *known == key);
    found.map_or(("", 1.0), |(head, _, factor)| (head, *factor))
}

/// All remarks in words.
fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut texts = Vec::new();
    for busy in &comparison.busy {
        let (in_a, in_b) = (
            share(busy.busy_seconds.0, busy.seconds.0),
            share(busy.busy_seconds.1, busy.seconds.1),
        );
        texts.push(format!("{}: busy for {in_a} of the time in A and {in_b} in B", busy.device));
    }
    let changed = comparison.said.iter().filter(|said| said.change != SentenceChange::Kept);
    texts.extend(changed.map(told));
    for (name, only) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !only.is_empty() {
            let (first, rest) = only.split_at(only.len().min(ROWS_MAX));
            let more = if rest.is_empty() { "" } else { " and others" };
            texts.push(format!("only in {name}: {}{more}", first.join(", ")));
        }
    }
    texts.extend(comparison.sentences.iter().cloned());
    texts
}

fn told(said: &Said) -> String {
    let (name, spoken, all) = match said.change {
        SentenceChange::Gone => ("A", said.spoken.0, said.intervals.0),
        _ => ("B", said.spoken.1, said.intervals.1),
    };
    let all = counted(all, "interval", "intervals");
    let action = said.action.as_ref().map(|it| format!("; what to do: {it}")).unwrap_or_default();
    let word = change(said.change);
    format!(
        "{word} in B: {}: {} (in {spoken} of {all} of {name}){action}",
        said.device, said.sentence
    )
}

fn change(change: SentenceChange) -> &'static str {
    match change {
        SentenceChange::New => "new",
        SentenceChange::Gone => "gone",
        SentenceChange::Kept => "in both",
    }
}

/// The page of a comparison; `names` are those of the files.
pub fn page(a: &History, b: &History, comparison: &Comparison, names: [&str; 2]) -> Page {
    let row = |pair: &Pair| {
        let ratio = pair.ratio?;
        Some(Row {
            name: format!("{} {}", pair.device, shown(&pair.column).0),
            ratio,
            interval: pair.interval.map(|it| (it.low, it.high)),
            settled: verdict_sign(pair.verdict),
        })
    };
    let forest = Forest {
        title: "B against A, device by device".to_owned(),
        x_name: "B by A, each with its own 95 % interval".to_owned(),
        band: JudgementOptions::default().band,
        ways: ["lower", "higher"],
        rows: comparison.pairs.iter().filter_map(row).take(ROWS_MAX).collect(),
    };
    let facts = [("A", names[0], a), ("B", names[1], b)];
    let facts = facts
        .map(|(name, file, history)| (name.to_owned(), format!("{file}: {}", summary(history))));
    let plain = |text: String| Conclusion { text, ..Conclusion::default() };
    Page {
        title: "takeup compare".to_owned(),
        subtitle: "what block devices did in two records".to_owned(),
        facts: facts.to_vec(),
        sentences: sentences(comparison).into_iter().map(plain).collect(),
        sections: vec![
            PageSection {
                title: "What is settled".to_owned(),
                text: "Bars are 95 % intervals of the ratio of the medians of blocks, each for \
                       itself. One that is all in the grey band shows that the two are the same as \
                       far as anybody would notice (dot). A difference (square) is one that chance \
                       does not explain among so many columns; a ring is not settled."
                    .to_owned(),
                forests: vec![forest],
                ..PageSection::default()
            },
            PageSection {
                title: "Numbers".to_owned(),
                tables: tables(comparison),
                ..PageSection::default()
            },
        ],
    }
}

fn tables(comparison: &Comparison) -> Vec<(PageTable, Folding)> {
    let (heads, rows) = numbers(comparison);
    let named = |heads: Vec<(&str, Cells)>| -> Vec<(String, Cells)> {
        heads.into_iter().map(|(name, cells)| (name.to_owned(), cells)).collect()
    };
    let medians = PageTable {
        caption: "Medians over the intervals in which a device was busy".to_owned(),
        columns: named(heads),
        rows,
    };
    let mut heads = vec![("device", Cells::Words), ("column", Cells::Words)];
    let each = ["intervals", "blocks", "5 %", "median", "95 %"];
    for _ in ["A", "B"] {
        heads.push(("", Cells::Words));
        heads.extend(each.map(|head| (head, Cells::Numbers)));
    }
    let spread = |name: &str, spread: &Spread, factor: f64| {
        let values = [spread.low, spread.median, spread.high].map(|it| number(it * factor));
        let mut cells = vec![name.to_owned(), spread.intervals.to_string()];
        cells.push(spread.blocks.to_string());
        cells.extend(values);
        cells
    };
    let row = |pair: &Pair| {
        let (head, factor) = shown(&pair.column);
        let name = vec![pair.device.clone(), head.to_owned()];
        [name, spread("A", &pair.a, factor), spread("B", &pair.b, factor)].concat()
    };
    let quantiles = PageTable {
        caption: "Quantiles".to_owned(),
        columns: named(heads),
        rows: comparison.pairs.iter().map(row).collect(),
    };
    let heads = vec![
        ("", Cells::Words),
        ("device", Cells::Words),
        ("rule", Cells::Words),
        ("intervals of A", Cells::Numbers),
        ("of B", Cells::Numbers),
        ("what it says", Cells::Sentences),
        ("what to do", Cells::Sentences),
    ];
    let row = |said: &Said| {
        vec![
            change(said.change).to_owned(),
            said.device.clone(),
            said.rule.to_string(),
            format!("{} of {}", said.spoken.0, said.intervals.0),
            format!("{} of {}", said.spoken.1, said.intervals.1),
            said.sentence.clone(),
            said.action.clone().unwrap_or_default(),
        ]
    };
    let said = PageTable {
        caption: "Findings in A and in B".to_owned(),
        columns: named(heads),
        rows: comparison.said.iter().map(row).collect(),
    };
    let all = [(medians, Folding::Open), (quantiles, Folding::Folded), (said, Folding::Open)];
    let filled = all.into_iter().filter(|(table, _)| !table.rows.is_empty());
    filled.map(|(table, folding)| (table.without_empty_columns(), folding)).collect()
}
