//! Why storage cannot be inspected, or a setting of it not read, changed or restored.

use std::io;
use std::path::PathBuf;

use crate::settings::Setting;
use crate::settings::changes::CHANGES_MAX;

/// Why storage cannot be inspected, or a setting of it not read, changed or restored.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A path cannot be inspected.
    #[error("inspect {}", path.display())]
    Inspect { path: PathBuf, source: io::Error },
    /// A setting cannot be read or written.
    #[error("{what} {}", path.display())]
    Setting {
        /// `read` or `write`.
        what: &'static str,
        /// The file in sysfs.
        path: PathBuf,
        source: io::Error,
    },
    /// A path is not the setting that it should be.
    #[error("{} is not a {} setting of the kernel", setting.path.display(), setting.kind.name())]
    NoSetting {
        /// The setting that it should be.
        setting: Setting,
    },
    /// The kernel took another value than the one written.
    #[error(
        "{}: the kernel set {} instead of {}",
        setting.path.display(),
        setting.kind.with_unit(found),
        setting.kind.with_unit(written)
    )]
    NotTaken {
        setting: Setting,
        written: String,
        /// What it holds.
        found: String,
    },
    /// The journal cannot be used.
    #[error("{what} the journal {}", path.display())]
    Journal {
        /// What was tried.
        what: &'static str,
        /// The journal.
        path: PathBuf,
        source: io::Error,
    },
    /// Another user may have made the journal.
    #[error("the journal {} is not trusted: {why}", path.display())]
    Untrusted {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The journal cannot be parsed, so the changed settings are unknown.
    #[error("the journal {} cannot be parsed", path.display())]
    NotUnderstood {
        /// The journal.
        path: PathBuf,
        source: serde_json::Error,
    },
    /// There is no folder for a journal.
    #[error("no folder to save the present {what} in")]
    NoPlace {
        /// The settings to save.
        what: String,
    },
    /// Another experiment is changing settings.
    #[error("process {pid} runs an experiment that changes {what}")]
    Busy {
        /// The process of that experiment.
        pid: u32,
        /// The settings that it changes.
        what: String,
    },
    /// A setting belongs to no device that Takeup could find again later.
    #[error("cannot identify the device of {}", path.display())]
    NoDevice { path: PathBuf },
    /// A file that keeps settings was not written by Takeup.
    #[error("{} was not written by takeup, or was edited since", path.display())]
    Foreign { path: PathBuf },
    /// A file that keeps settings cannot be read or written.
    #[error("{what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// More changes than anyone makes by hand.
    #[error("the list of changes is full: {CHANGES_MAX} changes")]
    TooMany,
    /// The kernel refused a value; settings written before it were restored.
    #[error("the kernel refused {wanted:?}; nothing was changed")]
    Refused {
        /// What was written.
        wanted: String,
        /// Where, and why.
        source: Box<StorageError>,
    },
}
