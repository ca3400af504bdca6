//! Raw measurements on disk: one line of JSON a run, appended the moment it ends.
//!
//! Nothing is averaged here and nothing is ever rewritten, so that a later analysis can ask
//! questions that nobody had when the runs were made. A file may hold several campaigns; each
//! opens with the environment. No host names and no paths of the machine get in: command lines are
//! kept with their words in braces.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::contenders::Cache;
use super::pipeline::StageUse;
use super::tape::TapeRun;

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// A campaign starts.
    Campaign(Environment),
    /// A run ended.
    Run(Run),
    /// Something was not run.
    Skipped(Skipped),
}

/// Where a campaign runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Start in UTC, which also names the campaign.
    pub campaign: String,
    /// Full or quick.
    pub size: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Instruction set.
    pub architecture: String,
    /// Name of the processor.
    pub processor: String,
    /// Processors this process may use.
    pub processors: u64,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// File system of the data.
    pub file_system: String,
    /// Read-ahead of its device, if it tells.
    pub read_ahead_bytes: Option<u64>,
    /// I/O scheduler of its device, if it tells.
    pub scheduler: Option<String>,
    /// Whether its device turns, if it tells.
    pub rotational: Option<bool>,
    /// Commit the product was built from, with `-dirty` when files differ.
    pub commit: Option<String>,
    /// First line of what each program says about its version.
    pub versions: BTreeMap<String, String>,
}

/// What a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Once, to see that it works, count its output and warm up; not in the statistics.
    Check,
    /// Search for the best setting of the floor or fio; not in the statistics.
    Sweep,
    /// Counts.
    Timed,
}

/// One execution of one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Start of the campaign.
    pub campaign: String,
    /// Name of the work.
    pub work: String,
    /// Name of the contender.
    pub contender: String,
    /// What the run was for.
    pub phase: Phase,
    /// Number of the round, from 1; 0 before the first.
    pub round: u32,
    /// Place in the order of this round, from 0.
    pub place: u32,
    /// What the page cache held.
    pub cache: Cache,
    /// Command lines with their words in braces.
    pub stages: Vec<Vec<String>>,
    /// Wall time.
    pub seconds: f64,
    /// What each program used.
    pub uses: Vec<StageUse>,
    /// Files of the data.
    pub input_files: u64,
    /// Bytes of the data.
    pub input_bytes: u64,
    /// Bytes that came out, where they were counted.
    pub output_bytes: Option<u64>,
    /// Processor time of everybody else on the machine meanwhile.
    pub other_cpu_seconds: f64,
    /// Processor time that the host of a virtual machine took away meanwhile.
    pub steal_seconds: f64,
    /// What the drive counted, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<TapeRun>,
}

impl Run {
    /// Processor time of the whole pipeline in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.uses.iter().map(|stage| stage.user_seconds + stage.system_seconds).sum()
    }
}

/// A work or contender that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Start of the campaign.
    pub campaign: String,
    /// Name of the work.
    pub work: String,
    /// Name of the contender; none when the whole work is left out.
    pub contender: Option<String>,
    /// One line.
    pub reason: String,
}

/// Appends records to a file.
pub struct RecordWriter {
    file: File,
}

impl RecordWriter {
    /// Opens `path` for appending, and makes its folder if there is none.
    ///
    /// # Errors
    /// When either cannot be made.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let file = File::options().append(true).create(true).open(path);
        Ok(Self { file: file.with_context(|| format!("open {}", path.display()))? })
    }

    /// Appends one line; it is with the kernel when this returns.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.write_all(&line).context("append a record")
    }
}

/// Reads all records of a file. A last line without its end, as a crash leaves, is left out.
///
/// # Errors
/// When the file cannot be read or a whole line is not a record; the error names the line.
pub fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{}: line {}", path.display(), index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_a_torn_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/runs.ndjson");
        let skipped = Skipped {
            campaign: "c".to_string(),
            work: "pipe".to_string(),
            contender: Some("pv".to_string()),
            reason: "not installed".to_string(),
        };
        for _ in 0..2 {
            let mut writer = RecordWriter::open(&path).unwrap();
            writer.append(&Record::Skipped(skipped.clone())).unwrap();
        }
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"kind\":\"ru");
        fs::write(&path, text).unwrap();
        let records = read(&path).unwrap();
        assert_eq!(records.len(), 2);
        assert!(matches!(&records[1], Record::Skipped(read) if *read == skipped));
        fs::write(&path, "nonsense\n").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("line 1"));
    }
}
