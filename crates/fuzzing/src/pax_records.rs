//! Any bytes as the content of an extended header in front of a file, and of a global header; what
//! can be read as records has to survive being written again.

use crate::archives::{LIMITS, check_round_trip, header, read};
use archive::decode::{Decoder, Event};
use archive::encode::encode_global_header;
use archive::header::UNIT_BYTES;
use archive::pax::Records;

/// Checks one input.
pub fn check(input: &[u8]) {
    for typeflag in [b'x', b'g', b'X'] {
        for kind in [b'0', b'1', b'3', b'5', b'S'] {
            let mut archive = header(typeflag, input.len() as u64).to_vec();
            archive.extend_from_slice(input);
            archive.resize(archive.len().next_multiple_of(UNIT_BYTES), 0);
            archive.extend_from_slice(&header(kind, 0));
            read(&archive, check_round_trip);
        }
    }
    let records: Vec<_> = Records::new(input).filter_map(Result::ok).collect();
    let mut out = Vec::new();
    if encode_global_header("GlobalHead", &records, &mut out).is_err() || out.len() > 1 << 16 {
        return;
    }
    let mut decoder = Decoder::new(LIMITS);
    for unit in out.chunks_exact(UNIT_BYTES) {
        let unit = unit.try_into().expect("a whole unit");
        if let Ok(Event::GlobalHeader { records: read }) = decoder.push(unit) {
            let read = read.iter().map(|(keyword, value)| (keyword.as_slice(), value.as_slice()));
            assert!(read.eq(records.iter().copied()));
        }
    }
}
