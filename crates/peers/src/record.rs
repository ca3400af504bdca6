//! A run of a contender, as a record of `experiment`.
//!
//! Every group of alternating works is an experiment: its cells are works and contenders, and each
//! timed run is one record with the numbers of the pipeline as measures. So `takeup report` can
//! read the files, too. They contain no host names and no paths of the machine: command lines keep
//! their words in braces.

use anyhow::Context as _;
use experiment::record::{Cell, Level, RunRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::pipeline::StageUse;
use crate::tape::TapeRun;

/// The kind of experiment.
pub const KIND: &str = "peers";
/// The kind for searching the best settings of the floor and of fio.
pub const SEARCH_KIND: &str = "peers search";
/// The factor for the work.
pub const WORK: &str = "work";
/// The factor for the contender.
pub const CONTENDER: &str = "contender";

const INPUT_FILES: &str = "input_files";
const OUTPUT_BYTES: &str = "output_bytes";
const OTHER_SECONDS: &str = "other_processor_seconds";
const STEAL_SECONDS: &str = "steal_seconds";
const PROCESSOR_SECONDS: &str = "processor_seconds";
/// Prefix of the drive's counters.
const DRIVE: &str = "drive ";

/// One execution of one contender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Name of the work.
    pub work: String,
    /// Name of the contender.
    pub contender: String,
    /// Number of the round, from 1.
    pub round: u64,
    /// Wall time.
    pub seconds: f64,
    /// Resources used by each program.
    pub uses: Vec<StageUse>,
    /// Files of the data.
    pub input_files: u64,
    /// Bytes of the data.
    pub input_bytes: u64,
    /// Bytes that came out, if they were counted.
    pub output_bytes: Option<u64>,
    /// Processor time of all other programs meanwhile.
    pub other_cpu_seconds: f64,
    /// Processor time that the host of a virtual machine took meanwhile (steal).
    pub steal_seconds: f64,
    /// The drive's counters, if there was a drive.
    pub tape: Option<TapeRun>,
}

impl Run {
    /// Processor time of the whole pipeline in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.uses.iter().map(|stage| stage.user_seconds + stage.system_seconds).sum()
    }

    /// The run as a record; the experiment sets its cell and its place in the order.
    ///
    /// # Errors
    /// When the drive's counters are not a set of numbers.
    pub fn to_record(&self) -> anyhow::Result<RunRecord> {
        let mut record =
            RunRecord { bytes: self.input_bytes, seconds: self.seconds, ..RunRecord::default() };
        let measures = &mut record.measures;
        let mut put = |name: &str, value: f64| measures.insert(name.to_owned(), value);
        put(INPUT_FILES, self.input_files as f64);
        put(OTHER_SECONDS, self.other_cpu_seconds);
        put(STEAL_SECONDS, self.steal_seconds);
        put(PROCESSOR_SECONDS, self.cpu_seconds());
        if let Some(bytes) = self.output_bytes {
            put(OUTPUT_BYTES, bytes as f64);
        }
        for (index, stage) in self.uses.iter().enumerate() {
            let place = format!("program {} ", index + 1);
            numbers(stage, &place, &mut record)?;
        }
        if let Some(tape) = &self.tape {
            numbers(tape, DRIVE, &mut record)?;
        }
        Ok(record)
    }

    /// The run of a record; `None` for a failed one.
    ///
    /// # Errors
    /// When a number is missing.
    pub fn of(record: &RunRecord) -> anyhow::Result<Option<Run>> {
        if record.error.is_some() {
            return Ok(None);
        }
        let measure = |name: &str| record.measures.get(name).copied();
        let needed = |name: &str| measure(name).with_context(|| format!("a run without {name}"));
        let mut uses = Vec::new();
        while let Some(stage) = structure(&format!("program {} ", uses.len() + 1), record)? {
            uses.push(stage);
        }
        Ok(Some(Run {
            work: word(&record.cell, WORK),
            contender: word(&record.cell, CONTENDER),
            round: record.repeat,
            seconds: record.seconds,
            uses,
            input_files: needed(INPUT_FILES)? as u64,
            input_bytes: record.bytes,
            output_bytes: measure(OUTPUT_BYTES).map(|bytes| bytes as u64),
            other_cpu_seconds: needed(OTHER_SECONDS)?,
            steal_seconds: needed(STEAL_SECONDS)?,
            tape: structure(DRIVE, record)?,
        }))
    }
}

