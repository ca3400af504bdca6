//! Results for every file, until the index after the archive has the expected ones: one record for
//! each member in archive order.

use std::io::{self, Read};

use archive::stream::ArchiveOffset;

use crate::spool::{Spool, SpoolReader};

/// Bytes of a record: place, whether there is a hash, hash.
const RECORD_BYTES: usize = 8 + 1 + 32;

/// The result for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub header_offset_bytes: ArchiveOffset,
    /// `None` for all but files, and for files with missing content.
    pub content_hash: Option<[u8; 32]>,
}

/// The records.
#[derive(Debug, Default)]
pub(crate) struct SeenMembers(Spool);

impl SeenMembers {
    /// Keeps one more, in memory or in the spill file.
    pub fn push(&mut self, seen: Seen) -> io::Result<()> {
        let out = self.0.buffer();
        out.extend_from_slice(&seen.header_offset_bytes.bytes().to_le_bytes());
        out.push(u8::from(seen.content_hash.is_some()));
        out.extend_from_slice(&seen.content_hash.unwrap_or_default());
        self.0.settle()
    }

    /// Drops all records: another archive starts.
    pub fn clear(&mut self) {
        *self = SeenMembers::default();
    }

    /// The records in order.
    pub fn into_reader(self) -> io::Result<SeenReader> {
        Ok(SeenReader { records: self.0.into_reader()? })
    }
}

/// Reads records back.
pub(crate) struct SeenReader {
    records: SpoolReader,
}

impl SeenReader {
    /// The next record, `None` after the last.
    pub fn next(&mut self) -> io::Result<Option<Seen>> {
        let mut record = [0; RECORD_BYTES];
        match self.records.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let (offset, rest) = record.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().expect("eight bytes"));
        let header_offset_bytes = ArchiveOffset::new(offset);
        let hash: [u8; 32] = rest[1..].try_into().expect("32 bytes");
        Ok(Some(Seen { header_offset_bytes, content_hash: (rest[0] == 1).then_some(hash) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order_from_memory_and_file() {
        for count in [0u64, 3, 250_000] {
            let mut spool = SeenMembers::default();
            let seen = |number: u64| Seen {
                header_offset_bytes: ArchiveOffset::new(number * 512),
                content_hash: number.is_multiple_of(3).then_some([number as u8; 32]),
            };
            (0..count).for_each(|number| spool.push(seen(number)).unwrap());
            let mut reader = spool.into_reader().unwrap();
            for number in 0..count {
                assert_eq!(reader.next().unwrap(), Some(seen(number)));
            }
            assert_eq!(reader.next().unwrap(), None);
        }
    }
}
