//! A section: groups of records, each with a checksum, and an end that counts them.
//!
//! ```text
//! section  magic 7, version 1, group..., end
//! group    body length 4 (> 0), records 4, xxh3-64 of the body 8, body
//! end      0 4, 0 4, records in all 8, xxh3-64 of the eight bytes before 8
//! ```
//!
//! The number of the group is the seed of its checksum, so that exchanged or missing groups are
//! detected like damaged ones. Writer and reader hold one group.

use std::io::{ErrorKind, Read};
use std::marker::PhantomData;

use twox_hash::XxHash3_64;

use super::envelope::SectionSummary;
use super::error::IndexError;
use super::varint::{Body, Reason};
use super::{INDEX_VERSION, IndexSection};

/// A group is closed when it has this many records,
const GROUP_RECORDS: u32 = 512;
/// or this many bytes.
const GROUP_BYTES: usize = 64 << 10;
/// Longest body that is read: a partly filled group and one record of the longest kind.
pub const GROUP_BYTES_MAX: usize = 4 << 20;
const GROUP_HEADER_BYTES: usize = 16;

/// A record of a section. Only the records of this module implement it.
pub trait Record: Sized + private::Codec {
    /// The section that these records form.
    const SECTION: IndexSection;
}

pub(crate) mod private {
    use super::{Body, Reason};

    /// Encodes a record as bytes. `State` is what a record needs of the earlier ones in its group.
    pub trait Codec: Sized {
        type State: Default;
        /// Appends the record to the body of a group. On an error the body is unchanged.
        fn encode(&self, state: &mut Self::State, body: &mut Vec<u8>) -> Result<(), Reason>;
        fn decode(state: &mut Self::State, body: &mut Body<'_>) -> Result<Self, Reason>;
    }
}

/// Turns records into the bytes of a section.
pub struct IndexWriter<T: Record> {
    body: Vec<u8>,
    body_records: u32,
    state: T::State,
    groups: u64,
    summary: SectionSummary,
}

impl<T: Record> Default for IndexWriter<T> {
    fn default() -> Self {
        IndexWriter::new()
    }
}

impl<T: Record> IndexWriter<T> {
    /// A writer for an empty section.
    pub fn new() -> IndexWriter<T> {
        IndexWriter {
            body: Vec::new(),
            body_records: 0,
            state: T::State::default(),
            groups: 0,
            summary: SectionSummary::default(),
        }
    }

    /// Adds a record. Full groups are appended to `out`; the caller may take them from there at any
    /// time.
    ///
    /// # Errors
    /// `Unwritable`; the section is unchanged.
    pub fn push(&mut self, record: &T, out: &mut Vec<u8>) -> Result<(), IndexError> {
        record
            .encode(&mut self.state, &mut self.body)
            .map_err(|reason| IndexError::Unwritable { section: T::SECTION, reason })?;
        self.body_records += 1;
        self.summary.records += 1;
        if self.body_records == GROUP_RECORDS || self.body.len() >= GROUP_BYTES {
            self.close_group(out);
        }
        Ok(())
    }

    /// Ends the section. The lengths count everything appended since `new`.
    pub fn finish(mut self, out: &mut Vec<u8>) -> SectionSummary {
        if self.body_records > 0 {
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
            out.extend_from_slice(&T::SECTION.magic());
            out.push(INDEX_VERSION);
        }
    }

    fn close_group(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        self.open_section(out);
        out.extend_from_slice(&(self.body.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.body_records.to_le_bytes());
        out.extend_from_slice(&group_checksum(&self.body, self.body_records, self.groups));
        out.extend_from_slice(&self.body);
        self.body.clear();
        self.body_records = 0;
        self.state = T::State::default();
        self.groups += 1;
        self.summary.length_bytes += (out.len() - before) as u64;
    }
}

/// Checksum of a body. The seed contains what the body does not: its place and its number of
/// records.
pub(super) fn group_checksum(body: &[u8], records: u32, group: u64) -> [u8; 8] {
    XxHash3_64::oneshot_with_seed(group << 32 ^ u64::from(records), body).to_le_bytes()
}

/// Appends the end of a section.
pub(super) fn put_end(groups: u64, records: u64, out: &mut Vec<u8>) {
    let records = records.to_le_bytes();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&records);
    out.extend_from_slice(&end_checksum(groups, records));
}

/// Checksum of the number of records at the end of a section.
pub(super) fn end_checksum(groups: u64, records: [u8; 8]) -> [u8; 8] {
    XxHash3_64::oneshot_with_seed(groups, &records).to_le_bytes()
}

/// Reads the records of a section lazily, one group at a time.
///
/// As an iterator it ends after the last record or the first error. The section is complete only if
/// it ended without one.
pub struct IndexReader<T: Record, R: Read> {
    source: R,
    body: Vec<u8>,
    /// Where the rest of the body starts.
    body_position: usize,
    body_records: u32,
    state: T::State,
    groups: u64,
    records: u64,
    /// Bytes read from the source.
    offset_bytes: u64,
    group_offset_bytes: u64,
    stage: Stage,
    record: PhantomData<fn() -> T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unopened,
    Groups,
    Ended,
}

impl<T: Record, R: Read> IndexReader<T, R> {
    /// A reader for the section that starts at the position of `source`. Nothing is read yet, and
    /// later never beyond the end of the section. Reads are as small as a group header: use a
    /// buffered source.
    pub fn new(source: R) -> IndexReader<T, R> {
        IndexReader {
            source,
            body: Vec::new(),
            body_position: 0,
            body_records: 0,
            state: T::State::default(),
            groups: 0,
            records: 0,
            offset_bytes: 0,
            group_offset_bytes: 0,
            stage: Stage::Unopened,
            record: PhantomData,
        }
    }