/// The cell of a contender at a work.
pub fn cell(work: &str, contender: &str) -> Cell {
    let level = |text: &str| Level::Text(text.to_owned());
    Cell::from([(WORK.to_owned(), level(work)), (CONTENDER.to_owned(), level(contender))])
}

/// The level of a cell for a factor; empty if it has none.
pub fn word(cell: &Cell, factor: &str) -> String {
    cell.get(factor).map_or_else(String::new, |level| level.shown(factor))
}

/// Puts the fields of a structure into a record: numbers become measures, words environment.
fn numbers(structure: &impl Serialize, prefix: &str, record: &mut RunRecord) -> anyhow::Result<()> {
    let Value::Object(fields) = serde_json::to_value(structure)? else {
        anyhow::bail!("{prefix}is no structure");
    };
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Number(number) => {
                let number = number.as_f64().with_context(|| format!("{name}: {number}"))?;
                record.measures.insert(name, number);
            }
            Value::String(text) => {
                record.environment.insert(name, text);
            }
            Value::Null => {}
            inner => numbers(&inner, &format!("{name} "), record)?,
        }
    }
    Ok(())
}

/// The structure whose fields are in a record; `None` if none is.
fn structure<T: DeserializeOwned>(prefix: &str, record: &RunRecord) -> anyhow::Result<Option<T>> {
    let numbers = record.measures.iter().map(|(name, number)| (name, whole_or_not(*number)));
    let words = record.environment.iter().map(|(name, text)| (name, Value::from(text.as_str())));
    let mut fields = Map::new();
    for (name, value) in numbers.chain(words) {
        let Some(name) = name.strip_prefix(prefix) else { continue };
        match name.split_once(' ') {
            None => fields.insert(name.to_owned(), value),
            Some((outer, inner)) => {
                let outer = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                outer.as_object_mut().and_then(|outer| outer.insert(inner.to_owned(), value))
            }
        };
    }
    if fields.is_empty() {
        return Ok(None);
    }
    let found = serde_json::from_value(Value::Object(fields));
    Ok(Some(found.with_context(|| format!("a run whose {prefix}is not understood"))?))
}

/// Whole numbers as integers, which are easier to read for counters.
fn whole_or_not(number: f64) -> Value {
    // Above 2^53 a floating point number is whole anyway.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && (0.0..=EXACT).contains(&number) {
        return Value::from(number as u64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::DriveRateReport;

    #[test]
    fn a_run_comes_back_from_its_record() {
        let stage = |program: &str, seconds| StageUse {
            program: program.to_owned(),
            user_seconds: seconds,
            system_seconds: 2.0,
            max_rss_bytes: 3 << 20,
        };
        let rate = DriveRateReport {
            seconds: 10.0,
            bytes: 1_000_000_007,
            native_bytes: 0,
            drive_cpu_seconds: 0.25,
        };
        let tape = TapeRun {
            drive: "LTO-7".to_owned(),
            highest_bytes_per_second: 300_000_000,
            model_seconds: 17.25,
            back_hitches: 3,
            rate: Some(rate),
            ..TapeRun::default()
        };
        for (output_bytes, tape) in [(None, Some(tape)), (Some(7), None)] {
            let run = Run {
                work: "pipe".to_owned(),
                contender: "dd|dd".to_owned(),
                round: 3,
                seconds: 1.5,
                uses: vec![stage("dd", 1.25), stage("dd", 0.5)],
                input_files: 9,
                input_bytes: 1 << 40,
                output_bytes,
                other_cpu_seconds: 0.125,
                steal_seconds: 0.0,
                tape,
            };
            let mut record = run.to_record().unwrap();
            record.cell = cell(&run.work, &run.contender);
            record.repeat = run.round;
            assert_eq!(Run::of(&record).unwrap(), Some(run));
            record.measures.remove(INPUT_FILES);
            let refused = Run::of(&record).unwrap_err().to_string();
            assert!(refused.contains("a run without input_files"), "{refused}");
            record.error = Some("it failed".to_owned());
            assert_eq!(Run::of(&record).unwrap(), None);
        }
    }
}
