//! Entries come back, damage is noticed, and what a later version adds is passed over.

use super::*;
use proptest::prelude::*;

fn entry() -> impl Strategy<Value = TreeEntry> {
    let time = (any::<i64>(), 0u32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds });
    let what = (
        any::<u32>(),
        "[a-c]{1,3}(/[a-c]{1,3}){0,3}",
        0..ObjectKind::ALL.len(),
        0..EntryState::ALL.len(),
        0..StoreReason::ALL.len(),
        any::<bool>(),
        any::<u64>(),
    );
    let numbers = (
        (0u32..0o10000, any::<u32>(), any::<u32>()),
        (time.clone(), time),
        (any::<u64>(), any::<u64>()),
        (any::<u32>(), proptest::option::of(any::<u32>())),
    );
    (what, numbers).prop_map(|(what, numbers)| {
        let (source, path, kind, state, reason, doubtful, size_bytes) = what;
        let ((mode, uid, gid), (modified, changed), (inode, links), (place, before)) = numbers;
        TreeEntry {
            source,
            path: path.into_bytes(),
            kind: ObjectKind::ALL[kind],
            state: EntryState::ALL[state],
            reason: StoreReason::ALL[reason],
            certainty: if doubtful { Certainty::Doubtful } else { Certainty::Settled },
            mode,
            uid,
            gid,
            size_bytes,
            modified,
            changed,
            inode,
            links,
            place,
            before,
        }
    })
}

fn written(entries: &[TreeEntry]) -> (Vec<u8>, SectionSummary) {
    let (mut writer, mut out) = (TreeWriter::default(), Vec::new());
    for entry in entries {
        writer.push(entry, &mut out).unwrap();
    }
    let summary = writer.finish(&mut out);
    (out, summary)
}

proptest! {
    #[test]
    fn entries_come_back(entries in proptest::collection::vec(entry(), 0..60)) {
        let (bytes, summary) = written(&entries);
        prop_assert_eq!(summary.length_bytes, bytes.len() as u64);
        prop_assert_eq!(summary.records, entries.len() as u64);
        let found: Result<Vec<_>, _> = TreeReader::new(&bytes[..]).collect();
        prop_assert_eq!(found.unwrap(), entries);
    }

    #[test]
    fn a_changed_byte_is_noticed(
        entries in proptest::collection::vec(entry(), 1..20),
        at in any::<proptest::sample::Index>(),
        bit in 0..8u8,
    ) {
        let (mut bytes, _) = written(&entries);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let found: Result<Vec<_>, _> = TreeReader::new(&bytes[..]).collect();
        prop_assert!(found.is_err());
    }
}

#[test]
fn groups_stand_alone_and_the_section_ends_with_their_number() {
    let many: Vec<TreeEntry> = (0..10_000u32)
        .map(|number| TreeEntry {
            source: 0,
            path: format!("folder/{number:05}").into_bytes(),
            kind: ObjectKind::File,
            state: EntryState::Unchanged,
            reason: StoreReason::Full,
            certainty: Certainty::Settled,
            mode: 0o644,
            uid: 0,
            gid: 0,
            size_bytes: u64::from(number),
            modified: Timestamp { seconds: 1_700_000_000, nanoseconds: number },
            changed: Timestamp { seconds: 1_700_000_000, nanoseconds: number },
            inode: u64::from(number),
            links: 1,
            place: 0,
            before: None,
        })
        .collect();
    let (bytes, _) = written(&many);
    assert!(bytes.len() < 15 * many.len(), "{} bytes", bytes.len());
    let found: Result<Vec<_>, _> = TreeReader::new(&bytes[..]).collect();
    assert_eq!(found.unwrap(), many);
    let cut: Result<Vec<_>, _> = TreeReader::new(&bytes[..bytes.len() - 1]).collect();
    assert!(matches!(cut, Err(IndexError::Named { .. })));
}

/// What a later version adds is passed over, and refused where it must be understood.
#[test]
fn unknown_columns() {
    let with = |id: u8| {
        let mut out = MAGIC.to_vec();
        let mut body = Vec::new();
        put_column(id, b"later", None, &mut body);
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&1u32.to_le_bytes());
        out.extend_from_slice(&group_checksum(&body, 1, 0));
        out.extend_from_slice(&body);
        TreeReader::new(&out[..]).next_entry()
    };
    assert!(matches!(with(100 | MUST_UNDERSTAND), Err(IndexError::Later { .. })));
    // Nothing but the unknown column: what an entry needs is missing.
    assert!(matches!(with(100), Err(IndexError::Named { .. })));
}
