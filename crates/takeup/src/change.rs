//! Changes of volume: a question on the terminal, or a command that operates an autoloader.
//!
//! The command gets the request in its environment and decides where the next volume comes from.
//! The run checks whether the right volume was loaded, and asks again if not.

use rustix::fd::AsFd;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use archive::label::hex;
use base::escape::{escape, escape_controls};
use clap::Args;
use flow::cancel::Cancel;
use loads::tape::{MediumChanger, TapeBenchError};
use rustix::event::{PollFd, PollFlags, Timespec};
use tapeset::{ChangeError, VolumeChanger, VolumePurpose, VolumeRequest};

use crate::question::Question;
use service::failure::with_causes;

/// How volumes of a tape are changed.
#[derive(Args, Clone, Debug, Default)]
pub struct ChangeArgs {
    /// Shell command that loads another volume into the drive, instead of a question on the
    /// terminal
    ///
    /// The command gets the request in its environment: TAKEUP_ACTION (write or read),
    /// TAKEUP_DEVICE, TAKEUP_SET, TAKEUP_VOLUME, TAKEUP_MEDIUM (empty when unknown) and
    /// TAKEUP_ATTEMPT (from 1). An exit code other than 0 means that there is no other volume.
    #[arg(long, value_name = "COMMAND", help_heading = "Tape")]
    pub change_command: Option<String>,
}

/// How long a command may take to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Ends a command and everything that it started. SIGTERM comes first, since the arm of a library
/// may be moving.
fn end(child: &mut Child) {
    let Ok(group) = i32::try_from(child.id()) else { return };
    let Some(group) = rustix::process::Pid::from_raw(group) else { return };
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    let asked = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < GRACE {
        std::thread::sleep(STEP);
    }
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
}

/// Longest answer on the terminal.
const ANSWER_BYTES_MAX: usize = 1024;
/// How often a wait looks for a cancel.
const STEP: Duration = Duration::from_millis(50);

/// Gets volumes changed, by a command or a person.
pub struct Changer {
    command: Option<String>,
    cancel: Cancel,
}

impl Changer {
    /// Uses the command if there is one, else the terminal.
    pub fn new(arguments: &ChangeArgs, cancel: &Cancel) -> Changer {
        Changer { command: arguments.change_command.clone(), cancel: cancel.clone() }
    }
}

impl VolumeChanger for Changer {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        match &self.command {
            Some(command) => self.run(command, request),
            None => self.ask(request),
        }
    }
}

/// For experiments, whose media have names given by the user. A command gets the name in
/// TAKEUP_MEDIUM, and `bench` in TAKEUP_ACTION.
impl MediumChanger for Changer {
    fn bring(
        &mut self,
        device: &str,
        medium: &str,
        why: Option<&TapeBenchError>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let changed = match &self.command {
            Some(command) => {
                let variables = [
                    ("TAKEUP_ACTION", "bench"),
                    ("TAKEUP_DEVICE", device),
                    ("TAKEUP_MEDIUM", medium),
                ];
                self.run_told(command, &variables)
            }
            None => {
                let why = why.map(|why| with_causes(why));
                let why = why.map(|why| format!("takeup: {}\n", escape(why.as_bytes())));
                let [device, medium] = [device, medium].map(|text| escape(text.as_bytes()));
                let question = format!(
                    "\r\x1b[K{}takeup: put medium {medium} into {device}; then press Enter (q \
                     gives up): ",
                    why.unwrap_or_default()
                );
                self.prompt(&question).and_then(|answer| match answer.trim() {
                    "q" | "quit" => Err(ChangeError::Declined { text: answer.trim().to_owned() }),
                    _ => Ok(()),
                })
            }
        };
        Ok(changed?)
    }
}

impl Changer {
    fn run(&self, command: &str, request: &VolumeRequest) -> Result<(), ChangeError> {
        let (action, set, volume, medium) = match &request.purpose {
            VolumePurpose::Write { set, volume } => ("write", set, volume, None),
            VolumePurpose::Read { set, volume, medium } => ("read", set, volume, medium.as_ref()),
        };
        self.run_told(
            command,
            &[
                ("TAKEUP_ACTION", action),
                ("TAKEUP_DEVICE", &request.device),
                ("TAKEUP_SET", &hex(set)),
                ("TAKEUP_VOLUME", &volume.to_string()),
                ("TAKEUP_MEDIUM", &medium.map(hex).unwrap_or_default()),
                ("TAKEUP_ATTEMPT", &request.attempt.to_string()),
            ],
        )
    }

    /// Runs a command with these variables.
    fn run_told(&self, command: &str, variables: &[(&str, &str)]) -> Result<(), ChangeError> {
        let child = Command::new("/bin/sh")
            .args(["-c", &format!("{}{command}", machine::open_files::shell_line())])
            .stdin(Stdio::null())
            // The processes that the shell starts must end with it.
            .process_group(0)
            // Standard output may carry Takeup's own document.
            .stdout(io::stderr().as_fd().try_clone_to_owned().map_err(ChangeError::Failed)?)
            .envs(variables.iter().copied())
            .spawn()
            .map_err(ChangeError::Failed)?;
        let status = self.wait(child)?;
        if status.success() {
            Ok(())
        } else {
            Err(ChangeError::Declined { text: format!("the command ended with {status}") })
        }
    }

