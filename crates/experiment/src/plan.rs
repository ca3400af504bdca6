//! The plan of an experiment: factors and their levels, how often, how long.
//!
//! A plan is a small TOML file, or comes from the options of a command; `--print-plan` writes it as
//! a file. The first line of the file of runs has it, so that an interrupted experiment can
//! continue.

pub mod commands;

use std::error::Error;

use serde::{Deserialize, Serialize};

use crate::quantities::Unit;
use crate::record::{Cell, Factor, Level, Value};
use commands::Commands;
use statistics::random::Random;
use statistics::stopping::Stopping;

/// Largest number of combinations; more are a mistake.
const CELLS_MAX: usize = 10_000;

/// An experiment before it is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Which command runs it: `read`, `disk`, `tape`, `run`.
    pub kind: String,
    #[serde(default)]
    pub title: String,
    /// Paths to measure; for commands, the devices to watch.
    pub paths: Vec<String>,
    /// Largest number of bytes of one run; 0 if it is unknown what a command moves.
    pub length_bytes: u64,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// When the experiment ends.
    #[serde(default)]
    pub stop: Stop,
    /// Reads at random places after each run, to measure what the setting costs other reads; 0 for
    /// none.
    #[serde(default)]
    pub random_reads: u64,
    /// Length of one run in seconds, if it is not a number of bytes.
    #[serde(default)]
    pub run_seconds: f64,
    /// The commands to run, if the experiment runs commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// What is varied, the slowest changing first.
    #[serde(rename = "factor", default)]
    pub factors: Vec<Factor>,
}

/// When an experiment ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Repeats that every cell gets.
    pub repeats_min: u64,
    /// Repeats that no cell exceeds.
    pub repeats_max: u64,
    /// Half the width of a 95 % interval, in percent of the rate, that is narrow enough.
    pub interval_percent: f64,
    /// Time after which no run begins.
    pub budget_seconds: f64,
    /// Time after which a run is stopped; by default its share of the budget, or three times as
    /// long as others took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_seconds_max: Option<f64>,
    /// The smallest gain that is worth a change, in percent, if the user gave one. The record keeps
    /// it so that a report recommends the same as the experiment did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_percent: Option<f64>,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            repeats_min: 5,
            repeats_max: 20,
            interval_percent: 5.0,
            budget_seconds: 600.0,
            run_seconds_max: None,
            difference_percent: None,
        }
    }
}

impl Stop {
    /// The rule that ends the repeats.
    pub fn rule(&self) -> Stopping {
        Stopping {
            repeats_min: self.repeats_min,
            repeats_max: self.repeats_max,
            narrow: self.interval_percent / 100.0,
        }
    }
}

