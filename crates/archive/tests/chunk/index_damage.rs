//! Damage to sections: every bit flipped, every length cut, groups exchanged.

use archive::index::{
    BlockChecksum, ChunkRecord, FileRecord, IndexError, IndexReader, Record, WarningRecord,
};
use archive::stream::{ArchiveOffset, StoredOffset};
use std::io::{Error, Read};

use crate::index::{plain_record, read, write};

/// A damaged section gives a prefix of its records and an error, never another record.
#[track_caller]
fn check_damage<T: Record + PartialEq + std::fmt::Debug>(records: &[T]) {
    let (section, _) = write(records);
    for at in 0..section.len() {
        for bit in 0..8 {
            let mut damaged = section.clone();
            damaged[at] ^= 1 << bit;
            let (found, error) = read::<T>(&damaged);
            assert!(error.is_some(), "byte {at} bit {bit}");
            assert!(records.starts_with(&found), "byte {at} bit {bit}");
        }
    }
    for length in 0..section.len() {
        let (found, error) = read::<T>(&section[..length]);
        let Some(IndexError::Truncated { offset_bytes, .. }) = error else {
            panic!("cut at {length}: {error:?}")
        };
        assert_eq!(offset_bytes, length as u64);
        assert!(records.starts_with(&found));
    }
}

#[test]
fn every_flip_and_every_cut_is_noticed() {
    check_damage(&(0..20).map(plain_record).collect::<Vec<_>>());
    check_damage::<FileRecord>(&[]);
    let warning = |text: &str| WarningRecord { path: b"a/b".to_vec(), text: text.to_owned() };
    check_damage(&[warning("changed while it was read"), warning("")]);
    check_damage(&[BlockChecksum(1), BlockChecksum(u64::MAX)]);
    check_damage(&[ChunkRecord {
        compressed_offset_bytes: StoredOffset::new(5),
        compressed_bytes: 6,
        content_offset_bytes: ArchiveOffset::new(7),
        content_bytes: 8,
    }]);
}

#[test]
fn exchanged_missing_and_repeated_groups_are_noticed() {
    let blocks: Vec<BlockChecksum> = (0..512 * 3).map(BlockChecksum).collect();
    let (section, _) = write(&blocks);
    let group_bytes = 16 + 512 * 8;
    let (head, rest) = section.split_at(8);
    let groups: Vec<&[u8]> = rest.chunks(group_bytes).collect();
    assert_eq!(groups.len(), 4, "three groups and the end");
    for order in [&[1, 0, 2, 3][..], &[0, 2, 3], &[0, 0, 1, 2, 3], &[0, 1, 3], &[3]] {
        let picked: Vec<u8> = order.iter().flat_map(|&number| groups[number]).copied().collect();
        let (_, error) = read::<BlockChecksum>(&[head, &picked].concat());
        assert!(matches!(error, Some(IndexError::Damaged { .. })), "{order:?}: {error:?}");
    }
}

#[test]
fn sections_are_not_taken_for_each_other() {
    let (section, _) = write(&[BlockChecksum(1)]);
    let (_, error) = read::<FileRecord>(&section);
    assert!(matches!(error, Some(IndexError::UnknownVersion { .. })));
    let mut newer = section;
    newer[7] += 1;
    let (_, error) = read::<BlockChecksum>(&newer);
    assert!(matches!(error, Some(IndexError::UnknownVersion { .. })));
}

#[test]
fn a_source_that_fails_is_named() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _buffer: &mut [u8]) -> Result<usize, Error> {
            Err(Error::from_raw_os_error(5))
        }
    }
    let error = IndexReader::<BlockChecksum, _>::new(Broken).next_record().expect_err("fails");
    assert_eq!(error.to_string(), "cannot read the index section takeup-index/blocks");
}

#[test]
fn a_group_of_an_impossible_size_is_not_allocated() {
    let mut section = b"TKUPFIL\x01".to_vec();
    section.extend_from_slice(&u32::MAX.to_le_bytes());
    section.extend_from_slice(&[1, 0, 0, 0]);
    section.extend_from_slice(&[0; 100]);
    let (_, error) = read::<FileRecord>(&section);
    assert!(matches!(error, Some(IndexError::Damaged { .. })), "{error:?}");
}
