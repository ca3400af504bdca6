//! The section of the entries: groups of columns, each compressed on its own.
//!
//! ```text
//! section  magic 7, version 1, group..., end
//! group    body length 4 (> 0), records 4, xxh3-64 of the body 8, body
//! body     columns: id 1, coding 1, length, stored length, bytes
//! end      0 4, 0 4, records in all 8, xxh3-64 of the eight bytes before 8
//! ```
//!
//! Equal values of neighbours lie side by side in a column, which is why an entry takes about ten
//! bytes. A column that a reader does not know is passed over, or, if the high bit of its id is
//! set, refused. Writer and reader hold one group.

mod columns;

use std::io::{ErrorKind, Read};

use super::envelope::SectionSummary;
use super::error::IndexError;
use super::named::NamedSection;
use super::section::{end_checksum, group_checksum, put_end};
use super::tree_entry::{Certainty, EntryState, ObjectKind, StoreReason, TreeEntry};
use super::varint::{self, Reason};
use crate::member::Timestamp;
use columns::Columns;

const MAGIC: [u8; 8] = *b"TKUPTRE\x01";
/// A group is closed when it has this many entries,
const GROUP_RECORDS: usize = 4096;
/// or this many bytes of paths.
const GROUP_PATH_BYTES: usize = 512 << 10;
/// Longest body that is read, and longest column before compression: a group that is nearly full
/// and one path of the longest kind.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_HEADER_BYTES: usize = 16;
/// Longest path in bytes.
const PATH_BYTES_MAX: usize = 1 << 20;
/// Level of zstd: higher ones save a few per cent of an index.
const LEVEL: i32 = 3;
/// Columns shorter than this are stored as they are.
const COMPRESSED_BYTES_MIN: usize = 64;
const SECTION: &str = NamedSection::Tree.name();

/// The columns, by their ids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Shared = 1,
    PathLength,
    Path,
    Kind,
    State,
    Reason,
    Source,
    Mode,
    Uid,
    Gid,
    Size,
    ModifiedSeconds,
    ModifiedNanoseconds,
    ChangedSeconds,
    ChangedNanoseconds,
    Inode,
    Links,
    Place,
    Before,
}

const COLUMNS: [Column; 19] = [
    Column::Shared,
    Column::PathLength,
    Column::Path,
    Column::Kind,
    Column::State,
    Column::Reason,
    Column::Source,
    Column::Mode,
    Column::Uid,
    Column::Gid,
    Column::Size,
    Column::ModifiedSeconds,
    Column::ModifiedNanoseconds,
    Column::ChangedSeconds,
    Column::ChangedNanoseconds,
    Column::Inode,
    Column::Links,
    Column::Place,
    Column::Before,
];

/// A column with this bit in its id must be understood.
const MUST_UNDERSTAND: u8 = 0x80;
const RAW: u8 = 0;
const ZSTD: u8 = 1;
/// In the column of kinds: the entry is doubtful.
const DOUBTFUL: u8 = 0x80;

/// What the columns of an entry need of the one before it in its group.
#[derive(Clone, Debug, Default)]
struct Before {
    path: Vec<u8>,
    modified_seconds: i64,
    inode: u64,
}

/// Turns entries into the bytes of the section.
#[derive(Default)]
pub struct TreeWriter {
    /// Made once, with the first column.
    compressor: Option<zstd::bulk::Compressor<'static>>,
    columns: [Vec<u8>; COLUMNS.len()],
    before: Before,
    group_records: usize,
    groups: u64,
    summary: SectionSummary,
}

impl TreeWriter {
    /// Adds an entry. Full groups are appended to `out`; the caller may take them from there at any
    /// time.
    ///
    /// # Errors
    /// A path that is empty, longer than 1 MiB or holds a NUL; the section is unchanged.
    pub fn push(&mut self, entry: &TreeEntry, out: &mut Vec<u8>) -> Result<(), IndexError> {
        if let Err(reason) = check(entry) {
            return Err(IndexError::Named { section: SECTION, reason });
        }
        self.put(entry);
        self.before.path.clone_from(&entry.path);
        self.before.modified_seconds = entry.modified.seconds;
        self.before.inode = entry.inode;
        self.group_records += 1;
        self.summary.records += 1;
        let path_bytes = self.columns[Column::Path as usize - 1].len();
        if self.group_records == GROUP_RECORDS || path_bytes >= GROUP_PATH_BYTES {
            self.close_group(out);
        }
        Ok(())
    }

