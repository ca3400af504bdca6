//! Experiments with known truth, as records like those of real experiments.

use experiment::judgement::{Judgement, JudgementOptions, Sentence, judge};
use experiment::record::{Cell, Factor, Level, Role, RunRecord};
use statistics::random::Random;

/// The truth about a machine, and how it is measured. Shares are of logarithms.
pub struct World<'a> {
    /// What is varied.
    pub factors: Vec<Factor>,
    /// The factor of a cell on the rate.
    pub times: &'a dyn Fn(&Cell) -> f64,
    /// Scatter of the runs of a cell.
    pub noise: &'a dyn Fn(&Cell) -> f64,
    /// Repeats.
    pub repeats: u64,
    /// Scatter between repeats, common to all cells of a repeat.
    pub between_repeats: f64,
    /// Scatter between the media of a repeat, common to all cells on a medium.
    pub between_mediums: f64,
    /// Gain of the machine from the first run to the last.
    pub drift: f64,
    /// Runs that fail.
    pub fails: &'a dyn Fn(&Cell, u64) -> bool,
}

/// A machine on which nothing matters and nothing scatters.
pub fn quiet(factors: Vec<Factor>, repeats: u64) -> World<'static> {
    World {
        factors,
        times: &|_| 1.0,
        noise: &|_| 0.0,
        repeats,
        between_repeats: 0.0,
        between_mediums: 0.0,
        drift: 0.0,
        fails: &|_, _| false,
    }
}

impl World<'_> {
    /// The runs of one experiment, in randomised blocks.
    pub fn runs(&self, seed: u64) -> Vec<RunRecord> {
        let mut random = Random::new(1_000_003 * seed + 29);
        let cells = self.cells();
        let all = (cells.len() as u64 * self.repeats) as f64;
        let mut runs: Vec<RunRecord> = Vec::new();
        for repeat in 1..=self.repeats {
            let mut order: Vec<&Cell> = cells.iter().collect();
            random.shuffle(&mut order);
            // A factor that a person has to change is changed once.
            order.sort_by_key(|cell| cell.get("medium").cloned());
            let shift = self.between_repeats * random.normal();
            let mut medium = (None, 0.0);
            for cell in order {
                if medium.0 != cell.get("medium") {
                    medium = (cell.get("medium"), self.between_mediums * random.normal());
                }
                let time = runs.len() as f64 / all;
                let scatter = (self.noise)(cell) * random.normal();
                let log = (self.times)(cell).ln() + shift + medium.1 + self.drift * time + scatter;
                let mut run = RunRecord {
                    cell: cell.clone(),
                    repeat,
                    order: runs.len() as u64 + 1,
                    started_unix_seconds: 1_700_000_000 + 60 * runs.len() as u64,
                    bytes: (1e12 * log.exp()) as u64,
                    seconds: 10_000.0,
                    ..RunRecord::default()
                };
                run.error = (self.fails)(cell, repeat).then(|| "no medium".to_owned());
                runs.push(run);
            }
        }
        runs
    }

    /// The judgement of the experiment.
    pub fn judged(&self, seed: u64) -> Judgement {
        judge(&self.factors, &self.runs(seed), &JudgementOptions::default())
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::new()];
        for factor in &self.factors {
            let with = |cell: &Cell, level: &Level| {
                let mut cell = cell.clone();
                cell.insert(factor.name.clone(), level.clone());
                cell
            };
            let add = |cell: &Cell| -> Vec<Cell> {
                factor.levels.iter().map(|level| with(cell, level)).collect()
            };
            cells = cells.iter().flat_map(add).collect();
        }
        cells
    }
}

/// A factor of words, with the role that its name has.
pub fn words(name: &str, levels: &[&str]) -> Factor {
    Factor::new(name, levels.iter().map(|&level| Level::Text(level.to_owned())).collect())
}

/// Block sizes from 64 KiB on.
pub fn block_sizes(count: u32) -> Factor {
    Factor::new("block_bytes", (0..count).map(|power| Level::Number(65536 << power)).collect())
}