    /// The next record; `None` behind the last one.
    ///
    /// # Errors
    /// `Read`, `Truncated`, `Damaged`, `UnknownVersion`. After an error there are no more records.
    pub fn next_record(&mut self) -> Result<Option<T>, IndexError> {
        let result = self.advance();
        if !matches!(result, Ok(Some(_))) {
            self.stage = Stage::Ended;
        }
        result
    }

    /// Length and number of records read so far: those of the whole section at its end.
    pub fn summary(&self) -> SectionSummary {
        SectionSummary { length_bytes: self.offset_bytes, records: self.records }
    }

    fn advance(&mut self) -> Result<Option<T>, IndexError> {
        if self.stage == Stage::Unopened {
            self.open()?;
        }
        if self.stage == Stage::Ended || (self.body_records == 0 && !self.read_group()?) {
            return Ok(None);
        }
        let mut body = Body::new(&self.body[self.body_position..]);
        let record = T::decode(&mut self.state, &mut body);
        self.body_position = self.body.len() - body.rest_bytes();
        let record = record.map_err(|reason| self.damaged(reason))?;
        self.body_records -= 1;
        self.records += 1;
        if self.body_records == 0 && self.body_position != self.body.len() {
            return Err(self.damaged("more bytes follow the last record"));
        }
        Ok(Some(record))
    }

    fn open(&mut self) -> Result<(), IndexError> {
        let mut head = [0; 8];
        self.fill(&mut head)?;
        let [magic @ .., version] = head;
        if magic != T::SECTION.magic() || version != INDEX_VERSION {
            return Err(IndexError::UnknownVersion { section: T::SECTION });
        }
        self.stage = Stage::Groups;
        Ok(())
    }

    /// Reads the next group; false at the end.
    fn read_group(&mut self) -> Result<bool, IndexError> {
        self.group_offset_bytes = self.offset_bytes;
        let mut header = [0; GROUP_HEADER_BYTES];
        self.fill(&mut header)?;
        let [a, b, c, d, e, f, g, h, rest @ ..] = header;
        let (length, records) =
            (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]));
        if length == 0 {
            self.check_end(records, rest)?;
            return Ok(false);
        }
        if length > GROUP_BYTES_MAX || records == 0 || records > GROUP_RECORDS {
            return Err(self.damaged("group size is invalid"));
        }
        let mut body = std::mem::take(&mut self.body);
        body.resize(length, 0);
        let filled = self.fill(&mut body);
        self.body = body;
        filled?;
        if group_checksum(&self.body, records, self.groups) != rest {
            return Err(self.damaged("group checksum does not match"));
        }
        self.body_position = 0;
        self.body_records = records;
        self.state = T::State::default();
        self.groups += 1;
        Ok(true)
    }

    fn check_end(&mut self, records_field: u32, total: [u8; 8]) -> Result<(), IndexError> {
        let mut checksum = [0; 8];
        self.fill(&mut checksum)?;
        if records_field != 0 || checksum != end_checksum(self.groups, total) {
            return Err(self.damaged("checksum of the end record does not match"));
        }
        if total != self.records.to_le_bytes() {
            return Err(self.damaged("number of records does not match"));
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), IndexError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.source.read(&mut buffer[filled..]) {
                Ok(0) => {
                    let offset_bytes = self.offset_bytes;
                    return Err(IndexError::Truncated { section: T::SECTION, offset_bytes });
                }
                Ok(count) => {
                    filled += count;
                    self.offset_bytes += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(IndexError::Read { section: T::SECTION, source }),
            }
        }
        Ok(())
    }

    fn damaged(&self, reason: Reason) -> IndexError {
        let offset_bytes = self.group_offset_bytes;
        IndexError::Damaged { section: T::SECTION, offset_bytes, reason }
    }
}

impl<T: Record, R: Read> Iterator for IndexReader<T, R> {
    type Item = Result<T, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}