    fn put(&mut self, entry: &TreeEntry) {
        let before = std::mem::take(&mut self.before);
        let shared = before.path.iter().zip(&entry.path).take_while(|(a, b)| a == b).count();
        let mut number = |column: Column, number: u64| {
            varint::put(&mut self.columns[column as usize - 1], number);
        };
        number(Column::Shared, shared as u64);
        number(Column::PathLength, (entry.path.len() - shared) as u64);
        number(Column::Reason, entry.reason as u64);
        number(Column::State, entry.state as u64);
        number(Column::Source, entry.source.into());
        number(Column::Mode, entry.mode.into());
        number(Column::Uid, entry.uid.into());
        number(Column::Gid, entry.gid.into());
        number(Column::Size, entry.size_bytes);
        number(Column::Links, entry.links);
        number(Column::Place, entry.place.into());
        number(Column::Before, entry.before.map_or(0, |place| u64::from(place) + 1));
        let mut signed = |column: Column, number: i64| {
            varint::put_signed(&mut self.columns[column as usize - 1], number);
        };
        let seconds = entry.modified.seconds;
        signed(Column::ModifiedSeconds, seconds.wrapping_sub(before.modified_seconds));
        signed(Column::ChangedSeconds, entry.changed.seconds.wrapping_sub(seconds));
        signed(Column::Inode, entry.inode.wrapping_sub(before.inode) as i64);
        let doubtful = if entry.certainty == Certainty::Doubtful { DOUBTFUL } else { 0 };
        self.columns[Column::Kind as usize - 1].push(entry.kind as u8 | doubtful);
        self.columns[Column::Path as usize - 1].extend_from_slice(&entry.path[shared..]);
        // Of most objects both times are the same: one more than the number tells them apart.
        let nanoseconds = entry.modified.nanoseconds;
        let same = if entry.changed.nanoseconds == nanoseconds {
            0
        } else {
            entry.changed.nanoseconds + 1
        };
        for (column, number) in
            [(Column::ModifiedNanoseconds, nanoseconds), (Column::ChangedNanoseconds, same)]
        {
            self.columns[column as usize - 1].extend_from_slice(&number.to_le_bytes());
        }
        self.before = before;
    }

    /// Ends the section. The lengths count everything appended since the beginning.
    pub fn finish(mut self, out: &mut Vec<u8>) -> SectionSummary {
        if self.group_records > 0 {
            self.close_group(out);
        }
        let before = out.len();
        self.open_section(out);
        put_end(self.groups, self.summary.records, out);
        self.summary.length_bytes += (out.len() - before) as u64;
        self.summary
    }

    fn open_section(&self, out: &mut Vec<u8>) {
        if self.summary.length_bytes == 0 {
            out.extend_from_slice(&MAGIC);
        }
    }

    fn close_group(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        self.open_section(out);
        let header = out.len();
        out.extend_from_slice(&[0; GROUP_HEADER_BYTES]);
        let body = out.len();
        for (column, content) in COLUMNS.into_iter().zip(&mut self.columns) {
            let compressed = compress(&mut self.compressor, content);
            put_column(column as u8, content, compressed.as_deref(), out);
            content.clear();
        }
        let records = self.group_records as u32;
        let checksum = group_checksum(&out[body..], records, self.groups);
        let length = (out.len() - body) as u32;
        out[header..header + 4].copy_from_slice(&length.to_le_bytes());
        out[header + 4..header + 8].copy_from_slice(&records.to_le_bytes());
        out[header + 8..body].copy_from_slice(&checksum);
        self.before = Before::default();
        self.group_records = 0;
        self.groups += 1;
        self.summary.length_bytes += (out.len() - start) as u64;
    }
}

