//! Two experiments, or two records of a watch, side by side.

use std::path::{Path, PathBuf};

use experiment::compare::{Comparison, apart, compare};
use experiment::judgement::JudgementOptions;
use experiment::record::{Experiment, load};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::history::History;

use crate::Answer;
use crate::bench::ExperimentComparison;
use crate::failure::Failure;
use crate::output_file::{OutputFile, is_same};
use crate::recorded::{self, RecordedWatch};

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRequest {
    /// The first experiment, or record of a watch.
    pub a: PathBuf,
    /// The second experiment or record.
    pub b: PathBuf,
    /// The page that will be written.
    #[serde(default)]
    pub html: Option<PathBuf>,
}

/// What was compared, and the page, which is open.
pub struct ComparedFiles {
    /// The comparison.
    pub what: ComparedPair,
    /// The page to write; without its name until it is complete.
    pub page: Option<OutputFile>,
}

/// Two files of one kind.
pub enum ComparedPair {
    /// Two experiments.
    Experiments {
        /// The first one.
        a: Box<Experiment>,
        /// The second one.
        b: Box<Experiment>,
        comparison: Box<Comparison>,
    },
    /// Two records of a watch.
    Watches {
        /// The first one.
        a: Box<History>,
        /// The second one.
        b: Box<History>,
        comparison: Box<watch::compare::Comparison>,
    },
}

/// Two files side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CompareAnswer {
    /// Of two records of a watch.
    Watches(Box<WatchComparison>),
    /// Of two experiments.
    Experiments(Box<ExperimentsCompared>),
}

impl Answer for CompareAnswer {
    const COMMAND: &'static str = "compare";
}

/// Two experiments side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentsCompared {
    pub comparison: ExperimentComparison,
}

/// Two records of a watch side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchComparison {
    /// The first one.
    pub a: RecordedWatch,
    /// The second one.
    pub b: RecordedWatch,
    pub comparison: watch::compare::Comparison,
}

/// Compares two files of one kind.
///
/// # Errors
/// When one cannot be read, they are not of one kind or have nothing in common, or the page cannot
/// be opened.
pub fn compared(request: &CompareRequest) -> Result<ComparedFiles, Failure> {
    let (a, b) = (&*request.a, &*request.b);
    if is_same(a, b) {
        let what = format!("{} and {} are the same file", a.display(), b.display());
        return Err(Failure::of(what, Some("name two different experiments")));
    }
    if let Some(path) = &request.html
        && [a, b].iter().any(|runs| is_same(path, runs))
    {
        return Err(Failure::of(
            format!("{} is one of the files to compare", path.display()),
            None,
        ));
    }
    let are_watches = match (recorded::is_record(a), recorded::is_record(b)) {
        (true, false) => return Err(of_two_kinds(a, b)),
        (false, true) => return Err(of_two_kinds(b, a)),
        (are_watches, _) => are_watches,
    };
    let page = request.html.as_deref().map(OutputFile::open).transpose()?;
    let what = if are_watches { watches(a, b)? } else { experiments(a, b)? };
    Ok(ComparedFiles { what, page })
}

fn watches(a: &Path, b: &Path) -> Result<ComparedPair, Failure> {
    let [a, b] = recorded::histories(a, b)?.map(Box::new);
    let comparison = Box::new(watch::compare::compare(&a, &b));
    Ok(ComparedPair::Watches { a, b, comparison })
}

fn experiments(a: &Path, b: &Path) -> Result<ComparedPair, Failure> {
    let read = |path| load(path).map_err(|error| Failure::new(&error, None));
    let (a, b) = (Box::new(read(a)?), Box::new(read(b)?));
    if a.header.value != b.header.value {
        return Err(Failure::of(
            "one of the two experiments has rates and the other has times",
            Some("use `takeup bench run` with --bytes or --bytes-of to get rates"),
        ));
    }
    let options = JudgementOptions { value: a.header.value, ..JudgementOptions::default() };
    let comparison = Box::new(compare(&a, &b, &options));
    if comparison.pairs.is_empty() {
        return Err(nothing_in_common(&a, &b));
    }
    Ok(ComparedPair::Experiments { a, b, comparison })
}

/// One file is a record of a watch and the other is not. An error in the other file is reported
/// first.
fn of_two_kinds(record: &Path, other: &Path) -> Failure {
    if let Err(error) = load(other) {
        return Failure::new(&error, None);
    }
    let (record, other) = (record.display(), other.display());
    let what = format!("{record} is a record of `takeup watch`, and {other} an experiment");
    Failure::of(what, Some("name two files of the same kind"))
}

fn nothing_in_common(a: &Experiment, b: &Experiment) -> Failure {
    let apart = apart(a, b);
    let why = if apart.is_empty() {
        "each factor has levels in common, but no combination of them ran in both".to_owned()
    } else {
        apart.join("; ")
    };
    let what = format!("the two experiments have no combination in common: {why}");
    Failure::of(what, Some("see the combinations of each with `takeup report`"))
}

impl ComparedPair {
    /// As an answer.
    pub fn answer(&self) -> CompareAnswer {
        match self {
            ComparedPair::Experiments { comparison, .. } => {
                let comparison = ExperimentComparison::of(comparison);
                CompareAnswer::Experiments(Box::new(ExperimentsCompared { comparison }))
            }
            ComparedPair::Watches { a, b, comparison } => {
                let [a, b] = [a, b].map(|history| RecordedWatch::of(history));
                let comparison = watch::compare::Comparison::clone(comparison);
                CompareAnswer::Watches(Box::new(WatchComparison { a, b, comparison }))
            }
        }
    }
}
