//! Answers of drives: those in `corpus/`, and bytes at random.
//!
//! The corpus has what tgt answered in the lab, and what an LTO drive answers according to the
//! standards, written by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use device::tape::Compression;
use device::tape::QuestionError;
use device::tape::scsi::BlockLimits;
use device::tape::scsi::alert::{self, Severity};
use device::tape::scsi::inquiry::{self, Inquiry};
use device::tape::scsi::log::{self, SequentialAccess, VolumeStatistics};
use device::tape::scsi::mode::ModeHeader;
use device::tape::scsi::position::Position;
use device::tape::sense::Sense;
use proptest::prelude::*;

fn answer(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    bytes(&fs::read_to_string(folder.join(name).with_extension("hex")).unwrap())
}

fn bytes(text: &str) -> Vec<u8> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits = lines.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Every parser of an answer.
fn parse_all(bytes: &[u8]) -> usize {
    let texts = [
        format!("{:?}", BlockLimits::parse(bytes)),
        format!("{:?}", Inquiry::parse(bytes)),
        format!("{:?}", inquiry::parse_serial_number(bytes)),
        format!("{:?}", ModeHeader::parse(bytes)),
        format!("{:?}", Compression::parse(bytes)),
        format!("{:?}", Position::parse(bytes)),
        format!("{:?}", SequentialAccess::parse(bytes)),
        format!("{:?}", VolumeStatistics::parse(bytes)),
        format!("{:?}", alert::parse(bytes)),
        format!("{:?}", Sense::parse(bytes).map(|sense| sense.to_string())),
    ];
    texts.iter().map(String::len).sum()
}

#[test]
fn names() {
    let tgt = Inquiry::parse(&answer("tgt-inquiry")).unwrap();
    assert_eq!((tgt.device_type, tgt.vendor.as_str()), (1, "IET"));
    assert_eq!((tgt.product.as_str(), tgt.revision.as_str()), ("VIRTUAL-TAPE", "0001"));
    let lto = Inquiry::parse(&answer("lto-inquiry")).unwrap();
    assert_eq!((lto.product.as_str(), lto.revision.as_str()), ("ULTRIUM-HH8", "N9M1"));
    let number = inquiry::parse_serial_number(&answer("tgt-serial-number"));
    assert_eq!(number.unwrap(), "beaf11");
    // Another page is not a serial number.
    let found = inquiry::parse_serial_number(&answer("lto-log-volume"));
    assert!(matches!(found, Err(QuestionError::OtherPage { .. })), "{found:?}");
}

#[test]
fn limits() {
    let tgt = BlockLimits::parse(&answer("tgt-block-limits")).unwrap();
    assert_eq!(tgt, BlockLimits { granularity: 9, bytes_max: 1 << 20, bytes_min: 4 });
    let lto = BlockLimits::parse(&answer("lto-block-limits")).unwrap();
    assert_eq!(lto, BlockLimits { granularity: 0, bytes_max: 8 << 20, bytes_min: 1 });
}

#[test]
fn modes() {
    assert_eq!(Compression::parse(&answer("tgt-mode-compression")).unwrap(), Compression::Unable);
    assert_eq!(Compression::parse(&answer("lto-mode-compression")).unwrap(), Compression::On);
    assert_eq!(Compression::parse(&answer("lto-mode-compression-off")).unwrap(), Compression::Off);
    let other = Compression::parse(&answer("tgt-mode-protected"));
    assert!(matches!(other, Err(QuestionError::OtherPage { .. })), "{other:?}");
    assert!(ModeHeader::parse(&answer("tgt-mode-protected")).unwrap().write_protected);
    let lto = ModeHeader::parse(&answer("lto-mode-compression")).unwrap();
    assert_eq!((lto.density, lto.block_bytes, lto.medium_type), (0x5e, 0, 0x88));
    assert_eq!((lto.buffered_mode, lto.write_protected), (1, false));
    let fixed = ModeHeader::parse(&answer("lto-mode-compression-off")).unwrap();
    assert_eq!((fixed.block_bytes, fixed.write_protected), (65_536, true));
}

