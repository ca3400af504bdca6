//! CRC-32 (IEEE 802.3) as Bacula's storage daemon sums up its blocks: four bytes at a time through
//! four tables of 256 (`bcrc32` of its `libbac`, versions 7 to 9, on processors like this one).
//!
//! Sums that are ten times as fast give the same bytes and another experiment: the thread that
//! writes to the drive is the one that waits for this one. How much processor time the two take
//! side by side is a test (`crates/takeup/tests/sim/btape.rs`).

/// The polynomial, least significant bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// What a byte does to the sum, with none to three bytes behind it.
const TABLES: [[u32; 256]; 4] = tables();

const fn tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 4 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[behind - 1][byte];
            tables[behind][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        behind += 1;
    }
    tables
}

/// The sum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum = u32::MAX;
    for word in words {
        let [first, second, third, fourth] =
            (sum ^ u32::from_le_bytes(*word)).to_le_bytes().map(usize::from);
        sum = TABLES[3][first] ^ TABLES[2][second] ^ TABLES[1][third] ^ TABLES[0][fourth];
    }
    let step = |sum: u32, &byte: &u8| TABLES[0][usize::from(sum as u8 ^ byte)] ^ sum >> 8;
    !rest.iter().fold(sum, step)
}
