//! An experiment and its judgement as text, as a page, as figures and as a table of raw numbers.
//!
//! All content comes from the judgement; this module computes only places and words.

mod comparison;
mod figures;
mod operations;
mod programs;
mod settled;
pub use settled::{name as verdict_name, settled as verdict_sign};

use std::collections::{BTreeMap, BTreeSet};

use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable, csv_line};
use crate::table::{Align, Emphasis, Style, Table};
use base::format::{count, counted, duration};
use base::rounding::Rounding;
use experiment::judgement::{
    CellSummary, Effect, Judgement, JudgementOptions, LevelChange, RateVerdict, Sentence, Subject,
};
use experiment::quantities::{self, Unit, title};
use experiment::record::{Cell, Experiment, Factor, Header, RunRecord, Value};
use statistics::interval::Interval;

pub use comparison::{comparison_page, comparison_table, comparison_text};
pub use figures::figures;

/// For the terminal: what to set and what it brings, the cells as a table, then the other
/// sentences.
pub fn text(experiment: &Experiment, judgement: &Judgement, style: Style) -> String {
    let (answer, others) = answer_first(&judgement.sentences);
    let mut text = sentences(&answer, style);
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&tables(experiment, judgement, style));
    if !others.is_empty() {
        text.push('\n');
    }
    text + &sentences(&others, style)
}

/// The answer: what to set, what it brings and costs; and the other sentences. Where nothing is to
/// be set, the answer is the first reason for that.
fn answer_first(sentences: &[Sentence]) -> (Vec<&Sentence>, Vec<&Sentence>) {
    let is_answer = |one: &&Sentence| one.subject <= Subject::Cost;
    let (answer, mut others): (Vec<_>, Vec<_>) = sentences.iter().partition(is_answer);
    if !answer.is_empty() {
        return (answer, others);
    }
    let reason = others.iter().position(|one| one.subject == Subject::Doubt);
    (reason.map(|at| others.remove(at)).into_iter().collect(), others)
}

fn tables(experiment: &Experiment, judgement: &Judgement, style: Style) -> String {
    let table = cell_table(experiment, judgement, usize::MAX);
    let recommended: Vec<usize> = (judgement.recommended.iter())
        .filter(|found| found.is(found.cell))
        .map(|found| found.cell)
        .collect();
    let mut text = terminal_table(&table, &recommended, style);
    let more = [operations::apart(experiment, judgement), programs::table(experiment, judgement)];
    for table in more.into_iter().flatten() {
        text.push_str(&terminal_table(&table, &[], style));
    }
    text
}

fn sentences(sentences: &[&Sentence], style: Style) -> String {
    let told = |one: &&Sentence| {
        let typed =
            one.typed.iter().map(|it| format!("{}: {}   (back: {})", it.program, it.line, it.undo));
        let mut lines = vec![one.finding.line()];
        lines.extend(typed);
        (one.subject.name(), lines)
    };
    let headed: Vec<(&str, Vec<String>)> = sentences.iter().map(told).collect();
    crate::findings::lines_under_heads(&headed, style)
}

/// Runs without an error, by their combination. Built once for a table: searching all runs for each
/// row takes quadratic time.
fn good_runs_by_cell(runs: &[RunRecord]) -> BTreeMap<&Cell, Vec<&RunRecord>> {
    let mut by_cell: BTreeMap<&Cell, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.error.is_none()) {
        by_cell.entry(&run.cell).or_default().push(run);
    }
    by_cell
}

fn terminal_table(table: &PageTable, strong: &[usize], style: Style) -> String {
    let strong: BTreeSet<usize> = strong.iter().copied().collect();
    let heads: Vec<(&str, Align)> =
        table.columns.iter().map(|(name, cells)| (name.as_str(), cells.align())).collect();
    let mut shown = Table::new(&heads);
    for (row, index) in table.rows.iter().zip(0..) {
        let emphasis = if strong.contains(&index) { Emphasis::Strong } else { Emphasis::None };
        shown.row(row.clone(), emphasis);
    }
    shown.render(style)
}

