//! Changes of volume by a command that operates an autoloader.
//!
//! The command gets the request in its environment and decides where the next volume comes from.
//! The run checks whether the right volume was loaded, and asks again if not.

use std::error::Error;
use std::sync::{Arc, Mutex};

use archive::label::{MediumName, hex};
use base::escape::escape_controls;
use flow::cancel::Cancel;
use loads::tape::{MediumChanger, TapeBenchError};
use tapeset::{ChangeError, VolumeChanger, VolumePurpose, VolumeRequest};

use crate::shell::{self, Shell, ShellError};

/// What changes volumes, as the threads of a run share it.
pub type SharedChanger = Arc<Mutex<dyn VolumeChanger>>;

/// The changer of a run: the command, if there is one, else the changer of the caller.
pub(crate) fn chosen(
    command: Option<&str>,
    changer: SharedChanger,
    cancel: &Cancel,
) -> SharedChanger {
    match command {
        Some(command) => Arc::new(Mutex::new(CommandChanger::new(command, cancel))),
        None => changer,
    }
}

/// Has no other volume, for programs that use one only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChanger;

impl NoChanger {
    /// As a run takes it.
    pub fn shared() -> SharedChanger {
        Arc::new(Mutex::new(NoChanger))
    }
}

impl VolumeChanger for NoChanger {
    fn change(&mut self, _: &VolumeRequest) -> Result<(), ChangeError> {
        Err(ChangeError::NobodyToAsk)
    }

    fn is_nobody(&self) -> bool {
        true
    }
}

/// Gets volumes changed by a shell command.
pub struct CommandChanger {
    command: String,
    cancel: Cancel,
}

impl VolumeChanger for CommandChanger {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        self.load(request)
    }
}

/// For experiments, whose media have names given by the user. The command gets the name in
/// TAKEUP_MEDIUM, and `bench` in TAKEUP_ACTION.
impl MediumChanger for CommandChanger {
    fn bring(
        &mut self,
        device: &str,
        medium: &str,
        _: Option<&TapeBenchError>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let variables =
            [("TAKEUP_ACTION", "bench"), ("TAKEUP_DEVICE", device), ("TAKEUP_MEDIUM", medium)];
        Ok(self.run(&variables)?)
    }
}

impl CommandChanger {
    /// Runs this command for each change, until the run is cancelled.
    pub fn new(command: &str, cancel: &Cancel) -> CommandChanger {
        CommandChanger { command: command.to_owned(), cancel: cancel.clone() }
    }

    fn load(&self, request: &VolumeRequest) -> Result<(), ChangeError> {
        let (action, set, volume, medium) = match &request.purpose {
            VolumePurpose::Write { set, volume } => ("write", set, volume, (None, None)),
            VolumePurpose::Read { set, volume, medium, name } => {
                ("read", set, volume, (medium.as_ref(), name.as_ref()))
            }
        };
        let (medium, name) = medium;
        // The text can contain what a drive sent.
        let reason = request.refused.as_ref().map(|why| escape_controls(&why.to_string()));
        self.run(&[
            ("TAKEUP_ACTION", action),
            ("TAKEUP_DEVICE", &request.device),
            ("TAKEUP_SET", &hex(set)),
            ("TAKEUP_VOLUME", &volume.to_string()),
            ("TAKEUP_MEDIUM", &medium.map(hex).unwrap_or_default()),
            ("TAKEUP_MEDIUM_NAME", name.map(MediumName::as_str).unwrap_or_default()),
            ("TAKEUP_ATTEMPT", &request.attempt.to_string()),
            ("TAKEUP_REASON", &reason.unwrap_or_default()),
        ])
    }

    /// Runs the command with these variables.
    fn run(&self, variables: &[(&str, &str)]) -> Result<(), ChangeError> {
        let command = Shell { command: &self.command, variables, input: None, limit: None };
        let status = shell::run(&command, &self.cancel).map_err(|error| match error {
            ShellError::Failed(error) => ChangeError::Failed(error),
            ShellError::Stopped(stopped) => stopped.into(),
            ShellError::TooLong => ChangeError::Declined { text: "it took too long".to_owned() },
        })?;
        if status.success() {
            Ok(())
        } else {
            Err(ChangeError::Declined { text: format!("the command ended with {status}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> VolumeRequest {
        VolumeRequest {
            device: "/dev/nst0".into(),
            purpose: VolumePurpose::Read {
                set: [0xab; 16],
                volume: 2,
                medium: Some([1; 16]),
                name: MediumName::new("000123L6"),
            },
            refused: Some(tapeset::Refused::OtherVolume { found: 1, wanted: 2 }),
            attempt: 3,
        }
    }

    #[test]
    fn a_command_is_told_the_name_of_a_medium() {
        let out = tempfile::NamedTempFile::new().unwrap();
        let path = out.path().display();
        let mut changer = changer(&format!("env | sort > {path}"));
        changer.bring("/dev/nst0", "LTO-4", None).unwrap();
        let told = told(out.path());
        let expected = "TAKEUP_ACTION=bench\nTAKEUP_DEVICE=/dev/nst0\nTAKEUP_MEDIUM=LTO-4\n";
        assert_eq!(told, expected);
    }

    /// The variables that the command got and that this process does not have.
    fn told(environment: &std::path::Path) -> String {
        let text = std::fs::read_to_string(environment).unwrap();
        let is_new = |line: &&str| {
            let name = line.split('=').next().unwrap_or(line);
            name.starts_with("TAKEUP_") && std::env::var_os(name).is_none()
        };
        text.lines().filter(is_new).map(|line| format!("{line}\n")).collect()
    }

    fn changer(command: &str) -> CommandChanger {
        CommandChanger::new(command, &Cancel::new())
    }

    #[test]
    fn a_command_is_told_what_is_wanted() {
        let out = tempfile::NamedTempFile::new().unwrap();
        let path = out.path().display();
        changer(&format!("env | sort > {path}")).change(&request()).unwrap();
        let told = told(out.path());
        let expected = format!(
            "TAKEUP_ACTION=read\nTAKEUP_ATTEMPT=3\nTAKEUP_DEVICE=/dev/nst0\nTAKEUP_MEDIUM={}\n\
             TAKEUP_MEDIUM_NAME=000123L6\n\
             TAKEUP_REASON=the medium holds volume 1 of this set, not 2\n\
             TAKEUP_SET={}\nTAKEUP_VOLUME=2\n",
            "01".repeat(16),
            "ab".repeat(16)
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn a_command_that_fails_declines() {
        let declined = changer("exit 3").change(&request());
        assert!(matches!(declined, Err(ChangeError::Declined { text }) if text.contains('3')));
    }

    #[test]
    fn a_command_that_takes_long_ends_with_the_run() {
        let cancel = Cancel::new();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("process");
        // The shell waits for its own child, which must end too.
        let command = format!("sleep 600 & echo $! >{}; wait", place.display());
        let mut changer = CommandChanger::new(&command, &cancel);
        let stop = std::thread::spawn(move || {
            while !std::fs::read_to_string(&place).is_ok_and(|text| text.ends_with('\n')) {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            cancel.cancel();
            std::fs::read_to_string(&place).unwrap().trim().to_owned()
        });
        assert!(matches!(changer.change(&request()), Err(ChangeError::Stopped(_))));
        let started = stop.join().unwrap();
        let runs = || {
            let state = std::fs::read_to_string(format!("/proc/{started}/stat"));
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        // The process has its signal, but takes a moment to end.
        for _ in 0..100 {
            if !runs() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("process {started} is left behind");
    }
}