/// An unknown setting with this many levels.
pub fn setting(name: &str, levels: u64) -> Factor {
    let levels = (1..=levels).map(Level::Number).collect();
    Factor { role: Role::Setting, ..Factor::new(name, levels) }
}

/// Whether a cell has that level.
pub fn is(cell: &Cell, name: &str, level: &str) -> bool {
    cell.get(name) == Some(&Level::Text(level.to_owned()))
}

/// Place of the level of a numeric factor that begins at `first` and doubles.
pub fn doublings(cell: &Cell, name: &str, first: u64) -> u32 {
    match cell.get(name) {
        Some(Level::Number(number)) => (number / first).ilog2(),
        _ => 0,
    }
}

/// Whether a sentence says that something makes no difference.
pub fn says_nothing(sentence: &Sentence) -> bool {
    let phrases = [
        "brings nothing",
        "no difference",
        "as good as",
        "the same within",
        "nothing with",
        "nothing is faster",
        "costs nothing",
    ];
    phrases.iter().any(|phrase| sentence.text.contains(phrase))
}

/// Whether there is a sentence of a rule.
pub fn says(judgement: &Judgement, rule: &str) -> bool {
    judgement.sentences.iter().any(|sentence| sentence.finding.rule == rule)
}

/// Percentage of the simulated experiments.
pub fn percent(experiments: u64, counts: impl Fn(u64) -> bool) -> f64 {
    100.0 * (0..experiments).filter(|&seed| counts(seed)).count() as f64 / experiments as f64
}

/// How many experiments make a case: tens as an ordinary test, thousands with `TAKEUP_LONG=1`.
pub fn experiments(short: u64) -> u64 {
    if std::env::var_os("TAKEUP_LONG").is_some() { 20 * short } else { short }
}

/// Distance of a share by chance, in percent: three standard errors.
pub fn chance(expected_percent: f64, experiments: u64) -> f64 {
    let share = expected_percent / 100.0;
    300.0 * (share * (1.0 - share) / experiments as f64).sqrt()
}

/// A table of percentages, printed as it is filled, and the values out of bounds.
#[derive(Default)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    /// The row in the table of all results, which `cargo xtask statistics` prints.
    row: Option<u32>,
    wrong: Vec<String>,
}

/// A measured line of that table: `@row 7 | drift of 30 %, told, % | n = 3: 99.0, n = 5: 100.0`.
pub fn of_row(row: u32, what: &str, columns: &[impl AsRef<str>], values: &[f64]) {
    let pairs = columns.iter().zip(values);
    let shown: Vec<String> =
        pairs.map(|(column, value)| format!("{}: {value:.1}", column.as_ref())).collect();
    println!("@row {row} | {what} | {}", shown.join(", "));
}

impl Table {
    /// Begins a table.
    pub fn new(title: &str, columns: &[&str]) -> Table {
        println!("\n{title}");
        let heads: Vec<String> = columns.iter().map(|head| format!("{head:>10}")).collect();
        println!("{:<34}{}", "", heads.concat());
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            ..Table::default()
        }
    }

    /// Puts the following rows into that row of the table of all results.
    pub fn of(self, row: u32) -> Table {
        Table { row: Some(row), ..self }
    }

    /// A row whose values must lie within bounds.
    pub fn row(&mut self, name: &str, values: &[f64], bounds: std::ops::RangeInclusive<f64>) {
        let shown: Vec<String> = values.iter().map(|value| format!("{value:>10.1}")).collect();
        println!("{name:<34}{}", shown.concat());
        if let Some(row) = self.row {
            of_row(row, &format!("{}: {name}", self.title), &self.columns, values);
        }
        if let Some(value) = values.iter().find(|value| !bounds.contains(value)) {
            self.wrong.push(format!("{name}: {value} is not in {bounds:?}"));
        }
    }

    /// Fails if a value was out of bounds.
    pub fn check(self) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}
