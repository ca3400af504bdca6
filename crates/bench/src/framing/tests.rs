//! Blocks as others read them: tar by GNU tar and bsdtar, Bacula's by a reader of their own.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::payload::Data;

fn framer(framing: Framing, block_bytes: usize, data: &Data) -> Framer {
    Framer::new(framing, block_bytes, Payload::open(data, 4).unwrap()).unwrap()
}

/// Blocks as they come, the last one as the last.
fn written(framing: Framing, block_bytes: usize, blocks: usize, data: &Data) -> Vec<u8> {
    let mut framer = framer(framing, block_bytes, data);
    let mut all = vec![1; block_bytes * blocks];
    for (number, block) in all.chunks_mut(block_bytes).enumerate() {
        if number + 1 == blocks {
            framer.last_block(block).unwrap()
        } else {
            framer.block(block).unwrap()
        }
    }
    all
}

/// What the data would be without a frame.
fn plain(bytes: usize, data: &Data) -> Vec<u8> {
    let mut buffer = vec![1; bytes];
    Payload::open(data, 4).unwrap().fill(&mut buffer).unwrap();
    buffer
}

#[test]
fn raw_blocks_are_the_data() {
    assert_eq!(written(Framing::Raw, 1000, 3, &Data::Random), plain(3000, &Data::Random));
}

#[test]
fn tar_blocks_are_read_by_tar() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("blocks.tar");
    let block_bytes = 64 << 10;
    std::fs::write(&path, written(Framing::Tar, block_bytes, 5, &Data::Random)).unwrap();
    for program in ["tar", "bsdtar"] {
        let output = Command::new(program).arg("-xOf").arg(&path).stdin(Stdio::null()).output();
        let output = output.unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{program}: {output:?}");
        let content_bytes = 5 * (block_bytes - 512) - 1024;
        assert!(output.stdout == plain(content_bytes, &Data::Random), "{program}");
    }
    let listed = Command::new("tar").arg("-tf").arg(&path).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(names.lines().count(), 5);
    assert_eq!(names.lines().last(), Some("takeup-bench/000000000004"));
}

fn word(block: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(block[at..at + 4].try_into().unwrap())
}

/// CRC-32 (IEEE 802.3), bit by bit as its polynomial says.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

/// Data of the records of a block, all of which is checked.
fn records(block: &[u8], number: u32) -> Vec<u8> {
    assert_eq!(word(block, 0), crc(&block[4..]));
    assert_eq!(word(block, 4) as usize, block.len());
    assert_eq!(word(block, 8), number);
    assert_eq!(&block[12..16], b"BB02");
    let (mut at, mut data) = (24, Vec::new());
    while at < block.len() {
        assert!((word(block, at), word(block, at + 4)) == (1, 2), "a record of file data");
        let bytes = word(block, at + 8) as usize;
        assert!((1..=64 << 10).contains(&bytes));
        data.extend_from_slice(&block[at + 12..][..bytes]);
        at += 12 + bytes;
    }
    assert_eq!(at, block.len());
    data
}

#[test]
fn bacula_blocks_have_its_structure() {
    for block_bytes in [37, 512, 65536, 65536 + 36, 65536 + 37, 65536 + 48, 65536 + 49, 1 << 20] {
        let all = written(Framing::Bacula, block_bytes, 3, &Data::Random);
        let blocks = all.chunks(block_bytes).zip(0..);
        let data: Vec<u8> = blocks.flat_map(|(block, number)| records(block, number)).collect();
        assert!(data == plain(data.len(), &Data::Random), "{block_bytes}");
    }
}

#[test]
fn blocks_without_room_are_refused() {
    let check = |framing: Framing, bytes: usize, expected: &str| {
        let payload = Payload::open(&Data::Zeros, 1).unwrap();
        let error = Framer::new(framing, bytes, payload).unwrap_err().to_string();
        assert_eq!(error, format!("a block of {bytes} bytes: {expected}"));
    };
    check(Framing::Raw, 0, "there is nothing in it");
    check(Framing::Tar, 1536, "tar takes multiples of 512 from 2048 on");
    check(Framing::Tar, 65537, "tar takes multiples of 512 from 2048 on");
    check(Framing::Bacula, 36, "Bacula's headers take 36 bytes, and a size has 32 bits");
    assert_eq!("tar".parse(), Ok(Framing::Tar));
    assert!("cpio".parse::<Framing>().unwrap_err().to_string().contains("raw, tar or bacula"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_fill_blocks_of_any_size(block_bytes in 37usize..300_000) {
        let all = written(Framing::Bacula, block_bytes, 1, &Data::Zeros);
        prop_assert!(records(&all, 0).len() < block_bytes);
    }
}
