//! What stands out on this machine at all: every file system with a disk or a network behind it,
//! and every tape drive, looked at as `probe` does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::finding::Finding;
use machine::mounts::Mount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::probe::{ProbeRequest, Probed, probe};

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseHostAnswer {
    /// File systems and drives that were looked at.
    pub looked_at: Vec<PathBuf>,
    /// Those that could not be looked at, and why.
    pub not_looked_at: Vec<NotLookedAt>,
    /// What stands out, the worst first.
    pub stands_out: Vec<StandsOut>,
}

/// A finding, and where it is so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandsOut {
    /// The first path where it is so.
    pub path: PathBuf,
    pub finding: Finding,
}

/// A path that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotLookedAt {
    pub path: PathBuf,
    pub why: String,
}

impl Answer for DiagnoseHostAnswer {
    const COMMAND: &'static str = "diagnose host";
}

/// More are not looked at.
const PATHS_MAX: usize = 128;

/// Looks at all of them.
///
/// # Errors
/// When the kernel does not show what is mounted.
pub fn diagnose_host() -> Result<DiagnoseHostAnswer, Failure> {
    let mounts = machine::mounts::now()
        .map_err(|error| Failure::of(format!("cannot read the mounts: {error}"), None))?;
    let mut devices = BTreeSet::new();
    let stored = mounts.iter().filter(|mount| is_stored(mount));
    let mut paths: Vec<PathBuf> = stored
        .filter(|mount| devices.insert(mount.device.clone()))
        .map(|mount| mount.point.clone())
        .collect();
    paths.extend(drives());
    paths.truncate(PATHS_MAX);
    let mut answer = DiagnoseHostAnswer {
        looked_at: Vec::new(),
        not_looked_at: Vec::new(),
        stands_out: Vec::new(),
    };
    let mut known = BTreeSet::new();
    for path in paths {
        let request = ProbeRequest { path: path.clone(), request_bytes: None };
        let findings = match probe(&request) {
            Ok(Probed::Drive(drive)) => drive.findings,
            Ok(Probed::Layers(layers)) => layers.findings,
            Err(failure) => {
                let why = failure.message().to_owned();
                answer.not_looked_at.push(NotLookedAt { path, why });
                continue;
            }
        };
        for finding in findings {
            // Two file systems of one disk tell the same of it.
            if known.insert((finding.rule.to_string(), finding.sentence())) {
                answer.stands_out.push(StandsOut { path: path.clone(), finding });
            }
        }
        answer.looked_at.push(path);
    }
    answer.stands_out.sort_by_key(|it| std::cmp::Reverse(it.finding.severity));
    Ok(answer)
}

/// Whether a disk or a network is behind a mount.
fn is_stored(mount: &Mount) -> bool {
    let far =
        ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "zfs", "9p", "virtiofs"];
    let is_far = far.contains(&mount.kind.as_str()) || mount.kind.starts_with("fuse.");
    let is_file = !mount.point.is_dir();
    !is_file
        && (is_far || mount.source.starts_with("/dev"))
        && !matches!(
            mount.kind.as_str(),
            "squashfs" | "devtmpfs" | "devpts" | "mqueue" | "hugetlbfs"
        )
}

/// Nodes of tape drives that do not rewind.
fn drives() -> Vec<PathBuf> {
    let listed = std::fs::read_dir("/sys/class/scsi_tape").into_iter().flatten().flatten();
    let names = listed.filter_map(|entry| entry.file_name().into_string().ok());
    let is_plain = |name: &String| {
        let digits = name.strip_prefix("nst");
        digits.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut names: Vec<String> = names.filter(is_plain).collect();
    names.sort();
    names.into_iter().map(|name| Path::new("/dev").join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_looked_at() {
        let answer = diagnose_host().unwrap();
        let severities: Vec<_> = answer.stands_out.iter().map(|it| it.finding.severity).collect();
        assert!(severities.windows(2).all(|two| two[0] >= two[1]), "{severities:?}");
        assert!(answer.looked_at.iter().all(|path| path.is_absolute()));
    }
}
