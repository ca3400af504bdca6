//! The service and the timer of a job.

use std::path::PathBuf;

use jobs::{UnitSettings, service_unit, timer_unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, with_causes};
use crate::output_file::write_all;
use crate::state::named_folder;

/// Which job, and where its units go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitsRequest {
    pub job: String,
    /// The file with the jobs; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// Whether they are written where systemd finds them.
    #[serde(default)]
    pub write: bool,
}

/// The units of a job.
#[derive(Clone, Debug)]
pub struct UnitsDone {
    pub job: String,
    pub service: String,
    pub timer: String,
    /// `None`: they were not written.
    pub written_to: Option<PathBuf>,
    /// Whether they are for the service manager of a user.
    pub is_users: bool,
}

impl UnitsDone {
    /// The file of the service.
    pub fn service_name(&self) -> String {
        format!("takeup-{}.service", self.job)
    }

    /// The file of the timer.
    pub fn timer_name(&self) -> String {
        format!("takeup-{}.timer", self.job)
    }
}

/// Makes the units of a job.
///
/// # Errors
/// When the file with the jobs cannot be used, or a unit cannot be written.
pub fn units(request: &UnitsRequest) -> Result<UnitsDone, Failure> {
    let (config, path) = super::read_config(request.config.as_deref())?;
    let (name, job) = config.job(&request.job, &path).map_err(|error| super::failure(&error))?;
    if !name.as_str().is_ascii() {
        let message = format!("{name} cannot be in the name of a unit");
        return Err(Failure::of(message, Some("systemd takes letters of ASCII only")));
    }
    let program = std::env::current_exe().map_err(|error| Failure::new(&error, None))?;
    let is_users = !rustix::process::geteuid().is_root();
    let settings = UnitSettings { program: &program, config: &path, is_users };
    let mut done = UnitsDone {
        job: name.to_string(),
        service: service_unit(name, job, &settings),
        timer: timer_unit(name, job),
        written_to: None,
        is_users,
    };
    if request.write {
        if !job.to.is_tape() && !job.to.as_path().is_dir() {
            // The service may make nothing beside it.
            let message = format!("{} is not there", job.to.as_path().display());
            let hint = format!("run the job once: takeup run {name}");
            return Err(Failure::of(message, Some(&hint)));
        }
        let folder = folder(is_users).ok_or_else(|| {
            let hint = "set XDG_CONFIG_HOME or HOME to a folder of yours";
            Failure::of("there is no folder for units", Some(hint))
        })?;
        std::fs::create_dir_all(&folder).map_err(|error| {
            let why = with_causes(&error);
            Failure::of(format!("cannot make the folder {}: {why}", folder.display()), None)
        })?;
        let units = [(done.service_name(), &done.service), (done.timer_name(), &done.timer)];
        let texts = units.map(|(name, text)| (folder.join(name), text.clone()));
        write_all(texts.into())?;
        done.written_to = Some(folder);
    }
    Ok(done)
}

fn folder(is_users: bool) -> Option<PathBuf> {
    if !is_users {
        // Another root, to try it.
        let named = named_folder("TAKEUP_UNITS_DIR");
        return named.or_else(|| Some(PathBuf::from("/etc/systemd/system")));
    }
    named_folder("TAKEUP_UNITS_DIR").or_else(|| {
        named_folder("XDG_CONFIG_HOME")
            .or_else(|| named_folder("HOME").map(|path| path.join(".config")))
            .map(|folder| folder.join("systemd/user"))
    })
}
