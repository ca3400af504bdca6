//! Any bytes as a section of the index, and as the end of an archive. The first byte says whether
//! the section gets checksums that hold, without which the fuzzer would never get past them.
//! Records that can be read have to be the same after they were written again.

use archive::index::{
    About, AgainRecord, BlockChecksum, ChunkRecord, ExtentRecord, FileRecord, IndexReader,
    IndexWriter, Record, TreeEntry, TreeReader, TreeWriter, WarningRecord, decode_table,
    encode_table, encode_trailer, find_trailer,
};
use twox_hash::XxHash3_64;

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    check_section::<FileRecord>(b"TKUPFIL\x01", *first, bytes);
    check_section::<BlockChecksum>(b"TKUPBLK\x01", *first, bytes);
    check_section::<ChunkRecord>(b"TKUPCHK\x01", *first, bytes);
    check_section::<WarningRecord>(b"TKUPWRN\x01", *first, bytes);
    check_section::<ExtentRecord>(b"TKUPEXT\x01", *first, bytes);
    check_trailer(*first, bytes);
    check_tree(*first, bytes);
    check_named(bytes);
}

/// The entries of a set in a chain.
fn check_tree(first: u8, bytes: &[u8]) {
    let magic = b"TKUPTRE\x01";
    let section = if first & 1 == 0 { one_group(magic, bytes) } else { bytes.to_vec() };
    let entries: Vec<TreeEntry> = TreeReader::new(&section[..]).map_while(Result::ok).collect();
    let (mut writer, mut out) = (TreeWriter::default(), Vec::new());
    for entry in &entries {
        writer.push(entry, &mut out).expect("what was read can be written");
    }
    assert_eq!(writer.finish(&mut out).length_bytes, out.len() as u64);
    let again: Result<Vec<TreeEntry>, _> = TreeReader::new(&out[..]).collect();
    assert_eq!(again.expect("what was written can be read"), entries);
}

/// The other sections that are found by their names.
fn check_named(bytes: &[u8]) {
    if let Ok(about) = About::decode(bytes) {
        assert_eq!(About::decode(&about.encode()).expect("what was read can be written"), about);
    }
    if let Ok(records) = AgainRecord::decode_all(bytes) {
        let mut out = Vec::new();
        records.iter().for_each(|record| record.encode(&mut out));
        assert_eq!(out, bytes);
    }
    let mut table = bytes.to_vec();
    let rows = u64::from(bytes.first().copied().unwrap_or(0) % 4);
    table.extend_from_slice(&XxHash3_64::oneshot_with_seed(rows, bytes).to_le_bytes());
    if let Ok(rows) = decode_table(&table, rows) {
        let again = decode_table(&encode_table(&rows), rows.len() as u64);
        assert_eq!(again.expect("what was written can be read"), rows);
    }
}

fn check_section<T: Record + PartialEq + std::fmt::Debug>(
    magic: &[u8; 8],
    first: u8,
    bytes: &[u8],
) {
    let section = if first & 1 == 0 { one_group(magic, bytes) } else { bytes.to_vec() };
    let mut records = Vec::new();
    let mut reader = IndexReader::<T, _>::new(&section[..]);
    let whole = loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break true,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break false;
            }
        }
    };
    let mut writer = IndexWriter::new();
    let mut out = Vec::new();
    for record in &records {
        writer.push(record, &mut out).expect("what was read can be written");
    }
    let summary = writer.finish(&mut out);
    assert_eq!(summary.length_bytes, out.len() as u64);
    if whole {
        assert_eq!(reader.summary().records, summary.records);
    }
    let again: Result<Vec<T>, _> = IndexReader::new(&out[..]).collect();
    assert_eq!(again.expect("what was written can be read"), records);
}

/// A section with one group: its number of records in the first two bytes, then its body.
fn one_group(magic: &[u8; 8], bytes: &[u8]) -> Vec<u8> {
    let Some((count, body)) = bytes.split_first_chunk::<2>() else { return magic.to_vec() };
    let records = u32::from(u16::from_le_bytes(*count) % 600);
    let checksum = XxHash3_64::oneshot_with_seed(records.into(), body);
    let total = u64::from(records).to_le_bytes();
    let mut out = magic.to_vec();
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&records.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&total);
    out.extend_from_slice(&XxHash3_64::oneshot_with_seed(1, &total).to_le_bytes());
    out
}

fn check_trailer(first: u8, bytes: &[u8]) {
    let mut tail = bytes.to_vec();
    if first & 1 == 0 && tail.len() >= 1024 {
        let content = tail.len() - 512;
        tail[content..content + 16].copy_from_slice(b"takeup trailer\0\0");
        let checksum = XxHash3_64::oneshot(&tail[content..content + 496]);
        tail[content + 496..content + 504].copy_from_slice(&checksum.to_le_bytes());
        tail[content + 504..].copy_from_slice(b"takeup.\n");
    }
    if let Ok(Some(found)) = find_trailer(&tail) {
        let encoded = encode_trailer(&found.trailer).expect("what was read can be written");
        let start = tail.len() - found.member_to_end_bytes;
        // What may be ignored is not kept, and the checksum is over that, too.
        let same = |range: std::ops::Range<usize>| encoded[range.clone()] == tail[start..][range];
        assert!(same(512..512 + 284) && same(512 + 288..512 + 496));
    }
}