/// Why a plan cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is not TOML, or not a plan.
    #[error("not a plan")]
    Syntax(#[from] toml::de::Error),
    /// A level cannot be parsed.
    #[error("cannot use level {level:?} of {factor}")]
    Level {
        factor: String,
        /// As typed.
        level: String,
        source: Box<dyn Error + Send + Sync>,
    },
    /// There is no path.
    #[error("the plan has no path")]
    NoPath,
    /// A run would move no bytes.
    #[error("the length of a run is 0 bytes")]
    NoBytes,
    /// TOML's integers have 63 bits.
    #[error("{number} is more than {}", i64::MAX)]
    TooLarge {
        /// The number that is too large.
        number: u64,
    },
    /// The minimum is 0, or larger than the maximum.
    #[error("impossible repeats: at least {least}, at most {most}")]
    Repeats {
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// The experiment would never end, or not begin.
    #[error("the interval and the budget must be above zero")]
    NoEnd,
    /// A factor without levels.
    #[error("{factor} has no levels")]
    NoLevels { factor: String },
    /// A factor that is named twice.
    #[error("{factor} is given twice")]
    Twice { factor: String },
    /// There are too many combinations.
    #[error("more than {CELLS_MAX} combinations")]
    TooMany,
    /// There is no command.
    #[error("no command to run")]
    NoCommand,
    /// The name of a command is not a word.
    #[error("command name {name:?}: use only letters, digits and _ . + -")]
    CommandName {
        /// As typed.
        name: String,
    },
    /// Two commands have the same name.
    #[error("command {name} is given twice")]
    CommandTwice { name: String },
    /// An empty line.
    #[error("{what} is empty")]
    CommandEmpty {
        /// Which line.
        what: String,
    },
    /// A placeholder that no factor fills.
    #[error("{what}: unknown placeholder {{{name}}}")]
    UnknownPlaceholder {
        /// Which line.
        what: String,
        /// The word in the braces.
        name: String,
    },
    /// A part of a level that is not a whole number.
    #[error("{what}: {level} is not a multiple of {divisor}")]
    NotDivided {
        /// Which line.
        what: String,
        level: String,
        divisor: u64,
    },
    /// A factor that neither a command nor the lines before it use: its levels would be identical
    /// runs.
    #[error("command {command}: neither it nor the lines before it use {{{factor}}}")]
    NotVaried { command: String, factor: String },
    /// A cell that names no command.
    #[error("no command {name:?}")]
    NoSuchCommand {
        /// The name in the cell.
        name: String,
    },
}

impl Plan {
    /// Reads a plan. Levels of factors that end in `_bytes` may have a suffix that `size` can
    /// parse.
    pub fn from_toml<E: Error + Send + Sync + 'static>(
        text: &str,
        size: impl Fn(&str) -> Result<u64, E>,
    ) -> Result<Plan, PlanError> {
        let mut plan: Plan = toml::from_str(text)?;
        for factor in &mut plan.factors {
            if Unit::of(&factor.name) != Unit::Bytes {
                continue;
            }
            let name = factor.name.clone();
            for level in &mut factor.levels {
                if let Level::Text(text) = level {
                    let bytes = size(text).map_err(|error| PlanError::Level {
                        factor: name.clone(),
                        level: text.clone(),
                        source: error.into(),
                    })?;
                    *level = Level::Number(bytes);
                }
            }
        }
        plan.check()?;
        Ok(plan)
    }

    /// The plan as a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan is made of strings and numbers")
    }

    /// Whether it can be run at all.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.paths.is_empty() && self.commands.is_none() {
            return Err(PlanError::NoPath);
        }
        if self.length_bytes == 0 && self.commands.is_none() {
            return Err(PlanError::NoBytes);
        }
        let all = self.factors.iter().flat_map(|factor| &factor.levels);
        let numbers = all.filter_map(|level| match level {
            Level::Number(number) => Some(*number),
            Level::Text(_) => None,
        });
        let mut numbers = numbers.chain([self.length_bytes, self.seed, self.random_reads]);
        if let Some(number) = numbers.find(|&number| i64::try_from(number).is_err()) {
            return Err(PlanError::TooLarge { number });
        }
        let stop = &self.stop;
        if stop.repeats_min == 0 || stop.repeats_max < stop.repeats_min {
            return Err(PlanError::Repeats { least: stop.repeats_min, most: stop.repeats_max });
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(stop.interval_percent) || !positive(stop.budget_seconds) {
            return Err(PlanError::NoEnd);
        }
        for (index, factor) in self.factors.iter().enumerate() {
            let name = || factor.name.clone();
            if factor.levels.is_empty() {
                return Err(PlanError::NoLevels { factor: name() });
            }
            if self.factors[..index].iter().any(|known| known.name == factor.name) {
                return Err(PlanError::Twice { factor: name() });
            }
        }
        let mut cells = self.factors.iter().map(|factor| factor.levels.len());
        match cells.try_fold(1usize, |product, levels| product.checked_mul(levels)) {
            Some(cells) if cells <= CELLS_MAX => Ok(()),
            _ => Err(PlanError::TooMany),
        }
    }

    /// Whether its runs are compared by rate or by time.
    pub fn value(&self) -> Value {
        if self.length_bytes == 0 { Value::Time } else { Value::Rate }
    }

    /// All combinations, in the order of the factors' levels.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::new()];
        for factor in &self.factors {
            let with_level = |cell: &Cell| {
                let one = |level: &Level| {
                    let mut cell = cell.clone();
                    cell.insert(factor.name.clone(), level.clone());
                    cell
                };
                factor.levels.iter().map(one).collect::<Vec<Cell>>()
            };
            cells = cells.iter().flat_map(with_level).collect();
        }
        cells
    }

    /// The order of the cells in a block, counted from 1: random, but the same at every call.
    pub fn order(&self, cells: usize, block: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..cells).collect();
        let seed = self.seed.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Random::new(seed).shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Role;

    fn size(text: &str) -> Result<u64, std::num::ParseIntError> {
        Ok(text.strip_suffix('k').unwrap_or(text).parse::<u64>()? * 1024)
    }

    const TEXT: &str = r#"
        kind = "read"
        paths = ["/dev/sdx"]
        length_bytes = 1000000
        seed = 3
        [[factor]]
        name = "engine"
        levels = ["sync", "io_uring"]
        [[factor]]
        name = "block_bytes"
        levels = ["64k", 1048576]
    "#;

    #[test]
    fn a_plan_is_read_and_written() {
        let plan = Plan::from_toml(TEXT, size).unwrap();
        assert_eq!(plan.factors[1].levels, [Level::Number(65536), Level::Number(1 << 20)]);
        assert_eq!(plan.factors[0].role, Role::Setting);
        assert_eq!(plan.cells().len(), 4);
        assert_eq!(Plan::from_toml(&plan.to_toml(), size).unwrap(), plan);
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = TEXT.replace(from, to);
            assert_ne!(text, TEXT);
            let error = base::failures::with_causes(&Plan::from_toml(&text, size).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        check("64k", "64q", "level \"64q\" of block_bytes: invalid digit");
        check("[\"/dev/sdx\"]", "[]", "the plan has no path");
        check("1000000", "0", "the length of a run is 0 bytes");
        check("\"engine\"", "\"block_bytes\"", "sync");
        check("[\"sync\", \"io_uring\"]", "[]", "engine has no levels");
        check("seed = 3", "sede = 3", "unknown field");
        check(
            "seed = 3",
            "seed = 3\nstop = { repeats_min = 9, repeats_max = 2 }",
            "at least 9, at most 2",
        );
        check("seed = 3", "seed = 3\nstop = { budget_seconds = 0.0 }", "above zero");
    }

    #[test]
    fn numbers_that_a_plan_cannot_hold_are_said() {
        let plan = Plan { seed: u64::MAX, ..Plan::from_toml(TEXT, size).unwrap() };
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains("is more than 9223372036854775807"), "{error}");
    }

    #[test]
    fn blocks_are_orders_of_their_own_and_the_same_again() {
        let plan = Plan::from_toml(TEXT, size).unwrap();
        let orders: Vec<Vec<usize>> = (1..=20).map(|block| plan.order(4, block)).collect();
        assert_eq!(orders, (1..=20).map(|block| plan.order(4, block)).collect::<Vec<_>>());
        assert!(orders.iter().any(|order| *order != orders[0]));
        for order in orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
    }
}