/// The compressed content of a column, where that is shorter.
fn compress(
    compressor: &mut Option<zstd::bulk::Compressor<'static>>,
    content: &[u8],
) -> Option<Vec<u8>> {
    if content.len() < COMPRESSED_BYTES_MIN {
        return None;
    }
    if compressor.is_none() {
        *compressor = zstd::bulk::Compressor::new(LEVEL).ok();
    }
    let compressed = compressor.as_mut()?.compress(content).ok()?;
    (compressed.len() < content.len()).then_some(compressed)
}

fn put_column(id: u8, content: &[u8], compressed: Option<&[u8]>, out: &mut Vec<u8>) {
    let (coding, stored) = match compressed {
        Some(compressed) => (ZSTD, compressed),
        None => (RAW, content),
    };
    out.push(id);
    out.push(coding);
    varint::put(out, content.len() as u64);
    varint::put_bytes(out, stored);
}

fn check(entry: &TreeEntry) -> Result<(), Reason> {
    let path = &entry.path;
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains(&0) {
        return Err("path is empty, longer than 1 MiB or holds a NUL");
    }
    let nanoseconds = entry.modified.nanoseconds.max(entry.changed.nanoseconds);
    if nanoseconds >= 1_000_000_000 {
        return Err("nanoseconds are a second or more");
    }
    if entry.mode > 0o7777 {
        return Err("mode has more than 12 bits");
    }
    Ok(())
}

/// Reads the entries of the section, one group at a time.
///
/// As an iterator it ends after the last entry or the first error. The section is complete only if
/// it ended without one.
pub struct TreeReader<R: Read> {
    source: R,
    columns: Columns,
    before: Before,
    /// Memory for the path of the next entry.
    spare: Vec<u8>,
    group_records: u32,
    groups: u64,
    records: u64,
    begun: bool,
    ended: bool,
}

impl<R: Read> TreeReader<R> {
    /// A reader for the section that starts at the position of `source`, which should be buffered.
    pub fn new(source: R) -> TreeReader<R> {
        TreeReader {
            source,
            columns: Columns::new(),
            before: Before::default(),
            spare: Vec::new(),
            group_records: 0,
            groups: 0,
            records: 0,
            begun: false,
            ended: false,
        }
    }

    /// The next entry; `None` behind the last one.
    ///
    /// # Errors
    /// Those of the source, and damage. After an error there are no more entries.
    pub fn next_entry(&mut self) -> Result<Option<TreeEntry>, IndexError> {
        let result = self.advance();
        self.ended |= !matches!(result, Ok(Some(_)));
        result
    }

    /// Takes the memory of an entry that is needed no longer, for the next one.
    pub fn reuse(&mut self, entry: TreeEntry) {
        self.spare = entry.path;
    }

    fn advance(&mut self) -> Result<Option<TreeEntry>, IndexError> {
        if self.ended {
            return Ok(None);
        }
        if !self.begun {
            let mut magic = [0; MAGIC.len()];
            self.fill(&mut magic)?;
            if magic != MAGIC {
                return Err(IndexError::Later { what: SECTION });
            }
            self.begun = true;
        }
        if self.group_records == 0 && !self.read_group()? {
            return Ok(None);
        }
        let entry = self.decode().map_err(damaged)?;
        self.group_records -= 1;
        self.records += 1;
        if self.group_records == 0 && !self.columns.are_used_up() {
            return Err(damaged("more bytes follow the last entry"));
        }
        Ok(Some(entry))
    }

