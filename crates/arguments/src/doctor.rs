//! The arguments of `takeup doctor`.

use clap::Args;
use service::doctor::{DoctorRequest, Names};

/// Show what a bug report needs, and what stands in the way of Takeup on this machine
///
/// Shows the program, the machine, what the kernel allows, helper programs, drives, disks, settings
/// that Takeup has changed, and the last runs of jobs. Writes nothing, queries no device, and sends
/// nothing anywhere.
///
/// Names of hosts, users, files, folders, jobs and sets, and serial numbers, are left out unless
/// you ask for them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup doctor
  takeup doctor > doctor.txt            # to read, then to attach to a bug report
  takeup doctor --with-names
  takeup doctor --json | jq .stands_out")]
pub struct DoctorArgs {
    /// Show the names of jobs and mount points, and messages that may name files
    #[arg(long)]
    with_names: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

impl DoctorArgs {
    /// What is asked for.
    pub fn request(&self) -> DoctorRequest {
        DoctorRequest { names: if self.with_names { Names::Shown } else { Names::LeftOut } }
    }
}
