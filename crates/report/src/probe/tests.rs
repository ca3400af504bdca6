//! Findings about several drives. Answers of the drives come from the corpus of `device`.

use std::collections::BTreeSet;

use device::tape::limits::{DriveLimits, Found};
use device::tape::raw::{GMT_BOT, GMT_DR_OPEN, GMT_ONLINE, GMT_WR_PROT, RawStatus};
use device::tape::scsi::inquiry::Inquiry;
use device::tape::scsi::log::{SequentialAccess, VolumeStatistics};
use device::tape::scsi::mode::{Compression, ModeHeader};
use device::tape::scsi::position::Position;
use device::tape::scsi::{BlockLimits, alert};
use device::tape::survey::{Answers, KernelView, Readiness, Survey, options};
use device::tape::{Holder, TapeStatus};

use service::probe::findings::findings;
use service::probe::rules::DRIVE;
use service::probe::{Probed, ProbedDrive};

use super::text;
use crate::table::Style;

/// The bytes of an answer.
macro_rules! corpus {
    ($name:literal) => {
        bytes(include_str!(concat!("../../../device/tests/corpus/", $name, ".hex")))
    };
}

fn bytes(text: &str) -> Vec<u8> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits = lines.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn status(density: i64, block_bytes: i64, bits: i64) -> TapeStatus {
    TapeStatus::from(RawStatus {
        density_and_block_size: density << 24 | block_bytes,
        general_status: bits,
        file_number: 0,
        block_number: 0,
        ..RawStatus::default()
    })
}

fn limits(transfer: Option<u64>) -> DriveLimits {
    let drive = BlockLimits::parse(&corpus!("lto-block-limits")).unwrap();
    DriveLimits::new(drive, Found::Asked, transfer, Some(256), 4096)
}

/// A healthy half-height LTO-8 drive with a medium of its generation.
fn healthy() -> Survey {
    let names = Inquiry::parse(&corpus!("lto-inquiry")).unwrap();
    let mut status = status(0x5e, 0, GMT_ONLINE);
    (status.file_number, status.block_in_file) = (Some(42), Some(0));
    let mode = corpus!("lto-mode-compression");
    Survey {
        device: "/dev/nst0".to_owned(),
        node: "/dev/nst0".to_owned(),
        readiness: Readiness::Ready,
        kernel: KernelView {
            names: Some(names.clone()),
            address: Some("2:0:1:0".to_owned()),
            host_driver: Some("mpt3sas".to_owned()),
            generic_device: Some("/dev/sg3".to_owned()),
            options: Some(0x107),
            direct_io: Some(true),
            statistics: None,
        },
        answers: Some(Answers {
            status,
            names: Some(names),
            serial_number: Some("10WT042424".to_owned()),
            mode: ModeHeader::parse(&mode).ok(),
            compression: Compression::parse(&mode).ok(),
            alerts: Some(Vec::new()),
            sequential: SequentialAccess::parse(&corpus!("lto-log-sequential")).ok(),
            volume: None,
            position: Position::parse(&corpus!("lto-position-long")).ok(),
            object: None,
            limits: limits(Some(16 << 20)),
            unanswered: Vec::new(),
        }),
    }
}

/// The same drive with every problem at once.
fn troubled() -> Survey {
    let mut survey = healthy();
    "/dev/st0".clone_into(&mut survey.device);
    survey.kernel.direct_io = Some(false);
    survey.kernel.options = Some(
        options::NO_WAIT_FILEMARKS
            | options::NO_WAIT
            | options::TWO_FILEMARKS
            | options::FAST_END_OF_DATA,
    );
    let answers = survey.answers.as_mut().unwrap();
    answers.status = status(0x5c, 512, GMT_ONLINE | GMT_WR_PROT | GMT_BOT);
    answers.mode.as_mut().unwrap().buffered_mode = 0;
    answers.compression = Some(Compression::Off);
    answers.alerts = alert::parse(&corpus!("lto-log-alerts")).ok();
    answers.sequential.as_mut().unwrap().cleaning = Some(true);
    answers.volume = VolumeStatistics::parse(&corpus!("lto-log-volume")).ok();
    answers.limits = limits(Some(512 << 10));
    answers.unanswered = vec![("serial number", "cannot send a command".to_owned())];
    survey
}

fn probed(survey: &Survey) -> ProbedDrive {
    let findings = findings(survey, None);
    ProbedDrive { survey: survey.clone(), played: None, findings }
}