fn conclusion(one: &Sentence) -> Conclusion {
    let typed = one.typed.iter();
    Conclusion {
        subject: one.subject.name().to_owned(),
        text: one.finding.line(),
        verdict: one.verdict.map(|verdict| settled::name(verdict, &JudgementOptions::default())),
        typed: typed.map(|it| [it.program.to_string(), it.line.clone(), it.undo.clone()]).collect(),
    }
}

/// Rows of a table on a page. Longer tables are hard to use, and a browser takes seconds to open
/// the page; the files that [`left_out`] names have all rows.
const PAGE_ROWS_MAX: usize = 10_000;

/// The caption of a table of `things` that shows the first `shown`.
fn left_out(things: &str, shown: usize, all: usize, option: &str) -> String {
    if shown == all {
        return format!("All {things}");
    }
    let (shown, all) = (count(shown as u64), count(all as u64));
    format!("The first {shown} of {all} {things}; takeup report RUNS {option} FILE writes all")
}

/// One row for each cell, up to `rows_max` of them: its levels and its numbers.
fn cell_table(experiment: &Experiment, judgement: &Judgement, rows_max: usize) -> PageTable {
    let Header { factors, value, .. } = &experiment.header;
    let varied: Vec<&Factor> = factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    let measured: Vec<(&str, &str)> = quantities::columns()
        .filter(|(name, _)| judgement.cells.iter().any(|cell| cell.measures.contains_key(*name)))
        .collect();
    let mut columns: Vec<(String, Cells)> = varied
        .iter()
        .map(|factor| {
            let cells = if factor.is_numeric() { Cells::Numbers } else { Cells::Words };
            (factor.title(), cells)
        })
        .collect();
    let numbers = ["runs", "mean", "scatter", "95 % interval", "outliers"];
    columns.extend(numbers.map(|name| (name.to_owned(), Cells::Numbers)));
    columns.extend(measured.iter().map(|(_, head)| ((*head).to_owned(), Cells::Numbers)));
    let row = |cell: &CellSummary| {
        let level = |factor: &&Factor| {
            cell.cell.get(&factor.name).map_or("-".to_owned(), |level| level.shown(&factor.name))
        };
        let mut row: Vec<String> = varied.iter().map(level).collect();
        row.push(runs_text(cell));
        row.push(cell.told(*value));
        row.push(cell.standard_deviation.map_or("-".to_owned(), |deviation| {
            format!("{:.1} %", 100.0 * deviation / cell.mean_bytes_per_second)
        }));
        row.push(interval_text(cell, *value));
        row.push(match cell.outliers.len() {
            0 => "-".to_owned(),
            some => some.to_string(),
        });
        row.extend(measured.iter().map(|(name, _)| {
            cell.measures.get(*name).map_or("-".to_owned(), |&value| Unit::of(name).shown(value))
        }));
        row
    };
    let rows: Vec<_> = judgement.cells.iter().take(rows_max).map(row).collect();
    let caption = left_out("combinations", rows.len(), judgement.cells.len(), "--ndjson");
    PageTable { caption, columns, rows }
}

fn runs_text(cell: &CellSummary) -> String {
    match cell.failed {
        0 => cell.rates.len().to_string(),
        failed => format!("{} ({failed} failed)", cell.rates.len()),
    }
}

fn interval_text(cell: &CellSummary, value: Value) -> String {
    match cell.interval {
        // The longest time belongs to the lowest speed.
        Some(interval) if value == Value::Time => {
            let digits = Some((interval.low, interval.high));
            let time = |speed: f64| value.told(speed, digits);
            format!("{} to {}", time(interval.high), time(interval.low))
        }
        Some(interval) => {
            let number = |value: f64| cell.digits().rate_digits(value);
            format!("{} to {}", number(interval.low), number(interval.high))
        }
        None => "-".to_owned(),
    }
}

/// The table of runs with all measures, row by row.
struct RunTable<'a> {
    experiment: &'a Experiment,
    /// The measures that any run has.
    measures: Vec<&'a str>,
}