#[test]
fn positions() {
    let nonsense = Position::parse(&answer("tgt-position-long"));
    assert!(matches!(nonsense, Err(QuestionError::Inconsistent { offset: 0, .. })));
    let position = Position::parse(&answer("lto-position-long")).unwrap();
    assert!(position.behind_early_warning && !position.at_beginning);
    assert_eq!((position.object, position.filemarks), (Some(12_345_678), Some(42)));
}

#[test]
fn logs() {
    let set = alert::parse(&answer("lto-log-alerts")).unwrap();
    let flags: Vec<u8> = set.iter().map(|alert| alert.flag).collect();
    assert_eq!(flags, [3, 5, 20]);
    assert_eq!(set[2].severity, Severity::Critical);
    let cut = alert::parse(&answer("lto-log-cut")).unwrap();
    assert_eq!(cut.len(), 1);
    let page = SequentialAccess::parse(&answer("lto-log-sequential")).unwrap();
    assert_eq!(page.host_written_bytes, Some(3_000_000_000));
    assert_eq!(page.medium_written_bytes, Some(2_000_000_000));
    assert_eq!(page.buffer_bytes, Some(1_024_000_000));
    assert_eq!(page.cleaning, Some(false));
    let volume = VolumeStatistics::parse(&answer("lto-log-volume")).unwrap();
    assert_eq!((volume.loads, volume.read_errors), (Some(107), Some(2)));
    assert_eq!(volume.written_bytes, Some(151_840_000_000));
    assert_eq!(volume.write_ratio_percent, Some(150));
    assert_eq!((volume.capacity_bytes, volume.used_bytes), (Some(2_463_234_000_000), None));
    assert_eq!(volume.barcode.as_deref(), Some("QIM001L6"));
    assert_eq!(volume.personality.as_deref(), Some("Ultrium-6"));
    assert_eq!(volume.write_once, Some(false));
    let other = VolumeStatistics::parse(&answer("lto-log-alerts"));
    assert!(matches!(other, Err(QuestionError::OtherPage { expected: 0x17, found: 0x2e, .. })));
}

#[test]
fn sense_of_a_command_that_is_not_there() {
    let sense = Sense::parse(&answer("tgt-sense-illegal")).unwrap();
    let expected = "illegal request, invalid command operation code (sense 5/20/00)";
    assert_eq!(sense.to_string(), expected);
}

#[test]
fn every_answer_cut_anywhere_or_with_any_byte_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let whole = bytes(&fs::read_to_string(entry.unwrap().path()).unwrap());
        (0..=whole.len()).for_each(|length| seen += parse_all(&whole[..length]));
        for at in 0..whole.len() {
            for value in [0, 1, 0x3f, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                seen += parse_all(&changed);
            }
        }
    }
    assert!(seen > 0);
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(parse_all(&bytes) > 0);
    }

    /// A page with parameters laid out by the standard gives them back, whatever they hold.
    #[test]
    fn parameters_come_back(
        list in proptest::collection::vec(
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..30),
        junk in proptest::collection::vec(any::<u8>(), 0..10),
    ) {
        let mut body = Vec::new();
        for (code, value) in &list {
            body.extend(code.to_be_bytes());
            body.extend([0x40, value.len() as u8]);
            body.extend(value);
        }
        let mut page = vec![0x2e, 0];
        page.extend((body.len() as u16).to_be_bytes());
        page.extend(&body);
        page.extend(junk);
        let found: Vec<(u16, Vec<u8>)> = log::parameters(&page, log::ALERT_PAGE)
            .unwrap()
            .map(|parameter| (parameter.code, parameter.value.to_vec()))
            .collect();
        prop_assert_eq!(found, list);
    }
}
