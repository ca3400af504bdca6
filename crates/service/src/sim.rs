//! A virtual drive or disk for any program.

pub mod disk;
pub mod tape;

use std::path::{Path, PathBuf};

use base::escape::escape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::mount::DeviceStatus;
use sim::tape::media_in;

use crate::Answer;
use crate::failure::{Failure, with_causes};

/// Whether commands and requests take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeChoice {
    /// As long as on the simulated device.
    #[default]
    True,
    /// As short as on this machine.
    None,
}

/// The state of a virtual drive or disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStatusRequest {
    /// The folder on which it is mounted.
    pub mountpoint: PathBuf,
}

/// Another cartridge for a virtual drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLoadRequest {
    /// The folder on which it is mounted.
    pub mountpoint: PathBuf,
    /// The cartridge, a file.
    pub medium: PathBuf,
    /// Whether to create the cartridge, with the settings of the first one.
    #[serde(default)]
    pub new: bool,
}

/// No cartridge for a virtual drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimEjectRequest {
    /// The folder on which it is mounted.
    pub mountpoint: PathBuf,
}

/// What a virtual drive or disk says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SimStatusAnswer {
    pub status: DeviceStatus,
}

impl Answer for SimStatusAnswer {
    const COMMAND: &'static str = "sim status";
}

/// The state of a virtual drive or disk.
///
/// # Errors
/// When nothing is mounted there.
pub fn status(request: &SimStatusRequest) -> Result<SimStatusAnswer, Failure> {
    let status = DeviceStatus::of_folder(&request.mountpoint)
        .map_err(|error| no_drive(&request.mountpoint.join("status"), &error))?;
    Ok(SimStatusAnswer { status })
}

/// Puts another cartridge into a virtual drive.
///
/// # Errors
/// When no drive is mounted there, or it does not take the cartridge.
pub fn load(request: &SimLoadRequest) -> Result<(), Failure> {
    use std::os::unix::ffi::OsStrExt;
    let place = request.mountpoint.join("medium");
    std::fs::metadata(&place).map_err(|error| no_drive(&place, &error))?;
    let medium = absolute(&request.medium)?;
    match (request.new, medium.exists()) {
        (false, false) => return Err(not_on_the_shelf(&medium)),
        (true, true) => {
            let what = format!("{} exists already", medium.display());
            return Err(Failure::of(what, Some("omit --new to load it as it is")));
        }
        _ => {}
    }
    change_medium(&request.mountpoint, medium.as_os_str().as_bytes())
}

/// Takes the cartridge out of a virtual drive.
///
/// # Errors
/// When no drive is mounted there, or it does not give the cartridge.
pub fn eject(request: &SimEjectRequest) -> Result<(), Failure> {
    change_medium(&request.mountpoint, b"\n")
}

/// Most cartridges that are listed when one was not found.
const SHELF_NAMED_MAX: usize = 10;

/// The failure for a cartridge that does not exist, with those in its folder.
fn not_on_the_shelf(medium: &Path) -> Failure {
    let folder = medium.parent().unwrap_or(Path::new("/"));
    let shelf = match media_in(folder) {
        Ok(media) => names(&media),
        Err(error) => return Failure::of(format!("{}: {error}", folder.display()), None),
    };
    let (medium, folder) = (medium.display(), folder.display());
    let what = format!("no cartridge {medium}; {folder} has {shelf}");
    Failure::of(what, Some("add --new to create it"))
}

fn names(media: &[PathBuf]) -> String {
    let name = |path: &PathBuf| escape(path.file_name().unwrap_or_default().as_encoded_bytes());
    let named: Vec<String> = media.iter().take(SHELF_NAMED_MAX).map(name).collect();
    match (media.len(), media.len().saturating_sub(SHELF_NAMED_MAX)) {
        (0, _) => "none".to_owned(),
        (1, _) => named[0].clone(),
        (_, 0) => named.join(", "),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    }
}

fn change_medium(mountpoint: &Path, request: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    let path = mountpoint.join("medium");
    let opened = std::fs::OpenOptions::new().write(true).open(&path);
    let mut file = opened.map_err(|error| no_drive(&path, &error))?;
    file.write_all(request).map_err(|error| {
        let hint = "run `takeup sim status MOUNTPOINT` to see the cause";
        Failure::of(format!("cannot change the medium: {}: {error}", path.display()), Some(hint))
    })
}

/// Whether `what` can be mounted there. A file can be mounted on, too, but then hides the drive.
fn check_mountpoint(what: &str, mountpoint: &Path) -> Result<(), Failure> {
    let path = mountpoint.display();
    let failed = |why: &str, hint: &str| {
        let message = format!("cannot mount a virtual {what} on {path}: {why}");
        Failure::of(message, Some(hint))
    };
    match std::fs::metadata(mountpoint) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(failed("not a folder", "name an empty folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(failed("no such folder", &format!("create it: mkdir {path}")))
        }
        Err(error) => Err(failed(&with_causes(&error), &mount_hint(what, mountpoint))),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::of(format!("cannot use {}: {error}", path.display()), None))
}

fn no_drive(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("no virtual drive or disk here: {}: {error}", path.display());
    Failure::of(
        message,
        Some("start one with `takeup sim tape MOUNTPOINT` or `takeup sim disk MOUNTPOINT`"),
    )
}

fn mount_hint(what: &str, mountpoint: &Path) -> String {
    let gone = std::fs::metadata(mountpoint)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotConnected);
    if gone {
        format!("run umount {}: a {what} was killed there", mountpoint.display())
    } else {
        "provide /dev/fuse, an empty folder, and root or fusermount3".to_owned()
    }
}
