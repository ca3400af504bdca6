//! Any bytes as the answer of a tape drive, to every command that is sent, and as sense data.
//! Numbers in an answer are claims; what is found has to be in the bytes.

use device::tape::Compression;
use device::tape::QuestionError;
use device::tape::limits::{DriveLimits, Found};
use device::tape::scsi::access_order::{self, Segment};
use device::tape::scsi::inquiry::{self, Inquiry};
use device::tape::scsi::log::{
    ALERT_PAGE, SEQUENTIAL_PAGE, SequentialAccess, VOLUME_PAGE, VolumeStatistics, parameters,
};
use device::tape::scsi::mode::ModeHeader;
use device::tape::scsi::position::Position;
use device::tape::scsi::{BlockLimits, alert};
use device::tape::sense::Sense;

/// Checks one input.
pub fn check(input: &[u8]) {
    told(Inquiry::parse(input));
    if let Some(number) = told(inquiry::parse_serial_number(input)) {
        assert!(number.len() <= input.len() && !number.contains(char::is_control));
    }
    told(ModeHeader::parse(input));
    told(Compression::parse(input));
    told(Position::parse(input));
    told(SequentialAccess::parse(input));
    told(VolumeStatistics::parse(input));
    if let Some(alerts) = told(alert::parse(input)) {
        assert!(alerts.iter().all(|alert| (1..=64).contains(&alert.flag)));
    }
    for page in [SEQUENTIAL_PAGE, VOLUME_PAGE, ALERT_PAGE] {
        if let Some(list) = told(parameters(input, page)) {
            let bytes: usize = list.map(|parameter| 4 + parameter.value.len()).sum();
            assert!(bytes + 4 <= input.len());
        }
    }
    if let Some(drive) = told(BlockLimits::parse(input)) {
        let limits = DriveLimits::new(drive, Found::Asked, None, None, 4096);
        assert!(limits.direct_bytes_max <= limits.block_bytes_max);
        let _ = limits.recommended_block_bytes();
    }
    let segments: Vec<Segment> = (0..3).map(|number| Segment::of(number * 9, 4)).collect();
    if let Some(mut order) = told(access_order::parse_order(input, &segments)) {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
    }
    told(access_order::parse_limits(input));
    if let Some(sense) = Sense::parse(input) {
        assert!(!sense.to_string().is_empty());
    }
}

/// What was found; what was not has a message.
fn told<T>(result: Result<T, QuestionError>) -> Option<T> {
    result.inspect_err(|error| assert!(!error.to_string().is_empty())).ok()
}
