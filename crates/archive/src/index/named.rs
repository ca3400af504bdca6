//! Sections that are found by their names: what an index of a set in a chain has besides the five
//! of every index.
//!
//! ```text
//! table    row..., xxh3-64 of the rows (seed: number of rows) 8
//! row      name as a string, flags 1, offset, length, records, xxh3-64 of the content 8
//! ```
//!
//! A name may come twice: a section is longer then than a tar member can be. A row with a flag that
//! a reader does not know, and which it must understand, makes the index one of a later version.

use twox_hash::XxHash3_64;

use super::envelope::{SectionPlace, SectionSummary};
use super::error::IndexError;
use super::varint::{self, Body, Reason};

/// Longest table: it has a row for each section.
pub const TABLE_BYTES_MAX: u64 = 1 << 20;
/// Longest name of a section.
const NAME_BYTES_MAX: usize = 40;
/// A reader that does not know the section must not use the index.
const MUST_UNDERSTAND: u8 = 1;
const TABLE: &str = "takeup-index/table";
const TABLE_OF: &str = TABLE;

/// The named sections that are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedSection {
    /// What the run found at its sources: [`super::TreeEntry`].
    Tree,
    /// What the next run has to store again: [`super::AgainRecord`].
    Again,
    /// Which set it is: [`super::About`].
    About,
    /// What became of the sets before it: lines of text, which nothing needs.
    Journal,
    /// The places of the others.
    Table,
}

impl NamedSection {
    /// Its name as a member of the index archive.
    pub const fn name(self) -> &'static str {
        match self {
            NamedSection::Tree => "takeup-index/tree",
            NamedSection::Again => "takeup-index/again",
            NamedSection::About => "takeup-index/about",
            NamedSection::Journal => "takeup-index/journal",
            NamedSection::Table => TABLE,
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRow {
    /// The member of the index archive.
    pub name: String,
    /// Whether an index with it must not be used by a reader that does not know it.
    pub must_be_understood: MustBeUnderstood,
    pub place: SectionPlace,
    /// xxh3-64 of its content, seed 0.
    pub checksum: u64,
}

/// What a reader does that does not know a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MustBeUnderstood {
    /// It does without.
    No,
    /// It does not use the index.
    Yes,
}

/// The table of these sections.
pub fn encode_table(rows: &[NamedRow]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        varint::put_bytes(&mut out, row.name.as_bytes());
        out.push(match row.must_be_understood {
            MustBeUnderstood::Yes => MUST_UNDERSTAND,
            MustBeUnderstood::No => 0,
        });
        varint::put(&mut out, row.place.offset_bytes);
        varint::put(&mut out, row.place.summary.length_bytes);
        varint::put(&mut out, row.place.summary.records);
        out.extend_from_slice(&row.checksum.to_le_bytes());
    }
    let checksum = XxHash3_64::oneshot_with_seed(rows.len() as u64, &out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// The rows of a table of `records` rows.
///
/// # Errors
/// Damage; `Later` for a section that must be understood and is not known here.
pub fn decode_table(table: &[u8], records: u64) -> Result<Vec<NamedRow>, IndexError> {
    let damaged = |reason| IndexError::Named { section: TABLE_OF, reason };
    let Some((rows, checksum)) = table.split_last_chunk() else {
        return Err(damaged("it is cut off"));
    };
    if XxHash3_64::oneshot_with_seed(records, rows).to_le_bytes() != *checksum {
        return Err(damaged("its checksum does not match"));
    }
    let mut body = Body::new(rows);
    let mut found = Vec::new();
    while body.rest_bytes() > 0 {
        found.push(decode_row(&mut body).map_err(damaged)?);
    }
    if found.len() as u64 != records {
        return Err(damaged("number of rows does not match"));
    }
    let known =
        [NamedSection::Tree, NamedSection::Again, NamedSection::About, NamedSection::Journal];
    let is_known = |row: &NamedRow| known.iter().any(|section| section.name() == row.name);
    if found.iter().any(|row| row.must_be_understood == MustBeUnderstood::Yes && !is_known(row)) {
        return Err(IndexError::Later { what: "the index" });
    }
    Ok(found)
}

fn decode_row(body: &mut Body<'_>) -> Result<NamedRow, Reason> {
    let name = std::str::from_utf8(body.bytes(NAME_BYTES_MAX)?).map_err(|_| "a name is no text")?;
    let name = name.to_owned();
    let [flags] = body.take()?;
    let offset_bytes = body.number()?;
    let summary = SectionSummary { length_bytes: body.number()?, records: body.number()? };
    Ok(NamedRow {
        name,
        must_be_understood: match flags & MUST_UNDERSTAND {
            0 => MustBeUnderstood::No,
            _ => MustBeUnderstood::Yes,
        },
        place: SectionPlace { offset_bytes, summary },
        checksum: u64::from_le_bytes(body.take()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, must_be_understood: MustBeUnderstood) -> NamedRow {
        let summary = SectionSummary { length_bytes: 300, records: 2 };
        let place = SectionPlace { offset_bytes: 1 << 40, summary };
        NamedRow { name: name.to_owned(), must_be_understood, place, checksum: 7 }
    }

    #[test]
    fn a_table_is_read_back_and_damage_is_noticed() {
        let rows = [
            row(NamedSection::Tree.name(), MustBeUnderstood::Yes),
            row("takeup-index/later", MustBeUnderstood::No),
        ];
        let table = encode_table(&rows);
        assert_eq!(decode_table(&table, 2).unwrap(), rows);
        assert!(matches!(decode_table(&table, 1), Err(IndexError::Named { .. })));
        for at in 0..table.len() {
            let mut table = table.clone();
            table[at] ^= 1;
            assert!(decode_table(&table, 2).is_err(), "{at}");
        }
        assert!(decode_table(&[], 0).is_err());
    }

    #[test]
    fn what_must_be_understood_and_is_not_known_is_of_a_later_version() {
        let table = encode_table(&[row("takeup-index/later", MustBeUnderstood::Yes)]);
        assert!(matches!(decode_table(&table, 1), Err(IndexError::Later { .. })));
    }
}
