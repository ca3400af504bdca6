//! Changes of volume: a question on the terminal, or a command that operates an autoloader.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archive::label::hex;
use base::escape::{escape, escape_controls};
use flow::cancel::Cancel;
use loads::tape::{MediumChanger, TapeBenchError};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use service::change::{CommandChanger, SharedChanger};
use service::failure::with_causes;
use tapeset::{ChangeError, VolumeChanger, VolumePurpose, VolumeRequest};

use crate::standard_error::Question;

pub use arguments::run::ChangeArgs;

/// Longest answer on the terminal.
const ANSWER_BYTES_MAX: usize = 1024;
/// How often a wait looks for a cancel.
const STEP: Duration = Duration::from_millis(50);

/// Gets volumes changed, by a command or a person.
pub struct Changer {
    command: Option<CommandChanger>,
    cancel: Cancel,
}

impl Changer {
    /// Uses the command if there is one, else the terminal.
    pub fn new(arguments: &ChangeArgs, cancel: &Cancel) -> Changer {
        let command = arguments.change_command.as_deref();
        let command = command.map(|command| CommandChanger::new(command, cancel));
        Changer { command, cancel: cancel.clone() }
    }

    /// Asks on the terminal.
    pub fn asking(cancel: &Cancel) -> SharedChanger {
        Arc::new(Mutex::new(Changer { command: None, cancel: cancel.clone() }))
    }
}

impl VolumeChanger for Changer {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        match &mut self.command {
            Some(command) => command.change(request),
            None => self.ask(request),
        }
    }

    fn is_nobody(&self) -> bool {
        self.command.is_none() && terminal().is_err()
    }
}

/// The terminal of whoever started this.
fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// For experiments, whose media have names given by the user.
impl MediumChanger for Changer {
    fn bring(
        &mut self,
        device: &str,
        medium: &str,
        why: Option<&TapeBenchError>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(command) = &mut self.command {
            return command.bring(device, medium, why);
        }
        let why = why.map(|why| with_causes(why));
        let why = why.map(|why| format!("takeup: {}\n", escape(why.as_bytes())));
        let [device, medium] = [device, medium].map(|text| escape(text.as_bytes()));
        let question = format!(
            "\r\x1b[K{}takeup: put medium {medium} into {device}; then press Enter (q gives up): ",
            why.unwrap_or_default()
        );
        match self.prompt(&question)?.trim() {
            answer @ ("q" | "quit") => {
                Err(ChangeError::Declined { text: answer.to_owned() }.into())
            }
            _ => Ok(()),
        }
    }
}

impl Changer {
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
        let Ok(mut terminal) = terminal() else { return Err(ChangeError::NobodyToAsk) };
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
            let a = if *volume == 1 { "a" } else { "another" };
            let wanted = format!("{a} medium into {device}, for volume {volume} of set {set}");
            (wanted, "q gives up")
        }
        VolumePurpose::Read { set, volume, medium, name } => {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            let medium = medium.as_ref().map(|it| format!(" (medium{name} {})", short(it)));
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
            purpose: VolumePurpose::Read {
                set: [0xab; 16],
                volume: 2,
                medium: Some([1; 16]),
                name: archive::label::MediumName::new("000123L6"),
            },
            refused: Some(tapeset::Refused::OtherVolume { found: 1, wanted: 2 }),
            attempt: 3,
        }
    }

    #[test]
    fn the_question_says_why_and_what() {
        let expected = "\r\x1b[Ktakeup: the medium holds volume 1 of this set, not 2\n\
                        takeup: put volume 2 of set abababab (medium 000123L6 01010101) into \
                        /dev/nst0; then press Enter (w goes on without it, q gives up): ";
        assert_eq!(question(&request()), expected);
        let text = "sense \u{1b}[2J\nput your key in".to_owned();
        let said =
            VolumeRequest { refused: Some(tapeset::Refused::Unreadable { text }), ..request() };
        let shown = question(&said);
        assert!(shown.contains("takeup: sense \\033[2J\\nput your key in\n"), "{shown:?}");
    }
}
