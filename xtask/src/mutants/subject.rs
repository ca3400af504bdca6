//! The sources that are mutated, and the tests that must detect the mutants.

use std::fmt;

use clap::ValueEnum as _;

/// A part of the source with tests of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// tar, chunks and the index
    Archive,
    /// Scanning, reading and restoring trees
    Tree,
    /// Sets of archives on tapes
    Sets,
    /// Rings, queues and what limited a run
    Flow,
    /// Backup, verify, restore and list
    Backup,
    /// Settings of the kernel that are changed and restored
    Settings,
    /// What is claimed of experiments
    Judgement,
}

impl Subject {
    /// All subjects.
    pub fn all() -> Vec<Subject> {
        Subject::value_variants().to_vec()
    }

    /// The packages that are mutated.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            Subject::Archive => &["archive"],
            Subject::Tree => &["tree"],
            Subject::Sets => &["tapeset", "catalogue"],
            Subject::Flow => &["flow"],
            Subject::Backup => &["runs"],
            Subject::Settings => &["storage"],
            Subject::Judgement => &["experiment"],
        }
    }

    /// The files that are mutated, as patterns; all of the package where there is no pattern.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Subject::Settings => {
                &["crates/storage/src/settings.rs", "crates/storage/src/settings/**/*.rs"]
            }
            Subject::Judgement => {
                &["crates/experiment/src/judgement.rs", "crates/experiment/src/judgement/**/*.rs"]
            }
            _ => &[],
        }
    }

    /// The tests that must detect a mutant, as arguments of `cargo test`.
    ///
    /// `tapeset` has unit tests only for its options and claims: all else in it needs an archive
    /// and a drive, and the tests of `runs` have both.
    pub fn tests(self) -> &'static [&'static str] {
        match self {
            Subject::Archive => &["--package", "archive", "--tests"],
            Subject::Tree => &["--package", "tree", "--tests"],
            Subject::Sets => {
                &["--package", "tapeset", "--package", "catalogue", "--package", "runs", "--tests"]
            }
            Subject::Flow => &["--package", "flow", "--tests"],
            Subject::Backup => &["--package", "runs", "--tests"],
            Subject::Settings => &["--package", "storage", "--tests"],
            Subject::Judgement => &["--package", "experiment", "--tests"],
        }
    }

    /// The tests of a program, such as `experiment lib experiment`, that are about this subject, as
    /// libtest's filters; empty for all of them. Other tests would only take time.
    pub fn filters(self, program: &str) -> &'static [&'static str] {
        match (self, program) {
            (Subject::Sets, "runs lib runs" | "runs test backup" | "runs test reading") => {
                &["tape", "sets"]
            }
            (Subject::Settings, "storage lib storage") => &["settings"],
            (Subject::Judgement, "experiment lib experiment") => &["judgement"],
            _ => &[],
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}