impl<'a> RunTable<'a> {
    fn new(experiment: &'a Experiment) -> RunTable<'a> {
        let names = experiment.runs.iter().flat_map(|run| run.measures.keys());
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        RunTable { experiment, measures: names.into_iter().collect() }
    }

    fn columns(&self) -> Vec<(String, Cells)> {
        let mut columns: Vec<(String, Cells)> =
            vec![("order".into(), Cells::Numbers), ("repeat".into(), Cells::Numbers)];
        let factors = self.experiment.header.factors.iter();
        columns.extend(factors.map(|factor| (factor.name.clone(), Cells::Words)));
        let numbers = ["bytes", "seconds", "bytes_per_second", "latency_p50_ns", "latency_p99_ns"];
        let numbers = numbers.iter().chain(&self.measures);
        columns.extend(numbers.map(|&name| (name.to_owned(), Cells::Numbers)));
        columns.push(("error".into(), Cells::Words));
        columns
    }

    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.experiment.runs.iter().map(|run| self.row(run))
    }

    fn row(&self, run: &RunRecord) -> Vec<String> {
        let plain = |factor: &Factor| match run.cell.get(&factor.name) {
            Some(experiment::record::Level::Number(number)) => number.to_string(),
            Some(experiment::record::Level::Text(text)) => text.clone(),
            None => String::new(),
        };
        let mut row = vec![run.order.to_string(), run.repeat.to_string()];
        row.extend(self.experiment.header.factors.iter().map(plain));
        row.push(run.bytes.to_string());
        row.push(format!("{:.6}", run.seconds));
        row.push(run.bytes_per_second().map_or(String::new(), |rate| format!("{rate:.0}")));
        for share in [0.5, 0.99] {
            let latency = run.latency.as_ref().and_then(|latency| latency.quantile_ns(share));
            row.push(latency.map_or(String::new(), |ns| ns.to_string()));
        }
        row.extend(
            self.measures.iter().map(|&name| {
                run.measures.get(name).map_or(String::new(), |value| format!("{value}"))
            }),
        );
        row.push(run.error.clone().unwrap_or_default());
        row
    }

    /// The table, up to `rows_max` rows of it.
    fn page_table(&self, rows_max: usize) -> PageTable {
        let rows: Vec<_> = self.rows().take(rows_max).collect();
        let caption = left_out("runs", rows.len(), self.experiment.runs.len(), "--csv");
        PageTable { caption, columns: self.columns(), rows }
    }
}

/// Every run with all measures, as CSV for other programs.
pub fn runs_as_csv(experiment: &Experiment) -> String {
    let table = RunTable::new(experiment);
    let mut text = csv_line(table.columns().iter().map(|(name, _)| name));
    // One row at a time: all rows as cells take several times the memory of the text.
    table.rows().for_each(|row| text.push_str(&csv_line(&row)));
    text
}

/// The page of an experiment.
pub fn page(experiment: &Experiment, judgement: &Judgement) -> Page {
    let header = &experiment.header;
    let title = if header.title.is_empty() {
        format!("takeup bench {}", header.kind)
    } else {
        header.title.clone()
    };
    let seconds: f64 = experiment.runs.iter().map(|run| run.seconds).sum();
    let subtitle = format!(
        "{} of {}, {} of measuring, order from seed {}",
        counted(experiment.runs.len() as u64, "run", "runs"),
        counted(judgement.cells.len() as u64, "combination", "combinations"),
        duration(seconds),
        header.seed
    );
    let sentences = judgement.sentences.iter().map(conclusion).collect();
    let mut sections: Vec<PageSection> =
        settled::section(experiment, judgement).into_iter().collect();
    sections.extend(figures(experiment, judgement));
    let effects = effect_table(judgement);
    if effects.rows.len() > 1 {
        sections.push(PageSection {
            title: "Effects".to_owned(),
            text: "What a change does on average over everything else, and what it depends on. A \
                   change that is faster with some settings and slower with others has no average."
                .to_owned(),
            tables: vec![(effects, Folding::Open)],
            ..PageSection::default()
        });
    }
    sections.push(PageSection {
        title: "Numbers".to_owned(),
        text: "Scatter is the standard deviation of the runs of a combination. The interval is of \
               their geometric mean. Outliers are runs that differ from the others; no run \
               was left out."
            .to_owned(),
        tables: [operations::table(experiment, judgement), programs::table(experiment, judgement)]
            .into_iter()
            .flatten()
            .map(|table| (table, Folding::Open))
            .chain([
                (cell_table(experiment, judgement, PAGE_ROWS_MAX), Folding::Open),
                (RunTable::new(experiment).page_table(PAGE_ROWS_MAX), Folding::Folded),
                (environment_table(experiment), Folding::Folded),
            ])
            .collect(),
        ..PageSection::default()
    });
    Page { title, subtitle, facts: settled::facts(experiment), sentences, sections }
}

