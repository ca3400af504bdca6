//! The end of a run with a tape drive: what the drive says of itself and the medium, and the medium
//! that comes out.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base::escape::escape_path;
use base::failures::with_causes;
use base::finding::{Certainty, Finding, Unit};
use device::tape::scsi::alert::Alert;
use device::tape::{Access, Tape, TapeDrive as _};
use flow::monitor::{Harm, Level, Monitor, Notice};

use crate::failure::Failure;
use crate::probe::rules;

/// Refuses an option that a target without media has no use for, and whose effect the user counts
/// on.
///
/// # Errors
/// When `path` is no tape drive.
pub(crate) fn check_drive(option: &str, path: &Path) -> Result<(), Failure> {
    if device::tape::find(path).is_some() {
        return Ok(());
    }
    let message = format!("{option}: {} is no tape drive", escape_path(path));
    Err(Failure::of(message, Some("leave it out, or name a drive: /dev/nst0 is the first")))
}

/// What is done with a drive that a run has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    KeepMedium,
    Eject,
}

impl From<bool> for Then {
    /// Of the setting.
    fn from(eject: bool) -> Then {
        if eject { Then::Eject } else { Then::KeepMedium }
    }
}

/// Tells what the drive reports, and ejects its medium where that is wanted. Nothing if `path` is
/// no drive. Neither decides on the data, which are where they belong by now: so a drive that asks
/// for cleaning leaves the exit code as it is, and a medium that stays in is a warning.
pub(crate) fn end(path: &Path, then: Then, monitor: &dyn Monitor) -> Vec<Finding> {
    let (findings, still_loaded) = look(path, then);
    let tell = |level, text| {
        let object = path.as_os_str().as_bytes().to_vec();
        monitor.notice(Notice { level, object, text });
    };
    for finding in &findings {
        tell(Level::Notable, line(finding));
    }
    if let Err(text) = still_loaded {
        tell(Level::Warning(Harm::Beside), text);
    }
    findings
}

/// The same for a caller without a monitor: what is to be told, and why the medium is still in the
/// drive, though it was to be ejected.
pub(crate) fn look(path: &Path, then: Then) -> (Vec<Finding>, Result<(), String>) {
    let Some(drive) = device::tape::find(path) else { return (Vec::new(), Ok(())) };
    // A drive that does not become ready has cost its wait already, and may say why.
    let mut opened = drive.open(Access::Look);
    let findings = opened.as_mut().map(reported).unwrap_or_default();
    let ejected = match (opened, then) {
        (_, Then::KeepMedium) => Ok(()),
        (Ok(mut tape), Then::Eject) => tape.eject().map_err(|error| with_causes(&error)),
        (Err(error), Then::Eject) => Err(with_causes(&error)),
    };
    (findings, ejected.map_err(|why| format!("the medium is still in the drive: {why}")))
}

/// What the drive reports: its alerts, which it forgets once they are read, and that it is to be
/// cleaned. A drive that answers neither question reports nothing.
fn reported(tape: &mut Tape) -> Vec<Finding> {
    let alerts = tape.alerts().unwrap_or_default();
    let mut findings: Vec<Finding> = alerts.iter().map(alert).collect();
    let asks = tape.sequential_access().is_ok_and(|page| page.cleaning == Some(true));
    let is_said = |alert: &Alert| CLEANING_ALERTS.contains(&alert.flag);
    if asks && !alerts.iter().any(is_said) {
        findings.push(cleaning());
    }
    findings
}

/// Flags that say the same as the request for cleaning (SSC-4, annex A).
const CLEANING_ALERTS: [u8; 2] = [20, 21];

/// A TapeAlert as a finding.
pub(crate) fn alert(alert: &Alert) -> Finding {
    let what = format!("TapeAlert {}", alert.flag);
    Finding::new(&rules::TAPE_ALERT, Certainty::Told, what)
        .because(alert.meaning)
        .severe(alert.severity)
        .with_number("flag", alert.flag.into(), Unit::Count)
}

/// The request for cleaning as a finding.
pub(crate) fn cleaning() -> Finding {
    Finding::new(&rules::CLEANING, Certainty::Told, "the drive requests cleaning")
        .because("errors become more likely")
        .severe(base::finding::Severity::Warning)
        .with_action("load a cleaning cartridge")
}

/// `the drive reports: the drive must be cleaned now (TapeAlert 20)`.
pub(crate) fn line(finding: &Finding) -> String {
    match &finding.why {
        Some(why) if finding.rule == rules::TAPE_ALERT.id => {
            format!("the drive reports: {why} ({})", finding.what)
        }
        _ => finding.line(),
    }
}