    fn decode(&mut self) -> Result<TreeEntry, Reason> {
        let columns = &mut self.columns;
        let shared = usize::try_from(columns.number(Column::Shared)?).unwrap_or(usize::MAX);
        let length = usize::try_from(columns.number(Column::PathLength)?).unwrap_or(usize::MAX);
        if length > PATH_BYTES_MAX {
            return Err("path is longer than 1 MiB");
        }
        let path = &mut self.before.path;
        if shared > path.len() {
            return Err("shared part is longer than the path before");
        }
        path.truncate(shared);
        path.extend_from_slice(columns.bytes(Column::Path, length)?);
        let [kind] = columns.array(Column::Kind)?;
        let mode = columns.number(Column::Mode)?;
        let uid = columns.number(Column::Uid)?;
        let gid = columns.number(Column::Gid)?;
        let source = columns.number(Column::Source)?;
        let place = columns.number(Column::Place)?;
        let before = columns.number(Column::Before)?;
        let size_bytes = columns.number(Column::Size)?;
        let links = columns.number(Column::Links)?;
        let state = columns.number(Column::State)?;
        let reason = columns.number(Column::Reason)?;
        let modified = columns.signed(Column::ModifiedSeconds)?;
        let changed = columns.signed(Column::ChangedSeconds)?;
        let inode = columns.signed(Column::Inode)?;
        let nanoseconds = u32::from_le_bytes(columns.array(Column::ModifiedNanoseconds)?);
        let changed_nanoseconds = u32::from_le_bytes(columns.array(Column::ChangedNanoseconds)?);
        let seconds = self.before.modified_seconds.wrapping_add(modified);
        let mut own_path = std::mem::take(&mut self.spare);
        own_path.clear();
        own_path.extend_from_slice(path);
        let entry = TreeEntry {
            source: short(source)?,
            path: own_path,
            kind: of(ObjectKind::ALL, (kind & !DOUBTFUL).into())?,
            state: of(EntryState::ALL, state)?,
            reason: of(StoreReason::ALL, reason)?,
            certainty: match kind & DOUBTFUL {
                0 => Certainty::Settled,
                _ => Certainty::Doubtful,
            },
            mode: short(mode)?,
            uid: short(uid)?,
            gid: short(gid)?,
            size_bytes,
            modified: Timestamp { seconds, nanoseconds },
            changed: Timestamp {
                seconds: seconds.wrapping_add(changed),
                nanoseconds: match changed_nanoseconds {
                    0 => nanoseconds,
                    number => number - 1,
                },
            },
            inode: self.before.inode.wrapping_add(inode as u64),
            links,
            place: short(place)?,
            before: before.checked_sub(1).map(short).transpose()?,
        };
        check(&entry)?;
        self.before.modified_seconds = seconds;
        self.before.inode = entry.inode;
        Ok(entry)
    }

    /// Reads the next group; false at the end.
    fn read_group(&mut self) -> Result<bool, IndexError> {
        let mut header = [0; GROUP_HEADER_BYTES];
        self.fill(&mut header)?;
        let [a, b, c, d, e, f, g, h, rest @ ..] = header;
        let (length, records) =
            (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]));
        if length == 0 {
            self.check_end(records, rest)?;
            return Ok(false);
        }
        if length > GROUP_BYTES_MAX || records == 0 || records as usize > GROUP_RECORDS {
            return Err(damaged("group size is invalid"));
        }
        let mut body = vec![0; length];
        self.fill(&mut body)?;
        if group_checksum(&body, records, self.groups) != rest {
            return Err(damaged("group checksum does not match"));
        }
        self.columns.unpack(&body)?;
        self.group_records = records;
        self.before = Before::default();
        self.groups += 1;
        Ok(true)
    }

    fn check_end(&mut self, records_field: u32, total: [u8; 8]) -> Result<(), IndexError> {
        let mut checksum = [0; 8];
        self.fill(&mut checksum)?;
        if records_field != 0 || checksum != end_checksum(self.groups, total) {
            return Err(damaged("checksum of the end record does not match"));
        }
        if total != self.records.to_le_bytes() {
            return Err(damaged("number of entries does not match"));
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), IndexError> {
        self.source.read_exact(buffer).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => damaged("it is cut off"),
            _ => IndexError::NamedRead { section: SECTION, source },
        })
    }
}

impl<R: Read> Iterator for TreeReader<R> {
    type Item = Result<TreeEntry, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().transpose()
    }
}

fn damaged(reason: Reason) -> IndexError {
    IndexError::Named { section: SECTION, reason }
}

fn short(number: u64) -> Result<u32, Reason> {
    u32::try_from(number).map_err(|_| "number is larger than 32 bits")
}

fn of<T: Copy, const COUNT: usize>(all: [T; COUNT], number: u64) -> Result<T, Reason> {
    let place = usize::try_from(number).map_err(|_| "unknown value")?;
    all.get(place).copied().ok_or("unknown value")
}

#[cfg(test)]
mod tests;