/// Largest number of interactions in the table: those that chance does not explain, the largest
/// first.
const INTERACTIONS_MAX: usize = 8;

/// The rounding of a ratio with that interval.
fn digits(interval: Option<Interval>) -> Rounding {
    Rounding::of(interval.map(|interval| (interval.low, interval.high)))
}

fn between(interval: Interval) -> String {
    let digits = digits(Some(interval));
    format!("{} to {}", digits.number(interval.low), digits.number(interval.high))
}

/// Main effects and the interactions that matter.
pub fn effect_table(judgement: &Judgement) -> PageTable {
    let heads = ["times", "95 % interval", "pairs"].map(|head| (head.to_owned(), Cells::Numbers));
    let mut columns =
        vec![("change".to_owned(), Cells::Words), ("depends on".to_owned(), Cells::Words)];
    columns.extend(heads);
    let (mains, mut joint): (Vec<&Effect>, Vec<&Effect>) =
        judgement.effects.iter().partition(|effect| effect.with.is_none());
    let matters =
        |effect: &Effect| effect.ratio.ln().abs() > JudgementOptions::default().band.ln_1p();
    let mains = mains.into_iter().filter(|effect| effect.is_average());
    joint.retain(|effect| effect.verdict == RateVerdict::Differs && matters(effect));
    joint.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let row = |effect: &Effect| {
        vec![
            shown_change(&effect.change),
            effect.with.as_ref().map_or("-".to_owned(), shown_change),
            digits(effect.interval).number(effect.ratio),
            effect.interval.map_or("-".to_owned(), between),
            effect.pairs.to_string(),
        ]
    };
    let rows = mains.chain(joint.into_iter().take(INTERACTIONS_MAX)).map(row).collect();
    PageTable { caption: "Effects".to_owned(), columns, rows }
}

fn shown_change(change: &LevelChange) -> String {
    let name = &change.factor;
    format!("{}: {} to {}", title(name), change.from.shown(name), change.to.shown(name))
}

