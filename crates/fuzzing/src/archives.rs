//! What targets about archives share: headers with a checksum that holds, and a caller of the
//! decoder that asserts what the decoder promises.

use archive::decode::{DecodeLimits, Decoder, Event};
use archive::encode::encode_member;
use archive::header::{UNIT_BYTES, Unit, padding_bytes};
use archive::member::{Member, MemberKind};

/// DecodeLimits low enough that the fuzzer reaches them.
pub const LIMITS: DecodeLimits = DecodeLimits {
    extended_bytes_max: 1 << 16,
    global_bytes_max: 1 << 12,
    long_name_bytes_max: 1 << 12,
    extents_max: 64,
};

/// A ustar header for `size` bytes of content.
pub fn header(typeflag: u8, size: u64) -> Unit {
    let mut unit = [0; UNIT_BYTES];
    unit[..4].copy_from_slice(b"file");
    unit[124..136].copy_from_slice(format!("{size:011o} ").as_bytes());
    unit[156] = typeflag;
    unit[257..265].copy_from_slice(b"ustar\x0000");
    repair_checksum(&mut unit);
    unit
}

/// Writes the checksum that holds for the rest of the header.
pub fn repair_checksum(unit: &mut Unit) {
    unit[148..156].fill(b' ');
    let sum: u32 = unit.iter().map(|byte| u32::from(*byte)).sum();
    unit[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Reads `archive` to its end, asserts what every member promises, and hands it to `visit`.
pub fn read(archive: &[u8], mut visit: impl FnMut(&Member)) {
    let mut decoder = Decoder::new(LIMITS);
    let mut at = 0;
    while let Some(unit) = archive.get(at..at + UNIT_BYTES) {
        at += UNIT_BYTES;
        let event = decoder.push(unit.try_into().expect("a range of one unit"));
        let passed_over = match event {
            Ok(Event::Member { member, stored_bytes, notes }) => {
                check_member(&member);
                if let (MemberKind::File, Some(_)) = (&member.kind, &member.sparse) {
                    assert_eq!(member.content_bytes(), stored_bytes);
                }
                notes.iter().for_each(|note| assert!(!note.to_string().is_empty()));
                visit(&member);
                stored_bytes
            }
            Ok(Event::Skip { stored_bytes, .. }) => stored_bytes,
            Ok(_) => 0,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                0
            }
        };
        let passed_over = passed_over.checked_add(padding_bytes(passed_over));
        at = at.saturating_add(passed_over.expect("sizes can be padded") as usize);
    }
    let _ = decoder.finish();
}

fn check_member(member: &Member) {
    assert!(!member.path.is_empty());
    assert!(member.path.len() == 1 || !member.path.ends_with(b"/"));
    assert!(member.mode <= 0o7777);
    assert!(member.modified.nanoseconds < 1_000_000_000);
    assert!(member.xattrs.is_sorted_by(|left, right| left.0 < right.0));
    match (&member.kind, &member.sparse) {
        (MemberKind::File, Some(extents)) => {
            assert!(extents.len() <= LIMITS.extents_max);
            // Not `check_extents`, which the decoder itself relies on.
            let ends = extents
                .iter()
                .map(|run| u128::from(run.offset_bytes) + u128::from(run.length_bytes));
            let starts = extents.iter().map(|run| u128::from(run.offset_bytes));
            let size = u128::from(member.size_bytes);
            assert!(ends.zip(starts.skip(1).chain([size])).all(|(end, next)| end <= next));
        }
        (MemberKind::File, None) => {}
        (_, sparse) => assert!(sparse.is_none() && member.size_bytes == 0),
    }
}

/// What we read we can write and read again, unless the encoder refuses it. ACLs take on their
/// canonical form the first time, so the second time everything has to be the same.
pub fn check_round_trip(member: &Member) {
    let Some(mut first) = through_encoder(member) else { return };
    let second = through_encoder(&first).expect("what was encoded once can be encoded again");
    assert_eq!(first, second);
    first.acl_access.clone_from(&member.acl_access);
    first.acl_default.clone_from(&member.acl_default);
    assert_eq!(&first, member);
}

fn through_encoder(member: &Member) -> Option<Member> {
    let mut headers = Vec::new();
    encode_member(member, &mut headers).ok()?;
    let mut decoder = Decoder::new(DecodeLimits::default());
    let mut read = None;
    for unit in headers.chunks_exact(UNIT_BYTES) {
        match decoder.push(unit.try_into().expect("a whole unit")) {
            Ok(Event::More) => {}
            Ok(Event::Member { member, notes, .. }) => {
                assert!(read.is_none() && notes.is_empty(), "{notes:?}");
                read = Some(*member);
            }
            other => panic!("{other:?}"),
        }
    }
    Some(read.expect("a member was encoded"))
}