fn document(survey: &Survey) -> serde_json::Value {
    service::document(&Probed::Drive(Box::new(probed(survey))).answer())
}

/// The table of a drive that answers nothing is all that is known: no verdict rests on it.
#[test]
fn nothing_stands_out_only_of_a_drive_that_answered() {
    let shown = |survey: Survey| {
        text(&ProbedDrive { survey, played: None, findings: Vec::new() }, Style::PLAIN)
    };
    let well = shown(healthy());
    assert!(well.contains("\n\nnothing stands out\n\nnext: takeup diagnose SOURCE "), "{well}");
    let silent = shown(Survey { answers: None, ..healthy() });
    assert!(silent.contains("mpt3sas") && !silent.contains("stands out"), "{silent}");
}

#[test]
fn a_healthy_drive() {
    let survey = healthy();
    insta::assert_snapshot!("healthy", text(&probed(&survey), Style::PLAIN));
    let document = document(&survey);
    insta::assert_snapshot!("healthy_document", format!("{document:#}"));
}

#[test]
fn everything_that_can_be_wrong() {
    let survey = troubled();
    insta::assert_snapshot!("troubled", text(&probed(&survey), Style::PLAIN));
}

#[test]
fn a_drive_that_somebody_uses() {
    let holder = Holder { process: 4242, name: "tar".to_owned() };
    let survey = Survey { readiness: Readiness::Busy(Some(holder)), answers: None, ..healthy() };
    insta::assert_snapshot!("busy", text(&probed(&survey), Style::PLAIN));
    let document = document(&survey);
    assert_eq!(document["holder"]["process"], 4242);
    assert!(document["blocks"].is_null() && document["recommended_block_bytes"].is_null());
}

/// No medium, and no permission to query the drive.
fn empty() -> Survey {
    let mut survey = healthy();
    survey.readiness = Readiness::Empty;
    survey.kernel.generic_device = None;
    let unknown = BlockLimits { granularity: 0, bytes_max: 0, bytes_min: 1 };
    let answers = survey.answers.as_mut().unwrap();
    answers.status = status(0, 0, GMT_DR_OPEN);
    answers.limits = DriveLimits::new(unknown, Found::Unknown, None, None, 4096);
    (answers.names, answers.serial_number, answers.mode) = (None, None, None);
    (answers.compression, answers.alerts, answers.sequential) = (None, None, None);
    answers.position = None;
    survey
}

#[test]
fn an_empty_drive_that_cannot_be_asked() {
    let survey = empty();
    insta::assert_snapshot!("empty", text(&probed(&survey), Style::PLAIN));
    assert!(document(&survey)["medium"].is_null());
}

#[test]
fn every_rule_speaks_and_no_other() {
    let holder = Holder { process: 4242, name: "tar".to_owned() };
    let busy = Survey { readiness: Readiness::Busy(Some(holder)), answers: None, ..healthy() };
    let mut loading = healthy();
    loading.readiness = Readiness::NotReady;
    let answers = loading.answers.as_mut().unwrap();
    answers.limits = DriveLimits::new(answers.limits.drive, Found::Tried, None, None, 4096);
    answers.volume = Some(VolumeStatistics { write_once: Some(true), ..Default::default() });
    let surveys = [healthy(), troubled(), busy, empty(), loading];
    let spoke: BTreeSet<&str> = surveys
        .iter()
        .flat_map(|survey| findings(survey, None))
        .map(|finding| finding.rule.within(&DRIVE).unwrap().id)
        .collect();
    let listed: BTreeSet<&str> = DRIVE.rules.iter().map(|rule| rule.id).collect();
    assert_eq!(spoke, listed);
}

#[test]
fn what_to_type_stands_by_itself() {
    let commands: Vec<String> =
        findings(&troubled(), None).into_iter().filter_map(|finding| finding.command).collect();
    let expected = [
        "mt -f /dev/nst0 stclearoptions 0x8000",
        "mt -f /dev/nst0 stclearoptions no-wait",
        "echo options st try_direct_io=1 > /etc/modprobe.d/takeup-st.conf",
        "mt -f /dev/nst0 drvbuffer 1",
        "mt -f /dev/nst0 setblk 0",
    ];
    assert_eq!(commands, expected);
}

#[test]
fn names_of_a_drive_cannot_steer_a_terminal() {
    let mut survey = healthy();
    let answers = survey.answers.as_mut().unwrap();
    answers.serial_number = Some("\u{1b}[2J".to_owned());
    assert!(!text(&probed(&survey), Style::PLAIN).contains('\u{1b}'));
}
