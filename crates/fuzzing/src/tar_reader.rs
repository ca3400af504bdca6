//! Any bytes as an archive. The first byte says whether headers get a checksum that holds, without
//! which the fuzzer would hardly ever get past it.

use crate::archives::{check_round_trip, read, repair_checksum};
use archive::header::{UNIT_BYTES, Unit, find_header};

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((first, archive)) = input.split_first() else { return };
    let mut archive = archive.to_vec();
    if first & 1 == 0 {
        for unit in archive.chunks_exact_mut(UNIT_BYTES) {
            let unit: &mut Unit = unit.try_into().expect("a whole unit");
            // v7 headers have no magic; a name and a size do for them.
            if &unit[257..262] == b"ustar" || (unit[0] != 0 && unit[124] == b'0') {
                repair_checksum(unit);
            }
        }
    }
    if let Some(at) = find_header(&archive) {
        assert_eq!(&archive[at + 257..at + 262], b"ustar");
    }
    read(&archive, check_round_trip);
}
