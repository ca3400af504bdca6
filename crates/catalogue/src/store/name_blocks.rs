//! All names in a row, to be compared with a glob that can be anywhere in a name.
//!
//! A step of SQLite from row to row takes longer than a comparison, and there are millions of
//! names. So they are stored a second time, in blocks of 64 KiB: for each name the distance of its
//! number from the one before in the block (the first: from 0) and its length, as numbers of base
//! 128 with the low bits first and the high bit set on all bytes but the last, then its bytes.

use memchr::memmem::Finder;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Bytes of a block, but for its last name.
const BLOCK_BYTES: usize = 64 << 10;
/// A last block with fewer bytes takes further names.
const BLOCK_BYTES_MIN: usize = BLOCK_BYTES / 2;

/// Adds the names that no block has.
pub(super) fn complete(transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    let newest = "SELECT last, names FROM name_blocks ORDER BY last DESC LIMIT 1";
    let newest = transaction.query_row(newest, [], |row| Ok((row.get(0)?, row.get(1)?)));
    let (from, short): (i64, Vec<u8>) = newest.optional()?.unwrap_or_default();
    let is_short = !short.is_empty() && short.len() < BLOCK_BYTES_MIN;
    let mut block = if is_short { short } else { Vec::new() };
    let (mut last, mut replaced) = (from, is_short.then_some(from));
    let mut select = transaction.prepare("SELECT id, name FROM names WHERE id > ?1 ORDER BY id")?;
    let mut rows = select.query([from])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let name = row.get_ref(1)?.as_blob().unwrap_or_default();
        let before = if block.is_empty() { 0 } else { last };
        put(&mut block, (number - before) as u64);
        put(&mut block, name.len() as u64);
        block.extend_from_slice(name);
        last = number;
        if block.len() >= BLOCK_BYTES {
            write(transaction, replaced.take(), last, &block)?;
            block.clear();
        }
    }
    if last > from && !block.is_empty() {
        write(transaction, replaced, last, &block)?;
    }
    Ok(())
}

fn write(
    transaction: &Transaction<'_>,
    replaced: Option<i64>,
    last: i64,
    block: &[u8],
) -> Result<(), rusqlite::Error> {
    if let Some(replaced) = replaced {
        transaction.execute("DELETE FROM name_blocks WHERE last = ?1", [replaced])?;
    }
    let mut insert = transaction.prepare_cached("INSERT INTO name_blocks VALUES (?1, ?2)")?;
    insert.execute(params![last, block])?;
    Ok(())
}

/// Calls for each name, with its number, of the blocks that have a piece of bytes.
pub(super) fn each(
    connection: &Connection,
    piece: &Finder<'_>,
    mut take: impl FnMut(i64, &[u8]),
) -> Result<(), rusqlite::Error> {
    let mut select = connection.prepare("SELECT names FROM name_blocks ORDER BY last")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let mut block = row.get_ref(0)?.as_blob().unwrap_or_default();
        if piece.find(block).is_none() {
            continue;
        }
        let mut number = 0;
        // What is cut off ends the block: the catalogue is damaged, and no name is made up.
        while let Some((distance, name, rest)) = next(block) {
            number += distance as i64;
            take(number, name);
            block = rest;
        }
    }
    Ok(())
}

/// The first name of the rest of a block.
fn next(block: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (distance, rest) = get(block)?;
    let (length, rest) = get(rest)?;
    let (name, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((distance, name, rest))
}

fn put(block: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        block.push(number as u8 | 0x80);
        number >>= 7;
    }
    block.push(number as u8);
}

fn get(block: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in block.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &block[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names come in over many sets: few in most, more than a block at times, long ones among them.
    #[test]
    fn blocks_have_all_names() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::store::tables::TABLES).unwrap();
        connection.execute_batch(crate::store::tables::TABLES_OF_2).unwrap();
        let mut expected: Vec<(i64, Vec<u8>)> = Vec::new();
        for (set, names) in [3, 1, 9000, 0, 5, 2500, 2500, 1].into_iter().enumerate() {
            let transaction = connection.transaction().unwrap();
            for name in 0..names {
                let length = if name % 1000 == 7 { 200 } else { name % 14 };
                let name = format!("{set}-{name}-{}", "x".repeat(length)).into_bytes();
                transaction.execute("INSERT INTO names (name) VALUES (?1)", [&name]).unwrap();
                expected.push((transaction.last_insert_rowid(), name));
            }
            complete(&transaction).unwrap();
            transaction.commit().unwrap();
            let mut found: Vec<(i64, Vec<u8>)> = Vec::new();
            let all = |number, name: &[u8]| found.push((number, name.to_vec()));
            each(&connection, &Finder::new(b""), all).unwrap();
            assert!(found == expected, "set {set}");
        }
        let count = "SELECT count(*) FROM name_blocks";
        let blocks: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert!((3..8).contains(&blocks), "{blocks} blocks");
        let mut some = 0;
        each(&connection, &Finder::new(b"7-0-"), |_, _| some += 1).unwrap();
        assert!(some > 0 && some < expected.len(), "{some}: only the block that has it");
    }
}
