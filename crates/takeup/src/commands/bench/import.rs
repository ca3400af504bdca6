//! `takeup bench import`: a table of other measurements as a file of runs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::format::counted;
use clap::Args;
use experiment::import::{ImportOptions, KNOWN_COLUMNS, TABLE_BYTES_MAX, import};
use experiment::record::{Experiment, Role, RunFile};
use serde_json::json;

use super::options::bytes_or_zero;
use crate::outcome::Form;
use crate::outcome::end;
use crate::outcome::to_standard_output;
use arguments::quantity::Size;
use service::failure::{Failure, with_causes};
use service::outcome::Outcome;

/// Turn a table of measurements into runs, for report and compare
///
/// TABLE is CSV as spreadsheets write it: the first line names the columns, each further line is a
/// run. A run needs two of bytes, seconds and a rate (mb_s, mib_s, bytes_per_second and the like).
/// The columns repeat, note and error are optional, and measure.NAME is a further number. Every
/// other column is a factor, with its unit as the last word of its name: block_bytes takes 64k and
/// 1M. Lines that begin with # are comments.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench import mine.csv --load device --output mine.ndjson
  takeup report mine.ndjson --html mine.html
  takeup bench import benchmarks/published/tape-block-size.csv -o published.ndjson
  takeup compare mine.ndjson published.ndjson

A table:
  device,block_bytes,bytes,seconds
  LTO-7,64k,10619977728,36.9843
  LTO-7,128k,10619977728,36.858")]
pub struct ImportArgs {
    /// The table; - is standard input
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// File for the runs; it must not exist
    #[arg(short, long, default_value = "takeup-bench-import.ndjson", value_name = "FILE")]
    output: PathBuf,
    /// A column that you do not choose, such as the drive or the data; may be given again
    #[arg(long = "load", value_name = "COLUMN")]
    loads: Vec<String>,
    /// The level of a column that is in force today; gains are relative to it; may be given again
    #[arg(long = "present", value_name = "COLUMN=LEVEL", value_parser = pair)]
    present: Vec<(String, String)>,
    /// Bytes of each run, if the table does not have them
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Size>,
    /// Title of the experiment
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    title: String,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (column, level) = text.split_once('=').ok_or("expected COLUMN=LEVEL")?;
    Ok((column.to_owned(), level.to_owned()))
}

/// Runs the command.
pub fn run(arguments: &ImportArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(imported(arguments), "bench import", form)
}

fn imported(arguments: &ImportArgs) -> Result<Outcome, Failure> {
    let name = arguments.table.display().to_string();
    let text = read(&arguments.table)
        .map_err(|error| Failure::of(format!("read {name}: {}", with_causes(&error)), None))?;
    let options = ImportOptions {
        title: title(arguments),
        bytes: arguments.bytes.map(|size| size.0),
        loads: arguments.loads.clone(),
        present: arguments.present.clone(),
    };
    let experiment = import(&text, &options, bytes_or_zero).map_err(|error| {
        let hint =
            format!("use these columns for the numbers of a run: {KNOWN_COLUMNS}, measure.NAME");
        Failure::of(format!("{name}: {error}"), Some(&hint))
    })?;
    write(&arguments.output, &experiment)?;
    let text = if arguments.json {
        document(&arguments.output, &experiment)
    } else {
        told(&arguments.output, &experiment)
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The title of a table is its file name, unless one is given.
fn title(arguments: &ImportArgs) -> String {
    if !arguments.title.is_empty() {
        return arguments.title.clone();
    }
    arguments.table.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into())
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
    let failed = |error: experiment::record::RecordError| {
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

fn told(path: &Path, experiment: &Experiment) -> String {
    let mut text = format!(
        "{} of {} in {}\n",
        counted(experiment.runs.len() as u64, "run", "runs"),
        counted(combinations(experiment), "combination", "combinations"),
        path.display()
    );
    for factor in &experiment.header.factors {
        let role = match factor.role {
            Role::Load => "load",
            Role::Setting => "setting",
        };
        let levels: Vec<String> =
            factor.levels.iter().map(|level| level.shown(&factor.name)).collect();
        text.push_str(&format!("{role:<8} {}: {}\n", factor.title(), levels.join(", ")));
    }
    text
}

fn combinations(experiment: &Experiment) -> u64 {
    let mut cells: Vec<_> = experiment.runs.iter().map(|run| &run.cell).collect();
    cells.sort();
    cells.dedup();
    cells.len() as u64
}

fn document(path: &Path, experiment: &Experiment) -> String {
    let document = json!({
        "command": "bench import",
        "file": path.display().to_string(),
        "runs": experiment.runs.len(),
        "combinations": combinations(experiment),
        "factors": experiment.header.factors,
    });
    format!("{document:#}\n")
}
