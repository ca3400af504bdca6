//! What a bug report needs of this machine, and what stands in the way of Takeup here.
//!
//! Nothing private is in the answer unless it is asked for: no names of hosts, users, files,
//! folders, jobs and sets, and no serial numbers. Nothing is written, and no device is queried:
//! everything comes from files of the kernel, from the state of Takeup, and from the first lines of
//! programs that print their version.

mod answer;
mod devices;
mod findings;
mod kernel;
mod programs;
mod records;
pub mod rules;
mod system;

use machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{
    BlockDeviceAnswer, DoctorAnswer, FacilityAnswer, FileSystemAnswer, HelperAnswer, RecordsAnswer,
    RunRecordAnswer, SettingsAnswer, SystemAnswer, TapeDeviceAnswer,
};

/// Whether names may be in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// Jobs and folders are numbered, and messages that may name files are left out.
    #[default]
    LeftOut,
    /// Jobs, mount points and messages are in the answer.
    Shown,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorRequest {
    #[serde(default)]
    pub names: Names,
}

/// Looks at this machine.
pub fn doctor(request: DoctorRequest) -> DoctorAnswer {
    let machine = Machine::this();
    let mut answer = DoctorAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        linked: if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" }.to_owned(),
        optimized: !cfg!(debug_assertions),
        system: system::system(&machine, request.names),
        kernel: kernel::facilities(),
        programs: programs::programs(&machine),
        tape_drives: devices::tape_drives(&machine),
        block_devices: devices::block_devices(&machine),
        file_systems: devices::file_systems(&machine, request.names),
        settings: records::settings(request.names),
        records: records::records(request.names),
        stands_out: Vec::new(),
        names: request.names,
    };
    answer.stands_out = findings::findings(&answer);
    answer
}
