//! The arguments of `takeup bench import`.

use std::path::PathBuf;

use clap::Args;
use service::bench::import::BenchImportRequest;

use crate::quantity::Size;

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
pub struct BenchImportArgs {
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
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (column, level) = text.split_once('=').ok_or("expected COLUMN=LEVEL")?;
    Ok((column.to_owned(), level.to_owned()))
}

impl BenchImportArgs {
    /// What is asked for.
    pub fn request(&self) -> BenchImportRequest {
        BenchImportRequest {
            table: self.table.clone(),
            output: self.output.clone(),
            loads: self.loads.clone(),
            present: self.present.clone(),
            bytes: self.bytes.map(|size| size.0),
            title: self.title.clone(),
        }
    }
}