fn environment_table(experiment: &Experiment) -> PageTable {
    let columns = vec![("setting".into(), Cells::Words), ("value".into(), Cells::Words)];
    // A setting that differs between runs, such as the read-ahead, shows all its values.
    let mut known: Vec<(&str, BTreeSet<&str>, Vec<&str>)> = Vec::new();
    for (name, value) in experiment.runs.iter().flat_map(|run| &run.environment) {
        let place = known.iter().position(|(known, ..)| known == name).unwrap_or(known.len());
        if place == known.len() {
            known.push((name, BTreeSet::new(), Vec::new()));
        }
        let (_, distinct, values) = &mut known[place];
        if distinct.insert(value) {
            values.push(value);
        }
    }
    let row = |(name, _, values): &(&str, BTreeSet<&str>, Vec<&str>)| {
        vec![(*name).to_owned(), values.join(", ")]
    };
    let rows = known.iter().map(row).collect();
    PageTable { caption: "Environment".to_owned(), columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::judgement::judge;
    use experiment::plan::{Plan, Stop};
    use experiment::record::{Level, Role, RunRecord};
    use statistics::random::Random;

    /// The design of `btape speed` with six block sizes: 144 combinations.
    fn factors() -> Vec<Factor> {
        let factor =
            |name: &str, role, levels| Factor { name: name.into(), levels, role, present: None };
        let words = |levels: [&str; 2]| levels.map(|level| Level::Text(level.into())).to_vec();
        let numbers = |levels: &[u64]| levels.iter().copied().map(Level::Number).collect();
        let blocks: Vec<u64> = (0..6).map(|power| (64 << 10) << power).collect();
        vec![
            factor("data", Role::Load, words(["random", "zeros"])),
            factor("framing", Role::Load, words(["raw", "bacula"])),
            factor("file_bytes", Role::Load, numbers(&[1 << 30, 2 << 30, 4 << 30])),
            factor("block_bytes", Role::Setting, numbers(&blocks)),
            factor("drive_compression", Role::Setting, words(["off", "on"])),
        ]
    }

    /// Three runs of each combination on a drive of 120 MB/s, with a scatter of 1 %.
    fn runs(factors: &[Factor]) -> Vec<RunRecord> {
        let plan = Plan {
            kind: "tape".into(),
            title: String::new(),
            paths: vec!["x".into()],
            length_bytes: 1,
            seed: 1,
            stop: Stop::default(),
            random_reads: 0,
            run_seconds: 0.0,
            commands: None,
            factors: factors.to_vec(),
        };
        let mut random = Random::new(2);
        let mut run = |repeat: u64, cell: Cell| {
            let number = |name: &str| match cell[name] {
                Level::Number(number) => number as f64,
                Level::Text(_) => 0.0,
            };
            let is = |name: &str, level: &str| cell[name] == Level::Text(level.into());
            let way = 1.0 / (1.0 / 320e6 + 150e-6 / number("block_bytes"));
            let compresses = is("drive_compression", "on") && is("data", "zeros");
            let rate = if compresses { way } else { way.min(120e6) };
            let bytes = number("file_bytes");
            let seconds = bytes / (rate * (0.01 * random.normal()).exp()) + 0.4;
            RunRecord { cell, repeat, bytes: bytes as u64, seconds, ..RunRecord::default() }
        };
        let rounds =
            (1..=3).flat_map(|repeat| plan.cells().into_iter().map(move |it| (repeat, it)));
        rounds.map(|(repeat, cell)| run(repeat, cell)).collect()
    }

    /// Repeats differ by far more than runs within one: the gain is known well, but each rate
    /// badly.
    #[test]
    fn a_rate_is_the_same_in_the_table_and_in_the_sentence_of_the_gain() {
        let factors = vec![Factor::new(
            "command",
            ["one", "other"].map(|name| experiment::record::Level::Text(name.into())).to_vec(),
        )];
        let run = |(repeat, name, rate): (u64, &str, f64)| RunRecord {
            cell: Cell::from([(
                "command".to_owned(),
                experiment::record::Level::Text(name.into()),
            )]),
            repeat,
            bytes: (rate * 10.0) as u64,
            seconds: 10.0,
            ..RunRecord::default()
        };
        let runs: Vec<RunRecord> = [(1, 30e6), (2, 101e6), (3, 330e6)]
            .into_iter()
            .flat_map(|(repeat, rate)| {
                let scatter = 1.0 + 0.01 * repeat as f64;
                [(repeat, "one", rate), (repeat, "other", 1.3 * scatter * rate)]
            })
            .map(run)
            .collect();
        let header = Header {
            format: 1,
            kind: "run".into(),
            title: String::new(),
            value: Value::Rate,
            factors: factors.clone(),
            plan: serde_json::Value::Null,
            seed: 1,
            started_unix_seconds: 1,
        };
        let judgement = judge(&factors, &runs, &JudgementOptions::default());
        let experiment = Experiment { header, runs, torn_bytes: 0 };
        let table = cell_table(&experiment, &judgement, usize::MAX);
        let mean = table.columns.iter().position(|(name, _)| name == "mean").unwrap();
        let rates: Vec<&str> = table.rows.iter().map(|row| &row[mean][..]).collect();
        assert_eq!(rates, ["100 MB/s", "133 MB/s"]);
        let mut told = judgement.sentences.iter();
        let gain = told.find(|one| one.finding.rule == "experiment.gain").unwrap();
        assert!(gain.text.ends_with(": 133 MB/s against 100 MB/s"), "{}", gain.text);
    }

    /// More levels than a figure is wide.
    #[test]
    fn of_many_points_one_in_some_is_drawn_and_that_is_said() {
        let levels: Vec<u64> = (1..=2500).map(|level| 4096 * level).collect();
        let level = |&bytes: &u64| experiment::record::Level::Number(bytes);
        let factors = vec![Factor::new("block_bytes", levels.iter().map(level).collect())];
        let run = |(bytes, order): (&u64, u64)| RunRecord {
            cell: Cell::from([("block_bytes".to_owned(), level(bytes))]),
            repeat: 1,
            order,
            bytes: 1_000_000_000,
            seconds: 10.0,
            ..RunRecord::default()
        };
        let runs: Vec<RunRecord> = levels.iter().zip(0..).map(run).collect();
        let header = Header {
            format: 1,
            kind: "tape".into(),
            title: String::new(),
            value: Value::Rate,
            factors,
            plan: serde_json::Value::Null,
            seed: 1,
            started_unix_seconds: 1,
        };
        let judgement = judge(&header.factors, &runs, &JudgementOptions::default());
        let experiment = Experiment { header, runs, torn_bytes: 0 };
        let page = page(&experiment, &judgement);
        let sections = page.sections.iter();
        let drawn = sections.clone().find(|it| it.text.contains("One point in 3 is drawn."));
        let group = &drawn.unwrap().figures[0].groups[0];
        assert_eq!(group.values.len(), 2500_usize.div_ceil(3));
    }

    /// 144 combinations: an overview, eight panels on one scale, and tables with the rest.
    #[test]
    fn a_design_with_many_factors_is_drawn_so_that_it_can_be_read() {
        let header = Header {
            format: 1,
            kind: "tape".into(),
            title: String::new(),
            value: Value::Rate,
            factors: factors(),
            plan: serde_json::Value::Null,
            seed: 1,
            started_unix_seconds: 1,
        };
        let runs = runs(&header.factors);
        let experiment = Experiment { header, runs, torn_bytes: 0 };
        let judgement =
            judge(&experiment.header.factors, &experiment.runs, &JudgementOptions::default());
        let page = page(&experiment, &judgement);
        let titles: Vec<&str> = page.sections.iter().map(|section| &section.title[..]).collect();
        let expected = ["What is settled", "Overview", "Rate by block size", "Effects", "Numbers"];
        assert_eq!(titles, expected);
        let [_, overview, panels, ..] = &page.sections[..] else { panic!("no sections") };
        assert_eq!(overview.figures.len(), 1);
        let names: Vec<&str> =
            overview.figures[0].groups.iter().map(|group| &group.name[..]).collect();
        assert_eq!(
            names,
            [
                "data random, drive compression off",
                "data random, drive compression on",
                "data zeros, drive compression off",
                "data zeros, drive compression on"
            ]
        );
        assert_eq!(panels.figures.len(), 8);
        for figure in &panels.figures {
            assert_eq!(figure.groups.len(), 3, "a line for each size of file");
            assert!(figure.groups.iter().all(|group| group.values.len() == 6));
            assert!(figure.groups.iter().all(|group| !group.curve.is_empty()));
            assert_eq!(figure.y_least, panels.figures[0].y_least);
        }
        let rows = |name: &str| {
            let tables = page.sections.iter().flat_map(|section| &section.tables);
            tables.map(|(table, _)| table).find(|table| table.caption == name).unwrap().rows.len()
        };
        assert_eq!((rows("All combinations"), rows("All runs")), (144, 432));
        let (few, all) = (RunTable::new(&experiment).page_table(2), runs_as_csv(&experiment));
        assert_eq!(
            few.caption,
            "The first 2 of 432 runs; takeup report RUNS --csv FILE writes all"
        );
        assert_eq!((few.rows.len(), all.lines().count()), (2, 433));
        // Five factors, and the interactions of data, compression and block size.
        assert!((7..=9).contains(&rows("Effects")), "{}", rows("Effects"));
    }
}
