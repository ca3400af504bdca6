//! A table of other measurements as a file of runs.

use std::io::Read;
use std::path::{Path, PathBuf};

use base::quantity::bytes_or_zero;
use experiment::import::{ImportOptions, KNOWN_COLUMNS, TABLE_BYTES_MAX, import};
use experiment::record::{Experiment, Factor, RecordError, RunFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::{Failure, with_causes};

/// Which table to import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchImportRequest {
    /// The table; `-` is standard input.
    pub table: PathBuf,
    /// File for the runs; it must not exist.
    pub output: PathBuf,
    /// Columns that the user does not choose, such as the drive or the data.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Columns and the level in force today; gains are relative to it.
    #[serde(default)]
    pub present: Vec<(String, String)>,
    /// Bytes of each run, if the table does not have them.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Title of the experiment; the default is the name of the table.
    #[serde(default)]
    pub title: String,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchImportAnswer {
    /// The file of runs; bytes that are no UTF-8 are replaced.
    pub file: String,
    pub runs: u64,
    pub combinations: u64,
    /// What was varied.
    pub factors: Vec<Factor>,
}

impl Answer for BenchImportAnswer {
    const COMMAND: &'static str = "bench import";
}

/// Imports a table.
///
/// # Errors
/// When the table cannot be read, or the file of runs cannot be written.
pub fn imported(request: &BenchImportRequest) -> Result<BenchImportAnswer, Failure> {
    let name = request.table.display().to_string();
    let text = read(&request.table)
        .map_err(|error| Failure::of(format!("read {name}: {}", with_causes(&error)), None))?;
    let options = ImportOptions {
        title: title(request),
        bytes: request.bytes,
        loads: request.loads.clone(),
        present: request.present.clone(),
    };
    let experiment = import(&text, &options, bytes_or_zero).map_err(|error| {
        let hint =
            format!("use these columns for the numbers of a run: {KNOWN_COLUMNS}, measure.NAME");
        Failure::of(format!("{name}: {error}"), Some(&hint))
    })?;
    write(&request.output, &experiment)?;
    Ok(BenchImportAnswer {
        file: request.output.display().to_string(),
        runs: experiment.runs.len() as u64,
        combinations: combinations(&experiment),
        factors: experiment.header.factors,
    })
}

/// The title of a table is its file name, unless one is given.
fn title(request: &BenchImportRequest) -> String {
    if !request.title.is_empty() {
        return request.title.clone();
    }
    request.table.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into())
}

fn read(path: &Path) -> std::io::Result<String> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut bytes = Vec::new();
    source.take(TABLE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TABLE_BYTES_MAX {
        return Err(std::io::Error::other("the table is larger than 64 MiB"));
    }
    // Old spreadsheets write Latin-1; a word with invalid UTF-8 stays recognisable.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes all runs, or leaves no file.
fn write(path: &Path, experiment: &Experiment) -> Result<(), Failure> {
    let failed = |error: RecordError| {
        let exists = path.exists();
        Failure::new(&error, exists.then(|| "name another file with --output".to_owned()))
    };
    let mut file = RunFile::create(path, &experiment.header).map_err(failed)?;
    for run in &experiment.runs {
        if let Err(error) = file.push(run) {
            let _ = file.remove();
            return Err(Failure::new(&error, None));
        }
    }
    Ok(())
}

fn combinations(experiment: &Experiment) -> u64 {
    let mut cells: Vec<_> = experiment.runs.iter().map(|run| &run.cell).collect();
    cells.sort();
    cells.dedup();
    cells.len() as u64
}
