//! What the entries of a set do not know, since they are written before anything is read: what the
//! next run has to store again, and what is in the archive after all.

use super::error::IndexError;
use super::named::NamedSection;
use twox_hash::XxHash3_64;

/// Bytes of a record.
const RECORD_BYTES: usize = 17;

/// Why an object has a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgainReason {
    /// It is not in the archive.
    Unread,
    /// Nothing has to be stored again: it is a link in this archive, though its entry says that an
    /// earlier set has it. Another name of the file was stored after it.
    Relinked,
    /// It is in the archive, and not as it was: it changed meanwhile, or some of it could not be
    /// read.
    Flawed,
}

/// An object that was not stored, not as a whole, or though its entry does not say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AgainRecord {
    /// xxh3-64 of its path.
    pub path: u64,
    /// Its inode number, where it has other names, which are links to it; else 0.
    pub inode: u64,
    pub reason: AgainReason,
}

impl AgainRecord {
    /// What stands for a path.
    pub fn path_hash(path: &[u8]) -> u64 {
        XxHash3_64::oneshot(path)
    }

    /// Appends the record to the section.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.path.to_le_bytes());
        out.extend_from_slice(&self.inode.to_le_bytes());
        out.push(match self.reason {
            AgainReason::Unread => 0,
            AgainReason::Flawed => 1,
            AgainReason::Relinked => 2,
        });
    }

    /// The records of a section.
    ///
    /// # Errors
    /// `Named` if it is damaged.
    pub fn decode_all(section: &[u8]) -> Result<Vec<AgainRecord>, IndexError> {
        let name = NamedSection::Again.name();
        let (records, rest) = section.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(IndexError::Named { section: name, reason: "it is cut off" });
        }
        let decode = |record: &[u8; RECORD_BYTES]| {
            let [a, b, c, d, e, f, g, h, inode @ .., reason] = record;
            Ok(AgainRecord {
                path: u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
                inode: u64::from_le_bytes(*inode),
                reason: match reason {
                    0 => AgainReason::Unread,
                    1 => AgainReason::Flawed,
                    2 => AgainReason::Relinked,
                    _ => return Err(IndexError::Named { section: name, reason: "unknown reason" }),
                },
            })
        };
        records.iter().map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back() {
        let records = [
            AgainRecord { path: 1, inode: 0, reason: AgainReason::Unread },
            AgainRecord { path: u64::MAX, inode: 1 << 63, reason: AgainReason::Flawed },
        ];
        let mut section = Vec::new();
        records.iter().for_each(|record| record.encode(&mut section));
        assert_eq!(AgainRecord::decode_all(&section).unwrap(), records);
        assert!(AgainRecord::decode_all(&section[1..]).is_err());
        section[16] = 9;
        assert!(AgainRecord::decode_all(&section).is_err());
    }
}
