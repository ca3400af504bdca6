//! The answer of `takeup doctor`.

use base::finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Names;
use crate::Answer;
use crate::jobs::JobRunAnswer;

/// What a bug report needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorAnswer {
    /// Of Takeup.
    pub version: String,
    /// That the program was built for, for example `x86_64`.
    pub architecture: String,
    /// `static` or `dynamic`.
    pub linked: String,
    /// Whether it was built for speed: what `make build` and `make package` make.
    pub optimized: bool,
    pub system: SystemAnswer,
    /// What Takeup uses of the kernel where it is there.
    pub kernel: Vec<FacilityAnswer>,
    /// Programs that Takeup starts for some of its work.
    pub programs: Vec<HelperAnswer>,
    pub tape_drives: Vec<TapeDeviceAnswer>,
    /// Those that are not virtual, without partitions.
    pub block_devices: Vec<BlockDeviceAnswer>,
    /// What is mounted, by kind.
    pub file_systems: Vec<FileSystemAnswer>,
    pub settings: SettingsAnswer,
    pub records: RecordsAnswer,
    /// What stands in the way of Takeup here, the worst first.
    pub stands_out: Vec<Finding>,
    pub names: Names,
}

impl Answer for DoctorAnswer {
    const COMMAND: &'static str = "doctor";
}

/// The machine and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemAnswer {
    /// As `/etc/os-release` calls it.
    pub distribution: Option<String>,
    /// Its release, for example `6.1.0-28-amd64`.
    pub kernel: String,
    pub page_bytes: u64,
    /// As the kernel calls it.
    pub processor: Option<String>,
    /// Cores that this process may use.
    pub cores: u64,
    pub memory_bytes: Option<u64>,
    /// What limits of control groups leave of the memory.
    pub memory_left_bytes: Option<u64>,
    /// Files that one process may have open.
    pub open_files_max: u64,
    /// Whether the program runs as root.
    pub root: bool,
    /// Whether there are signs of a container.
    pub container: bool,
    /// Whether the processor reports a hypervisor.
    pub virtual_machine: bool,
}

/// Something that the kernel offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FacilityAnswer {
    pub name: String,
    /// Why it cannot be used; null where it can.
    pub refused: Option<String>,
    /// What Takeup does without it.
    pub without: String,
}

/// A program that Takeup starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelperAnswer {
    pub name: String,
    /// The first line that it prints of itself; null where it is not installed or does not answer.
    pub version: Option<String>,
    /// What Takeup uses it for.
    pub used_for: String,
}

/// A tape drive, as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapeDeviceAnswer {
    /// For example `nst0`.
    pub name: String,
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub firmware: Option<String>,
    /// Why this user cannot open it; null where the permissions allow it.
    pub refused: Option<String>,
}

/// A disk or the like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDeviceAnswer {
    /// For example `sda`.
    pub name: String,
    pub model: Option<String>,
    pub bytes: Option<u64>,
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
    pub read_ahead_bytes: Option<u64>,
    pub largest_request_bytes: Option<u64>,
}

/// File systems of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystemAnswer {
    /// For example `ext4`.
    pub kind: String,
    pub count: u64,
    /// Where they are mounted; empty where names are left out.
    pub mounted_at: Vec<String>,
}

/// Settings that Takeup has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsAnswer {
    /// A line each: device, setting, value before, value set, value now.
    pub changed: Vec<String>,
    /// Of these, settings that no longer have the value that was set.
    pub lost: u64,
    /// What an experiment left changed that does not run any more.
    pub left: Option<String>,
    /// Why the list could not be read; without the message where names are left out.
    pub unreadable: Option<String>,
}

/// What Takeup remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordsAnswer {
    /// Jobs in the user's file; null where there is none.
    pub jobs: Option<u64>,
    /// Why the file cannot be used; without the message where names are left out.
    pub jobs_unreadable: Option<String>,
    pub catalogue_bytes: Option<u64>,
    /// Why the state of Takeup cannot be written by this user.
    pub state_refused: Option<String>,
    /// The last runs of jobs, the oldest first.
    pub runs: Vec<RunRecordAnswer>,
    /// The last run of each job, where it failed; of jobs that the file has, where there is one.
    pub failed: Vec<RunRecordAnswer>,
    /// Why the journal cannot be read; without the message where names are left out.
    pub journal_unreadable: Option<String>,
    /// Lines of the journal that cannot be read.
    pub unreadable_lines: u64,
}

/// A run of a job, as `takeup catalog jobs` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecordAnswer {
    /// The name, or a number.
    pub job: String,
    /// Where names are left out without its archive, and without the message of an error.
    #[serde(flatten)]
    pub run: JobRunAnswer,
}
