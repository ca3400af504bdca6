//! Bytes that are needed again at the end of a run: the index while it grows, and results for each
//! file until the index has the expected ones.
//!
//! A small spool stays in memory. From [`MEMORY_BYTES`] on it goes to an unnamed temporary file, so
//! that memory does not grow with the number of files and a killed run leaves nothing behind.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use machine::unnamed_file;

/// Bytes kept in memory before a temporary file is made, and between two writes to it.
const MEMORY_BYTES: usize = 1 << 20;

/// An append-only store of bytes.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    buffer: Vec<u8>,
    file: Option<File>,
    file_bytes: u64,
}

impl From<Vec<u8>> for Spool {
    fn from(buffer: Vec<u8>) -> Spool {
        Spool { buffer, ..Spool::default() }
    }
}

impl Spool {
    /// The end of the spool, to append to. Call [`Spool::settle`] now and then.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Bytes in the spool.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.file_bytes + self.buffer.len() as u64
    }

    /// Moves the memory to the file if it has become large.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.buffer.len() < MEMORY_BYTES {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(unnamed_file()?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
        }
        self.file_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Reads `bytes` at `offset_bytes`.
    pub(crate) fn read_at(&self, offset_bytes: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut out = vec![0; bytes];
        if offset_bytes >= self.file_bytes {
            let start = (offset_bytes - self.file_bytes) as usize;
            let stored = self.buffer.get(start..start + bytes);
            out.copy_from_slice(stored.ok_or(io::ErrorKind::UnexpectedEof)?);
        } else if let Some(file) = &self.file {
            // `settle` moves the buffer as a whole, so a range is never split between file and
            // memory.
            file.read_exact_at(&mut out, offset_bytes)?;
        }
        Ok(out)
    }

    /// All bytes from the start.
    pub(crate) fn into_reader(self) -> io::Result<SpoolReader> {
        let file: Box<dyn Read> = match self.file {
            Some(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
            None => Box::new(io::empty()),
        };
        Ok(file.chain(Cursor::new(self.buffer)))
    }

    /// Passes on all bytes from the start, in slices.
    pub(crate) fn read_through(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let all = |bytes: &[u8]| {
            each(bytes);
            Ok(())
        };
        self.try_read_through(all, |error| error)
    }

    /// Passes on all bytes from the start, in slices, until `each` fails. `failed` converts an
    /// error of the spool itself.
    pub(crate) fn try_read_through<E>(
        &self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
        failed: impl Fn(io::Error) -> E,
    ) -> Result<(), E> {
        if let Some(file) = &self.file {
            let mut part = vec![0; MEMORY_BYTES.min(self.file_bytes as usize)];
            let mut at = 0;
            while at < self.file_bytes {
                let now = part.len().min((self.file_bytes - at) as usize);
                file.read_exact_at(&mut part[..now], at).map_err(&failed)?;
                each(&part[..now])?;
                at += now as u64;
            }
        }
        each(&self.buffer)
    }
}

/// What was in a spool.
pub(crate) type SpoolReader = io::Chain<Box<dyn Read>, Cursor<Vec<u8>>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_gives_back_what_it_took_in_memory_and_in_a_file() {
        for records in [10u32, 400_000] {
            let mut spool = Spool::default();
            for record in 0..records {
                spool.buffer().extend_from_slice(&record.to_le_bytes());
                spool.settle().unwrap();
            }
            assert_eq!(spool.length_bytes(), u64::from(records) * 4);
            for record in [0, records / 2, records - 1] {
                let stored = spool.read_at(u64::from(record) * 4, 4).unwrap();
                assert_eq!(stored, record.to_le_bytes());
            }
            let mut all = Vec::new();
            spool.read_through(|bytes| all.extend_from_slice(bytes)).unwrap();
            let expected: Vec<u8> = (0..records).flat_map(u32::to_le_bytes).collect();
            assert!(all == expected);
            all.clear();
            spool.into_reader().unwrap().read_to_end(&mut all).unwrap();
            assert!(all == expected);
        }
    }
}