    /// Waits for the command, which takes minutes with an autoloader, or until the run is stopped.
    fn wait(&self, mut child: Child) -> Result<ExitStatus, ChangeError> {
        loop {
            if let Some(status) = child.try_wait().map_err(ChangeError::Failed)? {
                return Ok(status);
            }
            if let Err(stopped) = self.cancel.check() {
                end(&mut child);
                return Err(stopped.into());
            }
            std::thread::sleep(STEP);
        }
    }

    fn ask(&self, request: &VolumeRequest) -> Result<(), ChangeError> {
        let answer = self.prompt(&question(request))?;
        let reading = matches!(request.purpose, VolumePurpose::Read { .. });
        match answer.trim() {
            "w" | "without" if reading => Err(ChangeError::WithoutIt),
            "q" | "quit" => Err(ChangeError::Declined { text: answer.trim().to_owned() }),
            _ => Ok(()),
        }
    }

    /// Asks a person; one line from the terminal.
    fn prompt(&self, question: &str) -> Result<String, ChangeError> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let Ok(mut terminal) = terminal else { return Err(ChangeError::NobodyToAsk) };
        let _question = Question::begin();
        terminal.write_all(question.as_bytes()).map_err(ChangeError::Failed)?;
        self.answer(&mut terminal)
    }

    fn answer(&self, terminal: &mut File) -> Result<String, ChangeError> {
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as i64 };
        let mut answer = Vec::new();
        let mut byte = [0];
        loop {
            self.cancel.check()?;
            let mut poll = [PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::IN)];
            match rustix::event::poll(&mut poll, Some(&step)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(ChangeError::Failed(error.into())),
            }
            match terminal.read(&mut byte) {
                Ok(0) => {
                    return Err(ChangeError::Declined { text: "the terminal is closed".into() });
                }
                Ok(_) if byte[0] == b'\n' => break,
                Ok(_) if answer.len() < ANSWER_BYTES_MAX => answer.push(byte[0]),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ChangeError::Failed(error)),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The question on the terminal: why, what, where.
fn question(request: &VolumeRequest) -> String {
    let why = match &request.refused {
        // The text can contain what a drive sent.
        Some(refused) => format!("takeup: {}\n", escape_controls(&refused.to_string())),
        None => String::new(),
    };
    let device = escape(request.device.as_bytes());
    let short = |set: &[u8; 16]| hex(set)[..8].to_owned();
    let (wanted, answers) = match &request.purpose {
        VolumePurpose::Write { set, volume } => {
            let set = short(set);
            let wanted = format!("another medium into {device}, for volume {volume} of set {set}");
            (wanted, "q gives up")
        }
        VolumePurpose::Read { set, volume, medium } => {
            let medium = medium.as_ref().map(|medium| format!(" (medium {})", short(medium)));
            let medium = medium.unwrap_or_default();
            let wanted = format!("volume {volume} of set {}{medium} into {device}", short(set));
            (wanted, "w goes on without it, q gives up")
        }
    };
    format!("\r\x1b[K{why}takeup: put {wanted}; then press Enter ({answers}): ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> VolumeRequest {
        VolumeRequest {
            device: "/dev/nst0".into(),
            purpose: VolumePurpose::Read { set: [0xab; 16], volume: 2, medium: Some([1; 16]) },
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

    fn changer(command: &str) -> Changer {
        let arguments = ChangeArgs { change_command: Some(command.to_owned()) };
        Changer::new(&arguments, &Cancel::new())
    }

    #[test]
    fn a_command_is_told_what_is_wanted() {
        let out = tempfile::NamedTempFile::new().unwrap();
        let path = out.path().display();
        changer(&format!("env | sort > {path}")).change(&request()).unwrap();
        let told = told(out.path());
        let expected = format!(
            "TAKEUP_ACTION=read\nTAKEUP_ATTEMPT=3\nTAKEUP_DEVICE=/dev/nst0\nTAKEUP_MEDIUM={}\n\
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
        let mut changer = Changer { command: Some(command), cancel: cancel.clone() };
        let stop = std::thread::spawn(move || {
            while !std::fs::read_to_string(&place).is_ok_and(|text| text.ends_with('\n')) {
                std::thread::sleep(STEP);
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
            std::thread::sleep(STEP);
        }
        panic!("process {started} is left behind");
    }

    #[test]
    fn the_question_says_why_and_what() {
        let expected = "\r\x1b[Ktakeup: the medium holds volume 1 of this set, not 2\n\
                        takeup: put volume 2 of set abababab (medium 01010101) into /dev/nst0; \
                        then press Enter (w goes on without it, q gives up): ";
        assert_eq!(question(&request()), expected);
        let text = "sense \u{1b}[2J\nput your key in".to_owned();
        let said =
            VolumeRequest { refused: Some(tapeset::Refused::Unreadable { text }), ..request() };
        let shown = question(&said);
        assert!(shown.contains("takeup: sense \\033[2J\\nput your key in\n"), "{shown:?}");
    }
}
