//! Why a job is not run, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::PATTERNS;
use super::options::engine_advice;
use super::values::NUMBER_MAX;

/// Why a job is not run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job file cannot be read.
    #[error("cannot be read")]
    Read(#[from] io::Error),
    /// Lines that a job may not have here: all of them.
    #[error("{}", lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Lines {
        /// In the order of the file.
        lines: Vec<RefusedLine>,
    },
    /// There is nothing to run.
    #[error("it has no section to run")]
    NoSection,
    /// A section that says nothing of where its files are.
    #[error("section [{section}] names neither a file nor a folder")]
    NoPlace { section: String },
    /// A path was given that no section works on.
    #[error("no section works on {}: each names its own", path.display())]
    NotUsed { path: PathBuf },
    /// Files that fio would make, of unknown length.
    #[error("section [{section}] has no size in bytes, and files are to be made for it")]
    NoSize { section: String },
}

/// A line that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line:?} {fault}")]
pub struct RefusedLine {
    /// Its number in the file, from 1 on; `None` of what was set beside the file.
    pub number: Option<usize>,
    pub line: String,
    /// What is wrong with it, and what to do.
    pub fault: LineFault,
}

/// What is wrong with a line, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// A section whose name could be that of a file.
    #[error(
        "is not a plain name: name the section in brackets with letters, digits, blanks and -_.%, \
         and its file with filename="
    )]
    Section,
    /// A percentage without a number.
    #[error("is not a percentage: write a whole number and %")]
    Share,
    /// No size that fio would understand.
    #[error("is not a size: write bytes, or a number with k, m, g or t")]
    Size,
    /// No plain number.
    #[error("is not a number from 1 to {NUMBER_MAX}")]
    Number,
    /// Another engine than those that do nothing but read and write.
    #[error("is refused: {}", engine_advice(_0))]
    Engine(String),
    /// Nothing that fio does.
    #[error("is not one of the patterns {}", PATTERNS.join(" "))]
    Pattern,
    /// An option that may harm.
    #[error("is refused: {_0}")]
    Refused(&'static str),
    /// An option that is not in the table.
    #[error(
        "is not among the options that a job may have here, since takeup does not know what it \
         does: leave it out"
    )]
    NotListed,
    /// A value that could mean more than itself.
    #[error("has more in it than letters, numbers and -_.,:/%+: write it without quotes, $ and *")]
    Value,
    /// `${NAME}` without a value.
    #[error("needs {_0} in the environment: run {_0}=VALUE takeup bench disk ...")]
    Variable(String),
    /// Memory in a file.
    #[error("is refused: memory is malloc, shm, shmhuge or mmap, without the name of a file")]
    Memory,
    /// A list of files that fio would understand in another way.
    #[error("is not a list of files: separate names with ':'; '-' is not a file")]
    Files,
    /// A pattern for names that could lead elsewhere.
    #[error("has more in it than letters, numbers, $jobname, $jobnum and $filenum")]
    Format,
    /// It stands before the first section.
    #[error("is in no section: write [global] above it")]
    Outside,
    /// fio reads a line in pieces of this size, each as a line of its own.
    #[error("is longer than {} bytes: shorten it", super::LINE_BYTES_MAX)]
    Long,
    /// What was set beside the file is no option with a value.
    #[error("is not NAME=VALUE")]
    NoValue,
}
