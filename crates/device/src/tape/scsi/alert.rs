//! TapeAlert: 64 flags by which a drive reports problems of itself or the medium.
//!
//! Reading the flags clears them in the drive, so the caller has to report them. Numbers,
//! severities and meanings: SSC-4, annex A.

pub use base::finding::Severity;

use super::super::raw::QuestionError;
use super::log::{ALERT_PAGE, parameters};

/// A flag that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// 1 to 64.
    pub flag: u8,
    pub severity: Severity,
    pub meaning: &'static str,
}

/// The flags that are set in an answer of LOG SENSE.
///
/// # Errors
/// When the answer is too short or another page.
pub fn parse(bytes: &[u8]) -> Result<Vec<Alert>, QuestionError> {
    let set = parameters(bytes, ALERT_PAGE)?
        .filter(|parameter| parameter.value.last().is_some_and(|value| value & 1 != 0));
    Ok(set.filter_map(|parameter| alert(u8::try_from(parameter.code).ok()?)).collect())
}

/// The flag of this number; `None` above 64 and for 0.
pub fn alert(flag: u8) -> Option<Alert> {
    let known = ALERTS.iter().find(|row| row.0 == flag);
    let (severity, meaning) = match known {
        Some(row) => (row.1, row.2),
        None => (Severity::Warning, "an alert that the standard does not define"),
    };
    (1..=64).contains(&flag).then_some(Alert { flag, severity, meaning })
}

use Severity::{Critical, Information, Warning};

/// Flag, severity, meaning.
const ALERTS: &[(u8, Severity, &str)] = &[
    (1, Warning, "the drive has trouble reading; nothing is lost yet"),
    (2, Warning, "the drive has trouble writing; capacity suffers"),
    (3, Warning, "an error while reading or writing that could not be corrected"),
    (4, Critical, "the medium can no longer be written or read well: copy it, and replace it"),
    (5, Critical, "the drive can no longer read: the medium is damaged or the drive faulty"),
    (6, Critical, "the drive can no longer write: the medium is damaged or the drive faulty"),
    (7, Warning, "the medium is at the end of its life"),
    (8, Warning, "the medium is not of data grade"),
    (9, Critical, "a write to a medium that is write-protected"),
    (10, Information, "the medium cannot be ejected while it is in use"),
    (11, Information, "the cartridge is a cleaning cartridge"),
    (12, Information, "the format of the medium is not supported"),
    (13, Critical, "the tape has snapped; the cartridge can be removed"),
    (14, Critical, "the tape has snapped; the cartridge must not be removed"),
    (15, Warning, "the memory chip in the cartridge has failed: positioning will be slow"),
    (16, Critical, "the cartridge was ejected by hand while in use"),
    (17, Warning, "the medium has a format that can be read only"),
    (18, Warning, "the medium's directory was lost: positioning will be slow"),
    (19, Information, "the medium is near the end of its life"),
    (20, Critical, "the drive must be cleaned now"),
    (21, Warning, "the drive is due for cleaning"),
    (22, Critical, "the cleaning cartridge is used up"),
    (23, Critical, "the cleaning cartridge is of the wrong type"),
    (24, Warning, "the tape should be wound once to its end and back"),
    (25, Warning, "one of the drive's interfaces has failed"),
    (26, Warning, "a fan of the drive has failed"),
    (27, Warning, "a power supply has failed"),
    (28, Warning, "the drive draws too much power"),
    (29, Warning, "the drive is due for maintenance"),
    (30, Critical, "a hardware fault of the drive: reset it"),
    (31, Critical, "a hardware fault of the drive: switch it off and on"),
    (32, Warning, "trouble with the interface between drive and host: check the cables"),
    (33, Critical, "the operation has failed: eject the medium and try again"),
    (34, Warning, "the download of firmware has failed"),
    (35, Warning, "the drive is too humid or too dry"),
    (36, Warning, "the drive is too hot or too cold"),
    (37, Warning, "the voltage of the drive is out of range"),
    (38, Critical, "the drive predicts that it will fail"),
    (39, Warning, "the drive asks for a diagnosis"),
    (50, Warning, "the drive has lost its statistics"),
    (51, Warning, "the medium's directory could not be written when it was unloaded"),
    (52, Critical, "the medium's system area could not be written: copy it, and replace it"),
    (53, Critical, "the medium's system area could not be read: copy it, and replace it"),
    (54, Critical, "no start of data on the medium: is it of the right type?"),
    (55, Critical, "the tape could not be loaded or threaded"),
    (56, Critical, "the tape could not be unloaded"),
    (57, Critical, "trouble between the drive and its library"),
    (58, Warning, "the firmware of the drive has failed"),
    (59, Warning, "the write-once medium was tampered with"),
    (60, Warning, "an attempt to overwrite a write-once medium"),
];
