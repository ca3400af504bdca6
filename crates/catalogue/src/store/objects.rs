//! What the catalogue says of an object.

use rusqlite::Row;

use super::versions::Content;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CataloguedKind {
    File,
    Directory,
    SymbolicLink,
    HardLink,
    Fifo,
    CharacterDevice,
    BlockDevice,
}

/// An object as a set has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CataloguedObject {
    pub kind: CataloguedKind,
    /// As readers of the file see it.
    pub size_bytes: u64,
    pub modified_seconds: i64,
    pub modified_nanoseconds: u32,
    /// The low 12 bits of its mode.
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    /// The first 16 bytes of the hash of its content.
    pub hash: Option<[u8; 16]>,
}

/// The columns of `attributes` that [`CataloguedObject::of_row`] takes.
pub(super) const OBJECT_COLUMNS: &str =
    "attributes.kind, attributes.mode, attributes.uid, attributes.gid";

impl CataloguedObject {
    /// From the content of a version and [`OBJECT_COLUMNS`], the first of which is number `at` of
    /// the row.
    pub(super) fn of_row(
        row: &Row<'_>,
        at: usize,
        content: &Content,
    ) -> Result<CataloguedObject, rusqlite::Error> {
        Ok(CataloguedObject {
            kind: kind(row.get(at)?),
            size_bytes: content.size as u64,
            modified_seconds: content.modified_seconds,
            modified_nanoseconds: content.modified_nanoseconds as u32,
            mode: row.get(at + 1)?,
            uid: row.get::<_, i64>(at + 2)? as u64,
            gid: row.get::<_, i64>(at + 3)? as u64,
            hash: content.hash,
        })
    }
}

fn kind(number: i64) -> CataloguedKind {
    match number {
        1 => CataloguedKind::Directory,
        2 => CataloguedKind::SymbolicLink,
        3 => CataloguedKind::HardLink,
        4 => CataloguedKind::Fifo,
        5 => CataloguedKind::CharacterDevice,
        6 => CataloguedKind::BlockDevice,
        _ => CataloguedKind::File,
    }
}
