//! `cargo xtask statistics`: how often the program's sentences were true in the past and are now,
//! in one table.
//!
//! The experiments with known truth are those of `crates/experiment/tests/truth` and
//! `crates/statistics/tests/coverage.rs`. Their tests print a line for each number of a row. This
//! module runs them, collects the lines, and prints them below the past results. A row without a
//! measurement is a failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// Arguments of `cargo xtask statistics`.
#[derive(clap::Args)]
pub struct StatisticsArguments {
    /// Take twenty times as many experiments
    #[arg(long)]
    long: bool,

    /// What the tests have printed, instead of running them
    #[arg(long, value_name = "FILE")]
    from: Option<std::path::PathBuf>,
}

/// The past results of the judgement, before it was corrected, from thousands of experiments with
/// known truth, and the target.
struct Row {
    number: u32,
    what: &'static str,
    before: &'static str,
    goal: &'static str,
}

const fn row(number: u32, what: &'static str, before: &'static str, goal: &'static str) -> Row {
    Row { number, what, before, goal }
}

const ROWS: &[Row] = &[
    row(
        1,
        "\"brings nothing\" where nothing is known",
        "55 % of experiments (+15 %, noise 5 %, n = 3), 91 % of sentences at 10 %",
        "5 % at most over effect, noise and repeats",
    ),
    row(
        2,
        "a setting that failed in one framing wins on the others",
        "told to be 1.26 times as fast where it is slower",
        "never; what is left out is named",
    ),
    row(
        3,
        "blocks are run but not analysed: -3 %, repeats differ by 10 %",
        "\"no difference\" in 85 %, half width 6.3 %",
        "half width 1.4 %, holds in 93 % at least",
    ),
    row(4, "two equal mediums, changed once a repeat, told to differ", "55 %", "5 % (95 % hold)"),
    row(
        5,
        "gain of the best of many that are the same",
        "mean 1.13, interval holds in 86 %",
        "mean 1.00, 95 to 97 %",
    ),
    row(
        6,
        "the right knee, noise 3 %",
        "57, 63, 58 % at n = 3, 5, 10",
        "76 % at n = 3, rising with n",
    ),
    row(
        7,
        "a drift of 30 % is told",
        "0 % at n = 3, 27 % at 5; one failed run switches it off",
        "100 %, 1 % false",
    ),
    row(
        8,
        "two experiments compared: what would be seen, another day, turns",
        "2.5 % found of what \"would have been seen\"; another day is a difference in 76 % without \
         a word; ABAB counts as turns",
        "80 % found; said; ABBA or random",
    ),
    row(
        9,
        "numbers of a curve that are not in the data",
        "a fixed time of flat data in 96 %, a plateau in 22 to 31 %",
        "5 % at most; intervals hold",
    ),
    row(
        10,
        "outliers in clean cells; the course of a run",
        "21 % at n = 5; a change for good told as warm-up in 100 %, a dip as for good in 81 %",
        "1 %; each as what it is",
    ),
    row(11, "a setting that does the same on six loads told to depend on them", "26 %", "5 %"),
    row(
        12,
        "intervals of experiments that stopped as narrow hold the truth",
        "88.8 %",
        "as those of others: 95 %",
    ),
    row(
        13,
        "sentences that disagree with themselves; zeros as a reason to set something",
        "1.47 and 1.49 for one gain, a gain of 0.86 to 2.59, compression set for zeros",
        "never",
    ),
    row(
        14,
        "repeats that depend on each other, runs of two kinds",
        "no warning; intervals hold in 78 % (n = 10) and 24 % (n = 3)",
        "told where n allows it, else that it cannot be told",
    ),
    row(
        15,
        "one voice, and one run is no finding",
        "three of three experiments at odds; cells that ran once recommended",
        "never",
    ),
    row(
        16,
        "a counter of the whole system told as a cost",
        "28.89 instead of 19.16 as the cost of a block size",
        "only where settled and the factor can act on it",
    ),
    row(
        17,
        "what both varied is a difference; one constant that differs refused",
        "told; refused",
        "a factor; compared across",
    ),
    row(
        18,
        "three lengths of files",
        "\"+162 %\" of two of them",
        "a fixed time and a rate, both held by their intervals",
    ),
];

/// Runs the tests, and prints the table.
///
/// # Errors
///
/// When the tests cannot be run or fail, or a row has no measurement.
pub fn run(arguments: &StatisticsArguments) -> anyhow::Result<ExitCode> {
    let printed = match &arguments.from {
        Some(path) => read(path)?,
        None => tests(arguments.long)?,
    };
    let measured = gather(&printed);
    print!("{}", table(&measured));
    let missing: Vec<String> = ROWS
        .iter()
        .filter(|row| !measured.contains_key(&row.number))
        .map(|row| row.number.to_string())
        .collect();
    if !missing.is_empty() {
        bail!("nothing was measured of row {}", missing.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// The output of the tests, one after the other, so that lines do not mix.
fn tests(long: bool) -> anyhow::Result<String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "test",
        "--quiet",
        "--package",
        "experiment",
        "--package",
        "statistics",
        "--test",
        "truth",
        "--test",
        "coverage",
    ]);
    command.args(["--", "--nocapture", "--test-threads", "1"]);
    if long {
        command.env("TAKEUP_LONG", "1");
    }
    let done = command.output().context("run cargo test")?;
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    if !done.status.success() {
        bail!("the tests failed:\n{printed}\n{}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(printed)
}

/// The measured lines by row: the quantity, and its numbers.
fn gather(printed: &str) -> BTreeMap<u32, Vec<(String, String)>> {
    let mut rows: BTreeMap<u32, Vec<(String, String)>> = BTreeMap::new();
    for line in printed.lines() {
        let Some((_, rest)) = line.split_once("@row ") else { continue };
        let mut parts = rest.splitn(3, " | ").map(str::trim);
        let number = parts.next().and_then(|number| number.parse().ok());
        if let (Some(number), Some(what), Some(values)) = (number, parts.next(), parts.next()) {
            rows.entry(number).or_default().push((what.to_owned(), values.to_owned()));
        }
    }
    rows
}

/// The table in Markdown.
fn table(measured: &BTreeMap<u32, Vec<(String, String)>>) -> String {
    let mut text = "| # | what | before | goal | now |\n|---|---|---|---|---|\n".to_owned();
    for Row { number, what, before, goal } in ROWS {
        let lines = measured.get(number).map_or(&[][..], Vec::as_slice);
        let now: Vec<String> =
            lines.iter().map(|(what, values)| format!("{what}: {values}")).collect();
        text += &format!("| {number} | {what} | {before} | {goal} | {} |\n", now.join("<br>"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_become_rows() {
        let printed = "test a ... \ndrift\n@row 7 | drift, told, %: -30 % | n = 3: 99.2\nok\n\
                       test b ... @row 7 | none | n = 3: 0.8\n@row x | no | row\n";
        let measured = gather(printed);
        assert_eq!(measured.len(), 1);
        assert_eq!(measured[&7].len(), 2);
        let text = table(&measured);
        assert_eq!(text.lines().count(), 2 + ROWS.len());
        assert!(text.contains("| drift, told, %: -30 %: n = 3: 99.2<br>none: n = 3: 0.8 |"));
    }

    #[test]
    fn every_row_is_there_once() {
        let numbers: Vec<u32> = ROWS.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=18).collect::<Vec<u32>>());
    }
}
